//! The numbers of peers.

use crate::session::PeerIndex;

/// The number by which the session knows the peer in this place of the configuration.
pub(in crate::gateway) fn index_of(peer: usize) -> PeerIndex {
    PeerIndex(u32::try_from(peer).unwrap_or(u32::MAX))
}
