//! The number of trials that fail before the next success: the draw behind every rare event here.
//!
//! With success probability p, P(G >= k) = (1 - p)^k. For E exponential with mean one,
//! G = floor(E / -ln(1 - p)) has exactly that law, because P(E >= k × -ln(1 - p)) = (1 - p)^k. One
//! draw per success replaces one draw per trial.

use fulmar_proto::rng::Rng;
use rand_distr::{Distribution, Exp1};

/// The geometric distribution on 0, 1, 2, ...
#[derive(Clone, Copy, Debug)]
pub(crate) struct Geometric {
    /// The value 1 / -ln(1 - p): zero for p = 1, infinite for p = 0.
    scale: f64,
}

impl Geometric {
    /// The distribution of failures before a success of probability `p`, in 0..=1.
    pub(crate) fn new(p: f64) -> Self {
        Self {
            scale: -(-p).ln_1p().recip(),
        }
    }

    /// The next count; `u64::MAX`, which no run reaches, when the success is impossible.
    pub(crate) fn sample(self, rng: &mut Rng) -> u64 {
        if self.scale.is_infinite() {
            return u64::MAX;
        }
        saturating_whole(exponential(rng) * self.scale)
    }
}

/// Draws from the exponential law with mean one.
pub(crate) fn exponential(rng: &mut Rng) -> f64 {
    Exp1.sample(rng)
}

/// Rounds a non-negative value down.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "float to integer casts saturate, and the values are not negative"
)]
pub(crate) fn saturating_whole(value: f64) -> u64 {
    value as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_follow_the_geometric_law() {
        let n = 200_000_u32;
        for p in [1e-6, 0.01, 0.3, 0.5, 0.9] {
            let mut rng = Rng::from_seed(11);
            let law = Geometric::new(p);
            let counts: Vec<u64> = (0..n).map(|_| law.sample(&mut rng)).collect();
            // P(G >= k) at the median and in the tail; four standard errors of a binomial share.
            for k in [1.0, (0.5_f64.ln() / (-p).ln_1p()).ceil(), (3.0 / p).ceil()] {
                let expected = (1.0 - p).powf(k);
                let share = counts.iter().filter(|&&g| g as f64 >= k).count() as f64;
                let error = (expected * (1.0 - expected) * f64::from(n)).sqrt();
                let deviation = (share - expected * f64::from(n)).abs();
                assert!(
                    deviation <= 4.0 * error,
                    "p {p} k {k}: {deviation} > 4 x {error}"
                );
            }
        }
    }

    #[test]
    fn certain_and_impossible_successes_need_no_luck() {
        let mut rng = Rng::from_seed(1);
        assert!((0..1000).all(|_| Geometric::new(1.0).sample(&mut rng) == 0));
        assert_eq!(Geometric::new(0.0).sample(&mut rng), u64::MAX);
    }
}
