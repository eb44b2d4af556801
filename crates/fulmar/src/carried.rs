//! The machine inside the session: an endpoint that does not take a peer's new start for its old one.
//!
//! Early data of a peer that has started anew comes before the handshake that shows the restart. What it opened must
//! outlive the end of what was there before.

use fulmar_proto::machine::{
    Carried as CarriedMachine, Datagram, Deadline, Machine, PathId, PathSizes, TpduForm, Transmit,
};
use fulmar_proto::transport::aerotp::{ConnectionId, Endpoint, Event};
use fulmar_proto::units::{ByteCount, Instant};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Deref, DerefMut};

#[derive(Debug)]
pub(crate) struct Carried {
    endpoint: Endpoint,
    /// The connections with a peer when the first epoch began of which it is not known yet whether it is a new start's.
    before: BTreeMap<PathId, BTreeSet<ConnectionId>>,
}

impl Carried {
    pub(crate) const fn new(endpoint: Endpoint) -> Self {
        Self {
            endpoint,
            before: BTreeMap::new(),
        }
    }

    /// The peer at `path` began an epoch, in which it has opened none of `connections`. A handshake that it begins
    /// anew has an epoch of its own: the first one counts, until it turns out what it was.
    pub(crate) fn note_epoch(&mut self, path: PathId, connections: BTreeSet<ConnectionId>) {
        self.before.entry(path).or_insert(connections);
    }

    /// The epoch that the peer at `path` began was no new start, or is over.
    pub(crate) fn forget_epoch(&mut self, path: PathId) {
        self.before.remove(&path);
    }

    /// Whether a connection ends when the peer at `path` turns out to have restarted.
    pub(crate) fn is_stale(&self, path: PathId, connection: ConnectionId) -> bool {
        let before = self.before.get(&path);
        before.is_none_or(|before| before.contains(&connection))
    }
}

impl Deref for Carried {
    type Target = Endpoint;

    fn deref(&self) -> &Endpoint {
        &self.endpoint
    }
}

impl DerefMut for Carried {
    fn deref_mut(&mut self) -> &mut Endpoint {
        &mut self.endpoint
    }
}

impl Machine for Carried {
    type Event = Event;

    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        self.endpoint.handle_datagram(now, datagram);
    }

    fn handle_deadline(&mut self, now: Instant) {
        self.endpoint.handle_deadline(now);
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        self.endpoint.poll_transmit(now, out)
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.endpoint.poll_event()
    }

    fn next_deadline(&self) -> Option<Deadline> {
        self.endpoint.next_deadline()
    }
}

impl CarriedMachine for Carried {
    const SHORT: bool = true;

    fn hold(&mut self, now: Instant, path: PathId, held: bool) {
        self.endpoint.hold(now, path, held);
    }

    fn set_path_sizes(
        &mut self,
        now: Instant,
        path: PathId,
        sizes: PathSizes,
    ) -> Result<(), String> {
        CarriedMachine::set_path_sizes(&mut self.endpoint, now, path, sizes)
    }

    fn on_sent_below(&mut self, now: Instant, path: PathId, wire: ByteCount) {
        self.endpoint.on_sent_below(now, path, wire);
    }

    fn speak(&mut self, now: Instant, path: PathId, form: TpduForm) {
        self.endpoint.speak(now, path, form);
    }

    fn handle_frames(&mut self, now: Instant, datagram: Datagram<'_>) {
        self.endpoint.handle_frames(now, datagram);
    }

    fn peer_restarted(&mut self, now: Instant, path: PathId) {
        let before = self.before.remove(&path);
        let is_stale = |id| before.as_ref().is_none_or(|before| before.contains(&id));
        self.endpoint.forget_peer(now, path, is_stale);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fulmar_proto::rng::Rng;
    use fulmar_proto::transport::aerotp::{ConnectionConfig, EndpointConfig};
    use fulmar_proto::wire::Port;

    #[test]
    fn what_was_there_before_a_new_start_is_told_by_its_first_epoch_alone() {
        let mut carried = Carried::new(Endpoint::new(EndpointConfig::default(), Rng::from_seed(1)));
        let path = PathId(3);
        let mut connect = || {
            let config = ConnectionConfig::default();
            let made = carried.connect(Instant::START, path, Port(7), config);
            made.expect("there is room")
        };
        let (old, early) = (connect(), connect());
        // The handshake is begun anew, with an epoch of its own, when there is early data already.
        carried.note_epoch(path, BTreeSet::from([old]));
        carried.note_epoch(path, BTreeSet::from([old, early]));
        assert!(carried.is_stale(path, old));
        assert!(!carried.is_stale(path, early));
        // It was no new start: the next one is told by itself.
        carried.forget_epoch(path);
        assert!(carried.is_stale(path, early));
    }
}
