//! The gateways at the other ends: the session's events about them, their names and addresses, their outages, and the
//! decisions that were taken about them.

pub(super) mod decisions;
mod events;
mod found_peers;
mod outages;
mod peer_names;

pub(super) use decisions::{DECLARED_WRONG, Decision, Decisions, RatesSeen};
pub(super) use found_peers::{FoundPeers, TRY_AGAIN};
pub(super) use outages::Outages;
pub(super) use peer_names::{PeerNames, usable};
