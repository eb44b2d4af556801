//! Every figure that a gateway tells: its name, unit, kind, labels, where it is counted and what it means.
//!
//! `/metrics`, the `metrics` of `/status`, the page, `fulmar top` and `docs/guide/metrics.md` are made
//! from it, so that none of them can call a figure otherwise or compute it otherwise.

mod carrier;
mod document;
mod entry;
mod flows;
mod links;
mod peers;
mod select;
mod transport;
mod tunnels;

pub use document::document;
pub(in crate::gateway) use entry::escaped;
pub use entry::{Entry, MetricKind, Point, Unit};
pub(in crate::gateway) use entry::{Sample, Value};

/// The beginning of every name.
pub const PREFIX: &str = "fulmar";

/// The groups in report order, each with its heading.
static GROUPS: [(&str, &[Entry]); 6] = [
    ("Flows and classes", flows::ENTRIES),
    ("Tunnels", tunnels::ENTRIES),
    ("Peers and links", peers::ENTRIES),
    ("Links that tell of themselves", links::ENTRIES),
    ("AeroTP", transport::ENTRIES),
    ("Carrier and gateway", carrier::ENTRIES),
];

/// All figures, in report order.
pub fn entries() -> impl Iterator<Item = &'static Entry> {
    GROUPS.iter().flat_map(|(_, entries)| entries.iter())
}

/// A figure by its name without prefix and suffix.
pub fn find(name: &str) -> Option<&'static Entry> {
    entries().find(|entry| entry.name == name)
}
