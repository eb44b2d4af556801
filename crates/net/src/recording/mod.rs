//! Recordings of events in real time: encoded where they happen, written out by a thread of their own.
//!
//! ```text
//!  traffic --Spool--> bounded buffer of whole entries --thread--> file
//! ```
//!
//! Captures ([`crate::capture`]) and event traces ([`crate::event_trace`]) are recordings.
//!
//! # Promises
//! - Traffic never waits for the file. When the buffer is full, entries are left out and counted, and the
//!   next recorded entry tells their number.
//! - A file that reached its size, or a disk that is full, ends the recording, not the traffic; the
//!   file is whole up to its last entry.
//! - The file is readable by its owner alone, and holds whole entries up to the last half second.
//! - A former file, such as that of a crash, is kept beside the new one.

mod end;
mod file;
mod spool;

pub use end::{EndOfRecording, RecordingEnd};
pub(crate) use file::Recording;
pub use file::{RecordingConfig, RecordingError, former};
pub use spool::RecordingCounters;
pub(crate) use spool::{Format, Spool};
