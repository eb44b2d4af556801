//! LT-TCP segments: a TCP header, and behind it an extension that names a unit of a block or
//! carries the receiver's feedback.
//!
//! The header is TCP's octet for octet, with its checksum over everything behind it, so sequence
//! numbers, acknowledgement, window, ECE and CWR mean what they mean in TCP. Handshake and reset
//! have no extension. Everything else has exactly one:
//!
//! ```text
//! unit      1 | index | ordinal 16 | block 16 | k | n | length of the block 32           12 octets
//! feedback  2 | counts 4+4 | arrived up to 16 | arrivals 16 | loss 16 | deviation 16     10 octets
//!           per block   id 16 | units received | units needed | units lost               5 octets
//!           per run     first octet 32 | one past the last 32                            8 octets
//! ```
//!
//! # Promises
//! - Parsing never panics and reads nothing before the checksum matches; it allocates for the
//!   lists of a feedback only, 15 entries each at most.
//! - A unit that parses has the payload length that its header states, so that no later step
//!   depends on the peer's word for it.
//!
//! # Sources
//! LT-TCP + LL-HARQ slides (units needed, as feedback); the layout is ours:
//! `docs/protocol/lt-tcp.md`.

mod feedback;
mod segment;
mod unit;

pub use feedback::{LtTcpBlockReport, LtTcpFeedback, REPORTS_MAX, RUNS_MAX};
pub use segment::{Extension, LtReject, LtSegment, write_segment};
pub use unit::{BLOCK_OCTETS_MAX, REPAIR_PREFIX_BYTES, UNIT_EXTENSION_BYTES, UnitHeader};

#[cfg(test)]
mod tests;
