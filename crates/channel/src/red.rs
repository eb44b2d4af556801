//! RED: early signals of congestion from the average length of a queue.
//!
//! ```text
//! avg <- (1 - w) avg + w q                          at every arrival
//! pb = probability (avg - min) / (max - min)        between min and max
//! pa = pb / (1 - count pb)                          spread evenly over the packets
//! ```
//!
//! After idle time the average is as if the packets that could have been sent meanwhile had found
//! the queue empty. From `max` to twice `max` the probability rises to 1 ("gentle"); above that,
//! every packet is signalled.
//!
//! # Sources
//! Floyd and Jacobson, "Random Early Detection Gateways for Congestion Avoidance", IEEE/ACM
//! Transactions on Networking 1(4), 1993; Floyd, "Recommendation on using the gentle variant of RED", 2000.

use crate::config_error::{ChannelConfigError, Setting};
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{Duration, Instant, Probability};

/// The settings of RED. Lengths are packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RedConfig {
    /// Below this average no packet is signalled.
    pub min: u32,
    /// At this average the probability reaches `probability`.
    pub max: u32,
    /// The probability of a signal as the average reaches `max`, not counting the spreading.
    pub probability: Probability,
    /// The weight w of one arrival in the average, above 0 and at most 1.
    pub weight: f64,
}

impl RedConfig {
    /// Settings for thresholds `min` and `max`, with the paper's weight 0.002 and the 10 % that
    /// Floyd recommends.
    pub fn between(min: u32, max: u32) -> Self {
        Self {
            min,
            max,
            probability: Probability::new(0.1).unwrap_or_default(),
            weight: 0.002,
        }
    }

    /// Checks every field.
    ///
    /// # Errors
    /// The first field out of range.
    pub fn validate(&self) -> Result<(), ChannelConfigError> {
        if self.min >= self.max {
            let allowed = format!("above `min`, {}", self.min);
            return Err(ChannelConfigError::new(
                Setting::Red.part("max"),
                self.max,
                allowed,
            ));
        }
        if !(self.weight > 0.0 && self.weight <= 1.0) {
            let allowed = "above 0 and at most 1";
            return Err(ChannelConfigError::new(
                Setting::Red.part("weight"),
                self.weight,
                allowed,
            ));
        }
        Ok(())
    }
}

/// The state of RED on one queue.
#[derive(Clone, Debug)]
pub(crate) struct Red {
    config: RedConfig,
    rng: Rng,
    average: f64,
    /// Packets since the last signal, or since the average rose to `min`.
    unsignalled: u32,
    idle_since: Option<Instant>,
    /// The time that a typical packet occupies the link.
    packet_time: Duration,
}

impl Red {
    pub(crate) fn new(config: RedConfig, packet_time: Duration, rng: Rng) -> Self {
        Self {
            config,
            rng,
            average: 0.0,
            unsignalled: 0,
            idle_since: Some(Instant::START),
            packet_time,
        }
    }

    /// Notes that the queue ran empty.
    pub(crate) const fn idle(&mut self, now: Instant) {
        self.idle_since = Some(now);
    }

    /// Notes that a packet arrives at a queue of `waiting`. Returns whether to signal congestion.
    pub(crate) fn arrival(&mut self, now: Instant, waiting: usize) -> bool {
        self.update(now, waiting);
        let (min, max) = (f64::from(self.config.min), f64::from(self.config.max));
        let ceiling = self.config.probability.value();
        if self.average < min {
            self.unsignalled = 0;
            return false;
        }
        if self.average >= 2.0 * max {
            self.unsignalled = 0;
            return true;
        }
        let base = if self.average < max {
            ceiling * (self.average - min) / (max - min)
        } else {
            ceiling + (1.0 - ceiling) * (self.average - max) / max
        };
        let count = self.unsignalled;
        let left = 1.0 - f64::from(count) * base;
        let signalled = left <= base || self.rng.chance(base / left);
        self.unsignalled = if signalled {
            0
        } else {
            count.saturating_add(1)
        };
        signalled
    }

    fn update(&mut self, now: Instant, waiting: usize) {
        let weight = self.config.weight;
        if let Some(since) = self.idle_since.take()
            && !self.packet_time.is_zero()
        {
            let idle = now.saturating_since(since).as_secs_f64();
            self.average *= (1.0 - weight).powf(idle / self.packet_time.as_secs_f64());
        }
        self.average += weight * (waiting as f64 - self.average);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: Duration = Duration::from_millis(1);

    fn red(min: u32, max: u32) -> Red {
        Red::new(
            RedConfig::between(min, max),
            PACKET,
            Rng::from_seed(1).child("red"),
        )
    }

    /// Counts the signals in 20,000 arrivals at a queue of constant length, once the average has
    /// settled: 10,000 arrivals leave (1 - 0.002)^10000 = 2e-9 of the start.
    fn signalled_at(red: &mut Red, waiting: usize) -> u32 {
        for _ in 0..10_000 {
            red.arrival(Instant::START, waiting);
        }
        (0..20_000)
            .map(|_| u32::from(red.arrival(Instant::START, waiting)))
            .sum()
    }

    #[test]
    fn a_short_queue_is_left_alone_and_a_long_one_always_signalled() {
        assert_eq!(signalled_at(&mut red(10, 30), 9), 0);
        assert_eq!(signalled_at(&mut red(10, 30), 60), 20_000);
    }

    #[test]
    fn signals_are_spread_evenly_at_the_rate_of_the_uniform_law() {
        // At 20 of 10..30, pb = 0.05, and Floyd and Jacobson's gap between signals is uniform in
        // 1..=1/pb: a signal every 10.5 packets.
        let signalled = f64::from(signalled_at(&mut red(10, 30), 20));
        let expected = 20_000.0 / 10.5;
        // Standard deviation of a gap 5.77, so of the count 0.55 sqrt(1905) = 24; four of them.
        assert!((signalled - expected).abs() < 96.0, "{signalled}");
    }

    #[test]
    fn idle_time_lets_the_average_decay() {
        let mut red = red(10, 30);
        signalled_at(&mut red, 25);
        red.idle(Instant::START);
        // 1,000 packets' worth of silence: 25 x 0.998^1000 = 3.4.
        red.arrival(Instant::START + 1_000 * PACKET, 0);
        assert!((red.average - 3.38).abs() < 0.05, "{}", red.average);
    }
}
