//! The readings of this paper's conditions.

use super::tables::{AGGREGATED, RELIABLE};
use crate::reading::PRINTED;
pub(super) use crate::reading::{
    ALL, BACKS_OFF, HIGH, LOSSY, Reading, View, WORST, backs_off, count, falls, in_each, kilobytes,
    percent, rate, seconds, under,
};

/// The readings of Figures 8 to 11.
pub(super) const MODES: &[Reading] = &[
    Reading::per_bit("modes", PRINTED),
    Reading::per_bit("modes-10ms", "10 ms"),
    Reading::per_octet("modes-octet", "rate per octet"),
    Reading::per_octet("modes-octet-10ms", "rate per octet and 10 ms"),
    Reading::per_bit("modes-20mb", "20 MB"),
];

/// The readings of Figures 4 to 7.
pub(super) const MACKS: &[Reading] = &[
    Reading::per_bit("mack", PRINTED),
    Reading::per_bit("mack-10ms", "10 ms"),
    Reading::per_octet("mack-octet", "rate per octet"),
    Reading::per_octet("mack-octet-10ms", "rate per octet and 10 ms"),
    Reading::per_bit("mack-20mb", "20 MB"),
];

impl View<'_> {
    /// A measure at a rate, for each number of acknowledgements in a MACK.
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

    /// The reliable mode's measure divided by `line`'s, at a rate.
    pub(super) fn ratio(&self, line: &str, rate: &str, name: &str) -> Option<f64> {
        Some(self.at(line, rate, name)? / self.at(RELIABLE, rate, name)?)
    }
}
