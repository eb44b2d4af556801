//! What a medium does to a packet, for the simulator and the real-time emulator alike.
//!
//! One direction of one hop is one [`Channel`]. It is told when a packet of how many octets is
//! handed to the link, and answers when it arrives and which of its bits are inverted, or why it
//! does not arrive. It never sees the packet: damage is a list of positions that the driver
//! inverts in the real octets, so that the header check, the payload check and the decoder have
//! to notice.
//!
//! The packet's way through a channel:
//!
//! ```text
//! admit(now, len) -> queue -> transmission (rate) -> outage? loss? bit errors? -> delay, jitter,
//!                      |                                |                        hold-back, copy
//!                 Drop(Queue)                 Drop(Outage), Drop(Loss)             -> Deliver
//! ```
//!
//! # Promises
//! - No clock and no entropy: `now` is an argument, randomness the generator given at birth.
//! - Every model draws from a named stream of its own, once per transmitted packet or per run of
//!   packets: switching one model on moves no draw of another, and equal seeds and equal input
//!   give equal verdicts.
//! - Work per packet is constant on average, plus the number of inverted bits; memory is bounded
//!   by the queue limit.
//!
//! # Does not
//! - Look inside a packet, or know whether it is ECN-capable: `marked` is an offer to the driver.
//!
//! `docs/models/channel.md` has the models with their formulas, limits and validation.

mod bits;
mod channel;
mod config;
mod counters;
mod flips;
mod geometric;
mod gilbert;
mod loss;
mod outage;
mod path;
pub mod preset;
mod text;
mod transmitter;
mod two_state;
mod verdict;

pub use bits::BitErrors;
pub use channel::{Channel, QueueState};
pub use config::{Config, ConfigError};
pub use counters::Counters;
pub use flips::{Damage, Flips, apply_flips};
pub use gilbert::GilbertElliott;
pub use loss::LossModel;
pub use outage::{Outage, OutageCycle, OutagePlan};
pub use path::{Jitter, Order, Reorder};
pub use text::TextError;
pub use transmitter::QueueLimit;
pub use two_state::{OnOff, Sojourn, State, TwoState};
pub use verdict::{Delivery, DropReason, Verdict};
