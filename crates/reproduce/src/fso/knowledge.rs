//! The worth of knowing the short-term bit error rate, by the age of the knowledge: over the very courses
//! that the runs at a long-term rate of 1e-4 meet, by arithmetic alone.
//!
//! For each sample of a course the class of its rate is known (a quarter octave), and so is each choice's
//! use of the link in that class. A policy that knows exactly the rate of some time ago is one choice for
//! each class of that rate. The best such policy in hindsight is a bound for every policy that knows no
//! more. A policy that knows nothing is one fixed choice.

use super::view::FADING;
use fulmar_channel::fading::Fading;
use fulmar_proto::rng::Rng;
use fulmar_proto::transport::aerotp::TpduShape;
use fulmar_proto::units::{BitErrorRate, Duration, Instant};
use std::sync::OnceLock;

/// The runs' seeds, and the length of their courses.
const SEEDS: [u64; 2] = [1, 2];
const LENGTH: Duration = Duration::from_secs(2);
/// Octets of the longest TPDU: 1540 without the network's header.
const TPDU_BYTES: usize = 1520;
/// The number of classes: quarter octaves down to 2^-40.
const CLASSES: usize = 160;
/// Ages of the knowledge in milliseconds.
pub(super) const AGES_MS: [f64; 12] = [
    0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 16.7, 30.0, 60.0,
];

/// The most that a channel's courses allow, as shares of the link.
#[derive(Clone, Debug)]
pub(super) struct Worth {
    /// The best fixed choice of all lengths and strengths, in hindsight.
    pub(super) fixed: f64,
    /// That choice's parity words, and its payload in octets.
    pub(super) shape: (u16, usize),
    /// The best choices by the present rate.
    pub(super) now: f64,
    /// The best choices by the rate of each of the ages ago.
    pub(super) by_age: Vec<f64>,
}

/// A channel of [`FADING`], by its name; each is computed once.
pub(super) fn worth(channel: &str) -> Option<&'static Worth> {
    static ALL: [OnceLock<Worth>; FADING.len()] = [const { OnceLock::new() }; FADING.len()];
    let place = FADING.iter().position(|known| *known == channel)?;
    let worth = ALL.get(place)?;
    Some(worth.get_or_init(|| Tables::new(channel).worth()))
}

/// A channel's courses in classes, and each choice's use of the link in each class.
struct Tables {
    shapes: Vec<TpduShape>,
    /// The use of the link by class, then by shape.
    uses: Vec<Vec<f64>>,
    /// The class of each sample, for each seed.
    courses: Vec<Vec<usize>>,
    /// The time from one sample to the next, in seconds.
    spacing: f64,
}

fn class(rate: BitErrorRate) -> usize {
    let quarters = -4.0 * rate.value().max(1e-300).log2();
    (0..CLASSES - 1)
        .find(|class| quarters < (class + 1) as f64)
        .unwrap_or(CLASSES - 1)
}

impl Tables {
    fn new(channel: &str) -> Self {
        let fading: Fading = format!("{channel} ber 1e-4 seed run over 2s")
            .parse()
            .expect("a preset and clauses of any source");
        let mut spacing = 0.0;
        let courses = SEEDS.map(|seed| {
            // The generator that a world makes of its seed.
            let course = Rng::from_seed(seed)
                .child("hop-0")
                .child("course")
                .next_u64();
            let fades = fading.clone().in_run(course).fades(&Rng::from_seed(seed));
            let fades = fades.expect("a preset needs no recording");
            let end = Instant::START + LENGTH;
            let mut classes = Vec::new();
            for fade in fades.take_while(|fade| fade.at < end) {
                if classes.len() == 1 {
                    spacing = fade.at.as_secs_f64();
                }
                classes.push(class(fade.bit_errors));
            }
            classes
        });
        let shapes = TpduShape::choices(TPDU_BYTES);
        let uses = (0..CLASSES).map(|class| {
            let middle = (-(class as f64 + 0.5) / 4.0).exp2().min(0.5);
            let rate = BitErrorRate::new(middle).unwrap_or_default();
            shapes.iter().map(|shape| shape.use_of_link(rate)).collect()
        });
        Self {
            uses: uses.collect(),
            shapes,
            courses: courses.to_vec(),
            spacing,
        }
    }

    /// The most that a choice uses of the link in the mean over these shares of time, by class; and the
    /// choice.
    fn most(&self, shares: &[f64]) -> (f64, usize) {
        let mut sums = vec![0.0; self.shapes.len()];
        for (uses, share) in self
            .uses
            .iter()
            .zip(shares)
            .filter(|(_, share)| **share > 0.0)
        {
            for (sum, used) in sums.iter_mut().zip(uses) {
                *sum += share * used;
            }
        }
        let mut best = (0.0, 0);
        for (index, sum) in sums.into_iter().enumerate() {
            if sum > best.0 {
                best = (sum, index);
            }
        }
        best
    }

    /// The share of the link with the best choices by the class of `age` samples before.
    fn by_age(&self, age: usize) -> f64 {
        let mut shares = vec![vec![0.0; CLASSES]; CLASSES];
        let mut total = 0.0;
        for course in &self.courses {
            for (then, now) in course.iter().zip(course.iter().skip(age)) {
                if let Some(share) = shares.get_mut(*then).and_then(|row| row.get_mut(*now)) {
                    *share += 1.0;
                    total += 1.0;
                }
            }
        }
        shares.iter().map(|row| self.most(row).0).sum::<f64>() / f64::max(total, 1.0)
    }

    fn worth(&self) -> Worth {
        let mut shares = vec![0.0; CLASSES];
        let samples: usize = self.courses.iter().map(Vec::len).sum();
        for class in self.courses.iter().flatten() {
            if let Some(share) = shares.get_mut(*class) {
                *share += 1.0 / samples as f64;
            }
        }
        let (fixed, index) = self.most(&shares);
        let shape = self.shapes.get(index);
        let samples_in = |milliseconds: f64| milliseconds * 1e-3 / self.spacing;
        Worth {
            fixed,
            shape: shape.map_or((0, 0), |shape| (shape.fec_words.words(), shape.payload)),
            now: self.by_age(0),
            by_age: AGES_MS
                .map(|age| self.by_age(whole(samples_in(age))))
                .to_vec(),
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "float to integer casts saturate"
)]
fn whole(value: f64) -> usize {
    value.round() as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_knowledge_is_never_worth_less_and_none_is_a_fixed_choice() {
        for channel in FADING {
            let worth = worth(channel).expect("a preset");
            println!("{channel}: {worth:?}");
            assert!(worth.now >= worth.fixed, "{worth:?}");
            for by_age in &worth.by_age {
                // Samples without a past are few, and are left out.
                assert!(
                    (worth.fixed - 0.01..=worth.now + 0.01).contains(by_age),
                    "{worth:?}"
                );
            }
        }
    }
}
