//! Bursts of lost packets: the two-state Markov chain that steps once per packet.
//!
//! In the simple form every packet of the bad state is lost and none of the good. With P(bad to
//! good) = r and P(good to bad) = p a burst has 1 / r packets on average and the mean loss is p /
//! (p + r), so the two quantities a user can measure determine both. In the general form each state
//! has a loss of its own, and the losses do not show the states.
//!
//! # Sources
//! Gilbert, "Capacity of a burst-noise channel", Bell System Technical Journal 39 (1960), with the
//! bad state losing everything; Elliott (1963) for losses in both states.

use crate::config_error::{ChannelConfigError, Setting};
use crate::geometric::Geometric;
use crate::rate::computed_rate;
use fulmar_proto::rng::Rng;
use fulmar_proto::units::PacketErrorRate;

/// Loss in bursts, counted in packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GilbertElliott {
    /// The share of packets lost, below 1.
    pub mean_loss: PacketErrorRate,
    /// The mean number of packets lost in a row: at least 1, and at least L / (1 - L) for mean
    /// loss L, because gaps between bursts have at least one packet. At 1 / (1 - L) losses are
    /// independent.
    pub mean_burst: f64,
}

impl GilbertElliott {
    pub(crate) fn check(&self) -> Result<(), ChannelConfigError> {
        let loss = self.mean_loss.value();
        if loss >= 1.0 {
            let allowed = "below 1; for a dead link write the loss without a burst length";
            return Err(ChannelConfigError::new(
                Setting::Loss.part("mean_loss"),
                loss,
                allowed,
            ));
        }
        let least = (loss / (1.0 - loss)).max(1.0);
        if !(self.mean_burst.is_finite() && self.mean_burst >= least) {
            let allowed = format!("at least {least} packets at a mean loss of {loss}");
            return Err(ChannelConfigError::new(
                Setting::Loss.part("mean_burst"),
                self.mean_burst,
                allowed,
            ));
        }
        Ok(())
    }
}

/// One state of the general form.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PacketState {
    /// The share of packets lost in it.
    pub loss: PacketErrorRate,
    /// The mean length of a visit in packets; at least 1.
    pub mean_packets: f64,
}

/// Two states by packet, each with its loss and its mean length: Elliott's channel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PacketStates {
    /// The better state.
    pub good: PacketState,
    /// The worse state.
    pub bad: PacketState,
}

impl PacketStates {
    /// The share of packets that meet the bad state.
    pub fn bad_share(&self) -> f64 {
        self.bad.mean_packets / (self.good.mean_packets + self.bad.mean_packets)
    }

    /// The loss in the long run.
    pub fn mean_loss(&self) -> PacketErrorRate {
        let bad = self.bad_share();
        computed_rate(bad * self.bad.loss.value() + (1.0 - bad) * self.good.loss.value())
    }

    pub(crate) fn check(&self) -> Result<(), ChannelConfigError> {
        for (field, state) in [
            (Setting::Loss.part("good"), self.good),
            (Setting::Loss.part("bad"), self.bad),
        ] {
            let mean = state.mean_packets;
            if !(mean.is_finite() && mean >= 1.0) {
                let allowed = "a mean length of at least 1 packet";
                return Err(ChannelConfigError::new(field, mean, allowed));
            }
        }
        Ok(())
    }

    pub(crate) fn chain(&self, rng: Rng) -> GilbertProcess {
        let (to_bad, to_good) = (
            self.good.mean_packets.recip(),
            self.bad.mean_packets.recip(),
        );
        GilbertProcess::of(to_bad, to_good, self.bad_share(), rng)
    }
}

/// The state of the chain: it draws run lengths, not single steps.
#[derive(Clone, Debug)]
pub(crate) struct GilbertProcess {
    to_bad: Geometric,
    to_good: Geometric,
    bad: bool,
    /// Packets left in the present run.
    left: u64,
    rng: Rng,
}

impl GilbertProcess {
    pub(crate) fn new(model: GilbertElliott, rng: Rng) -> Self {
        let loss = model.mean_loss.value();
        let to_good = model.mean_burst.recip().min(1.0);
        let to_bad = (to_good * loss / (1.0 - loss)).min(1.0);
        Self::of(to_bad, to_good, loss, rng)
    }

    fn of(to_bad: f64, to_good: f64, bad_share: f64, mut rng: Rng) -> Self {
        let bad = rng.chance(bad_share);
        let mut process = Self {
            to_bad: Geometric::new(to_bad),
            to_good: Geometric::new(to_good),
            bad,
            left: 0,
            rng,
        };
        process.left = process.run();
        process
    }

    /// Whether the next packet meets the bad state; in the simple form, whether it is lost.
    pub(crate) fn next_is_bad(&mut self) -> bool {
        if self.left == 0 {
            self.bad = !self.bad;
            self.left = self.run();
        }
        self.left -= 1;
        self.bad
    }

    /// The packets in a run: the one that entered the state, and one more for each time it stays.
    fn run(&mut self) -> u64 {
        let leave = if self.bad { self.to_good } else { self.to_bad };
        leave.sample(&mut self.rng).saturating_add(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(loss: f64, mean_burst: f64) -> GilbertElliott {
        GilbertElliott {
            mean_loss: PacketErrorRate::new(loss).unwrap(),
            mean_burst,
        }
    }

    #[test]
    fn impossible_bursts_are_refused_with_the_range() {
        assert_eq!(model(0.02, 4.0).check(), Ok(()));
        assert_eq!(model(0.75, 3.0).check(), Ok(()));
        let refused = model(0.75, 2.9).check().unwrap_err().to_string();
        assert!(refused.contains("at least 3 packets"), "{refused}");
        assert!(model(0.1, 0.9).check().is_err());
        assert!(model(0.1, f64::NAN).check().is_err());
        assert!(model(1.0, 5.0).check().is_err());
    }

    #[test]
    fn the_extremes_are_strict_alternation_and_no_loss() {
        let mut alternating = GilbertProcess::new(model(0.5, 1.0), Rng::from_seed(2));
        let first = alternating.next_is_bad();
        for step in 1..100 {
            assert_eq!(alternating.next_is_bad(), first ^ (step % 2 == 1));
        }
        let mut clean = GilbertProcess::new(model(0.0, 4.0), Rng::from_seed(2));
        assert!((0..1000).all(|_| !clean.next_is_bad()));
    }
}
