//! Lines of a text as a stream, none of them longer than a bound.

use crate::error::TraceError;
use std::io::{BufRead, BufReader, Read};

/// The length of the longest line: a row of a table has some dozens of octets.
const LINE_OCTETS_MAX: usize = 4096;

/// The lines of a file, with their numbers.
pub(crate) struct Lines<'a, R> {
    name: &'a str,
    reader: BufReader<R>,
    number: u64,
    text: Vec<u8>,
}

impl<'a, R: Read> Lines<'a, R> {
    pub(crate) fn new(name: &'a str, reader: R) -> Self {
        Self {
            name,
            reader: BufReader::new(reader),
            number: 0,
            text: Vec::new(),
        }
    }

    /// The next line that says something, without its end: no blank line, no `#` comment.
    pub(crate) fn next_line(&mut self) -> Result<Option<&str>, TraceError> {
        loop {
            self.text.clear();
            let limit = LINE_OCTETS_MAX as u64 + 1;
            let mut limited = (&mut self.reader).take(limit);
            let read = limited.read_until(b'\n', &mut self.text);
            let read = read.map_err(|source| TraceError::Io {
                name: self.name.to_owned(),
                source,
            })?;
            if read == 0 {
                return Ok(None);
            }
            self.number += 1;
            if self.text.len() > LINE_OCTETS_MAX {
                let problem = format!("the line is longer than {LINE_OCTETS_MAX} octets");
                return Err(self.error("line", problem + "; this is no table with a row to a line"));
            }
            if self.number == 1 && self.text.starts_with(b"\xEF\xBB\xBF") {
                self.text.drain(..3);
            }
            let is_said = self
                .text
                .trim_ascii()
                .first()
                .is_some_and(|&first| first != b'#');
            if is_said {
                break;
            }
        }
        match str::from_utf8(&self.text) {
            Ok(text) => Ok(Some(text.trim())),
            Err(_) => Err(self.error("line", "is no text, and no file of a kind that is known")),
        }
    }

    /// An error about the line that was read last.
    pub(crate) fn error(&self, field: &str, problem: impl Into<String>) -> TraceError {
        TraceError::Line {
            name: self.name.to_owned(),
            line: self.number,
            field: field.to_owned(),
            problem: problem.into(),
        }
    }
}
