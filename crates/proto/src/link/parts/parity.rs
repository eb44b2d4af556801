//! How many units must be sent so that enough of them arrive.
//!
//! With independent losses of probability p, of n units sent Binomial(n, 1 - p) arrive. The
//! smallest n is looked for with which fewer than the needed number arrive with at most a given
//! probability.

use crate::units::{PacketErrorRate, Probability};

/// Units that one block can have (`crate::fec::block`).
const UNITS_MAX: u32 = 255;

/// The sizing of parity: for what failure probability, and from what loss on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ParityPlan {
    /// A block may fail with this probability.
    pub(crate) failure: Probability,
    /// No parity at all while the loss is at or below this.
    pub(crate) floor: PacketErrorRate,
}

impl ParityPlan {
    /// Units to send for a block that needs `needed` of them, when a share `loss` is lost.
    pub(crate) fn units(self, needed: u32, loss: PacketErrorRate) -> u32 {
        if loss <= self.floor {
            return needed;
        }
        units_for(needed, loss, self.failure)
    }
}

/// The fewest units of which `needed` arrive but for probability `failure`, at most 255.
pub(crate) fn units_for(needed: u32, loss: PacketErrorRate, failure: Probability) -> u32 {
    let (lost, arrives) = (loss.value(), 1.0 - loss.value());
    if needed == 0 || loss.is_zero() {
        return needed;
    }
    // The probability that exactly `sent` units must be sent until `needed` have arrived (negative
    // binomial), summed up.
    let mut exactly = arrives.powf(f64::from(needed));
    let mut reached = exactly;
    let mut sent = needed;
    while 1.0 - reached > failure.value() && sent < UNITS_MAX {
        exactly *= lost * f64::from(sent) / f64::from(sent + 1 - needed);
        sent += 1;
        reached += exactly;
    }
    sent
}

#[cfg(test)]
mod tests {
    use super::*;

    fn units(needed: u32, loss: f64, failure: f64) -> u32 {
        units_for(
            needed,
            PacketErrorRate::new(loss).unwrap(),
            Probability::new(failure).unwrap(),
        )
    }

    #[test]
    fn the_numbers_of_the_binomial_tables() {
        // P(Binomial(n, loss) > n - k): for k = 5 at 50 %, n = 15 gives 0.0592, 16 0.0384, 17
        // 0.0245; for k = 10 at 10 %, n = 13 gives 0.0342 and 14 0.0092; for k = 1 at 50 %, 2^-n.
        assert_eq!(units(5, 0.5, 0.03), 17);
        assert_eq!(units(10, 0.1, 0.035), 13);
        assert_eq!(units(10, 0.1, 0.03), 14);
        assert_eq!(units(1, 0.5, 0.03), 6);
    }

    #[test]
    fn no_loss_no_parity_and_hopeless_loss_is_bounded() {
        assert_eq!(units(10, 0.0, 0.03), 10);
        assert_eq!(units(10, 1.0, 0.03), 255);
        assert_eq!(units(0, 0.3, 0.03), 0);
        let plan = ParityPlan {
            failure: Probability::new(0.03).unwrap(),
            floor: PacketErrorRate::new(0.001).unwrap(),
        };
        assert_eq!(plan.units(10, PacketErrorRate::new(0.001).unwrap()), 10);
        assert!(plan.units(10, PacketErrorRate::new(0.002).unwrap()) >= 10);
    }
}
