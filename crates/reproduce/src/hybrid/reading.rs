//! The readings of the paper's conditions, and a claim's judgement under each.

use super::tables::{AGGREGATED, RELIABLE};
use crate::claims::Finding;
use crate::data::Data;

/// A family that runs the same experiment under other conditions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    family: &'static str,
    name: &'static str,
    octets: bool,
}

const fn reading(family: &'static str, name: &'static str, octets: bool) -> Reading {
    Reading {
        family,
        name,
        octets,
    }
}

/// Of Figures 8 to 11; the first is the conditions as printed.
pub(super) const MODES: &[Reading] = &[
    reading("modes", "as printed", false),
    reading("modes-10ms", "10 ms", false),
    reading("modes-octet", "rate per octet", true),
    reading("modes-octet-10ms", "rate per octet and 10 ms", true),
    reading("modes-20mb", "20 MB", false),
];

/// Of Figures 4 to 7.
pub(super) const MACKS: &[Reading] = &[
    reading("mack", "as printed", false),
    reading("mack-10ms", "10 ms", false),
    reading("mack-octet", "rate per octet", true),
    reading("mack-octet-10ms", "rate per octet and 10 ms", true),
    reading("mack-20mb", "20 MB", false),
];

/// Every rate of the figures, as the claims name them.
pub(super) const ALL: &[&str] = crate::airborne::RATES;
/// Those above 0.
pub(super) const LOSSY: &[&str] = ALL.split_at(1).1;
/// Those at which most figures part.
pub(super) const HIGH: &[&str] = ALL.split_at(3).1;
/// The highest.
pub(super) const WORST: &str = "1e-4";

/// The runs of one reading.
#[derive(Clone, Copy, Debug)]
pub(super) struct View<'a> {
    pub(super) data: &'a Data,
    reading: Reading,
}

/// Judges a claim under each reading: the first gives verdict and figure, the others are told in
/// the comment.
pub(super) fn in_each(
    data: &Data,
    readings: &[Reading],
    check: impl Fn(&View<'_>) -> Option<Finding>,
) -> Option<Finding> {
    let view = |reading: &Reading| View {
        data,
        reading: *reading,
    };
    let (first, others) = readings.split_first()?;
    let mut finding = check(&view(first))?;
    for (index, other) in others.iter().enumerate() {
        let told = check(&view(other)).map_or_else(
            || "no value".to_owned(),
            |found| format!("{} ({})", found.verdict.name(), found.figure),
        );
        let first = index == 0;
        let lead = if first {
            "\nOther readings. With "
        } else {
            " With "
        };
        let sentence = format!("{lead}{}: {told}.", other.name);
        finding.comment.push_str(&sentence);
    }
    Some(finding)
}

impl View<'_> {
    /// Whether this is the reading that gives the verdict.
    pub(super) fn is_printed(&self) -> bool {
        self.reading.name == "as printed"
    }

    /// A measure's mean at a rate.
    pub(super) fn at(&self, line: &str, rate: &str, name: &str) -> Option<f64> {
        let octets = format!("{rate} per octet");
        let x = if self.reading.octets { &octets } else { rate };
        self.data.mean(self.reading.family, line, x, name)
    }

    /// Half the width of its interval.
    pub(super) fn half(&self, line: &str, rate: &str, name: &str) -> Option<f64> {
        let octets = format!("{rate} per octet");
        let x = if self.reading.octets { &octets } else { rate };
        self.data.at(self.reading.family, line, x, name)?.ci95
    }

    /// In bit/s.
    pub(super) fn goodput(&self, line: &str, rate: &str) -> Option<f64> {
        self.at(line, rate, "goodput_bps")
    }

    /// In seconds.
    pub(super) fn delay(&self, line: &str, rate: &str) -> Option<f64> {
        self.at(line, rate, "delay_mean_s")
    }

    /// In octets.
    pub(super) fn overhead(&self, line: &str, rate: &str) -> Option<f64> {
        self.at(line, rate, "overhead_bytes")
    }

    /// In octets.
    pub(super) fn repeated(&self, line: &str, rate: &str) -> Option<f64> {
        self.at(line, rate, "wire_bytes.retransmission")
    }

    /// The share of the data that arrived.
    pub(super) fn share(&self, line: &str, rate: &str) -> Option<f64> {
        Some(self.at(line, rate, "delivered_bytes")? / self.at(line, rate, "offered_bytes")?)
    }

    /// Two lines' measures at each of some rates.
    pub(super) fn pairs<'r>(
        &self,
        rates: &[&'r str],
        of: impl Fn(&Self, &str) -> Option<(f64, f64)>,
    ) -> Option<Vec<(&'r str, f64, f64)>> {
        let pairs = rates.iter().map(|&rate| {
            let (a, b) = of(self, rate)?;
            Some((rate, a, b))
        });
        pairs.collect()
    }

    /// A measure of the reliable line, or of each number of acknowledgements to a MACK, at a rate.
    pub(super) fn by_aggregation(
        &self,
        rate: &str,
        name: &str,
    ) -> Option<Vec<(&'static str, f64)>> {
        let lines = AGGREGATED.iter();
        lines
            .map(|&line| Some((line, self.at(line, rate, name)?)))
            .collect()
    }

    /// How often `line` is better than the reliable mode, of the rates.
    pub(super) fn ratio(&self, line: &str, rate: &str, name: &str) -> Option<f64> {
        Some(self.at(line, rate, name)? / self.at(RELIABLE, rate, name)?)
    }
}

/// `12.3 %`.
pub(super) fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// `2.50 ms` or `1.95 s`.
pub(super) fn seconds(value: f64) -> String {
    if value < 1.0 {
        format!("{:.2} ms", value * 1e3)
    } else {
        format!("{value:.2} s")
    }
}

/// `4.416 Mbit/s`.
pub(super) fn rate(value: f64) -> String {
    format!("{:.3} Mbit/s", value / 1e6)
}

/// `74 kB`.
pub(super) fn kilobytes(value: f64) -> String {
    format!("{:.0} kB", value / 1e3)
}

/// How many of `pairs` fulfil `holds`.
pub(super) fn count(pairs: &[(&str, f64, f64)], holds: impl Fn(f64, f64) -> bool) -> usize {
    pairs.iter().filter(|(_, a, b)| holds(*a, *b)).count()
}

/// Whether each value is at least, or at most, the one before.
pub(super) fn falls(values: &[f64]) -> bool {
    values.windows(2).all(|pair| pair[1] <= pair[0])
}
