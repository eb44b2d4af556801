//! The parameters of each model that make the losses most likely, with their 95 % intervals.
//!
//! Independent loss and bursts have closed forms; for states by time, a search on the scale of
//! logarithms climbs to the maximum. [`super::hidden`] fits states that the losses do not show
//! directly.

use super::confidence::{Point, around, odds, rate, share, wilson};
use super::hidden::hidden;
use super::likelihood::{Steps, TwoStates};
use super::models::Model;
use super::notation::{percent, rounded, span};
use super::pairs::Pairs;
use super::parameters::{Estimate, parameter};
use super::search::{climb, covariance};
use crate::losses::Losses;

/// The least number of bursts from which hidden states can be told from a single state.
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

fn bernoulli(lost: f64, packets: f64) -> Estimate {
    let loss = lost / packets;
    let steps = Steps::Packets {
        to_bad: 0.5,
        to_good: 0.5,
    };
    Estimate {
        states: TwoStates {
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
    // Rounding may leave a burst that is too short for the loss.
    let written = 0.01 * rounded(100.0 * rounded(loss));
    let (burst, least) = (
        rounded(to_good.recip()),
        written / (1.0 - written) * (1.0 + 1e-12),
    );
    let (low, high) = wilson(pairs.lost_kept, from_lost);
    let (low_gap, high_gap) = wilson(pairs.kept_lost, from_kept);
    Estimate {
        states: TwoStates {
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
        text: format!("{} burst {}", percent(loss), burst.max(least)),
    }
}

fn intervals(losses: &Losses, pairs: &Pairs) -> Estimate {
    let states = |at: &[f64]| TwoStates {
        loss_good: 0.0,
        loss_bad: 1.0,
        steps: Steps::Time {
            to_bad: rate(at[0]),
            to_good: rate(at[1]),
        },
    };
    let of_share = |share: f64| (share / pairs.step).ln();
    let (from_kept, from_lost) = (
        pairs.kept_kept + pairs.kept_lost,
        pairs.lost_kept + pairs.lost_lost,
    );
    let start = [
        of_share(pairs.kept_lost / from_kept),
        of_share(pairs.lost_kept / from_lost),
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
        let interval = at.interval(index, |entry| rate(entry).recip());
        (rate(peak.at[index]).recip(), interval.map(|(a, b)| (b, a)))
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
