//! The last round trips as they were measured, for quantiles: a mean hides the slow ones.

use fulmar_proto::units::Duration;
use std::collections::VecDeque;

/// The most round trips that are kept; an idle link has one measured in ten seconds.
const KEPT: usize = 256;

/// Quantiles of the last round trips: each is a measured one (nearest rank, without interpolation).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundTripQuantiles {
    /// The number of round trips.
    pub samples: usize,
    /// The median.
    pub p50: Duration,
    /// Nine in ten are at most this.
    pub p90: Duration,
    /// Ninety-nine in a hundred are at most this.
    pub p99: Duration,
}

/// A peer's last round trips. At most 256 are kept.
#[derive(Clone, Debug, Default)]
pub(super) struct RoundTrips(VecDeque<Duration>);

impl RoundTrips {
    pub(super) fn on_sample(&mut self, sample: Duration) {
        if self.0.len() >= KEPT {
            self.0.pop_front();
        }
        self.0.push_back(sample);
    }

    pub(super) fn quantiles(&self) -> Option<RoundTripQuantiles> {
        let mut sorted: Vec<Duration> = self.0.iter().copied().collect();
        sorted.sort_unstable();
        let longest = *sorted.last()?;
        let at = |percent: usize| {
            let rank = (sorted.len() * percent).div_ceil(100);
            let sample = sorted.get(rank.saturating_sub(1));
            sample.copied().unwrap_or(longest)
        };
        Some(RoundTripQuantiles {
            samples: sorted.len(),
            p50: at(50),
            p90: at(90),
            p99: at(99),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(millis: impl IntoIterator<Item = u64>) -> Option<RoundTripQuantiles> {
        let mut trips = RoundTrips::default();
        for millis in millis {
            trips.on_sample(Duration::from_millis(millis));
        }
        trips.quantiles()
    }

    #[test]
    fn quantiles_are_measurements_by_nearest_rank() {
        assert_eq!(of([]), None);
        let one = of([7]).unwrap();
        assert_eq!((one.samples, one.p50, one.p99), (1, one.p90, one.p90));
        let hundred = of((1..=100).rev()).unwrap();
        let millis = |n| Duration::from_millis(n);
        assert_eq!(hundred.samples, 100);
        assert_eq!(
            (hundred.p50, hundred.p90, hundred.p99),
            (millis(50), millis(90), millis(99))
        );
    }

    #[test]
    fn the_oldest_give_way() {
        let last = of((0..KEPT as u64)
            .map(|_| 1_000)
            .chain((0..KEPT as u64).map(|_| 1)));
        let last = last.unwrap();
        assert_eq!(last.samples, KEPT);
        assert_eq!(last.p99, Duration::from_millis(1));
    }
}
