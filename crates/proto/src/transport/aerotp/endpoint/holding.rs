//! Paths that the layer below has found to be down.

use super::Endpoint;
use crate::machine::PathId;
use crate::transport::aerotp::ConnectionId;
use crate::units::Instant;

impl Endpoint {
    /// The layer below says whether `path` is down. While it is, nothing is made for it: its
    /// connections wait with what they have to send, and their patience goes on. One that is
    /// aborted is forgotten at once; the peer hears of it when it asks after the outage. When the
    /// path is back, every connection takes up its work at once: it repeats the oldest of what is
    /// out, and tells what it has received if it was in use when the path went down. Kept for every
    /// path that is down.
    pub fn hold(&mut self, now: Instant, path: PathId, held: bool) {
        self.now = now;
        if held == self.is_held(path) {
            return;
        }
        let ids: Vec<ConnectionId> = self.connections_on(path).collect();
        if held {
            self.held.insert(path, now);
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
        } else if let Some(since) = self.held.remove(&path) {
            for id in ids {
                self.with(now, id, |c| c.on_path_back(now, since));
            }
        }
    }

    /// Whether nothing is sent to `path`, see [`Endpoint::hold`].
    pub fn is_held(&self, path: PathId) -> bool {
        self.held.contains_key(&path)
    }
}
