//! Listening TCP ports that the keeper has as well. A client that connects while the gateway is killed and
//! started again then waits, and is neither refused nor reset.
//!
//! Without the keeper, the kernel closes a dead gateway's port and resets every connection there that it had
//! set up and the gateway had not accepted. Its client may have sent a request already.

use crate::keeper::{AcceptedClient, Baseline, SocketRecord, TakenSocket};
use fulmar_proto::splice::{FlowId, Role};
use std::collections::BTreeMap;
use std::io;
use std::net::TcpListener;
use std::os::fd::OwnedFd;

/// The beginning of a port's note; no flow's note begins so.
const NOTE: &[u8] = b"port ";
/// The beginning of the note of a client that was accepted at a port, and has no flow yet.
const CLIENT_NOTE: &[u8] = b"client of ";

#[derive(Debug)]
struct KeptPort {
    /// The keeper's name for it.
    id: FlowId,
    /// The port, for a keeper that takes the place of one that died.
    listener: TcpListener,
}

/// The ports that a gateway's keeper has.
#[derive(Debug, Default)]
pub(in crate::gateway) struct KeptPorts {
    open: BTreeMap<String, KeptPort>,
    /// Ports of the gateway before, not opened yet.
    left: BTreeMap<String, KeptPort>,
    /// Clients that the gateway before accepted there and gave no flow.
    clients: Vec<LeftClient>,
}

/// A client that was accepted at the port of this name.
#[derive(Debug)]
struct LeftClient {
    port: String,
    accepted: AcceptedClient,
}

/// The name of the `number`th port with one beginning, counted from 1: entries at "any port" are alike.
fn numbered(beginning: &str, number: u32) -> String {
    match number {
        1 => beginning.to_owned(),
        _ => format!("{beginning} {number}"),
    }
}

/// The names of ports with these beginnings, in the order in which they are opened.
pub(in crate::gateway) fn each(beginnings: impl Iterator<Item = String>) -> Vec<String> {
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    let name = |beginning: String| {
        let count = counts.entry(beginning.clone()).or_default();
        *count += 1;
        numbered(&beginning, *count)
    };
    beginnings.map(name).collect()
}

fn record(name: &str) -> SocketRecord {
    SocketRecord {
        role: Role::Opener,
        baseline: Baseline::default(),
        note: [NOTE, name.as_bytes()].concat(),
    }
}

/// The record of a client that was accepted at the port of this name.
pub(super) fn client_record(port: &str) -> SocketRecord {
    let note = [CLIENT_NOTE, port.as_bytes()].concat();
    SocketRecord {
        note,
        ..record(port)
    }
}

impl KeptPorts {
    /// Takes the ports out of what the keeper had, and returns the flows' sockets.
    pub(super) fn take_over(&mut self, all: Vec<TakenSocket>) -> Vec<TakenSocket> {
        let mut flows = Vec::new();
        for taken in all {
            let named = |beginning| {
                let name = taken.record.note.strip_prefix(beginning)?;
                String::from_utf8(name.to_vec()).ok()
            };
            if let Some(name) = named(NOTE) {
                let id = taken.flow;
                let listener = TcpListener::from(OwnedFd::from(taken.socket));
                self.left.insert(name, KeptPort { id, listener });
            } else if let Some(port) = named(CLIENT_NOTE) {
                let (client, socket) = (taken.flow, taken.socket);
                let accepted = AcceptedClient { client, socket };
                self.clients.push(LeftClient { port, accepted });
            } else {
                flows.push(taken);
            }
        }
        flows
    }

    /// Whether the gateway before left nothing here.
    pub(in crate::gateway) fn is_empty(&self) -> bool {
        self.open.is_empty() && self.left.is_empty() && self.clients.is_empty()
    }

    /// The first name with this beginning that no open port has.
    pub(super) fn free_name(&self, beginning: &str) -> String {
        let names = (1..u32::MAX).map(|number| numbered(beginning, number));
        let mut free = names.filter(|name| !self.open.contains_key(name));
        free.next().unwrap_or_else(|| beginning.to_owned())
    }

    pub(in crate::gateway) fn take(&mut self, name: &str) -> Option<TcpListener> {
        let kept = self.left.remove(name)?;
        let listener = kept.listener.try_clone().ok()?;
        self.open.insert(name.to_owned(), kept);
        Some(listener)
    }

    /// Adds a port: returns its name and record for the keeper, or `None` if the keeper has it.
    pub(in crate::gateway) fn add(
        &mut self,
        name: &str,
        listener: &TcpListener,
    ) -> io::Result<Option<(FlowId, SocketRecord)>> {
        if self.open.contains_key(name) {
            return Ok(None);
        }
        // Flows' names are random: none begins with eight zeros.
        let number = |n: u64| FlowId((u128::from(n)).to_be_bytes());
        let is_used = |id: &FlowId| {
            let all = self.open.values().chain(self.left.values());
            all.into_iter().any(|kept| kept.id == *id)
        };
        let id = (1..=u64::MAX).map(number).find(|id| !is_used(id));
        let id = id.ok_or_else(|| io::Error::other("too many ports"))?;
        let listener = listener.try_clone()?;
        self.open.insert(name.to_owned(), KeptPort { id, listener });
        Ok(Some((id, record(name))))
    }

    pub(in crate::gateway) fn remove(&mut self, name: &str) -> Option<FlowId> {
        self.open.remove(name).map(|kept| kept.id)
    }

    /// The keeper's name for an open port.
    pub(in crate::gateway) fn id(&self, name: &str) -> Option<FlowId> {
        self.open.get(name).map(|kept| kept.id)
    }

    /// Takes out the clients that the gateway before had accepted, each with its port's name.
    pub(in crate::gateway) fn take_clients(
        &mut self,
    ) -> impl Iterator<Item = (String, AcceptedClient)> + use<> {
        let clients = core::mem::take(&mut self.clients).into_iter();
        clients.map(|client| (client.port, client.accepted))
    }

    /// Takes out the ports of the gateway before that are not among `names`.
    pub(super) fn take_others(&mut self, names: &[String]) -> Vec<FlowId> {
        let left = core::mem::take(&mut self.left);
        let (wanted, others): (BTreeMap<_, _>, BTreeMap<_, _>) =
            left.into_iter().partition(|(name, _)| names.contains(name));
        self.left = wanted;
        others.into_values().map(|kept| kept.id).collect()
    }

    /// Everything, for another keeper.
    pub(in crate::gateway) fn all(&self) -> Vec<(FlowId, TcpListener, SocketRecord)> {
        let copy = |(name, kept): (&String, &KeptPort)| {
            Some((kept.id, kept.listener.try_clone().ok()?, record(name)))
        };
        self.open.iter().filter_map(copy).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listener() -> TcpListener {
        TcpListener::bind(("127.0.0.1", 0)).unwrap()
    }

    #[test]
    fn entries_at_any_port_have_a_name_each_and_find_their_own_again() {
        let beginnings = || ["any", "any", "8080", "any"].into_iter().map(str::to_owned);
        assert_eq!(each(beginnings()), ["any", "any 2", "8080", "any 3"]);
        let listeners: Vec<TcpListener> = (0..4).map(|_| listener()).collect();
        let mut ports = KeptPorts::default();
        let mut taken = Vec::new();
        for (beginning, listener) in beginnings().zip(&listeners) {
            let name = ports.free_name(&beginning);
            let (flow, record) = ports
                .add(&name, listener)
                .unwrap()
                .expect("a port of its own");
            taken.push(TakenSocket {
                flow,
                record,
                socket: std::net::TcpStream::from(OwnedFd::from(listener.try_clone().unwrap())),
            });
        }
        let mut next = KeptPorts::default();
        assert!(next.take_over(taken).is_empty());
        assert!(next.take_others(&each(beginnings())).is_empty());
        for (beginning, listener) in beginnings().zip(&listeners) {
            let name = next.free_name(&beginning);
            let found = next.take(&name).expect("it was kept");
            assert_eq!(found.local_addr().unwrap(), listener.local_addr().unwrap());
        }
        // One that is over leaves the others alone.
        assert!(next.remove("any").is_some());
        assert!(next.open.contains_key("any 2"));
        assert_eq!(next.free_name("any"), "any");
    }
}
