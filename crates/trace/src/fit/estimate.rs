//! The parameters of each model that make the losses most likely, with their 95 % intervals.
//!
//! Independent loss and bursts have closed forms; hidden states are climbed for, in logarithms and
//! log-odds, from several places, and their intervals come from the observed information. Where the
//! best value is at the end of its range (nothing lost in the good state, everything in the bad),
//! or cannot be told from it, its interval reaches from there to where the likelihood has fallen by
//! 1.92.

use super::likelihood::{States, Steps};
use super::models::Model;
use super::outcome::Parameter;
use super::search::{climb, covariance};
use crate::losses::Losses;

/// The 97.5 % point of the normal distribution.
const Z: f64 = 1.959_964;
/// Half the 95 % point of chi-square with one degree of freedom.
const FALL: f64 = 1.920_729;
/// Log-odds and logarithms beyond these are the ends of the range.
const ODDS_MAX: f64 = 16.0;

/// A fitted model.
#[derive(Clone, Debug)]
pub(crate) struct Estimate {
    pub(crate) states: States,
    pub(crate) parameters: Vec<Parameter>,
    /// The model as a scenario has it.
    pub(crate) text: String,
}

/// How often a packet of each fate followed upon one of each.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pairs {
    kept_kept: f64,
    kept_lost: f64,
    lost_kept: f64,
    lost_lost: f64,
    /// Seconds between packets, on average; 1 without times.
    step: f64,
}

impl Pairs {
    pub(crate) fn of(losses: &Losses) -> Self {
        let mut pairs = Self::default();
        let (mut last, mut time) = (None, 0.0);
        for group in losses.groups() {
            let inside = f64::from(group.count - 1);
            if group.lost {
                pairs.lost_lost += inside;
            } else {
                pairs.kept_kept += inside;
            }
            if group.step.is_finite() {
                time += group.step * f64::from(group.count);
                match (last, group.lost) {
                    (Some(false), false) => pairs.kept_kept += 1.0,
                    (Some(false), true) => pairs.kept_lost += 1.0,
                    (Some(true), false) => pairs.lost_kept += 1.0,
                    (Some(true), true) => pairs.lost_lost += 1.0,
                    (None, _) => {}
                }
            }
            last = Some(group.lost);
        }
        let all = pairs.kept_kept + pairs.kept_lost + pairs.lost_kept + pairs.lost_lost;
        pairs.step = time / all.max(1.0);
        pairs
    }

    /// How many bursts began and ended within the recording, about.
    fn bursts(&self) -> f64 {
        self.kept_lost.min(self.lost_kept)
    }
}

/// Bursts that hidden states need, to be told from one.
const BURSTS_MIN: f64 = 10.0;

/// Fits `model`, or says why that is not possible.
pub(crate) fn estimate(model: Model, losses: &Losses, pairs: &Pairs) -> Result<Estimate, String> {
    let packets = losses.packets().len() as f64;
    let lost = losses.lost() as f64;
    if model == Model::Bernoulli {
        return Ok(bernoulli(lost, packets));
    }
    if model.is_by_time() && !losses.is_timed() {
        return Err("it is not known when the packets were on their way".to_owned());
    }
    if model.is_by_time() && pairs.step <= 0.0 {
        return Err("all packets have the same time".to_owned());
    }
    if pairs.bursts() < 1.0 {
        return Err("no burst both begins and ends in the recording".to_owned());
    }
    match model {
        Model::Bernoulli | Model::Gilbert => Ok(gilbert(pairs)),
        _ if pairs.bursts() < BURSTS_MIN => {
            Err(format!("there are fewer than {BURSTS_MIN} bursts"))
        }
        Model::Intervals => Ok(intervals(losses, pairs)),
        Model::GilbertElliott | Model::TwoState => Ok(hidden(model, losses, pairs, lost / packets)),
    }
}

/// Wilson's interval of a share (JASA 22, 1927), which keeps its level near 0 and 1.
fn wilson(hits: f64, trials: f64) -> (f64, f64) {
    let share = hits / trials;
    let square = Z * Z / trials;
    let middle = (share + 0.5 * square) / (1.0 + square);
    let half =
        Z / (1.0 + square) * (share * (1.0 - share) / trials + 0.25 * square / trials).sqrt();
    ((middle - half).max(0.0), (middle + half).min(1.0))
}

fn parameter(name: &'static str, value: f64, interval: Option<(f64, f64)>) -> Parameter {
    Parameter {
        name,
        value,
        low: interval.map(|(low, _)| low),
        high: interval.map(|(_, high)| high),
    }
}

fn bernoulli(lost: f64, packets: f64) -> Estimate {
    let loss = lost / packets;
    let steps = Steps::Packets {
        to_bad: 0.5,
        to_good: 0.5,
    };
    Estimate {
        states: States {
            loss_good: loss,
            loss_bad: loss,
            steps,
        },
        parameters: vec![parameter("mean_loss", loss, Some(wilson(lost, packets)))],
        text: percent(loss),
    }
}

fn gilbert(pairs: &Pairs) -> Estimate {
    let (from_kept, from_lost) = (
        pairs.kept_kept + pairs.kept_lost,
        pairs.lost_kept + pairs.lost_lost,
    );
    let (to_bad, to_good) = (pairs.kept_lost / from_kept, pairs.lost_kept / from_lost);
    let loss = to_bad / (to_bad + to_good);
    // The log-odds of the loss are ln to_bad - ln to_good, of two shares that vary independently.
    let variance = (1.0 - to_bad) / (from_kept * to_bad) + (1.0 - to_good) / (from_lost * to_good);
    let (low, high) = wilson(pairs.lost_kept, from_lost);
    let (low_gap, high_gap) = wilson(pairs.kept_lost, from_kept);
    Estimate {
        states: States {
            loss_good: 0.0,
            loss_bad: 1.0,
            steps: Steps::Packets { to_bad, to_good },
        },
        parameters: vec![
            parameter(
                "mean_loss",
                loss,
                Some(around(odds(loss), variance.sqrt(), share)),
            ),
            parameter(
                "mean_burst_packets",
                to_good.recip(),
                Some((high.recip(), low.recip())),
            ),
            parameter(
                "mean_gap_packets",
                to_bad.recip(),
                Some((high_gap.recip(), low_gap.recip())),
            ),
        ],
        text: format!("{} burst {}", percent(loss), rounded(to_good.recip())),
    }
}

fn intervals(losses: &Losses, pairs: &Pairs) -> Estimate {
    let states = |at: &[f64]| States {
        loss_good: 0.0,
        loss_bad: 1.0,
        steps: Steps::Time {
            to_bad: at[0].exp(),
            to_good: at[1].exp(),
        },
    };
    let rate = |share: f64| (share / pairs.step).ln();
    let (from_kept, from_lost) = (
        pairs.kept_kept + pairs.kept_lost,
        pairs.lost_kept + pairs.lost_lost,
    );
    let start = [
        rate(pairs.kept_lost / from_kept),
        rate(pairs.lost_kept / from_lost),
    ];
    let value = |at: &[f64]| states(at).log_likelihood(losses.groups());
    let peak = climb(&start, 0.2, value);
    let known = covariance(&peak.at, value);
    let states = states(&peak.at);
    let at = Point {
        at: &peak.at,
        covariance: known.as_deref(),
        fixed: [None, None],
    };
    let mean = |index: usize| {
        let interval = at.interval(index, |rate| (-rate).exp());
        ((-peak.at[index]).exp(), interval.map(|(a, b)| (b, a)))
    };
    let ((good, good_interval), (bad, bad_interval)) = (mean(0), mean(1));
    // The log-odds of the loss are the difference of the two logarithms.
    let loss = at.combined(odds(states.mean_loss()), &[1.0, -1.0]);
    Estimate {
        states,
        parameters: vec![
            parameter("mean_loss", states.mean_loss(), loss),
            parameter("mean_good_s", good, good_interval),
            parameter("mean_bad_s", bad, bad_interval),
        ],
        text: format!("two-state 0% {} 100% {} exponential", span(good), span(bad)),
    }
}

/// Where a search ended, and what is known of its neighbourhood.
struct Point<'a> {
    at: &'a [f64],
    /// Of the entries that were not put to the end of their range.
    covariance: Option<&'a [Vec<f64>]>,
    /// Losses at the end of their range or so near that they are held.
    fixed: [Option<f64>; 2],
}

impl Point<'_> {
    /// The place of entry `index` among those that are free.
    fn place(&self, index: usize) -> Option<usize> {
        let is_fixed = |index: usize| self.fixed.get(index).is_some_and(Option::is_some);
        (!is_fixed(index)).then(|| (0..index).filter(|&before| !is_fixed(before)).count())
    }

    fn interval(&self, index: usize, back: impl Fn(f64) -> f64) -> Option<(f64, f64)> {
        let place = self.place(index)?;
        let error = self.covariance?.get(place)?.get(place)?.sqrt();
        Some(around(self.at[index], error, back))
    }

    /// The interval of a share with these log-odds and this gradient over the entries.
    fn combined(&self, odds: f64, gradient: &[f64]) -> Option<(f64, f64)> {
        let covariance = self.covariance?;
        let mut variance = 0.0;
        for (i, by_i) in gradient.iter().enumerate() {
            for (j, by_j) in gradient.iter().enumerate() {
                if let (Some(row), Some(column)) = (self.place(i), self.place(j)) {
                    variance += by_i * by_j * covariance.get(row)?.get(column)?;
                }
            }
        }
        Some(around(odds, variance.max(0.0).sqrt(), share))
    }
}

fn around(at: f64, error: f64, back: impl Fn(f64) -> f64) -> (f64, f64) {
    (back(at - Z * error), back(at + Z * error))
}

/// Entries: log-odds of the loss in good and bad; then log-odds of the transitions by packet, or
/// logarithms of the rates by time.
fn states_at(model: Model, at: &[f64], fixed: [Option<f64>; 2]) -> States {
    let clamped = |entry: f64| entry.clamp(-ODDS_MAX, ODDS_MAX);
    let loss = |index: usize| fixed[index].unwrap_or_else(|| share(clamped(at[index])));
    let steps = match model {
        Model::TwoState => Steps::Time {
            to_bad: at[2].exp(),
            to_good: at[3].exp(),
        },
        _ => Steps::Packets {
            to_bad: share(clamped(at[2])),
            to_good: share(clamped(at[3])),
        },
    };
    States {
        loss_good: loss(0),
        loss_bad: loss(1),
        steps,
    }
}

fn hidden(model: Model, losses: &Losses, pairs: &Pairs, mean_loss: f64) -> Estimate {
    let likelihood =
        |at: &[f64]| states_at(model, at, [None, None]).log_likelihood(losses.groups());
    let mut starts = starts(model, pairs, mean_loss);
    // The two best places to begin at differ in what kind of peak they lead to.
    starts.sort_by(|a, b| likelihood(b).total_cmp(&likelihood(a)));
    let peaks = starts
        .iter()
        .take(2)
        .map(|start| climb(start, 0.7, likelihood));
    let best = peaks.max_by(|a, b| a.value.total_cmp(&b.value));
    let mut at = best.map(|peak| peak.at).unwrap_or_default();
    if states_at(model, &at, [None, None]).loss_good > states_at(model, &at, [None, None]).loss_bad
    {
        at.swap(0, 1);
        at.swap(2, 3);
    }
    let fixed = at_the_ends(model, losses, &at);
    // What is left free is climbed for again with the ends in place.
    let free: Vec<usize> = (0..4).filter(|&i| i > 1 || fixed[i].is_none()).collect();
    let whole = |entries: &[f64]| {
        let mut whole = at.clone();
        for (&index, &entry) in free.iter().zip(entries) {
            whole[index] = entry;
        }
        whole
    };
    let value =
        |entries: &[f64]| states_at(model, &whole(entries), fixed).log_likelihood(losses.groups());
    let start: Vec<f64> = free.iter().map(|&index| at[index]).collect();
    let peak = climb(&start, 0.1, value);
    let known = covariance(&peak.at, value);
    let at = whole(&peak.at);
    let point = Point {
        at: &at,
        covariance: known.as_deref(),
        fixed,
    };
    describe(model, losses, &point)
}

/// Places to begin at: how much the bad state loses, and how long it lasts against a burst.
fn starts(model: Model, pairs: &Pairs, mean_loss: f64) -> Vec<Vec<f64>> {
    let burst = (pairs.lost_kept + pairs.lost_lost) / pairs.lost_kept;
    let mut starts = Vec::new();
    for bad in [0.3_f64, 0.6, 0.9] {
        for length in [1.2, 5.0, 40.0] {
            let bad = bad.max(0.5 * (1.0 + mean_loss));
            let good = 0.1 * mean_loss;
            let bad_share = (mean_loss - good) / (bad - good);
            let to_good = (1.0 / (burst * length)).min(0.95);
            let to_bad = (to_good * bad_share / (1.0 - bad_share)).clamp(1e-9, 0.95);
            let step = |share: f64| match model {
                Model::TwoState => (share / pairs.step).ln(),
                _ => odds(share),
            };
            starts.push(vec![odds(good), odds(bad), step(to_bad), step(to_good)]);
        }
    }
    starts
}

/// The least and the greatest loss: of the good state and of the bad one.
const ENDS: [f64; 2] = [0.0, 1.0];

/// Losses whose interval reaches to the end of their range, so that log-odds have no bend there:
/// put to the end where that costs next to nothing, and else held where they are.
fn at_the_ends(model: Model, losses: &Losses, at: &[f64]) -> [Option<f64>; 2] {
    const NOTHING: f64 = 0.05;
    let value = |fixed| states_at(model, at, fixed).log_likelihood(losses.groups());
    let best = value([None, None]);
    let found = states_at(model, at, [None, None]);
    let mut fixed = [None, None];
    for (index, here) in [found.loss_good, found.loss_bad].into_iter().enumerate() {
        let mut tried = fixed;
        tried[index] = Some(ENDS[index]);
        let cost = best - value(tried);
        if cost < NOTHING {
            fixed = tried;
        } else if cost < FALL {
            fixed[index] = Some(here);
        }
    }
    fixed
}

/// From the end of the range to where, beyond the loss that is held, the likelihood has fallen by
/// 1.92, all else equal.
fn from_the_end(
    model: Model,
    losses: &Losses,
    point: &Point<'_>,
    index: usize,
) -> Option<(f64, f64)> {
    let (here, end) = (point.fixed[index]?, ENDS[index]);
    let value = |loss: f64| {
        let mut fixed = point.fixed;
        fixed[index] = Some(loss);
        states_at(model, point.at, fixed).log_likelihood(losses.groups())
    };
    let best = value(here);
    let (mut near, mut far) = ((end - here).abs(), 0.5);
    for _ in 0..40 {
        let middle = 0.5 * (near + far);
        if value((end - middle).abs()) > best - FALL {
            near = middle;
        } else {
            far = middle;
        }
    }
    let reached = (end - far).abs();
    Some((end.min(reached), end.max(reached)))
}

fn describe(model: Model, losses: &Losses, point: &Point<'_>) -> Estimate {
    let states = states_at(model, point.at, point.fixed);
    let loss = |index: usize| {
        point
            .interval(index, share)
            .or_else(|| from_the_end(model, losses, point, index))
    };
    let by_time = model == Model::TwoState;
    let length = |index: usize| {
        let back = |entry: f64| {
            if by_time {
                (-entry).exp()
            } else {
                share(entry).recip()
            }
        };
        let interval = point.interval(index, back).map(|(a, b)| (b, a));
        (back(point.at[index]), interval)
    };
    let ((good, good_interval), (bad, bad_interval)) = (length(2), length(3));
    let gradient: Vec<f64> = (0..4)
        .map(|index| {
            const STEP: f64 = 1e-4;
            let moved = |by: f64| {
                let mut at = point.at.to_vec();
                at[index] += by;
                odds(states_at(model, &at, point.fixed).mean_loss())
            };
            (moved(STEP) - moved(-STEP)) / (2.0 * STEP)
        })
        .collect();
    let mean = point.combined(odds(states.mean_loss()), &gradient);
    let (losses_text, names) = (
        (percent(states.loss_good), percent(states.loss_bad)),
        if by_time {
            ["mean_good_s", "mean_bad_s"]
        } else {
            ["mean_good_packets", "mean_bad_packets"]
        },
    );
    let text = if by_time {
        format!(
            "two-state {} {} {} {} exponential",
            losses_text.0,
            span(good),
            losses_text.1,
            span(bad)
        )
    } else {
        let (good, bad) = (rounded(good), rounded(bad));
        format!(
            "gilbert-elliott {} {good} {} {bad}",
            losses_text.0, losses_text.1
        )
    };
    Estimate {
        states,
        parameters: vec![
            parameter("mean_loss", states.mean_loss(), mean),
            parameter("loss_good", states.loss_good, loss(0)),
            parameter(names[0], good, good_interval),
            parameter("loss_bad", states.loss_bad, loss(1)),
            parameter(names[1], bad, bad_interval),
        ],
        text,
    }
}

fn odds(share: f64) -> f64 {
    (share / (1.0 - share)).ln().clamp(-ODDS_MAX, ODDS_MAX)
}

fn share(odds: f64) -> f64 {
    1.0 / (1.0 + (-odds).exp())
}

/// Five digits: more than any recording is long enough for.
fn rounded(value: f64) -> f64 {
    if value == 0.0 {
        return 0.0;
    }
    let scale = 10.0_f64.powf(4.0 - value.abs().log10().floor());
    (value * scale).round() / scale
}

fn percent(loss: f64) -> String {
    // Rounded again: a hundredfold need not have as few digits.
    format!("{}%", rounded(rounded(loss) * 100.0))
}

fn span(seconds: f64) -> String {
    let nanos = core::time::Duration::try_from_secs_f64(rounded(seconds));
    fulmar_proto::units::format_duration(nanos.unwrap_or_default())
}
