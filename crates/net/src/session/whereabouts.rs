//! The peers by their paths, looked up rather than searched: strangers' datagrams need the lookup, too.

use super::peer::Peer;
use fulmar_proto::machine::PathId;
use fulmar_proto::units::{Duration, Instant};

/// The time for which a note holds. Nothing but budgets and hints depends on it.
const FRESH: Duration = Duration::from_millis(100);

/// The paths where peers are, and where they may be found.
#[derive(Default)]
pub(super) struct Whereabouts {
    /// The peers in order of paths.
    peers: Vec<(PathId, usize)>,
    noted: Option<Instant>,
}

impl Whereabouts {
    /// The peer that is, or may be found, at `path`.
    pub(super) fn peer_at(&mut self, now: Instant, path: PathId, peers: &[Peer]) -> Option<usize> {
        let is_fresh = |noted| now.saturating_since(noted) < FRESH;
        if !self.noted.is_some_and(is_fresh) {
            self.noted = Some(now);
            self.peers.clear();
            for (index, peer) in peers.iter().enumerate() {
                let home = peer.path.into_iter();
                let home = home.chain(peer.config.endpoints.iter().copied());
                let places = home.chain(peer.further.outer_paths());
                self.peers.extend(places.map(|place| (place, index)));
            }
            self.peers.sort_unstable();
        }
        let found = self.peers.binary_search_by_key(&path, |(place, _)| *place);
        self.peers.get(found.ok()?).map(|(_, peer)| *peer)
    }

    /// Forgets the notes, since peers or paths changed.
    pub(super) const fn forget(&mut self) {
        self.noted = None;
    }
}
