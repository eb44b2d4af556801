//! The time that datagrams wait in queues on the way: their one-way delay above the least of late.

use crate::units::{Duration, Instant};

/// The span of the least delay, which is that of the last one to two spans.
const BASE_SPAN: Duration = Duration::from_secs(10);
/// The share of a new difference in the mean.
const NOISE_GAIN: f64 = 1.0 / 16.0;

/// The least delay that is a queue; it must also exceed [`QUEUE_PACKETS`] and what jitter explains.
const QUEUE_MIN: f64 = 0.000_2;
const QUEUE_PACKETS: f64 = 1.5;
const QUEUE_NOISES: f64 = 2.0;

/// A gauge of queueing delay. Delays are seconds by two clocks that need not agree.
#[derive(Clone, Debug, Default)]
pub(super) struct DelayGauge {
    /// The least delay of this span, and of the one before.
    base: Option<(f64, f64)>,
    since: Instant,
    last: Option<f64>,
    noise: f64,
    /// Whether the least delay is never forgotten.
    held: bool,
}

impl DelayGauge {
    /// Takes a one-way delay, and gives its part above the least.
    pub(super) fn on_delay(&mut self, now: Instant, delay: f64) -> f64 {
        let (current, before) = self.base.unwrap_or((delay, delay));
        let pair = if !self.held && now.saturating_since(self.since) > BASE_SPAN {
            self.since = now;
            (delay, current)
        } else {
            (current.min(delay), before)
        };
        self.base = Some(pair);
        if let Some(last) = self.last.replace(delay) {
            self.noise += ((delay - last).abs() - self.noise) * NOISE_GAIN;
        }
        delay - pair.0.min(pair.1)
    }

    /// The mean difference of delays that follow each other: what jitter explains.
    pub(super) const fn noise(&self) -> f64 {
        self.noise
    }

    /// The least delay that is a queue, with datagrams of `packet` octets at `rate` octets a second.
    pub(super) fn queue_least(&self, packet: f64, rate: f64) -> f64 {
        let noise = QUEUE_NOISES * self.noise;
        (QUEUE_PACKETS * packet / rate).max(QUEUE_MIN).max(noise)
    }

    /// Keeps the least delay, or forgets it after a time again.
    pub(super) const fn hold_base(&mut self, held: bool) {
        self.held = held;
    }

    /// Takes a delay of `queueing` above the least as the path's own.
    pub(super) fn raise_base(&mut self, now: Instant, queueing: f64) {
        if let Some((current, before)) = self.base {
            let raised = current.min(before) + queueing;
            self.base = Some((raised, raised));
            self.since = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_delay_of_the_last_spans_is_no_queue() {
        let mut gauge = DelayGauge::default();
        let at = |seconds| Instant::START + Duration::from_secs(seconds);
        assert!(gauge.on_delay(at(1), -3.0).abs() < 1e-12);
        assert!((gauge.on_delay(at(2), -2.9) - 0.1).abs() < 1e-12);
        // The path is longer from now on. After two spans the short delay is forgotten.
        assert!((gauge.on_delay(at(11), -2.5) - 0.5).abs() < 1e-12);
        assert!((gauge.on_delay(at(20), -2.5) - 0.5).abs() < 1e-12);
        assert!(gauge.on_delay(at(33), -2.5).abs() < 1e-12);
    }
}
