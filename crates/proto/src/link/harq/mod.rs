//! LL-HARQ: parity sized by the estimated loss of this hop, and exactly one more round.
//!
//! | part | what it does |
//! |---|---|
//! | `sender` | cuts a packet into a block, sends its units and parity, answers one feedback |
//! | `receiver` | rebuilds blocks, estimates the loss, says what is needed, releases in order |
//! | `machine` | routes frames between them; the [`super::LinkMachine`] |
//!
//! # Promises
//! - No parity while the estimate is at its floor: a clean hop carries the packet's own units alone.
//! - One answer to a block's feedback, never a second; then what is decodable is released, in
//!   order, and the rest passed over.
//! - A window of blocks at most, at either end.
//!
//! # Sources
//! LT-TCP + LL-HARQ slides; spec/protocols.md 2.4 and B3 for what they leave unsaid;
//! `docs/models/link.md` has our choices.

mod config;
mod machine;
mod receiver;
mod sender;
#[cfg(test)]
mod tests;

pub use config::HarqConfig;
pub use machine::LlHarq;
