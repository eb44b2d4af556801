//! The ports of the entries: opened, watched, given to the keeper, and closed.

use super::applicants::LastWord;
use super::entrance::Entries;
use super::entry::{self, Entry, Port, Rule, Way};
use crate::gateway::GatewayError;
use crate::gateway::flows::{ClientKey, Floor, Keeping, Traffic};
use crate::gateway::sockets::{Target, Token};
use crate::wait::{Interest, wait};
use fulmar_proto::splice::FlowId;
use std::io;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// The looks for a busy keeper to forget a port, which takes it less than a second.
const FORGETTING_LOOKS: u32 = 100;
const FORGETTING_PAUSE: Duration = Duration::from_millis(10);

impl Entries {
    /// Opens an entry and watches its port.
    fn add_entry(
        &mut self,
        floor: &mut Floor<'_>,
        traffic: &mut Traffic,
        rule: Rule,
    ) -> Result<SocketAddr, GatewayError> {
        let entry = open_entry(&mut traffic.keeping, rule, None)?;
        self.watch_entry(floor, traffic, entry)
    }

    /// Watches the port of an entry, and gives it to the keeper. No client must wait at a port of which no gateway can
    /// hear.
    pub(in crate::gateway) fn watch_entry(
        &mut self,
        floor: &mut Floor<'_>,
        traffic: &mut Traffic,
        entry: Entry,
    ) -> Result<SocketAddr, GatewayError> {
        match watch_port(floor, &entry) {
            Ok((local, token)) => {
                keep_port(&mut traffic.keeping, &entry);
                self.ports.insert(token, entry);
                Ok(local)
            }
            Err(error) => {
                close_port(floor, &mut traffic.keeping, &entry);
                Err(error)
            }
        }
    }

    /// Opens, changes and closes entries; returns the number that could not be opened.
    pub(in crate::gateway) fn change_entries(
        &mut self,
        floor: &mut Floor<'_>,
        traffic: &mut Traffic,
        rules: Vec<Rule>,
    ) -> usize {
        let mut old = core::mem::take(&mut self.ports);
        let mut unopened = 0;
        for rule in rules {
            let kept = old
                .iter()
                .find(|(_, entry)| entry.rule.same_socket(&rule))
                .map(|(token, _)| *token);
            if let Some(token) = kept
                && let Some(mut entry) = old.remove(&token)
            {
                entry.rule = rule;
                self.ports.insert(token, entry);
            } else if let Err(error) = self.add_entry(floor, traffic, rule) {
                unopened += 1;
                tracing::error!(event = "entry_unopened", %error);
            }
        }
        // Entries that are left have no rule any more; their datagram flows speak through them.
        for (token, entry) in old {
            floor.sockets.forget(token);
            close_port(floor, &mut traffic.keeping, &entry);
            let of_port = |key: &ClientKey| key.port == token;
            let orphans: Vec<FlowId> = traffic
                .clients
                .iter()
                .filter(|(key, _)| of_port(key))
                .map(|(_, id)| *id)
                .collect();
            for id in orphans {
                floor.link.inner_mut().finish(floor.now, id);
                traffic.drop_flow(floor, id, "entry_closed", false);
            }
        }
        unopened
    }

    /// Closes all ports, and lets those go that have no flow.
    pub(in crate::gateway) fn close(&mut self, floor: &mut Floor<'_>, traffic: &mut Traffic) {
        self.is_closed = true;
        for (token, entry) in core::mem::take(&mut self.ports) {
            floor.sockets.forget(token);
            close_port(floor, &mut traffic.keeping, &entry);
        }
        let applicants: Vec<Token> = self.applicants.keys().copied().collect();
        for token in applicants {
            self.end_applicant(floor, traffic, token, LastWord::End);
        }
    }
}

fn watch_port(floor: &mut Floor<'_>, entry: &Entry) -> Result<(SocketAddr, Token), GatewayError> {
    let listen = entry.rule.listen;
    let wrong = |source| GatewayError::Listen {
        what: "entry",
        listen,
        source,
    };
    let local = entry.local().map_err(wrong)?;
    let token = floor.sockets.token(Target::Entry);
    let watched = match &entry.port {
        Port::Tcp(listener) => floor.sockets.poller.watch_level(listener, token),
        Port::Udp(socket) => floor.sockets.poller.watch_level(socket, token),
    };
    if let Err(error) = watched {
        floor.sockets.forget(token);
        return Err(wrong(error));
    }
    tracing::info!(
        event = "listening",
        protocol = entry.rule.protocol.name(),
        %local,
        way = entry.rule.way.name(),
        peer = floor.config.peer_name(entry.rule.peer),
    );
    if entry.rule.way == Way::Socks(None) && !local.ip().to_canonical().is_loopback() {
        tracing::warn!(
            event = "open_proxy",
            %local,
            "whoever reaches this SOCKS port can use it; write user and password_file, or \
             listen at 127.0.0.1"
        );
    }
    Ok((local, token))
}

/// Opens an entry, at the port of the gateway before if the keeper has it; `opened` is an entry that could
/// be opened before.
pub(in crate::gateway) fn open_entry(
    keeping: &mut Keeping,
    rule: Rule,
    opened: Option<Entry>,
) -> Result<Entry, GatewayError> {
    let beginning = rule.port_name();
    let name = beginning.map(|beginning| keeping.free_port_name(&beginning));
    let kept = name.as_deref().and_then(|name| keeping.take_port(name));
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
        (None, None) => open_new(keeping, rule),
    };
    match opened {
        Ok(entry) => Ok(Entry {
            kept: name,
            ..entry
        }),
        Err(error) => {
            if let Some(name) = &name {
                keeping.forget_port(name);
            }
            Err(error)
        }
    }
}

/// Gives an entry's port to the keeper, if it does not have it.
fn keep_port(keeping: &mut Keeping, entry: &Entry) {
    if let (Some(name), Port::Tcp(listener)) = (&entry.kept, &entry.port) {
        keeping.keep_port(name, listener);
    }
}

/// Opens an entry at a port that nobody keeps. A keeper that was told to forget a port at an overlapping address does
/// so a moment later.
fn open_new(keeping: &Keeping, rule: Rule) -> Result<Entry, GatewayError> {
    for _ in 0..FORGETTING_LOOKS {
        match entry::open(rule.clone()) {
            Err(GatewayError::Listen { source, .. })
                if source.kind() == io::ErrorKind::AddrInUse && keeping.has_keeper() =>
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
/// keeper still has it.
fn close_port(floor: &Floor<'_>, keeping: &mut Keeping, entry: &Entry) {
    if let Port::Tcp(listener) = &entry.port {
        drop(floor.sockets.poller.pause(listener));
    }
    if let Some(name) = &entry.kept {
        keeping.forget_port(name);
    }
}
