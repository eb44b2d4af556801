//! ARQ on one hop: stop-and-wait, go-back-N, selective repeat and NAK-only, with a limit to retransmissions.
//!
//! | part | work |
//! |---|---|
//! | `sender` | picks the frame to send, retransmits and gives up; one timer for each frame, from
//! its start |
//! | `receiver` | releases packets, and acknowledges |
//! | `requests` | the receiver's requests, with a timer each, where the sender has none |
//! | `machine` | routes frames between them; the [`super::LinkMachine`] |
//!
//! A loss is noticed by its timer alone: the frame's own time, the way there and back, and room for
//! an acknowledgement that had to wait for a frame. Each acknowledgement tells everything the
//! receiver knows, so the next one makes up for a lost one. In NAK-only the receiver notices the gap and asks; nothing is
//! acknowledged, so a loss that no later frame shows stays unnoticed until one comes.
//!
//! # Promises
//! - Each packet is released once, or never: after `retries` retransmissions it is given up, and
//!   the receiver is told. Packets are released in order, if asked for.
//! - A packet that arrived is released within the hold time, whatever happened to the sender.
//! - Memory is bounded: a window of packets to send, one to release, and one of a peer that is not
//!   trusted yet.
//! - A restarted peer is followed as soon as it has answered a challenge; its first packets wait for
//!   that. Packets that had arrived without an acknowledgement when a *receiver* loses its memory are
//!   released again.
//!
//! # Sources
//! LT-TCP + LL-HARQ slides (LL-ARQ is the baseline), with parameters found from their tables
//! (`docs/models/link.md`); the three schemes are the textbooks'.

mod config;
mod machine;
mod receiver;
mod requests;
mod sender;
#[cfg(test)]
mod tests;

pub use config::{ArqConfig, ArqScheme};
pub use machine::Arq;
