//! Erasures across packets: a systematic block code of which any k units rebuild the k sources.
//!
//! The sources of a block are sent as they are. A repair symbol is a linear combination of all k
//! sources. Each can be made at any time, in any order, from the sources alone, so that "two more"
//! never means encoding a block again. A receiver that holds any k of the block's units (sources
//! and repair symbols) solves for the lost ones, and only for those.
//!
//! # The code
//! Source j < k stands as the symbol `length (2 octets, big-endian) ‖ payload ‖ zeros`, as long as
//! the block's longest payload plus two, so that payloads of different lengths come back exact.
//! Repair symbol i < 256 - k is the sum over j of source j / ((k + i) xor j) over GF(256), 0x11D. The
//! matrix is a Cauchy matrix: every square part of it is invertible, hence "any k of n" without exception.
//! The rows equal ISA-L's `gf_gen_cauchy1_matrix`.
//!
//! # Parts
//! - [`encode_repair`]: one repair symbol, from the sender's own buffers.
//! - [`BlockDecoder`]: collects units; says how many are still needed (the feedback of LT-TCP).
//! - [`SpanEncoder`], [`SpanDecoder`]: parity over the sources so far, while a block is being filled.
//! - [`BlockPlan`], [`BlockSchedule`]: when a block closes, by count or by time, and how many
//!   repair symbols follow.
//!
//! # Does not
//! - Know about sequence numbers or headers. Indices are positions in a block; the schedule counts
//!   opaque ordinals.
//! - Detect damage: a unit with a wrong octet spoils the block. Check units first.
//!
//! # Sources
//! Blömer et al., "An XOR-Based Erasure-Resilient Coding Scheme", ICSI TR-95-048 (Cauchy matrices);
//! LT-TCP slides (feedback in units). `docs/models/fec.md` has the model, ADR 0004 the reasons.

mod cauchy;
mod decode;
mod encode;
mod schedule;
mod spanning;

pub(super) use decode::payload_of;
pub use decode::{BlockDecoder, RejectedUnit, Undecodable};
pub use encode::{CannotEncode, encode_repair};
pub use schedule::{BlockCloseReason, BlockPlan, BlockSchedule, ClosedBlock};
pub use spanning::{ROWS_MAX, SPAN_MAX, SpanDecoder, SpanEncoder};

/// Octets of the length that stands before each payload in a symbol.
pub const LENGTH_PREFIX: usize = 2;

/// The units that a block can have: sources and repair symbols together.
pub const UNITS_MAX: usize = 256;

#[cfg(test)]
mod tests;
