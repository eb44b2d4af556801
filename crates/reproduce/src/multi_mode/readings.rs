//! The readings of what the paper leaves open, and how a claim fares under each.

use super::tables::BER;
use crate::claims::Finding;
use crate::data::Data;
use core::fmt::Write as _;
use fulmar_sim::measure::statistics::Summary;

/// The rates above 0, and the highest, as claims name them.
pub(super) const LOSSY: [&str; 8] = [
    "1e-6", "5e-6", "1e-5", "2.5e-5", "3.5e-5", "5e-5", "7.5e-5", "1e-4",
];
pub(super) const WORST: &str = "1e-4";

/// A family of runs of Figures 21-24.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    name: &'static str,
    family: &'static str,
    /// What follows the number of a rate.
    unit: &'static str,
}

const PER_BIT: &str = "";
const PER_OCTET: &str = " per octet";

/// By which claims are judged: what the paper prints, at 10 us.
const MAIN: Reading = reading("", BER, PER_BIT);

const OTHERS: [Reading; 5] = [
    reading("10 ms", "ber-10ms", PER_BIT),
    reading("per octet", "ber-octet", PER_OCTET),
    reading("per octet, 10 s, 128 KiB", "ber-octet-10s", PER_OCTET),
    reading("the same at 10 ms", "ber-octet-10s-10ms", PER_OCTET),
    reading("20 MB", "ber-20mb", PER_BIT),
];

const fn reading(name: &'static str, family: &'static str, unit: &'static str) -> Reading {
    Reading { name, family, unit }
}

/// The results under one reading.
pub(super) struct View<'a> {
    /// All runs, for what does not depend on the reading.
    pub(super) data: &'a Data,
    reading: Reading,
}

impl View<'_> {
    /// A measure of a line at a rate, which goes by its number.
    pub(super) fn at(&self, line: &str, rate: &str, name: &str) -> Option<Summary> {
        let rate = format!("{rate}{}", self.reading.unit);
        self.data.at(self.reading.family, line, &rate, name)
    }

    pub(super) fn mean(&self, line: &str, rate: &str, name: &str) -> Option<f64> {
        self.at(line, rate, name)?.mean
    }

    /// How far single runs spread, relative to their mean.
    pub(super) fn spread(&self, line: &str, rate: &str, name: &str) -> Option<f64> {
        let rate = format!("{rate}{}", self.reading.unit);
        self.data.spread(self.reading.family, line, &rate, name)
    }

    /// The share of the data that a line delivers on average.
    pub(super) fn share(&self, line: &str, rate: &str) -> Option<f64> {
        let delivered = self.mean(line, rate, "delivered_bytes")?;
        Some(delivered / self.mean(line, rate, "offered_bytes")?)
    }

    /// That at 0 and every rate above.
    pub(super) fn shares(&self, line: &str) -> Option<Vec<f64>> {
        let all = core::iter::once("0").chain(LOSSY);
        all.map(|rate| self.share(line, rate)).collect()
    }

    /// The least of those at some rates.
    pub(super) fn least_share(&self, line: &str, rates: &[&str]) -> Option<f64> {
        let shares = rates.iter().map(|rate| self.share(line, rate));
        let shares: Vec<f64> = shares.collect::<Option<_>>()?;
        shares.into_iter().reduce(f64::min)
    }

    /// Whether `line` delivers at least `share` at a rate.
    pub(super) fn delivers(&self, line: &str, rate: &str, share: f64) -> bool {
        self.share(line, rate).is_some_and(|ours| ours >= share)
    }

    /// Orders of magnitude from the delay at 0 to that at the highest rate.
    pub(super) fn growth(&self, line: &str) -> Option<f64> {
        let delay = |rate| self.mean(line, rate, "delay_mean_s");
        Some((delay(WORST)? / delay("0")?).log10())
    }
}

/// Judges by what is printed, and tells in the comment how it is under the other readings.
pub(super) fn judged(data: &Data, check: fn(&View<'_>) -> Option<Finding>) -> Option<Finding> {
    let under = |reading| check(&View { data, reading });
    let mut finding = under(MAIN)?;
    let mut separator = "\nOther readings:";
    for reading in OTHERS {
        if let Some(other) = under(reading) {
            let _ = write!(
                finding.comment,
                "{separator} {}: {} ({})",
                reading.name,
                other.verdict.name(),
                other.figure
            );
            separator = ";";
        }
    }
    if separator == ";" {
        finding.comment.push('.');
    }
    Some(finding)
}

/// The same orders of a line of another family, by bit error rate.
pub(super) fn growth_of(data: &Data, family: &str, line: &str) -> Option<f64> {
    let delay = |rate| data.mean(family, line, rate, "delay_mean_s");
    Some((delay(WORST)? / delay("0")?).log10())
}

pub(super) fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}
