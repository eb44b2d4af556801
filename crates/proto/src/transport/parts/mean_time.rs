//! A mean of times that forgets.

use crate::units::Duration;

/// The weight of the past, in samples.
const MEMORY: u32 = 64;

/// The mean of some hundred newest samples; each older one counts a little less.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct MeanTime(Option<Duration>);

impl MeanTime {
    /// Takes a sample.
    pub(super) fn note(&mut self, sample: Duration) {
        let mean = |mean: Duration| (mean * (MEMORY - 1) + sample) / MEMORY;
        self.0 = Some(self.0.map_or(sample, mean));
    }

    /// The mean; `None` before the first sample.
    pub(super) const fn get(self) -> Option<Duration> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn the_mean_begins_with_the_first_sample_and_follows_the_newest() {
        let mut mean = MeanTime::default();
        assert_eq!(mean.get(), None);
        mean.note(ms(64));
        assert_eq!(mean.get(), Some(ms(64)));
        mean.note(ms(128));
        assert_eq!(mean.get(), Some(ms(65)));
        mean.note(ms(1));
        assert_eq!(mean.get(), Some(ms(64)));
        for _ in 0..1_000 {
            mean.note(ms(200));
        }
        assert!(
            mean.get()
                .is_some_and(|mean| mean.abs_diff(ms(200)) < ms(1))
        );
    }
}
