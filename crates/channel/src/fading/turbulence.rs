//! The distribution of the received power in a turbulent atmosphere, relative to its mean.
//!
//! Each law is a map from a standard normal variable to a positive one of mean 1. Such a map is
//! monotone, so the fades of the power are the excursions of the Gaussian process behind it, and
//! their count and duration are those of that process at the level that the map assigns.
//!
//! - Log-normal, for weak turbulence or large apertures: ln I ~ N(-s^2 / 2, s^2) with
//!   s^2 = ln(1 + SI), SI being the scintillation index, the variance of I.
//! - Gamma-gamma, for moderate to strong: I is the product of two gamma variables of mean 1 and
//!   shapes alpha and beta, by a table of its quantiles.
//!
//! # Sources
//! Andrews and Phillips, "Laser beam propagation through random media" (plane wave); Al-Habash,
//! Andrews and Phillips, Optical Engineering 40 (2001).

use crate::config_error::{ChannelConfigError, Setting};
use statrs::function::erf::erfc_inv;
use statrs::function::gamma::{checked_gamma_lr, checked_gamma_ur, ln_gamma};

/// A law of the relative power, by its scintillation index: the variance over the squared mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Turbulence {
    /// Log-normal with this scintillation index, in 0.0001..=10.
    LogNormal(f64),
    /// Gamma-gamma with this scintillation index, in 0.01..=1.2: alpha and beta follow from it as
    /// for a plane wave in turbulence not yet saturated.
    GammaGamma(f64),
}

impl Turbulence {
    /// The scintillation index.
    pub const fn scintillation_index(self) -> f64 {
        match self {
            Self::LogNormal(index) | Self::GammaGamma(index) => index,
        }
    }

    pub(crate) fn check(self) -> Result<(), ChannelConfigError> {
        let (range, allowed) = match self {
            Self::LogNormal(_) => (1e-4..=10.0, "a scintillation index of 0.0001 to 10"),
            Self::GammaGamma(_) => (0.01..=1.2, "a scintillation index of 0.01 to 1.2"),
        };
        let index = self.scintillation_index();
        if range.contains(&index) {
            Ok(())
        } else {
            let field = Setting::Fading.part("scintillation");
            Err(ChannelConfigError::new(field, index, allowed))
        }
    }

    /// The shapes alpha and beta of a gamma-gamma law; `None` for another law.
    pub fn shapes(self) -> Option<(f64, f64)> {
        match self {
            Self::LogNormal(_) => None,
            Self::GammaGamma(index) => Some(shapes_of(index)),
        }
    }

    pub(crate) fn map(self) -> Map {
        match self {
            Self::LogNormal(index) => Map::LogNormal(index),
            Self::GammaGamma(index) => Map::Table(TurbulenceTable::gamma_gamma(shapes_of(index))),
        }
    }
}

/// The shapes of a plane wave at the Rytov variance `rytov`.
fn plane_wave(rytov: f64) -> (f64, f64) {
    let strength = |factor: f64, damping: f64, power: f64| {
        let exponent = factor * rytov / (1.0 + damping * rytov.powf(6.0 / 5.0)).powf(power);
        exponent.exp_m1().recip()
    };
    (
        strength(0.49, 1.11, 7.0 / 6.0),
        strength(0.51, 0.69, 5.0 / 6.0),
    )
}

fn index_of((alpha, beta): (f64, f64)) -> f64 {
    1.0 / alpha + 1.0 / beta + 1.0 / (alpha * beta)
}

/// The bound of the search for a Rytov variance. The plane wave's scintillation index is greatest,
/// 1.24, above it; below it the index rises with turbulence.
const RYTOV_RISING_MAX: f64 = 5.0;

fn shapes_of(index: f64) -> (f64, f64) {
    let (mut low, mut high) = (1e-6, RYTOV_RISING_MAX);
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if index_of(plane_wave(middle)) < index {
            low = middle;
        } else {
            high = middle;
        }
    }
    plane_wave(low)
}

/// A map from a standard normal variable to the relative power.
#[derive(Clone, Debug)]
pub(crate) enum Map {
    LogNormal(f64),
    Table(TurbulenceTable),
}

impl Map {
    /// The relative power at the normal value `u`. `weaker` scales the scintillation index of a
    /// log-normal law, for a medium that changes.
    pub(crate) fn relative(&self, u: f64, weaker: f64) -> f64 {
        match self {
            Self::LogNormal(index) => {
                let variance = (index * weaker).ln_1p();
                (variance.sqrt() * u - variance / 2.0).exp()
            }
            Self::Table(table) => table.logarithm(u).exp(),
        }
    }
}

/// ln I as a function of the normal value, at even distances.
#[derive(Clone, Debug)]
pub(crate) struct TurbulenceTable {
    logarithms: Vec<f64>,
}

/// The end of the table: one sample in 10^10 lies beyond, where the table's last slope continues.
const NORMAL_MAX: f64 = 6.5;
const STEPS_PER_UNIT: f64 = 64.0;
/// Steps of the table: 2 x 6.5 x 64.
const STEPS: u32 = 832;

impl TurbulenceTable {
    fn gamma_gamma((alpha, beta): (f64, f64)) -> Self {
        let law = GammaGamma::new(alpha, beta);
        let spacing = 0.05 * index_of((alpha, beta)).ln_1p().sqrt();
        // The points run from the middle outwards, until they are beyond the ends of the table.
        let mut below = Vec::new();
        let mut logarithm = 0.0;
        loop {
            let u = law.normal_value(logarithm);
            below.push((u, logarithm));
            if u < -NORMAL_MAX - 0.1 || below.len() > POINTS_MAX {
                break;
            }
            logarithm -= spacing;
        }
        let mut points: Vec<(f64, f64)> = below.into_iter().rev().collect();
        logarithm = spacing;
        loop {
            let u = law.normal_value(logarithm);
            points.push((u, logarithm));
            if u > NORMAL_MAX + 0.1 || points.len() > 2 * POINTS_MAX {
                break;
            }
            logarithm += spacing;
        }
        let logarithms = (0..=STEPS)
            .map(|step| between(&points, f64::from(step) / STEPS_PER_UNIT - NORMAL_MAX))
            .collect();
        Self { logarithms }
    }

    fn logarithm(&self, u: f64) -> f64 {
        let place = (u + NORMAL_MAX) * STEPS_PER_UNIT;
        let last = self.logarithms.len().saturating_sub(2);
        let left = whole(place).min(last);
        match self.logarithms.get(left..left + 2) {
            Some(&[a, b]) => a + (b - a) * (place - left as f64),
            _ => 0.0,
        }
    }
}

/// Rounds down; a negative value becomes zero.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "float to integer casts saturate"
)]
fn whole(value: f64) -> usize {
    value.max(0.0) as usize
}

/// The most points on one side; no law of the allowed range needs more.
const POINTS_MAX: usize = 4096;

/// The ordinate at `u` on the broken line through `points`, which ascend.
fn between(points: &[(f64, f64)], u: f64) -> f64 {
    let right = points
        .partition_point(|&(at, _)| at < u)
        .clamp(1, points.len().saturating_sub(1).max(1));
    match points.get(right - 1..=right) {
        Some(&[(u0, y0), (u1, y1)]) => y0 + (y1 - y0) * (u - u0) / (u1 - u0),
        _ => 0.0,
    }
}

/// The gamma-gamma law as a mixture: one factor, given the other, has a gamma law.
struct GammaGamma {
    beta: f64,
    /// Logarithms of the first factor, and their weights, which sum to one.
    nodes: Vec<(f64, f64)>,
}

impl GammaGamma {
    fn new(alpha: f64, beta: f64) -> Self {
        // The trapezoidal rule on the logarithm: the integrand dies away on both sides faster than
        // exponentially or exponentially, and a quarter of a standard deviation is far finer than
        // the rule's error of exp(-2 pi^2 / h^2) asks for.
        let spacing = 0.25 / alpha.max(beta).sqrt();
        let scale = alpha * alpha.ln() - ln_gamma(alpha);
        let weight = |t: f64| (scale + alpha * (t - t.exp())).exp() * spacing;
        let negligible = 1e-18;
        let side = |direction: f64, from: u32| {
            (from..NODES_MAX)
                .map(move |step| direction * f64::from(step) * spacing)
                .map(|t| (t, weight(t)))
                .take_while(|&(_, weight)| weight > negligible)
                .collect::<Vec<_>>()
        };
        let mut nodes = side(1.0, 0);
        nodes.extend(side(-1.0, 1));
        let total: f64 = nodes.iter().map(|(_, weight)| weight).sum();
        for (_, weight) in &mut nodes {
            *weight /= total;
        }
        Self { beta, nodes }
    }

    /// The standard normal value with the same probability below it as ln I has below `logarithm`.
    fn normal_value(&self, logarithm: f64) -> f64 {
        let mean = |tail: fn(f64, f64) -> Option<f64>| -> f64 {
            let of_node = |&(t, weight): &(f64, f64)| {
                let argument = (self.beta * (logarithm - t).exp()).clamp(1e-300, 1e300);
                weight * tail(self.beta, argument).unwrap_or_default()
            };
            self.nodes.iter().map(of_node).sum()
        };
        let below = mean(|shape, x| checked_gamma_lr(shape, x).ok());
        // The tail that is small is the one that is exact.
        if below < 0.5 {
            -core::f64::consts::SQRT_2 * erfc_inv(2.0 * below.max(1e-300))
        } else {
            let above = mean(|shape, x| checked_gamma_ur(shape, x).ok());
            core::f64::consts::SQRT_2 * erfc_inv(2.0 * above.max(1e-300))
        }
    }
}

const NODES_MAX: u32 = 20_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shapes_have_the_scintillation_index_asked_for() {
        for index in [0.01, 0.3, 0.6, 1.0, 1.2] {
            let shapes = Turbulence::GammaGamma(index).shapes().unwrap();
            assert!(
                (index_of(shapes) - index).abs() < 1e-9,
                "{index}: {shapes:?}"
            );
        }
        // It must rise all the way to the bound, or there would be two answers.
        let rytov = |step: u32| f64::from(step) * RYTOV_RISING_MAX / 1000.0;
        assert!(
            (1..1000)
                .all(|i| { index_of(plane_wave(rytov(i))) < index_of(plane_wave(rytov(i + 1))) })
        );
        assert!(index_of(plane_wave(RYTOV_RISING_MAX)) >= 1.2);
    }

    #[test]
    fn each_map_has_mean_one_and_the_index_as_variance() {
        for law in [
            Turbulence::LogNormal(0.05),
            Turbulence::LogNormal(0.6),
            Turbulence::GammaGamma(0.3),
            Turbulence::GammaGamma(1.0),
        ] {
            let map = law.map();
            let (mut mean, mut square) = (0.0, 0.0);
            // The trapezoidal rule over the normal density, far beyond its tails.
            for step in -1300..=1300 {
                let u = f64::from(step) * 0.005;
                let weight = (-u * u / 2.0).exp() * 0.005 / (2.0 * core::f64::consts::PI).sqrt();
                let power = map.relative(u, 1.0);
                mean += weight * power;
                square += weight * power * power;
            }
            let variance = square - mean * mean;
            // The table is a broken line of ln I: relative errors of some 1e-4.
            assert!((mean - 1.0).abs() < 1e-3, "{law:?}: mean {mean}");
            let index = law.scintillation_index();
            assert!((variance / index - 1.0).abs() < 3e-3, "{law:?}: {variance}");
        }
    }

    #[test]
    fn indices_out_of_range_are_refused() {
        for law in [
            Turbulence::LogNormal(0.0),
            Turbulence::LogNormal(f64::NAN),
            Turbulence::GammaGamma(1.3),
        ] {
            assert!(law.check().is_err(), "{law:?}");
        }
    }
}
