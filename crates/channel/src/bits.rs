//! Bit errors: which bits of a packet the medium inverts.
//!
//! Errors are independent of each other, so the gap to the next one is geometric and each error
//! costs one draw; the intact bits between them cost nothing. The gap continues across packet
//! boundaries, and over packets that are lost for another reason. This keeps the draws of one model
//! independent of the others.

use crate::fading::ReceiverModel;
use crate::flips::Flips;
use crate::geometric::Geometric;
use crate::rate::computed_rate;
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{BitErrorRate, ByteCount, OpticalPower, PacketErrorRate, Probability};

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
    /// Each bit is inverted with the probability that this received power means to the
    /// [reference receiver](ReceiverModel::reference).
    Received(OpticalPower),
}

impl BitErrors {
    /// The share of bits that are inverted.
    pub fn rate(self) -> BitErrorRate {
        match self {
            Self::None => BitErrorRate::ZERO,
            Self::Independent(rate) => rate,
            // One of eight bits of a hit octet is inverted.
            Self::PerOctet(rate) => BitErrorRate::new(rate.value() / 8.0).unwrap_or_default(),
            Self::Received(power) => ReceiverModel::reference().bit_error_rate(power),
        }
    }

    /// The probability that a packet of `len` octets has at least one inverted bit.
    pub fn packet_error_rate(self, len: ByteCount) -> PacketErrorRate {
        match self {
            Self::None => PacketErrorRate::ZERO,
            Self::Independent(_) | Self::Received(_) => self.rate().packet_error_rate(len.bits()),
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
            BitErrors::Independent(_) | BitErrors::Received(_) => {
                Self::Independent(Skips::new(model.rate().value(), rng))
            }
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

    #[test]
    fn a_received_power_inverts_as_many_bits_as_the_receiver_says() {
        // 25.0 nW mean 1e-4, to 0.2 % of the power; the tail is steep there.
        let received = BitErrors::Received("25nW".parse().unwrap());
        let rate = received.rate().value();
        assert!((0.9e-4..1.1e-4).contains(&rate), "{rate}");
        let mut process = BitProcess::new(received, Rng::from_seed(5).child("bits"));
        let flips = process.pass(ByteCount(10_000_000));
        let share = flips.as_slice().len() as f64 / 80e6;
        // Four standard errors of a binomial share.
        let error = (rate / 80e6).sqrt();
        assert!((share - rate).abs() < 4.0 * error, "{share}: {rate}");
    }
}
