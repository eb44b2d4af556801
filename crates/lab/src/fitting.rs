//! The loss model behind a recording: a table of packets, or a capture of a flow.

use crate::parts::PARQUET;
use crate::unread::UnreadRecording;
use fulmar_trace::fit::{Fit, fit};
use fulmar_trace::{
    CaptureCut, CaptureOptions, Losses, SequenceOptions, TableContent, is_capture, read_capture,
    read_table,
};
use serde::Serialize;
use std::io::{BufRead, BufReader, Read};

/// The level of the test below which a model is not believed.
pub const LEVEL: f64 = 0.01;

/// The packets of a recording to take.
#[derive(Clone, Copy, Debug)]
pub struct FittingOptions {
    /// For a capture: the flow.
    pub capture: Option<CaptureOptions>,
    /// For a table: how its numbers count.
    pub sequence: SequenceOptions,
    /// The name that the caller's users know for the port of the flow, which messages tell.
    pub port_option: &'static str,
}

/// The losses of a recording.
#[derive(Debug)]
pub struct RecordedLosses {
    /// The packets, and which of them were lost.
    pub losses: Losses,
    /// The place where a capture ends in the midst of a packet: a later one is missing, not lost.
    pub cut: Option<CaptureCut>,
}

/// Reads a recording, which is told to be a table or a capture by its first octets.
///
/// # Errors
/// [`UnreadRecording`].
pub fn read_losses(
    name: &str,
    source: impl Read + Send,
    options: &FittingOptions,
) -> Result<RecordedLosses, UnreadRecording> {
    let mut source = BufReader::new(source);
    let head = source
        .fill_buf()
        .map_err(|error| UnreadRecording::Unreadable {
            name: name.to_owned(),
            error,
        })?;
    let port = options.port_option;
    let of_kind = |problem| UnreadRecording::Kind {
        name: name.to_owned(),
        problem,
    };
    if head.starts_with(PARQUET) {
        let problem = "is a Parquet file, such as results of a sweep; a recording is a table of text (CSV), or a capture";
        return Err(of_kind(problem.to_owned()));
    }
    match (is_capture(head), options.capture) {
        (true, None) => Err(of_kind(format!(
            "is a capture; say which flow: {port}, the UDP port it was sent to"
        ))),
        (false, Some(_)) => Err(of_kind(format!(
            "is no capture, pcap or pcapng; leave {port} out"
        ))),
        (true, Some(flow)) => {
            let captured = read_capture(name, source, flow)?;
            Ok(RecordedLosses {
                losses: captured.losses,
                cut: captured.cut,
            })
        }
        (false, None) => match read_table(name, source, options.sequence)? {
            TableContent::Packets(losses) => Ok(RecordedLosses { losses, cut: None }),
            TableContent::Time(_) => Err(of_kind(
                "is a loss by time and not of packets: there is nothing to fit; replay it with \
                 `loss = \"trace FILE\"`"
                    .to_owned(),
            )),
        },
    }
}

/// A recording with the model that fits it best; its fields are those of `fulmar fit --json`.
#[derive(Debug, Serialize)]
pub struct FittedRecording {
    #[serde(rename = "record")]
    kind: &'static str,
    schema: u32,
    /// The file as the user named it.
    pub file: String,
    /// The chosen model as a scenario writes it.
    pub loss: String,
    /// Whether the chosen model passes its test at [`LEVEL`]; `null` if it cannot be tested.
    pub believable: Option<bool>,
    /// All models.
    #[serde(flatten)]
    pub fit: Fit,
}

impl FittedRecording {
    /// The model that fits `losses` best.
    pub fn of(name: &str, losses: &Losses) -> Self {
        let fit = fit(losses);
        Self {
            kind: "fit",
            schema: 1,
            file: name.to_owned(),
            loss: fit
                .best()
                .map_or_else(String::new, |best| best.loss.clone()),
            believable: fit.is_believable(LEVEL),
            fit,
        }
    }
}
