//! The one place that reads a clock.

use fulmar_proto::units::{Duration, Instant};

/// The monotonic clock, counted from the moment this value was made. Copies agree with each other.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: std::time::Instant,
}

impl Clock {
    /// A clock at [`Instant::START`].
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the one place that reads a clock"
    )]
    pub fn start() -> Self {
        Self {
            origin: std::time::Instant::now(),
        }
    }

    /// Now, in nanoseconds since [`Clock::start`].
    pub fn now(&self) -> Instant {
        Instant::START + self.origin.elapsed()
    }

    /// The system's name for a time of this clock, for loops that wait by the system's.
    pub fn system_time(&self, at: Instant) -> std::time::Instant {
        self.origin + at.saturating_since(Instant::START)
    }
}

/// The system's time of day, since 1970, for values that must outlive a process. It may jump.
#[expect(
    clippy::disallowed_methods,
    reason = "this is the one place that reads a clock"
)]
pub fn unix_time() -> Duration {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_never_goes_backwards_and_copies_agree() {
        let clock = Clock::start();
        let copy = clock;
        let first = clock.now();
        let second = copy.now();
        let third = clock.now();
        assert!(first <= second && second <= third);
    }
}
