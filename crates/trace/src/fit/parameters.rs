//! The parameters of a fitted model.

use super::likelihood::TwoStates;
use serde::Serialize;

/// A parameter of a fitted model, and its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Parameter {
    /// The parameter's name with its unit; shares have none.
    pub name: &'static str,
    /// The most likely value.
    pub value: f64,
    /// The lower end; none where the recording is too short to give one.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
}

/// A fitted model.
#[derive(Clone, Debug)]
pub(crate) struct Estimate {
    pub(crate) states: TwoStates,
    pub(crate) parameters: Vec<Parameter>,
    /// The model in a scenario's notation.
    pub(crate) text: String,
}

pub(super) fn parameter(name: &'static str, value: f64, interval: Option<(f64, f64)>) -> Parameter {
    Parameter {
        name,
        value,
        low: interval.map(|(low, _)| low),
        high: interval.map(|(_, high)| high),
    }
}
