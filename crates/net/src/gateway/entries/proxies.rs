//! SOCKS clients' UDP associations: the relays, and the flows behind them.

use super::association::{Association, DESTINATIONS_MAX};
use super::clients::Wish;
use super::entry::Rule;
use super::socks::{codec, take_out};
use crate::gateway::Link;
use crate::gateway::config::{ClassRules, Dscp};
use crate::gateway::flows::{
    Body, Client, MESSAGES_PER_TURN, Messages, NewFlow, Newcomer, Party, Permit,
};
use crate::gateway::running::{Ending, Running, Target};
use crate::gateway::sockets::Token;
use fulmar_proto::splice::{Destination, FlowClass, FlowId, FlowKind, Role};
use fulmar_proto::units::Instant;
use std::io::{ErrorKind, Write};
use std::net::TcpStream;

impl Running {
    pub(in crate::gateway) fn class(
        &self,
        rules: &ClassRules,
        port: u16,
        dscp: Option<Dscp>,
    ) -> FlowClass {
        let index = rules.choose(port, dscp);
        let settings = self
            .config
            .classes
            .get(index)
            .or(self.config.classes.first());
        settings.map(|settings| settings.flow).unwrap_or_default()
    }

    /// Makes a relay for a client. The first `ahead` octets in the client's socket are its request.
    pub(in crate::gateway) fn associate(
        &mut self,
        now: Instant,
        rule: &Rule,
        (control, ahead, permit): (TcpStream, usize, Permit),
    ) {
        let class = self.class(&rule.udp_classes, 0, None);
        let token = self.token(Target::Negotiation);
        self.targets.insert(token, Target::Association(token));
        let made = Association::new(control, permit, class).and_then(|association| {
            self.poller.rename(association.control(), token)?;
            self.poller.watch_level(association.relay(), token)?;
            let bound = association.relay().local_addr()?;
            let reply = codec::reply(codec::Reply::Succeeded, bound);
            association.control().write_all(&reply)?;
            take_out(association.control(), ahead)?;
            Ok(association)
        });
        match made {
            Ok(association) => {
                let newcomer = Newcomer::Association(token);
                association.permit.belongs_to(newcomer);
                self.associations.insert(token, association);
            }
            Err(error) => {
                self.targets.remove(&token);
                if let Some(skipped) = self.repeats.may(now, "associate") {
                    tracing::warn!(event = "association_failed", %error, skipped);
                }
            }
        }
    }

    pub(in crate::gateway) fn association_ready(
        &mut self,
        now: Instant,
        link: &mut Link,
        token: Token,
    ) {
        let mut buffer = core::mem::take(&mut self.scratch);
        for _ in 0..MESSAGES_PER_TURN {
            let Some(association) = self.associations.get_mut(&token) else {
                break;
            };
            match association.receive(&mut buffer) {
                Ok(Some((to, message))) => self.relay(now, link, token, to, message),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                // The datagram is not the client's, or an earlier answer could not be delivered.
                Ok(None) | Err(_) => {}
            }
        }
        self.scratch = buffer;
        self.source_again();
        let is_open = self
            .associations
            .get(&token)
            .is_none_or(Association::is_open);
        if !is_open {
            self.close_association(now, link, token);
        }
    }

    pub(in crate::gateway) fn close_association(
        &mut self,
        now: Instant,
        link: &mut Link,
        token: Token,
    ) {
        if let Some(association) = self.associations.remove(&token) {
            self.targets.remove(&token);
            for id in association.flows.into_values() {
                link.inner_mut().finish(now, id);
                self.drop_flow(now, id, "association_closed", false);
            }
        }
    }

    /// Handles a message of an association's client.
    fn relay(
        &mut self,
        now: Instant,
        link: &mut Link,
        token: Token,
        to: Destination,
        message: &[u8],
    ) {
        let Some(association) = self.associations.get(&token) else {
            return;
        };
        let known = association.flows.get(&to).copied();
        let full = association.flows.len() >= DESTINATIONS_MAX;
        let wish = Wish {
            peer: association.permit.party().peer,
            kind: FlowKind::Datagrams,
            to: to.clone(),
            class: association.class,
        };
        let client = association.permit.client();
        let id = known.or_else(|| {
            if full {
                return None;
            }
            let permit = self.may_open(now, link, wish.peer, client)?;
            let side = (Messages::Association(token), permit);
            let id = self.open_messages(now, link, wish, side)?;
            if let Some(association) = self.associations.get_mut(&token) {
                association.flows.insert(to, id);
            }
            Some(id)
        });
        if let Some(id) = id {
            self.accept_message(now, link, id, message);
        }
    }

    /// Hands a client's message to its flow, towards the far side.
    pub(in crate::gateway) fn accept_message(
        &mut self,
        now: Instant,
        link: &mut Link,
        id: FlowId,
        message: &[u8],
    ) {
        link.inner_mut().accept_datagram(now, id, message);
        if let Some(flow) = self.flows.get_mut(id) {
            flow.moved.0 += message.len() as u64;
            flow.messages += 1;
        }
    }

    /// A place for another datagram flow of a client here.
    pub(in crate::gateway) fn may_open(
        &mut self,
        now: Instant,
        link: &mut Link,
        peer: usize,
        client: Option<Client>,
    ) -> Option<Permit> {
        if self.ending != Ending::No {
            return None;
        }
        let party = Party::new(peer, Role::Opener);
        match self.admit(now, link, party, client) {
            Ok(permit) => Some(permit),
            Err(refusal) => {
                let reason = refusal.name();
                if let Some(skipped) = self.repeats.may(now, reason) {
                    tracing::warn!(event = "client_turned_away", reason, skipped);
                }
                None
            }
        }
    }

    pub(in crate::gateway) fn open_messages(
        &mut self,
        now: Instant,
        link: &mut Link,
        wish: Wish,
        (side, permit): (Messages, Permit),
    ) -> Option<FlowId> {
        let id = self.open(now, link, &wish)?;
        let new = NewFlow {
            kind: wish.kind,
            peer: wish.peer,
            class: wish.class,
            destination: wish.to,
            proxied: false,
            entered: true,
            body: Body::Messages(side),
            token: None,
            permit,
        };
        self.flows.insert(now, id, new);
        self.opened(now, link, id);
        Some(id)
    }
}
