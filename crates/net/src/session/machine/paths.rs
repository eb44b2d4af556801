//! Further paths to a peer: what is sealed for them, what comes there, and whether they carry anything.

use super::Session;
use super::arrivals::Origin;
use crate::session::cipher::Number;
use crate::session::config::PeerIndex;
use crate::session::dialect::DataParity;
use crate::session::event::{PathChange, SessionEvent};
use crate::session::further_path::PathTerms;
use crate::session::path_slot::PathSlot;
use crate::session::peer_status::{PathStatus, PathUse};
use crate::session::wire::{Message, Probe};
use fulmar_proto::liveness::{Due, Liveness, Wants};
use fulmar_proto::machine::{Carried, Ecn, PathFacts, PathId, PathSizes};
use fulmar_proto::units::{ByteCount, Duration, Instant};

/// The shortest time without a word on the first path after which the session's own messages leave by another one that is heard.
const QUIET_MIN: Duration = Duration::from_millis(40);

impl<M: Carried> Session<M> {
    /// Sends what is for `peer` on the outer path `path` as well, from when it is heard there. Both ends have to have said
    /// [`several_paths`](crate::session::several_paths). The peer hears of its cost. Drain afterwards.
    pub fn add_path(&mut self, now: Instant, (peer, path): (PeerIndex, PathId), terms: PathTerms) {
        let config = self.config.liveness;
        if let Some(state) = self.peer_mut(peer) {
            state.further.name(now, (path, terms), config);
        }
    }

    /// Takes a further path to a peer away for good, and what the session has there with it.
    pub(super) fn remove_path(&mut self, now: Instant, (index, path): (usize, PathId)) {
        self.whereabouts.forget();
        let Some(state) = self.peers.get_mut(index) else {
            return;
        };
        let (peer, was_open) = (state.index, state.is_open(now));
        let Some(place) = state.further.remove(path) else {
            return;
        };
        if state.further.is_empty() {
            state.liveness.set_one_of_several(false);
        }
        let is_last = was_open && !state.is_open(now);
        if is_last {
            state.further.began_beside_home = false;
        }
        self.inner.part(now, peer.inner_path_in(place));
        self.back_paths(index);
        if is_last {
            self.counters.outages += 1;
            let silent_for = Duration::ZERO;
            self.events
                .push_back(SessionEvent::LinkDown { peer, silent_for });
        }
    }

    /// Probes a further path at once: something was wrong with the way out, and it no longer is. Drain afterwards.
    pub fn try_path(&mut self, now: Instant, peer: PeerIndex, path: PathId) {
        if let Some(state) = self.peer_mut(peer) {
            state.further.try_again(now, path);
        }
    }

    /// The paths to a peer, if there are several, by their places.
    pub fn path_statuses(&self, peer: PeerIndex) -> Vec<PathStatus> {
        let Some(state) = self.peer(peer).filter(|state| !state.further.is_empty()) else {
            return Vec::new();
        };
        let status = |place: PathSlot, (liveness, cost): (&Liveness, u8), is_tried: bool| {
            let outages = liveness.outages(self.now);
            PathStatus {
                place: place.bits(),
                cost,
                inner: peer.inner_path_in(place),
                outer: state.outer_path(place),
                use_now: match liveness.down_for(self.now) {
                    _ if is_tried => PathUse::Tried,
                    Some(down) => PathUse::Down(down),
                    None => PathUse::Up,
                },
                rtt: liveness.rtt(),
                outages: outages.count,
                outage_time: outages.time,
            }
        };
        let home = status(PathSlot::FIRST, (&state.liveness, 0), false);
        let further = state.further.places().filter_map(|place| {
            let one = state.further.get(place)?;
            let of = (&one.liveness, one.terms.cost);
            Some(status(place, of, !one.is_bonded))
        });
        core::iter::once(home).chain(further).collect()
    }

    /// The place of ours for what a peer counted in `theirs`, which came from `origin`. `None`: what is for a further path has no
    /// place here or came by the home, or what is for the home came by a further path. None of these says where the home is, or that it
    /// is up, and no further path moves to the home: a copy of one datagram would take the home away.
    pub(super) fn place_of(
        &mut self,
        now: Instant,
        origin: Origin<'_>,
        (index, theirs, is_newest): (usize, PathSlot, bool),
    ) -> Option<PathSlot> {
        let came = (origin.path, theirs, is_newest);
        let config = self.config.liveness;
        let state = self.peers.get_mut(index)?;
        let is_home = state.path == Some(origin.path) && state.path_proven;
        if theirs == PathSlot::FIRST {
            return (is_home || !state.is_beside(origin.path)).then_some(PathSlot::FIRST);
        }
        if is_home && !state.liveness.is_down() {
            return None;
        }
        let place = state.further.learn(now, came, config)?;
        if state.path == Some(origin.path) && !state.path_proven {
            self.begin_beside_home(now, (index, origin.path), Duration::ZERO);
        }
        let further = self.peers.get(index)?.further.get(place);
        if further.is_some_and(|further| further.wants_question(now)) {
            self.ask_elsewhere(now, (index, place));
        }
        Some(place)
    }

    /// Whether a place is that of a further path to a peer now.
    pub(super) fn has_place(&self, index: usize, place: PathSlot) -> bool {
        let state = self.peers.get(index);
        state.is_some_and(|state| state.further.get(place).is_some())
    }

    /// Asks at the address to which a further path may have moved whether the peer is there.
    fn ask_elsewhere(&mut self, now: Instant, (index, place): (usize, PathSlot)) {
        let Some(state) = self.peers.get_mut(index) else {
            return;
        };
        let id = state.next_probe();
        let Some(further) = state.further.get_mut(place) else {
            return;
        };
        let Some(path) = further.moves_to() else {
            return;
        };
        further.on_question(now, id);
        let probe = Probe {
            id,
            sent_micros: now.as_wrapping_micros(),
            cost: further.terms.cost,
        };
        let (way, probe) = ((index, path, place), Message::Probe(probe));
        // A question to nobody must not raise doubts about the path.
        self.send_message_in(now, way, probe, Wants::Nothing, DataParity::NONE);
    }

    /// Counts a datagram that opened, under our keys `receiver`, on the path that it came by. Returns the path's place.
    pub(super) fn count_arrival(
        &mut self,
        now: Instant,
        origin: Origin<'_>,
        index: usize,
        (receiver, number, is_newest): (u32, Number, bool),
    ) -> Option<PathSlot> {
        let place = self.place_of(now, origin, (index, number.slot, is_newest));
        let state = self.peers.get_mut(index)?;
        let Some((keys, slot)) = state.keys.find(now, receiver) else {
            return place;
        };
        let octets = state.headers.0 + ByteCount::from_usize(origin.octets);
        let local = (keys.local, slot);
        let is_first = place == Some(PathSlot::FIRST);
        // The octets of what was kept count since it was claimed.
        if !origin.is_kept {
            state.path_acks.read_under(keys.numbered(PathSlot::FIRST));
            if is_first {
                (state.path_acks).on_arrived(origin.at, local, number, octets);
            }
        }
        for (one, further) in state.further.iter_mut() {
            further.acks.read_under(keys.numbered(one));
            if Some(one) == place && !origin.is_kept {
                further.acks.on_arrived(origin.at, local, number, octets);
            }
        }
        if origin.ecn == Ecn::Congested
            && !origin.is_kept
            && let Some(acks) = place.and_then(|place| state.acks_in(place))
        {
            acks.on_marked();
        }
        place
    }

    /// Runs the timers of the further paths to a peer whose keys are usable.
    pub(super) fn run_further_paths(&mut self, now: Instant, index: usize) {
        let Some(state) = self.peers.get(index) else {
            return;
        };
        for place in state.further.places() {
            let state = self.peers.get_mut(index);
            let further = state.and_then(|state| state.further.get_mut(place));
            if further.is_some_and(|further| further.wants_probe(now)) {
                self.probe_place(now, index, place);
            }
            while let Some(due) = self.due_in(now, index, place) {
                match due {
                    Due::Heartbeat => {
                        let beat = Message::Heartbeat;
                        if self.send_in(now, (index, place), beat, Wants::Nothing)
                            && let Some(state) = self.peers.get_mut(index)
                        {
                            state.reports.on_sent(now);
                        }
                    }
                    Due::Doubt => self.doubt_path(now, (index, place), true),
                    Due::Probe => self.probe_place(now, index, place),
                    Due::Down(silent_for) => {
                        let change = PathChange::Down(silent_for);
                        self.leave_path(now, (index, place), (change, silent_for));
                    }
                    Due::Unproved(span) => {
                        let change = PathChange::Unproved(span);
                        self.leave_path(now, (index, place), (change, span));
                    }
                }
            }
            self.send_path_ack(now, (index, place));
        }
    }

    fn due_in(&mut self, now: Instant, index: usize, place: PathSlot) -> Option<Due> {
        let further = self.peers.get_mut(index)?.further.get_mut(place)?;
        if further.is_bonded {
            further.liveness.due(now)
        } else {
            None
        }
    }

    fn probe_place(&mut self, now: Instant, index: usize, place: PathSlot) {
        let Some(state) = self.peers.get_mut(index) else {
            return;
        };
        let id = state.next_probe();
        let Some(further) = state.further.get_mut(place) else {
            return;
        };
        further.on_probe(id);
        let probe = Probe {
            id,
            sent_micros: now.as_wrapping_micros(),
            cost: further.terms.cost,
        };
        self.send_in(now, (index, place), Message::Probe(probe), Wants::Answer);
    }

    /// Forgets the further paths to a peer until it agrees to have them anew.
    pub(super) fn part_paths(&mut self, now: Instant, index: usize) {
        let Some(state) = self.peers.get_mut(index) else {
            return;
        };
        let peer = state.index;
        state.liveness.set_one_of_several(false);
        state.liveness.set_backed(false, Duration::ZERO);
        for place in state.further.end() {
            self.inner.part(now, peer.inner_path_in(place));
        }
    }

    fn liveness_in(&mut self, (index, place): (usize, PathSlot)) -> Option<&mut Liveness> {
        let state = self.peers.get_mut(index)?;
        if place == PathSlot::FIRST {
            return Some(&mut state.liveness);
        }
        Some(&mut state.further.get_mut(place)?.liveness)
    }

    /// Tells the machine inside that a path is in doubt, or no longer.
    pub(super) fn doubt_path(
        &mut self,
        now: Instant,
        (index, place): (usize, PathSlot),
        is_doubted: bool,
    ) {
        if let Some(state) = self.peers.get(index) {
            let inside = state.index.inner_path_in(place);
            self.inner.doubt(now, inside, is_doubted);
        }
    }

    /// Notes that the session with a peer began on the further path `path`, after so long a silence of its home: data leaves there, and
    /// the home is down until something comes from it. An answer that the peer sent to this path does not make it the home.
    pub(super) fn begin_beside_home(
        &mut self,
        now: Instant,
        (index, path): (usize, PathId),
        tried_for: Duration,
    ) {
        let Some(state) = self.peers.get_mut(index) else {
            return;
        };
        if state.path == Some(path) && !state.path_proven {
            let elsewhere = |one: &PathId| *one != path;
            state.path = state.config.endpoints.iter().copied().find(elsewhere);
        }
        if !state.liveness.fall_unheard(now) {
            return;
        }
        state.further.began_beside_home = true;
        let (peer, inside) = (state.index, state.index.inner_path());
        self.inner.hold(now, inside, true);
        self.back_paths(index);
        self.say_path(peer, PathSlot::FIRST, PathChange::Down(tried_for));
    }

    /// Notes for each of several paths to a peer whether others carry on, and how long one of them waits for an answer.
    pub(super) fn back_paths(&mut self, index: usize) {
        let Some(state) = self.peers.get_mut(index) else {
            return;
        };
        let is_home_up = !state.liveness.is_down();
        let up = state.further.count_up();
        let longest_rtt = (state.further.longest_rtt()).max(state.liveness.rtt());
        let longest_rtt = longest_rtt.unwrap_or_default();
        state.liveness.set_backed(up > 0, longest_rtt);
        for (_, further) in state.further.iter_mut() {
            let others = up - usize::from(further.is_up());
            let is_backed = is_home_up || others > 0;
            further.liveness.set_backed(is_backed, longest_rtt);
        }
    }

    /// Leaves one of several paths to a peer, which is down: the others carry on, if there are any.
    pub(super) fn leave_path(
        &mut self,
        now: Instant,
        (index, place): (usize, PathSlot),
        (change, silent_for): (PathChange, Duration),
    ) {
        let Some(state) = self.peers.get(index) else {
            return;
        };
        let (peer, inside) = (state.index, state.index.inner_path_in(place));
        let is_last = state.liveness.is_down() && !state.further.is_any_up();
        self.inner.hold(now, inside, true);
        self.back_paths(index);
        self.say_path(peer, place, change);
        if is_last {
            self.counters.outages += 1;
            self.events
                .push_back(SessionEvent::LinkDown { peer, silent_for });
        }
    }

    /// Handles something genuine that came from a peer on the path in a place.
    pub(super) fn on_heard(
        &mut self,
        now: Instant,
        (index, place): (usize, PathSlot),
        wants: Wants,
    ) {
        let Some(state) = self.peers.get_mut(index) else {
            return;
        };
        let was_open = state.is_open(now);
        let liveness = if place == PathSlot::FIRST {
            state.heard_at = Some(now);
            &mut state.liveness
        } else if let Some(further) = state.further.get_mut(place) {
            further.on_heard(now);
            &mut further.liveness
        } else {
            return;
        };
        let heard = liveness.on_heard(now, wants);
        if heard.ends_doubt {
            self.doubt_path(now, (index, place), false);
        }
        if let Some(outage) = heard.outage {
            self.end_outage(now, (index, place), (outage, was_open));
        }
    }

    /// Handles the proof that something arrived that left for a peer on the path in a place.
    pub(super) fn on_path_proved(&mut self, now: Instant, way: (usize, PathSlot)) {
        let Some(state) = self.peers.get(way.0) else {
            return;
        };
        let was_open = state.is_open(now);
        let liveness = self.liveness_in(way);
        if let Some(outage) = liveness.and_then(|liveness| liveness.on_proved(now)) {
            self.end_outage(now, way, (outage, was_open));
        }
    }

    pub(super) fn end_outage(
        &mut self,
        now: Instant,
        (index, place): (usize, PathSlot),
        (outage, was_open): (Duration, bool),
    ) {
        self.back_paths(index);
        let Some(state) = self.peers.get_mut(index) else {
            return;
        };
        let peer = state.index;
        if place == PathSlot::FIRST {
            state.mtu.on_new_path(now);
        }
        let (several, is_open) = (!state.further.is_empty(), state.is_open(now));
        let was_told = !core::mem::take(&mut state.further.began_beside_home);
        if several {
            self.inner.hold(now, peer.inner_path_in(place), false);
            self.say_path(peer, place, PathChange::Up(outage));
        }
        if !several || (!was_open && is_open && was_told) {
            self.counters.outage_time += outage;
            self.events.push_back(SessionEvent::LinkUp { peer, outage });
        }
    }

    fn say_path(&mut self, peer: PeerIndex, place: PathSlot, change: PathChange) {
        let place = place.bits();
        let event = SessionEvent::Path {
            peer,
            place,
            change,
        };
        self.events.push_back(event);
    }

    /// Handles the answer to a probe on a further path: it carries packets both ways, and this is its round trip.
    pub(super) fn on_place_answered(
        &mut self,
        now: Instant,
        (index, place): (usize, PathSlot),
        (id, sample): (u32, Duration),
    ) {
        let Some(state) = self.peers.get_mut(index) else {
            return;
        };
        let peer = state.index;
        let Some(sizes) = self.sizes(peer) else {
            return;
        };
        let Some(state) = self.peers.get_mut(index) else {
            return;
        };
        let sizes = PathSizes {
            tpdu_bytes_max: sizes.payload.as_usize(),
            lower_overhead: sizes.overhead(),
        };
        let Some(further) = state.further.get_mut(place) else {
            return;
        };
        if !further.on_answer(id) {
            return;
        }
        further.liveness.on_rtt_sample(sample);
        if further.is_bonded {
            self.back_paths(index);
            return;
        }
        let (home, inside) = (peer.inner_path(), peer.inner_path_in(place));
        let ways = further.acks.ways();
        let PathTerms { rate, cost } = further.terms;
        let was_open = (self.peers.get(index)).is_some_and(|state| state.is_open(now));
        self.inner.number_path(now, inside, ways);
        let is_set = self.inner.set_path_sizes(now, inside, sizes).is_ok();
        let home_round_trip = (self.peers.get(index)).and_then(|state| state.liveness.rtt());
        let facts = PathFacts {
            round_trip: sample,
            home_round_trip,
            rate,
            cost,
        };
        let is_bonded = is_set && self.inner.bond(now, home, inside, facts);
        if let Some(state) = self.peers.get_mut(index)
            && let Some(further) = state.further.get_mut(place)
            && is_bonded
        {
            further.is_bonded = true;
            // An answer that was under way when the link told that it is down.
            if further.liveness.is_down() {
                self.inner.hold(now, inside, true);
            }
            state.liveness.set_one_of_several(true);
            let outage = state.liveness.down_since();
            let was_told = !core::mem::take(&mut state.further.began_beside_home);
            self.back_paths(index);
            self.say_path(peer, place, PathChange::Found);
            if let Some(since) = outage.filter(|_| !was_open && was_told) {
                let outage = now.saturating_since(since);
                self.counters.outage_time += outage;
                self.events.push_back(SessionEvent::LinkUp { peer, outage });
            }
        }
    }

    /// Answers a probe that came on a further path, and takes the peer's word of what that costs.
    pub(super) fn on_place_probed(
        &mut self,
        now: Instant,
        (index, place): (usize, PathSlot),
        from: PathId,
        probe: Probe,
    ) {
        let reply = Message::ProbeReply(Probe { cost: 0, ..probe });
        let way = (index, from, place);
        self.send_message_in(now, way, reply, Wants::Nothing, DataParity::NONE);
        let Some(state) = self.peers.get_mut(index) else {
            return;
        };
        let peer = state.index;
        let Some(further) = state.further.get_mut(place) else {
            return;
        };
        if further.hear_cost(probe.cost) && further.is_bonded {
            let facts = PathFacts {
                round_trip: further.liveness.rtt().unwrap_or_default(),
                home_round_trip: None,
                rate: further.terms.rate,
                cost: further.terms.cost,
            };
            let (home, inside) = (peer.inner_path(), peer.inner_path_in(place));
            self.inner.bond(now, home, inside, facts);
        }
    }

    /// Seals and queues a message for a further path to a peer.
    pub(super) fn send_in(
        &mut self,
        now: Instant,
        (peer, place): (usize, PathSlot),
        message: Message<'_>,
        wants: Wants,
    ) -> bool {
        let state = self.peers.get(peer);
        let further = state.and_then(|state| state.further.get(place));
        let Some(path) = further.map(|further| further.path) else {
            return false;
        };
        let way = (peer, path, place);
        self.send_message_in(now, way, message, wants, DataParity::NONE)
    }

    /// The outer path and the place by which the session's own messages to a peer leave: the first while it is up, unless another
    /// that costs nothing was heard after the first had fallen silent. What tells of the other's arrivals would be lost on it.
    pub(super) fn own_way(&self, peer: usize) -> Option<(PathId, PathSlot)> {
        let state = self.peers.get(peer)?;
        let silent_after = QUIET_MIN.max(state.liveness.rtt().unwrap_or_default() * 3 / 2);
        let is_livelier = |place: &PathSlot| {
            let heard = state
                .further
                .get(*place)
                // A slow first path is silent for long by itself.
                .filter(|one| state.liveness.rtt() <= one.liveness.rtt().map(|rtt| rtt * 2))
                .filter(|one| one.terms.cost == 0)
                .and_then(|one| one.heard_at);
            heard > state.heard_at.map(|at| at + silent_after)
        };
        let quickest = state.further.quickest();
        let is_home_up = state.path.is_some() && !state.liveness.is_down();
        let quickest = quickest.filter(|place| !is_home_up || is_livelier(place));
        let other = quickest.and_then(|place| Some((state.further.get(place)?.path, place)));
        other.or_else(|| Some((state.path?, PathSlot::FIRST)))
    }
}
