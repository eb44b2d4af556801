//! Paths that the layer below has found to be down.

use super::AerotpEndpoint;
use crate::machine::PathId;
use crate::transport::aerotp::ConnectionId;
use crate::units::Instant;

impl AerotpEndpoint {
    /// Tells whether `path` is down, as the layer below knows. While it is down, nothing is sent to
    /// it: its connections keep their data, and their time limits run on. A connection that is
    /// aborted is forgotten at once; the peer hears of it when it asks after the outage. When the
    /// path is back, every connection continues at once: it retransmits its oldest unconfirmed TPDU
    /// and, if it was in use when the path went down, tells what it has received. The state is kept
    /// for every path that is down.
    pub fn hold(&mut self, now: Instant, path: PathId, held: bool) {
        self.now = now;
        if held == self.held.contains_key(&path) {
            return;
        }
        let home = self.home_of(path);
        let (was_held, place) = (self.is_held(home), self.place_of(home, path));
        let since = if held {
            self.held.insert(path, now)
        } else {
            self.held.remove(&path)
        };
        if let Some(place) = place.filter(|_| held) {
            self.lose_path(now, home, place);
        }
        if was_held != self.is_held(home) {
            self.hold_connections(now, home, since);
        }
    }

    /// Holds the connections on `path`, or lets them go on after an outage that began at `since`.
    pub(super) fn hold_connections(&mut self, now: Instant, path: PathId, since: Option<Instant>) {
        let ids: Vec<ConnectionId> = self.connections_on(path).collect();
        if self.is_held(path) {
            if let Some(schedule) = self.paths.get_mut(&path) {
                schedule.clear();
            }
            for id in ids {
                if let Some(entry) = self.connections.get_mut(&id) {
                    entry.queued_control = false;
                    entry.queued_data = false;
                    entry.queued_spare = false;
                }
                self.settle(now, id);
            }
        } else if let Some(since) = since {
            for id in ids {
                self.with(now, id, |c| c.on_path_back(now, since));
            }
        }
    }

    /// Whether nothing is sent to the peer at `path`, see [`AerotpEndpoint::hold`]: all paths to it are down.
    pub fn is_held(&self, path: PathId) -> bool {
        !self.held.is_empty()
            && self
                .paths_to(path)
                .all(|path| self.held.contains_key(&path))
    }
}
