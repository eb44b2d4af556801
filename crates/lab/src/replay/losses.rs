//! The loss of a link over time: the fates of its packets in their order, in stretches of one loss.
//!
//! A stretch is cut in two where that explains its losses much better. Losses in bursts say less than as many single ones, so
//! more is asked of them.

use super::seen::SPAN_S;
use std::ops::Range;

/// The logarithm of the likelihoods' ratio from which a stretch is cut: by chance one in some thousand recordings is.
const GAIN_MIN: f64 = 10.0;

/// A packet whose fate on the link is known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fate {
    /// The span in which it was handed over.
    pub(super) span: usize,
    pub(super) lost: bool,
}

/// A stretch of one loss.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayedLoss {
    /// The span with which it begins.
    pub(super) span: usize,
    /// Whether each packet was lost, in the order in which they were handed over.
    pub lost: Vec<bool>,
}

impl ReplayedLoss {
    /// Its start, in seconds.
    pub fn from_s(&self) -> f64 {
        self.span as f64 * SPAN_S
    }

    /// The share that was lost.
    pub fn share(&self) -> f64 {
        let lost = self.lost.iter().filter(|lost| **lost).count();
        lost as f64 / self.lost.len().max(1) as f64
    }
}

/// Packets and losses before each span.
struct Sums {
    all: Vec<f64>,
    lost: Vec<f64>,
}

impl Sums {
    fn of(fates: &[Fate], spans: usize) -> Self {
        let mut sums = Self {
            all: vec![0.0; spans + 1],
            lost: vec![0.0; spans + 1],
        };
        for fate in fates {
            sums.all[fate.span + 1] += 1.0;
            sums.lost[fate.span + 1] += f64::from(u8::from(fate.lost));
        }
        for span in 0..spans {
            sums.all[span + 1] += sums.all[span];
            sums.lost[span + 1] += sums.lost[span];
        }
        sums
    }

    /// The logarithm of the likelihood of these spans, with the loss that explains them best.
    fn likelihood(&self, spans: Range<usize>) -> f64 {
        let all = self.all[spans.end] - self.all[spans.start];
        let lost = self.lost[spans.end] - self.lost[spans.start];
        let part = |count: f64| {
            if count > 0.0 {
                count * (count / all).ln()
            } else {
                0.0
            }
        };
        part(lost) + part(all - lost)
    }

    /// The place at which these spans are best cut, and what that gains.
    fn best_cut(&self, spans: Range<usize>) -> Option<(usize, f64)> {
        let whole = self.likelihood(spans.clone());
        let cuts = (spans.start + 1..spans.end).map(|cut| {
            let halves = self.likelihood(spans.start..cut) + self.likelihood(cut..spans.end);
            (cut, halves - whole)
        });
        cuts.max_by(|one, other| one.1.total_cmp(&other.1))
    }
}

/// The stretches of one loss, the first from the beginning on; none without packets. `spans` are the spans of the recording.
pub(super) fn stretches(fates: &[Fate], spans: usize) -> Vec<ReplayedLoss> {
    if fates.is_empty() {
        return Vec::new();
    }
    let sums = Sums::of(fates, spans);
    let enough = GAIN_MIN * dispersion(fates);
    let mut starts = vec![0];
    let mut uncut = Vec::from([Range {
        start: 0,
        end: spans,
    }]);
    while let Some(stretch) = uncut.pop() {
        let cut = sums.best_cut(stretch.clone());
        if let Some((cut, _)) = cut.filter(|(_, gain)| *gain >= enough) {
            starts.push(cut);
            uncut.extend([stretch.start..cut, cut..stretch.end]);
        }
    }
    starts.sort_unstable();
    let stretch = |(place, &span): (usize, &usize)| {
        let end = starts.get(place + 1).copied().unwrap_or(spans);
        let first = fates.partition_point(|fate| fate.span < span);
        let last = fates.partition_point(|fate| fate.span < end);
        let lost = fates[first..last].iter().map(|fate| fate.lost).collect();
        ReplayedLoss { span, lost }
    };
    starts.iter().enumerate().map(stretch).collect()
}

/// The part by which the number of losses varies more than that of single ones.
fn dispersion(fates: &[Fate]) -> f64 {
    let lost = fates.iter().filter(|fate| fate.lost).count() as f64;
    let pairs = fates.windows(2);
    let begun = pairs.filter(|pair| !pair[0].lost && pair[1].lost).count() as f64;
    let begun = begun + f64::from(u8::from(fates.first().is_some_and(|fate| fate.lost)));
    if begun == 0.0 {
        return 1.0;
    }
    // Single losses have rows of this length by chance.
    let single = 1.0 / (1.0 - lost / fates.len() as f64).max(f64::EPSILON);
    (2.0 * lost / begun / single - 1.0).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fulmar_proto::rng::Rng;

    /// A hundred packets a span, each lost by the chance that its span has.
    fn fates(spans: usize, seed: u64, chance: impl Fn(usize) -> f64) -> Vec<Fate> {
        let mut rng = Rng::from_seed(seed);
        let fate = |packet: usize| Fate {
            span: packet / 100,
            lost: rng.chance(chance(packet / 100)),
        };
        (0..spans * 100).map(fate).collect()
    }

    fn starts(fates: &[Fate], spans: usize) -> Vec<usize> {
        let found = stretches(fates, spans);
        found.iter().map(|stretch| stretch.span).collect()
    }

    #[test]
    fn one_loss_is_one_stretch() {
        for seed in 0..50 {
            for loss in [0.0, 0.01, 0.05, 0.2] {
                let fates = fates(100, seed, |_| loss);
                assert_eq!(starts(&fates, 100), [0], "seed {seed}, {loss}");
            }
        }
    }

    #[test]
    fn a_loss_that_changes_is_cut_where_it_does() {
        let loss = |span: usize| match span {
            0..16 => 0.01,
            16..36 => 0.15,
            _ => 0.0,
        };
        for seed in 0..50 {
            let found = starts(&fates(100, seed, loss), 100);
            assert_eq!(found.len(), 3, "seed {seed}: {found:?}");
            assert!(found[1].abs_diff(16) <= 1 && found[2].abs_diff(36) <= 1);
        }
    }

    #[test]
    fn bursts_are_one_stretch_and_stand_in_it_as_they_were() {
        for seed in 0..50 {
            let mut rng = Rng::from_seed(seed);
            let mut left = 0;
            let bursts = (0..10_000).map(|packet| {
                if left == 0 && rng.chance(0.013) {
                    left = 4;
                }
                left -= i32::from(left > 0);
                Fate {
                    span: packet / 100,
                    lost: left > 0,
                }
            });
            let bursts: Vec<Fate> = bursts.collect();
            let found = stretches(&bursts, 100);
            assert_eq!(found.len(), 1, "seed {seed}");
            assert!(
                found[0]
                    .lost
                    .iter()
                    .eq(bursts.iter().map(|fate| &fate.lost))
            );
        }
    }

    #[test]
    fn no_packets_are_no_stretch() {
        assert_eq!(stretches(&[], 4), []);
    }
}
