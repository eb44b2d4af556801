//! Which address a path id stands for.
//!
//! # Promises
//! - At most [`PathTableConfig::paths_max`] addresses are remembered.
//! - An address with which we have talked (it came, we answered, it came again) keeps its place until
//!   it has been silent for [`PathTableConfig::stale_after`]. One that we never answered, or that never
//!   came back, gives way at once, so that a flood of forged sources displaces only itself.
//! - Whoever knows which addresses are in use can displace others ([`PathTable::displace`]).
//! - A pinned address keeps its place for ever.
//! - An id is not given to a second address before 2^32 others were.

use fulmar_proto::machine::PathId;
use fulmar_proto::units::{Duration, Instant};
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};

/// Bounds of a [`PathTable`].
#[derive(Clone, Copy, Debug)]
pub struct PathTableConfig {
    /// How many addresses are remembered.
    pub paths_max: usize,
    /// How long an answered address may be silent before a new one takes its place.
    pub stale_after: Duration,
}

impl Default for PathTableConfig {
    fn default() -> Self {
        Self {
            paths_max: 1_024,
            stale_after: Duration::from_secs(120),
        }
    }
}

/// The two ends of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// The peer.
    pub remote: SocketAddr,
    /// The local address that the peer talks to, so that answers come from there.
    pub local: Option<IpAddr>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    path: Path,
    heard: Instant,
    standing: Standing,
}

/// How well we know an address; what gives way first is first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Standing {
    /// It came.
    Heard,
    /// We answered.
    Answered,
    /// It came again.
    Talking,
    /// We mean to talk to it, whatever comes.
    Pinned,
}

/// The bounded map between addresses and path ids.
#[derive(Debug)]
pub struct PathTable {
    config: PathTableConfig,
    ids: BTreeMap<SocketAddr, PathId>,
    entries: BTreeMap<PathId, Entry>,
    unanswered: VecDeque<PathId>,
    /// Answered, and not back yet.
    awaited: VecDeque<PathId>,
    next: u32,
    refused: u64,
}

impl PathTable {
    /// An empty table.
    pub const fn new(config: PathTableConfig) -> Self {
        Self {
            config,
            ids: BTreeMap::new(),
            entries: BTreeMap::new(),
            unanswered: VecDeque::new(),
            awaited: VecDeque::new(),
            next: 0,
            refused: 0,
        }
    }

    /// How many addresses are remembered.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// How many datagrams came from addresses for which there was no room.
    pub const fn refused(&self) -> u64 {
        self.refused
    }

    /// The id of `remote`, from which something has just come; `None` when there is no room.
    pub fn heard(&mut self, now: Instant, path: Path) -> Option<PathId> {
        if let Some(&id) = self.ids.get(&path.remote) {
            if let Some(entry) = self.entries.get_mut(&id) {
                entry.heard = now;
                entry.path.local = path.local;
                if entry.standing == Standing::Answered {
                    entry.standing = Standing::Talking;
                    self.awaited.retain(|&other| other != id);
                }
            }
            return Some(id);
        }
        if self.entries.len() >= self.config.paths_max && !self.make_room(now) {
            self.refused += 1;
            return None;
        }
        while self.entries.contains_key(&PathId(self.next)) {
            self.next = self.next.wrapping_add(1);
        }
        let id = PathId(self.next);
        self.next = self.next.wrapping_add(1);
        self.ids.insert(path.remote, id);
        self.entries.insert(
            id,
            Entry {
                path,
                heard: now,
                standing: Standing::Heard,
            },
        );
        self.unanswered.push_back(id);
        Some(id)
    }

    /// Where a datagram for `id` goes. Marks the path as answered.
    pub fn answer(&mut self, id: PathId) -> Option<Path> {
        let entry = self.entries.get_mut(&id)?;
        if entry.standing == Standing::Heard {
            entry.standing = Standing::Answered;
            // Mostly it came just now; a crowd of strangers must not make each answer a search.
            if self.unanswered.back() == Some(&id) {
                self.unanswered.pop_back();
            } else {
                self.unanswered.retain(|&other| other != id);
            }
            self.awaited.push_back(id);
        }
        Some(entry.path)
    }

    /// Keeps the address of `id` for ever: it is one that the user named.
    pub fn pin(&mut self, id: PathId) {
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.standing = Standing::Pinned;
            self.unanswered.retain(|&other| other != id);
            self.awaited.retain(|&other| other != id);
        }
    }

    /// The id of `remote`, if it has one.
    pub fn id_of(&self, remote: SocketAddr) -> Option<PathId> {
        self.ids.get(&remote).copied()
    }

    /// Whether there is no room for `remote` but by forgetting an address with which we talked.
    pub fn lacks_room_for(&self, remote: SocketAddr) -> bool {
        self.entries.len() >= self.config.paths_max
            && self.unanswered.is_empty()
            && self.awaited.is_empty()
            && !self.ids.contains_key(&remote)
    }

    /// Forgets the addresses that have been silent for longest, an eighth of the table, of those that are
    /// neither pinned nor `in_use`. For callers that know which addresses are worth keeping: that somebody
    /// was answered and came again proves little. Many at once, so that a crowd of such does not make each
    /// newcomer a search.
    pub fn displace(&mut self, in_use: &[PathId]) {
        let loose = self
            .entries
            .iter()
            .filter(|(id, entry)| entry.standing == Standing::Talking && !in_use.contains(id));
        let mut loose: Vec<_> = loose
            .map(|(&id, entry)| (entry.heard, id, entry.path.remote))
            .collect();
        loose.sort_unstable_by_key(|(heard, id, _)| (*heard, *id));
        for (_, id, remote) in loose.into_iter().take((self.config.paths_max / 8).max(1)) {
            self.ids.remove(&remote);
            self.entries.remove(&id);
        }
    }

    fn make_room(&mut self, now: Instant) -> bool {
        let entries = &self.entries;
        let stale = || {
            let loose = |entry: &Entry| entry.standing != Standing::Pinned;
            let entries = entries.iter().filter(|(_, entry)| loose(entry));
            let (&id, oldest) = entries.min_by_key(|(_, entry)| entry.heard)?;
            (now.saturating_since(oldest.heard) >= self.config.stale_after).then_some(id)
        };
        let strangers = &mut self.unanswered;
        let once = &mut self.awaited;
        let Some(id) = strangers
            .pop_front()
            .or_else(|| once.pop_front())
            .or_else(stale)
        else {
            return false;
        };
        if let Some(entry) = self.entries.remove(&id) {
            self.ids.remove(&entry.path.remote);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STALE_AFTER: Duration = Duration::from_secs(10);

    fn table(paths_max: usize) -> PathTable {
        PathTable::new(PathTableConfig {
            paths_max,
            stale_after: STALE_AFTER,
        })
    }

    fn path(port: u16) -> Path {
        Path {
            remote: ([127, 0, 0, 1], port).into(),
            local: None,
        }
    }

    #[test]
    fn an_address_keeps_its_id_and_the_id_its_address() {
        let mut table = table(4);
        let first = table.heard(Instant::START, path(1)).unwrap();
        let second = table.heard(Instant::START, path(2)).unwrap();
        assert_ne!(first, second);
        assert_eq!(table.heard(Instant::START, path(1)), Some(first));
        assert_eq!(table.answer(second), Some(path(2)));
        assert_eq!(table.id_of(path(2).remote), Some(second));
    }

    #[test]
    fn a_flood_of_unanswered_addresses_displaces_only_itself() {
        let mut table = table(4);
        let peer = table.heard(Instant::START, path(1)).unwrap();
        table.answer(peer);
        table.heard(Instant::START, path(1));
        for answered in [false, true] {
            for port in 2..1_000 {
                let id = table.heard(Instant::START, path(port)).unwrap();
                if answered {
                    table.answer(id);
                }
                assert!(table.len() <= 4);
            }
            assert_eq!(table.answer(peer), Some(path(1)));
        }
    }

    #[test]
    fn who_knows_which_addresses_are_in_use_always_has_room_for_another() {
        let mut table = table(4);
        let talk = |table: &mut PathTable, port| {
            let id = table.heard(Instant::START, path(port)).unwrap();
            table.answer(id);
            table.heard(Instant::START, path(port));
            id
        };
        let peer = talk(&mut table, 1);
        for port in 2..1_000 {
            let remote = path(port).remote;
            if table.lacks_room_for(remote) {
                table.displace(&[peer]);
            }
            talk(&mut table, port);
            assert!(!table.lacks_room_for(remote), "it has its place");
            assert!(table.len() <= 4);
        }
        assert_eq!(table.answer(peer), Some(path(1)));
        assert_eq!(table.refused(), 0);
    }

    #[test]
    fn room_is_made_for_many_at_once_and_the_last_heard_stay() {
        let mut table = table(64);
        let mut searches = 0;
        for port in 1..=1_000 {
            let now = Instant::START + Duration::from_millis(u64::from(port));
            if table.lacks_room_for(path(port).remote) {
                searches += 1;
                table.displace(&[]);
                assert_eq!(table.len(), 56);
                assert!(table.id_of(path(port - 1).remote).is_some());
            }
            let id = table.heard(now, path(port)).unwrap();
            table.answer(id);
            table.heard(now, path(port));
        }
        assert_eq!(searches, (1_000 - 64_u32).div_ceil(8));
    }

    #[test]
    fn a_pinned_address_keeps_its_place_however_silent_it_is() {
        let mut table = table(2);
        let pinned = table.heard(Instant::START, path(1)).unwrap();
        table.pin(pinned);
        for port in 2..100 {
            let id = table
                .heard(Instant::START + STALE_AFTER * 2, path(port))
                .unwrap();
            table.answer(id);
        }
        assert_eq!(table.answer(pinned), Some(path(1)));
    }

    #[test]
    fn a_full_table_refuses_until_an_answered_address_has_gone_stale() {
        let mut table = table(2);
        for port in [1, 2] {
            let id = table.heard(Instant::START, path(port)).unwrap();
            table.answer(id);
            table.heard(Instant::START, path(port));
        }
        let just_before = Instant::START + STALE_AFTER - Duration::from_nanos(1);
        assert_eq!(table.heard(just_before, path(3)), None);
        assert_eq!(table.refused(), 1);
        let newcomer = table.heard(Instant::START + STALE_AFTER, path(3)).unwrap();
        assert_eq!(table.len(), 2);
        assert_eq!(table.id_of(path(1).remote), None, "the stalest went");
        assert_eq!(table.answer(newcomer), Some(path(3)));
    }
}
