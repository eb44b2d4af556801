//! SLACP: a link layer for satellite links that hides from TCP the losses it would misread.
//!
//! ```text
//! packets     lane by flow and urgency          in order within each lane, none twice
//!               | data, bare                      ^
//!             [`sender`]                        [`receiver`] --- acknowledgements, timer
//!               | asked for again                 ^
//!             [`retransmissions`]               [`collector`]
//!               | blocks: packets, then parity    |
//!             frames ---------------------------------
//! ```
//!
//! A packet is sent once without parity. The receiver asks at once when a number is skipped, and its
//! timer repeats the last acknowledgement; the sender has no timer. Packets that are asked for are
//! retransmitted before new ones, as a block with parity over it, at most
//! [`LaneSettings::persistence`] times. Then both ends continue without them.
//!
//! # Promises
//! - Each lane hands up its packets in order and none twice; a hole in one lane holds up no other.
//! - A packet waits at most for `persistence` + 1 repairs; memory is bounded by a window and a few blocks.
//! - Frames of restarted ends, and repeated, late and alien frames, are told apart by the
//!   incarnation in the check.
//!
//! # Sources
//! SLACP slides (Kojo et al., FDPW 2005); `docs/models/slacp.md` has what the slides leave open and
//! how it is decided here.

mod collector;
mod config;
mod machine;
mod receiver;
mod retransmissions;
mod sender;

pub use config::{LaneClass, LaneSettings, SlacpConfig, SlacpConfigError};
pub use machine::Slacp;

/// The furthest that a lane's numbers reach beyond the oldest packet awaited. It is larger than the
/// number of packets that any link here has on the way (10 Mbit/s times 2 s are 1,667 full
/// packets), and far below half the numbers.
const WINDOW: u16 = 4_096;

#[cfg(test)]
mod tests;
