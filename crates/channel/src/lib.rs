//! A model of a medium: what happens to each packet, for the simulator and the real-time emulator
//! alike.
//!
//! One direction of one hop is one [`Channel`]. The driver tells it when a packet is handed to the
//! link and how many octets it has. The channel answers when the packet arrives and which of its
//! bits are inverted, or why it does not arrive. It never sees the packet: damage is a list of
//! positions that the driver inverts in the real octets, so that the header check, the payload
//! check and the decoder have to notice.
//!
//! The packet's way through a channel:
//!
//! ```text
//! admit(now, len) -> queue -> transmission (rate) -> outage? loss? bit errors? -> delay, jitter,
//!                      |                                |                        hold-back, copy
//!                 Drop(Queue)                 Drop(Outage), Drop(Loss)             -> Deliver
//! ```
//!
//! Where a terminal has to ask for capacity ([`Dama`]), a packet's departure depends on packets that
//! are still to come: `admit` answers [`ChannelVerdict::Waits`], and the driver polls for departures.
//!
//! # Promises
//! - No clock and no entropy: `now` is an argument, and randomness comes from the generator given
//!   at birth.
//! - Every model draws from a named random stream of its own, once per transmitted packet or per
//!   run of packets. Switching one model on changes no draw of another, and equal seeds and equal
//!   input give equal verdicts.
//! - Work per packet is constant on average, plus the number of inverted bits; memory is bounded
//!   by the queue limit.
//!
//! A law of one's own stands beside the models as a [`ChannelLaw`].
//!
//! # Does not
//! - Look inside a packet, or know whether it is ECN-capable: `marked` is an offer to the driver.
//!
//! # Example
//! ```
//! use fulmar_channel::{Channel, ChannelVerdict, apply_flips, preset::ChannelPreset};
//! use fulmar_proto::rng::Rng;
//! use fulmar_proto::units::{ByteCount, Instant};
//!
//! let mut config = ChannelPreset::AirborneFar.config();
//! config.loss = "2% burst 4".parse()?;
//! config.bits = "1e-4".parse()?;
//! let mut channel = Channel::new(config, &Rng::from_seed(1).child("hop-0/forward"))?;
//!
//! // 20 octets of a lower header that nobody keeps, and 1480 octets that we hold.
//! let (lower, mut packet) = (ByteCount(20), vec![0; 1480]);
//! match channel.admit(Instant::START, lower + ByteCount::of(&packet)) {
//!     ChannelVerdict::Deliver(delivery) => {
//!         let damage = apply_flips(&mut packet, &delivery.flips, lower);
//!         if damage.lower_header_hit() {
//!             // The layer below has a check of its own and drops it.
//!         }
//!     }
//!     ChannelVerdict::Drop(reason) => println!("dropped: {}", reason.name()),
//!     // Only where capacity is assigned on demand: `poll_departure` tells later.
//!     ChannelVerdict::Waits => {}
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! `docs/models/channel.md` has the models with their formulas, limits and validation.

mod aqm;
mod bits;
mod channel;
mod codel;
mod config;
mod config_error;
mod counters;
mod dama;
pub mod fading;
mod fates;
mod flips;
mod geometric;
mod gilbert;
mod loss;
mod outage;
mod own;
mod packet_queue;
mod path;
mod policer;
pub mod preset;
mod rate;
mod red;
mod replay;
mod series;
mod tdma;
mod text;
mod transmitter;
mod two_state;
mod verdict;

pub use aqm::Aqm;
pub use bits::BitErrors;
pub use channel::{Channel, QueueState};
pub use codel::CoDel;
pub use config::ChannelConfig;
pub use config_error::{ChannelConfigError, Field, Setting};
pub use counters::ChannelCounters;
pub use dama::{Assignment, Dama};
pub use fates::Fates;
pub use flips::{Damage, Flips, apply_flips};
pub use gilbert::{GilbertElliott, PacketState, PacketStates};
pub use loss::LossModel;
pub use outage::{Outage, OutageCycle, OutagePlan};
pub use own::{ChannelLaw, FlightFate, OwnChannel, PacketFlight};
pub use packet_queue::{PacketQueue, Queued};
pub use path::{Jitter, PacketOrder, Reorder};
pub use policer::{Policer, TokenBucket};
pub use red::RedConfig;
pub use replay::{AtEnd, LossTrace, PacketTrace, Replay, TimeTrace, TraceFull, UsedUp};
pub use series::{Lengths, Series};
pub use tdma::Tdma;
pub use text::TextError;
pub use transmitter::QueueLimit;
pub use two_state::{LossState, OnOff, Sojourn, TwoState};
pub use verdict::{ChannelDropReason, ChannelVerdict, Delivery};
