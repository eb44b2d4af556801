//! The choice among a few ways to protect packets, by the bit error rates that a channel has had.
//!
//! The peer's estimate is old by a round trip h when a packet that is sent now arrives. With the probability
//!
//! ```text
//! k = exp(-h / coherence)
//! ```
//!
//! the channel is still as it was, and its rate the last estimate. Otherwise its rate is any of those that the
//! channel has: the peer's estimates over the last 256 coherence times, each for as long as it held. A choice by a
//! mean of both would protect against a rate that hardly ever occurs. Where k is small, the best choice is the one
//! for the whole spread.
//!
//! Rates are taken in quarters of an octave, and each quarter's uses are computed once. A choice is kept until another
//! is better by 1/1000.

use crate::units::BitErrorRate;

/// Classes of the bit error rate to an octave.
const QUARTERS: f64 = 4.0;
/// The number of classes. The last is 2^-40, a bit in 30 minutes at 622 Mbit/s; lower rates have
/// the same choice.
const CLASSES: usize = 160;
/// The coherence times after which the weight of an estimate has fallen by e. A fade that takes a hundredth of the
/// time occurs two or three times in them.
const REMEMBERED: f64 = 256.0;
/// The factor by which another choice has to be better.
pub(super) const BETTER: f64 = 1.001;

/// A class of bit error rates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateClass(usize);

impl RateClass {
    /// The class of a rate.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "float to integer casts saturate"
    )]
    pub fn of(rate: BitErrorRate) -> Self {
        Self(((-QUARTERS * rate.value().log2()) as usize).min(CLASSES - 1))
    }

    /// The middle of the class.
    pub fn rate(self) -> BitErrorRate {
        let value = (-(self.0 as f64 + 0.5) / QUARTERS).exp2();
        BitErrorRate::new(value).unwrap_or_default()
    }

    /// Quarter octaves below 1.
    pub const fn quarter_octaves(self) -> usize {
        self.0
    }
}

/// The use of the link that each choice makes, by classes of the rate; computed when a rate occurs.
#[derive(Clone, Debug)]
pub struct Uses {
    rows: Vec<Option<Box<[f32]>>>,
}

impl Default for Uses {
    fn default() -> Self {
        Self {
            rows: vec![None; CLASSES],
        }
    }
}

impl Uses {
    /// Computes the uses of all choices at a class, unless that was done.
    pub fn compute(&mut self, class: RateClass, uses: impl FnOnce(BitErrorRate) -> Box<[f32]>) {
        if let Some(row) = self.rows.get_mut(class.0) {
            row.get_or_insert_with(|| uses(class.rate()));
        }
    }

    /// The uses of all choices that [`Uses::compute`] found for a class.
    pub fn of(&self, class: RateClass) -> &[f32] {
        let row = self.rows.get(class.0).and_then(Option::as_deref);
        row.unwrap_or_default()
    }
}

/// The worth of each choice over the rates that a channel has had.
#[derive(Clone, Debug)]
pub struct Outlook {
    /// Sums for each choice, over the time that is remembered: of its use times the span, in coherence times.
    remembered: Vec<f64>,
    /// The time that is remembered, in coherence times.
    span: f64,
}

impl Outlook {
    /// An outlook on so many choices.
    pub fn new(choices: usize) -> Self {
        Self {
            remembered: vec![0.0; choices],
            span: 0.0,
        }
    }

    /// Adds a time of so many coherence times in which the choices had these uses.
    pub fn remember(&mut self, uses: &[f32], span: f64) {
        let kept = (-span / REMEMBERED).exp();
        for (sum, used) in self.remembered.iter_mut().zip(uses) {
            *sum = *sum * kept + f64::from(*used) * span;
        }
        self.span = self.span * kept + span;
    }

    /// The choice with the greatest expected use: the uses are `recent` with the probability `known`. Otherwise they are
    /// those of the remembered time or, with the weight of one coherence time, `lasting`. The present choice stays unless
    /// another is better by `BETTER`. `None`: there is no choice.
    pub fn best(
        &self,
        recent: &[f32],
        known: f64,
        lasting: &[f32],
        now: Option<usize>,
    ) -> Option<usize> {
        let both = recent.iter().zip(lasting).zip(&self.remembered);
        let expected = both.map(|((recent, lasting), sum)| {
            let spread = (sum + f64::from(*lasting)) / (self.span + 1.0);
            known * f64::from(*recent) + (1.0 - known) * spread
        });
        let mut best = None;
        let mut most = f64::MIN;
        let mut present = 0.0;
        for (choice, expected) in expected.enumerate() {
            if now == Some(choice) {
                present = expected;
            }
            if expected > most {
                (most, best) = (expected, Some(choice));
            }
        }
        if most > BETTER * present { best } else { now }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rate_has_a_class_whose_middle_is_near_it() {
        for value in [0.5, 0.3, 1e-3, 2e-5, 1e-9, 1e-12] {
            let rate = BitErrorRate::new(value).expect("a share");
            let middle = RateClass::of(rate).rate().value();
            // Half a quarter octave.
            assert!((middle / value).log2().abs() <= 0.126, "{value}: {middle}");
        }
        let none = RateClass::of(BitErrorRate::ZERO);
        assert_eq!(none.quarter_octaves(), CLASSES - 1);
    }

    #[test]
    fn a_choice_is_for_the_rate_while_it_is_fresh_and_for_the_spread_when_it_is_old() {
        // The first is best now, the second over the time before.
        let (now, before) = ([0.9, 0.5, 0.0], [0.1, 0.8, 0.0]);
        let mut outlook = Outlook::new(3);
        outlook.remember(&before, 10.0);
        assert_eq!(outlook.best(&now, 1.0, &now, None), Some(0));
        assert_eq!(outlook.best(&now, 0.0, &now, None), Some(1));
        // A thousandth better is not better enough.
        let nearly = [0.9, 0.9005, 0.0];
        assert_eq!(outlook.best(&nearly, 1.0, &now, Some(0)), Some(0));
        assert_eq!(Outlook::new(0).best(&[], 1.0, &[], None), None);
    }
}
