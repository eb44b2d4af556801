//! Tunnels: a device whose IP packets come out of the peer's tunnel of the same name, whatever protocol they carry.
//!
//! Packets of one [bucket](fulmar_proto::tunnel::FlowBucket) and class share a datagram flow of the splice, which keeps
//! them in order and repairs them. Whichever side has a packet first opens the flow, and the other answers on it.

mod crossing;
mod device;
mod diversion;
mod far_end;
mod greeting;
mod refusals;
mod route_loops;
mod upkeep;

pub(super) use crossing::{PacketFlow, Tunnels};
pub use device::TunnelReport;
pub(super) use far_end::TunnelChange;
pub(super) use route_loops::leads_back;
