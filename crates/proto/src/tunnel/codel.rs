//! The rule that keeps a queue short without emptying it: `CoDel` (RFC 8289).
//!
//! A queue that never drains within an interval only adds delay. Its first packet is dropped then, and another each time
//! that a shrinking interval has passed, until the queue drains. The time that packets wait is all that the rule looks at,
//! so it needs no rate.

use crate::units::{Duration, Instant};

/// The fate of the first packet in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodelVerdict {
    /// It leaves.
    Send,
    /// It is to be dropped, or marked if its sender asked for marks.
    Slow,
}

/// Intervals after which a new phase of dropping begins gently (RFC 8289, section 5.6, as the pseudo-code has it).
const FORGET_AFTER: u32 = 16;
/// Fractional bits of a root: its square has twice as many.
const ROOT_BITS: u32 = 10;

/// The state of one queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Codel {
    /// The time at which the packets will have waited too long for a whole interval.
    above_until: Option<Instant>,
    is_slowing: bool,
    slow_next: Instant,
    count: u32,
    last_count: u32,
}

impl Codel {
    /// Judges the first packet, which has waited for `waited`; `is_last` if it is the only one. Call it again for the
    /// next after [`CodelVerdict::Slow`], unless the packet was marked and left.
    pub fn judge(
        &mut self,
        now: Instant,
        waited: Duration,
        is_last: bool,
        interval: Duration,
    ) -> CodelVerdict {
        let stands = self.stands(now, waited, is_last, interval);
        if self.is_slowing {
            if !stands {
                self.is_slowing = false;
            } else if now >= self.slow_next {
                self.count = self.count.saturating_add(1);
                self.slow_next += spacing(interval, self.count);
                return CodelVerdict::Slow;
            }
            return CodelVerdict::Send;
        }
        if !stands {
            return CodelVerdict::Send;
        }
        self.is_slowing = true;
        let before = self.count.saturating_sub(self.last_count);
        let is_recent = now.saturating_since(self.slow_next) < interval * FORGET_AFTER;
        self.count = if before > 1 && is_recent { before } else { 1 };
        self.last_count = self.count;
        self.slow_next = now + spacing(interval, self.count);
        CodelVerdict::Slow
    }

    /// Whether packets have waited for more than the target throughout an interval.
    fn stands(
        &mut self,
        now: Instant,
        waited: Duration,
        is_last: bool,
        interval: Duration,
    ) -> bool {
        if is_last || waited < target(interval) {
            self.above_until = None;
            return false;
        }
        let until = *self.above_until.get_or_insert(now + interval);
        now >= until
    }
}

/// The wait that is no standing queue: a quarter of the interval. RFC 8289, section 4.3, has 5 to 10 %, for queues that many
/// flows share; here each flow waits for itself alone, and what repair adds to its round trips varies by as much (ADR 0036).
fn target(interval: Duration) -> Duration {
    interval / 4
}

/// The pause before the next drop: the interval over the root of their number.
fn spacing(interval: Duration, count: u32) -> Duration {
    let root = (u64::from(count.max(1)) << (2 * ROOT_BITS)).isqrt();
    let nanos = u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX);
    let scaled = u128::from(nanos) << ROOT_BITS;
    Duration::from_nanos(u64::try_from(scaled / u128::from(root)).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_millis(100);
    const LONG: Duration = Duration::from_millis(25);

    /// The milliseconds at which packets were slowed, of one a millisecond that waited for `waited`.
    fn slowed(codel: &mut Codel, times: core::ops::Range<u64>, waited: Duration) -> Vec<u64> {
        let at = |ms| Instant::START + Duration::from_millis(ms);
        let is_slow =
            |ms: &u64| codel.judge(at(*ms), waited, false, INTERVAL) == CodelVerdict::Slow;
        times.filter(is_slow).collect()
    }

    #[test]
    fn a_burst_shorter_than_an_interval_passes() {
        let mut codel = Codel::default();
        assert!(slowed(&mut codel, 0..100, LONG).is_empty());
        assert!(slowed(&mut codel, 100..101, Duration::ZERO).is_empty());
        assert!(slowed(&mut codel, 101..201, LONG).is_empty());
    }

    #[test]
    fn a_standing_queue_loses_packets_ever_faster() {
        let mut codel = Codel::default();
        let at = slowed(&mut codel, 0..600, LONG);
        // After one interval; then 100, 70.7, 57.7, 50, 44.7, 40.8 ms later, each in the next whole millisecond.
        assert_eq!(at, [100, 200, 271, 329, 379, 424, 465, 502, 538, 571]);
    }

    #[test]
    fn a_queue_that_drains_is_left_alone_and_one_that_fills_again_soon_is_slowed_sooner() {
        let mut codel = Codel::default();
        slowed(&mut codel, 0..500, LONG);
        assert!(slowed(&mut codel, 500..501, Duration::ZERO).is_empty());
        let again = slowed(&mut codel, 501..700, LONG);
        assert_eq!(again.first(), Some(&601));
        assert!(again.len() >= 3, "{again:?}: it goes on where it was");
    }

    #[test]
    fn the_only_packet_is_never_dropped() {
        let mut codel = Codel::default();
        let mut verdicts = (0..500).map(|ms| {
            codel.judge(
                Instant::START + Duration::from_millis(ms),
                LONG,
                true,
                INTERVAL,
            )
        });
        assert!(verdicts.all(|verdict| verdict == CodelVerdict::Send));
    }
}
