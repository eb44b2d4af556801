//! UDP clients of forwarded and transparent ports: one flow for each client and destination.

use super::clients::Wish;
use super::entry::{Port, Rule, Way};
use crate::gateway::Link;
use crate::gateway::flows::{Body, ClientKey, Flow, MESSAGES_PER_TURN, Messages};
use crate::gateway::running::{Running, Target};
use crate::gateway::sockets::{MESSAGE_MAX, Received, Token, packets};
use fulmar_proto::splice::{Destination, FlowId, FlowKind};
use fulmar_proto::units::Instant;
use std::io::ErrorKind;
use std::net::SocketAddr;

impl Running {
    pub(in crate::gateway) fn entry_datagrams(
        &mut self,
        now: Instant,
        link: &mut Link,
        token: Token,
    ) {
        let mut buffer = core::mem::take(&mut self.scratch);
        for _ in 0..MESSAGES_PER_TURN {
            let Some(entry) = self.entries.get(&token) else {
                break;
            };
            let Port::Udp(socket) = &entry.port else {
                break;
            };
            match packets::receive(socket, &mut buffer[..MESSAGE_MAX]) {
                Ok(received) => {
                    if let Some(id) = self.client_flow(now, link, token, received) {
                        self.accept_message(now, link, id, &buffer[..received.len]);
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                // An earlier answer could not be delivered.
                Err(_) => {}
            }
        }
        self.scratch = buffer;
        self.source_again();
    }

    /// The flow of the client that sent a datagram to entry `token`.
    fn client_flow(
        &mut self,
        now: Instant,
        link: &mut Link,
        token: Token,
        received: Received,
    ) -> Option<FlowId> {
        let rule = &self.entries.get(&token)?.rule;
        let original = match rule.way {
            Way::Transparent => Some(received.original?),
            Way::Forward(_) | Way::Socks(_) => None,
        };
        let key = ClientKey {
            port: token,
            client: received.from,
            original,
            here: received.here,
        };
        if let Some(id) = self.clients.get(&key) {
            return Some(*id);
        }
        let to = destination(rule, original)?;
        let wish = Wish {
            peer: rule.peer,
            kind: FlowKind::Datagrams,
            class: self.class(&rule.classes, to.port, received.dscp),
            to,
        };
        let client = Some(received.from.ip().into());
        let permit = self.may_open(now, link, wish.peer, client)?;
        let side = match original {
            None => Messages::Entry {
                port: token,
                client: received.from,
                here: received.here,
            },
            Some(original) => match packets::speak_as(original, received.from) {
                Ok(socket) => Messages::Own(socket),
                Err(error) => {
                    if let Some(skipped) = self.repeats.may(now, "speak_as") {
                        tracing::warn!(event = "foreign_address", %error, skipped);
                    }
                    return None;
                }
            },
        };
        let id = self.open_messages(now, link, wish, (side, permit))?;
        self.watch_own(id);
        if let Some(flow) = self.flows.get_mut(id) {
            flow.client = Some(key);
        }
        self.clients.insert(key, id);
        Some(id)
    }

    /// Watches the socket of a flow that has one of its own.
    fn watch_own(&mut self, id: FlowId) {
        let is_own = |flow: &Flow| matches!(flow.body, Body::Messages(Messages::Own(_)));
        if !self.flows.get_mut(id).is_some_and(|flow| is_own(flow)) {
            return;
        }
        let token = self.token(Target::Flow(id));
        let Some(flow) = self.flows.get_mut(id) else {
            return;
        };
        flow.token = Some(token);
        if let Body::Messages(Messages::Own(socket)) = &flow.body
            && let Err(error) = self.poller.watch_edges(socket, token)
        {
            tracing::warn!(event = "poll_failed", %error);
        }
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
        Way::Socks(_) => None,
    }
}
