//! Many comparisons in a few figures.

use super::AutoComparison;
use serde::Serialize;

/// The figures of many scenarios.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BesideSummary {
    /// Scenarios that some fixed setting fits, so that there is a best one.
    pub scenarios: usize,
    /// Scenarios that no fixed setting fits; they count nowhere else.
    pub without_best: usize,
    /// The score of `auto` over that of the best fixed setting, in the median.
    pub median: f64,
    /// The same at the fifth percentile.
    pub fifth_percentile: f64,
    /// The same at the worst.
    pub worst: f64,
    /// Scenarios whose best setting changes on the way.
    pub changing: usize,
    /// Those of them in which `auto` is ahead of every fixed setting.
    pub ahead: usize,
    /// Those of them in which one would be who knows in hindsight which fixed setting is the best in each part, and who knows of
    /// each change on time.
    pub ahead_knowing: usize,
    /// The same of one who follows changes.
    pub ahead_following: usize,
    /// Scenarios in which `auto` does not fit its goal.
    pub unfit: usize,
}

/// The value below which this share of `sorted` lies, by nearest rank.
fn at(sorted: &[f64], share: f64) -> f64 {
    let count = sorted.len() as f64;
    let rank = (1..=sorted.len()).find(|rank| *rank as f64 >= share * count);
    let last = rank.unwrap_or(1).saturating_sub(1);
    sorted.get(last).copied().unwrap_or_default()
}

impl BesideSummary {
    /// The figures of these comparisons.
    pub fn of(comparisons: &[AutoComparison]) -> Self {
        let mut ratios: Vec<f64> = comparisons.iter().filter_map(|one| one.of_best).collect();
        ratios.sort_by(f64::total_cmp);
        let changing = comparisons.iter().filter(|one| one.best_changes);
        let ahead = |ratio: fn(&AutoComparison) -> Option<f64>| {
            let is_ahead = |one: &&AutoComparison| ratio(one).is_some_and(|ratio| ratio > 1.0);
            changing.clone().filter(is_ahead).count()
        };
        Self {
            scenarios: ratios.len(),
            without_best: comparisons.len() - ratios.len(),
            median: at(&ratios, 0.5),
            fifth_percentile: at(&ratios, 0.05),
            worst: at(&ratios, 0.0),
            changing: changing.clone().count(),
            ahead: ahead(|one| one.of_best),
            ahead_knowing: ahead(|one| one.knowing_of_best),
            ahead_following: ahead(|one| one.following_of_best),
            unfit: comparisons
                .iter()
                .filter(|one| one.auto.unfit.is_some())
                .count(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_the_nearest_rank() {
        let sorted: Vec<f64> = (1..=20).map(f64::from).collect();
        for (share, expected) in [(0.5, 10.0), (0.05, 1.0), (0.0, 1.0), (1.0, 20.0)] {
            assert!((at(&sorted, share) - expected).abs() < 1e-12, "{share}");
        }
        assert!(at(&[], 0.5).abs() < 1e-12);
    }
}
