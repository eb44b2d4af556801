//! Link frames: the messages of one hop's ends to each other, as octets.
//!
//! A frame's first octet names its layer and its kind, so that ends which were configured
//! differently drop each other's frames instead of misreading them. The rest of a frame is its
//! layer's own. Every frame carries a check over all of itself; a frame that fails it counts as
//! lost.
//!
//! # Does not
//! - Know the order of numbers, windows or time: that is the machines' work in `crate::link`.
//! - Detect damage beyond its check: CRC-32 overlooks one damaged frame in 2^32.
//!
//! # Sources
//! Neither the LL-HARQ nor the SLACP slides show a frame; the formats are ours, and
//! `docs/models/link.md` has them.

pub mod arq;
mod challenge;
mod check;
pub mod harq;
mod number;
pub mod plain;
pub mod slacp;

pub use challenge::Challenge;
pub use check::{FrameReject, LinkKind, open, seal};
pub use number::FrameNumber;
