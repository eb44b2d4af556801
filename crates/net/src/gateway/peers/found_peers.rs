//! Peers whose addresses became known, until there is a path to each.
//!
//! # Promises
//! - The address that was found last counts.
//! - While there is no room for a path the peer keeps those that it has, and it is tried again in
//!   [`TRY_AGAIN`].

use crate::session::PeerIndex;
use fulmar_proto::units::{Duration, Instant};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// The pause between two tries to make a path.
pub(in crate::gateway) const TRY_AGAIN: Duration = Duration::from_secs(10);

/// An address that has no path yet.
#[derive(Clone, Copy, Debug)]
struct Found {
    address: SocketAddr,
    not_before: Instant,
}

/// The peers that wait for paths.
#[derive(Debug, Default)]
pub(in crate::gateway) struct FoundPeers(BTreeMap<PeerIndex, Found>);

impl FoundPeers {
    /// Adds a peer that was found.
    pub(in crate::gateway) fn add(&mut self, now: Instant, peer: PeerIndex, address: SocketAddr) {
        let not_before = now;
        let found = Found {
            address,
            not_before,
        };
        self.0.insert(peer, found);
    }

    /// Forgets a peer that nobody looks for any more, or not at that address.
    pub(in crate::gateway) fn forget(&mut self, peer: PeerIndex) {
        self.0.remove(&peer);
    }

    /// The next address to which a path should be made.
    pub(in crate::gateway) fn wanted(&self, now: Instant) -> Option<SocketAddr> {
        let mut all = self.0.values();
        let due = all.find(|found| found.not_before <= now);
        due.map(|found| found.address)
    }

    /// There is a path to `address`: the peers that were found there, which wait no longer.
    pub(in crate::gateway) fn take(&mut self, address: SocketAddr) -> Vec<PeerIndex> {
        let there = self.0.iter().filter(|(_, found)| found.address == address);
        let there: Vec<PeerIndex> = there.map(|(peer, _)| *peer).collect();
        self.0.retain(|_, found| found.address != address);
        there
    }

    /// Notes that there is no path to `address` yet.
    pub(in crate::gateway) fn postpone(&mut self, now: Instant, address: SocketAddr) {
        for found in self.0.values_mut().filter(|found| found.address == address) {
            found.not_before = now + TRY_AGAIN;
        }
    }

    /// The time of the next try to make a path.
    pub(in crate::gateway) fn next_try(&self) -> Option<Instant> {
        self.0.values().map(|found| found.not_before).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AIR: PeerIndex = PeerIndex(0);
    const GROUND: PeerIndex = PeerIndex(1);

    fn at(host: u8) -> SocketAddr {
        ([192, 0, 2, host], 4_914).into()
    }

    #[test]
    fn an_address_without_a_path_is_tried_again_and_the_others_do_not_wait_for_it() {
        let mut found = FoundPeers::default();
        let now = Instant::START;
        found.add(now, AIR, at(1));
        found.add(now, GROUND, at(2));
        assert_eq!(found.wanted(now), Some(at(1)));
        found.postpone(now, at(1));
        assert_eq!(found.wanted(now), Some(at(2)));
        assert_eq!(found.take(at(2)), [GROUND]);
        assert_eq!(found.wanted(now), None);
        let again = now + TRY_AGAIN;
        assert_eq!(found.next_try(), Some(again));
        assert_eq!(found.wanted(again), Some(at(1)));
        assert_eq!(found.take(at(1)), [AIR]);
        assert_eq!(found.next_try(), None);
    }

    #[test]
    fn what_was_found_later_counts_and_what_is_not_looked_for_does_not() {
        let mut found = FoundPeers::default();
        let now = Instant::START;
        found.add(now, AIR, at(1));
        found.postpone(now, at(1));
        found.add(now, AIR, at(2));
        assert_eq!(found.wanted(now), Some(at(2)));
        assert_eq!(found.take(at(1)), []);
        found.forget(AIR);
        assert_eq!(found.wanted(now + TRY_AGAIN), None);
    }
}
