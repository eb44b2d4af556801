//! Counts of one fate after another: independent loss and bursts depend on nothing else.

use crate::losses::Losses;

/// Counts of packets of each fate after packets of each fate.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pairs {
    pub(super) kept_kept: f64,
    pub(super) kept_lost: f64,
    pub(super) lost_kept: f64,
    pub(super) lost_lost: f64,
    /// Seconds between packets, on average; 1 without times.
    pub(super) step: f64,
}

impl Pairs {
    pub(crate) fn of(losses: &Losses) -> Self {
        let mut pairs = Self::default();
        let (mut last, mut time) = (None, 0.0);
        for group in losses.groups() {
            let inside = f64::from(group.count - 1);
            if group.lost {
                pairs.lost_lost += inside;
            } else {
                pairs.kept_kept += inside;
            }
            if group.step.is_finite() {
                time += group.step * f64::from(group.count);
                match (last, group.lost) {
                    (Some(false), false) => pairs.kept_kept += 1.0,
                    (Some(false), true) => pairs.kept_lost += 1.0,
                    (Some(true), false) => pairs.lost_kept += 1.0,
                    (Some(true), true) => pairs.lost_lost += 1.0,
                    (None, _) => {}
                }
            }
            last = Some(group.lost);
        }
        let all = pairs.kept_kept + pairs.kept_lost + pairs.lost_kept + pairs.lost_lost;
        pairs.step = time / all.max(1.0);
        pairs
    }

    /// About the number of bursts that began and ended within the recording.
    pub(super) fn bursts(&self) -> f64 {
        self.kept_lost.min(self.lost_kept)
    }
}
