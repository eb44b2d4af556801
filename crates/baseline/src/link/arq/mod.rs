//! ARQ on one hop: stop-and-wait, go-back-N and selective repeat, with a limit to retransmissions.
//!
//! | part | what it does |
//! |---|---|
//! | `sender` | which frame is sent, again, or given up; one timer for each frame, from its start |
//! | `receiver` | what is released, and what is acknowledged |
//! | `machine` | routes frames between them; the [`super::LinkMachine`] |
//!
//! A loss is noticed by its timer alone: the frame's own time, the way there and back, and room for
//! an acknowledgement that had to wait for a frame. Each acknowledgement says everything the
//! receiver knows, so a lost one is made good by the next.
//!
//! # Promises
//! - Each packet comes out once, or never: after `retries` retransmissions it is given up, and the
//!   receiver is told. In order, if asked for.
//! - A packet that arrived is released within the hold time, whatever became of the sender.
//! - At most a window of packets to send, one to release, and one of a peer that is not believed yet.
//! - A restarted peer is followed as soon as it has answered a challenge; its first packets wait for
//!   that. What had arrived and was not acknowledged when a *receiver* loses its memory comes out again.
//!
//! # Sources
//! LT-TCP + LL-HARQ slides (LL-ARQ is the baseline), parameters decoded in spec/protocols.md 2.2;
//! the three schemes are the textbooks'.

mod config;
mod machine;
mod receiver;
mod sender;
#[cfg(test)]
mod tests;

pub use config::{ArqConfig, ArqScheme};
pub use machine::Arq;
