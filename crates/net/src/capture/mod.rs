//! Captures in real time: packets encoded where they pass, written out by a thread of its own.
//!
//! ```text
//!  traffic --Recorder--> bounded buffer of blocks --thread--> file
//! ```
//!
//! # Promises
//! - Traffic never waits for the file. When the buffer is full, packets are left out of the capture,
//!   counted, and the next one that is in it says how many.
//! - A file that reached its size, or a disk that is full, ends the capture, not the traffic; the
//!   file is whole up to its last packet.
//! - The file is readable by its owner alone, and holds whole packets up to the last half second.

mod file;
mod recorder;

pub use file::{Capture, CaptureConfig, CaptureEnd, CaptureError, EndOfCapture};
pub use recorder::{CaptureCounters, Recorder, Seen};
