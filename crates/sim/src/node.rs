//! A node: its addresses, the ways that lead on from it, and the machines behind its addresses.

use fulmar_proto::wire::network::NodeAddress;

/// A node's place in the order of creation. It has no meaning beyond identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NodeId(pub(crate) usize);

/// One direction of one hop, by order of creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
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

/// The place of an alias's number in an address.
const ALIAS_SHIFT: u32 = 16;
const ALIAS_BITS: u32 = 0xFF << ALIAS_SHIFT;

/// The address with this alias of the node that has this first address.
pub(crate) fn with_alias(address: NodeAddress, alias: u8) -> NodeAddress {
    NodeAddress(address.0 | u32::from(alias) << ALIAS_SHIFT)
}

/// The address of the same node with the alias of another address.
pub(crate) const fn with_alias_of(address: NodeAddress, other: NodeAddress) -> NodeAddress {
    NodeAddress(address.0 & !ALIAS_BITS | other.0 & ALIAS_BITS)
}

/// The ways by which a node forwards.
#[derive(Clone, Debug)]
pub(crate) enum Routes {
    /// Addresses grow along a chain.
    Chain {
        /// The way to larger addresses.
        onward: Option<WayId>,
        /// The way to smaller addresses.
        back: Option<WayId>,
    },
    /// The way to each address.
    Table(Vec<(NodeAddress, WayId)>),
}

/// The machines behind an address.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Listeners {
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

/// A node. It forwards packets for others and hands the rest to the protocol that their header names.
#[derive(Clone, Debug)]
pub(crate) struct NetworkNode {
    /// Its first address.
    pub(crate) address: NodeAddress,
    pub(crate) routes: Routes,
    listeners: Vec<(NodeAddress, Listeners)>,
}

impl NetworkNode {
    pub(crate) const fn new(address: NodeAddress, routes: Routes) -> Self {
        Self {
            address,
            routes,
            listeners: Vec::new(),
        }
    }

    /// Whether a packet for `address` ends here.
    pub(crate) fn owns(&self, address: NodeAddress) -> bool {
        match self.routes {
            Routes::Chain { .. } => address == self.address,
            Routes::Table(_) => with_alias_of(self.address, address) == address,
        }
    }

    /// The machines behind one of its addresses.
    pub(crate) fn listeners(&self, address: NodeAddress) -> Listeners {
        let found = self.listeners.iter().find(|(known, _)| *known == address);
        found.map(|(_, listeners)| *listeners).unwrap_or_default()
    }

    /// The machines behind one of its addresses, to add to them.
    pub(crate) fn listeners_mut(&mut self, address: NodeAddress) -> &mut Listeners {
        let found = self.listeners.iter();
        let place = { found }.position(|(known, _)| *known == address);
        let place = place.unwrap_or_else(|| {
            self.listeners.push((address, Listeners::default()));
            self.listeners.len() - 1
        });
        &mut self.listeners[place].1
    }

    /// The way towards an address.
    pub(crate) fn way_towards(&self, to: NodeAddress) -> Option<WayId> {
        match &self.routes {
            Routes::Chain { onward, back } => {
                if to > self.address {
                    *onward
                } else {
                    *back
                }
            }
            Routes::Table(ways) => {
                let found = ways.iter().find(|(known, _)| *known == to);
                found.map(|(_, way)| *way)
            }
        }
    }
}
