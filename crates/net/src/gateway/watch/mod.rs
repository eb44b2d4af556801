//! What the gateway tells of itself, and to whom: the status, its history, the figures with their names, the page, and
//! the event trace.

mod history;
pub mod http;
mod metrics;
mod page;
pub mod registry;
mod reporting;
mod snapshots;
pub mod status;
mod tally;
mod trace;
mod view;

pub(super) use reporting::index_of;
pub(super) use status::{OutageReport, RateReport, Status};
pub(super) use trace::GatewayTrace;
