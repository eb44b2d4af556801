//! The drivers in real time: UDP sockets and an emulated link. This is the only crate with clocks, sockets and files.
//!
//! [`udp`] drives any [`fulmar_proto::machine::Machine`] over a UDP socket, [`emulator`] is a lossy
//! link between UDP sockets or [`tun`] devices, built on `fulmar_channel`. Time enters through
//! [`clock`], entropy through [`entropy`], and a thread sleeps only in [`wait`].
//!
//! ```
//! use fulmar_net::{PortConfig, UdpPort};
//! # fn main() -> std::io::Result<()> {
//! let rate = fulmar_proto::units::Bitrate::from_bits_per_second(10_000_000);
//! let port = UdpPort::bind(([127, 0, 0, 1], 0).into(), PortConfig::for_rate(rate))?;
//! assert_ne!(port.local()?.port(), 0);
//! # Ok(())
//! # }
//! ```
//!
//! Programs that want streams and messages use the crate `fulmar`, which puts this one's parts together.
//! There is no async runtime: one loop, one thread, one `ppoll` (ADR-0006). The only `unsafe` is one
//! ioctl in `keeper/tcp_info.rs`.

pub mod capture;
pub mod clock;
pub mod custody;
mod descriptors;
pub mod doctor;
pub mod emulator;
pub mod entropy;
pub mod ethernet;
pub mod event_trace;
pub mod gateway;
pub mod inquiry;
pub mod keeper;
pub mod one_way;
mod own_address;
mod ownership;
pub mod pairing;
pub mod perf;
mod places;
pub mod priority;
pub mod recording;
pub mod secured;
pub mod session;
pub mod transfer;
pub mod tun;
pub mod udp;
pub mod wait;

pub use clock::Clock;
pub use emulator::{Emulator, EmulatorConfig};
pub use gateway::config::GatewayConfig;
pub use gateway::{Gateway, GatewayError};
pub use secured::{Credentials, SecuredEndpoint};
pub use session::{PeerIndex, PublicKey, SecretKey, Session, SessionConfig, SessionEvent};
pub use transfer::{Receiver, Sender};
pub use udp::{Application, PathTableConfig, PortConfig, Step, UdpDriver, UdpPort};
pub use wait::{WakeUp, Waker, waker};

#[cfg(test)]
#[path = "../../proto/tests/wire_samples/sample.rs"]
mod wire_sample;
