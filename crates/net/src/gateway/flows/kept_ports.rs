//! Listening TCP ports that the keeper has as well. A client that connects while the gateway is killed and
//! started again then waits, and is neither refused nor reset.
//!
//! Without the keeper, the kernel closes a dead gateway's port and resets every connection there that it had
//! set up and the gateway had not accepted. Its client may have sent a request already.

use crate::gateway::GatewayError;
use crate::gateway::entries::{Entry, Port, Rule, entry};
use crate::gateway::running::Running;
use crate::keeper::{Accepted, Baseline, SocketRecord, Taken};
use crate::wait::{Interest, wait};
use fulmar_proto::splice::{FlowId, Role};
use std::collections::BTreeMap;
use std::io;
use std::net::TcpListener;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Duration;

/// The beginning of a port's note; no flow's note begins so.
const NOTE: &[u8] = b"port ";
/// The beginning of the note of a client that was accepted at a port, and has no flow yet.
const CLIENT_NOTE: &[u8] = b"client of ";

/// The looks for a busy keeper to forget a port, which takes it less than a second.
const FORGETTING_LOOKS: u32 = 100;
const FORGETTING_PAUSE: Duration = Duration::from_millis(10);

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
    accepted: Accepted,
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
pub(in crate::gateway) fn client_record(port: &str) -> SocketRecord {
    let note = [CLIENT_NOTE, port.as_bytes()].concat();
    SocketRecord {
        note,
        ..record(port)
    }
}

impl KeptPorts {
    /// Takes the ports out of what the keeper had, and returns the flows' sockets.
    pub(in crate::gateway) fn take_over(&mut self, all: Vec<Taken>) -> Vec<Taken> {
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
                let accepted = Accepted { client, socket };
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
    pub(in crate::gateway) fn free_name(&self, beginning: &str) -> String {
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
    ) -> impl Iterator<Item = (String, Accepted)> + use<> {
        let clients = core::mem::take(&mut self.clients).into_iter();
        clients.map(|client| (client.port, client.accepted))
    }

    /// Takes out the ports of the gateway before that are not among `names`.
    pub(in crate::gateway) fn take_others(&mut self, names: &[String]) -> Vec<FlowId> {
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

impl Running {
    /// Opens an entry, at the port of the gateway before if the keeper has it; `opened` is an entry that could
    /// be opened before.
    pub(in crate::gateway) fn open_entry(
        &mut self,
        rule: Rule,
        opened: Option<Entry>,
    ) -> Result<Entry, GatewayError> {
        let beginning = rule.port_name();
        let name = beginning.map(|beginning| self.keeping.free_port_name(&beginning));
        let kept = name
            .as_deref()
            .and_then(|name| self.keeping.take_port(name));
        let opened = match (kept, opened) {
            (Some(listener), _) => {
                let listen = rule.listen;
                entry::reopen(rule, listener).map_err(|source| GatewayError::Listen {
                    what: "entry",
                    listen,
                    source,
                })
            }
            (None, Some(entry)) => Ok(entry),
            (None, None) => self.open_new(rule),
        };
        match opened {
            Ok(entry) => Ok(Entry {
                kept: name,
                ..entry
            }),
            Err(error) => {
                if let Some(name) = &name {
                    self.keeping.forget_port(name);
                }
                Err(error)
            }
        }
    }

    /// Gives an entry's port to the keeper, if it does not have it.
    pub(in crate::gateway) fn keep_port(&mut self, entry: &Entry) {
        if let (Some(name), Port::Tcp(listener)) = (&entry.kept, &entry.port) {
            self.keeping.keep_port(name, listener);
        }
    }

    /// Opens an entry at a port that nobody keeps. A keeper that was told to forget a port at an overlapping address
    /// does
    /// so a moment later.
    fn open_new(&self, rule: Rule) -> Result<Entry, GatewayError> {
        for _ in 0..FORGETTING_LOOKS {
            match entry::open(rule.clone()) {
                Err(GatewayError::Listen { source, .. })
                    if source.kind() == io::ErrorKind::AddrInUse && self.keeping.has_keeper() =>
                {
                    let nothing: [(BorrowedFd<'_>, Interest); 0] = [];
                    drop(wait(&nothing, Some(FORGETTING_PAUSE), &mut Vec::new()));
                }
                opened => return opened,
            }
        }
        entry::open(rule)
    }

    /// Closes the port of an entry that is over: no client is to wait there, nor the poller to tell of it while the
    /// keeper
    /// still has it.
    pub(in crate::gateway) fn close_port(&mut self, entry: &Entry) {
        if let Port::Tcp(listener) = &entry.port {
            drop(self.poller.pause(listener));
        }
        if let Some(name) = &entry.kept {
            self.keeping.forget_port(name);
        }
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
            taken.push(Taken {
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
