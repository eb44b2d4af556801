//! Paths on which a session numbers the datagrams, and the remote tells what arrives of them.

use super::AerotpEndpoint;
use crate::machine::{PathAck, PathId, Sealed};
use crate::units::{Bitrate, ByteCount, Instant};

impl AerotpEndpoint {
    /// Whether the remote at the end of `path` tells what arrives of numbered datagrams. A rate that is found is found by
    /// that then, and no more by the reports in acknowledgements. The state is kept for every path that is numbered.
    pub fn number_path(&mut self, now: Instant, path: PathId, is_numbered: bool) {
        self.now = now;
        if is_numbered {
            self.numbered_paths.insert(path);
        } else {
            self.numbered_paths.remove(&path);
        }
        if let Some(schedule) = self.paths.get_mut(&path) {
            schedule.set_numbered(is_numbered);
        }
    }

    /// Counts a datagram of `wire` octets, headers included, that leaves on a numbered path.
    pub fn on_sealed(&mut self, now: Instant, path: PathId, sealed: Sealed, wire: ByteCount) {
        if let Some(schedule) = self.paths.get_mut(&path) {
            schedule.on_sealed(now, sealed, wire);
        }
    }

    /// Takes what the remote tells of a numbered path.
    pub fn on_path_ack(&mut self, now: Instant, path: PathId, ack: PathAck) {
        self.now = now;
        if let Some(schedule) = self.paths.get_mut(&path) {
            schedule.on_path_ack(now, &ack);
        }
    }

    /// The rate that a path was found to carry, where it is found and something was heard.
    pub fn found_rate(&self, path: PathId) -> Option<Bitrate> {
        self.paths.get(&path)?.found_rate()
    }
}
