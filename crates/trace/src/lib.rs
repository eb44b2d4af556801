//! Recordings of loss and of optical power: loss from tables and captures, to be replayed or fitted
//! with models, and power from tables and MATLAB files, to be replayed.
//!
//! ```text
//!  CSV ---------- lines -> table ----+---> Losses ----> fit: Bernoulli, Gilbert, Gilbert-Elliott,
//!  pcap, pcapng - capture -> sequence +       |               two states by time
//!                                            +--------> Trace, for `loss = "trace FILE"`
//!  pcap, pcapng - passages -------------------------> datagrams at the ends of a link, for `fulmar replay`
//!  CSV, .mat ---- power --------------------------------> PowerTrace, for `fading = "trace FILE"`
//! ```
//!
//! ```
//! use fulmar_trace::{TableContent, SequenceOptions, TraceError, read_table};
//! let table = "lost\n0\n1\n0\n0\n";
//! let recording = read_table("lab.csv", table.as_bytes(), SequenceOptions::default())?;
//! assert!(matches!(recording, TableContent::Packets(_)));
//! # Ok::<(), TraceError>(())
//! ```
//!
//! # Promises
//! - No files: whoever has one hands over a reader. Input is read as a stream; the memory for it
//!   is bounded (one bit and, where there are times, a few octets for a packet), and so is a line.
//! - Whatever is in a file, the answer is a value or a [`TraceError`] that names place, field and
//!   remedy; nothing panics.
//! - A fit says how well it fits, and what else was tried.
//!
//! docs/models/fit.md has the methods with their limits and validation.

mod capture;
mod error;
pub mod fit;
mod lines;
mod losses;
mod packets;
mod passages;
mod power;
mod sequence;
mod table;

pub use capture::{CaptureOptions, Captured, CapturedProtocol, read_capture};
pub use error::TraceError;
pub use losses::{Counts, LossGroup, Losses};
pub use packets::{CaptureCut, is_capture};
pub use passages::{CapturePoint, CapturedPassages, PassedDatagram, read_passages};
pub use power::{PowerOptions, read_power};
pub use sequence::{SequenceOptions, Tracker};
pub use table::{TableContent, read_table};
