//! The gateway's account of itself, and to whom it is given: the status, its history, the figures with their names, the page, and
//! the event trace.

mod alarms;
mod found_losses;
mod history;
pub mod http;
mod losses;
mod metrics;
mod page;
mod recordings;
pub mod registry;
mod reporting;
mod snapshots;
pub mod status;
mod tally;
mod trace;
pub mod verdict;
mod view;

pub(super) use recordings::Watch;
pub(super) use reporting::Seen;
pub(super) use snapshots::{Silence, Source};
pub(super) use status::Status;
