//! The values that are computed once from a description: tables, and the mean power that gives the
//! wanted long-term bit error rate.
//!
//! The mean of BER(a I) falls as the factor a grows, so that exactly one factor gives a rate. For a synthetic process
//! the mean is taken over the law, by the trapezoidal rule on its normal variable; for a trace or one course of a
//! process, over its samples. A pass is averaged over its first 100 s, the length of the source's recordings.

use super::model::{FadingModel, PowerSource, Synthetic, spacing_of};
use super::pass::Pass;
use super::receiver::ReceiverModel;
use super::trace::PowerTrace;
use super::turbulence::Map;
use crate::config_error::{ChannelConfigError, Setting};
use core::f64::consts::PI;
use fulmar_proto::units::{Duration, Instant, OpticalPower, format_duration};
use std::sync::Arc;

/// A fading channel without its state.
#[derive(Clone, Debug)]
pub(crate) struct Prepared {
    pub(crate) receiver: ReceiverModel,
    /// The mean power, of which samples are multiples; for a trace, the power per unit of its
    /// samples.
    pub(crate) factor: f64,
    /// The time from one sample to the next, nanoseconds; above zero.
    pub(crate) spacing: u64,
    pub(crate) power: Power,
    pub(crate) pass: Option<Pass>,
    long_term: f64,
    unlit_share: f64,
    /// Relative powers, each with its share of the time with light.
    weights: Vec<(f64, f64)>,
}

/// The origin of relative power.
#[derive(Clone, Debug)]
pub(crate) enum Power {
    /// A map of a normal process.
    Normal {
        map: Map,
        /// Samples to one correlation time.
        steps_per_time: f64,
    },
    Trace(Arc<PowerTrace>),
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX).max(1)
}

impl Prepared {
    pub(crate) fn new(
        model: &FadingModel,
        trace: Option<Arc<PowerTrace>>,
    ) -> Result<Self, ChannelConfigError> {
        let (power, spacing) = match (&model.source, trace) {
            (PowerSource::Synthetic(synthetic), _) => of_process(*synthetic),
            (PowerSource::Recorded(recorded), Some(trace)) => {
                let spacing = recorded.spacing.unwrap_or_else(|| trace.spacing());
                (Power::Trace(trace), nanos(spacing))
            }
            (PowerSource::Recorded(recorded), None) => {
                let allowed = "a power trace that was read from its file";
                return Err(ChannelConfigError::new(
                    Setting::Fading.part("trace"),
                    &recorded.name,
                    allowed,
                ));
            }
        };
        let weights = weights(model, &power);
        if weights.is_empty() {
            let allowed = "a power trace with light in it that is not cut out";
            return Err(ChannelConfigError::new(
                Setting::Fading.part("trace"),
                name_of(model),
                allowed,
            ));
        }
        let receiver = ReceiverModel::reference();
        let long_term = model.long_term.value();
        let factor = factor_for(receiver, long_term, &weights);
        let unlit_share = match &power {
            Power::Normal { .. } => 0.0,
            Power::Trace(trace) => {
                let lit = (0..trace.len()).filter(|&i| trace.get(i).is_some_and(|p| p > 0.0));
                1.0 - lit.count() as f64 / trace.len().max(1) as f64
            }
        };
        Ok(Self {
            receiver,
            factor,
            spacing,
            long_term,
            weights,
            unlit_share,
            pass: model.pass,
            power,
        })
    }

    pub(crate) const fn unlit_share(&self) -> f64 {
        self.unlit_share
    }

    /// The mean over the time with light of a function of the bit error rate.
    fn mean(&self, of: impl Fn(f64) -> f64) -> f64 {
        let terms = self.weights.iter().map(|&(relative, weight)| {
            weight * of(bit_error_rate(self.receiver, self.factor * relative))
        });
        terms.sum()
    }

    pub(crate) fn equivalent_rate(&self) -> f64 {
        inverse_entropy(self.mean(entropy))
    }

    /// The share of packets of so many bits in which a bit is inverted, while there is light.
    pub(crate) fn hit_share(&self, bits: u64) -> f64 {
        self.mean(|rate| -(bits as f64 * (-rate).ln_1p()).exp_m1())
    }

    /// The power at `at`, relative to the mean, when the power of a still medium is a map of `normal`;
    /// zero below the horizon.
    pub(crate) fn relative(&self, map: &Map, normal: f64, at: Instant) -> f64 {
        gain(self.pass, at).map_or(0.0, |(gain, weaker)| gain * map.relative(normal, weaker))
    }

    /// The mean power that gives the long-term bit error rate over these relative powers; the law's
    /// factor if none of them is above zero.
    pub(crate) fn factor_over(&self, relative: impl Iterator<Item = f64>) -> f64 {
        let weights = gathered(relative);
        if weights.is_empty() {
            return self.factor;
        }
        factor_for(self.receiver, self.long_term, &weights)
    }
}

/// Cells to a unit of the power's logarithm. Powers are gathered in cells a thousandth of their value
/// wide, each with its mean. The remaining effect of the cell's width is of second order: at worst
/// 10^-4 of the error rate, at an error rate of 10^-12.
const CELLS_PER_UNIT: f64 = 1024.0;
const CELL_RANGE: f64 = 40.0;
const CELLS: usize = 61_440;

/// The powers above zero in cells, each with its share of the powers.
fn gathered(powers: impl Iterator<Item = f64>) -> Vec<(f64, f64)> {
    let mut cells = vec![(0.0, 0.0); CELLS];
    for power in powers.filter(|&power| power > 0.0) {
        let cell = (power.ln() + CELL_RANGE) * CELLS_PER_UNIT;
        if let Some((sum, count)) = cells.get_mut(index_of_cell(cell)) {
            *sum += power;
            *count += 1.0;
        }
    }
    let total: f64 = cells.iter().map(|(_, count)| count).sum();
    let cells = cells.into_iter().filter(|&(_, count)| count > 0.0);
    cells
        .map(|(sum, count)| (sum / count, count / total))
        .collect()
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "float to integer casts saturate, and the ends of the range are its first and last cell"
)]
fn index_of_cell(cell: f64) -> usize {
    (cell.max(0.0) as usize).min(CELLS - 1)
}

/// The factor that gives this mean error rate, over relative powers with their shares of time.
fn factor_for(receiver: ReceiverModel, long_term: f64, weights: &[(f64, f64)]) -> f64 {
    solve(long_term, |factor| {
        let of_sample =
            |&(relative, weight): &(f64, f64)| weight * bit_error_rate(receiver, factor * relative);
        weights.iter().map(of_sample).sum()
    })
}

fn name_of(model: &FadingModel) -> String {
    match &model.source {
        PowerSource::Synthetic(synthetic) => format_duration(synthetic.correlation),
        PowerSource::Recorded(recorded) => recorded.name.clone(),
    }
}

fn of_process(synthetic: Synthetic) -> (Power, u64) {
    let spacing = nanos(spacing_of(synthetic.correlation));
    let power = Power::Normal {
        map: synthetic.turbulence.map(),
        steps_per_time: nanos(synthetic.correlation) as f64 / spacing as f64,
    };
    (power, spacing)
}

/// The factor by which a pass multiplies the power, relative to its start, and the scintillation
/// index of a log-normal law; `None` below the horizon.
pub(crate) fn gain(pass: Option<Pass>, at: Instant) -> Option<(f64, f64)> {
    let Some(pass) = pass else {
        return Some((1.0, 1.0));
    };
    let distance = pass.relative_distance(at)?;
    Some((pass.relative_received(at)?, distance.powi(3)))
}

pub(crate) fn bit_error_rate(receiver: ReceiverModel, watts: f64) -> f64 {
    let power = OpticalPower::from_watts(watts).unwrap_or_default();
    receiver.bit_error_rate(power).value()
}

/// The length of the source's recordings, in seconds.
const PASS_SECONDS: u32 = 100;
const PASS_POINTS: u32 = 25;
const NORMAL_STEP: f64 = 0.02;
/// Steps to either side: 10^-15 of the probability lies beyond 8 standard deviations.
const NORMAL_STEPS: i32 = 400;

/// Relative powers, each with its share of the time with light.
fn weights(model: &FadingModel, power: &Power) -> Vec<(f64, f64)> {
    let (map, points) = match power {
        Power::Normal { map, .. } => (map, if model.pass.is_some() { PASS_POINTS } else { 1 }),
        Power::Trace(trace) => {
            let cut = match &model.source {
                PowerSource::Recorded(recorded) => recorded.cut,
                PowerSource::Synthetic(_) => None,
            };
            let samples = trace.without_blockages(cut);
            return gathered(samples.into_iter().map(f64::from));
        }
    };
    let mut weights = Vec::new();
    for point in 0..points {
        let middle = (f64::from(point) + 0.5) / f64::from(points) * f64::from(PASS_SECONDS);
        let at = Instant::START + Duration::from_secs_f64(middle);
        let Some((gain, weaker)) = gain(model.pass, at) else {
            continue;
        };
        for step in -NORMAL_STEPS..=NORMAL_STEPS {
            let normal = f64::from(step) * NORMAL_STEP;
            let density = (-normal * normal / 2.0).exp() / (2.0 * PI).sqrt();
            let relative = gain * map.relative(normal, weaker);
            weights.push((relative, density * NORMAL_STEP));
        }
    }
    let total: f64 = weights.iter().map(|(_, weight)| weight).sum();
    for (_, weight) in &mut weights {
        *weight /= total;
    }
    weights
}

/// The factor at which `mean`, which falls from 0.5 to 0, has the value `wanted`: regula falsi on
/// logarithms (Illinois), which needs a tenth of the passes over a long trace that bisection does.
fn solve(wanted: f64, mean: impl Fn(f64) -> f64) -> f64 {
    // Below any positive rate the logarithm has no value; this is far below all that are allowed.
    let miss = |logarithm: f64| mean(logarithm.exp()).max(1e-300).ln() - wanted.ln();
    let (mut low, mut high) = (-40.0, -10.0);
    let mut at_low = miss(low);
    while at_low <= 0.0 && low > -200.0 {
        low -= 20.0;
        at_low = miss(low);
    }
    let mut at_high = miss(high);
    while at_high > 0.0 && high < 500.0 {
        low = high;
        at_low = at_high;
        high += 20.0;
        at_high = miss(high);
    }
    let mut last_was_low = None;
    for turn in 0..200 {
        let width = high - low;
        if width.abs() < 1e-13 * (1.0 + low.abs()) {
            break;
        }
        // Where the function is steep on one side only, halving makes progress again.
        let falsi = low + width * at_low / (at_low - at_high);
        let middle = if turn % 3 == 2 || !falsi.is_finite() {
            f64::midpoint(low, high)
        } else {
            falsi
        };
        let at_middle = miss(middle);
        if at_middle.abs() < 1e-12 {
            return middle.exp();
        }
        if at_middle > 0.0 {
            (low, at_low) = (middle, at_middle);
            if last_was_low == Some(true) {
                at_high /= 2.0;
            }
            last_was_low = Some(true);
        } else {
            (high, at_high) = (middle, at_middle);
            if last_was_low == Some(false) {
                at_low /= 2.0;
            }
            last_was_low = Some(false);
        }
    }
    f64::midpoint(low, high).exp()
}

/// The binary entropy, in bits.
fn entropy(p: f64) -> f64 {
    if p <= 0.0 || p >= 1.0 {
        return 0.0;
    }
    -p * p.log2() - (1.0 - p) * (-p).ln_1p() / core::f64::consts::LN_2
}

/// The rate up to 0.5 with this entropy.
fn inverse_entropy(wanted: f64) -> f64 {
    let (mut low, mut high) = (0.0_f64, 0.5);
    for _ in 0..200 {
        let middle = f64::midpoint(low, high);
        if entropy(middle) < wanted {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}
