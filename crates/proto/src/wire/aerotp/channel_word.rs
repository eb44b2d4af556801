//! The receiver's report on the bit errors it sees, in a cumulative MACK.

use crate::units::BitErrorRate;

/// A bit error rate on a logarithmic scale: 2^(-code / 1024), so exact to 0.07 %, from 1 down to
/// 2^-64.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RateCode(u16);

/// The number of codes to a halving of the rate.
const STEPS: f64 = 1024.0;

impl RateCode {
    /// The nearest code; rates below 2^-64, also zero, have the last.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "float to integer casts saturate"
    )]
    pub fn of(rate: BitErrorRate) -> Self {
        Self((-STEPS * rate.value().log2()).round() as u16)
    }

    /// The rate.
    pub fn rate(self) -> BitErrorRate {
        let value = (-f64::from(self.0) / STEPS).exp2();
        BitErrorRate::new(value).unwrap_or_default()
    }
}

/// The receiver's estimates (docs/models/aerotp.md, "Following the bit error rate").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ChannelWord {
    /// The short-term rate: that of the last fade, or of the last pause between fades.
    pub recent: RateCode,
    /// The rate over many fades.
    pub lasting: RateCode,
}

impl ChannelWord {
    /// Octets of both.
    pub const BYTES: usize = 4;

    /// The octets on the wire.
    pub fn to_octets(self) -> [u8; Self::BYTES] {
        let both = (u32::from(self.recent.0) << 16) | u32::from(self.lasting.0);
        both.to_be_bytes()
    }

    /// The estimates of these octets; all of them mean something.
    #[expect(clippy::cast_possible_truncation, reason = "each half has 16 bits")]
    pub const fn from_octets(octets: [u8; Self::BYTES]) -> Self {
        let both = u32::from_be_bytes(octets);
        Self {
            recent: RateCode((both >> 16) as u16),
            lasting: RateCode(both as u16),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_comes_back_within_a_step_and_nothing_is_the_least() {
        for value in [1.0, 0.5, 1e-3, 1e-6, 3e-12, 6e-20] {
            let rate = BitErrorRate::new(value).expect("a share");
            let back = RateCode::of(rate).rate().value();
            // Half a step is a factor of 2^(1/2048).
            assert!(
                (back / value).log2().abs() <= 0.51 / STEPS,
                "{value}: {back}"
            );
        }
        assert_eq!(RateCode::of(BitErrorRate::ZERO), RateCode(u16::MAX));
    }
}
