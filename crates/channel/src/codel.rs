//! `CoDel`: signals when packets have waited above a target for an interval, ever more often as long as they do.
//!
//! # Sources
//! RFC 8289, section 5: the pseudocode of the dequeue.

use fulmar_proto::units::{Duration, Instant};

/// The wait that is taken for a standing queue, and the time for which it is borne.
const TARGET: Duration = Duration::from_millis(5);
const INTERVAL: Duration = Duration::from_millis(100);

/// The state of `CoDel` on one queue.
#[derive(Clone, Debug, Default)]
pub struct CoDel {
    /// The time at which the wait will have been above the target for an interval.
    above_until: Option<Instant>,
    dropping: bool,
    next: Instant,
    count: u32,
    count_before: u32,
}

impl CoDel {
    /// Notes that the queue ran empty.
    pub const fn empty(&mut self) {
        self.above_until = None;
        self.dropping = false;
    }

    fn after(&self, from: Instant) -> Instant {
        from + INTERVAL.mul_f64(1.0 / f64::from(self.count.max(1)).sqrt())
    }

    /// Whether a packet that leaves the queue at `now` and waited so long is a signal. `is_short` says that the
    /// queue has no more than a packet. Packets are asked for in the order in which they leave.
    pub fn signals(&mut self, now: Instant, wait: Duration, is_short: bool) -> bool {
        if wait < TARGET || is_short {
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

    #[test]
    fn a_queue_is_borne_for_an_interval_and_then_signalled_ever_more_often() {
        let mut codel = CoDel::default();
        let wait = |ms: u64| Duration::from_millis(20.min(ms));
        let signals: Vec<u64> = (0..500)
            .filter(|&ms| codel.signals(at(ms), wait(ms), false))
            .collect();
        // The wait is 5 ms or more from 5 ms on: the first a tenth of a second later, the next 100 / sqrt(n) later each.
        assert_eq!(signals[..4], [105, 205, 276, 334]);
    }

    #[test]
    fn a_short_wait_and_a_short_queue_are_left_alone() {
        let mut codel = CoDel::default();
        let signals = |codel: &mut CoDel, wait, is_short| {
            let wait = Duration::from_millis(wait);
            (0..1_000).any(|ms| codel.signals(at(ms), wait, is_short))
        };
        assert!(!signals(&mut codel, 4, false));
        assert!(!signals(&mut codel, 40, true));
        assert!(signals(&mut codel, 5, false));
    }
}
