//! Named timers: one table for every part that waits.

use crate::machine::Deadline;
use crate::units::Instant;

/// A closed set of timers, normally a field-less enum.
pub trait TimerKind: Copy + 'static {
    /// The number of timers.
    const COUNT: usize;
    /// The position of this timer, below [`TimerKind::COUNT`].
    fn index(self) -> usize;
    /// The reason that its deadline carries.
    fn why(self) -> &'static str;
}

/// A table with at most one pending instant for each timer of a set. It is asked for its earliest far more often than a
/// timer is set, so it keeps the answer.
#[derive(Clone, Debug)]
pub struct TimerTable<K> {
    pending: Vec<Option<(Instant, K)>>,
    earliest: Option<(Instant, K)>,
}

impl<K: TimerKind> Default for TimerTable<K> {
    fn default() -> Self {
        Self {
            pending: vec![None; K::COUNT],
            earliest: None,
        }
    }
}

impl<K: TimerKind> TimerTable<K> {
    /// Sets `timer` to fire at `at`, whatever it was before.
    pub fn set(&mut self, timer: K, at: Instant) {
        self.put(timer, Some(at));
    }

    /// Sets `timer` unless it is pending.
    pub fn set_if_idle(&mut self, timer: K, at: Instant) {
        if self.pending[timer.index()].is_none() {
            self.put(timer, Some(at));
        }
    }

    /// Stops `timer`.
    pub fn stop(&mut self, timer: K) {
        if self.pending[timer.index()].is_some() {
            self.put(timer, None);
        }
    }

    /// The time at which `timer` will fire.
    pub fn at(&self, timer: K) -> Option<Instant> {
        self.pending[timer.index()].map(|(at, _)| at)
    }

    /// Takes one timer that is due; call until `None`.
    pub fn expire(&mut self, now: Instant) -> Option<K> {
        self.earliest.filter(|(at, _)| *at <= now)?;
        let due = self.pending.iter().flatten().find(|(at, _)| *at <= now);
        let (_, timer) = *due?;
        self.put(timer, None);
        Some(timer)
    }

    /// The earliest pending timer.
    #[inline]
    pub fn next_deadline(&self) -> Option<Deadline> {
        self.earliest.map(|(at, timer)| Deadline {
            at,
            why: timer.why(),
        })
    }

    fn put(&mut self, timer: K, at: Option<Instant>) {
        self.pending[timer.index()] = at.map(|at| (at, timer));
        let concerned = self.earliest.is_none_or(|(earliest, first)| {
            first.index() == timer.index() || at.is_some_and(|at| at <= earliest)
        });
        if concerned {
            let pending = self.pending.iter().flatten();
            self.earliest = pending.min_by_key(|(at, _)| *at).copied();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Kitchen {
        Egg,
        Tea,
    }

    impl TimerKind for Kitchen {
        const COUNT: usize = 2;
        fn index(self) -> usize {
            self as usize
        }
        fn why(self) -> &'static str {
            match self {
                Self::Egg => "egg",
                Self::Tea => "tea",
            }
        }
    }

    #[test]
    fn the_earliest_timer_is_named_and_each_fires_once() {
        let mut timers = TimerTable::default();
        timers.set(Kitchen::Egg, Instant::from_nanos(20));
        timers.set(Kitchen::Tea, Instant::from_nanos(10));
        timers.set_if_idle(Kitchen::Tea, Instant::from_nanos(5));
        assert_eq!(timers.next_deadline().map(|d| d.why), Some("tea"));
        assert_eq!(timers.expire(Instant::from_nanos(9)), None);
        assert_eq!(timers.expire(Instant::from_nanos(10)), Some(Kitchen::Tea));
        assert_eq!(timers.expire(Instant::from_nanos(10)), None);
        timers.stop(Kitchen::Egg);
        assert_eq!(timers.next_deadline(), None);
    }

    #[test]
    fn the_earliest_is_kept_through_any_sequence_of_settings_and_stops() {
        let mut rng = Rng::from_seed(1);
        let mut timers = TimerTable::default();
        for _ in 0..1_000 {
            let timer = if rng.below(2) == 0 {
                Kitchen::Egg
            } else {
                Kitchen::Tea
            };
            let at = Instant::from_nanos(rng.below(4));
            match rng.below(4) {
                0 => timers.set(timer, at),
                1 => timers.set_if_idle(timer, at),
                2 => timers.stop(timer),
                _ => drop(timers.expire(at)),
            }
            let each = [Kitchen::Egg, Kitchen::Tea].map(|timer| timers.at(timer));
            let earliest = each.into_iter().flatten().min();
            assert_eq!(timers.next_deadline().map(|d| d.at), earliest);
        }
    }
}
