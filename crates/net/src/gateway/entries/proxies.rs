//! SOCKS clients' UDP associations: the relays, and the flows behind them.

use super::association::{Association, DESTINATIONS_MAX};
use super::entrance::Entries;
use super::entry::{self, Rule};
use super::socks::{codec, take_out};
use crate::gateway::config::{ClassRules, Dscp, GatewayConfig};
use crate::gateway::flows::{
    Client, Floor, MESSAGES_PER_TURN, Messages, Newcomer, Party, Permit, Traffic,
};
use crate::gateway::sockets::{Target, Token};
use fulmar_proto::splice::{Destination, FlowClass, FlowKind, Role};
use std::io::{ErrorKind, Write};
use std::net::TcpStream;

/// The class that `rules` give to datagrams to `port`.
pub(super) fn class(
    config: &GatewayConfig,
    rules: &ClassRules,
    port: u16,
    dscp: Option<Dscp>,
) -> FlowClass {
    let index = rules.choose(port, dscp);
    let settings = config.classes.get(index).or(config.classes.first());
    settings.map(|settings| settings.flow).unwrap_or_default()
}

impl Entries {
    /// Makes a relay for a client. The first `ahead` octets in the client's socket are its request.
    pub(super) fn associate(
        &mut self,
        floor: &mut Floor<'_>,
        rule: &Rule,
        (control, ahead, permit): (TcpStream, usize, Permit),
    ) {
        let class = class(floor.config, &rule.udp_classes, 0, None);
        let token = floor.sockets.token_for(Target::Association);
        let made = Association::new(control, permit, (class, rule.beyond.clone())).and_then(
            |association| {
                floor.sockets.poller.rename(association.control(), token)?;
                floor
                    .sockets
                    .poller
                    .watch_level(association.relay(), token)?;
                let bound = association.relay().local_addr()?;
                let reply = codec::reply(codec::Reply::Succeeded, bound);
                association.control().write_all(&reply)?;
                take_out(association.control(), ahead)?;
                Ok(association)
            },
        );
        match made {
            Ok(association) => {
                let newcomer = Newcomer::Association(token);
                association.permit.belongs_to(newcomer);
                self.associations.insert(token, association);
            }
            Err(error) => {
                floor.sockets.forget(token);
                if let Some(skipped) = floor.repeats.may(floor.now, "associate") {
                    tracing::warn!(event = "association_failed", %error, skipped);
                }
            }
        }
    }

    pub(in crate::gateway) fn association_ready(
        &mut self,
        floor: &mut Floor<'_>,
        traffic: &mut Traffic,
        token: Token,
    ) {
        let mut buffer = core::mem::take(&mut traffic.scratch);
        for _ in 0..MESSAGES_PER_TURN {
            let Some(association) = self.associations.get_mut(&token) else {
                break;
            };
            match association.receive(&mut buffer) {
                Ok(Some((to, message))) => self.relay(floor, traffic, token, to, message),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                // The datagram is not the client's, or an earlier answer could not be delivered.
                Ok(None) | Err(_) => {}
            }
        }
        traffic.scratch = buffer;
        floor.sockets.look_again();
        let is_open = self
            .associations
            .get(&token)
            .is_none_or(Association::is_open);
        if !is_open {
            self.close_association(floor, traffic, token);
        }
    }

    pub(super) fn close_association(
        &mut self,
        floor: &mut Floor<'_>,
        traffic: &mut Traffic,
        token: Token,
    ) {
        if let Some(association) = self.associations.remove(&token) {
            floor.sockets.forget(token);
            let flows = traffic.relayed.remove(&token).unwrap_or_default();
            for id in flows.into_values() {
                floor.link.inner_mut().finish(floor.now, id);
                traffic.drop_flow(floor, id, "association_closed", false);
            }
            // Its place is free when its flows are over.
            drop(association);
        }
    }

    /// Handles a message of an association's client.
    fn relay(
        &mut self,
        floor: &mut Floor<'_>,
        traffic: &mut Traffic,
        token: Token,
        to: Destination,
        message: &[u8],
    ) {
        let Some(association) = self.associations.get(&token) else {
            return;
        };
        let way = (association.permit.party().peer, &association.beyond[..]);
        let wish = entry::wish(way, FlowKind::Datagrams, to, association.class);
        let Some(wish) = wish else {
            return;
        };
        let to = wish.to.clone();
        let relayed = traffic.relayed.get(&token);
        let known = relayed.and_then(|flows| flows.get(&to)).copied();
        let full = relayed.is_some_and(|flows| flows.len() >= DESTINATIONS_MAX);
        let way_back = if known.is_none() {
            association.way_back()
        } else {
            None
        };
        let client = association.permit.client();
        let id = known.or_else(|| {
            if full {
                return None;
            }
            let permit = self.may_open(floor, traffic, wish.peer, client)?;
            let side = (Messages::Shared(Box::new(way_back?)), permit);
            let id = traffic.open_messages(floor, wish, side)?;
            if let Some(flow) = traffic.flows.get_mut(id) {
                flow.association = Some(token);
            }
            traffic.relayed.entry(token).or_default().insert(to, id);
            Some(id)
        });
        if let Some(id) = id {
            traffic.accept_message(floor, id, message);
        }
    }

    /// A place for another datagram flow of a client here.
    pub(super) fn may_open(
        &mut self,
        floor: &mut Floor<'_>,
        traffic: &mut Traffic,
        peer: usize,
        client: Option<Client>,
    ) -> Option<Permit> {
        if self.is_closed {
            return None;
        }
        let party = Party::new(peer, Role::Opener);
        match self.admit(floor, traffic, (party, client)) {
            Ok(permit) => Some(permit),
            Err(refusal) => {
                let reason = refusal.name();
                if let Some(skipped) = floor.repeats.may(floor.now, reason) {
                    tracing::warn!(event = "client_turned_away", reason, skipped);
                }
                None
            }
        }
    }
}
