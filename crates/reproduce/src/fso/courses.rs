//! Courses of the four presets over the paper's 100 s, and numbers that describe them.

use fulmar_channel::fading::{Demonstration, Fading, FadingModel, Pass, TransmitPower};
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{Duration, Instant};
use std::sync::OnceLock;

/// The length of the paper's recordings.
const LENGTH: Duration = Duration::from_secs(100);
/// The short-term rate above which a span is a fade. The paper gives none; the goodput of every packet
/// length falls from a tenth of it on.
const FADE: f64 = 1e-4;
/// The rate above which there is no light: no receiver decides better than a coin.
const DARK: f64 = 0.49;
/// The number of bins of a figure, half a second each.
const BINS: usize = 200;

/// One course of a preset.
#[derive(Clone, Debug)]
pub(super) struct Course {
    /// Each half second: its middle in seconds, the mean and the highest short-term rate.
    pub(super) bins: Vec<(f64, f64, f64)>,
    /// The lengths of fades, without those that are dark all the time, in seconds.
    pub(super) fades: Vec<f64>,
    /// The start and the length of each span without light, in seconds.
    pub(super) dark: Vec<(f64, f64)>,
    /// The standard deviation of the rate's order of magnitude, while there is light.
    pub(super) unsteadiness: f64,
    /// The number of times a second that the rate rises through the long-term one.
    pub(super) crossings: f64,
    /// Mean rates of the first and the last third, without dark spans.
    pub(super) ends: (f64, f64),
    /// The least received power over the mean, while there is light, in decibels.
    pub(super) depth: f64,
    /// The mean power sent while there is light, in watts that the receiver would have of it over the distance at the start.
    pub(super) sent: f64,
}

/// Seed of the courses; the figure's legend has it.
const SEED: u64 = 1;
/// The least rate that is told apart: one error in 26 minutes of the link.
const RATE_MIN: f64 = 1e-12;

/// The course of a preset, walked once.
pub(super) fn course(of: Demonstration) -> &'static Course {
    static COURSES: [OnceLock<Course>; 4] = [const { OnceLock::new() }; 4];
    let index = Demonstration::ALL.iter().position(|known| *known == of);
    COURSES[index.unwrap_or(0)].get_or_init(|| walk(of.model()))
}

/// KIODO's course with transmit power that follows the distance, to the same long-term rate.
pub(super) fn levelled() -> &'static Course {
    static COURSE: OnceLock<Course> = OnceLock::new();
    COURSE.get_or_init(|| {
        let mut model = Demonstration::Kiodo.model();
        if let Some(pass) = &mut model.pass {
            pass.transmit = TransmitPower::Levelled;
        }
        walk(model)
    })
}

fn walk(model: FadingModel) -> Course {
    let pass = model.pass;
    let fading = Fading::new(model).expect("the presets are in range");
    let fades = fading.fades(&Rng::from_seed(SEED));
    let fades = fades.expect("a preset needs no recording");
    let mut tally = Tally::default();
    for fade in fades {
        if fade.at.as_secs_f64() >= LENGTH.as_secs_f64() {
            break;
        }
        tally.take(
            fade.at.as_nanos() as f64 * 1e-9,
            fade.bit_errors.value(),
            fade.power.watts(),
        );
        tally.sent += fade.power.watts() * sent_for_received(pass, fade.at);
    }
    tally.course()
}

/// The power sent for each part of power received, relative to the start.
fn sent_for_received(pass: Option<Pass>, at: Instant) -> f64 {
    let ratio = |pass: Pass| Some(pass.relative_sent(at)? / pass.relative_received(at)?);
    pass.and_then(ratio).unwrap_or(1.0)
}

/// Sums over a course.
#[derive(Clone, Debug, Default)]
struct Tally {
    /// Middle, sum, highest and samples.
    bins: Vec<(f64, f64, f64, f64)>,
    /// The start of the current fade, and whether it had light.
    fade: Option<(f64, bool)>,
    fades: Vec<f64>,
    dark_since: Option<f64>,
    dark: Vec<(f64, f64)>,
    lit: f64,
    orders: (f64, f64),
    crossings: f64,
    above: bool,
    thirds: [(f64, f64); 3],
    power: f64,
    sent: f64,
    least: Option<f64>,
}

impl Tally {
    fn take(&mut self, at: f64, rate: f64, power: f64) {
        let is_dark = rate > DARK;
        let share = at / LENGTH.as_secs_f64();
        let bin = at_share(share, BINS);
        if self.bins.len() <= bin {
            let middle = (bin as f64 + 0.5) * LENGTH.as_secs_f64() / BINS as f64;
            self.bins.resize(bin + 1, (middle, 0.0, 0.0, 0.0));
        }
        if let Some((_, sum, highest, samples)) = self.bins.get_mut(bin) {
            *sum += rate;
            *highest = highest.max(rate);
            *samples += 1.0;
        }
        self.spans(at, rate, is_dark);
        if is_dark {
            return;
        }
        self.lit += 1.0;
        let order = rate.max(RATE_MIN).log10();
        self.orders.0 += order;
        self.orders.1 += order * order;
        let above = rate > 1e-6;
        if above && !self.above {
            self.crossings += 1.0;
        }
        self.above = above;
        if let Some((sum, count)) = self.thirds.get_mut(at_share(share, 3)) {
            *sum += rate;
            *count += 1.0;
        }
        self.power += power;
        self.least = Some(self.least.map_or(power, |least| least.min(power)));
    }

    fn spans(&mut self, at: f64, rate: f64, is_dark: bool) {
        match (is_dark, self.dark_since) {
            (true, None) => self.dark_since = Some(at),
            (false, Some(since)) => {
                self.dark.push((since, at - since));
                self.dark_since = None;
            }
            _ => {}
        }
        match (rate > FADE, self.fade) {
            (true, None) => self.fade = Some((at, !is_dark)),
            (true, Some((since, lit))) => self.fade = Some((since, lit || !is_dark)),
            (false, Some((since, lit))) => {
                if lit {
                    self.fades.push(at - since);
                }
                self.fade = None;
            }
            (false, None) => {}
        }
    }

    fn course(self) -> Course {
        let mean = self.orders.0 / self.lit;
        let third = |index: usize| {
            let third = self.thirds.get(index);
            third.map_or(0.0, |(sum, count)| sum / count)
        };
        let least = self.least.unwrap_or_default() / (self.power / self.lit);
        Course {
            unsteadiness: (self.orders.1 / self.lit - mean * mean).max(0.0).sqrt(),
            crossings: self.crossings / LENGTH.as_secs_f64(),
            ends: (third(0), third(2)),
            depth: 10.0 * least.log10(),
            bins: (self.bins.into_iter())
                .map(|(middle, sum, highest, samples)| (middle, sum / samples.max(1.0), highest))
                .collect(),
            fades: self.fades,
            dark: self.dark,
            sent: self.sent / self.lit,
        }
    }
}

/// The one of `parts` parts in which a share of the course lies.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share of few parts"
)]
fn at_share(share: f64, parts: usize) -> usize {
    ((share * parts as f64) as usize).min(parts - 1)
}

/// The middle length; zero if there are none.
pub(super) fn median(lengths: &[f64]) -> f64 {
    let mut sorted = lengths.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}

/// The longest length; zero if there are none.
pub(super) fn longest(lengths: impl Iterator<Item = f64>) -> f64 {
    lengths.fold(0.0, f64::max)
}
