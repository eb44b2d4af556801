//! The models that are fitted, from the simplest on.

use serde::Serialize;

/// A model of loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Model {
    /// Each packet for itself: `2%`.
    Bernoulli,
    /// Bursts counted in packets, in which everything is lost: `2% burst 4`.
    Gilbert,
    /// Two states counted in packets, each with its loss: `gilbert-elliott 0.1% 200 60% 8`.
    GilbertElliott,
    /// Two states by time, everything lost in one and nothing in the other:
    /// `two-state 0% 1s 100% 50ms exponential`.
    Intervals,
    /// Two states by time, each with its loss: `two-state 1% 1s 60% 50ms exponential`.
    TwoState,
}

impl Model {
    /// Every model.
    pub const ALL: [Self; 5] = [
        Self::Bernoulli,
        Self::Gilbert,
        Self::GilbertElliott,
        Self::Intervals,
        Self::TwoState,
    ];

    /// Pairs of models of which the second contains the first, and the number of parameters they
    /// differ by.
    pub(crate) const NESTED: [(Self, Self, u32); 3] = [
        (Self::Bernoulli, Self::Gilbert, 1),
        (Self::Gilbert, Self::GilbertElliott, 2),
        (Self::Intervals, Self::TwoState, 2),
    ];

    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bernoulli => "bernoulli",
            Self::Gilbert => "gilbert",
            Self::GilbertElliott => "gilbert-elliott",
            Self::Intervals => "intervals",
            Self::TwoState => "two-state",
        }
    }

    /// The number of parameters of the model.
    pub const fn parameters(self) -> u32 {
        match self {
            Self::Bernoulli => 1,
            Self::Gilbert | Self::Intervals => 2,
            Self::GilbertElliott | Self::TwoState => 4,
        }
    }

    /// Whether the model needs to know when packets were sent.
    pub const fn is_by_time(self) -> bool {
        matches!(self, Self::Intervals | Self::TwoState)
    }
}
