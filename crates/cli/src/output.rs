//! Data on stdout. A reader that has closed it is not an error: `fulmar ... | head` ends quietly.

use crate::exit::{Exit, Failure};
use anyhow::Context;
use serde::Serialize;
use std::io::{self, ErrorKind, Write};

/// Whether stdout still has a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StdoutReader {
    Present,
    Gone,
}

/// Prints one line of text.
///
/// # Errors
/// Stdout cannot be written, for instance because the disk behind it is full.
pub(crate) fn line(text: &str) -> Result<(), Failure> {
    watched_text(text).map(|_| ())
}

/// Prints text, for a command that ends when nobody reads it any more.
///
/// # Errors
/// As [`line()`].
pub(crate) fn watched_text(text: &str) -> Result<StdoutReader, Failure> {
    let mut stdout = io::stdout().lock();
    match writeln!(stdout, "{text}").and_then(|()| stdout.flush()) {
        Ok(()) => Ok(StdoutReader::Present),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(StdoutReader::Gone),
        Err(error) => Err(Failure {
            exit: Exit::Device,
            cause: anyhow::Error::new(error),
        })
        .map_err(|failure| failure.context("writing to stdout")),
    }
}

/// Prints one record of NDJSON.
///
/// # Errors
/// As [`line()`]; or the record holds something that JSON has no form for.
pub(crate) fn record(record: &impl Serialize) -> Result<(), Failure> {
    watched_record(record).map(|_| ())
}

/// Prints one record of NDJSON, for a command that ends when nobody reads its records any more.
///
/// # Errors
/// As [`record()`].
pub(crate) fn watched_record(record: &impl Serialize) -> Result<StdoutReader, Failure> {
    let text = serde_json::to_string(record).context("writing a record as JSON")?;
    watched_text(&text)
}

/// `part` of `whole` as a share; zero if `whole` is zero.
pub(crate) fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}

/// The octets of a transfer of which `before` were there before, in words: those whose time is told.
pub(crate) fn moved(size: u64, before: u64) -> String {
    match size.saturating_sub(before) {
        rest if before > 0 => format!("the last {rest} of {size} bytes"),
        _ => format!("{size} bytes"),
    }
}
