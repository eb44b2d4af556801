//! Scenarios: a TOML file as written, and the plan it means.
//!
//! [`document`] keeps every value with the place it was written at, and takes changes from the
//! command line and from sweeps; [`plan`] reads it into checked, typed settings; [`sweep`] lists
//! the points of an experiment. docs/guide/simulator.md documents every key.

mod aerotp;
pub mod document;
pub mod error;
mod flow;
mod hop;
pub mod plan;
mod reader;
pub mod sweep;

pub use aerotp::AerotpPlan;
pub use document::Document;
pub use error::{Origin, ScenarioError};
pub use flow::{AppDirection, FlowPlan, TransportPlan};
pub use hop::{HopPlan, LanPlan};
pub use plan::{Plan, RunPlan};
pub use sweep::{Point, points};
