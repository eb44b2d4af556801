//! LL-HARQ: parity sized by the estimated loss of this hop, and exactly one more round.
//!
//! | part | what it does |
//! |---|---|
//! | `sender` | cuts packets into blocks, answers one feedback |
//! | `filling` | the first round of the newest block: which unit is next |
//! | `margin` | how many units a round has |
//! | `credibility` | which units the receiver believes: damage that a check overlooked, former lives |
//! | `receiver` | when rounds are over, the loss estimate; `feedback`: what is said of it |
//! | `blocks` | rebuilds blocks, releases packets in order |
//! | `machine` | routes frames between them; the [`super::LinkMachine`] |
//!
//! A block is as many packets as come one after the other, up to a bound: the more units are
//! protected together, the less parity a failure rate takes. Its parity spans the packets so far and
//! goes between them, so that what was lost comes back while the block is still being filled.
//!
//! # Promises
//! - No parity while the estimate is at its floor: a clean hop carries the packets' own units alone.
//! - A packet's own parts leave as soon as the medium takes them; nothing waits for a block to fill.
//! - One answer to a block's feedback, never a second; then what is decodable is released, in
//!   order, and the rest passed over.
//! - A window of blocks at most, at either end, and a bounded number of units that are not believed yet.
//! - A restarted peer is followed as soon as it has answered a challenge; its first units wait for that.
//!
//! # Sources
//! LT-TCP + LL-HARQ slides; spec/protocols.md 2.4 and B3 for what they leave unsaid;
//! `docs/models/link.md` has our choices.

mod blocks;
mod config;
mod credibility;
mod filling;
mod machine;
mod margin;
mod receiver;
mod sender;
#[cfg(test)]
mod tests;

/// The numbers of a life begin at a multiple of this, drawn at its birth: twice a window, so that who
/// hears one of the first blocks knows which are before it.
const FIRST_BLOCKS_APART: u16 = 2 * HarqConfig::WINDOW_MAX;

pub use config::HarqConfig;
pub use machine::LlHarq;
