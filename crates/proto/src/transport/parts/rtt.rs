//! Round-trip time and retransmission timeout.
//!
//! RFC 6298 arithmetic. AeroTP's papers give no timeout. It uses the RFC's with two differences
//! that its links ask for: the minimum is not one second but follows the link, and the timeout
//! backs off only while nothing at all comes back.

use crate::units::Duration;

/// Bounds of the retransmission timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RtoLimits {
    /// The timeout before the first sample.
    pub initial: Duration,
    /// The least time added to the round trip, for serialization and timers (the G of RFC 6298).
    pub margin: Duration,
    /// The number of variations added (the K of RFC 6298, 4).
    pub variations: u8,
    /// The number of smoothed round trips added at the least; none by RFC 6298, one makes the upper
    /// beta of RFC 793's timeout, 2.
    pub round_trips: u8,
    /// The least timeout; RFC 6298 asks TCP for a second.
    pub min: Duration,
    /// The greatest timeout by backing off; a path whose own timeout is longer keeps that.
    pub max: Duration,
}

impl Default for RtoLimits {
    fn default() -> Self {
        Self {
            initial: Duration::from_secs(1),
            margin: Duration::from_millis(10),
            variations: 4,
            round_trips: 0,
            min: Duration::ZERO,
            // A path that comes back is found within this time, or within a second when every other
            // probe is lost.
            max: Duration::from_millis(500),
        }
    }
}

/// An estimator of the round-trip time and of the retransmission timeout that follows from it.
#[derive(Clone, Debug)]
pub struct RttEstimator {
    limits: RtoLimits,
    smoothed: Option<Duration>,
    variation: Duration,
    min: Option<Duration>,
    back_off: u32,
}

/// Doublings after which the timeout has reached any maximum.
const BACK_OFF_MAX: u32 = 16;

impl RttEstimator {
    /// An estimator without a sample.
    pub const fn new(limits: RtoLimits) -> Self {
        Self {
            limits,
            smoothed: None,
            variation: Duration::ZERO,
            min: None,
            back_off: 0,
        }
    }

    /// Takes a sample: the time between a transmission and the receiver's answer to it, less the
    /// time that the receiver says it waited.
    pub fn on_sample(&mut self, sample: Duration) {
        self.back_off = 0;
        self.min = Some(self.min.map_or(sample, |min| min.min(sample)));
        self.smoothed = Some(match self.smoothed {
            None => {
                self.variation = sample / 2;
                sample
            }
            Some(smoothed) => {
                self.variation = self.variation * 3 / 4 + smoothed.abs_diff(sample) / 4;
                smoothed * 7 / 8 + sample / 8
            }
        });
    }

    /// An estimator that begins with the values that another connection on the path learned.
    pub const fn resumed(limits: RtoLimits, smoothed: Duration, variation: Duration) -> Self {
        Self {
            limits,
            smoothed: Some(smoothed),
            variation,
            min: None,
            back_off: 0,
        }
    }

    /// Raises the timeout to `rto` if it would be less and there is no sample.
    pub fn at_least(&mut self, rto: Duration) {
        if self.smoothed.is_none() && self.rto() < rto {
            self.limits.initial = rto;
            self.back_off = 0;
        }
    }

    /// Notes that something new came back, though it gives no sample.
    pub const fn on_progress(&mut self) {
        self.back_off = 0;
    }

    /// Notes that a timeout passed without an answer: the next one is longer.
    pub fn on_silence(&mut self) {
        self.back_off = (self.back_off + 1).min(BACK_OFF_MAX);
    }

    /// The timeout: SRTT + max(margin, K RTTVAR, round trips) or the minimum, doubled for each silence,
    /// within the limits.
    pub fn rto(&self) -> Duration {
        let limits = &self.limits;
        let slack = (self.variation * u32::from(limits.variations)).max(limits.margin);
        let base = self.smoothed.map_or(limits.initial, |rtt| {
            let slack = slack.max(rtt * u32::from(limits.round_trips));
            (rtt + slack).max(limits.min)
        });
        base.saturating_mul(1 << self.back_off)
            .min(self.limits.max.max(base))
    }

    /// The smoothed round-trip time, if there was a sample.
    pub const fn smoothed(&self) -> Option<Duration> {
        self.smoothed
    }

    /// The variation of the samples.
    pub const fn variation(&self) -> Duration {
        self.variation
    }

    /// The shortest sample.
    pub const fn min(&self) -> Option<Duration> {
        self.min
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);
    const LIMITS: RtoLimits = RtoLimits {
        initial: Duration::from_secs(1),
        margin: Duration::from_millis(10),
        variations: 4,
        round_trips: 0,
        min: Duration::ZERO,
        max: Duration::from_secs(4),
    };

    #[test]
    fn the_first_sample_sets_rtt_and_half_of_it_as_variation() {
        let mut rtt = RttEstimator::new(LIMITS);
        assert_eq!(rtt.rto(), Duration::from_secs(1));
        rtt.on_sample(100 * MS);
        assert_eq!(rtt.rto(), 300 * MS); // RFC 6298, 2.2: R + 4 * R/2
        rtt.on_sample(100 * MS);
        assert_eq!(rtt.rto(), 250 * MS); // RTTVAR * 3/4
    }

    #[test]
    fn a_bold_timeout_trusts_the_variation_and_a_cautious_one_adds_round_trips() {
        let steady = |limits| {
            let mut rtt = RttEstimator::new(limits);
            // The variation falls by a quarter each: below a microsecond.
            (0..60).for_each(|_| rtt.on_sample(100 * MS));
            rtt.rto()
        };
        let bold = RtoLimits {
            margin: Duration::from_micros(10),
            variations: 1,
            ..LIMITS
        };
        let (low, high) = (100 * MS, 100 * MS + Duration::from_micros(11));
        assert!((low..=high).contains(&steady(bold)), "{:?}", steady(bold));
        let cautious = RtoLimits {
            round_trips: 1,
            ..bold
        };
        assert!((2 * low..=2 * high).contains(&steady(cautious)));
    }

    #[test]
    fn silence_doubles_the_timeout_up_to_the_maximum_and_an_answer_restores_it() {
        let mut rtt = RttEstimator::new(LIMITS);
        rtt.on_sample(100 * MS);
        rtt.on_silence();
        assert_eq!(rtt.rto(), 600 * MS);
        for _ in 0..100 {
            rtt.on_silence();
        }
        assert_eq!(rtt.rto(), Duration::from_secs(4));
        rtt.on_sample(100 * MS);
        assert_eq!(rtt.rto(), 250 * MS);
    }

    #[test]
    fn a_path_slower_than_the_maximum_still_gets_its_own_round_trip() {
        let mut rtt = RttEstimator::new(LIMITS);
        rtt.on_sample(Duration::from_secs(20));
        assert_eq!(rtt.rto(), Duration::from_secs(60));
    }
}
