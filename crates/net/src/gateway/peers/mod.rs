//! The gateways at the other ends: the session's events about them, their names and addresses, their outages, and the
//! decisions that were taken about them.

mod carrier_changes;
mod decisions;
mod events;
mod found_peers;
mod index;
mod kept_rates;
mod known;
mod outages;
mod path_ports;
mod peer_names;
mod rate;
mod reach;
mod repairs;

pub(super) use carrier_changes::{carrier_in_use, carrier_name};
pub(super) use decisions::Decision;
pub(super) use decisions::{DECLARED_LOW, DECLARED_WRONG, RatesSeen};
pub(super) use events::of_peer_there;
pub(super) use found_peers::TRY_AGAIN;
pub(super) use index::index_of;
pub(super) use kept_rates::KeptRates;
pub(super) use known::Peers;
pub use outages::OutageReport;
pub use path_ports::WaitingPath;
pub(crate) use path_ports::missing as path_missing;
pub(super) use path_ports::{PathPort, PathPorts};
pub(super) use peer_names::{PeerNames, usable};
pub use rate::RateReport;
pub(super) use reach::way_of;
pub use repairs::RepairReport;
