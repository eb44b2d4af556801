//! Parts that several link layers need: each owns its state and its tests.

mod acquaintance;
mod loss_estimate;
mod release;

pub(super) use acquaintance::Acquaintance;
pub(super) use loss_estimate::LinkLossEstimate;
pub(super) use release::{Placed, ReleaseWindow};
