//! Probabilities in integers.

use core::fmt;

/// All of it: 2^31, so that a product of two probabilities fits 64 bits.
const ONE: u64 = 1 << 31;

/// A probability, or a mean number of things that is not large, in parts of 2^31.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Odds(u64);

impl Odds {
    /// Never.
    pub const NEVER: Self = Self(0);
    /// Always, or one thing.
    pub const ALWAYS: Self = Self(ONE);

    /// So many of so many.
    pub const fn of(part: u64, whole: u64) -> Self {
        let whole = if whole == 0 { 1 } else { whole };
        Self(part.saturating_mul(ONE) / whole)
    }

    /// This one of that one; all of it if that one is less.
    pub const fn ratio(part: Self, whole: Self) -> Self {
        if part.0 >= whole.0 {
            Self::ALWAYS
        } else {
            // Both are at most the whole of 2^31 here, or the ratio loses places and no more.
            Self(part.0.saturating_mul(ONE) / whole.0)
        }
    }

    /// Millionths, rounded.
    pub const fn millionths(self) -> u64 {
        (self.0.saturating_mul(1_000_000) + ONE / 2) >> 31
    }

    /// Both of two that know nothing of each other.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "it is compared")]
    pub const fn and(self, other: Self) -> Self {
        // A product of mean numbers of things does not fit 64 bits.
        let product = (self.0 as u128 * other.0 as u128) >> 31;
        if product > u64::MAX as u128 {
            Self(u64::MAX)
        } else {
            Self(product as u64)
        }
    }

    /// All of `times`.
    #[must_use]
    pub fn power(self, times: u32) -> Self {
        (0..times).fold(Self::ALWAYS, |all, _| all.and(self))
    }

    /// The opposite of a probability.
    #[must_use]
    pub const fn not(self) -> Self {
        Self(ONE.saturating_sub(self.0))
    }

    /// The sum.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// The difference, or nothing.
    #[must_use]
    pub const fn less(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// So many times as much.
    #[must_use]
    pub const fn by(self, times: u64) -> Self {
        Self(self.0.saturating_mul(times))
    }

    /// One part of so many.
    #[must_use]
    pub const fn part(self, parts: u64) -> Self {
        Self(self.0 / if parts == 0 { 1 } else { parts })
    }

    /// One divided by this, for what is one at least.
    #[must_use]
    pub const fn inverse(self) -> Self {
        Self(ONE * ONE / if self.0 < ONE { ONE } else { self.0 })
    }

    /// The standard error of a share that was counted over so many.
    #[must_use]
    pub const fn error_over(self, counted: u32) -> Self {
        let variance = self.and(self.not()).0 / if counted == 0 { 1 } else { counted as u64 };
        Self((variance << 31).isqrt())
    }
}

impl fmt::Display for Odds {
    /// Per cent with two places.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hundredths = (self.millionths() + 50) / 100;
        write!(f, "{}.{:02} %", hundredths / 100, hundredths % 100)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odds_multiply_add_and_are_said_in_per_cent() {
        let third = Odds::of(1, 3);
        assert_eq!(third.power(2).millionths(), 111_111);
        assert_eq!(third.not().millionths(), 666_667);
        assert_eq!(third.plus(third).by(2).millionths(), 1_333_333);
        assert_eq!(Odds::of(4, 1).inverse().millionths(), 250_000);
        assert_eq!(third.to_string(), "33.33 %");
        assert_eq!(Odds::of(1, 2).error_over(100).millionths(), 50_000);
    }

    #[test]
    fn half_of_sixty_four_is_thirty_two() {
        let half = Odds::of(1, 2);
        assert_eq!(half.and(Odds::of(64, 1)), Odds::of(32, 1));
        assert_eq!(Odds::of(64, 1).and(half), Odds::of(32, 1));
        assert_eq!(Odds::of(64, 1).and(Odds::of(64, 1)), Odds::of(4_096, 1));
    }
}
