//! The repair that a flow's goal asks for: repetitions, copies of them, and repair symbols ahead of any loss.
//!
//! A sender hands in what it measures, a [`LossPattern`] and a [`FlowShape`], and the flow's goal, a
//! [`DeliveryGoal`]. [`RepairPlan::choose`] predicts for each plan of a small table how many messages miss the goal and
//! what the plan costs, and takes the one of which both are worth least. All in integers: the same on every machine.
//! `docs/models/auto.md` has the arithmetic, with what it assumes and where it fails.

mod busy;
mod choice;
mod goal;
mod odds;
mod outlook;
mod pattern;
mod plan;

pub use busy::ROUNDS;
pub use goal::{Deliver, DeliveryGoal, DeliveryOrder};
pub use odds::Odds;
pub use pattern::LossPattern;
pub use plan::{FlowShape, Prediction, RepairPlan, RepairView};
