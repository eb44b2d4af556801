//! Connections and memory, shared among paths. A peer out of reach, whose connections wait and hold memory, keeps no
//! other peer from opening one.

use super::AerotpEndpoint;
use crate::machine::PathId;
use crate::shares::Shares;

impl AerotpEndpoint {
    /// Gives each of these paths, from now on, a reserve of the connections and of the memory; see [`Shares`]. Without
    /// this call, whoever comes first may take everything.
    pub fn share_among(&mut self, paths: impl IntoIterator<Item = PathId>) {
        self.sharing = paths.into_iter().collect();
        self.places.entitle(self.sharing.iter().copied());
    }

    /// Octets that the connections of `path` may still take before no further one is opened.
    pub(super) fn memory_room(&self, path: PathId) -> usize {
        let max = self.config.memory_max.as_usize();
        // While less than half of the memory is held, nobody's reserve is touched.
        if self.sharing.is_empty() || self.memory_bytes < max / 2 {
            return max.saturating_sub(self.memory_bytes);
        }
        let mut memory = Shares::new(max);
        memory.entitle(self.sharing.iter().copied());
        for entry in self.connections.values() {
            memory.take(entry.connection.key().path, entry.memory_bytes);
        }
        memory.room(path)
    }
}
