//! A stationary Gaussian process that is smooth enough to have a fade rate: the basis of synthetic
//! fades.
//!
//! A first-order (Ornstein-Uhlenbeck) process crosses a level infinitely often in any time, so
//! counts of fades would depend on the sampling. The second-order process with both poles at
//! -1/t0 is the simplest that does not: mean 0, variance 1, autocorrelation
//! rho(t) = (1 + |t|/t0) exp(-|t|/t0), and Rice's rate of crossings of a level u,
//! exp(-u^2 / 2) / (2 pi t0). Samples are exact, not an approximation for short steps: value and
//! slope follow the process's own transition law.
//!
//! # Sources
//! Rice, "Mathematical analysis of random noise", BSTJ 23-24 (1944-45); Rasmussen and Williams,
//! "Gaussian processes for machine learning", appendix B (the covariance, Matern 3/2).

use fulmar_proto::rng::Rng;
use rand_distr::{Distribution, StandardNormal};

/// (1 + x) exp(-x) = 1/e at this x: the correlation time in units of t0.
pub(crate) const CORRELATION_TIMES: f64 = 2.146_193_220_620_583;

/// The process at multiples of a step.
#[derive(Clone, Debug)]
pub(crate) struct GaussianProcess {
    value: f64,
    /// The slope times t0, which has variance 1 and is independent of the value.
    slope: f64,
    transition: [[f64; 2]; 2],
    /// The lower Cholesky factor of the noise that a step adds.
    noise: [f64; 3],
    rng: Rng,
}

fn normal(rng: &mut Rng) -> f64 {
    StandardNormal.sample(rng)
}

impl GaussianProcess {
    /// A process whose correlation falls to 1/e in `steps_per_time` steps, which must be above
    /// zero.
    pub(crate) fn new(steps_per_time: f64, rng: Rng) -> Self {
        let z = CORRELATION_TIMES / steps_per_time;
        let decay = (-z).exp();
        let transition = [
            [decay * (1.0 + z), decay * z],
            [-decay * z, decay * (1.0 - z)],
        ];
        // The stationary covariance is the unit matrix, so the noise has the covariance 1 - A A^T.
        let square = decay * decay;
        let of_value = 1.0 - square * ((1.0 + z).powi(2) + z * z);
        let of_both = 2.0 * z * z * square;
        let of_slope = 1.0 - square * (z * z + (1.0 - z).powi(2));
        let first = of_value.max(0.0).sqrt();
        let mixed = if first > 0.0 { of_both / first } else { 0.0 };
        let second = (of_slope - mixed * mixed).max(0.0).sqrt();
        let mut process = Self {
            value: 0.0,
            slope: 0.0,
            transition,
            noise: [first, mixed, second],
            rng,
        };
        process.restart();
        process
    }

    /// Draws value and slope anew, from the stationary law.
    pub(crate) fn restart(&mut self) {
        self.value = normal(&mut self.rng);
        self.slope = normal(&mut self.rng);
    }

    /// Moves the process one step on.
    pub(crate) fn step(&mut self) {
        let (one, two) = (normal(&mut self.rng), normal(&mut self.rng));
        let [to_value, to_slope] = self.transition;
        let [first, mixed, second] = self.noise;
        let value = to_value[0] * self.value + to_value[1] * self.slope + first * one;
        self.slope =
            to_slope[0] * self.value + to_slope[1] * self.slope + mixed * one + second * two;
        self.value = value;
    }

    /// The present value: normal with mean 0 and variance 1.
    pub(crate) const fn value(&self) -> f64 {
        self.value
    }
}
