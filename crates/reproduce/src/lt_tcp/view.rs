//! The runs as the claims name them, and figures in words.

use super::families::PERCENT;
use crate::claims::{ClaimFinding, ClaimVerdict};
use crate::data::Data;
use crate::overlay::Overlay;

/// The error rates at which something is lost, as the slides write them.
pub(super) const LOSSY: &[u32] = PERCENT.split_at(1).1;
/// The highest error rate.
pub(super) const WORST: u32 = 50;

/// A measure's mean at an error rate in per cent.
pub(super) fn at(data: &Data, family: &str, line: &str, percent: u32, name: &str) -> Option<f64> {
    data.mean(family, line, &percent.to_string(), name)
}

/// Half the width of the interval of that mean.
pub(super) fn half(data: &Data, family: &str, line: &str, percent: u32, name: &str) -> Option<f64> {
    data.at(family, line, &percent.to_string(), name)?.ci95
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

/// Values as text in Mbit/s.
pub(super) fn megabits(values: &[f64]) -> String {
    format!("{} Mbit/s", list(values, 1e6, 2))
}

/// Values as text in per cent.
pub(super) fn percents(shares: &[f64]) -> String {
    format!("{} %", list(shares, 0.01, 2))
}

/// Values as text in milliseconds.
pub(super) fn millis(values: &[f64]) -> String {
    format!("{} ms", list(values, 1e-3, 1))
}

/// The values of the slides' table at some error rates, in the records' unit.
pub(super) fn published(table: &Overlay, percents: &[u32]) -> Option<Vec<f64>> {
    let percents = percents.iter();
    percents
        .map(|&percent| table.at(f64::from(percent)))
        .collect()
}

/// The comparison of two lines at the error rates above 0.
#[derive(Clone, Debug)]
pub(super) struct Order {
    pub(super) first: Vec<f64>,
    pub(super) second: Vec<f64>,
    /// The number of rates at which the first is higher by more than both intervals together.
    pub(super) higher: usize,
    lower: usize,
}

/// Compares two lines' means. Each has runs with errors of its own, and intervals by Student's t.
pub(super) fn order(data: &Data, family: &str, lines: [&str; 2], name: &str) -> Option<Order> {
    let [first, second] = lines;
    let mut order = Order {
        first: over(data, family, first, LOSSY, name)?,
        second: over(data, family, second, LOSSY, name)?,
        higher: 0,
        lower: 0,
    };
    let pairs = order.first.iter().zip(&order.second);
    for (&percent, (first_mean, second_mean)) in LOSSY.iter().zip(pairs) {
        let half = |line| half(data, family, line, percent, name).unwrap_or(f64::INFINITY);
        let joint = half(first).hypot(half(second));
        order.higher += usize::from(first_mean - second_mean > joint);
        order.lower += usize::from(second_mean - first_mean > joint);
    }
    Some(order)
}

impl Order {
    /// Reproduced if the first is the higher one at every error rate, partly at most of them.
    pub(super) fn finding(&self, figure: String) -> ClaimFinding {
        let all = self.first.len();
        let open = all - self.higher - self.lower;
        let found = ClaimFinding::new(
            ClaimVerdict::of(self.higher == all, 2 * self.higher > all),
            figure,
            format!(
                "So at {} of {all} error rates, the other way round at {}.",
                self.higher, self.lower
            ),
        );
        let why = format!("at {open} of {all} error rates the intervals overlap.");
        found.open_if(2 * (self.higher + open) > all, &why)
    }
}
