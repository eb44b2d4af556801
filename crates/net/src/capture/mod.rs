//! Captures in real time: packets as pcapng, in a [recording](crate::recording).

mod datagrams;
mod recorder;

#[cfg(test)]
mod tests;

pub use datagrams::{CapturedApplication, DatagramCapture};
pub use recorder::{Capture, Recorder, Seen};
