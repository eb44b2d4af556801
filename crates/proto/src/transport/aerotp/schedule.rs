//! The order in which connections send on a path: one rate budget, strict priorities, fair shares
//! within one.
//!
//! Within a priority the classes share the rate by their weights (deficit round robin; Shreedhar,
//! Varghese 1996), and the connections of a class take turns. TPDUs that nobody waits for, such as
//! precautionary repetitions, leave when nothing else would.

use super::config::Share;
use super::event::{ConnectionId, PathRate, RateReason};
use crate::machine::Priority;
use crate::transport::parts::{LinkFollower, Pacer, RateControl};
use crate::units::{Duration, Instant};
use crate::wire::aerotp::{FecStrength, PathReport};
use core::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};

/// The octets that a class of weight 1 may send in one turn: a packet of the usual size.
const QUANTUM_BYTES: i64 = 1500;

/// The least time between reports on a path.
const REPORT_GAP: Duration = Duration::from_millis(10);

/// One path's budget and its queues of connections that have something to send.
#[derive(Debug)]
pub(super) struct PathSchedule {
    pub(super) pacer: Pacer,
    pub(super) rate: RateControl,
    pub(super) link: LinkFollower,
    /// Octets that have arrived, headers of the layers below included.
    pub(super) arrived: u64,
    pub(super) reported_at: Option<Instant>,
    /// Whether it is counted already that the declared rate is wrong.
    pub(super) declared_wrong: bool,
    /// The strength last seen on this path, to correct damaged headers with.
    pub(super) strength_seen: FecStrength,
    pub(super) connections: usize,
    /// Connections with control to send.
    pub(super) control: VecDeque<ConnectionId>,
    ready: BTreeMap<Reverse<Priority>, Level>,
    /// Connections whose data only fills time that would be idle.
    spare: VecDeque<ConnectionId>,
    waiting: usize,
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
    pub(super) fn new(pacer: Pacer, rate: RateControl) -> Self {
        Self {
            pacer,
            rate,
            link: LinkFollower::default(),
            arrived: 0,
            reported_at: None,
            declared_wrong: false,
            strength_seen: FecStrength::NONE,
            connections: 0,
            control: VecDeque::new(),
            ready: BTreeMap::new(),
            spare: VecDeque::new(),
            waiting: 0,
        }
    }

    /// Counts a datagram that left.
    pub(super) fn on_sent(&mut self, now: Instant, octets: usize) {
        self.pacer.on_sent(now, octets);
        self.link.on_sent(now, self.pacer.wire_bytes(octets));
    }

    /// Sets the pace that the layer below, marks and the link's own behaviour allow.
    pub(super) fn update_rate(&mut self, now: Instant) {
        self.pacer.set_rate(self.link.rate(now, self.rate.rate()));
    }

    /// The report to the peer on the arrival of its octets, if one is due.
    pub(super) fn report(&self, now: Instant) -> Option<PathReport> {
        let recent = |at: Instant| now.saturating_since(at) < REPORT_GAP;
        if self.arrived == 0 || self.reported_at.is_some_and(recent) {
            return None;
        }
        let modulo = self.arrived % (1 << 32);
        Some(PathReport {
            arrived: u32::try_from(modulo).unwrap_or_default(),
            clock: now.as_wrapping_micros(),
        })
    }

    /// The parts of the rate.
    pub(super) fn path_rate(&self, now: Instant) -> PathRate {
        let (declared, marked) = (self.rate.bound(), self.rate.rate());
        let current = self.link.rate(now, marked);
        let reason = if self.link.is_draining() && current < marked {
            RateReason::Draining
        } else if current < marked {
            RateReason::Link
        } else if marked < declared {
            RateReason::Marks
        } else {
            RateReason::Declared
        };
        PathRate {
            declared,
            marked,
            link: self.link.cap(),
            delivered: self.link.delivered(),
            current,
            reason,
            queues_tried: self.link.trials(),
            declared_wrong: self.link.is_declared_wrong(now),
        }
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

    /// Puts a connection among those that send when nothing else waits.
    pub(super) fn enqueue_spare(&mut self, id: ConnectionId) {
        self.spare.push_back(id);
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
    use crate::units::{Bitrate, ByteCount};

    fn schedule() -> PathSchedule {
        let rate = Bitrate::from_bits_per_second(1);
        let pacer = Pacer::new(rate, Duration::ZERO, ByteCount::ZERO);
        PathSchedule::new(pacer, RateControl::new(rate))
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
