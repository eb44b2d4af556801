//! The timestamps of transmissions, as acknowledgements echo them, and their order.

use crate::units::{Duration, Instant};
use crate::wire::cut;

/// The age up to which timestamps are compared: 32 bits of microseconds order arrivals within half
/// an hour.
const STAMP_TRUST: Duration = Duration::from_secs(1_000);

/// Whether timestamp `a` lies before `b` on the wrapping circle.
pub(super) const fn stamp_before(a: u32, b: u32) -> bool {
    a != b && b.wrapping_sub(a) < 1 << 31
}

/// The latest transmission known to have arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct NewestArrival {
    pub(super) stamp: u32,
    pub(super) learned_at: Instant,
}

impl NewestArrival {
    /// Whether one stamped `stamp` is newer.
    pub(super) fn gives_way_to(self, now: Instant, stamp: u32) -> bool {
        // Timestamps wrap: after a long pause an old one would look new.
        now.saturating_since(self.learned_at) > STAMP_TRUST || stamp_before(self.stamp, stamp)
    }
}

/// The timestamps that are echoed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stamps {
    /// Whether they are rounded down to the unit of [`cut::floor`].
    are_cut: bool,
}

impl Stamps {
    pub(super) const fn cut(&mut self) {
        self.are_cut = true;
    }

    pub(super) const fn are_cut(self) -> bool {
        self.are_cut
    }

    /// The timestamp that is echoed for a transmission of this time.
    pub(super) const fn of(self, sent_at: Instant) -> u32 {
        let micros = sent_at.as_wrapping_micros();
        if self.are_cut {
            cut::floor(micros)
        } else {
            micros
        }
    }
}
