//! The calendar of future events: a priority queue keyed by time, and by order of insertion among equals.
//!
//! The second key makes ties deterministic: two events of the same instant happen in the order in
//! which they were scheduled, on every platform and for every number of worker threads.

use core::cmp::{Ordering, Reverse};
use fulmar_proto::units::Instant;
use std::collections::BinaryHeap;

/// Future events in the order in which they will happen.
#[derive(Debug)]
pub struct EventQueue<E> {
    heap: BinaryHeap<Reverse<Entry<E>>>,
    sequence: u64,
}

#[derive(Debug)]
struct Entry<E> {
    at: Instant,
    sequence: u64,
    event: E,
}

impl<E> Entry<E> {
    const fn key(&self) -> (Instant, u64) {
        (self.at, self.sequence)
    }
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<E> Eq for Entry<E> {}

impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Entry<E> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl<E> Default for EventQueue<E> {
    fn default() -> Self {
        Self {
            heap: BinaryHeap::new(),
            sequence: 0,
        }
    }
}

impl<E> EventQueue<E> {
    /// Schedules `event` for `at`, after everything already scheduled for the same instant.
    pub fn push(&mut self, at: Instant, event: E) {
        let sequence = self.sequence;
        self.sequence += 1;
        self.heap.push(Reverse(Entry {
            at,
            sequence,
            event,
        }));
    }

    /// Takes the next event.
    pub fn pop(&mut self) -> Option<(Instant, E)> {
        self.heap
            .pop()
            .map(|Reverse(entry)| (entry.at, entry.event))
    }

    /// The time of the next event.
    pub fn next_at(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse(entry)| entry.at)
    }

    /// The number of events that wait.
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Whether no event waits.
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_by_time_and_ties_in_the_order_of_scheduling() {
        let mut queue = EventQueue::default();
        let at = Instant::from_nanos;
        for (nanos, name) in [(5, 'c'), (1, 'a'), (5, 'd'), (1, 'b'), (9, 'e')] {
            queue.push(at(nanos), name);
        }
        assert_eq!(queue.next_at(), Some(at(1)));
        let order: String = std::iter::from_fn(|| queue.pop()).map(|(_, n)| n).collect();
        assert_eq!(order, "abcde");
        assert!(queue.is_empty());
    }
}
