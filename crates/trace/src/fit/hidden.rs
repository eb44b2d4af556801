//! The fit of two states that the losses do not show directly, by packet and by time.
//!
//! A search climbs to the maximum, on the scales of logarithms and log-odds, from several starting
//! points. The intervals come from the observed information. Where the best loss is at the end of
//! its range (nothing lost in the good state, everything in the bad), or cannot be told from it,
//! its interval reaches from there to where the likelihood has fallen by 1.92.

use super::confidence::{FALL, Point, odds, rate, share};
use super::likelihood::{Steps, TwoStates};
use super::models::Model;
use super::notation::{percent, rounded, span};
use super::pairs::Pairs;
use super::parameters::{Estimate, parameter};
use super::search::{climb, covariance};
use crate::losses::Losses;

/// The states with these entries: log-odds of the loss in the good and the bad state; then log-odds
/// of the transitions by packet, or logarithms of the rates by time.
fn states_at(model: Model, at: &[f64], fixed: [Option<f64>; 2]) -> TwoStates {
    let loss = |index: usize| fixed[index].unwrap_or_else(|| share(at[index]));
    let steps = match model {
        Model::TwoState => Steps::Time {
            to_bad: rate(at[2]),
            to_good: rate(at[3]),
        },
        _ => Steps::Packets {
            to_bad: share(at[2]),
            to_good: share(at[3]),
        },
    };
    TwoStates {
        loss_good: loss(0),
        loss_bad: loss(1),
        steps,
    }
}

pub(super) fn hidden(model: Model, losses: &Losses, pairs: &Pairs, mean_loss: f64) -> Estimate {
    let likelihood =
        |at: &[f64]| states_at(model, at, [None, None]).log_likelihood(losses.groups());
    let mut starts = starts(model, pairs, mean_loss);
    // The two best starting points lead to different kinds of peaks.
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
    // The entries that are left free are searched again with the others held.
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

/// Starting points: the share that the bad state loses, and how long the state lasts compared with
/// a burst.
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

/// The ends of the range of a loss: 0 for the good state and 1 for the bad one.
const ENDS: [f64; 2] = [0.0, 1.0];

/// Losses whose interval reaches to the end of their range, where log-odds have no bend. Such a
/// loss is put to the end where that costs next to nothing, and otherwise held where it is.
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

/// The interval from the end of the range, past the loss that is held, to where the likelihood has
/// fallen by 1.92, all else equal.
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
                rate(entry).recip()
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
