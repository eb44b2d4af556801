//! A queue that signals before it is full: by `CoDel`, by RED, or above a threshold.
//!
//! `CoDel` decides when a datagram leaves the queue, so this queue is asked for each datagram when the
//! link is free, unlike that of a channel, which knows all departures at once.
//!
//! # Sources
//! RFC 8289 (`CoDel`), section 5: the pseudocode of the dequeue; RED is that of
//! [`fulmar_channel::RedConfig`].

use super::DATAGRAM;
use fulmar_channel::{PacketQueue, QueueLimit, Queued, RedConfig};
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{Bitrate, Duration, Instant};
use std::collections::VecDeque;

/// The wait that `CoDel` takes for a standing queue, and the time for which it bears it.
const TARGET: Duration = Duration::from_millis(5);
const INTERVAL: Duration = Duration::from_millis(100);

/// The law by which a queue signals.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum QueueLaw {
    /// RFC 8289 with its defaults, 5 ms and 100 ms.
    CoDel,
    /// Random early detection.
    Red(RedConfig),
    /// A mark for each datagram above so many that wait.
    Threshold(u32),
}

/// The management of the queue before the way out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QueueManagement {
    /// The law.
    pub law: QueueLaw,
    /// Whether datagrams of found rates are marked in place of being dropped; CUBIC's and BBR's never are.
    pub marks: bool,
}

/// A datagram in the queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Waiting {
    pub(super) flow: usize,
    pub(super) number: u64,
    pub(super) since: Instant,
    /// Whether it may be marked.
    pub(super) capable: bool,
}

/// A datagram that leaves the queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Leaves {
    /// The link takes it, perhaps with a mark.
    Onto(Waiting, bool),
    /// It is dropped.
    Dropped(Waiting),
}

#[derive(Debug)]
pub(super) struct ManagedQueue {
    queue: PacketQueue<Waiting>,
    /// Whether each datagram was marked as it came.
    marked: VecDeque<bool>,
    codel: Option<CoDel>,
    marks: bool,
    /// Whether the link is in use.
    pub(super) sending: bool,
}

impl ManagedQueue {
    pub(super) fn new(plan: QueueManagement, limit: QueueLimit, rate: Bitrate, rng: &Rng) -> Self {
        let above = match plan.law {
            QueueLaw::Threshold(packets) => Some(QueueLimit::packets(packets)),
            QueueLaw::CoDel | QueueLaw::Red(_) => None,
        };
        let mut queue = PacketQueue::new(limit, above);
        if let QueueLaw::Red(config) = plan.law {
            queue = queue.with_red(config, rate.time_to_send(DATAGRAM), rng.child("red"));
        }
        Self {
            queue,
            marked: VecDeque::new(),
            codel: (plan.law == QueueLaw::CoDel).then(CoDel::default),
            marks: plan.marks,
            sending: false,
        }
    }

    /// Takes a datagram; or says that it is dropped.
    pub(super) fn push(&mut self, now: Instant, waiting: Waiting) -> bool {
        let capable = waiting.capable && self.marks;
        let waiting = Waiting { capable, ..waiting };
        let queued = self.queue.push(now, waiting, DATAGRAM, capable);
        if let Queued::Waits { marked } = queued {
            self.marked.push_back(marked);
        }
        matches!(queued, Queued::Waits { .. })
    }

    /// The next that leaves: to be asked until one goes onto the link, or none is left.
    pub(super) fn pop(&mut self, now: Instant) -> Option<Leaves> {
        let Some(waiting) = self.queue.pop(now) else {
            if let Some(codel) = &mut self.codel {
                codel.empty();
            }
            return None;
        };
        let marked = self.marked.pop_front().unwrap_or_default();
        let wait = now.saturating_since(waiting.since);
        let last = self.queue.is_empty();
        let signalled = self
            .codel
            .as_mut()
            .is_some_and(|codel| codel.signals(now, wait, last));
        Some(if signalled && !waiting.capable {
            Leaves::Dropped(waiting)
        } else {
            Leaves::Onto(waiting, marked || signalled)
        })
    }
}

/// The state of `CoDel`.
#[derive(Debug, Default)]
struct CoDel {
    /// The time at which the wait will have been above the target for an interval.
    above_until: Option<Instant>,
    dropping: bool,
    next: Instant,
    count: u32,
    count_before: u32,
}

impl CoDel {
    const fn empty(&mut self) {
        self.above_until = None;
        self.dropping = false;
    }

    fn after(&self, from: Instant) -> Instant {
        from + INTERVAL.mul_f64(1.0 / f64::from(self.count.max(1)).sqrt())
    }

    /// Whether a datagram that waited so long is a signal. `last` says that none is behind it.
    fn signals(&mut self, now: Instant, wait: Duration, last: bool) -> bool {
        if wait < TARGET || last {
            self.empty();
            return false;
        }
        let until = *self.above_until.get_or_insert(now + INTERVAL);
        if now < until {
            self.dropping = false;
            return false;
        }
        if self.dropping {
            if now < self.next {
                return false;
            }
            self.count += 1;
            self.next = self.after(self.next);
            return true;
        }
        self.dropping = true;
        let lately = now.saturating_since(self.next) < INTERVAL * 16;
        let delta = self.count - self.count_before;
        self.count = if lately && delta > 1 { delta } else { 1 };
        self.count_before = self.count;
        self.next = self.after(now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::START + Duration::from_millis(ms)
    }

    fn waiting(number: u64, since: Instant, capable: bool) -> Waiting {
        Waiting {
            flow: 0,
            number,
            since,
            capable,
        }
    }

    fn queue(law: QueueLaw) -> ManagedQueue {
        let plan = QueueManagement { law, marks: true };
        let rate = Bitrate::from_bits_per_second(12_000_000);
        ManagedQueue::new(plan, QueueLimit::packets(1_000), rate, &Rng::from_seed(1))
    }

    /// Datagrams that wait 20 ms each, one a millisecond: the times of the signals.
    fn signals(capable: bool) -> Vec<u64> {
        let mut queue = queue(QueueLaw::CoDel);
        let mut signals = Vec::new();
        for ms in 0..500 {
            let now = at(ms);
            let came = now - Duration::from_millis(20.min(ms));
            for number in 0..2 {
                assert!(queue.push(now, waiting(ms + number, came, capable)));
            }
            match queue.pop(now) {
                Some(Leaves::Dropped(_)) => {
                    assert!(!capable);
                    signals.push(ms);
                }
                Some(Leaves::Onto(_, true)) => {
                    assert!(capable);
                    signals.push(ms);
                }
                _ => {}
            }
        }
        signals
    }

    #[test]
    fn codel_bears_a_queue_for_an_interval_and_then_signals_ever_more_often() {
        let marks = signals(true);
        assert_eq!(marks, signals(false), "by a mark, or by a drop");
        // The wait is 5 ms or more from 5 ms on: the first a tenth of a second later, the next 100 / sqrt(n) later each.
        assert_eq!(marks[..4], [105, 205, 276, 334]);
    }

    #[test]
    fn a_threshold_marks_who_may_be_marked_and_drops_nobody() {
        let mut queue = queue(QueueLaw::Threshold(1));
        for (number, capable) in [(0, true), (1, true), (2, false)] {
            assert!(queue.push(at(0), waiting(number, at(0), capable)));
        }
        let left: Vec<_> = std::iter::from_fn(|| queue.pop(at(1))).collect();
        assert_eq!(left.len(), 3);
        for (leaves, marked) in left.into_iter().zip([false, true, false]) {
            assert!(matches!(leaves, Leaves::Onto(_, mark) if mark == marked));
        }
    }
}
