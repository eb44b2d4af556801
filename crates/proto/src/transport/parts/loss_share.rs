//! The share of transmissions that are lost, lately.

/// The weight of the past against one more transmission, once as many were seen.
const MEMORY: u32 = 128;
/// All of it, in the unit of the share.
const ONE: u32 = 1 << 16;

/// A mean of losses, in integers: the same on every machine. It begins at none, and is the plain mean of the first
/// `MEMORY` transmissions.
#[derive(Clone, Copy, Debug, Default)]
pub struct LossShare {
    /// Of 2^16.
    share: u32,
    seen: u32,
}

impl LossShare {
    fn note(&mut self, sample: u32) {
        self.seen = (self.seen + 1).min(MEMORY);
        let rest = u64::from(self.share) * u64::from(self.seen - 1);
        let mean = (rest + u64::from(sample)) / u64::from(self.seen);
        self.share = u32::try_from(mean).unwrap_or(ONE).min(ONE);
    }

    /// Notes a transmission that arrived.
    pub fn arrived(&mut self) {
        self.note(0);
    }

    /// Notes a transmission that was lost.
    pub fn lost(&mut self) {
        self.note(ONE);
    }

    /// Forgets the past but for the newest `of` transmissions, of which `lost` were lost.
    pub(crate) fn begin_again(&mut self, lost: u32, of: u32) {
        self.share = (lost.min(of) * ONE) / of.max(1);
        self.seen = of.min(MEMORY);
    }

    /// Times out of 2^16 that all of `times` transmissions are lost, if each is by itself.
    pub fn all_of(self, times: u32) -> u32 {
        let mut all = u64::from(ONE);
        for _ in 0..times {
            all = (all * u64::from(self.share)) >> 16;
        }
        u32::try_from(all).unwrap_or(ONE)
    }

    /// The least number of transmissions, `most` at the most, all of which are lost no more often than `wanted` times out of 2^16.
    pub fn enough(self, wanted: u32, most: u32) -> u32 {
        (1..most)
            .find(|times| self.all_of(*times) <= wanted)
            .unwrap_or(most)
    }

    /// The share that is lost, of 2^16.
    pub const fn of_65536(self) -> u32 {
        self.share
    }

    /// The number of transmissions that the share stands for: those seen, and twice the memory at most.
    pub const fn weight(self) -> u32 {
        if self.seen == MEMORY {
            MEMORY * 2
        } else {
            self.seen
        }
    }

    /// Hundredths that are lost, rounded up.
    pub const fn percent(self) -> u32 {
        (self.share * 100).div_ceil(ONE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_transmissions_have_their_plain_mean_and_later_ones_replace_the_past() {
        let mut share = LossShare::default();
        assert_eq!((share.percent(), share.enough(1 << 8, 4)), (0, 1));
        for _ in 0..20 {
            share.lost();
            (0..9).for_each(|_| share.arrived());
        }
        assert!((9..=11).contains(&share.percent()), "{}", share.percent());
        (0..2_000).for_each(|_| share.arrived());
        assert_eq!(share.percent(), 0);
    }

    #[test]
    fn enough_transmissions_are_those_that_are_seldom_lost_together() {
        let mut share = LossShare::default();
        share.lost();
        share.arrived();
        assert_eq!(share.all_of(1), 1 << 15);
        assert_eq!(share.all_of(3), 1 << 13);
        assert_eq!(share.enough(1 << 13, 8), 3);
        assert_eq!(share.enough(1, 8), 8, "the most that is allowed");
    }
}
