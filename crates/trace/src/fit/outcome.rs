//! All models side by side, and the choice.

use super::estimate::estimate;
use super::goodness::{Goodness, test};
use super::models::Model;
use super::pairs::Pairs;
use super::parameters::Parameter;
use crate::losses::{Counts, Losses};
use serde::Serialize;
use statrs::distribution::{ChiSquared, ContinuousCDF};

/// A model that was fitted.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fitted {
    /// The model's kind.
    pub model: Model,
    /// The text that a scenario has as `loss`.
    pub loss: String,
    /// The model's parameters.
    pub parameters: Vec<Parameter>,
    /// The natural logarithm of the likelihood.
    pub log_likelihood: f64,
    /// The Bayesian information criterion: parameters x ln(packets) - 2 x log-likelihood.
    pub bic: f64,
    /// The test of the model; none if the recording is too short for one.
    pub goodness: Option<Goodness>,
}

/// A likelihood ratio: does the larger model explain more than chance gives it?
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The model with fewer parameters.
    pub smaller: Model,
    /// The model that contains it.
    pub larger: Model,
    /// Twice the difference of the log-likelihoods.
    pub statistic: f64,
    /// The number of parameters they differ by.
    pub degrees: u32,
    /// The probability of so large a difference if the smaller model were true. Hidden states
    /// contain the simpler forms at the ends of ranges, where this is too large rather than too
    /// small.
    pub p: f64,
}

/// The result of fitting every model to a recording.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fit {
    /// Packets that were sent.
    pub packets: u64,
    /// Packets that were lost.
    pub lost: u64,
    /// Seconds from the first packet to the last, if times are known.
    pub duration_s: Option<f64>,
    /// Packets with another fate.
    pub counts: Counts,
    /// The models, from the simplest on.
    pub models: Vec<Fitted>,
    /// The models that could not be fitted, with the reason.
    pub skipped: Vec<(Model, String)>,
    /// Comparisons of models that contain one another.
    pub comparisons: Vec<Comparison>,
    /// The model with the lowest criterion.
    pub chosen: Model,
}

impl Fit {
    /// The chosen model.
    pub fn best(&self) -> Option<&Fitted> {
        self.models
            .iter()
            .find(|fitted| fitted.model == self.chosen)
    }

    /// Whether the chosen model passes its test at this level. None without a test: the recording
    /// is too short, or leaves nothing to chance under the model.
    pub fn is_believable(&self, level: f64) -> Option<bool> {
        let goodness = self.best()?.goodness?;
        Some(goodness.p >= level)
    }
}

/// Criteria nearer to each other than this tell nothing (Kass and Raftery, JASA 90, 1995); the
/// simpler model, or that by packet, is kept.
const WORTH_MENTIONING: f64 = 2.0;

/// Fits every model to `losses`, of which there must be some.
pub fn fit(losses: &Losses) -> Fit {
    let packets = losses.packets().len() as u64;
    let pairs = Pairs::of(losses);
    let (mut models, mut skipped) = (Vec::new(), Vec::new());
    for model in Model::ALL {
        match estimate(model, losses, &pairs) {
            Ok(estimate) => {
                let log_likelihood = estimate.states.log_likelihood(losses.groups());
                if !log_likelihood.is_finite() {
                    let reason = "the recording cannot happen under what was estimated of it";
                    skipped.push((model, reason.to_owned()));
                    continue;
                }
                let penalty = f64::from(model.parameters()) * (packets.max(1) as f64).ln();
                models.push(Fitted {
                    model,
                    loss: estimate.text,
                    parameters: estimate.parameters,
                    log_likelihood,
                    bic: penalty - 2.0 * log_likelihood,
                    goodness: test(losses, &estimate.states, model.parameters()),
                });
            }
            Err(reason) => skipped.push((model, reason)),
        }
    }
    let found = |model| models.iter().find(|fitted| fitted.model == model);
    let comparisons = Model::NESTED
        .iter()
        .filter_map(|&(smaller, larger, degrees)| {
            let (small, large) = (found(smaller)?, found(larger)?);
            let statistic = (2.0 * (large.log_likelihood - small.log_likelihood)).max(0.0);
            let law = ChiSquared::new(f64::from(degrees)).ok()?;
            Some(Comparison {
                smaller,
                larger,
                statistic,
                degrees,
                p: law.sf(statistic),
            })
        });
    let comparisons = comparisons.collect();
    let mut chosen = (Model::Bernoulli, f64::INFINITY);
    for fitted in &models {
        if chosen.1.is_infinite() || fitted.bic < chosen.1 - WORTH_MENTIONING {
            chosen = (fitted.model, fitted.bic);
        }
    }
    Fit {
        packets,
        lost: losses.lost(),
        duration_s: losses.duration(),
        counts: losses.counts,
        models,
        skipped,
        comparisons,
        chosen: chosen.0,
    }
}
