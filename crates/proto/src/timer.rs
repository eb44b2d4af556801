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

/// A table with at most one pending instant for each timer of a set.
#[derive(Clone, Debug)]
pub struct TimerTable<K> {
    pending: Vec<Option<(Instant, K)>>,
}

impl<K: TimerKind> Default for TimerTable<K> {
    fn default() -> Self {
        Self {
            pending: vec![None; K::COUNT],
        }
    }
}

impl<K: TimerKind> TimerTable<K> {
    /// Sets `timer` to fire at `at`, whatever it was before.
    pub fn set(&mut self, timer: K, at: Instant) {
        self.pending[timer.index()] = Some((at, timer));
    }

    /// Sets `timer` unless it is pending.
    pub fn set_if_idle(&mut self, timer: K, at: Instant) {
        self.pending[timer.index()].get_or_insert((at, timer));
    }

    /// Stops `timer`.
    pub fn stop(&mut self, timer: K) {
        self.pending[timer.index()] = None;
    }

    /// The time at which `timer` will fire.
    pub fn at(&self, timer: K) -> Option<Instant> {
        self.pending[timer.index()].map(|(at, _)| at)
    }

    /// Takes one timer that is due; call until `None`.
    pub fn expire(&mut self, now: Instant) -> Option<K> {
        let due = self
            .pending
            .iter_mut()
            .find(|p| p.is_some_and(|(at, _)| at <= now))?;
        due.take().map(|(_, timer)| timer)
    }

    /// The earliest pending timer.
    pub fn next_deadline(&self) -> Option<Deadline> {
        let (at, timer) = self.pending.iter().flatten().min_by_key(|(at, _)| *at)?;
        Some(Deadline {
            at: *at,
            why: timer.why(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
