//! The short form of TPDUs, inside the sealed content of a session of version 2.
//!
//! ```text
//!  type | fields                                      frames: all but the last have bit 7 of the type set (MORE), and
//!                                                     then a length before their fields
//!  0x00       a TPDU in the long form                 0x30, 0x31   repair symbol of a block; 0x32, 0x33 over a window
//!  0x01-0x06, 0x10, 0x14, 0x16  the session's own     0x40-0x5E    data under a name (even types)
//!  0x07       padding                                 0x60-0x7F    data with the ports in full
//!  0x20       cumulative MACK                         others       unknown: skipped and counted
//!  0x21       NACK
//!  0x22       no connection of this name
//! ```
//!
//! Writing: [`write_named`], [`write_full`] and [`write_repair`] append all but the payload; [`ShortFeedback`] appends MACKs and
//! NACKs; [`begin_long`] comes before a TPDU in the long form; [`write_followed`] lets another frame follow. Reading: [`Content`] gives the frames, and [`read()`] makes of
//! one the [`Tpdu`](super::Tpdu) that the long form would have given, with what the receiver knows ([`Known`]).
//!
//! The seal around it vouches for every octet, so there are no checks, and what is known at both ends is left out: ports
//! by a [`Name`], the upper bits of numbers and times ([`cut`](crate::wire::cut)), the mode.
//!
//! # Sources
//! `docs/protocol/aerotp.md`, section 11; ADR 0029 says why.

mod content;
mod data;
mod feedback;
mod known;
mod name;
mod octets;
mod ranges;
mod read;
mod repair;
mod window;

#[cfg(test)]
mod golden;
#[cfg(test)]
mod tests;

pub use content::{
    Content, FRAMES_MAX, Frame, FrameError, FrameKind, LONG_TYPE_BYTES, begin_long, write_followed,
};
pub use data::{FULL_BYTES, NAMED_BYTES, has_full_form, has_named_form, write_full, write_named};
pub use feedback::{MACK_BYTES, NACK_BYTES, ShortFeedback};
pub use known::{Ends, Known};
pub use name::{Name, Named};
pub use ranges::RANGE_NUMBERS_MAX;
pub(super) use ranges::{Order, Ranges};
pub use read::{read, write_unknown_name};
pub use repair::{REPAIR_BYTES, has_repair_form, write_repair};
pub use window::{WINDOW_BYTES, write_window};
