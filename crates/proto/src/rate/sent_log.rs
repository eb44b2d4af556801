//! The record of what was sent: the total of octets and the time, by a datagram's number.

use crate::units::{ByteCount, Duration, Instant};
use std::collections::VecDeque;

/// Entries at most; with more, every second one goes.
const ENTRIES_MAX: usize = 16_384;
/// Datagrams between two entries, at the most that a record of a silent receiver comes to.
const STRIDE_MAX: u64 = 1 << 20;
/// The pause between two datagrams whose ends keep their entries, if these are few: what left before and behind it did
/// not leave evenly.
const PAUSE: Duration = Duration::from_millis(1);

/// A point of the record.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Sent {
    pub(super) number: u64,
    /// Octets sent up to and including this datagram.
    pub(super) octets: u64,
    pub(super) at: Instant,
}

/// The datagrams that left and were not reported yet.
#[derive(Clone, Debug, Default)]
pub(super) struct SentLog {
    entries: VecDeque<Sent>,
    total: u64,
    /// Datagrams between two entries, at least.
    stride: u64,
}

impl SentLog {
    pub(super) fn on_sent(&mut self, now: Instant, number: u64, octets: ByteCount) {
        self.total += octets.0;
        let sent = Sent {
            number,
            octets: self.total,
            at: now,
        };
        // The newest datagram always has its entry: the one before it goes if it is too near to the
        // one before that.
        if let (Some(last), Some(before)) = (self.entries.back(), self.before_last())
            && last.number.saturating_sub(before.number) < self.stride
            && now.saturating_since(before.at) < PAUSE
        {
            self.entries.pop_back();
        }
        if self.entries.len() == ENTRIES_MAX {
            self.stride = self.stride.saturating_mul(2).clamp(2, STRIDE_MAX);
            self.thin_out();
        }
        self.entries.push_back(sent);
    }

    /// Removes every second entry, but none at a pause unless there are many.
    fn thin_out(&mut self) {
        let entries: Vec<Sent> = self.entries.drain(..).collect();
        let pauses = |pair: &[Sent]| pair[1].at.saturating_since(pair[0].at) >= PAUSE;
        let keeps = entries.windows(2).filter(|pair| pauses(pair)).count() < ENTRIES_MAX / 16;
        let is_at_pause = |index: usize| {
            let around = index.saturating_sub(1)..(index + 2).min(entries.len());
            keeps && entries[around].windows(2).any(pauses)
        };
        let kept = (0..entries.len()).filter(|index| index % 2 == 0 || is_at_pause(*index));
        self.entries.extend(kept.map(|index| entries[index]));
    }

    fn before_last(&self) -> Option<&Sent> {
        self.entries.get(self.entries.len().checked_sub(2)?)
    }

    /// Octets sent in all.
    pub(super) const fn total(&self) -> u64 {
        self.total
    }

    /// The number of the datagram that left last.
    pub(super) fn newest(&self) -> u64 {
        self.entries.back().map_or(0, |sent| sent.number)
    }

    /// The state of the record when datagram `number` left, between two entries by their line.
    /// `None` if it was forgotten, or never sent.
    pub(super) fn at(&self, number: u64) -> Option<Sent> {
        let after = self.entries.partition_point(|sent| sent.number < number);
        let upper = *self.entries.get(after)?;
        if upper.number == number {
            return Some(upper);
        }
        let lower = *self.entries.get(after.checked_sub(1)?)?;
        let share = (number - lower.number) as f64 / (upper.number - lower.number) as f64;
        let octets = (upper.octets - lower.octets) as f64 * share;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share of a count that fits"
        )]
        let octets = lower.octets + octets as u64;
        let at = lower.at + upper.at.saturating_since(lower.at).mul_f64(share);
        Some(Sent { number, octets, at })
    }

    /// The newest datagram that left in the span from `from` to before `until`. Where the record is thin, the one
    /// that was sent then if datagrams left evenly. `None` if none did, or it was forgotten.
    pub(super) fn number_in(&self, from: Instant, until: Instant) -> Option<u64> {
        let after = self.entries.partition_point(|sent| sent.at < until);
        let lower = *self.entries.get(after.checked_sub(1)?)?;
        if lower.at >= from {
            return Some(lower.number);
        }
        let upper = *self.entries.get(after)?;
        let between = upper.number - lower.number;
        if between < 2 {
            return None;
        }
        let span = upper.at.saturating_since(lower.at).as_secs_f64();
        let share = from.saturating_since(lower.at).as_secs_f64() / span.max(1e-9);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share of a count that fits"
        )]
        let inside = (between as f64 * share.min(1.0)).round() as u64;
        Some(lower.number + inside.clamp(1, between - 1))
    }

    /// Forgets what lies before datagram `number`, which may still be asked for.
    pub(super) fn forget_before(&mut self, number: u64) {
        while self
            .entries
            .get(1)
            .is_some_and(|sent| sent.number <= number)
        {
            self.entries.pop_front();
        }
        if self.entries.len() < ENTRIES_MAX / 8 {
            self.stride /= 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_in_a_long_flight_is_not_spread_over_what_left_around_it() {
        let mut log = SentLog::default();
        let at = |number: u64| {
            let pauses = Duration::from_millis(if number < 21_001 { 0 } else { 50 });
            Instant::START + Duration::from_micros(100 * number) + pauses
        };
        for number in 0..60_000 {
            log.on_sent(at(number), number, ByteCount(1_000));
        }
        assert!(log.entries.len() <= ENTRIES_MAX);
        for number in 20_990..21_010 {
            let sent = log.at(number).expect("it is kept");
            let wrong = at(number)
                .saturating_since(sent.at)
                .max(sent.at.saturating_since(at(number)));
            assert!(wrong < PAUSE, "{number}: {wrong:?}");
        }
    }

    #[test]
    fn a_long_flight_is_kept_with_fewer_entries_and_read_between_them() {
        let mut log = SentLog::default();
        let at = |number: u64| Instant::START + Duration::from_micros(10 * number);
        for number in 0..100_000 {
            log.on_sent(at(number), number, ByteCount(1_000));
        }
        assert!(log.entries.len() <= ENTRIES_MAX);
        for number in [1, 999, 54_321, 99_998, 99_999] {
            let sent = log.at(number).expect("not reported yet");
            assert_eq!(sent.octets, 1_000 * (number + 1));
            assert_eq!(sent.at, at(number));
        }
        assert_eq!(log.at(100_000), None, "never sent");
        for number in [1, 999, 54_321, 99_998, 99_999] {
            let from = at(number);
            let found = log.number_in(from, from + Duration::from_micros(1));
            assert_eq!(found, Some(number));
        }
        let late = at(100_000);
        assert_eq!(log.number_in(late, late + Duration::from_micros(1)), None);
        log.forget_before(50_000);
        assert!(log.at(50_000).is_some());
        assert_eq!(log.at(10_000), None, "forgotten");
        let early = at(10_000);
        let until = early + Duration::from_micros(1);
        assert_eq!(log.number_in(early, until), None, "forgotten");
    }

    #[test]
    fn a_time_at_which_nothing_left_names_no_datagram() {
        let mut log = SentLog::default();
        let at = |micros| Instant::START + Duration::from_micros(micros);
        for (number, micros) in [(0, 100), (1, 200), (2, 200), (3, 300)] {
            log.on_sent(at(micros), number, ByteCount(1_000));
        }
        assert_eq!(log.number_in(at(200), at(201)), Some(2), "the newest");
        assert_eq!(log.number_in(at(150), at(166)), None);
        assert_eq!(log.number_in(at(288), at(304)), Some(3));
    }
}
