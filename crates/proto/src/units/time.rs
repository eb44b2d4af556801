//! Points in time, counted from the start of the run.

use core::fmt;
use core::ops::{Add, AddAssign, Sub};
use core::time::Duration;

/// A point in time: nanoseconds since the start of the run. Totally ordered, never from the OS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

impl Instant {
    /// The start of the run.
    pub const START: Self = Self(0);
    /// An instant later than any that a run reaches (584 years).
    pub const FAR_FUTURE: Self = Self(u64::MAX);

    /// The instant `nanos` nanoseconds after the start.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the start.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Seconds since the start, for reports.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Microseconds since the start, modulo 2^32: the TPDU timestamp.
    pub const fn as_wrapping_micros(self) -> u32 {
        // The remainder is below 2^32 by construction.
        ((self.0 / 1_000) & 0xFFFF_FFFF) as u32
    }

    /// The span from `earlier` to here; zero if `earlier` is later.
    pub const fn saturating_since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

impl Add<Duration> for Instant {
    type Output = Self;
    /// Adds a span; saturates at [`Instant::FAR_FUTURE`], so that "never" stays never.
    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(nanos(span)))
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, span: Duration) {
        *self = *self + span;
    }
}

impl Sub<Duration> for Instant {
    type Output = Self;
    /// Subtracts a span; saturates at [`Instant::START`].
    fn sub(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(nanos(span)))
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}.{:09}s",
            self.0 / 1_000_000_000,
            self.0 % 1_000_000_000
        )
    }
}
