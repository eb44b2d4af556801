//! LL-HARQ: parity sized by the estimated loss of this hop, and exactly one more round.
//!
//! | part | what it does |
//! |---|---|
//! | `sender` | cuts a packet into a block, sends its units and parity, answers one feedback |
//! | `credibility` | which units the receiver believes: damage that a check overlooked, former lives |
//! | `receiver` | rebuilds blocks, estimates the loss, says what is needed, releases in order |
//! | `machine` | routes frames between them; the [`super::LinkMachine`] |
//!
//! # Promises
//! - No parity while the estimate is at its floor: a clean hop carries the packet's own units alone.
//! - One answer to a block's feedback, never a second; then what is decodable is released, in
//!   order, and the rest passed over.
//! - A window of blocks at most, at either end, and a bounded number of units that are not believed yet.
//! - A restarted peer is followed as soon as it has answered a challenge; its first units wait for that.
//!
//! # Sources
//! LT-TCP + LL-HARQ slides; spec/protocols.md 2.4 and B3 for what they leave unsaid;
//! `docs/models/link.md` has our choices.

mod config;
mod credibility;
mod machine;
mod receiver;
mod sender;
#[cfg(test)]
mod tests;

/// The numbers of a life begin at a multiple of this, drawn at its birth: twice a window, so that who
/// hears one of the first blocks knows which are before it.
const FIRST_BLOCKS_APART: u16 = 2 * HarqConfig::WINDOW_MAX;

pub use config::HarqConfig;
pub use machine::LlHarq;
