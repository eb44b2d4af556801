//! Fading: the law of the power, its correlation over time, fades, and the long-term error rate.
//!
//! Where samples depend on each other, figures are taken over independent courses (one seed each)
//! and compared by the standard error among them. With 40 courses, Student's t beyond [`T`] has the
//! same probability as a normal variable beyond `Z`.

use fulmar_channel::fading::{Fading, Turbulence};
use fulmar_proto::rng::Rng;
use rand_distr::{Distribution, Gamma};
use statrs::distribution::{ContinuousCDF, Normal};

const COURSES: u64 = 40;
/// Two-sided 6.3e-5 with 39 degrees of freedom.
const T: f64 = 4.49;

pub(super) fn fading(text: &str) -> Fading {
    text.parse().unwrap()
}

/// The power of course `seed` over the mean power, sample by sample.
fn relative(fading: &Fading, seed: u64) -> impl Iterator<Item = f64> + use<> {
    let mean = fading.mean_power().unwrap().watts();
    let fades = fading.fades(&Rng::from_seed(seed)).unwrap();
    fades.map(move |fade| fade.power.watts() / mean)
}

/// The mean of `figures`, one of each course, is `expected`.
fn assert_mean(what: &str, figures: &[f64], expected: f64) {
    let n = figures.len() as f64;
    let mean = figures.iter().sum::<f64>() / n;
    let square = figures.iter().map(|x| (x - mean).powi(2)).sum::<f64>();
    let allowed = T * (square / (n - 1.0) / n).sqrt();
    println!("{what}: measured {mean:.6}, expected {expected:.6} +- {allowed:.6}");
    assert!(
        (mean - expected).abs() <= allowed,
        "{what}: {mean} is not {expected} +- {allowed}"
    );
}

/// Samples so far apart that the Gaussian process has forgotten: eight correlation times, a
/// correlation of 6e-7.
fn independent_samples(fading: &Fading, count: usize) -> Vec<f64> {
    let mut samples: Vec<f64> = relative(fading, 5).step_by(8 * 40).take(count).collect();
    samples.sort_by(f64::total_cmp);
    samples
}

/// Kolmogorov and Smirnov, one sample: P(D > d) <= 2 exp(-2 n d^2) (Massart 1990).
fn assert_distribution(what: &str, sorted: &[f64], law: impl Fn(f64) -> f64) {
    let n = sorted.len() as f64;
    let distance = sorted.iter().enumerate().map(|(i, &x)| {
        let p = law(x);
        (p - i as f64 / n).abs().max(((i + 1) as f64 / n - p).abs())
    });
    let distance = distance.fold(0.0, f64::max);
    let allowed = ((2.0_f64 / 6.3e-5).ln() / (2.0 * n)).sqrt();
    println!("{what}: Kolmogorov-Smirnov {distance:.5}, at most {allowed:.5}");
    assert!(distance <= allowed, "{what}: {distance} above {allowed}");
}

/// The same test for two samples: the bound with n m / (n + m) in place of n.
fn assert_same_distribution(what: &str, a: &[f64], b: &[f64]) {
    let (n, m) = (a.len() as f64, b.len() as f64);
    let below = |sorted: &[f64], x: f64| sorted.partition_point(|&y| y <= x) as f64;
    let steps = a.iter().chain(b);
    let distance = steps.map(|&x| (below(a, x) / n - below(b, x) / m).abs());
    let distance = distance.fold(0.0, f64::max);
    let allowed = ((2.0_f64 / 6.3e-5).ln() / (2.0 * n * m / (n + m))).sqrt();
    println!("{what}: Kolmogorov-Smirnov of two {distance:.5}, at most {allowed:.5}");
    assert!(distance <= allowed, "{what}: {distance} above {allowed}");
}

fn standard_normal() -> Normal {
    Normal::new(0.0, 1.0).unwrap()
}

#[test]
fn log_normal_power_has_the_law_of_its_scintillation_index() {
    for index in [0.05_f64, 0.5] {
        let fading = fading(&format!("log-normal {index} time 1ms"));
        let variance = index.ln_1p();
        let law = |x: f64| standard_normal().cdf((x.ln() + variance / 2.0) / variance.sqrt());
        let samples = independent_samples(&fading, 20_000);
        assert_distribution(&format!("log-normal {index}"), &samples, law);
    }
}

/// Against products of two gamma variables, which the implementation's table knows nothing of.
#[test]
fn gamma_gamma_power_is_distributed_as_the_product_of_two_gamma_variables() {
    for index in [0.3, 0.6, 1.0] {
        let fading = fading(&format!("gamma-gamma {index} time 1ms"));
        let (alpha, beta) = Turbulence::GammaGamma(index).shapes().unwrap();
        let mut rng = Rng::from_seed(77);
        let factor = |shape: f64| Gamma::new(shape, 1.0 / shape).unwrap();
        let (large, small) = (factor(alpha), factor(beta));
        let mut products: Vec<f64> = (0..200_000)
            .map(|_| large.sample(&mut rng) * small.sample(&mut rng))
            .collect();
        products.sort_by(f64::total_cmp);
        let samples = independent_samples(&fading, 20_000);
        assert_same_distribution(&format!("gamma-gamma {index}"), &samples, &products);
    }
}

/// The normal variable behind a log-normal power of index 0.5.
fn normals(seed: u64, count: usize) -> Vec<f64> {
    let fading = fading("log-normal 0.5 time 4ms");
    let variance = 0.5_f64.ln_1p();
    relative(&fading, seed)
        .take(count)
        .map(|x| (x.ln() + variance / 2.0) / variance.sqrt())
        .collect()
}

/// t0, in samples: 4 ms hold 40 samples of 100 us, and (1 + x) exp(-x) = 1/e at x = 2.14619.
const DECAY_SAMPLES: f64 = 40.0 / 2.146_193_220_620_583;

fn correlation(samples: f64) -> f64 {
    let x = samples / DECAY_SAMPLES;
    (1.0 + x) * (-x).exp()
}

#[test]
fn log_power_is_correlated_in_time_as_the_law_says() {
    assert!((correlation(40.0) - (-1.0_f64).exp()).abs() < 1e-12);
    let courses: Vec<Vec<f64>> = (0..COURSES).map(|seed| normals(seed, 40_000)).collect();
    for lag in [4_usize, 20, 40, 80, 160] {
        let products: Vec<f64> = courses
            .iter()
            .map(|course| {
                let pairs = course.iter().zip(&course[lag..]);
                pairs.map(|(a, b)| a * b).sum::<f64>() / (course.len() - lag) as f64
            })
            .collect();
        let what = format!("correlation after {} correlation times", lag as f64 / 40.0);
        assert_mean(&what, &products, correlation(lag as f64));
    }
}

/// The probability that a sample is at or above the level `u` and the next is below: the integral
/// over the first of density times conditional probability.
fn falls_below(u: f64) -> f64 {
    let rho = correlation(1.0);
    let width = (1.0 - rho * rho).sqrt();
    let step = width / 50.0;
    let normal = standard_normal();
    let terms = (0..4_000).map(|i| {
        let x = u + (f64::from(i) + 0.5) * step;
        let density = (-x * x / 2.0).exp() / (2.0 * core::f64::consts::PI).sqrt();
        density * normal.cdf((u - rho * x) / width) * step
    });
    terms.sum()
}

/// Fades below three levels: their number, the time in them, and their mean duration. Samples miss
/// fades shorter than their spacing, so the law is that of the sampled process; the last lines
/// compare it with Rice's law of continuous time.
#[test]
fn fades_are_as_many_and_as_long_as_the_law_says() {
    let count = 100_000;
    let courses: Vec<Vec<f64>> = (0..COURSES).map(|seed| normals(seed, count)).collect();
    for level in [0.0, -1.0, -2.0] {
        let figures: Vec<(f64, f64)> = courses
            .iter()
            .map(|course| {
                let falls = course.windows(2).filter(|w| w[0] >= level && w[1] < level);
                let below = course.iter().filter(|&&u| u < level).count();
                (falls.count() as f64, below as f64)
            })
            .collect();
        let expected_falls = falls_below(level) * (count - 1) as f64;
        let expected_below = standard_normal().cdf(level) * count as f64;
        let duration = expected_below / expected_falls;
        let of = |f: &dyn Fn(&(f64, f64)) -> f64| figures.iter().map(f).collect::<Vec<f64>>();
        let what = |figure: &str| format!("{figure} below {level} deviations");
        assert_mean(&what("fades"), &of(&|x| x.0), expected_falls);
        assert_mean(&what("samples"), &of(&|x| x.1), expected_below);
        // The ratio's error to first order: samples below the level less those that the expected
        // fades would have.
        let excess = of(&|x| (x.1 - duration * x.0) / expected_falls);
        assert_mean(&what("excess of the mean duration"), &excess, 0.0);
        let rice = (-level * level / 2.0).exp() / (2.0 * core::f64::consts::PI * DECAY_SAMPLES);
        // With x samples to t0, rho = 1 - x^2/2 + x^3/3: a level of 0 is crossed 1 - x/3 times as
        // often, and the rest of the expansion is at most (1 + u^2) x^2.
        let x = 1.0 / DECAY_SAMPLES;
        let most = x / 3.0 + (1.0 + level * level) * x * x;
        let missed = 1.0 - falls_below(level) / rice;
        println!(
            "crossings of {level} that samples miss: {:.2} %",
            100.0 * missed
        );
        assert!((0.0..=most).contains(&missed), "{missed}");
    }
}

fn mean_bit_errors(fading: &Fading, seed: u64, samples: usize) -> f64 {
    let fades = fading.fades(&Rng::from_seed(seed)).unwrap().take(samples);
    fades.map(|fade| fade.bit_errors.value()).sum::<f64>() / samples as f64
}

#[test]
fn the_long_term_error_rate_over_all_courses_is_the_one_asked_for() {
    // Where turbulence is strong, deep fades make the mean. The error rates here are high enough
    // that 40 courses meet such fades.
    for (text, rate) in [
        ("log-normal 0.05 time 1ms ber 1e-6", 1e-6),
        ("log-normal 0.3 time 1ms ber 1e-4", 1e-4),
        ("gamma-gamma 0.3 time 1ms ber 1e-3", 1e-3),
        ("gamma-gamma 1.0 time 1ms ber 1e-2", 1e-2),
    ] {
        let fading = fading(text);
        let means: Vec<f64> = (0..COURSES)
            .map(|seed| mean_bit_errors(&fading, seed, 200_000) / rate)
            .collect();
        assert_mean(text, &means, 1.0);
    }
}

/// The error from gathering powers in cells is 1e-4 at most.
#[test]
fn a_course_scaled_by_itself_has_exactly_the_error_rate_asked_for() {
    // The process of 2 ms has its samples 50 us apart, the others 100 us.
    for (text, samples) in [
        ("gamma-gamma 0.6 time 4ms ber 1e-6 over 2s", 20_000),
        ("gamma-gamma 1.0 time 50ms ber 1e-9 over 2s", 20_000),
        (
            "log-normal 0.05 time 2ms ber 1e-6 over 2s pass 610km from 2500km",
            40_000,
        ),
    ] {
        let fading = fading(text);
        let long_term = fading.model().long_term.value();
        for seed in 0..5 {
            let mean = mean_bit_errors(&fading, seed, samples) / long_term;
            println!("{text}, seed {seed}: {mean:.6} of the rate");
            assert!((mean - 1.0).abs() < 1e-4, "{text}, seed {seed}: {mean}");
        }
    }
}
