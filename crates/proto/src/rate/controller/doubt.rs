//! Whether the rate may be far too low: it is a small part of what the first train showed, and neither a queue, a loss nor others
//! are the reason. A train alone is no evidence that more is carried (a policer passes its bucket at line rate), but a rate that
//! nothing explains is no figure of the link either: it is not kept, and people are told.

use super::super::belief::RateCause;
use super::RateController;

/// The part of the train's rate below which a rate is doubted.
pub(super) const SMALL: f64 = 1.0 / 8.0;

impl RateController {
    /// Whether the estimate is no figure of the link.
    pub(super) fn is_doubted(&self) -> bool {
        self.cause == RateCause::Free && self.is_far_below_train()
    }

    /// Whether the estimate is a small part of what a train showed, and neither a loss nor others are the reason.
    pub(super) fn is_far_below_train(&self) -> bool {
        let shows = self.queue_shows && !self.is_cut;
        let is_shared = self.others.share_it() || self.yielding.share < 1.0;
        let train = self.others.link.min(self.bound);
        self.start.is_none() && shows && !is_shared && self.capacity < SMALL * train
    }
}
