//! The gateway's knowledge of its peers while it runs.

use super::carrier_changes::CarrierChanges;
use super::decisions::Decisions;
use super::found_peers::FoundPeers;
use super::index::index_of;
use super::kept_rates::KeptRates;
use super::outages::Outages;
use super::path_ports::PathPorts;
use super::peer_names::PeerNames;
use super::repairs::Repairs;
use crate::gateway::config::GatewayConfig;
use fulmar_proto::machine::PathId;
use fulmar_proto::units::Instant;
use std::net::SocketAddr;

/// The peers: where they are looked for, and what befell them.
#[derive(Debug)]
pub(in crate::gateway) struct Peers {
    pub(in crate::gateway) names: PeerNames,
    pub(in crate::gateway) found: FoundPeers,
    pub(in crate::gateway) decisions: Decisions,
    pub(in crate::gateway) outages: Outages,
    /// The rates found towards them.
    pub(in crate::gateway) rates: KeptRates,
    /// The repair of flows with them.
    pub(in crate::gateway) repairs: Repairs,
    /// The carriers of their paths.
    pub(in crate::gateway) carriers: CarrierChanges,
    /// The sockets of further paths to them.
    pub(in crate::gateway) ports: PathPorts,
    /// The path and address of the last datagram.
    pub(super) heard: Option<(PathId, SocketAddr)>,
}

impl Peers {
    pub(in crate::gateway) fn new(names: PeerNames) -> Self {
        Self {
            names,
            found: FoundPeers::default(),
            decisions: Decisions::default(),
            outages: Outages::default(),
            rates: KeptRates::default(),
            repairs: Repairs::default(),
            carriers: CarrierChanges::default(),
            ports: PathPorts::default(),
            heard: None,
        }
    }

    /// Notes where a datagram came from: the events that follow are about it.
    pub(in crate::gateway) const fn heard(&mut self, path: PathId, from: SocketAddr) {
        self.heard = Some((path, from));
    }

    /// Looks for the peers whose names were resolved.
    pub(in crate::gateway) fn look(&mut self, now: Instant, config: &GatewayConfig) {
        while let Some((peer, address)) = self.names.poll(now) {
            tracing::info!(event = "peer_resolved", peer = config.peer_name(peer), %address);
            self.found.add(now, index_of(peer), address);
        }
    }
}
