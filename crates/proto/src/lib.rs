//! Fulmar's protocols as sans-IO state machines.
//!
//! The modules follow a packet's way, from application bytes down to a [`machine::Transmit`]:
//! `bytes` holds the application's octets, [`wire`] turns typed packets into octets and back,
//! [`transport`] decides who sends what and when, [`fec`] computes parity, and a driver (the
//! simulator, the emulator or a socket) carries the result. Receiving walks the same way upwards.
//!
//! Nothing here reads a clock, opens a socket, starts a thread, touches a file or asks the system
//! for entropy: `now` is always an argument and randomness is handed over at birth. So the same
//! compiled code runs in virtual and in real time. The contract between a machine and its driver is
//! in [`machine`].

pub mod bytes;
pub mod fec;
pub mod machine;
pub mod rng;
pub mod shares;
pub mod splice;
pub mod timer;
pub mod trace;
pub mod transport;
pub mod units;
pub mod wire;
