//! A flow as its driver keeps it, so that it survives the gateway's restart.

use super::address::{Destination, FlowId};
use super::class::FlowClass;
use crate::machine::PathId;
use core::net::SocketAddr;

/// The side of a flow on which a gateway is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The gateway whose client asked for the flow.
    Opener,
    /// The gateway that connects to the destination.
    Acceptor,
}

/// A flow as its driver kept it across a restart. Offsets count octets since the flow's start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    /// The flow's name.
    pub flow: FlowId,
    /// The peer.
    pub peer: PathId,
    /// The side on which this gateway is.
    pub role: Role,
    /// The place that the acceptor connects to.
    pub destination: Destination,
    /// The flow's class, with `resume` set.
    pub class: FlowClass,
    /// Acceptor: the address that was reported with `connected`, if it was.
    pub bound: Option<SocketAddr>,
    /// Octets from the far side that reached the local socket.
    pub received: u64,
    /// The first octet towards the far side that the driver still has: all octets before it were
    /// reported as delivered.
    pub kept_from: u64,
    /// One past the last octet that the driver had given to `accept`, and still has.
    pub accepted: u64,
}
