//! The offset between two clocks, from questions and answers (the method of NTP, RFC 5905 section 8).
//!
//! The fastest of several exchanges is taken, since it waited least on the way. Where its two ways took equally
//! long the offset is exact. However they differ, it is wrong by half their sum at most.

use fulmar_proto::units::{Duration, Instant};

/// The exchanges before a test.
pub(super) const EXCHANGES: u32 = 10;

/// Our knowledge of the other clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockOffset {
    /// The nanoseconds by which the server's clock is ahead of the client's.
    pub ahead: i64,
    /// The round trip of the fastest exchange, without the time at the server. The offset is exact if
    /// it took half of that each way, and else wrong by half of it at most.
    pub round_trip: Duration,
    /// The number of exchanges.
    pub exchanges: u32,
}

impl ClockOffset {
    /// The largest error of one-way delays.
    pub fn uncertainty(&self) -> Duration {
        self.round_trip / 2
    }

    /// Takes a further exchange into account: the client's clock at the question and at the answer, and the server's
    /// clock when the question came and when it answered.
    pub(super) fn add(
        known: Option<Self>,
        (asked, answered): (Instant, Instant),
        (came, left): (Instant, Instant),
    ) -> Self {
        let away = answered.saturating_since(asked);
        let there = left.saturating_since(came);
        let round_trip = away.saturating_sub(there);
        let midway = |from: Instant, to: Instant| {
            i128::midpoint(i128::from(from.as_nanos()), i128::from(to.as_nanos()))
        };
        let ahead = midway(came, left) - midway(asked, answered);
        let ahead = i64::try_from(ahead).unwrap_or(if ahead < 0 { i64::MIN } else { i64::MAX });
        let exchanges = known.map_or(0, |known| known.exchanges) + 1;
        match known {
            Some(known) if known.round_trip <= round_trip => Self { exchanges, ..known },
            _ => Self {
                ahead,
                round_trip,
                exchanges,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    #[test]
    fn equal_ways_give_the_exact_offset_and_unequal_ones_stay_within_the_bound() {
        // The server's clock is 1,000,000 ahead; the answer takes 3,000 there.
        for (out, back) in [(500, 500), (100, 900), (900, 100)] {
            let came = 1_000_000 + 10_000 + out;
            let answered = 10_000 + out + 3_000 + back;
            let offset = ClockOffset::add(
                None,
                (at(10_000), at(answered)),
                (at(came), at(came + 3_000)),
            );
            assert_eq!(offset.round_trip, Duration::from_micros(1));
            let error = offset.ahead.abs_diff(1_000_000);
            assert_eq!(error, u64::abs_diff(out, back) / 2);
            assert!(Duration::from_nanos(error) <= offset.uncertainty());
        }
    }

    #[test]
    fn a_clock_that_is_behind_has_a_negative_offset() {
        let offset = ClockOffset::add(None, (at(5_000), at(7_000)), (at(1_000), at(1_000)));
        assert_eq!(offset.ahead, -5_000);
    }

    #[test]
    fn the_fastest_exchange_counts() {
        let slow = ClockOffset::add(None, (at(0), at(9_000)), (at(100), at(100)));
        let both = ClockOffset::add(Some(slow), (at(0), at(10)), (at(5), at(5)));
        assert_eq!((both.ahead, both.exchanges), (0, 2));
        let third = ClockOffset::add(Some(both), (at(0), at(500)), (at(5), at(5)));
        assert_eq!((third.ahead, third.exchanges), (0, 3));
    }
}
