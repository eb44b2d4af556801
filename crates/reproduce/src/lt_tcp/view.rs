//! The runs as the claims name them, and figures in words.

use super::tables::{ERROR_RATES, PERCENT};
use crate::claims::{Finding, Verdict};
use crate::data::Data;

/// The error rates at which something is lost, as the slides write them.
pub(super) const LOSSY: &[u32] = PERCENT.split_at(1).1;
/// The highest.
pub(super) const WORST: u32 = 50;

/// A measure's mean at an error rate in per cent.
pub(super) fn at(data: &Data, family: &str, line: &str, percent: u32, name: &str) -> Option<f64> {
    let index = PERCENT.iter().position(|known| *known == percent)?;
    data.mean(family, line, ERROR_RATES[index], name)
}

/// Half the width of its interval.
pub(super) fn half(data: &Data, family: &str, line: &str, percent: u32, name: &str) -> Option<f64> {
    let index = PERCENT.iter().position(|known| *known == percent)?;
    data.at(family, line, ERROR_RATES[index], name)?.ci95
}

/// The mean at each of some error rates.
pub(super) fn over(
    data: &Data,
    family: &str,
    line: &str,
    percents: &[u32],
    name: &str,
) -> Option<Vec<f64>> {
    let percents = percents.iter();
    percents
        .map(|&percent| at(data, family, line, percent, name))
        .collect()
}

/// `8.38, 5.42, 4.33` in a unit.
pub(super) fn list(values: &[f64], unit: f64, digits: usize) -> String {
    let texts = values
        .iter()
        .map(|value| format!("{:.digits$}", value / unit));
    texts.collect::<Vec<_>>().join(", ")
}

/// In Mbit/s.
pub(super) fn megabits(values: &[f64]) -> String {
    format!("{} Mbit/s", list(values, 1e6, 2))
}

/// In milliseconds.
pub(super) fn millis(values: &[f64]) -> String {
    format!("{} ms", list(values, 1e-3, 1))
}

/// At how many error rates `ours` is above `other`, as a finding.
pub(super) fn above(ours: &[f64], other: &[f64], figure: String) -> Finding {
    let pairs = ours.iter().zip(other);
    let higher = pairs.filter(|(ours, other)| ours > other).count();
    Finding {
        verdict: Verdict::of(higher == other.len(), 2 * higher > other.len()),
        figure,
        comment: format!("So at {higher} of {} error rates.", other.len()),
    }
}
