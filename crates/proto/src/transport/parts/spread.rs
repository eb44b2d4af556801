//! The distribution of delays and lengths: counts in classes of growing width, in constant memory.

use crate::units::Duration;

/// Classes of delays; the last has no upper bound.
const DELAY_CLASSES: usize = 38;
/// The upper bound of the first class, and that bound times the root of two, in nanoseconds.
const FIRST_BOUNDS: [u64; 2] = [250_000, 353_553];

/// Delays, counted in classes: up to 0.25 ms, then each wider by the root of two, up to 65.5 s, and above. A
/// quantile read from them is wrong by one part in five at most, if it lies between 0.25 ms and 65.5 s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelaySpread([u64; DELAY_CLASSES]);

impl Default for DelaySpread {
    fn default() -> Self {
        Self([0; DELAY_CLASSES])
    }
}

/// The longest delay of class `index`.
const fn bound(index: usize) -> u64 {
    FIRST_BOUNDS[index % 2] << (index / 2)
}

impl DelaySpread {
    /// Counts a delay.
    pub fn note(&mut self, delay: Duration) {
        let nanos = u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX);
        let class = (0..DELAY_CLASSES - 1).find(|class| nanos <= bound(*class));
        self.0[class.unwrap_or(DELAY_CLASSES - 1)] += 1;
    }

    /// The number of delays counted.
    pub fn count(&self) -> u64 {
        self.0.iter().sum()
    }

    /// The delays counted since `earlier`, a former state of this value.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let mut grown = *self;
        for (count, before) in grown.0.iter_mut().zip(earlier.0) {
            *count = count.saturating_sub(before);
        }
        grown
    }

    /// The delay that a share of all, 0 to 1, did not exceed: the middle of its class, in octaves. For the first class
    /// and the last it is that class's bound. `None` if nothing was counted.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a positive number below the last bound"
    )]
    pub fn quantile(&self, share: f64) -> Option<Duration> {
        let wanted = share.clamp(0.0, 1.0) * self.count() as f64;
        let mut sum = 0;
        let class = self.0.iter().position(|count| {
            sum += count;
            *count > 0 && sum as f64 >= wanted
        })?;
        let nanos = match class {
            0 => bound(0),
            class if class == DELAY_CLASSES - 1 => bound(class - 1),
            class => (bound(class) as f64 / 2f64.sqrt().sqrt()) as u64,
        };
        Some(Duration::from_nanos(nanos))
    }
}

impl core::ops::AddAssign for DelaySpread {
    fn add_assign(&mut self, other: Self) {
        for (sum, count) in self.0.iter_mut().zip(other.0) {
            *sum += count;
        }
    }
}

/// Lengths of bursts, counted in classes: 1, 2, up to 4, 8, 16, 32 and 64, and above.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BurstLengths([u64; Self::NAMES.len()]);

impl BurstLengths {
    /// The names of the classes.
    pub const NAMES: [&'static str; 8] = [
        "1",
        "2",
        "3-4",
        "5-8",
        "9-16",
        "17-32",
        "33-64",
        "65_or_more",
    ];

    /// Counts a burst; a length of 0 is no burst.
    pub fn note(&mut self, length: u64) {
        if let Some(longest) = length.checked_sub(1) {
            let class = u64::BITS - longest.leading_zeros();
            let last = self.0.len() - 1;
            self.0[(class as usize).min(last)] += 1;
        }
    }

    /// The counts, in the order of [`Self::NAMES`].
    pub const fn counts(&self) -> [u64; Self::NAMES.len()] {
        self.0
    }
}

impl core::ops::AddAssign for BurstLengths {
    fn add_assign(&mut self, other: Self) {
        for (sum, count) in self.0.iter_mut().zip(other.0) {
            *sum += count;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_grow_by_the_root_of_two() {
        for class in 1..DELAY_CLASSES - 1 {
            let ratio = bound(class) as f64 / bound(class - 1) as f64;
            assert!((ratio - 2f64.sqrt()).abs() < 1e-5, "{class}: {ratio}");
        }
        assert_eq!(bound(DELAY_CLASSES - 2), 65_536_000_000);
    }

    #[test]
    fn a_quantile_is_off_by_one_part_in_five_at_most() {
        assert_eq!(DelaySpread::default().quantile(0.5), None);
        for class in 1..DELAY_CLASSES - 1 {
            for nanos in [bound(class - 1) + 1, bound(class)] {
                let mut spread = DelaySpread::default();
                spread.note(Duration::from_nanos(nanos));
                for share in [0.0, 0.5, 0.99, 1.0] {
                    let found = spread.quantile(share).expect("a quantile").as_nanos();
                    let ratio = found as f64 / nanos as f64;
                    assert!((1.0 / 1.2..1.2).contains(&ratio), "{nanos}: {ratio}");
                }
            }
        }
    }

    #[test]
    fn a_quantile_is_of_its_share() {
        let mut spread = DelaySpread::default();
        for ms in 1..=1_000 {
            spread.note(Duration::from_millis(ms));
        }
        assert_eq!(spread.count(), 1_000);
        for share in [0.01, 0.5, 0.9, 0.99] {
            let found = spread.quantile(share).expect("a quantile").as_secs_f64();
            assert!(
                (1.0 / 1.2..1.2).contains(&(found / share)),
                "{share}: {found}"
            );
        }
    }

    #[test]
    fn what_is_beyond_every_bound_is_counted_at_the_last() {
        let mut spread = DelaySpread::default();
        spread.note(Duration::ZERO);
        spread.note(Duration::MAX);
        let last = Duration::from_nanos(bound(DELAY_CLASSES - 2));
        assert_eq!(spread.quantile(1.0), Some(last));
        assert!(spread.quantile(0.5) <= Some(Duration::from_micros(250)));
    }

    #[test]
    fn a_difference_has_only_what_came_since() {
        let mut spread = DelaySpread::default();
        spread.note(Duration::from_secs(1));
        let before = spread;
        spread.note(Duration::from_millis(1));
        let grown = spread.since(&before);
        assert_eq!(grown.count(), 1);
        assert!(grown.quantile(1.0) <= Some(Duration::from_millis(1)));
    }

    #[test]
    fn bursts_fall_into_classes_that_double() {
        let mut lengths = BurstLengths::default();
        for length in [0, 1, 2, 3, 4, 5, 8, 9, 16, 17, 32, 33, 64, 65, u64::MAX] {
            lengths.note(length);
        }
        assert_eq!(lengths.counts(), [1, 1, 2, 2, 2, 2, 2, 2]);
    }
}
