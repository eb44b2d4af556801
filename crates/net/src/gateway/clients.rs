//! Clients coming in: connections accepted, datagrams of entries and associations, proxies' talk.

use super::association::{Association, DESTINATIONS_MAX};
use super::config::{ClassRules, Dscp};
use super::entry::{Port, Rule, Way};
use super::flow::{Body, Flow, Messages, NewFlow};
use super::kernel;
use super::packets::{self, MESSAGE_MAX, Received};
use super::poller::Token;
use super::running::{ACCEPT_PAUSE, Applicant, Ending, Link, NEGOTIATION_MAX, Running, Target};
use super::socks::{Negotiation, Step, codec, no_address};
use super::stream::Stream;
use super::turns::MESSAGES_PER_TURN;
use fulmar_proto::machine::PathId;
use fulmar_proto::splice::{Destination, FlowClass, FlowId, FlowKind};
use fulmar_proto::units::Instant;
use socket2::SockRef;
use std::io::{ErrorKind, Write};
use std::net::{SocketAddr, TcpStream};

/// Connections accepted in one turn.
const ACCEPTS_PER_TURN: usize = 64;

/// The code point of the client's first packet: the kernel tells it of an accepted connection only
/// where it was told to answer with the same (`tcp_reflect_tos`).
fn code_point(stream: &TcpStream) -> Option<Dscp> {
    let tos = SockRef::from(stream).tos_v4().ok()?;
    u8::try_from(tos).ok().map(Dscp::from_tos)
}

/// Whether `address` is one of this host's.
fn is_own(address: SocketAddr) -> bool {
    std::net::UdpSocket::bind((address.ip(), 0)).is_ok()
}

impl Running {
    pub(super) fn entry_ready(&mut self, now: Instant, link: &mut Link, token: Token) {
        let Some(entry) = self.entries.get(&token) else {
            return;
        };
        match &entry.port {
            Port::Tcp(_) => self.accept(now, link, token),
            Port::Udp(_) => self.entry_datagrams(now, link, token),
        }
    }

    fn accept(&mut self, now: Instant, link: &mut Link, token: Token) {
        for _ in 0..ACCEPTS_PER_TURN {
            let Some(entry) = self.entries.get(&token) else {
                return;
            };
            let Port::Tcp(listener) = &entry.port else {
                return;
            };
            let rule = entry.rule.clone();
            match listener.accept() {
                Ok((stream, _)) => {
                    if kernel::prepare(&stream).is_ok() {
                        self.arrived(now, link, &rule, stream);
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                // The client has left already, or a signal came.
                Err(error)
                    if matches!(
                        error.kind(),
                        ErrorKind::ConnectionAborted | ErrorKind::Interrupted
                    ) => {}
                Err(error) => {
                    if let Some(skipped) = self.repeats.may(now, "accept") {
                        tracing::error!(event = "accept_failed", %error, skipped);
                    }
                    return self.rest(now, token);
                }
            }
        }
        // Levels say again that more wait.
        self.source_again();
    }

    /// Lets an entry alone for a while: the system is short of something.
    fn rest(&mut self, now: Instant, token: Token) {
        if let Some(entry) = self.entries.get(&token)
            && let Port::Tcp(listener) = &entry.port
        {
            drop(self.poller.pause(listener));
        }
        let (_, tokens) = self.resting.get_or_insert((now + ACCEPT_PAUSE, Vec::new()));
        tokens.push(token);
    }

    pub(super) fn end_rest(&mut self, now: Instant) {
        if self.resting.as_ref().is_none_or(|(until, _)| now < *until) {
            return;
        }
        for token in self
            .resting
            .take()
            .map(|(_, tokens)| tokens)
            .into_iter()
            .flatten()
        {
            if let Some(entry) = self.entries.get(&token)
                && let Port::Tcp(listener) = &entry.port
            {
                drop(self.poller.resume(listener, token));
            }
        }
    }

    /// A TCP client is here.
    fn arrived(&mut self, now: Instant, link: &mut Link, rule: &Rule, stream: TcpStream) {
        if self.flows.len() + self.applicants.len() >= self.config.limits.flows {
            self.turn_away(now, "too_many_flows", stream);
            return;
        }
        match &rule.way {
            Way::Forward(to) => {
                let class = rule.classes.choose(to.port, code_point(&stream));
                self.open_stream(now, link, rule.peer, class, to.clone(), stream);
            }
            Way::Transparent => match stream.local_addr() {
                Ok(original) => {
                    let to = SocketAddr::new(original.ip().to_canonical(), original.port());
                    if to.port() == rule.listen.port() && is_own(to) {
                        // Not diverted: connected to us directly, which would go round in circles.
                        return self.turn_away(now, "not_diverted", stream);
                    }
                    let class = rule.classes.choose(to.port(), code_point(&stream));
                    self.open_stream(now, link, rule.peer, class, to.into(), stream);
                }
                Err(_) => kernel::reset(stream),
            },
            Way::Socks(credentials) => {
                let token = self.token(Target::Negotiation);
                if self.poller.watch_edges(&stream, token).is_err() {
                    return self.turn_away(now, "no_descriptor", stream);
                }
                let applicant = Applicant {
                    negotiation: Negotiation::new(stream, credentials.clone()),
                    rule: rule.clone(),
                    since: now,
                };
                self.applicants.insert(token, applicant);
                self.applicant_ready(now, link, token);
            }
        }
    }

    fn turn_away(&mut self, now: Instant, reason: &'static str, stream: TcpStream) {
        if let Some(skipped) = self.repeats.may(now, reason) {
            tracing::warn!(event = "client_turned_away", reason, skipped);
        }
        kernel::reset(stream);
    }

    #[expect(clippy::too_many_arguments, reason = "what a flow is made of")]
    fn open(
        &mut self,
        now: Instant,
        link: &mut Link,
        peer: usize,
        kind: FlowKind,
        to: &Destination,
        class: FlowClass,
    ) -> Option<FlowId> {
        self.apply_rate(now, link, peer);
        let path = PathId(u32::try_from(peer).unwrap_or(u32::MAX));
        match link.inner_mut().open(now, path, kind, to.clone(), class) {
            Ok(id) => Some(id),
            Err(error) => {
                if let Some(skipped) = self.repeats.may(now, "open") {
                    tracing::warn!(event = "flow_not_opened", destination = %to, %error, skipped);
                }
                None
            }
        }
    }

    #[expect(clippy::too_many_arguments, reason = "what a flow is made of")]
    fn open_stream(
        &mut self,
        now: Instant,
        link: &mut Link,
        peer: usize,
        class: usize,
        to: Destination,
        stream: TcpStream,
    ) {
        let Some(id) = self.new_stream(now, link, peer, class, to, stream, None) else {
            return;
        };
        // At once: what the client has sent already travels with the opening.
        self.turn(now, link, id);
    }

    /// Opens a flow for a client; a proxy's client is kept waiting with what it sent `early`.
    #[expect(clippy::too_many_arguments, reason = "what a flow is made of")]
    fn new_stream(
        &mut self,
        now: Instant,
        link: &mut Link,
        peer: usize,
        class: usize,
        to: Destination,
        stream: TcpStream,
        early: Option<Vec<u8>>,
    ) -> Option<FlowId> {
        let settings = self.config.classes.get(class)?.clone();
        let proxied = early.is_some();
        let Some(id) = self.open(now, link, peer, FlowKind::Stream, &to, settings.flow) else {
            if proxied {
                let reply = codec::reply(codec::Reply::GeneralFailure, no_address());
                drop((&stream).write(&reply));
            } else {
                kernel::reset(stream);
            }
            return None;
        };
        let token = self.token(Target::Flow(id));
        // A proxy's client is watched already, under another name.
        let watched = if proxied {
            self.poller.rename(&stream, token)
        } else {
            self.poller.watch_edges(&stream, token)
        };
        let mut body = Stream::new(stream, self.custody(&settings));
        if let Some(early) = early {
            body.hold(early);
        }
        let new = NewFlow {
            kind: FlowKind::Stream,
            peer,
            class: settings.flow,
            destination: to,
            proxied,
            body: Body::Stream(body),
            token: Some(token),
        };
        self.flows.insert(now, id, new);
        if watched.is_err() {
            link.inner_mut()
                .reset(now, id, fulmar_proto::splice::ResetCode::Shutdown);
            self.drop_flow(now, id, "no_descriptor", true);
            return None;
        }
        Some(id)
    }

    pub(super) fn applicant_ready(&mut self, now: Instant, link: &mut Link, token: Token) {
        let Some(applicant) = self.applicants.get_mut(&token) else {
            return;
        };
        let step = applicant.negotiation.advance();
        if matches!(step, Step::Wait) {
            return;
        }
        let Some(applicant) = self.applicants.remove(&token) else {
            return;
        };
        self.targets.remove(&token);
        let rule = applicant.rule;
        let stream = applicant.negotiation.into_stream();
        match step {
            Step::Wait => {}
            Step::Failed(reason) => {
                if let Some(skipped) = self.repeats.may(now, "socks_failed") {
                    tracing::info!(event = "socks_failed", reason, skipped);
                }
            }
            Step::Asked(request, early) if request.command == codec::Command::Connect => {
                let to = request.destination;
                let class = rule.classes.choose(to.port, code_point(&stream));
                self.new_stream(now, link, rule.peer, class, to, stream, Some(early));
            }
            Step::Asked(..) => self.associate(now, &rule, stream),
        }
    }

    pub(super) fn expire_applicants(&mut self, now: Instant) {
        let expired = |applicant: &Applicant| now >= applicant.since + NEGOTIATION_MAX;
        let late: Vec<Token> = self
            .applicants
            .iter()
            .filter(|(_, applicant)| expired(applicant))
            .map(|(token, _)| *token)
            .collect();
        for token in late {
            self.targets.remove(&token);
            self.applicants.remove(&token);
        }
    }

    fn class(&self, rules: &ClassRules, port: u16, dscp: Option<Dscp>) -> FlowClass {
        let index = rules.choose(port, dscp);
        let settings = self
            .config
            .classes
            .get(index)
            .or(self.config.classes.first());
        settings.map(|settings| settings.flow).unwrap_or_default()
    }

    fn associate(&mut self, now: Instant, rule: &Rule, control: TcpStream) {
        let class = self.class(&rule.udp_classes, 0, None);
        let made = Association::new(control, rule.peer, class).and_then(|association| {
            let token = self.token(Target::Negotiation);
            self.targets.insert(token, Target::Association(token));
            self.poller.rename(association.control(), token)?;
            self.poller.watch_level(association.relay(), token)?;
            let bound = association.relay().local_addr()?;
            let reply = codec::reply(codec::Reply::Succeeded, bound);
            association.control().write_all(&reply)?;
            Ok((token, association))
        });
        match made {
            Ok((token, association)) => {
                self.associations.insert(token, association);
            }
            Err(error) => {
                if let Some(skipped) = self.repeats.may(now, "associate") {
                    tracing::warn!(event = "association_failed", %error, skipped);
                }
            }
        }
    }

    pub(super) fn association_ready(&mut self, now: Instant, link: &mut Link, token: Token) {
        let mut buffer = core::mem::take(&mut self.scratch);
        for _ in 0..MESSAGES_PER_TURN {
            let Some(association) = self.associations.get_mut(&token) else {
                break;
            };
            match association.receive(&mut buffer) {
                Ok(Some((to, message))) => self.relay(now, link, token, to, message),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                // Nothing for us, or an earlier answer could not be delivered.
                Ok(None) | Err(_) => {}
            }
        }
        self.scratch = buffer;
        self.source_again();
        let is_open = self
            .associations
            .get(&token)
            .is_none_or(Association::is_open);
        if !is_open && let Some(association) = self.associations.remove(&token) {
            self.targets.remove(&token);
            for id in association.flows.into_values() {
                link.inner_mut().finish(now, id);
                self.drop_flow(now, id, "association_closed", false);
            }
        }
    }

    /// A message of an association's client.
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
        let id = if let Some(id) = known {
            id
        } else {
            let full = association.flows.len() >= DESTINATIONS_MAX;
            let (peer, class) = (association.peer, association.class);
            if full || !self.may_open(now) {
                return;
            }
            let body = Messages::Association(token);
            let Some(id) = self.open_messages(now, link, peer, class, to.clone(), body) else {
                return;
            };
            if let Some(association) = self.associations.get_mut(&token) {
                association.flows.insert(to, id);
            }
            id
        };
        self.accept_message(now, link, id, message);
    }

    fn accept_message(&mut self, now: Instant, link: &mut Link, id: FlowId, message: &[u8]) {
        link.inner_mut().accept_datagram(now, id, message);
        if let Some(flow) = self.flows.get_mut(id) {
            flow.moved.0 += message.len() as u64;
        }
    }

    /// Whether there is room for another flow.
    fn may_open(&mut self, now: Instant) -> bool {
        let room = self.flows.len() < self.config.limits.flows && self.ending == Ending::No;
        if !room && let Some(skipped) = self.repeats.may(now, "too_many_flows") {
            tracing::warn!(
                event = "client_turned_away",
                reason = "too_many_flows",
                skipped
            );
        }
        room
    }

    #[expect(clippy::too_many_arguments, reason = "what a flow is made of")]
    fn open_messages(
        &mut self,
        now: Instant,
        link: &mut Link,
        peer: usize,
        class: FlowClass,
        to: Destination,
        side: Messages,
    ) -> Option<FlowId> {
        let id = self.open(now, link, peer, FlowKind::Datagrams, &to, class)?;
        let new = NewFlow {
            kind: FlowKind::Datagrams,
            peer,
            class,
            destination: to,
            proxied: false,
            body: Body::Messages(side),
            token: None,
        };
        self.flows.insert(now, id, new);
        Some(id)
    }

    fn entry_datagrams(&mut self, now: Instant, link: &mut Link, token: Token) {
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
                    let rule = entry.rule.clone();
                    self.entry_message(now, link, token, &rule, received, &buffer);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                // An earlier answer could not be delivered.
                Err(_) => {}
            }
        }
        self.scratch = buffer;
        self.source_again();
    }

    #[expect(clippy::too_many_arguments, reason = "the fields of one arrival")]
    fn entry_message(
        &mut self,
        now: Instant,
        link: &mut Link,
        token: Token,
        rule: &Rule,
        received: Received,
        buffer: &[u8],
    ) {
        let message = &buffer[..received.len];
        let original = match rule.way {
            Way::Transparent => received.original,
            _ => None,
        };
        let key = (token, received.from, original);
        let id = if let Some(id) = self.clients.get(&key).copied() {
            id
        } else {
            if !self.may_open(now) {
                return;
            }
            let to = match (&rule.way, original) {
                (Way::Forward(to), _) => to.clone(),
                (_, Some(original)) => {
                    SocketAddr::new(original.ip().to_canonical(), original.port()).into()
                }
                _ => return,
            };
            let class = self.class(&rule.classes, to.port, received.dscp);
            let side = match original {
                None => Messages::Entry {
                    port: token,
                    client: received.from,
                },
                Some(original) => match packets::speak_as(original, received.from) {
                    Ok(socket) => Messages::Own(socket),
                    Err(error) => {
                        if let Some(skipped) = self.repeats.may(now, "speak_as") {
                            tracing::warn!(event = "foreign_address", %error, skipped);
                        }
                        return;
                    }
                },
            };
            let Some(id) = self.open_messages(now, link, rule.peer, class, to, side) else {
                return;
            };
            self.watch_own(id);
            if let Some(flow) = self.flows.get_mut(id) {
                flow.client = Some(key);
            }
            self.clients.insert(key, id);
            id
        };
        self.accept_message(now, link, id, message);
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
