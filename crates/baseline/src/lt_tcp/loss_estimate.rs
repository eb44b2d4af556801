//! The receiver's estimate of the path's loss.
//!
//! Every transmission has a number of its own, so the numbers missing between two blocks are those
//! of lost transmissions of any kind. The loss ratio in each block's time moves an exponentially
//! weighted mean E, as the slides ask, and its mean deviation V, which is ours.

/// The number of recent arrivals among which late ones are told from duplicates.
const REMEMBERED: u64 = 128;

/// An estimator that counts arrivals.
#[derive(Clone, Debug)]
pub(super) struct PathLossEstimate {
    gain: f64,
    /// Transmissions that a ratio is taken over, at the least.
    span_min: u64,
    /// One past the newest number that arrived.
    end: u64,
    /// Bit i: whether number `end` - 1 - i arrived.
    seen: u128,
    arrivals: u64,
    /// The number at which the present ratio begins, and the arrivals since.
    from: u64,
    arrived: u64,
    loss: f64,
    deviation: f64,
}

impl PathLossEstimate {
    pub(super) const fn new(gain: f64, span_min: u8) -> Self {
        Self {
            gain,
            span_min: span_min as u64,
            end: 0,
            seen: 0,
            arrivals: 0,
            from: 0,
            arrived: 0,
            loss: 0.0,
            deviation: 0.0,
        }
    }

    /// Takes the arrival of the transmission with this number, modulo 2^16; `begins_block` if it is
    /// the first of a newer block than before. Returns `false` if it arrived before, or too late to
    /// tell.
    pub(super) fn on_arrival(&mut self, ordinal: u16, begins_block: bool) -> bool {
        let ahead = ordinal.wrapping_sub(low(self.end)).cast_signed();
        let Some(number) = self.end.checked_add_signed(i64::from(ahead)) else {
            return false;
        };
        if number < self.end {
            let back = self.end - 1 - number;
            if back >= REMEMBERED || self.seen & (1 << back) != 0 {
                return false;
            }
            self.seen |= 1 << back;
            self.arrived += u64::from(number >= self.from);
        } else {
            if begins_block && number - self.from >= self.span_min {
                self.close(number);
            }
            let shift = u32::try_from(number - self.end + 1).unwrap_or(u32::MAX);
            self.seen = self.seen.checked_shl(shift).unwrap_or(0) | 1;
            self.end = number + 1;
            self.arrived += 1;
        }
        self.arrivals += 1;
        true
    }

    /// Completes the ratio up to `number`.
    fn close(&mut self, number: u64) {
        let span = (number - self.from) as f64;
        let ratio = (1.0 - self.arrived as f64 / span).clamp(0.0, 1.0);
        self.loss += self.gain * (ratio - self.loss);
        self.deviation += self.gain * ((ratio - self.loss).abs() - self.deviation);
        self.from = number;
        self.arrived = 0;
    }

    /// One past the newest number that arrived, modulo 2^16.
    pub(super) const fn end(&self) -> u16 {
        low(self.end)
    }

    /// The number of arrivals in all, modulo 2^16.
    pub(super) const fn arrivals(&self) -> u16 {
        low(self.arrivals)
    }

    /// The mean E.
    pub(super) const fn loss(&self) -> f64 {
        self.loss
    }

    /// The mean E and the deviation V in units of 1/65535.
    pub(super) fn told(&self) -> (u16, u16) {
        (told(self.loss), told(self.deviation))
    }
}

#[expect(clippy::cast_possible_truncation, reason = "numbers wrap on the wire")]
const fn low(number: u64) -> u16 {
    number as u16
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share of 65535, and casts from floats saturate"
)]
fn told(share: f64) -> u16 {
    (share * f64::from(u16::MAX)).round() as u16
}

/// The share that [`PathLossEstimate::told`] stands for.
pub(super) fn share(told: u16) -> f64 {
    f64::from(told) / f64::from(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fulmar_proto::rng::Rng;

    /// Feeds blocks of ten, of which `lost` are lost.
    fn blocks(estimate: &mut PathLossEstimate, from: u16, blocks: u16, lost: u16) -> u16 {
        for block in 0..blocks {
            let first = from.wrapping_add(block * 10);
            estimate.on_arrival(first, true);
            for i in 1..10 - lost {
                estimate.on_arrival(first.wrapping_add(i), false);
            }
        }
        from.wrapping_add(blocks * 10)
    }

    #[test]
    fn the_estimate_moves_half_way_to_each_ratio_and_the_deviation_follows() {
        let mut estimate = PathLossEstimate::new(0.5, 10);
        let next = blocks(&mut estimate, 0, 1, 2);
        assert_eq!(estimate.told(), (0, 0), "the first block is not over");
        estimate.on_arrival(next, true);
        let (loss, deviation) = estimate.told();
        assert!((share(loss) - 0.1).abs() < 1e-4 && (share(deviation) - 0.05).abs() < 1e-4);
    }

    #[test]
    fn a_steady_loss_is_found_across_the_wrap_of_the_numbers() {
        let mut estimate = PathLossEstimate::new(0.5, 10);
        let mut next = 0;
        for _ in 0..20 {
            next = blocks(&mut estimate, next, 1_000, 3);
        }
        let (loss, deviation) = estimate.told();
        assert!((share(loss) - 0.3).abs() < 1e-3, "{loss}");
        assert!(share(deviation) < 1e-3);
        assert_eq!(estimate.arrivals(), low(20 * 1_000 * 7));
    }

    #[test]
    fn doubled_and_late_arrivals_do_not_disturb_it() {
        let mut estimate = PathLossEstimate::new(0.5, 10);
        let mut rng = Rng::from_seed(7);
        let mut order: Vec<u16> = (0..5_000).collect();
        for i in 1..order.len() {
            if rng.chance(0.3) {
                order.swap(i - 1, i);
            }
        }
        for ordinal in order {
            assert!(estimate.on_arrival(ordinal, ordinal % 10 == 0));
            assert!(!estimate.on_arrival(ordinal, false), "{ordinal} twice");
        }
        assert_eq!((estimate.end(), estimate.arrivals()), (5_000, 5_000));
        // A swap over the end of a ratio moves one of ten from one ratio to the next.
        assert!(share(estimate.told().0) < 0.11);
    }
}
