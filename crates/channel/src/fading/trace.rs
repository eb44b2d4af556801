//! Received power as it was recorded.
//!
//! A trace is a value here; `crates/trace` reads the files. Samples are evenly spaced and hold
//! until the next one. They are kept relative to their mean, in four octets each.

use core::time::Duration;
use fulmar_proto::units::OpticalPower;

/// A recording of received power.
#[derive(Clone, Debug, PartialEq)]
pub struct PowerTrace {
    samples: Vec<f32>,
    spacing: Duration,
}

/// The error about a trace that is longer than its bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a power trace holds at most {} samples (28 minutes at 10 kHz); take a part of it: \
     `trace FILE part 0s+1000s`",
    PowerTrace::SAMPLES_MAX
)]
pub struct PowerTraceFull;

impl PowerTrace {
    /// The most samples that a trace holds: 64 MB of them.
    pub const SAMPLES_MAX: usize = 1 << 24;

    /// An empty trace, with a sample every `spacing`; zero reads as one nanosecond.
    pub fn new(spacing: Duration) -> Self {
        Self {
            samples: Vec::new(),
            spacing: spacing.max(Duration::from_nanos(1)),
        }
    }

    /// Adds the next sample, in any unit of power: only the ratio to the others counts.
    ///
    /// # Errors
    /// The trace is full.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "seven digits of a power are more than was measured"
    )]
    pub fn push(&mut self, power: OpticalPower) -> Result<(), PowerTraceFull> {
        if self.samples.len() == Self::SAMPLES_MAX {
            return Err(PowerTraceFull);
        }
        self.samples.push(power.watts() as f32);
        Ok(())
    }

    /// The same samples at another distance in time.
    #[must_use]
    pub fn with_spacing(mut self, spacing: Duration) -> Self {
        self.spacing = spacing.max(Duration::from_nanos(1));
        self
    }

    /// The time from one sample to the next.
    pub const fn spacing(&self) -> Duration {
        self.spacing
    }

    /// The number of samples.
    pub fn len(&self) -> usize {
        self.samples.len()
    }

    /// Whether the trace is empty.
    pub fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }

    /// Sample `index`, from 0; `None` behind the end.
    pub(crate) fn get(&self, index: usize) -> Option<f64> {
        self.samples.get(index).copied().map(f64::from)
    }

    /// The samples that belong to the channel and not to an obstruction. An obstruction is dark, or
    /// stays below `fraction` of the median for at least `shortest`.
    pub(crate) fn without_blockages(&self, cut: Option<ObstructionRule>) -> Vec<f32> {
        let lit = |sample: &f32| *sample > 0.0;
        let Some(cut) = cut else {
            return self.samples.iter().copied().filter(lit).collect();
        };
        let mut sorted: Vec<f32> = self.samples.iter().copied().filter(lit).collect();
        let middle = sorted.len() / 2;
        if sorted.is_empty() {
            return sorted;
        }
        let (_, median, _) = sorted.select_nth_unstable_by(middle, f32::total_cmp);
        let threshold = f64::from(*median) * 10_f64.powf(-cut.depth_decibels / 10.0);
        let is_low = |sample: f32| f64::from(sample) < threshold;
        let shortest = cut.shortest.as_nanos().div_ceil(self.spacing.as_nanos());
        let runs = self
            .samples
            .chunk_by(|&left, &right| is_low(left) == is_low(right));
        runs.filter(|run| {
            let low = run.first().is_some_and(|&first| is_low(first));
            !low || (run.len() as u128) < shortest
        })
        .flatten()
        .copied()
        .filter(lit)
        .collect()
    }
}

/// The rule by which a part of a trace is an obstruction rather than a fade.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ObstructionRule {
    /// The depth below the median of the power, in decibels; above zero.
    pub depth_decibels: f64,
    /// The shortest duration of an obstruction.
    pub shortest: Duration,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(powers: &[f64]) -> PowerTrace {
        let mut trace = PowerTrace::new(Duration::from_millis(1));
        for &power in powers {
            trace
                .push(OpticalPower::from_watts(power).unwrap())
                .unwrap();
        }
        trace
    }

    #[test]
    fn only_deep_and_long_drops_are_cut_out() {
        let powers = [
            1.0, 0.05, 1.0, 0.05, 0.04, 0.0, 0.05, 1.0, 0.2, 0.2, 0.2, 0.2,
        ];
        let cut = ObstructionRule {
            depth_decibels: 10.0,
            shortest: Duration::from_millis(4),
        };
        let left = trace(&powers).without_blockages(Some(cut));
        // The median of the lit samples is 0.2: a threshold of 0.02 would leave all but the dark
        // one.
        assert_eq!(left.len(), 11);
        let cut = ObstructionRule {
            depth_decibels: 3.0,
            ..cut
        };
        let left = trace(&powers).without_blockages(Some(cut));
        assert_eq!(left, [1.0, 0.05, 1.0, 1.0, 0.2, 0.2, 0.2, 0.2]);
        assert_eq!(trace(&powers).without_blockages(None).len(), 11);
    }
}
