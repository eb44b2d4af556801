//! The lateness of a message, by two clocks that nobody has set.
//!
//! The difference between arrival and the sender's stamp is the one-way delay plus the clocks'
//! unknown offset. The least difference seen stands for a way without queueing and repair (as in
//! LEDBAT, RFC 6817, section 3.1.1.2). The part of a message's difference above it is the message's
//! lateness. The least of the last one to two minutes is used, so that drifting clocks do no harm.
//!
//! The first messages of a flow may all have been lost and sent again: then no message has come by the way alone. The
//! transmissions that brought them have stamps of the same clock, and count as well.

use crate::units::{Duration, Instant};

/// The time for which a least difference counts at least. Clocks drift by up to 50 ppm: 3 ms in
/// that time.
const WINDOW: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
pub(super) struct Lateness {
    /// The first difference seen; other differences are kept relative to it.
    origin: Option<u32>,
    least: Option<i64>,
    least_before: Option<i64>,
    window_began: Option<Instant>,
    /// The newest transmission: its stamp, and its arrival.
    sent: Option<(u32, Instant)>,
}

/// The highest bits of a transmission's stamp, which its short form lacks.
const BITS_CUT: u32 = 4;

impl Lateness {
    /// Notes the transmission that brings the next message: its stamp, and its arrival.
    pub(super) const fn note_transmission(&mut self, sent: (u32, Instant)) {
        self.sent = Some(sent);
    }

    /// The lateness of a message with this stamp: its delay beyond the least.
    pub(super) fn of(&mut self, now: Instant, stamp: u32) -> Duration {
        let difference = now.as_wrapping_micros().wrapping_sub(stamp);
        let origin = *self.origin.get_or_insert(difference);
        let relative = i64::from(difference.wrapping_sub(origin).cast_signed());
        match self.window_began {
            Some(began) if now.saturating_since(began) < WINDOW => {}
            _ => {
                self.least_before = self.least.take();
                self.window_began = Some(now);
            }
        }
        let of_way = self.sent.take().map_or(relative, |(stamp, at)| {
            let difference = at.as_wrapping_micros().wrapping_sub(stamp);
            let beyond = difference.wrapping_sub(origin) << BITS_CUT;
            i64::from(beyond.cast_signed() >> BITS_CUT)
        });
        let relative_least = relative.min(of_way);
        let least = self
            .least
            .map_or(relative_least, |least| least.min(relative_least));
        self.least = Some(least);
        let base = self.least_before.map_or(least, |before| before.min(least));
        Duration::from_micros(u64::try_from(relative - base).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Instant {
        Instant::START + Duration::from_micros(micros)
    }

    #[test]
    fn what_counts_is_the_delay_above_the_least_whatever_the_clocks_say() {
        for offset in [0, 17, u32::MAX - 3, 1 << 31] {
            let mut lateness = Lateness::default();
            let mut late = |sent: u32, delay: u32| {
                let arrives = at(u64::from(sent) + u64::from(delay));
                lateness.of(arrives, sent.wrapping_add(offset)).as_micros()
            };
            assert_eq!(late(0, 500), 0);
            assert_eq!(late(1_000, 700), 200);
            assert_eq!(late(2_000, 400), 0, "a new least");
            assert_eq!(late(3_000, 700), 300);
        }
    }

    #[test]
    fn a_first_message_that_was_sent_again_is_as_late_as_it_is() {
        for offset in [0, 17, u32::MAX - 3, 1 << 31] {
            let mut lateness = Lateness::default();
            let stamp = |micros: u32| micros.wrapping_add(offset);
            // Written at 0, sent again at 70,000, on the way for 500; its transmission's stamp is cut to 28 bits.
            lateness.note_transmission((stamp(70_000) & u32::MAX >> BITS_CUT, at(70_500)));
            let late = lateness.of(at(70_500), stamp(0));
            assert_eq!(late.as_micros(), 70_000);
            lateness.note_transmission((stamp(80_000), at(80_500)));
            let late = lateness.of(at(80_500), stamp(80_000));
            assert_eq!(late.as_micros(), 0);
        }
    }

    #[test]
    fn a_base_is_forgotten_after_two_windows() {
        let mut lateness = Lateness::default();
        let minute = 60_000_000;
        assert_eq!(lateness.of(at(0), 0).as_micros(), 0);
        let slow = |n: u32| (at(u64::from(n) * minute + 100), n * 60_000_000);
        let (now, stamp) = slow(1);
        assert_eq!(lateness.of(now, stamp).as_micros(), 100);
        let (now, stamp) = slow(2);
        assert_eq!(lateness.of(now, stamp).as_micros(), 0, "the path is slower");
    }
}
