//! The protocols that AeroTP is compared with, as sans-IO state machines like those of `fulmar-proto`.
//!
//! | module | content |
//! |---|---|
//! | [`tcp`] | the TCP family: Reno, `NewReno`, SACK, CUBIC |
//! | [`congestion`] | the rules for a TCP's window |
//! | [`lt_tcp`] | loss-tolerant TCP |
//! | [`datagram`] | UDP |
//! | [`link`] | error control on one link: plain, stop-and-wait, go-back-N, selective repeat, NAK-only, LL-ARQ, LL-HARQ, SLACP |
//! | [`wire`] | their packets' octets |
//!
//! The laboratory runs them in its simulated networks. Nothing that is deployed depends on this
//! crate.
//!
//! ```
//! use fulmar_baseline::{StreamEndpoint, TcpEndpoint, TcpEndpointConfig, TcpPreset};
//! use fulmar_proto::machine::{Machine, PathId};
//! use fulmar_proto::wire::{Port, network::NodeAddress};
//! use fulmar_proto::{rng::Rng, units::Instant};
//! let config = TcpEndpointConfig { local: NodeAddress(1), connections_max: 4 };
//! let mut end = TcpEndpoint::new(config, Rng::from_seed(1));
//! let id = end.connect(PathId(2), Port(7), Port(80), TcpPreset::LinuxLike.config())?;
//! end.write(id, b"hello")?;
//! let mut segment = Vec::new();
//! while end.poll_transmit(Instant::START, &mut segment).is_some() {}
//! assert!(!segment.is_empty() && end.next_deadline().is_some(), "a SYN, and when to repeat it");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod congestion;
pub mod datagram;
pub mod link;
pub mod lt_tcp;
mod stream;
pub mod tcp;
pub mod wire;

pub use datagram::{DatagramConfig, DatagramEndpoint, DatagramEvent};
pub use link::{AnyLink, LinkLayer, LinkMachine};
pub use lt_tcp::{LtTcpConfig, LtTcpEndpoint};
pub use stream::StreamEndpoint;
pub use tcp::{TcpConfig, TcpEndpoint, TcpEndpointConfig, TcpEvent, TcpPreset};
