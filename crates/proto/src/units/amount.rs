//! Amounts of octets.

use core::iter::Sum;
use core::ops::{Add, AddAssign, Sub};

/// A number of octets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteCount(pub u64);

impl ByteCount {
    /// No octets.
    pub const ZERO: Self = Self(0);

    /// The length of a slice.
    pub const fn of(octets: &[u8]) -> Self {
        Self(octets.len() as u64)
    }

    /// The amount in a `usize`-sized count.
    pub const fn from_usize(len: usize) -> Self {
        Self(len as u64)
    }

    /// The amount as a slice length, saturating where `usize` is narrower.
    pub fn as_usize(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }

    /// The amount in bits; saturates.
    pub const fn bits(self) -> u64 {
        self.0.saturating_mul(8)
    }

    /// The difference, zero if `other` is larger.
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Add for ByteCount {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for ByteCount {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for ByteCount {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        debug_assert!(self.0 >= other.0, "amounts are not negative");
        Self(self.0.wrapping_sub(other.0))
    }
}

impl Sum for ByteCount {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::ZERO, Add::add)
    }
}
