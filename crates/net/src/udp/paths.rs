//! The addresses that path ids stand for.
//!
//! # Promises
//! - At most [`PathTableConfig::paths_max`] addresses are remembered.
//! - A pinned address keeps its place for ever, and one that is in use, as the caller of
//!   [`PathTable::heard`] says, for as long as it is.
//! - Among the others, addresses that we never answered give way first, then those from which nothing came again.
//! - An address with which we have talked (a datagram came, we answered, another came) keeps its place until
//!   it has been silent for [`PathTableConfig::stale_after`]. Where the caller knows which paths are in use, that
//!   counts instead: an answer and a second datagram prove little.
//! - An id is not given to a second address before 2^31 others were.

use super::carrier::Carrier;
use fulmar_proto::machine::PathId;
use fulmar_proto::units::{Duration, Instant};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

/// Bounds of a [`PathTable`].
#[derive(Clone, Copy, Debug)]
pub struct PathTableConfig {
    /// The most addresses that are remembered.
    pub paths_max: usize,
    /// The longest silence of an answered address before a new one takes its place.
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
    /// The way in which datagrams travel to the peer.
    pub carrier: Carrier,
    /// The driver's socket: its first is 0, one [beside it](super::UdpDriver::add_port) has the number that it was given.
    pub socket: u16,
}

impl Path {
    /// The path by UDP from `local`, or any address, to `remote`.
    pub const fn udp(remote: SocketAddr, local: Option<IpAddr>) -> Self {
        Self {
            remote,
            local,
            carrier: Carrier::Udp,
            socket: 0,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    path: Path,
    heard: Instant,
    standing: Standing,
}

/// The standing of an address, lowest first: the lowest gives way first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Standing {
    /// A datagram came from it.
    Heard,
    /// We answered it.
    Answered,
    /// Another datagram came from it.
    Talking,
    /// The user named it: it keeps its place.
    Pinned,
}

/// The id that follows.
const fn after(id: PathId) -> PathId {
    let (_, next) = PathId(id.0.wrapping_add(1)).split_checksum();
    if next.is_inside() { PathId(0) } else { next }
}

/// The bounded map between addresses and path ids.
#[derive(Debug)]
pub struct PathTable {
    config: PathTableConfig,
    ids: BTreeMap<(SocketAddr, u16), PathId>,
    entries: BTreeMap<PathId, Entry>,
    next: PathId,
    refused: u64,
}

impl PathTable {
    /// An empty table.
    pub const fn new(config: PathTableConfig) -> Self {
        Self {
            config,
            ids: BTreeMap::new(),
            entries: BTreeMap::new(),
            next: PathId(0),
            refused: 0,
        }
    }

    /// The number of addresses remembered.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether no address is remembered.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The number of datagrams from addresses for which there was no room.
    pub const fn refused(&self) -> u64 {
        self.refused
    }

    /// The id of an address from which something has just come; `None` when there is no room. To make some,
    /// `in_use` is asked for the paths that must keep their addresses, if the caller knows them. A known address
    /// keeps its carrier.
    pub fn heard(
        &mut self,
        now: Instant,
        path: Path,
        in_use: impl FnOnce() -> Option<Vec<PathId>>,
    ) -> Option<PathId> {
        if let Some(&id) = self.ids.get(&(path.remote, path.socket)) {
            if let Some(entry) = self.entries.get_mut(&id) {
                entry.heard = now;
                entry.path.local = path.local;
                if entry.standing == Standing::Answered {
                    entry.standing = Standing::Talking;
                }
            }
            return Some(id);
        }
        if self.entries.len() >= self.config.paths_max {
            self.make_room(now, in_use());
            if self.entries.len() >= self.config.paths_max {
                self.refused += 1;
                return None;
            }
        }
        while self.entries.contains_key(&self.next) {
            self.next = after(self.next);
        }
        let id = self.next;
        self.next = after(id);
        self.ids.insert((path.remote, path.socket), id);
        self.entries.insert(
            id,
            Entry {
                path,
                heard: now,
                standing: Standing::Heard,
            },
        );
        Some(id)
    }

    /// The id of an address to which something is to go by a socket; `None` when there is no room.
    pub fn path_to(
        &mut self,
        now: Instant,
        (remote, socket): (SocketAddr, u16),
        in_use: impl FnOnce() -> Option<Vec<PathId>>,
    ) -> Option<PathId> {
        if let Some(known) = self.id_of(remote, socket) {
            return Some(known);
        }
        let path = Path {
            socket,
            ..Path::udp(remote, None)
        };
        self.heard(now, path, in_use)
    }

    /// Sends what goes to `id` by `carrier` from now on.
    pub fn set_carrier(&mut self, id: PathId, carrier: Carrier) {
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.path.carrier = carrier;
        }
    }

    /// Lets the routes say from which address datagrams leave on the paths of which this holds, until something comes there.
    pub fn forget_local(&mut self, is_stale: impl Fn(&Path) -> bool) {
        for entry in self.entries.values_mut() {
            if is_stale(&entry.path) {
                entry.path.local = None;
            }
        }
    }

    /// The path of a datagram for `id`, which is marked as answered.
    pub fn answer(&mut self, id: PathId) -> Option<Path> {
        let (is_unchecked, id) = id.split_checksum();
        let entry = self.entries.get_mut(&id)?;
        if entry.standing == Standing::Heard {
            entry.standing = Standing::Answered;
        }
        let mut path = entry.path;
        if is_unchecked && path.carrier == Carrier::Udp {
            path.carrier = Carrier::UdpNoChecksum;
        }
        Some(path)
    }

    /// Keeps the address of `id` for ever: it is one that the user named.
    pub fn pin(&mut self, id: PathId) {
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.standing = Standing::Pinned;
        }
    }

    /// The id of `remote` at a socket, if it has one.
    pub fn id_of(&self, remote: SocketAddr, socket: u16) -> Option<PathId> {
        self.ids.get(&(remote, socket)).copied()
    }

    /// Forgets an eighth of the table, if so many may be forgotten: many at once, so that a crowd does not
    /// make each newcomer a search.
    fn make_room(&mut self, now: Instant, in_use: Option<Vec<PathId>>) {
        let knows_use = in_use.is_some();
        let mut in_use = in_use.unwrap_or_default();
        in_use.sort_unstable();
        let stale_after = self.config.stale_after;
        let is_loose = |id: &PathId, entry: &Entry| {
            let may_go = match entry.standing {
                Standing::Heard | Standing::Answered => true,
                Standing::Talking => knows_use || now.saturating_since(entry.heard) >= stale_after,
                Standing::Pinned => false,
            };
            may_go && in_use.binary_search(id).is_err()
        };
        let loose = self
            .entries
            .iter()
            .filter(|(id, entry)| is_loose(id, entry));
        let mut loose: Vec<_> = loose
            .map(|(&id, entry)| {
                let address = (entry.path.remote, entry.path.socket);
                (entry.standing, entry.heard, id, address)
            })
            .collect();
        loose.sort_unstable_by_key(|(standing, heard, id, _)| (*standing, *heard, *id));
        for (_, _, id, address) in loose.into_iter().take((self.config.paths_max / 8).max(1)) {
            self.ids.remove(&address);
            self.entries.remove(&id);
        }
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
        Path::udp(([127, 0, 0, 1], port).into(), None)
    }

    fn heard(table: &mut PathTable, now: Instant, port: u16) -> PathId {
        table.heard(now, path(port), || None).unwrap()
    }

    /// A datagram comes from the address, is answered, and another comes.
    fn talk(table: &mut PathTable, now: Instant, port: u16, in_use: &[PathId]) -> PathId {
        let in_use = || Some(in_use.to_vec());
        let id = table.heard(now, path(port), in_use).unwrap();
        table.answer(id);
        table.heard(now, path(port), in_use);
        id
    }

    #[test]
    fn one_address_at_two_sockets_is_two_paths() {
        let mut table = table(4);
        let first = heard(&mut table, Instant::START, 1);
        let other = Path {
            socket: 1,
            ..path(1)
        };
        let second = table.heard(Instant::START, other, || None);
        assert!(second.is_some_and(|second| second != first));
        assert_eq!(
            table.answer(second.unwrap()).map(|path| path.socket),
            Some(1)
        );
        assert_eq!(table.id_of(other.remote, 1), second);
        let named = table.path_to(Instant::START, (other.remote, 1), || None);
        assert_eq!(named, second);
    }

    #[test]
    fn an_address_keeps_its_id_and_the_id_its_address() {
        let mut table = table(4);
        let first = heard(&mut table, Instant::START, 1);
        let second = heard(&mut table, Instant::START, 2);
        assert_ne!(first, second);
        assert_eq!(heard(&mut table, Instant::START, 1), first);
        assert_eq!(table.answer(second), Some(path(2)));
        assert_eq!(table.id_of(path(2).remote, 0), Some(second));
    }

    #[test]
    fn a_carrier_stays_whatever_comes_from_the_address() {
        let mut table = table(4);
        let id = heard(&mut table, Instant::START, 1);
        table.set_carrier(id, Carrier::UdpNoChecksum);
        heard(&mut table, Instant::START, 1);
        let carrier = table.answer(id).map(|path| path.carrier);
        assert_eq!(carrier, Some(Carrier::UdpNoChecksum));
    }

    #[test]
    fn a_datagram_leaves_without_checksum_where_its_path_is_udp() {
        let mut table = table(4);
        let id = heard(&mut table, Instant::START, 1);
        let carriers = |table: &mut PathTable| {
            let mut of = |id| table.answer(id).map(|path| (path.remote, path.carrier));
            [of(id), of(id.without_checksum())]
        };
        let remote = path(1).remote;
        let ways = [Carrier::Udp, Carrier::UdpNoChecksum].map(|carrier| Some((remote, carrier)));
        assert_eq!(carriers(&mut table), ways);
        table.set_carrier(id, Carrier::UdpLite);
        let lite = Some((remote, Carrier::UdpLite));
        assert_eq!(carriers(&mut table), [lite, lite]);
        assert_eq!(table.answer(PathId(77).without_checksum()), None);
    }

    #[test]
    fn a_flood_of_unanswered_addresses_displaces_only_itself() {
        let mut table = table(4);
        let peer = heard(&mut table, Instant::START, 1);
        table.answer(peer);
        heard(&mut table, Instant::START, 1);
        for answered in [false, true] {
            for port in 2..1_000 {
                let id = heard(&mut table, Instant::START, port);
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
        let peer = talk(&mut table, Instant::START, 1, &[]);
        for port in 2..1_000 {
            talk(&mut table, Instant::START, port, &[peer]);
            assert!(table.len() <= 4);
        }
        assert_eq!(table.answer(peer), Some(path(1)));
        assert_eq!(table.refused(), 0);
    }

    #[test]
    fn an_address_in_use_keeps_its_place_whether_it_was_answered_or_not() {
        for answered in [false, true] {
            let mut table = table(4);
            let peer = heard(&mut table, Instant::START, 1);
            if answered {
                table.answer(peer);
            }
            for port in 2..1_000 {
                let in_use = || Some(vec![peer]);
                let id = table.heard(Instant::START, path(port), in_use).unwrap();
                table.answer(id);
            }
            assert_eq!(table.id_of(path(1).remote, 0), Some(peer), "{answered}");
        }
    }

    #[test]
    fn room_is_made_for_many_at_once_and_the_last_heard_stay() {
        let mut table = table(64);
        let mut searches = 0;
        for port in 1..=1_000 {
            let now = Instant::START + Duration::from_millis(u64::from(port));
            let mut asked = false;
            let in_use = || {
                asked = true;
                Some(Vec::new())
            };
            let id = table.heard(now, path(port), in_use).unwrap();
            if asked {
                searches += 1;
                assert_eq!(table.len(), 57);
                assert!(table.id_of(path(port - 1).remote, 0).is_some());
            }
            table.answer(id);
            heard(&mut table, now, port);
        }
        assert_eq!(searches, (1_000 - 64_u32).div_ceil(8));
    }

    #[test]
    fn who_never_came_back_gives_way_before_who_was_heard_long_ago() {
        let mut table = table(8);
        let peer = talk(&mut table, Instant::START, 1, &[]);
        for port in 2..=8 {
            let later = Instant::START + Duration::from_millis(u64::from(port));
            let id = heard(&mut table, later, port);
            table.answer(id);
        }
        let last = Instant::START + Duration::from_secs(1);
        talk(&mut table, last, 9, &[]);
        assert_eq!(table.id_of(path(1).remote, 0), Some(peer));
        assert_eq!(table.id_of(path(2).remote, 0), None);
        assert_eq!(table.len(), 8);
    }

    #[test]
    fn a_pinned_address_keeps_its_place_however_silent_it_is() {
        let mut table = table(2);
        let pinned = heard(&mut table, Instant::START, 1);
        table.pin(pinned);
        for port in 2..100 {
            let id = heard(&mut table, Instant::START + STALE_AFTER * 2, port);
            table.answer(id);
        }
        assert_eq!(table.answer(pinned), Some(path(1)));
    }

    #[test]
    fn a_full_table_refuses_until_an_answered_address_has_gone_stale() {
        let mut table = table(2);
        for port in [1, 2] {
            let id = heard(&mut table, Instant::START, port);
            table.answer(id);
            heard(&mut table, Instant::START, port);
        }
        let just_before = Instant::START + STALE_AFTER - Duration::from_nanos(1);
        assert_eq!(table.heard(just_before, path(3), || None), None);
        assert_eq!(table.refused(), 1);
        let newcomer = heard(&mut table, Instant::START + STALE_AFTER, 3);
        assert_eq!(table.len(), 2);
        assert_eq!(table.id_of(path(1).remote, 0), None, "the stalest went");
        assert_eq!(table.answer(newcomer), Some(path(3)));
    }
}
