//! The timers of a session: handshakes, silence, small reports, sizes, and the inner machine's own.

use super::Session;
use super::departures::SIZE_PROBE;
use crate::session::event::{PathChange, SessionEvent};
use crate::session::further_path::FurtherPath;
use crate::session::path_acks::WayBack;
use crate::session::path_slot::PathSlot;
use crate::session::wire::{
    ARRIVAL_MAP_BYTES, DAMAGE_REPORT_BYTES, MAP_BYTES_MAX, MESSAGE_TYPE_BYTES, Message,
    PATH_ACK_BYTES, Probe,
};
use fulmar_proto::liveness::{Due, Wants};
use fulmar_proto::machine::{Carried, Deadline};
use fulmar_proto::units::{ByteCount, Instant};

impl<M: Carried> Session<M> {
    /// Runs the timers that are due at `now` for every peer.
    pub(super) fn run_timers(&mut self, now: Instant) {
        self.timers_ran = Some(now);
        for index in 0..self.peers.len() {
            self.run_timers_of(now, index);
            self.run_meeting(now, index);
        }
    }

    fn run_timers_of(&mut self, now: Instant, index: usize) {
        let Some(state) = self.peers.get_mut(index) else {
            return;
        };
        if state.keys.expires_at().is_some_and(|at| at <= now) {
            self.forget_keys(now, index);
        }
        if self
            .peers
            .get(index)
            .is_some_and(|state| state.wants_initiation(now))
        {
            self.initiate(now, index);
        }
        while let Some(state) = self.peers.get_mut(index) {
            if !state.keys.is_usable(now) {
                return;
            }
            match state.liveness.due(now) {
                None => break,
                Some(Due::Heartbeat) => {
                    if self.send_message(now, index, Message::Heartbeat, Wants::Nothing)
                        && let Some(state) = self.peers.get_mut(index)
                    {
                        state.reports.on_sent(now);
                    }
                }
                Some(Due::Doubt) => self.doubt_path(now, (index, PathSlot::FIRST), true),
                Some(Due::Probe) => {
                    state.mtu.on_silence(now);
                    self.send_probe(now, index);
                }
                Some(Due::Down(silent_for)) => {
                    let (peer, is_one_of_several) = (state.index, !state.further.is_empty());
                    let choice = state.checksum.as_mut();
                    let decision = choice.and_then(|choice| choice.on_down(now));
                    if is_one_of_several {
                        let change = PathChange::Down(silent_for);
                        self.leave_path(now, (index, PathSlot::FIRST), (change, silent_for));
                    } else {
                        self.counters.outages += 1;
                        self.events
                            .push_back(SessionEvent::LinkDown { peer, silent_for });
                    }
                    self.take_decision(index, decision);
                }
                Some(Due::Unproved(span)) => {
                    // Perhaps the way there drops what has no checksum.
                    let choice = state.checksum.as_mut();
                    let decision = choice.and_then(|choice| choice.on_down(now));
                    let change = PathChange::Unproved(span);
                    self.leave_path(now, (index, PathSlot::FIRST), (change, span));
                    self.take_decision(index, decision);
                }
            }
        }
        self.run_further_paths(now, index);
        if let Some(state) = self.peers.get_mut(index) {
            state.later.forget_old(now);
        }
        self.try_size(now, index);
        self.try_unchecked(now, index);
        self.send_path_ack(now, (index, PathSlot::FIRST));
        self.send_damage_report(now, index);
        self.send_arrival_map(now, index);
        let open = self.peers.get_mut(index).filter(|peer| peer.is_open(now));
        if let Some(state) = open
            && state.reports.take_due(now)
        {
            let due = SessionEvent::ReportDue(state.index);
            self.events.push_back(due);
        }
    }

    /// The way back to a peer on the path in a place, for a word on its datagrams that is due; `None` if none is, or it cannot leave.
    pub(super) fn way_back(
        &mut self,
        now: Instant,
        (index, place): (usize, PathSlot),
        is_due: bool,
    ) -> Option<WayBack> {
        let state = self.peers.get_mut(index).filter(|_| is_due)?;
        if !state.is_open(now) {
            return None;
        }
        let further = state.further.get(place).map(|one| one.liveness.rtt());
        Some(WayBack {
            keys: state.keys.current(now)?.local,
            rate: self.inner.rate_of(state.index.inner_path_in(place)),
            round_trip: further.unwrap_or_else(|| state.liveness.rtt()),
        })
    }

    /// The octets of a word on a peer's datagrams with all around it.
    fn octets_of_word(&self, index: usize, fields: usize) -> ByteCount {
        let state = self.peers.get(index);
        state.map_or(ByteCount::ZERO, |state| {
            state.octets_of_own(MESSAGE_TYPE_BYTES + fields)
        })
    }

    /// Sends a word on a peer's datagrams. It leaves ahead of the inner machine's datagrams.
    pub(super) fn send_word(
        &mut self,
        now: Instant,
        index: usize,
        word: Message<'_>,
        fields: usize,
    ) {
        let octets = self.octets_of_word(index, fields);
        if self.send_message(now, index, word, Wants::Nothing) {
            self.note_sent_beside(now, index, octets);
        }
    }

    /// Whether path acks about a further path leave there: while it is up and quicker than the home. By a slow home each step of the
    /// search for its rate would take the home's time. A path that is as quick is none: the way would change with each queue, and
    /// the round trip that acks show with it.
    fn answers_on(&self, index: usize, place: PathSlot) -> bool {
        let Some(state) = self.peers.get(index) else {
            return false;
        };
        let is_quicker = |one: &FurtherPath| {
            let rtt = one.liveness.rtt().unwrap_or_default();
            one.is_up() && one.terms.cost == 0 && state.liveness.rtt() > Some(rtt * 3 / 2)
        };
        state.further.get(place).is_some_and(is_quicker)
    }

    /// Tells a peer what arrived of its datagrams on one path, if that is due.
    pub(super) fn send_path_ack(&mut self, now: Instant, (index, place): (usize, PathSlot)) {
        let acks = self
            .peers
            .get_mut(index)
            .and_then(|state| state.acks_in(place));
        let is_due = acks.is_some_and(|acks| acks.is_due(now));
        let answers_there = self.answers_on(index, place);
        let leaves_in = if answers_there {
            place
        } else {
            PathSlot::FIRST
        };
        let Some(way) = self.way_back(now, (index, leaves_in), is_due) else {
            return;
        };
        let acks = self
            .peers
            .get_mut(index)
            .and_then(|state| state.acks_in(place));
        if let Some(ack) = acks.and_then(|acks| acks.take(now, way)) {
            let word = Message::PathAck(ack);
            if answers_there {
                let octets = self.octets_of_word(index, PATH_ACK_BYTES);
                let inside = self
                    .peers
                    .get(index)
                    .map(|state| state.index.inner_path_in(place));
                if self.send_in(now, (index, place), word, Wants::Nothing)
                    && let Some(path) = inside
                {
                    self.inner.on_sent_below(now, path, octets);
                }
            } else {
                self.send_word(now, index, word, PATH_ACK_BYTES);
            }
        }
    }

    /// Tells a peer what became of its armoured datagrams, if that is due.
    pub(super) fn send_damage_report(&mut self, now: Instant, index: usize) {
        let state = self.peers.get(index);
        let is_due = state.is_some_and(|state| state.damage.is_due(now));
        let Some(way) = self.way_back(now, (index, PathSlot::FIRST), is_due) else {
            return;
        };
        let mut claims = Vec::new();
        if let Some(state) = self.peers.get_mut(index) {
            let report = state.damage.take(now, way, &mut claims);
            let fields = DAMAGE_REPORT_BYTES + report.claims.len();
            self.send_word(now, index, Message::DamageReport(report), fields);
        }
    }

    /// Tells a peer which of its datagrams arrived, if that is due.
    fn send_arrival_map(&mut self, now: Instant, index: usize) {
        let is_due = self
            .peers
            .get(index)
            .is_some_and(|state| state.maps.is_due(now));
        let Some(way) = self.way_back(now, (index, PathSlot::FIRST), is_due) else {
            return;
        };
        let Some(state) = self.peers.get_mut(index) else {
            return;
        };
        state.maps.on_told(way);
        let before = state.maps.take_before();
        for keys in before.into_iter().flatten().chain([way.keys]) {
            let mut bits = [0; MAP_BYTES_MAX];
            if let Some(state) = self.peers.get_mut(index)
                && let Some(keys) = state.keys.arrived_under(keys)
                && let Some(map) = state.maps.take(keys, &mut bits)
            {
                let fields = ARRIVAL_MAP_BYTES + map.bits.len();
                self.send_word(now, index, Message::ArrivalMap(map), fields);
            }
        }
    }

    /// Tries a size of packets, if that is due.
    fn try_size(&mut self, now: Instant, index: usize) {
        let finds_rate = self.finds_rate(index).unwrap_or_default();
        let state = self.peers.get_mut(index);
        let Some(state) = state.filter(|peer| peer.tries_sizes(now)) else {
            return;
        };
        let rtt = state.liveness.rtt();
        let (Some(path), Some(due)) = (state.path, state.mtu.due(now, rtt, finds_rate)) else {
            return;
        };
        // A size is that of a datagram with the parity of a full one.
        let fec = state.protection.parity();
        let path = state.way(path, fec.is_armoured);
        let known = due.known.map(|known| (due.id.wrapping_add(1), known));
        for (id, packet) in [(due.id, due.packet)].into_iter().chain(known) {
            let probe = Message::Probe(Probe {
                id: SIZE_PROBE | id,
                sent_micros: now.as_wrapping_micros(),
                cost: 0,
            });
            self.send_padded(now, (index, path), probe, packet, fec);
            self.note_sent_beside(now, index, packet);
        }
    }

    /// Counts towards a peer's rate the octets of a datagram that left without the inner machine.
    pub(super) fn note_sent_beside(&mut self, now: Instant, index: usize, octets: ByteCount) {
        if let Some(peer) = self.peers.get(index).map(|state| state.index) {
            self.inner.on_sent_below(now, peer.inner_path(), octets);
        }
    }

    /// Tells the application the sizes of what goes to a peer.
    pub(super) fn say_sizes(&mut self, index: usize) {
        if let Some(state) = self.peers.get_mut(index) {
            let layout = state.protected_layout();
            state.protection.fit(layout);
        }
        if let Some(state) = self.peers.get(index) {
            let (peer, sizes) = (state.index, self.sizes_of(state));
            self.events
                .push_back(SessionEvent::MtuChanged { peer, sizes });
        }
    }

    /// Tells the inner machine the sizes of what goes to a peer with other parity.
    pub(super) fn say_parity(&mut self, index: usize) {
        if let Some(state) = self.peers.get(index) {
            let (peer, sizes) = (state.index, self.sizes_of(state));
            self.events
                .push_back(SessionEvent::ParityChanged { peer, sizes });
        }
    }

    /// Gives the inner machine its deadline. While nothing can be sent, its wish to send would be a
    /// deadline that never moves, so it is woken at the pace of probes.
    pub(super) fn wake_inner(&mut self, now: Instant) {
        if self
            .inner_deadline()
            .is_some_and(|deadline| deadline.at <= now)
        {
            self.inner_woken = now;
            self.inner.handle_deadline(now);
        }
    }

    pub(super) fn inner_deadline(&self) -> Option<Deadline> {
        let deadline = self.inner.next_deadline()?;
        if self.is_any_open(self.now) {
            return Some(deadline);
        }
        let next = self.inner_woken + self.config.liveness.probe_interval;
        Some(Deadline {
            at: deadline.at.max(next),
            why: deadline.why,
        })
    }
}
