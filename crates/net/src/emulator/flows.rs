//! The clients of an emulated link, each with a socket of its own towards the target.

use super::report::FlowReport;
use crate::udp::{Path, PortConfig, UdpPort};
use fulmar_proto::units::{Duration, Instant};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// A client. Never reused within a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FlowId(u64);

#[derive(Debug)]
pub(super) struct Flow {
    pub(super) client: Path,
    pub(super) port: UdpPort,
    heard: Instant,
}

/// The bounded table of clients.
#[derive(Debug)]
pub(super) struct Flows {
    target: SocketAddr,
    count_max: usize,
    idle_after: Duration,
    ids: BTreeMap<SocketAddr, FlowId>,
    open: BTreeMap<FlowId, Flow>,
    opened: u64,
    reclaimed: u64,
    refused_packets: u64,
    target_refused: u64,
}

impl Flows {
    pub(super) const fn new(target: SocketAddr, count_max: usize, idle_after: Duration) -> Self {
        Self {
            target,
            count_max,
            idle_after,
            ids: BTreeMap::new(),
            open: BTreeMap::new(),
            opened: 0,
            reclaimed: 0,
            refused_packets: 0,
            target_refused: 0,
        }
    }

    /// The flow of the client at the far end of `client`; `None` if there is no room or no socket.
    pub(super) fn heard(&mut self, now: Instant, client: Path) -> Option<FlowId> {
        if let Some(&id) = self.ids.get(&client.remote) {
            if let Some(flow) = self.open.get_mut(&id) {
                flow.heard = now;
                flow.client = client;
            }
            return Some(id);
        }
        let opened = self.add(now, client);
        self.refused_packets += u64::from(opened.is_none());
        opened
    }

    fn add(&mut self, now: Instant, client: Path) -> Option<FlowId> {
        if self.open.len() >= self.count_max {
            self.reclaim(now);
        }
        if self.open.len() >= self.count_max {
            return None;
        }
        let port = UdpPort::connect(self.target, PortConfig::default()).ok()?;
        let id = FlowId(self.opened);
        self.opened += 1;
        self.ids.insert(client.remote, id);
        self.open.insert(
            id,
            Flow {
                client,
                port,
                heard: now,
            },
        );
        Some(id)
    }

    /// Forgets every client that has been silent for long enough.
    fn reclaim(&mut self, now: Instant) {
        let idle_after = self.idle_after;
        let mut target_refused = 0;
        self.open.retain(|_, flow| {
            let keep = now.saturating_since(flow.heard) < idle_after;
            target_refused += if keep {
                0
            } else {
                flow.port.counters().refused
            };
            keep
        });
        self.target_refused += target_refused;
        self.reclaimed += (self.ids.len() - self.open.len()) as u64;
        let open = &self.open;
        self.ids.retain(|_, id| open.contains_key(id));
    }

    pub(super) fn get_mut(&mut self, id: FlowId) -> Option<&mut Flow> {
        self.open.get_mut(&id)
    }

    /// All flows, in the order of [`FlowId`].
    pub(super) fn iter(&self) -> impl Iterator<Item = (FlowId, &Flow)> {
        self.open.iter().map(|(&id, flow)| (id, flow))
    }

    pub(super) fn target_refused(&self) -> u64 {
        let open = self.open.values().map(|flow| flow.port.counters().refused);
        self.target_refused + open.sum::<u64>()
    }

    pub(super) fn report(&self) -> FlowReport {
        FlowReport {
            open: self.open.len(),
            opened: self.opened,
            reclaimed: self.reclaimed,
            refused_packets: self.refused_packets,
        }
    }
}
