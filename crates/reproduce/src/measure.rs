//! Measures of the runs' records, as figures show them.

use crate::parameter::AxisUnit;

/// A measure of the runs' records, in the unit it is shown in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Measure {
    /// The flat name in the records.
    pub(crate) name: &'static str,
    /// The divisor that brings a value into the unit.
    pub(crate) unit: f64,
    pub(crate) unit_name: AxisUnit,
    /// The axis' caption without the unit.
    pub(crate) label: &'static str,
    pub(crate) statistic: Statistic,
    pub(crate) quantity: Quantity,
}

/// The quantity that a measure is of, by which its figures are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quantity {
    /// Goodput, which bounds stand beside.
    Goodput,
    /// A time that spans orders of magnitude.
    Delay,
    /// Any other.
    Other,
}

/// The statistic by which a figure's point stands for its runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Statistic {
    /// The mean, with the interval of Student's t.
    Mean,
    /// The median, with the interval of order statistics: for values spread over orders of magnitude.
    Median,
}

impl Statistic {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Mean => "mean",
            Self::Median => "median",
        }
    }
}

impl Measure {
    /// Caption and unit.
    pub(crate) fn caption(&self) -> String {
        let of = match self.statistic {
            Statistic::Mean => "",
            Statistic::Median => " (median of runs)",
        };
        self.unit_name.caption(&format!("{}{of}", self.label))
    }
}
