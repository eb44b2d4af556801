//! The runs as the claims name them, and figures in words.

use super::forms::RATE_BPS;
use crate::data::Data;

/// User data of Table 1's packets, each with its packet on Fulmar's links as the families name it.
pub(super) const LENGTHS: [(u64, &str); 3] = [(500, "540"), (1000, "1040"), (1500, "1540")];
/// Table 1's measured channels, by family.
pub(super) const FADING: [&str; 4] = ["testbed", "atenaa", "fasolt", "kiodo"];

/// Goodput as a share of the link's rate.
pub(super) fn share(data: &Data, family: &str, line: &str, x: &str) -> Option<f64> {
    Some(data.mean(family, line, x, "goodput_bps")? / RATE_BPS)
}

/// The shares at each of Table 1's lengths.
pub(super) fn shares(data: &Data, family: &str, line: &str) -> Option<Vec<f64>> {
    let lengths = LENGTHS.iter();
    lengths.map(|(_, x)| share(data, family, line, x)).collect()
}

/// Half of the share's interval; zero for one run.
pub(super) fn half(data: &Data, family: &str, line: &str, x: &str) -> f64 {
    let half = data.at(family, line, x, "goodput_bps");
    half.and_then(|summary| summary.ci95)
        .map_or(0.0, |half| half / RATE_BPS)
}

/// `0.938, 0.955, 0.951`.
pub(super) fn list(values: &[f64], digits: usize) -> String {
    let texts = values.iter().map(|value| format!("{value:.digits$}"));
    texts.collect::<Vec<_>>().join(", ")
}

/// A part of a sentence for each channel, joined.
pub(super) fn by_channel(channels: &[&str], of: impl Fn(&str) -> Option<String>) -> Option<String> {
    let parts = channels
        .iter()
        .map(|channel| Some(format!("{channel} {}", of(channel)?)));
    Some(parts.collect::<Option<Vec<_>>>()?.join("; "))
}

/// The largest distance of ratios from 1.
pub(super) fn worst(ratios: &[f64]) -> f64 {
    let distances = ratios.iter().map(|ratio| (ratio - 1.0).abs());
    distances.fold(0.0, f64::max)
}

/// The least of some values.
pub(super) fn least(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

/// The greatest of some values.
pub(super) fn most(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}
