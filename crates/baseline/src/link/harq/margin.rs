//! The number of units in a round: the loss estimate, and a margin that is learned from failures.
//!
//! Until `needed` units have arrived, needed / (1 - p) must be sent on the average, with a deviation
//! of sqrt(needed p) / (1 - p), if losses are independent (negative binomial law). Losses come in
//! bursts, so the number of deviations to add, for a given share of the rounds to fail, is not
//! computed but controlled: a failure raises the margin and a success lowers it, in such a ratio
//! that they balance at that share.
//!
//! # Sources
//! Outer-loop link adaptation controls a block error rate in this way (Sampath, Sarath Kumar and
//! Holtzman, "On setting reverse link target SIR in a CDMA system", VTC 1997). The slides leave the
//! sizing open.

use super::HarqConfig;
use fulmar_proto::units::{PacketErrorRate, Probability};

/// The change of the margin by one failure and one success together, in deviations.
const STEP: f64 = 0.5;
/// The greatest margin: as many deviations are sent for losses that double within a round.
const DEVIATIONS_MAX: f64 = 12.0;
/// The units in which a margin is told: sixteenths.
const TOLD: f64 = 16.0;
/// The margin before anything was learned.
const BEGINNING: f64 = 2.0;

/// A margin that moves to where a given share of the rounds fails.
#[derive(Clone, Copy, Debug)]
pub(super) struct Margin {
    deviations: f64,
    target: f64,
}

impl Margin {
    /// A margin at its start; `target` is the share of rounds that may fail.
    pub(super) fn new(target: Probability) -> Self {
        Self {
            deviations: BEGINNING,
            target: target.value(),
        }
    }

    /// Takes the outcome of a round.
    pub(super) fn observe(&mut self, failed: bool) {
        self.deviations += if failed {
            STEP * (1.0 - self.target)
        } else {
            -STEP * self.target
        };
        self.deviations = self.deviations.clamp(0.0, DEVIATIONS_MAX);
    }

    /// The margin as a frame tells it.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "12 deviations at most, so 192"
    )]
    pub(super) fn told(self) -> u8 {
        (self.deviations * TOLD).round() as u8
    }
}

/// A margin as it was told, in deviations.
pub(super) fn heard(told: u8) -> f64 {
    f64::from(told) / TOLD
}

/// Units to send for `needed` of them to arrive, with a margin of so many deviations; no more than
/// `needed` while the loss is at or below the floor.
pub(super) fn units_for(needed: u32, loss: PacketErrorRate, margin: f64) -> u32 {
    if loss <= HarqConfig::floor() || needed == 0 {
        return needed;
    }
    let (lost, needed_units) = (loss.value().min(LOSS_MAX), f64::from(needed));
    let units = (needed_units + margin * (needed_units * lost).sqrt()) / (1.0 - lost);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "positive, and a few thousand at most"
    )]
    let units = units.ceil() as u32;
    units.max(needed)
}

/// The greatest loss: beyond it, parity would take more of the link than it gives.
const LOSS_MAX: f64 = 0.9;

#[cfg(test)]
mod tests {
    use super::*;
    use fulmar_proto::rng::Rng;

    fn loss(value: f64) -> PacketErrorRate {
        PacketErrorRate::new(value).unwrap()
    }

    #[test]
    fn the_laws_mean_and_deviation() {
        // 32 / 0.9 = 35.6; sqrt(32 * 0.1) / 0.9 = 1.99. 10 / 0.5 = 20; sqrt(5) / 0.5 = 4.47.
        assert_eq!(units_for(32, loss(0.1), 0.0), 36);
        assert_eq!(units_for(32, loss(0.1), 2.0), 40);
        assert_eq!(units_for(10, loss(0.5), 1.0), 25);
        assert_eq!(units_for(10, loss(0.001), 5.0), 10, "the floor");
        assert_eq!(units_for(0, loss(0.5), 5.0), 0);
        assert!(units_for(64, loss(1.0), 12.0) < 2_000);
    }

    #[test]
    fn the_margin_settles_where_the_share_of_failures_is_the_target() {
        // A round fails with the probability 0.5^deviations: the control works whatever the law is.
        let target = 0.1;
        let mut margin = Margin::new(Probability::new(target).unwrap());
        let mut rng = Rng::from_seed(1);
        let mut failures = 0.0;
        let rounds = 20_000;
        for _ in 0..rounds {
            let failed = rng.chance(0.5_f64.powf(heard(margin.told())));
            failures += f64::from(u8::from(failed));
            margin.observe(failed);
        }
        // The margin stays within 12 deviations, so the share is off by 12 / (0.5 * 20,000) at most.
        let share = failures / f64::from(rounds);
        assert!((share - target).abs() < 0.0013, "{share}");
    }

    #[test]
    fn the_margin_is_bounded() {
        let mut margin = Margin::new(Probability::new(0.1).unwrap());
        for _ in 0..1_000 {
            margin.observe(true);
        }
        assert_eq!(margin.told(), 192);
        for _ in 0..1_000 {
            margin.observe(false);
        }
        assert_eq!(margin.told(), 0);
    }
}
