//! The connections that a peer's new start ends.
//!
//! Early data of a peer that has started anew comes before the handshake that shows the restart. What it opened must
//! outlive the end of what was there before.

use fulmar_proto::machine::PathId;
use fulmar_proto::transport::aerotp::ConnectionId;
use std::collections::{BTreeMap, BTreeSet};

/// The connections with each peer when the first epoch began of which it is not known yet whether it is a new start's.
#[derive(Debug, Default)]
pub(crate) struct Epochs(BTreeMap<PathId, BTreeSet<ConnectionId>>);

impl Epochs {
    pub(crate) const fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// The peer at `path` began an epoch, in which it has opened none of `connections`. A handshake that it begins
    /// anew has an epoch of its own: the first one counts, until it turns out what it was.
    pub(crate) fn note(&mut self, path: PathId, connections: BTreeSet<ConnectionId>) {
        self.0.entry(path).or_insert(connections);
    }

    /// The connections that end, as the epoch that the peer at `path` began is over, or was a new start's; `None` if
    /// it began none, and all end.
    pub(crate) fn take(&mut self, path: PathId) -> Option<BTreeSet<ConnectionId>> {
        self.0.remove(&path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_there_before_a_new_start_is_told_by_its_first_epoch_alone() {
        let mut epochs = Epochs::new();
        let (path, old, early) = (PathId(3), ConnectionId(1), ConnectionId(2));
        // The handshake is begun anew, with an epoch of its own, when there is early data already.
        epochs.note(path, BTreeSet::from([old]));
        epochs.note(path, BTreeSet::from([old, early]));
        assert_eq!(epochs.take(path), Some(BTreeSet::from([old])));
        // It was no new start: the next one is told by itself.
        assert_eq!(epochs.take(path), None);
    }
}
