//! The relays of a gateway, found by either of their flows.

use super::custody::Custody;
use fulmar_proto::splice::{FlowId, StreamRelay};
use std::collections::BTreeMap;

/// One relay and its stores: of the octets from its first flow, and of those from its second.
#[derive(Debug)]
pub(super) struct RelayEntry {
    pub(super) relay: StreamRelay,
    pub(super) stores: [Box<dyn Custody>; 2],
    /// Whether the first flow was accepted.
    pub(super) is_accepted: bool,
}

impl RelayEntry {
    /// Whether the next gateway goes on with it after a restart.
    pub(super) fn is_durable(&self) -> bool {
        self.stores.iter().all(|store| store.is_durable())
    }
}

/// All relays, found by either of their flows.
#[derive(Debug, Default)]
pub(in crate::gateway) struct Relays {
    all: BTreeMap<u64, RelayEntry>,
    by_flow: BTreeMap<FlowId, u64>,
    next: u64,
}

impl Relays {
    pub(super) fn add(&mut self, entry: RelayEntry) {
        let relay = &entry.relay;
        let living = relay
            .flows()
            .into_iter()
            .filter(|flow| !relay.is_over(*flow));
        for flow in living {
            self.by_flow.insert(flow, self.next);
        }
        self.all.insert(self.next, entry);
        self.next += 1;
    }

    pub(super) fn get_mut(&mut self, flow: FlowId) -> Option<&mut RelayEntry> {
        self.all.get_mut(self.by_flow.get(&flow)?)
    }

    pub(super) fn remove(&mut self, flow: FlowId) {
        if let Some(number) = self.by_flow.get(&flow).copied()
            && let Some(entry) = self.all.remove(&number)
        {
            for flow in entry.relay.flows() {
                if self.by_flow.get(&flow) == Some(&number) {
                    self.by_flow.remove(&flow);
                }
            }
            for store in entry.stores {
                store.forget();
            }
        }
    }
}
