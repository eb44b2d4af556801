//! The probes of a path on which nothing was ever heard: soon at first, ever more rarely later.

use crate::units::{Duration, Instant};

/// The pause between two probes at first.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// The pause between them at last.
const LAST_PAUSE: Duration = Duration::from_secs(2);

/// The times of probes, until one is answered.
#[derive(Clone, Copy, Debug)]
pub struct FirstProbes {
    /// The time of the next one.
    at: Option<Instant>,
    pause: Duration,
}

impl FirstProbes {
    /// Probes of which the first is due at `now`.
    pub const fn begin(now: Instant) -> Self {
        Self {
            at: Some(now),
            pause: FIRST_PAUSE,
        }
    }

    /// Whether one is due, which counts as sent.
    pub fn take_due(&mut self, now: Instant) -> bool {
        let is_due = self.at.is_some_and(|at| at <= now);
        if is_due {
            self.at = Some(now + self.pause);
            self.pause = (self.pause * 2).min(LAST_PAUSE);
        }
        is_due
    }

    /// Notes that something came by the path: it carries one way, and is asked as at first until it answers.
    pub fn on_heard(&mut self, now: Instant) {
        self.pause = FIRST_PAUSE;
        self.at = self.at.map(|at| at.min(now + FIRST_PAUSE));
    }

    /// Notes that one was answered: no more are due.
    pub const fn end(&mut self) {
        self.at = None;
    }

    /// The time of the next one.
    pub const fn next_at(&self) -> Option<Instant> {
        self.at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_are_ever_rarer_until_one_is_answered() {
        let mut probes = FirstProbes::begin(Instant::START);
        let mut asked = Vec::new();
        while let Some(at) = probes.next_at().filter(|at| at.as_secs_f64() < 8.0) {
            assert!(probes.take_due(at) && !probes.take_due(at));
            asked.push(at.as_nanos() / 1_000_000);
        }
        assert_eq!(asked, [0, 250, 750, 1_750, 3_750, 5_750, 7_750]);
        let millis = |millis| Instant::START + Duration::from_millis(millis);
        probes.on_heard(millis(8_000));
        assert_eq!(probes.next_at(), Some(millis(8_250)), "as at first");
        assert!(probes.take_due(millis(8_250)));
        probes.on_heard(millis(8_251));
        assert_eq!(probes.next_at(), Some(millis(8_500)));
        probes.end();
        probes.on_heard(millis(8_600));
        assert!(!probes.take_due(Instant::FAR_FUTURE));
    }
}
