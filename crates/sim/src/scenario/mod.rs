//! Scenarios: a TOML file as written, and the plan it means.
//!
//! [`Document`] keeps every value with the place it was written at, and takes changes from the
//! command line and from sweeps; [`plan`] reads it into checked, typed settings; [`sweep`] lists
//! the points of an experiment. docs/guide/simulator.md documents every key.

mod aerotp;
mod flow;
mod gateway;
mod hop;
mod link;
mod lt_tcp;
mod own;
pub(crate) mod path;
pub mod plan;
mod read;
mod recordings;
mod slacp;
pub mod sweep;
mod table_keys;
mod tcp;
pub(crate) mod topology;

/// The tables of a scenario that a name alone may stand for, as [`Document::named_by`] has them: `link =
/// "x"` means `link = { layer = "x" }`.
pub const NAMED_BY: &[(&str, &str)] = &[("link", "layer")];

pub use aerotp::{AerotpPlan, RepairChoice, SEAL_BYTES};
pub use flow::{DatagramPlan, FlowPlan, SendRate, TransportPlan};
pub use fulmar_settings::{Document, Origin, Override, SettingsError};
pub use gateway::GatewayPlan;
pub use hop::{HopChange, HopPlan, LanPlan};
pub use link::LinkPlan;
pub use lt_tcp::LtTcpPlan;
pub use own::OwnParts;
pub(crate) use plan::HOPS_MAX;
pub use plan::{PointPlan, RUNS_MAX, RunPlan};
pub use recordings::{NoRecordings, Recordings};
pub use sweep::{RECORDS_MAX, SWEEP_RUNS_MAX, SweepPoint, points, points_with};
pub use table_keys::TABLE_KEYS;
pub use tcp::TcpPlan;
pub use topology::{AppDirection, FlowEnds, FlowPath, HopStep, TopologyPlan};
