//! Further paths to a peer, beside the one on which its session began.
//!
//! Each end numbers its own: what it seals for a path is counted in a place of its own, so that the other end tells what
//! arrives of it apart. The place is part of the nonce (`docs/protocol/session.md`).

use super::further_path::{FurtherPath, PathTerms};
use super::path_slot::PathSlot;
use super::wire::Capability;
use fulmar_proto::liveness::LivenessConfig;
use fulmar_proto::machine::{AckedWays, Deadline, PathId};
use fulmar_proto::units::{Duration, Instant};

const CAPABILITY: &str = "paths";
const VALUE: &str = "1";

/// The capability of an end that takes, in wire 2, what a peer sends on further paths, and answers there.
pub fn several_paths() -> Capability {
    Capability {
        name: CAPABILITY.to_owned(),
        value: VALUE.to_owned(),
        must_agree: false,
    }
}

/// Whether two ends that said this in their hellos, and speak wire 2, have several paths.
pub(super) fn have_several(ours: &[Capability], theirs: &[Capability]) -> bool {
    let is_it = |one: &Capability| one.name == CAPABILITY && one.value == VALUE;
    [ours, theirs].iter().all(|said| said.iter().any(is_it))
}

/// The further paths that a peer may have.
pub const FURTHER_PATHS_MAX: usize = PathSlot::COUNT - 1;

/// The further paths to one peer, by their places.
#[derive(Default)]
pub(super) struct FurtherPaths {
    /// The outer paths that the user named.
    named: Vec<(PathId, PathTerms)>,
    places: [Option<Box<FurtherPath>>; FURTHER_PATHS_MAX],
    is_agreed: bool,
    /// The directions in which there are path acks.
    ways: AckedWays,
    /// Whether the session began on a further path, and has carried nothing since: nobody was told that the link is down.
    pub(super) began_beside_home: bool,
}

impl FurtherPaths {
    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.places.iter().all(Option::is_none)
    }

    /// Whether data is to leave on further paths.
    pub(super) fn are_named(&self) -> bool {
        !self.named.is_empty()
    }

    /// Whether this outer path is a further one: the user named it, or it is in use as one.
    pub(super) fn has(&self, path: PathId) -> bool {
        self.named.iter().any(|(named, _)| *named == path) || self.place_of(path).is_some()
    }

    /// The outer paths on which the peer may be called: those in use, and then those that the user named for a time when
    /// there is a session.
    pub(super) fn calls(&self) -> impl Iterator<Item = PathId> + Clone + '_ {
        let used = self.places.iter().flatten().map(|one| one.path);
        let named = self.named.iter().map(|(path, _)| *path);
        used.chain(named.filter(|path| self.place_of(*path).is_none()))
    }

    /// Whether both ends have agreed on them.
    pub(super) const fn are_agreed(&self) -> bool {
        self.is_agreed
    }

    /// Adds a path that the user named.
    pub(super) fn name(
        &mut self,
        now: Instant,
        (path, terms): (PathId, PathTerms),
        config: LivenessConfig,
    ) {
        if self.named.iter().all(|(named, _)| *named != path) {
            self.named.push((path, terms));
        }
        self.begin(now, config);
    }

    /// Takes a path away for good, named or not. Returns its place, if it had one.
    pub(super) fn remove(&mut self, path: PathId) -> Option<PathSlot> {
        self.named.retain(|(named, _)| *named != path);
        let place = self.place_of(path)?;
        let index = place.index().checked_sub(1)?;
        self.places[index] = None;
        Some(place)
    }

    /// Notes the capabilities of both ends, and begins with the paths that the user named.
    pub(super) fn agree(
        &mut self,
        now: Instant,
        (ours, theirs, is_in_two): (&[Capability], &[Capability], bool),
        (ways, config): (AckedWays, LivenessConfig),
    ) {
        self.is_agreed = is_in_two && have_several(ours, theirs);
        // Damage is told of the first path alone, and so are arrivals one by one.
        self.ways = AckedWays {
            damaged: false,
            mapped: false,
            ..ways
        };
        for one in self.places.iter_mut().flatten() {
            one.acks.set_ways(self.ways);
        }
        self.begin(now, config);
    }

    fn begin(&mut self, now: Instant, config: LivenessConfig) {
        if !self.is_agreed {
            return;
        }
        for (path, terms) in self.named.clone() {
            if self.place_of(path).is_none()
                && let Some(place) = self.free()
            {
                let mut further = FurtherPath::new(now, path, place, config);
                further.be_named(terms);
                self.put(place, further);
            }
        }
    }

    fn put(&mut self, place: PathSlot, mut further: FurtherPath) {
        further.acks.set_ways(self.ways);
        if let Some(index) = place.index().checked_sub(1) {
            self.places[index] = Some(Box::new(further));
        }
    }

    fn make(
        &mut self,
        now: Instant,
        (path, place): (PathId, PathSlot),
        config: LivenessConfig,
    ) -> PathSlot {
        self.put(place, FurtherPath::new(now, path, place, config));
        place
    }

    fn free(&self) -> Option<PathSlot> {
        let index = self.places.iter().position(Option::is_none)?;
        PathSlot::of_index(index + 1)
    }

    /// Ends them all. Those that the user named begin anew when both ends agree. Returns the places that were in use.
    pub(super) fn end(&mut self) -> Vec<PathSlot> {
        let used = self.places().collect();
        self.places = Default::default();
        self.is_agreed = false;
        used
    }

    /// The path in a place.
    pub(super) fn get(&self, place: PathSlot) -> Option<&FurtherPath> {
        self.places.get(place.index().checked_sub(1)?)?.as_deref()
    }

    pub(super) fn get_mut(&mut self, place: PathSlot) -> Option<&mut FurtherPath> {
        let index = place.index().checked_sub(1)?;
        self.places.get_mut(index)?.as_deref_mut()
    }

    /// The places in use.
    pub(super) fn places(&self) -> impl Iterator<Item = PathSlot> + use<> {
        let used = self.places.each_ref().map(Option::is_some);
        (1..PathSlot::COUNT)
            .filter(move |index| used[index - 1])
            .filter_map(PathSlot::of_index)
    }

    /// The place of an outer path.
    pub(super) fn place_of(&self, path: PathId) -> Option<PathSlot> {
        let is_it =
            |one: &Option<Box<FurtherPath>>| one.as_ref().is_some_and(|one| one.path == path);
        PathSlot::of_index(self.places.iter().position(is_it)? + 1)
    }

    /// The place of ours for what came on `path` and was counted by the peer in `theirs`. Where it came from is learned, if
    /// nobody named it, and followed there. `None` if there are to be no further paths, or no place is left.
    pub(super) fn learn(
        &mut self,
        now: Instant,
        (path, theirs, is_newest): (PathId, PathSlot, bool),
        config: LivenessConfig,
    ) -> Option<PathSlot> {
        if !self.is_agreed || theirs == PathSlot::FIRST {
            return None;
        }
        let here = self.place_of(path);
        let place = if let Some(place) = here.or_else(|| self.learned_as(theirs)) {
            place
        } else if !is_newest {
            return None;
        } else if self.get(theirs).is_none() {
            self.make(now, (path, theirs), config)
        } else {
            // Another path has this number here, by chance.
            let free = self.free()?;
            self.make(now, (path, free), config)
        };
        // An older datagram, or a copy of one, moves nobody.
        if let Some(known) = self.get_mut(place).filter(|_| is_newest) {
            if known.path == path {
                known.has_stayed();
            } else {
                known.come_from(now, path);
            }
            known.acks.hear(theirs);
        }
        Some(place)
    }

    /// The place of a path that nobody named, which the peer counts in `theirs`.
    fn learned_as(&self, theirs: PathSlot) -> Option<PathSlot> {
        self.places().find(|place| {
            let one = self.get(*place);
            one.is_some_and(|one| !one.is_named() && one.acks.theirs() == theirs)
        })
    }

    /// Probes the path at once.
    pub(super) fn try_again(&mut self, now: Instant, path: PathId) {
        let place = self.place_of(path);
        if let Some(one) = place.and_then(|place| self.get_mut(place)) {
            one.try_again(now);
        }
    }

    /// All of them.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (PathSlot, &mut FurtherPath)> {
        let places = self.places.iter_mut().enumerate();
        places
            .filter_map(|(index, one)| Some((PathSlot::of_index(index + 1)?, one.as_deref_mut()?)))
    }

    /// Whether data may leave on any of them.
    pub(super) fn is_any_up(&self) -> bool {
        self.places.iter().flatten().any(|one| one.is_up())
    }

    /// The time since which the last of those that carried data has been down.
    pub(super) fn down_since(&self) -> Option<Instant> {
        let bonded = self.places.iter().flatten().filter(|one| one.is_bonded);
        bonded.filter_map(|one| one.liveness.down_since()).max()
    }

    /// The number of those on which data may leave.
    pub(super) fn count_up(&self) -> usize {
        self.places
            .iter()
            .flatten()
            .filter(|one| one.is_up())
            .count()
    }

    /// The longest round trip of those that data leave on, or did.
    pub(super) fn longest_rtt(&self) -> Option<Duration> {
        let bonded = self.places.iter().flatten().filter(|one| one.is_bonded);
        bonded.filter_map(|one| one.liveness.rtt()).max()
    }

    /// The path on which data may leave that answers first, of those that cost least.
    pub(super) fn quickest(&self) -> Option<PathSlot> {
        let up = self
            .places()
            .filter(|place| self.get(*place).is_some_and(FurtherPath::is_up));
        up.min_by_key(|place| {
            let one = self.get(*place);
            one.map(|one| (one.terms.cost, one.liveness.rtt()))
        })
    }

    /// The time of the next path ack, which leaves while data may.
    pub(super) fn next_ack_at(&self) -> Option<Instant> {
        let all = self.places.iter().flatten();
        all.filter_map(|one| one.acks.next_at()).min()
    }

    /// The outer paths where the peer is, may be, or may be called.
    pub(super) fn outer_paths(&self) -> impl Iterator<Item = PathId> + '_ {
        let moves = self.places.iter().flatten();
        let moves = moves.filter_map(|one| one.moves_to());
        self.calls().chain(moves)
    }

    pub(super) fn next_deadline(&self) -> Option<Deadline> {
        let all = self.places.iter().flatten();
        all.fold(None, |first, one| {
            Deadline::earlier(first, one.next_deadline())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant::START;

    fn agreed(named: &[PathId]) -> FurtherPaths {
        let said = [several_paths()];
        let mut paths = FurtherPaths::default();
        for path in named {
            paths.name(
                NOW,
                (*path, PathTerms::default()),
                LivenessConfig::default(),
            );
        }
        assert!(paths.is_empty(), "the peer has said nothing");
        let acked = (AckedWays::default(), LivenessConfig::default());
        paths.agree(NOW, (&said, &said, true), acked);
        paths
    }

    fn learn(paths: &mut FurtherPaths, path: u32, theirs: u8) -> Option<usize> {
        let came = (PathId(path), PathSlot::of_bits(theirs), true);
        let place = paths.learn(NOW, came, LivenessConfig::default());
        place.map(PathSlot::index)
    }

    #[test]
    fn a_path_that_nobody_named_is_learned_in_the_peer_s_place_and_followed() {
        let mut paths = agreed(&[]);
        assert_eq!(
            learn(&mut paths, 70, 0),
            None,
            "the first is no further one"
        );
        assert_eq!(learn(&mut paths, 70, 3), Some(3));
        assert_eq!(learn(&mut paths, 71, 3), Some(3), "it has moved");
        assert_eq!(paths.place_of(PathId(70)), None);
        assert_eq!(learn(&mut paths, 71, 5), Some(3), "known by where it is");
    }

    #[test]
    fn a_path_that_the_user_named_stays_where_it_is() {
        let mut paths = agreed(&[PathId(8), PathId(9)]);
        assert_eq!(
            learn(&mut paths, 70, 2),
            Some(3),
            "another path of the peer's"
        );
        assert_eq!(paths.place_of(PathId(9)).map(PathSlot::index), Some(2));
    }

    #[test]
    fn a_path_in_another_place_than_the_peer_s_is_followed_and_takes_no_further_place() {
        let mut paths = agreed(&[PathId(8)]);
        for path in 70..80 {
            assert_eq!(learn(&mut paths, path, 1), Some(2), "{path}");
        }
        assert_eq!(learn(&mut paths, 90, 2), Some(3), "another of the peer's");
        assert_eq!(paths.place_of(PathId(79)).map(PathSlot::index), Some(2));
    }

    #[test]
    fn an_old_datagram_begins_no_path() {
        let mut paths = agreed(&[]);
        let came = (PathId(70), PathSlot::of_bits(3), false);
        assert_eq!(paths.learn(NOW, came, LivenessConfig::default()), None);
        assert!(paths.is_empty());
    }

    #[test]
    fn an_old_datagram_from_elsewhere_moves_no_path() {
        let mut paths = agreed(&[]);
        assert_eq!(learn(&mut paths, 70, 3), Some(3));
        let came = (PathId(71), PathSlot::of_bits(3), false);
        paths.learn(NOW, came, LivenessConfig::default());
        assert_eq!(paths.place_of(PathId(70)).map(PathSlot::index), Some(3));
    }

    #[test]
    fn nothing_is_learned_from_a_peer_that_knows_of_no_further_paths() {
        let mut paths = FurtherPaths::default();
        let config = LivenessConfig::default();
        paths.name(NOW, (PathId(8), PathTerms::default()), config);
        let acked = (AckedWays::default(), config);
        paths.agree(NOW, (&[several_paths()], &[], true), acked);
        assert!(paths.is_empty());
        assert_eq!(learn(&mut paths, 70, 3), None);
    }

    #[test]
    fn the_session_s_own_messages_take_the_quickest_of_the_cheapest_paths() {
        let mut paths = agreed(&[PathId(7), PathId(8), PathId(9)]);
        for (place, cost, rtt) in [(1, 1, 10), (2, 0, 300), (3, 0, 200)] {
            let one = paths.get_mut(PathSlot::of_bits(place)).expect("named");
            one.is_bonded = true;
            one.terms.cost = cost;
            one.liveness.on_rtt_sample(Duration::from_millis(rtt));
        }
        assert_eq!(paths.quickest().map(PathSlot::index), Some(3));
    }
}
