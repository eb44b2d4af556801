//! The order in which connections send on a path: one rate budget, strict priorities, fair shares
//! within one.
//!
//! Within a priority the classes share the rate by their weights (deficit round robin; Shreedhar,
//! Varghese 1996), and the connections of a class take turns. TPDUs that nobody waits for, such as
//! precautionary repetitions, leave when nothing else would.

use super::config::Share;
use super::connection::RateSign;
use super::event::ConnectionId;
use super::path_answers::PathAnswers;
use super::path_control::PathControl;
use super::rate_source::RateSource;
use crate::damage::{LengthFollower, LossCauses};
use crate::machine::{AckedWays, Deadline, PathAck, Priority, Sealed};
use crate::told::ToldFacts;
use crate::transport::parts::{LinkReport, Pacer};
use crate::units::{Bitrate, ByteCount, Duration, Instant};
use crate::wire::aerotp::{FecStrength, PathReport};
use core::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};

/// The octets that a class of weight 1 may send in one turn: a packet of the usual size.
const QUANTUM_BYTES: i64 = 1500;

/// The least time between reports on a path.
const REPORT_GAP: Duration = Duration::from_millis(10);
/// The datagrams after a silence each of which is reported, where the rate is found: the first search lives on them, of what leaves before its
/// train to the proof of that.
const REPORTED_EACH: u32 = 64;
/// The silence after which they are counted anew.
const REPORTED_AFTER: Duration = Duration::from_secs(1);

/// One path's budget and its queues of connections that have something to send.
#[derive(Debug)]
pub(super) struct PathSchedule {
    pub(super) pacer: Pacer,
    pub(super) control_of_rate: PathControl,
    answers: PathAnswers,
    /// The length of packets of data.
    pub(super) lengths: LengthFollower,
    /// The causes of loss.
    pub(super) causes: LossCauses,
    /// Octets that have arrived, headers of the layers below included.
    arrived: u64,
    /// The time of the last arrival, and the datagrams that are still to be reported one by one.
    arrived_at: Option<Instant>,
    reported_each: u32,
    pub(super) reported_at: Option<Instant>,
    /// Whether the remote is told of arrivals although nothing else may be due to it.
    reports_often: bool,
    /// Whether the session tells it, and acknowledgements need not.
    told_by_session: bool,
    /// The strength last seen on this path, to correct damaged headers with.
    pub(super) strength_seen: FecStrength,
    /// The round trip as path acks show it, smoothed.
    round_trip: Option<Duration>,
    pub(super) connections: usize,
    /// Connections with control to send.
    pub(super) control: VecDeque<ConnectionId>,
    ready: BTreeMap<Reverse<Priority>, Level>,
    /// Connections whose data only fills time that would be idle.
    spare: VecDeque<ConnectionId>,
    waiting: usize,
    /// Octets written to connections and not yet sent.
    pub(super) unsent: u64,
}

/// The classes of one priority that have, or just had, something to send.
#[derive(Debug, Default)]
struct Level {
    turns: VecDeque<u8>,
    classes: BTreeMap<u8, Class>,
}

#[derive(Debug)]
struct Class {
    quantum: i64,
    /// Octets that the class may still send in this turn; negative after sending more.
    credit: i64,
    waiting: VecDeque<ConnectionId>,
}

impl PathSchedule {
    pub(super) fn new(pacer: Pacer, control_of_rate: PathControl, reports_often: bool) -> Self {
        Self {
            pacer,
            control_of_rate,
            answers: PathAnswers::default(),
            lengths: LengthFollower::default(),
            causes: LossCauses::default(),
            arrived: 0,
            arrived_at: None,
            reported_each: 0,
            reported_at: None,
            reports_often,
            told_by_session: false,
            strength_seen: FecStrength::NONE,
            round_trip: None,
            connections: 0,
            control: VecDeque::new(),
            ready: BTreeMap::new(),
            spare: VecDeque::new(),
            waiting: 0,
            unsent: 0,
        }
    }

    /// Counts a datagram that left.
    pub(super) fn on_sent(&mut self, now: Instant, octets: usize) {
        self.pacer.on_sent(now, octets);
        if let PathControl::Told(told) = &mut self.control_of_rate {
            told.on_sent(now, self.pacer.wire_bytes(octets));
        }
    }

    /// Notes a datagram that left, whether it was control, and the octets of data that wait behind it.
    pub(super) fn on_left(
        &mut self,
        now: Instant,
        octets: usize,
        (control, waiting): (bool, ByteCount),
    ) {
        let wire = self.pacer.wire_bytes(octets);
        self.answers.on_sent(now, wire, control);
        if self.control_of_rate.is_numbered() {
            return;
        }
        if let PathControl::Found(found) = &mut self.control_of_rate {
            found.on_sent(now, wire, control, waiting);
        }
    }

    /// Notes that control with a time of its own left, which the remote echoes as it does that of data.
    pub(super) fn on_stamped(&mut self, now: Instant) {
        self.answers.on_stamped(now);
    }

    /// Counts a datagram that arrived.
    pub(super) fn on_arrived(&mut self, now: Instant, octets: usize) {
        let wire = self.pacer.wire_bytes(octets);
        self.answers.on_arrived(now, wire);
        self.arrived += wire.0;
        if self.reports_often() {
            let silent = |at: Instant| now.saturating_since(at) > REPORTED_AFTER;
            self.reported_each = if self.arrived_at.is_none_or(silent) {
                REPORTED_EACH
            } else {
                self.reported_each.saturating_sub(1)
            };
            self.arrived_at = Some(now);
        }
    }

    /// Sets who tells what arrives of numbered datagrams.
    pub(super) fn set_acked(&mut self, ways: AckedWays) {
        self.told_by_session = ways.back;
        self.causes.set_told(ways.mapped);
        match &mut self.control_of_rate {
            PathControl::Told(told) => told.set_numbered(ways.out),
            PathControl::Found(found) => found.set_numbered(ways.out),
        }
    }

    /// Sets the way in which the rate is known.
    pub(super) fn set_source(
        &mut self,
        now: Instant,
        source: RateSource,
        (packet, ways, told): (ByteCount, AckedWays, ToldFacts),
        rtt: Option<Duration>,
    ) {
        match (&mut self.control_of_rate, source) {
            (PathControl::Told(told), RateSource::Told(rate)) => {
                let report = LinkReport {
                    available: Some(rate),
                    ..LinkReport::default()
                };
                told.on_link_report(now, report, rtt);
            }
            (PathControl::Found(found), RateSource::Found { bound, sharing, .. }) => {
                found.follow(bound, sharing);
            }
            (control, source) => {
                *control = PathControl::new(source, packet);
                self.set_acked(ways);
                let told = ToldFacts {
                    queue: None,
                    ..told
                };
                self.control_of_rate.take_told(now, &told, rtt);
            }
        }
        self.update_rate(now);
    }

    /// Takes what the link tells of itself.
    pub(super) fn take_told(&mut self, now: Instant, told: &ToldFacts, rtt: Option<Duration>) {
        self.control_of_rate.take_told(now, told, rtt);
        self.lengths.guess(told.bit_errors);
        self.update_rate(now);
    }

    /// Counts a datagram that leaves on a numbered path, behind which so many octets of data wait.
    pub(super) fn on_sealed(
        &mut self,
        now: Instant,
        sealed: Sealed,
        wire: ByteCount,
        waiting: ByteCount,
    ) {
        self.answers.on_sealed(now, sealed, wire);
        match &mut self.control_of_rate {
            PathControl::Told(told) => told.on_sealed(now, sealed.number, wire),
            PathControl::Found(found) => found.on_sealed(now, sealed, wire, waiting),
        }
    }

    /// Counts octets that the path carried although they could not be used.
    pub(super) fn on_damaged(&mut self, wire: ByteCount) {
        if let PathControl::Found(found) = &mut self.control_of_rate {
            found.on_damaged(wire);
        }
    }

    /// Takes what the peer tells of a numbered path. Returns whether the told rate turned out to be wrong just now.
    pub(super) fn on_path_ack(
        &mut self,
        now: Instant,
        ack: &PathAck,
        rtt: Option<Duration>,
    ) -> bool {
        if let Some(sample) = self.answers.on_path_ack(now, ack) {
            let before = self.round_trip.unwrap_or(sample);
            self.round_trip = Some(before * 7 / 8 + sample / 8);
        }
        let turned_out_wrong = match &mut self.control_of_rate {
            PathControl::Told(told) => told.on_path_ack(now, ack, rtt),
            PathControl::Found(found) => {
                found.on_path_ack(now, ack);
                false
            }
        };
        self.update_rate(now);
        turned_out_wrong
    }

    /// The round trip as the answers to numbered datagrams show it.
    pub(super) const fn round_trip(&self) -> Option<Duration> {
        self.round_trip
    }

    /// The rate that was told, or as far as it was seen.
    pub(super) fn rate_seen(&self) -> Option<Bitrate> {
        let rate = match &self.control_of_rate {
            PathControl::Found(found) => found.seen(),
            PathControl::Told(_) => Some(self.pacer.rate()),
        };
        let carried = self.answers.carried();
        [rate, carried].into_iter().flatten().min()
    }

    /// The rate that was told, or that was found once something was heard.
    pub(super) fn rate(&self) -> Option<Bitrate> {
        let rate = match &self.control_of_rate {
            PathControl::Found(found) => found.rate(),
            PathControl::Told(_) => Some(self.pacer.rate()),
        };
        let carried = self.answers.carried();
        [rate, carried].into_iter().flatten().min()
    }

    /// The most that the path may carry.
    pub(super) fn rate_hoped(&self) -> Option<Bitrate> {
        match &self.control_of_rate {
            PathControl::Found(found) => found.hoped(),
            PathControl::Told(_) => Some(self.pacer.rate()),
        }
    }

    /// Takes the signs of an answer. Returns whether the told rate turned out to be wrong just now.
    pub(super) fn on_sign(
        &mut self,
        now: Instant,
        mut sign: RateSign,
        rtt: Option<Duration>,
    ) -> bool {
        sign.report = (sign.report).filter(|report| !self.answers.takes_report(now, report));
        self.control_of_rate.on_sign(now, sign, rtt)
    }

    /// Notes that a TPDU arrived that holds data, with so many octets behind its header.
    pub(super) fn on_data(&mut self, now: Instant, octets: usize) {
        let wire = self.pacer.wire_bytes(octets);
        self.answers.on_data(now, wire);
    }

    /// Takes the clock of an answer. Returns whether the remote should hear that a queue of its answers stands.
    pub(super) fn sees_queue_of_answers(&mut self, now: Instant, clock: u32) -> bool {
        self.answers.sees_queue(now, clock) && !self.told_by_session
    }

    /// The octets that an answer may have, if the way back carries little.
    pub(super) fn answer_bytes_max(&self) -> Option<usize> {
        self.answers.bytes_max()
    }

    /// Whether control may leave: as the rate allows, and the way back carries answers.
    pub(super) fn allows_control(&self, now: Instant) -> bool {
        self.pacer.allows_control(now) && self.answers.allows(now)
    }

    /// The time to ask again after [`PathSchedule::allows_control`] said no.
    pub(super) fn control_at(&self) -> Instant {
        self.pacer.control_at().max(self.answers.next_at())
    }

    /// Counts `wire` octets that the layer below sent of its own.
    pub(super) fn on_sent_below(&mut self, now: Instant, wire: ByteCount) {
        self.pacer.on_sent_below(now, wire);
        if wire > ByteCount::ZERO {
            self.causes.note_beside(now);
        }
        self.answers.on_sent_below(now, wire);
    }

    /// Forgets what a peer said that has restarted: it counts anew.
    pub(super) fn forget_peer(&mut self) {
        if let PathControl::Found(found) = &mut self.control_of_rate {
            found.begin_again();
        }
    }

    /// Whether the peer should be told of what just arrived, although nothing else may be due to it.
    pub(super) fn owes_report(&self, now: Instant) -> bool {
        self.reports_often() && self.report(now).is_some()
    }

    /// Whether the remote is told often: it may want to find its rate, as this end does.
    const fn reports_often(&self) -> bool {
        self.reports_often || self.control_of_rate.is_found()
    }

    /// Sets the pace that the layer below, marks and the link's own behaviour allow.
    pub(super) fn update_rate(&mut self, now: Instant) {
        self.pacer.set_rate(self.control_of_rate.pace(now));
    }

    /// Whether data may leave at `now`.
    pub(super) fn allows(&mut self, now: Instant) -> bool {
        let PathControl::Found(found) = &mut self.control_of_rate else {
            let allows = self.pacer.allows(now);
            if !allows {
                self.pacer.on_refused();
            }
            return allows;
        };
        if !found.has_room(now) {
            // Time without room for more earns no credit.
            self.pacer.on_idle();
            return false;
        }
        // Who finds the link's rate keeps its queue at a datagram or so. In a short one there is no room for two that leave together.
        let is_slow = !self.pacer.has_burst_of(found.packet());
        let allows = if found.is_first_train() || is_slow {
            self.pacer.next_at() <= now
        } else {
            self.pacer.allows(now)
        };
        if !allows {
            self.pacer.on_refused();
        }
        allows
    }

    /// The time to ask again after [`PathSchedule::allows`] said no.
    pub(super) fn next_at(&self) -> Deadline {
        let pacing = Deadline {
            at: self.pacer.next_at(),
            why: "pacing",
        };
        match &self.control_of_rate {
            PathControl::Told(_) => pacing,
            PathControl::Found(found) => found.blocked_until().unwrap_or(pacing),
        }
    }

    /// The report to the peer on the arrival of its octets, if one is due.
    pub(super) fn report(&self, now: Instant) -> Option<PathReport> {
        let recent = |at: Instant| now.saturating_since(at) < REPORT_GAP;
        let waits = self.reported_each == 0 && self.reported_at.is_some_and(recent);
        if self.arrived == 0 || waits || self.told_by_session {
            return None;
        }
        let modulo = self.arrived % (1 << 32);
        Some(PathReport {
            arrived: u32::try_from(modulo).unwrap_or_default(),
            clock: now.as_wrapping_micros(),
        })
    }

    /// Puts a connection at the end of its class's queue.
    pub(super) fn enqueue(&mut self, priority: Priority, share: Share, id: ConnectionId) {
        let level = self.ready.entry(Reverse(priority)).or_default();
        let quantum = QUANTUM_BYTES * i64::from(share.weight.max(1));
        let class = level.classes.entry(share.class).or_insert_with(|| {
            level.turns.push_back(share.class);
            Class {
                quantum,
                credit: quantum,
                waiting: VecDeque::new(),
            }
        });
        class.quantum = quantum;
        class.waiting.push_back(id);
        self.waiting += 1;
    }

    /// Puts a connection whose turn came too early at the head of its class's queue again.
    pub(super) fn put_back(&mut self, priority: Priority, share: Share, id: ConnectionId) {
        self.enqueue(priority, share, id);
        let level = self.ready.get_mut(&Reverse(priority));
        if let Some(class) = level.and_then(|level| level.classes.get_mut(&share.class)) {
            class.waiting.rotate_right(1);
        }
    }

    /// Puts a connection among those that send when nothing else waits.
    pub(super) fn enqueue_spare(&mut self, id: ConnectionId) {
        self.spare.push_back(id);
    }

    /// Notes that the unsent octets of a connection were `before` and are `after`.
    pub(super) const fn note_unsent(&mut self, before: u64, after: u64) {
        // A path that begins anew under its connections has none of theirs.
        self.unsent = self.unsent.saturating_sub(before).saturating_add(after);
    }

    /// The octets of data that wait to be sent, at least: of messages and repetitions one.
    pub(super) fn waiting_octets(&self) -> ByteCount {
        if self.is_empty() {
            ByteCount::ZERO
        } else {
            ByteCount(self.unsent.max(1))
        }
    }

    /// Whether nothing but control waits to be sent.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting == 0 && self.spare.is_empty()
    }

    /// Removes all connections from the queues.
    pub(super) fn clear(&mut self) {
        self.control.clear();
        self.ready.clear();
        self.spare.clear();
        self.waiting = 0;
    }

    /// Takes the connection whose turn it is.
    pub(super) fn next(&mut self) -> Option<ConnectionId> {
        while let Some(mut entry) = self.ready.first_entry() {
            if let Some(id) = entry.get_mut().next() {
                self.waiting -= 1;
                return Some(id);
            }
            entry.remove();
        }
        None
    }

    /// Takes the connection whose turn it is while nothing else waits.
    pub(super) fn next_spare(&mut self) -> Option<ConnectionId> {
        self.spare.pop_front()
    }

    /// Counts `octets` of the connection that [`PathSchedule::next`] returned.
    pub(super) fn charge(&mut self, priority: Priority, share: Share, octets: usize) {
        let level = self.ready.get_mut(&Reverse(priority));
        if let Some(class) = level.and_then(|level| level.classes.get_mut(&share.class)) {
            class.credit -= i64::try_from(octets).unwrap_or(i64::MAX / 2);
        }
    }
}

impl Level {
    fn next(&mut self) -> Option<ConnectionId> {
        while let Some(&number) = self.turns.front() {
            let class = self.classes.get_mut(&number)?;
            if class.waiting.is_empty() {
                self.turns.pop_front();
                self.classes.remove(&number);
            } else if class.credit <= 0 {
                class.credit += class.quantum;
                self.turns.rotate_left(1);
            } else {
                return class.waiting.pop_front();
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::SealedContent;
    use crate::rate::RateSharing;
    use crate::transport::aerotp::RateSource;
    use crate::units::{Bitrate, ByteCount};

    fn schedule() -> PathSchedule {
        let rate = Bitrate::from_bits_per_second(1);
        let pacer = Pacer::new(rate, Duration::ZERO, ByteCount::ZERO);
        PathSchedule::new(
            pacer,
            PathControl::new(RateSource::Told(rate), ByteCount(1500)),
            false,
        )
    }

    /// Whether a full datagram may leave a bit before its time, 1 us before it and at it, behind another one at `mbit`, once the
    /// first train is told of. The burst allows half a millisecond.
    fn leaves_early(mbit: u64) -> [bool; 3] {
        let packet = ByteCount(1500);
        let rate = Bitrate::from_bits_per_second(mbit * 1_000_000);
        let source = RateSource::Found {
            bound: Some(rate),
            first: Some(rate),
            sharing: RateSharing::Own,
        };
        let pacer = Pacer::new(rate, Duration::from_micros(500), ByteCount::ZERO);
        let mut schedule = PathSchedule::new(pacer, PathControl::new(source, packet), false);
        schedule.set_acked(AckedWays {
            out: true,
            ..AckedWays::default()
        });
        let mut now = Instant::START + Duration::from_secs(1);
        for number in 0..10 {
            let content = SealedContent::Data;
            schedule.on_sealed(now, Sealed { number, content }, packet, packet);
            now += rate.time_to_send(packet);
        }
        let PathControl::Found(found) = &mut schedule.control_of_rate else {
            unreachable!("it is found");
        };
        for newest in 8..10 {
            found.on_path_ack(
                now,
                &PathAck {
                    newest,
                    hold: Duration::ZERO,
                    clock: now.as_wrapping_micros(),
                    octets: u32::try_from((newest + 1) * packet.0).expect("few"),
                    marks: 0,
                },
            );
            now += rate.time_to_send(packet);
        }
        assert!(!found.is_first_train(), "it is told of");
        schedule.update_rate(now);
        assert!(schedule.allows(now));
        schedule.on_sent(now, 1500);
        let due = schedule.pacer.next_at();
        let early = [400, 1, 0].map(|micros| due - Duration::from_micros(micros));
        early.map(|at| schedule.allows(at))
    }

    #[test]
    fn where_the_rate_is_found_nothing_leaves_early_that_takes_longer_than_a_burst() {
        assert_eq!(leaves_early(10), [false, false, true]);
        assert_eq!(leaves_early(200), [true; 3]);
    }

    #[test]
    fn the_higher_priority_goes_first_and_equals_take_turns() {
        let mut schedule = schedule();
        for (priority, id) in [(0, 1), (0, 2), (7, 3), (7, 4)] {
            schedule.enqueue(Priority(priority), Share::default(), ConnectionId(id));
        }
        let order: Vec<u64> = core::iter::from_fn(|| schedule.next())
            .map(|id| id.0)
            .collect();
        assert_eq!(order, [3, 4, 1, 2]);
        assert!(schedule.is_empty());
    }

    /// Octets sent by each of `flows`, given as class, weight and packet length, all backlogged.
    fn shares(flows: &[(u8, u8, usize)], packets: usize) -> Vec<usize> {
        let mut schedule = schedule();
        let share = |&(class, weight, _): &(u8, u8, usize)| Share { class, weight };
        for (id, flow) in (0..).zip(flows) {
            schedule.enqueue(Priority(1), share(flow), ConnectionId(id));
        }
        let mut sent = vec![0; flows.len()];
        for _ in 0..packets {
            let id = schedule.next().expect("all are backlogged");
            let index = usize::try_from(id.0).expect("small");
            let flow = &flows[index];
            sent[index] += flow.2;
            schedule.charge(Priority(1), share(flow), flow.2);
            schedule.enqueue(Priority(1), share(flow), id);
        }
        sent
    }

    #[test]
    fn classes_share_by_weight_in_octets_whatever_their_packets_and_number_of_connections() {
        let sent = shares(
            &[(1, 1, 1500), (2, 3, 100), (2, 3, 100), (2, 3, 100)],
            40_000,
        );
        let (one, three) = (sent[0], sent[1..].iter().sum::<usize>());
        // Rounds of 1500 and 4500 octets; the last one may be cut short.
        assert!(three.abs_diff(3 * one) <= 4500, "{sent:?}");
        assert!(
            sent[1].abs_diff(sent[3]) <= 100,
            "turns within a class: {sent:?}"
        );
    }

    #[test]
    fn a_class_that_was_idle_has_saved_nothing_up() {
        let mut schedule = schedule();
        let (busy, late) = (
            Share {
                class: 1,
                weight: 1,
            },
            Share {
                class: 2,
                weight: 1,
            },
        );
        let mut turns = Vec::new();
        for round in 0..200 {
            if round == 0 {
                schedule.enqueue(Priority(0), busy, ConnectionId(1));
            }
            if round == 100 {
                schedule.enqueue(Priority(0), late, ConnectionId(2));
            }
            let id = schedule.next().expect("backlogged");
            let share = if id.0 == 1 { busy } else { late };
            schedule.charge(Priority(0), share, 1500);
            schedule.enqueue(Priority(0), share, id);
            turns.push(id.0);
        }
        let late_turns = turns[100..110].iter().filter(|id| **id == 2).count();
        assert_eq!(late_turns, 5, "{:?}", &turns[100..110]);
    }
}
