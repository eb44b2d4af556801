//! A lossy link for anyone's programs: between UDP sockets without privileges, or between TUN or TAP devices.
//!
//! ```text
//!  client A ─┐            ┌─ up:   Channel ─▶ held until due ─▶ socket A' ─┐
//!            ├─ listen ◀──┤                                                ├──▶ target     Emulator
//!  client B ─┘            └─ down: Channel ◀─ ... ◀──────────── socket B' ─┘
//!
//!  namespace a ─ TUN ◀──┬── up:   Channel ─▶ held until due ──┬──▶ TUN ─ namespace b       TunLink
//!                       └── down: Channel ◀─ ... ◀────────────┘
//! ```
//!
//! Each direction is one [`fulmar_channel::Channel`]: the same code as in the simulator, and the same
//! in both kinds of link. Bits are inverted in real octets: of the UDP payload in a relay, where every
//! client gets a socket of its own towards the target; of the whole IP packet or Ethernet frame between devices.
//!
//! # Promises
//! - The order of verdicts depends on the seed and the arrivals alone.
//! - Memory is bounded: flows, and octets in flight.
//! - [`EmulatorReport`] and [`TunReport`] tell the fate of packets and the emulator's lateness.
//!
//! # Does not
//! - Let a relay see the packets' real lower headers. [`EmulatorConfig::overhead`] octets stand for
//!   them: they take time on the link, and a bit error among them costs the packet.
//!
//! `docs/models/emulator.md` has scope, limits and validation.

mod config;
mod direction;
mod error;
mod flows;
mod in_flight;
mod relay;
mod report;
mod tap;
mod tun_link;
mod watch;

pub use config::{DamagePolicy, EmulatorConfig, LargestPacket, LinkChange, TunLinkConfig};
pub use direction::{Arrival, Arrivals, Direction};
pub use error::EmulatorError;
pub use relay::Emulator;
pub use report::{DirectionReport, DropReport, EmulatorReport, FlowReport, Punctuality, TunReport};
pub use tap::EmulatorTap;
pub use tun_link::TunLink;
pub use watch::Watch;
