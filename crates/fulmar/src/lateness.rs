//! The lateness of a message by two clocks that nobody has set.
//!
//! Arrival minus the sender's stamp is the one-way delay plus the clocks' unknown offset. The least such difference
//! of the last one to two minutes stands for a way without queue and repair (as in LEDBAT, RFC 6817, section
//! 3.1.1.2); what a message has above it is its lateness.

use fulmar_proto::units::{Duration, Instant};

/// Clocks drift by up to 50 ppm: 3 ms in this time.
const WINDOW: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
pub(crate) struct Lateness {
    /// The first difference seen; the others are relative to it.
    origin: Option<u32>,
    /// The least of the present window and of the one before, and when the present one began.
    windows: Option<(i64, i64, Instant)>,
}

impl Lateness {
    /// The delay of a message, stamped in microseconds modulo 2^32, above the least.
    pub(crate) fn of(&mut self, now: Instant, stamp: u32) -> Duration {
        let difference = now.as_wrapping_micros().wrapping_sub(stamp);
        let origin = *self.origin.get_or_insert(difference);
        let relative = i64::from(difference.wrapping_sub(origin).cast_signed());
        let (least, before, began) = match self.windows {
            None => (relative, relative, now),
            Some((least, _, began)) if now.saturating_since(began) >= WINDOW => {
                (relative, least, now)
            }
            Some((least, before, began)) => (least.min(relative), before, began),
        };
        self.windows = Some((least, before, began));
        Duration::from_micros(u64::try_from(relative - least.min(before)).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slower_way_is_the_usual_one_after_two_windows() {
        let mut lateness = Lateness::default();
        let mut late = |minute: u32, delay: u64| {
            let sent = minute * 60_000_000;
            let arrives = Instant::START + Duration::from_micros(u64::from(sent) + delay);
            lateness.of(arrives, sent).as_micros()
        };
        assert_eq!([late(0, 500), late(0, 700), late(0, 400)], [0, 200, 0]);
        assert_eq!([late(1, 600), late(1, 600)], [200, 200]);
        assert_eq!([late(2, 600), late(3, 600)], [0, 0]);
    }
}
