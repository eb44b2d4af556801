//! A flow as its driver keeps it, so that it survives the gateway's restart.

use super::address::{Destination, FlowId};
use super::class::FlowClass;
use crate::machine::PathId;
use core::net::SocketAddr;

/// Which side of a flow a gateway is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Its client asked for the flow.
    Opener,
    /// It connects to the destination.
    Acceptor,
}

/// A flow as its driver kept it across a restart. Offsets count octets since the flow's start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    /// Its name.
    pub flow: FlowId,
    /// The peer.
    pub peer: PathId,
    /// Which side this gateway is on.
    pub role: Role,
    /// Where the acceptor connects to.
    pub destination: Destination,
    /// Its class, with `resume` set.
    pub class: FlowClass,
    /// Acceptor: the address that was reported with `connected`, if it was.
    pub bound: Option<SocketAddr>,
    /// Octets from the far side that reached the local socket.
    pub received: u64,
    /// The first octet towards the far side that the driver still has: everything before was
    /// reported as delivered.
    pub kept_from: u64,
    /// One past the last octet that the driver had given to `accept`, and still has.
    pub accepted: u64,
}
