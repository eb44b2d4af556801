//! The unsteadiness of the short-term bit error rate by the scintillation index, where each course is
//! scaled to 1e-6. It shows why the presets of strong turbulence look calmer than KIODO's.

use fulmar_channel::fading::Fading;
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{Duration, Instant};
use std::sync::OnceLock;

/// The indices of the experiment; gamma-gamma is defined from the second on.
pub(super) const INDICES: [f64; 7] = [0.003, 0.01, 0.03, 0.1, 0.3, 0.6, 1.0];
/// The length of a course: 6,000 correlation times of the testbed's 4 ms.
const LENGTH: Duration = Duration::from_secs(25);
/// The least rate that is told apart, as in Figure 1's courses.
const RATE_MIN: f64 = 1e-12;

/// The unsteadiness of a course.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unsteadiness {
    /// The standard deviation of the rate's order of magnitude.
    pub(super) deviation: f64,
    /// The number of times a second that the rate rises through 1e-6.
    pub(super) crossings: f64,
}

/// The unsteadiness of a process that is described as in a scenario, over a course of its own.
fn of(law: &str) -> Option<Unsteadiness> {
    let text = format!("{law} ber 1e-6 over 25s seed 1");
    let fading: Fading = text.parse().ok()?;
    let fades = fading.fades(&Rng::from_seed(1)).ok()?;
    let (mut count, mut sum, mut squares, mut crossings) = (0.0, 0.0, 0.0, 0.0);
    let mut above = true;
    for fade in fades.take_while(|fade| fade.at < Instant::START + LENGTH) {
        let rate = fade.bit_errors.value();
        let order = rate.max(RATE_MIN).log10();
        count += 1.0;
        sum += order;
        squares += order * order;
        crossings += f64::from(u8::from(rate > 1e-6 && !above));
        above = rate > 1e-6;
    }
    let mean = sum / count;
    Some(Unsteadiness {
        deviation: (squares / count - mean * mean).max(0.0).sqrt(),
        crossings: crossings / LENGTH.as_secs_f64(),
    })
}

/// The laws of the experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Law {
    LogNormal,
    GammaGamma,
}

/// The unsteadiness by index, with the testbed's correlation time of 4 ms.
pub(super) fn by_index(law: Law) -> &'static [(f64, Unsteadiness)] {
    static LOG_NORMAL: OnceLock<Vec<(f64, Unsteadiness)>> = OnceLock::new();
    static GAMMA_GAMMA: OnceLock<Vec<(f64, Unsteadiness)>> = OnceLock::new();
    let (name, known) = match law {
        Law::LogNormal => ("log-normal", &LOG_NORMAL),
        Law::GammaGamma => ("gamma-gamma", &GAMMA_GAMMA),
    };
    known.get_or_init(|| {
        let indices = INDICES.into_iter();
        let at = |index| Some((index, of(&format!("{name} {index} time 4ms"))?));
        indices.filter_map(at).collect()
    })
}

/// The unsteadiness of KIODO's process without its pass, since the pass is a trend.
pub(super) fn kiodo() -> Option<Unsteadiness> {
    static KIODO: OnceLock<Option<Unsteadiness>> = OnceLock::new();
    *KIODO.get_or_init(|| of("log-normal 0.05 time 2ms"))
}
