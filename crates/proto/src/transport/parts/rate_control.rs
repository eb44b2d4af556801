//! The sending rate: the layer below sets it, marks lower it, and loss never does.
//!
//! AeroTP is open-loop: the initial rate comes from the network layer's instrumentation and
//! congestion is signalled as backpressure, so a lost TPDU says nothing about the rate
//! (multi-mode paper, Section III-A). Marks come from two sides: the layer below reports
//! ([`LinkReport`]), and the receiver echoes ECN (RFC 3168).

use crate::units::{Bitrate, Duration, Instant};

/// The layer below's knowledge of the link. Absent fields change nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkReport {
    /// The rate that the link carries for us; becomes the upper bound of the rate.
    pub available: Option<Bitrate>,
    /// The time that a datagram queued now would wait below us.
    pub queue: Option<Duration>,
    /// Whether the layer below is congested (AeroNP's congestion indicator).
    pub congested: bool,
}

/// The factor for a mark, from ABE (RFC 8511): milder than for a loss, since queues that mark are
/// short.
const MARK_FACTOR: f64 = 0.8;
/// The share of the upper bound that is regained with every round trip without a mark.
const RECOVERY_SHARE: f64 = 0.05;
/// The share of the upper bound below which marks do not lower the rate: probes must continue.
const FLOOR_SHARE: f64 = 0.01;
/// The queue below us above which it counts as a mark.
const QUEUE_MAX: Duration = Duration::from_millis(100);
/// The least time between marks, and between recoveries, until a round trip is known.
const ROUND_DEFAULT: Duration = Duration::from_millis(100);

/// A rate that follows the upper bound and the marks.
#[derive(Clone, Debug)]
pub struct RateControl {
    bound: Bitrate,
    rate: Bitrate,
    changed_at: Option<Instant>,
}

impl RateControl {
    /// Starts at the rate that the layer below names: there is no slow start.
    pub const fn new(bound: Bitrate) -> Self {
        Self {
            bound,
            rate: bound,
            changed_at: None,
        }
    }

    /// The rate to pace at.
    pub const fn rate(&self) -> Bitrate {
        self.rate
    }

    /// The rate that the layer below names.
    pub const fn bound(&self) -> Bitrate {
        self.bound
    }

    /// Takes a report of the layer below.
    pub fn on_link_report(&mut self, now: Instant, report: LinkReport, rtt: Option<Duration>) {
        if let Some(available) = report.available {
            let was_full = self.rate == self.bound;
            self.bound = available;
            self.rate = if was_full {
                available
            } else {
                self.rate.min(available)
            };
        }
        if report.congested || report.queue.is_some_and(|queue| queue > QUEUE_MAX) {
            self.on_mark(now, rtt);
        }
    }

    /// Takes a congestion mark that the receiver echoed: slows down, at most once in a round trip.
    pub fn on_mark(&mut self, now: Instant, rtt: Option<Duration>) {
        if self.round_passed(now, rtt) {
            self.changed_at = Some(now);
            self.rate = self
                .rate
                .scaled(MARK_FACTOR)
                .max(self.bound.scaled(FLOOR_SHARE));
        }
    }

    /// Takes an acknowledgement without a mark: regains a share in each round trip.
    pub fn on_clear(&mut self, now: Instant, rtt: Option<Duration>) {
        if self.rate < self.bound && self.round_passed(now, rtt) {
            self.changed_at = Some(now);
            let step = self.bound.scaled(RECOVERY_SHARE).as_bits_per_second();
            let raised = self.rate.as_bits_per_second().saturating_add(step);
            self.rate = Bitrate::from_bits_per_second(raised).min(self.bound);
        }
    }

    fn round_passed(&self, now: Instant, rtt: Option<Duration>) -> bool {
        self.changed_at
            .is_none_or(|at| now.saturating_since(at) >= rtt.unwrap_or(ROUND_DEFAULT))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUND: Bitrate = Bitrate::from_bits_per_second(10_000_000);
    const RTT: Option<Duration> = Some(Duration::from_millis(20));

    fn at(ms: u64) -> Instant {
        Instant::START + Duration::from_millis(ms)
    }

    #[test]
    fn marks_slow_down_once_in_a_round_trip_and_silence_of_marks_wins_the_rate_back() {
        let mut control = RateControl::new(BOUND);
        control.on_mark(at(100), RTT);
        control.on_mark(at(110), RTT);
        assert_eq!(control.rate(), Bitrate::from_bits_per_second(8_000_000));
        for round in 1..=10 {
            control.on_clear(at(100 + 20 * round), RTT);
        }
        assert_eq!(control.rate(), BOUND);
    }

    #[test]
    fn the_layer_below_sets_the_bound_at_once_in_both_directions() {
        let mut control = RateControl::new(BOUND);
        let report = |bits| LinkReport {
            available: Some(Bitrate::from_bits_per_second(bits)),
            ..LinkReport::default()
        };
        control.on_link_report(at(1), report(2_000_000), RTT);
        assert_eq!(control.rate(), Bitrate::from_bits_per_second(2_000_000));
        control.on_link_report(at(2), report(5_000_000), RTT);
        assert_eq!(control.rate(), Bitrate::from_bits_per_second(5_000_000));
    }

    #[test]
    fn marks_never_stop_the_flow() {
        let mut control = RateControl::new(BOUND);
        for round in 1..1000 {
            let congested = LinkReport {
                congested: true,
                ..LinkReport::default()
            };
            control.on_link_report(at(20 * round), congested, RTT);
        }
        assert_eq!(control.rate(), Bitrate::from_bits_per_second(100_000));
    }
}
