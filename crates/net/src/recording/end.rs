//! The end of a recording.

use std::path::PathBuf;

/// The reason why a recording ended before the traffic did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordingEnd {
    /// It has reached its largest size.
    Size,
    /// The file takes no more, for this reason.
    Disk(String),
}

/// The end of a recording, for one line of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndOfRecording {
    /// The kind of recording: `capture` or `trace`.
    pub kind: &'static str,
    /// The file.
    pub file: PathBuf,
    /// The reason.
    pub why: RecordingEnd,
}

impl core::fmt::Display for EndOfRecording {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let (kind, file) = (self.kind, self.file.display());
        match &self.why {
            RecordingEnd::Size => write!(f, "the {kind} {file} has its largest size and ends"),
            RecordingEnd::Disk(why) => write!(f, "the {kind} {file} ends: {why}"),
        }
    }
}
