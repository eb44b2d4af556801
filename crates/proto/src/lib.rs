//! Fulmar's protocols as sans-IO state machines.
//!
//! The modules follow a packet's way, from application bytes down to a [`machine::Transmit`]:
//! `bytes` holds the application's octets, [`wire`] turns typed packets into octets and back,
//! [`transport`] decides who sends what and when, [`rate`] finds how fast a path may be used, [`fec`]
//! computes parity, and a driver (the simulator, the emulator or a socket) carries the result.
//! Receiving walks the same way upwards.
//!
//! Nothing here reads a clock, opens a socket, starts a thread, touches a file or asks the system
//! for entropy: `now` is always an argument and randomness is handed over at birth. So the same
//! compiled code runs in virtual and in real time. The contract between a machine and its driver is
//! in [`machine`].
//!
//! ```
//! use fulmar_proto::{ConnectionConfig, AerotpEndpoint, EndpointConfig, Instant, Machine, PathId, Port, Rng};
//! let mut end = AerotpEndpoint::new(EndpointConfig::default(), Rng::from_seed(1));
//! let now = Instant::START;
//! let id = end.connect(now, PathId(0), Port(7), ConnectionConfig::default()).unwrap();
//! end.write(now, id, b"hello").unwrap();
//! let mut datagram = Vec::new();
//! assert!(end.poll_transmit(now, &mut datagram).is_some());
//! assert!(end.next_deadline().is_some(), "the same again if no answer comes");
//! ```
//!
//! `examples/smallest_driver.rs` is a whole driver.

pub mod bytes;
pub mod damage;
pub mod dlep;
pub mod fec;
pub mod liveness;
pub mod machine;
pub mod rate;
pub mod repair;
pub mod rng;
pub mod shares;
pub mod splice;
pub mod timer;
pub mod told;
pub mod trace;
pub mod transport;
pub mod tunnel;
pub mod units;
pub mod wire;

pub use machine::{
    Datagram, Deadline, Ecn, Machine, MachineDriver, PathId, Priority, Transmit, drain,
};
pub use rng::Rng;
pub use transport::aerotp::{
    AerotpEndpoint, ConnectionConfig, ConnectionId, EndpointConfig, Event,
};
pub use units::{Bitrate, ByteCount, Duration, Instant};
pub use wire::{Mode, Port};
