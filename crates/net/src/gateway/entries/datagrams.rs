//! UDP clients of forwarded and transparent ports: one flow for each client and destination.

use super::entrance::Entries;
use super::entry::{Entry, Port, Rule, Way};
use super::proxies::class;
use crate::gateway::flows::{
    Answers, Body, ClientKey, Floor, Flow, MESSAGES_PER_TURN, Messages, Traffic,
};
use crate::gateway::sockets::{Here, MESSAGE_MAX, Received, Target, Token, packets};
use fulmar_proto::splice::{Destination, FlowId, FlowKind};
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::rc::{Rc, Weak};

/// The way back to a client of a forwarded port, for as long as the port is open.
#[derive(Debug)]
struct WayBack {
    port: Weak<UdpSocket>,
    client: SocketAddr,
    /// The address that it asked, at a port of all of them.
    here: Option<Here>,
}

impl Answers for WayBack {
    fn answer(&self, _source: &Destination, message: &[u8]) {
        if let Some(socket) = self.port.upgrade() {
            // A message that a full socket does not take is lost, as a router would lose it.
            drop(packets::answer(&socket, self.here, self.client, message));
        }
    }
}

impl Entries {
    pub(super) fn entry_datagrams(
        &mut self,
        floor: &mut Floor<'_>,
        traffic: &mut Traffic,
        token: Token,
    ) {
        let mut buffer = core::mem::take(&mut traffic.scratch);
        for _ in 0..MESSAGES_PER_TURN {
            let Some(entry) = self.ports.get(&token) else {
                break;
            };
            let Port::Udp(socket) = &entry.port else {
                break;
            };
            match packets::receive(socket, &mut buffer[..MESSAGE_MAX]) {
                Ok(received) => {
                    if let Some(id) = self.client_flow(floor, traffic, token, received) {
                        traffic.accept_message(floor, id, &buffer[..received.len]);
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                // An earlier answer could not be delivered.
                Err(_) => {}
            }
        }
        traffic.scratch = buffer;
        floor.sockets.look_again();
    }

    /// The flow of the client that sent a datagram to entry `token`.
    fn client_flow(
        &mut self,
        floor: &mut Floor<'_>,
        traffic: &mut Traffic,
        token: Token,
        received: Received,
    ) -> Option<FlowId> {
        let Entry { rule, port, .. } = self.ports.get(&token)?;
        let Port::Udp(socket) = port else {
            return None;
        };
        let original = match rule.way {
            Way::Transparent => Some(received.original?),
            Way::Forward(_) | Way::Socks(_) | Way::Accelerated(_) => None,
        };
        let key = ClientKey {
            port: token,
            client: received.from,
            original,
            here: received.here,
        };
        if let Some(id) = traffic.clients.get(&key) {
            return Some(*id);
        }
        let to = destination(rule, original)?;
        let class = class(floor.config, &rule.classes, to.port, received.dscp);
        let wish = rule.wish(FlowKind::Datagrams, to, class)?;
        let port = Rc::downgrade(socket);
        let client = Some(received.from.ip().into());
        let permit = self.may_open(floor, traffic, wish.peer, client)?;
        let side = match original {
            None => Messages::Shared(Box::new(WayBack {
                port,
                client: received.from,
                here: received.here,
            })),
            Some(original) => match packets::speak_as(original, received.from) {
                Ok(socket) => Messages::Own(socket),
                Err(error) => {
                    if let Some(skipped) = floor.repeats.may(floor.now, "speak_as") {
                        tracing::warn!(event = "foreign_address", %error, skipped);
                    }
                    return None;
                }
            },
        };
        let id = traffic.open_messages(floor, wish, (side, permit))?;
        watch_own(floor, traffic, id);
        if let Some(flow) = traffic.flows.get_mut(id) {
            flow.client = Some(key);
        }
        traffic.clients.insert(key, id);
        Some(id)
    }
}

/// Watches the socket of a flow that has one of its own.
fn watch_own(floor: &mut Floor<'_>, traffic: &mut Traffic, id: FlowId) {
    let is_own = |flow: &Flow| matches!(flow.body, Body::Messages(Messages::Own(_)));
    if !traffic.flows.get_mut(id).is_some_and(|flow| is_own(flow)) {
        return;
    }
    let token = floor.sockets.token(Target::Flow(id));
    let Some(flow) = traffic.flows.get_mut(id) else {
        return;
    };
    flow.token = Some(token);
    if let Body::Messages(Messages::Own(socket)) = &flow.body
        && let Err(error) = floor.sockets.poller.watch_edges(socket, token)
    {
        tracing::warn!(event = "poll_failed", %error);
    }
}

/// The destination of a client's datagrams.
fn destination(rule: &Rule, original: Option<SocketAddr>) -> Option<Destination> {
    match &rule.way {
        Way::Forward(to) => Some(to.clone()),
        Way::Transparent => {
            let original = original?;
            let ip = original.ip().to_canonical();
            Some(SocketAddr::new(ip, original.port()).into())
        }
        Way::Socks(_) | Way::Accelerated(_) => None,
    }
}
