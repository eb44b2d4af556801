//! Captures in real time: packets as pcapng, in a [recording](crate::recording).

mod recorder;

#[cfg(test)]
mod tests;

pub use recorder::{Capture, Recorder, Seen};
