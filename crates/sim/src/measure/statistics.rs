//! Means with 95 % confidence intervals, and percentiles.

use core::time::Duration;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// A sample's mean with its uncertainty.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Summary {
    /// The mean; `None` for an empty sample.
    pub mean: Option<f64>,
    /// Half the width of the 95 % confidence interval (Student's t); `None` below two values.
    pub ci95: Option<f64>,
    /// The number of runs that had a value.
    pub n: usize,
}

/// Summarises the values that exist.
pub fn summarise(values: impl Iterator<Item = Option<f64>>) -> Summary {
    let mut running = RunningSummary::default();
    values.for_each(|value| running.take(value));
    running.summary()
}

/// The summary of values that come one by one, of which none is kept.
#[derive(Clone, Copy, Debug, Default)]
pub struct RunningSummary {
    n: usize,
    sum: f64,
    /// The mean so far, and the squares of the deviations from it (Welford 1962).
    centre: f64,
    squares: f64,
}

impl RunningSummary {
    /// Takes the next value. One that is absent or not finite does not count.
    pub fn take(&mut self, value: Option<f64>) {
        let Some(value) = value.filter(|value| value.is_finite()) else {
            return;
        };
        self.n += 1;
        self.sum += value;
        let off = value - self.centre;
        self.centre += off / self.n as f64;
        self.squares += off * (value - self.centre);
    }

    /// The summary of the values so far.
    pub fn summary(&self) -> Summary {
        let n = self.n;
        Summary {
            mean: (n > 0).then(|| self.sum / n as f64),
            ci95: (n >= 2).then(|| {
                let variance = self.squares / (n - 1) as f64;
                student_975(n - 1) * (variance / n as f64).sqrt()
            }),
            n,
        }
    }
}

/// The 97.5 % point of Student's t distribution.
fn student_975(degrees_of_freedom: usize) -> f64 {
    StudentsT::new(0.0, 1.0, degrees_of_freedom as f64)
        .map_or(f64::INFINITY, |t| t.inverse_cdf(0.975))
}

/// The `share` percentile (0..=1) of `sorted`, nearest rank.
pub fn percentile<T: Copy + Ord>(sorted: &[T], share: f64) -> Option<T> {
    let last = sorted.len().checked_sub(1)?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rank between 0 and the length"
    )]
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1).min(last)).copied()
}

/// The mean of some spans, in seconds.
pub fn mean_seconds<T: Copy + Into<Duration>>(spans: &[T]) -> Option<f64> {
    let spans_in_full = spans.iter().map(|&span| span.into());
    let nanos: u128 = spans_in_full.map(|span: Duration| span.as_nanos()).sum();
    (!spans.is_empty()).then(|| nanos as f64 / spans.len() as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_students() {
        let summary = summarise([1.0, 2.0, 3.0, 4.0, 5.0].map(Some).into_iter());
        assert_eq!(summary.n, 5);
        // t(0.975, 4) = 2.776445; s = sqrt(2.5); half width = t s / sqrt(5).
        let expected = 2.776_445 * (2.5_f64).sqrt() / 5.0_f64.sqrt();
        assert!((summary.mean.unwrap() - 3.0).abs() < 1e-12);
        assert!((summary.ci95.unwrap() - expected).abs() < 1e-5);
    }

    #[test]
    fn missing_values_do_not_count_and_one_value_has_no_interval() {
        let summary = summarise([None, Some(4.0), Some(f64::NAN)].into_iter());
        assert_eq!(
            (summary.n, summary.mean, summary.ci95),
            (1, Some(4.0), None)
        );
        assert_eq!(summarise(std::iter::empty()).mean, None);
    }

    #[test]
    fn a_small_spread_around_a_large_mean_is_not_lost() {
        let summary = summarise([1e9, 1e9 + 1.0, 1e9 + 2.0].map(Some).into_iter());
        // s = 1; t(0.975, 2) = 4.302653.
        let expected = 4.302_653 / 3.0_f64.sqrt();
        assert!((summary.ci95.unwrap() - expected).abs() < 1e-5);
        let equal = summarise([0.1; 7].map(Some).into_iter());
        assert_eq!(equal.ci95, Some(0.0));
    }

    #[test]
    fn percentiles_are_nearest_rank() {
        let spans: Vec<_> = (1..=100).map(Duration::from_secs).collect();
        assert_eq!(percentile(&spans, 0.5), Some(Duration::from_secs(50)));
        assert_eq!(percentile(&spans, 0.99), Some(Duration::from_secs(99)));
        assert_eq!(percentile(&spans[..1], 0.99), Some(Duration::from_secs(1)));
        assert_eq!(percentile::<Duration>(&[], 0.5), None);
    }
}
