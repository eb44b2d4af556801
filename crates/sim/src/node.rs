//! A node of the chain: its address, and the ways that lead on from it.

use fulmar_proto::wire::network::NodeAddress;

/// A node's place in the order of creation. It has no meaning beyond identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NodeId(pub(crate) usize);

/// One direction of one hop, by order of creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WayId(pub(crate) usize);

impl WayId {
    /// The other direction of the same hop: directions are created in pairs.
    pub(crate) const fn opposite(self) -> Self {
        Self(self.0 ^ 1)
    }
}

/// A protocol machine of some node, by order of creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StackId(pub(crate) usize);

/// A node. It forwards packets for others and hands the rest to the protocol that their header names.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ChainNode {
    /// Its address; addresses grow along the chain.
    pub(crate) address: NodeAddress,
    /// The way to larger addresses.
    pub(crate) onward: Option<WayId>,
    /// The way to smaller addresses.
    pub(crate) back: Option<WayId>,
    /// UDP, if a flow uses it here.
    pub(crate) datagram: Option<StackId>,
    /// AeroTP, if a flow uses it here.
    pub(crate) aerotp: Option<StackId>,
    /// TCP, if a flow uses it here.
    pub(crate) tcp: Option<StackId>,
    /// LT-TCP, if a flow uses it here.
    pub(crate) lt_tcp: Option<StackId>,
    /// Transports of one's own, if a flow has one here.
    pub(crate) own: Option<StackId>,
}
