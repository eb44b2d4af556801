//! Rates in bits per second.

use super::ByteCount;
use core::time::Duration;

const NANOS_PER_SECOND: u128 = 1_000_000_000;

/// A rate in bits per second. One kbit is 1000 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bitrate(u64);

impl Bitrate {
    /// The rate zero.
    pub const ZERO: Self = Self(0);

    /// A rate of `bits` per second.
    pub const fn from_bits_per_second(bits: u64) -> Self {
        Self(bits)
    }

    /// The rate in bits per second.
    pub const fn as_bits_per_second(self) -> u64 {
        self.0
    }

    /// The time that `amount` occupies a link of this rate, rounded up; for ever at rate zero.
    pub fn time_to_send(self, amount: ByteCount) -> Duration {
        if self.0 == 0 {
            return Duration::MAX;
        }
        let bits = u128::from(amount.0) * 8;
        let nanos = (bits * NANOS_PER_SECOND).div_ceil(u128::from(self.0));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// The amount that this rate carries in `span`, rounded down.
    pub fn bytes_in(self, span: Duration) -> ByteCount {
        let bytes = u128::from(self.0) * span.as_nanos() / (8 * NANOS_PER_SECOND);
        ByteCount(u64::try_from(bytes).unwrap_or(u64::MAX))
    }

    /// The rate at which `amount` takes `span`, rounded down; zero for an empty span.
    pub fn of(amount: ByteCount, span: Duration) -> Self {
        if span.is_zero() {
            return Self::ZERO;
        }
        let bits = u128::from(amount.0) * 8 * NANOS_PER_SECOND / span.as_nanos();
        Self(u64::try_from(bits).unwrap_or(u64::MAX))
    }

    /// This rate times `ratio`, rounded to the nearest bit per second.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "float to integer casts saturate, and a negative ratio gives zero"
    )]
    pub fn scaled(self, ratio: f64) -> Self {
        Self((self.0 as f64 * ratio).round() as u64)
    }
}
