//! The share of units that a hop loses, as an exponentially weighted moving average over units.
//!
//! Each unit's fate moves the average by 1 / `memory`. A block of n units moves it as n such steps
//! with the block's mean fate would. So long blocks count more than short ones, and the average
//! forgets by traffic, not by time.
//!
//! # Sources
//! LT-TCP + LL-HARQ slides: "loss estimation using EWMA". They give no weight
//! (docs/models/link.md).

use fulmar_proto::units::PacketErrorRate;

/// A moving average of the loss.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinkLossEstimate {
    share: f64,
    kept: f64,
}

impl LinkLossEstimate {
    /// An estimate of no loss; `memory` is its weight in units, at least one.
    pub(crate) fn new(memory: u32) -> Self {
        Self {
            share: 0.0,
            kept: 1.0 - 1.0 / f64::from(memory.max(1)),
        }
    }

    /// Takes the fate of `sent` units, of which `lost` were lost.
    pub(crate) fn observe(&mut self, sent: u32, lost: u32) {
        if sent == 0 {
            return;
        }
        let share = f64::from(lost.min(sent)) / f64::from(sent);
        let kept = self.kept.powf(f64::from(sent));
        self.share = kept * self.share + (1.0 - kept) * share;
    }

    /// The estimate.
    pub(crate) fn value(self) -> PacketErrorRate {
        PacketErrorRate::new(self.share).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_starts_at_none_and_settles_at_the_share_whatever_the_blocks_length() {
        for block in [1, 5, 50] {
            let mut estimate = LinkLossEstimate::new(100);
            assert!(estimate.value().is_zero());
            for _ in 0..4_000 / block {
                estimate.observe(5 * block, block);
            }
            // 20,000 units leave (1 - 0.01)^20000 of the start.
            assert!((estimate.value().value() - 0.2).abs() < 1e-9);
        }
    }

    #[test]
    fn its_memory_is_counted_in_units() {
        let mut estimate = LinkLossEstimate::new(100);
        estimate.observe(100, 100);
        // 1 - 0.99^100.
        assert!((estimate.value().value() - 0.633_968).abs() < 1e-6);
    }
}
