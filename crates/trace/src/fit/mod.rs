//! The fit: which model lost these packets, and with which parameters.
//!
//! Every model is fitted by maximum likelihood; the Bayesian information criterion chooses among
//! them, likelihood ratios compare those that contain one another, and a chi-square test of the
//! runs says whether the chosen one can be believed at all.

mod confidence;
mod estimate;
mod goodness;
mod hidden;
mod likelihood;
mod models;
mod notation;
mod outcome;
mod pairs;
mod parameters;
mod search;

pub use goodness::Goodness;
pub use models::Model;
pub use outcome::{Comparison, Fit, Fitted, fit};
pub use parameters::Parameter;
