//! A lossy link between UDP sockets, for anyone: no root, no kernel module, no network namespace.
//!
//! ```text
//!  client A ─┐            ┌─ up:   Channel ─▶ held until due ─▶ socket A' ─┐
//!            ├─ listen ◀──┤                                                ├──▶ target
//!  client B ─┘            └─ down: Channel ◀─ ... ◀──────────── socket B' ─┘
//! ```
//!
//! Every client gets a socket of its own towards the target, so the target tells them apart; all of
//! them share one link, which is one [`fulmar_channel::Channel`] for each direction: the same code as
//! in the simulator. Bits are inverted in the payload's real octets.
//!
//! # Promises
//! - The order of verdicts depends on the seed and the arrivals alone.
//! - Memory is bounded: flows, and octets in flight.
//! - What it did to each packet, and how late it was in doing so, is in [`Report`].
//!
//! # Does not
//! - See the packets' real lower headers. [`EmulatorConfig::overhead`] octets stand for them: they
//!   take time on the link, and a bit error among them costs the packet.
//!
//! `docs/models/emulator.md` has scope, limits and validation.

mod config;
mod direction;
mod flows;
mod relay;
mod report;

pub use config::{DamagePolicy, EmulatorConfig};
pub use direction::{Arrival, Arrivals, Direction};
pub use relay::{Emulator, EmulatorError, Watch};
pub use report::{DirectionReport, DropReport, FlowReport, Report};
