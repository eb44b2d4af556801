//! LL-HARQ: parity sized by the estimated loss of this hop, and at most one more round.
//!
//! | part | work |
//! |---|---|
//! | `sender` | cuts packets into blocks, answers one feedback |
//! | `filling` | the first round of the newest block: picks the next unit |
//! | `margin` | the number of units in a round |
//! | `credibility` | the units that the receiver trusts: damage that a check overlooked, former lives
//! |
//! | `receiver` | ends rounds, estimates the loss; `feedback` reports it |
//! | `blocks` | rebuilds blocks, releases packets in order |
//! | `machine` | routes frames between them; the [`super::LinkMachine`] |
//!
//! A block is a number of packets that come one after the other, up to a bound: the more units are
//! protected together, the less parity a failure rate takes. Its parity spans the packets so far and
//! is sent between them, so that lost packets come back while the block is still being filled.
//!
//! # Promises
//! - No parity while the estimate is at its floor: a hop without losses carries the packets' own
//!   units alone.
//! - A packet's own parts leave as soon as the medium takes them; no packet waits for a block to
//!   fill.
//! - One answer to a block's feedback, never a second. Then the packets that can be decoded are
//!   released, in order, and the rest is passed over.
//! - A window of blocks at most, at either end, and a bounded number of units that are not trusted yet.
//! - A restarted peer is followed as soon as it has answered a challenge; its first units wait for that.
//!
//! # Sources
//! LT-TCP + LL-HARQ slides; `docs/models/link.md` has our choices where they are silent.

mod blocks;
mod config;
mod credibility;
mod filling;
mod machine;
mod margin;
mod receiver;
mod sender;
mod sizing;
#[cfg(test)]
mod tests;

/// The distance of the numbers at which a life can begin; one is drawn at its birth. It is twice a
/// window, so that an end that hears one of the first blocks knows which blocks are before it.
const FIRST_BLOCKS_APART: u16 = 2 * HarqConfig::WINDOW_MAX;

pub use config::HarqConfig;
pub use machine::LlHarq;
