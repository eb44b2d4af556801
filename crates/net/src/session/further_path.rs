//! One further path to a peer: where it leads, its terms, whether it carries anything, and the questions whether it does.

use super::path_acks::PathAcks;
use super::path_slot::PathSlot;
use fulmar_proto::liveness::{FirstProbes, Liveness, LivenessConfig};
use fulmar_proto::machine::{Deadline, PathId};
use fulmar_proto::units::{Bitrate, Duration, Instant};

/// The probes to which an answer counts: at four a second, those of two seconds.
const ASKED_MAX: usize = 8;
/// The shortest time between two questions at addresses to which a path may have moved.
const MOVES_APART: Duration = Duration::from_millis(250);

/// The terms on which the user has a further path to a peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathTerms {
    /// The rate that it carries, if it is not to be found.
    pub rate: Option<Bitrate>,
    /// Its cost: data leave on it while no path that costs less is up. The first path costs nothing.
    pub cost: u8,
}

/// The numbers of the last probes, until one is answered: a path may take longer to answer than the pause between them.
#[derive(Clone, Copy, Debug, Default)]
struct Asked([Option<u32>; ASKED_MAX]);

impl Asked {
    fn note(&mut self, id: u32) {
        self.0.rotate_right(1);
        self.0[0] = Some(id);
    }

    fn has(&self, id: u32) -> bool {
        self.0.contains(&Some(id))
    }
}

/// An address from which something came in a path's place.
struct Move {
    path: PathId,
    asked: Asked,
}

/// A further path to a peer.
pub(super) struct FurtherPath {
    /// The outer path.
    pub(super) path: PathId,
    /// Whether the user named it; others were learned from what came there.
    is_named: bool,
    /// Its terms, as the user or the peer says them.
    pub(super) terms: PathTerms,
    pub(super) liveness: Liveness,
    /// The path acks either way: arrivals that the peer counts in its place, and departures in this one.
    pub(super) acks: PathAcks,
    asked: Asked,
    /// The address to which it may have moved. Whoever copies a datagram can make it come from anywhere, so data goes on
    /// to the address before until the peer answers at this one.
    moving: Option<Move>,
    /// The time of the last question at such an address.
    move_asked_at: Option<Instant>,
    /// Whether the inner machine uses it.
    pub(super) is_bonded: bool,
    /// The time at which something came there last.
    pub(super) heard_at: Option<Instant>,
    /// The probes until it was heard.
    first_probes: FirstProbes,
}

impl FurtherPath {
    pub(super) fn new(now: Instant, path: PathId, place: PathSlot, config: LivenessConfig) -> Self {
        let mut liveness = Liveness::new(config, now);
        liveness.set_one_of_several(true);
        Self {
            path,
            is_named: false,
            terms: PathTerms::default(),
            liveness,
            acks: PathAcks::of_place(place),
            asked: Asked::default(),
            moving: None,
            move_asked_at: None,
            is_bonded: false,
            heard_at: None,
            first_probes: FirstProbes::begin(now),
        }
    }

    /// Notes that the user named it, on these terms.
    pub(super) const fn be_named(&mut self, terms: PathTerms) {
        self.is_named = true;
        self.terms = terms;
    }

    pub(super) const fn is_named(&self) -> bool {
        self.is_named
    }

    /// Takes the peer's word of its cost, unless the user says it. Returns whether that changed it.
    pub(super) fn hear_cost(&mut self, cost: u8) -> bool {
        let is_other = !self.is_named && self.terms.cost != cost;
        if is_other {
            self.terms.cost = cost;
        }
        is_other
    }

    /// Whether data may leave on it.
    pub(super) const fn is_up(&self) -> bool {
        self.is_bonded && !self.liveness.is_down()
    }

    /// Whether a probe is due because nothing was heard there yet.
    pub(super) fn wants_probe(&mut self, now: Instant) -> bool {
        self.first_probes.take_due(now)
    }

    /// Notes that something came there.
    pub(super) fn on_heard(&mut self, now: Instant) {
        self.heard_at = Some(now);
        self.first_probes.on_heard(now);
    }

    /// Notes the number of a probe that leaves.
    pub(super) fn on_probe(&mut self, id: u32) {
        self.asked.note(id);
    }

    /// Notes the answer to a probe. Returns whether it is to one of the last: whoever answers that is there, or where the
    /// path may have moved.
    pub(super) fn on_answer(&mut self, id: u32) -> bool {
        let moved = self.moving.take_if(|moving| moving.asked.has(id));
        let is_it = moved.is_some() || self.asked.has(id);
        if let Some(moved) = moved {
            self.path = moved.path;
        }
        if is_it {
            self.asked = Asked::default();
            self.first_probes.end();
        }
        is_it
    }

    /// Notes that the newest datagram in its place came from elsewhere: it may have moved there. While it carries no data
    /// it is probed there alone.
    pub(super) fn come_from(&mut self, now: Instant, path: PathId) {
        if !self.is_bonded {
            self.path = path;
            self.asked = Asked::default();
            self.first_probes = FirstProbes::begin(now);
        } else if self.moves_to() != Some(path) {
            let asked = Asked::default();
            self.moving = Some(Move { path, asked });
        }
    }

    /// Notes that the newest datagram in its place came from where it is.
    pub(super) fn has_stayed(&mut self) {
        self.moving = None;
    }

    /// The address to which it may have moved.
    pub(super) fn moves_to(&self) -> Option<PathId> {
        self.moving.as_ref().map(|moving| moving.path)
    }

    /// Whether a probe is due at the address to which it may have moved.
    pub(super) fn wants_question(&self, now: Instant) -> bool {
        let soon = |last| now.saturating_since(last) < MOVES_APART;
        self.moving.is_some() && !self.move_asked_at.is_some_and(soon)
    }

    /// Notes the number of a probe that leaves for that address.
    pub(super) fn on_question(&mut self, now: Instant, id: u32) {
        self.move_asked_at = Some(now);
        if let Some(moving) = &mut self.moving {
            moving.asked.note(id);
        }
    }

    /// Probes it at once, and again until it is answered: whether it was never heard, is down, or has gone without a word.
    pub(super) const fn try_again(&mut self, now: Instant) {
        if self.is_bonded {
            self.liveness.try_again();
        }
        self.first_probes = FirstProbes::begin(now);
    }

    /// The time at which something is due.
    pub(super) fn next_deadline(&self) -> Option<Deadline> {
        let probe = self.first_probes.next_at().map(|at| Deadline {
            at,
            why: "probe of a further path",
        });
        let liveness = self.liveness.next_deadline().filter(|_| self.is_bonded);
        Deadline::earlier(probe, liveness)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant::START;
    const HERE: PathId = PathId(8);
    const ELSEWHERE: PathId = PathId(9);

    fn path() -> FurtherPath {
        FurtherPath::new(NOW, HERE, PathSlot::of_bits(1), LivenessConfig::default())
    }

    #[test]
    fn a_path_that_is_tried_again_is_probed_at_once() {
        let mut path = path();
        for millis in 0..2_000 {
            path.wants_probe(NOW + Duration::from_millis(millis));
        }
        let at = NOW + Duration::from_secs(2);
        assert!(!path.wants_probe(at), "the next pause has begun");
        path.try_again(at);
        assert!(path.wants_probe(at));
        let next = at + Duration::from_millis(250);
        assert_eq!(path.first_probes.next_at(), Some(next), "as at first");
        // One that carried data may have lost its device without a word, and may have it back before anybody noticed.
        path.is_bonded = true;
        path.first_probes.end();
        path.try_again(at);
        assert!(path.wants_probe(at));
    }

    #[test]
    fn a_path_is_asked_until_its_last_probe_is_answered() {
        let mut path = path();
        assert!(path.wants_probe(NOW));
        path.on_probe(7);
        assert!(!path.on_answer(6), "the answer to another question");
        assert!(path.on_answer(7) && !path.on_answer(7));
        assert!(!path.wants_probe(NOW + Duration::from_secs(60)));
    }

    #[test]
    fn a_path_that_carries_data_moves_with_the_answer_from_the_new_address() {
        let mut path = path();
        path.is_bonded = true;
        path.on_probe(1);
        path.come_from(NOW, ELSEWHERE);
        assert_eq!(path.path, HERE);
        assert!(path.wants_question(NOW));
        path.on_question(NOW, 2);
        // An address beyond a satellite answers after more than one pause.
        let later = NOW + MOVES_APART;
        path.come_from(later, ELSEWHERE);
        assert!(path.wants_question(later) && !path.wants_question(NOW));
        path.on_question(later, 3);
        assert!(path.on_answer(1), "from where it was");
        assert_eq!(path.path, HERE);
        assert!(path.on_answer(2));
        assert_eq!(path.path, ELSEWHERE);
        assert_eq!(path.moves_to(), None);
    }

    #[test]
    fn copies_from_many_addresses_cause_four_questions_a_second() {
        let mut path = path();
        path.is_bonded = true;
        let mut asked = 0;
        for millis in 0..1_000 {
            let now = NOW + Duration::from_millis(u64::from(millis));
            path.come_from(now, PathId(100 + millis));
            if path.wants_question(now) {
                path.on_question(now, millis);
                asked += 1;
            }
            path.has_stayed();
        }
        assert_eq!((asked, path.path), (4, HERE));
    }
}
