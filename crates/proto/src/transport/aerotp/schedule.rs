//! Who may send next on a path: one rate budget, strict priorities, turns within a priority.

use super::event::ConnectionId;
use crate::machine::Priority;
use crate::transport::parts::{Pacer, RateControl};
use crate::wire::aerotp::FecStrength;
use core::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};

/// One path's budget and its queue of connections that have something to send.
#[derive(Debug)]
pub(super) struct PathSchedule {
    pub(super) pacer: Pacer,
    pub(super) rate: RateControl,
    /// The strength last seen on this path, to correct damaged headers with.
    pub(super) strength_seen: FecStrength,
    ready: BTreeMap<Reverse<Priority>, VecDeque<ConnectionId>>,
    pub(super) connections: usize,
}

impl PathSchedule {
    pub(super) const fn new(pacer: Pacer, rate: RateControl) -> Self {
        Self {
            pacer,
            rate,
            strength_seen: FecStrength::NONE,
            ready: BTreeMap::new(),
            connections: 0,
        }
    }

    /// Puts a connection at the end of its priority's queue.
    pub(super) fn enqueue(&mut self, priority: Priority, id: ConnectionId) {
        self.ready
            .entry(Reverse(priority))
            .or_default()
            .push_back(id);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ready.is_empty()
    }

    /// Takes the connection whose turn it is.
    pub(super) fn next(&mut self) -> Option<ConnectionId> {
        let mut entry = self.ready.first_entry()?;
        let id = entry.get_mut().pop_front();
        if entry.get().is_empty() {
            entry.remove();
        }
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::{Bitrate, ByteCount, Duration};

    #[test]
    fn the_higher_priority_goes_first_and_equals_take_turns() {
        let rate = Bitrate::from_bits_per_second(1);
        let pacer = Pacer::new(rate, Duration::ZERO, ByteCount::ZERO);
        let mut schedule = PathSchedule::new(pacer, RateControl::new(rate));
        for (priority, id) in [(0, 1), (0, 2), (7, 3), (7, 4)] {
            schedule.enqueue(Priority(priority), ConnectionId(id));
        }
        let order: Vec<u64> = core::iter::from_fn(|| schedule.next())
            .map(|id| id.0)
            .collect();
        assert_eq!(order, [3, 4, 1, 2]);
        assert!(schedule.is_empty());
    }
}
