//! Transmissions in flight.
//!
//! Each transmission has a number of its own, and feedback tells the newest number that arrived.
//! Transmissions sent before it have left the network, whether they arrived or not. So the octets
//! in flight are known exactly on a path that keeps the order, and no acknowledgement is needed
//! twice.
//!
//! A transmission that left may be lost. That is settled a little later, when three that were sent
//! after it left as well, or when a quarter of a round trip passed: the path may have changed the
//! order.

use fulmar_proto::units::Instant;
use std::collections::VecDeque;

/// The number of later transmissions that settle one, like RFC 5681's duplicate acknowledgements.
const REORDERING: u64 = 3;
/// Transmissions that may be unsettled, at most: a quarter of the number that 16 bits can tell
/// apart.
pub(super) const UNSETTLED_MAX: usize = 1 << 14;

/// One transmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sent {
    number: u64,
    at: Instant,
    octets: u32,
    /// The number of its block; `None` for a FIN or a probe.
    pub(super) block: Option<u64>,
    /// Whether it answers feedback.
    pub(super) reactive: bool,
}

/// The changes that feedback made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Left {
    /// Whether it tells of a newer arrival than before.
    pub(super) advanced: bool,
    /// Transmissions that left the network.
    pub(super) count: u64,
    /// The octets of these transmissions.
    pub(super) octets: u64,
    /// The time at which the newest of them was sent.
    pub(super) sent_at: Option<Instant>,
}

/// The transmissions that are not settled.
#[derive(Debug, Default)]
pub(super) struct Flight {
    sent: VecDeque<Sent>,
    /// The next number.
    next: u64,
    /// The number behind the newest that is known to have arrived.
    end: u64,
    /// The number before which a timeout gave up all transmissions.
    given_up: u64,
    /// Octets in flight.
    pipe: u64,
}

impl Flight {
    /// Octets in flight.
    pub(super) const fn pipe(&self) -> u64 {
        self.pipe
    }

    /// The number of the next transmission.
    pub(super) const fn next(&self) -> u64 {
        self.next
    }

    /// The number behind the newest that is known to have arrived.
    pub(super) const fn end(&self) -> u64 {
        self.end
    }

    /// The number of transmissions that are not settled.
    pub(super) fn unsettled(&self) -> usize {
        self.sent.len()
    }

    /// Octets of memory allocated, used or not.
    pub(super) fn memory_bytes(&self) -> usize {
        self.sent.capacity() * size_of::<Sent>()
    }

    /// The most memory that it takes.
    pub(super) const fn memory_max() -> usize {
        2 * UNSETTLED_MAX * size_of::<Sent>()
    }

    /// A transmission of `octets` leaves; returns its number, modulo 2^16.
    pub(super) fn on_sent(
        &mut self,
        now: Instant,
        octets: u32,
        block: Option<u64>,
        reactive: bool,
    ) -> u16 {
        let number = self.next;
        self.next += 1;
        self.pipe += u64::from(octets);
        self.sent.push_back(Sent {
            number,
            at: now,
            octets,
            block,
            reactive,
        });
        low(number)
    }

    /// The number before which all transmissions have left the network.
    fn gone(&self) -> u64 {
        self.end.max(self.given_up)
    }

    /// Takes feedback that the newest transmission that arrived is the one before `end`. `None` if
    /// it is older than what is known, or names transmissions that were never sent.
    pub(super) fn on_feedback(&mut self, end: u16) -> Option<Left> {
        let ahead = end.wrapping_sub(low(self.end)).cast_signed();
        let end = self.end.checked_add_signed(i64::from(ahead))?;
        if end < self.end || end > self.next {
            return None;
        }
        let mut left = Left {
            advanced: end > self.end,
            ..Left::default()
        };
        let gone = self.gone();
        let from = self.sent.partition_point(|sent| sent.number < gone);
        for sent in self.sent.range(from..) {
            if sent.number >= end {
                break;
            }
            left.count += 1;
            left.octets += u64::from(sent.octets);
            left.sent_at = Some(sent.at);
        }
        self.pipe -= left.octets;
        self.end = end;
        Some(left)
    }

    /// Whether an answer to a transmission may still come.
    pub(super) fn is_out(&self) -> bool {
        self.gone() < self.next
    }

    /// Whether there are transmissions that left and are not settled.
    pub(super) fn has_doubtful(&self) -> bool {
        let gone = self.gone();
        self.sent.front().is_some_and(|sent| sent.number < gone)
    }

    /// The next transmission to settle: one that three later ones show to have left or, if
    /// `in_time`, any that left.
    pub(super) fn settle(&mut self, in_time: bool) -> Option<Sent> {
        let margin = if in_time { 0 } else { REORDERING };
        let front = *self.sent.front()?;
        if front.number + margin >= self.gone() {
            return None;
        }
        self.sent.pop_front();
        Some(front)
    }

    /// Handles a timeout: all transmissions count as no longer in flight.
    pub(super) const fn give_up(&mut self) {
        self.given_up = self.next;
        self.pipe = 0;
    }
}

#[expect(clippy::cast_possible_truncation, reason = "numbers wrap on the wire")]
const fn low(number: u64) -> u16 {
    number as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flight(count: u64) -> Flight {
        let mut flight = Flight::default();
        for i in 0..count {
            flight.on_sent(Instant::from_nanos(i), 100, Some(i), false);
        }
        flight
    }

    #[test]
    fn what_was_sent_before_the_newest_arrival_has_left() {
        let mut flight = flight(10);
        let left = flight.on_feedback(6).unwrap();
        assert_eq!((left.count, left.octets), (6, 600));
        assert_eq!(left.sent_at, Some(Instant::from_nanos(5)));
        assert_eq!(flight.pipe(), 400);
        let again = flight.on_feedback(6);
        assert_eq!(again, Some(Left::default()), "nothing new");
        assert_eq!(flight.on_feedback(5), None, "older");
        assert_eq!(flight.on_feedback(11), None, "never sent");
    }

    #[test]
    fn what_left_is_settled_by_three_later_ones_or_by_time() {
        let mut flight = flight(10);
        flight.on_feedback(6);
        let settled: Vec<_> = core::iter::from_fn(|| flight.settle(false)?.block).collect();
        assert_eq!(settled, [0, 1, 2]);
        assert!(flight.has_doubtful());
        let settled: Vec<_> = core::iter::from_fn(|| flight.settle(true)?.block).collect();
        assert_eq!(settled, [3, 4, 5]);
        assert!(!flight.has_doubtful());
        flight.give_up();
        assert_eq!(flight.pipe(), 0);
        assert_eq!(core::iter::from_fn(|| flight.settle(true)).count(), 4);
        // The timeout was too early: feedback that comes later still counts.
        let late = flight.on_feedback(8).unwrap();
        assert!(late.advanced && late.count == 0);
    }

    #[test]
    fn numbers_wrap() {
        let mut flight = Flight::default();
        for i in 0..200_000_u64 {
            flight.on_sent(Instant::START, 1, None, false);
            if i % 1_000 == 999 {
                assert!(flight.on_feedback(low(i + 1)).is_some());
                while flight.settle(true).is_some() {}
            }
        }
        assert_eq!((flight.pipe(), flight.unsettled()), (0, 0));
    }
}
