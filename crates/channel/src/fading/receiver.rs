//! The relation between received optical power and the probability of a bit error, both ways.
//!
//! Noise of an avalanche photodiode receiver grows with the signal; two constants describe it. The
//! constants hold for one module at one bit rate and wavelength and do not scale to others, as
//! the source says.
//!
//! # Sources
//! Epple, "Performance optimization of free-space optical communication protocols", section 2.2,
//! equations 1 and 2, after F. David (SPIE 5338, 2004). The inverse is our own algebra.

use fulmar_proto::units::{BitErrorRate, Bitrate, OpticalPower};
use statrs::function::erf::{erfc, erfc_inv};

/// A receiver: BER(P) = Q((P/P0) / (1 + sqrt(1 + xi P/P0))).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReceiverModel {
    /// The characteristic power P0; above zero.
    pub characteristic: OpticalPower,
    /// The form factor xi: how much the signal adds to the noise, without unit; zero or more.
    pub form_factor: f64,
    /// The only bit rate at which the constants hold.
    pub rate: Bitrate,
}

impl ReceiverModel {
    /// The source's reference: Fujitsu FRM5W621KT/LT, 1550 nm, 622 Mbit/s, P0 = 1.35 nW, xi = 0.8.
    pub fn reference() -> Self {
        Self {
            characteristic: OpticalPower::from_watts(1.35e-9).unwrap_or_default(),
            form_factor: 0.8,
            rate: Bitrate::from_bits_per_second(622_000_000),
        }
    }

    /// The short-term bit error rate at this power (equation 1): 0.5 in darkness, falling with
    /// power, zero where it is below the smallest positive number.
    pub fn bit_error_rate(self, power: OpticalPower) -> BitErrorRate {
        let ratio = power.watts() / self.characteristic.watts();
        if ratio.is_nan() || ratio <= 0.0 {
            return BitErrorRate::new(0.5).unwrap_or_default();
        }
        // The same quotient in a form that has a value even where the power is enormous.
        let argument = ratio / (1.0 + (1.0 + self.form_factor * ratio).sqrt());
        BitErrorRate::new(upper_tail(argument)).unwrap_or_default()
    }

    /// The power at which the bit error rate is this one, the inverse of equation 1:
    /// P = P0 (2x + xi x^2) with x = Qinv(BER). `None` for a rate of zero, which takes infinite
    /// power, and for one above 0.5, which no power gives.
    pub fn power_for(self, rate: BitErrorRate) -> Option<OpticalPower> {
        if rate.is_zero() || rate.value() > 0.5 {
            return None;
        }
        let x = upper_tail_inverse(rate.value());
        let ratio = x * (2.0 + self.form_factor * x);
        OpticalPower::from_watts(self.characteristic.watts() * ratio.max(0.0))
    }
}

/// Q(x): the probability that a standard normal variable exceeds `x` (equation 2).
pub(crate) fn upper_tail(x: f64) -> f64 {
    0.5 * erfc(x * core::f64::consts::FRAC_1_SQRT_2)
}

/// The `x` with Q(x) = `p`, for p in 0..1. The library's inverse is good to some ten digits; one
/// step of Newton's method makes it as exact as Q.
fn upper_tail_inverse(p: f64) -> f64 {
    let x = core::f64::consts::SQRT_2 * erfc_inv(2.0 * p);
    let density = (-x * x / 2.0).exp() / (2.0 * core::f64::consts::PI).sqrt();
    let better = x + (upper_tail(x) - p) / density;
    if better.is_finite() { better } else { x }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reference: P = P0 (2x + xi x^2) with x = Qinv(BER), to 0.1 nW and 0.1 dB; at 1e-9, Qinv =
    /// 5.997807 (any table) makes it 55.046 nW.
    #[test]
    fn the_powers_of_round_error_rates_are_those_of_the_specification() {
        let receiver = ReceiverModel::reference();
        for (rate, nanowatts) in [
            (1e-2, 12.1),
            (1e-3, 18.7),
            (1e-4, 25.0),
            (1e-5, 31.2),
            (1e-6, 37.2),
            (1e-9, 55.0),
            (1e-12, 72.4),
        ] {
            let rate = BitErrorRate::new(rate).unwrap();
            let power = receiver.power_for(rate).unwrap();
            assert!(
                (power.watts() * 1e9 - nanowatts).abs() <= 0.05,
                "{rate}: {power}"
            );
        }
        let at_1e_6 = receiver
            .power_for(BitErrorRate::new(1e-6).unwrap())
            .unwrap();
        assert!((at_1e_6.dbm() + 44.3).abs() < 0.05);
    }

    #[test]
    fn power_and_error_rate_are_inverse_of_each_other() {
        let receiver = ReceiverModel::reference();
        for exponent in 1..40 {
            let rate = BitErrorRate::new(0.5 * 10_f64.powi(-exponent)).unwrap();
            let there = receiver.power_for(rate).unwrap();
            let back = receiver.bit_error_rate(there).value();
            // The tail's argument is near 13 at most: one rounding of it moves Q by 13^2 roundings,
            // and the special functions promise some 1e-14 each.
            assert!((back / rate.value() - 1.0).abs() < 1e-11, "{rate}: {back}");
        }
    }

    #[test]
    fn darkness_is_a_coin_and_light_without_end_makes_no_error() {
        let receiver = ReceiverModel::reference();
        let rate = |watts: f64| {
            let power = OpticalPower::from_watts(watts).unwrap();
            receiver.bit_error_rate(power).value()
        };
        assert!((rate(0.0) - 0.5).abs() < 1e-15);
        assert!(rate(1e-30) <= 0.5);
        assert!(rate(f64::MAX) < 1e-300);
        let powers: Vec<f64> = (0..400).map(|i| 1e-10 * f64::from(i)).collect();
        let falls = powers.windows(2).all(|pair| rate(pair[1]) < rate(pair[0]));
        assert!(falls, "more light, fewer errors");
        assert_eq!(receiver.power_for(BitErrorRate::ZERO), None);
        assert_eq!(receiver.power_for(BitErrorRate::new(0.6).unwrap()), None);
    }
}
