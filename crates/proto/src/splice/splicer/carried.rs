//! The news of a session about a path, as flows see it.

use super::Splicer;
use crate::machine::{Carried, PathId, PathSizes};
use crate::units::{ByteCount, Instant};

impl Carried for Splicer {
    fn hold(&mut self, now: Instant, peer: PathId, held: bool) {
        Self::hold(self, now, peer, held);
    }

    fn set_path_sizes(
        &mut self,
        now: Instant,
        peer: PathId,
        sizes: PathSizes,
    ) -> Result<(), String> {
        let set = self.endpoint_mut().set_path_sizes(now, peer, sizes);
        set.map_err(|error| error.to_string())
    }

    fn on_sent_below(&mut self, now: Instant, peer: PathId, wire: ByteCount) {
        self.endpoint_mut().on_sent_below(now, peer, wire);
    }

    fn peer_restarted(&mut self, now: Instant, peer: PathId) {
        Self::peer_restarted(self, now, peer);
    }
}
