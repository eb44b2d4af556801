//! Round-trip time and retransmission timeout.
//!
//! RFC 6298 arithmetic. AeroTP's papers give no timeout. It uses the RFC's with two differences
//! that its links ask for: the minimum is not one second but follows the link, and the timeout
//! backs off only while nothing at all comes back.

use crate::units::{Bitrate, ByteCount, Duration};
use core::num::NonZeroU16;

/// The pause between probes for a first answer. Sessions repeat their first message as often.
const PROBE_EVERY: Duration = Duration::from_millis(250);
/// A probe for a first answer takes at most one part in so many of the rate.
const PROBE_RATE_PART: u32 = 16;

/// Bounds of the retransmission timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RtoLimits {
    /// The timeout before the first sample.
    pub initial: Duration,
    /// The pause between probes before the first sample, in milliseconds, on a path of which nothing is known. A probe
    /// is one TPDU in flight once more: on a short path with loss it brings the first answer long before the timeout.
    /// Nothing is held for lost by it, so that a long path costs a few repetitions and no more.
    pub probe_millis: Option<NonZeroU16>,
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
            probe_millis: None,
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

impl RtoLimits {
    /// The defaults, with probes for a first answer four times a second. Where packets of `packet` octets take long at
    /// `rate` they are rarer, and where the timeout comes as soon there are none.
    pub fn asking_early(rate: Bitrate, packet: ByteCount) -> Self {
        let limits = Self::default();
        let pause = rate
            .time_to_send(packet)
            .saturating_mul(PROBE_RATE_PART)
            .max(PROBE_EVERY);
        let millis = u16::try_from(pause.as_millis()).ok();
        Self {
            probe_millis: millis
                .filter(|_| pause < limits.initial)
                .and_then(NonZeroU16::new),
            ..limits
        }
    }
}

impl RtoLimits {
    /// These limits on a path whose round trip is known to be `rtt`. The timeout is computed as after one sample of it
    /// (RFC 6298, 2.2), and is no longer than that of an unknown path, unless the round trip is.
    #[must_use]
    pub fn expecting(self, rtt: Duration) -> Self {
        Self {
            initial: (rtt * 3).min(self.initial).max(rtt + self.margin),
            probe_millis: None,
            ..self
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

    /// Takes a round trip that was learned without a TPDU's answer, if there is no sample and early answers are wanted.
    pub fn expect(&mut self, rtt: Duration) {
        if self.probe_pause().is_some() {
            self.limits = self.limits.expecting(rtt);
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

    /// The pause before the next probe for a first answer, while there is no sample.
    pub fn probe_pause(&self) -> Option<Duration> {
        let millis = self.limits.probe_millis;
        let millis = millis.filter(|_| self.smoothed.is_none())?;
        Some(Duration::from_millis(millis.get().into()))
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
        probe_millis: None,
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
    fn a_first_answer_is_probed_for_until_there_is_one_and_not_where_packets_take_long() {
        let pause = |bits| {
            let rate = Bitrate::from_bits_per_second(bits);
            RttEstimator::new(RtoLimits::asking_early(rate, ByteCount(1_500))).probe_pause()
        };
        assert_eq!(pause(5_000_000), Some(250 * MS));
        assert_eq!(pause(256_000), Some(750 * MS), "1500 octets take 47 ms");
        assert_eq!(pause(64_000), None, "they take 188 ms");
        assert_eq!(pause(0), None);
        let limits = RtoLimits::asking_early(Bitrate::ZERO, ByteCount(1_500));
        assert_eq!(limits, RtoLimits::default());
        let fast = Bitrate::from_bits_per_second(5_000_000);
        let mut rtt = RttEstimator::new(RtoLimits::asking_early(fast, ByteCount(1_500)));
        rtt.on_sample(10 * MS);
        assert_eq!(rtt.probe_pause(), None);
    }

    #[test]
    fn a_round_trip_that_is_expected_shortens_the_first_timeout_of_who_asks_early() {
        let early = RtoLimits::asking_early(Bitrate::from_bits_per_second(5_000_000), ByteCount(1));
        let mut rtt = RttEstimator::new(early);
        rtt.expect(20 * MS);
        assert_eq!((rtt.rto(), rtt.probe_pause()), (60 * MS, None));
        let mut patient = RttEstimator::new(LIMITS);
        patient.expect(20 * MS);
        assert_eq!(patient.rto(), LIMITS.initial);
        // What was measured counts.
        rtt.on_sample(100 * MS);
        rtt.expect(20 * MS);
        assert_eq!(rtt.rto(), 300 * MS);
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
