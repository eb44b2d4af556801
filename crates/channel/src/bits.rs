//! Bit errors: which bits of a packet the medium inverts.
//!
//! Errors are independent of each other, so the gap to the next one is geometric and each error
//! costs one draw; the intact bits between them cost nothing. The gap continues across packet
//! boundaries, and over packets that are lost for another reason. This keeps the draws of one model
//! independent of the others.

use crate::flips::Flips;
use crate::geometric::Geometric;
use crate::rate::computed_rate;
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{BitErrorRate, ByteCount, PacketErrorRate, Probability};

/// The bit error process of a channel.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum BitErrors {
    /// Every bit arrives as sent.
    #[default]
    None,
    /// Each bit is inverted with this probability.
    Independent(BitErrorRate),
    /// Each octet is hit with this probability, and then exactly one of its bits, any with equal
    /// probability, is inverted. ns-3's `RateErrorModel` reads its rate so by default
    /// (`ERROR_UNIT_BYTE`).
    PerOctet(Probability),
}

impl BitErrors {
    /// The probability that a packet of `len` octets has at least one inverted bit.
    pub fn packet_error_rate(self, len: ByteCount) -> PacketErrorRate {
        match self {
            Self::None => PacketErrorRate::ZERO,
            Self::Independent(rate) => rate.packet_error_rate(len.bits()),
            Self::PerOctet(rate) => {
                computed_rate(-(len.0 as f64 * (-rate.value()).ln_1p()).exp_m1())
            }
        }
    }
}

/// The state of a bit error process.
#[derive(Clone, Debug)]
pub(crate) enum BitProcess {
    None,
    Independent(Skips),
    PerOctet(Skips),
}

impl BitProcess {
    pub(crate) fn new(model: BitErrors, rng: Rng) -> Self {
        match model {
            BitErrors::None => Self::None,
            BitErrors::Independent(rate) => Self::Independent(Skips::new(rate.value(), rng)),
            BitErrors::PerOctet(rate) => Self::PerOctet(Skips::new(rate.value(), rng)),
        }
    }

    /// The inverted bits of the next `len` octets on the medium. Positions above `u32::MAX` (a
    /// packet of half a gigabyte) are left out.
    pub(crate) fn pass(&mut self, len: ByteCount) -> Flips {
        let mut flips = Flips::NONE;
        match self {
            Self::None => {}
            Self::Independent(bits) => bits.pass(len.bits(), |bit, _| {
                if let Ok(position) = u32::try_from(bit) {
                    flips.push(position);
                }
            }),
            Self::PerOctet(octets) => octets.pass(len.0, |octet, rng| {
                let bit = octet.saturating_mul(8).saturating_add(rng.below(8));
                if let Ok(position) = u32::try_from(bit) {
                    flips.push(position);
                }
            }),
        }
        flips
    }
}

/// Finds the hits in a stream of bits or octets without a visit to the others.
#[derive(Clone, Debug)]
pub(crate) struct Skips {
    law: Geometric,
    /// Intact elements before the next hit.
    intact: u64,
    rng: Rng,
}

impl Skips {
    fn new(rate: f64, mut rng: Rng) -> Self {
        let law = Geometric::new(rate);
        let intact = law.sample(&mut rng);
        Self { law, intact, rng }
    }

    fn pass(&mut self, count: u64, mut hit: impl FnMut(u64, &mut Rng)) {
        let mut next = self.intact;
        while next < count {
            hit(next, &mut self.rng);
            let gap = self.law.sample(&mut self.rng);
            next = next.saturating_add(1).saturating_add(gap);
        }
        self.intact = next - count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certain_errors_invert_every_bit_or_one_bit_of_every_octet() {
        let rng = Rng::from_seed(5);
        let every = BitErrors::Independent(BitErrorRate::new(1.0).unwrap());
        let flips = BitProcess::new(every, rng.child("bits")).pass(ByteCount(40));
        assert_eq!(flips.as_slice(), (0..320).collect::<Vec<u32>>());
        let one = BitErrors::PerOctet(Probability::new(1.0).unwrap());
        let flips = BitProcess::new(one, rng.child("bits")).pass(ByteCount(40));
        let octets: Vec<u32> = flips.as_slice().iter().map(|bit| bit / 8).collect();
        assert_eq!(octets, (0..40).collect::<Vec<u32>>());
    }

    #[test]
    fn the_packet_error_rate_is_that_of_independent_octets() {
        let per_octet = BitErrors::PerOctet(Probability::new(1e-4).unwrap());
        let rate = per_octet.packet_error_rate(ByteCount(1500)).value();
        // 1 - 0.9999^1500, computed with bc to twelve digits.
        assert!((rate - 0.139_298_479_291).abs() < 1e-12, "{rate}");
        assert!(BitErrors::None.packet_error_rate(ByteCount(1500)).is_zero());
    }
}
