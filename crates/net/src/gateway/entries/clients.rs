//! TCP clients coming in: accepted, given a class, and opened a flow.

use super::entry::{Port, Rule, Way};
use super::socks::{Moved, Negotiation, codec, no_address};
use crate::gateway::Link;
use crate::gateway::config::{ClassSettings, Dscp};
use crate::gateway::flows::{Body, NewFlow, Party, Permit, Stream};
use crate::gateway::running::{ACCEPT_PAUSE, Running, Target};
use crate::gateway::sockets::{Token, is_own, kernel};
use fulmar_proto::machine::PathId;
use fulmar_proto::splice::{Destination, FlowClass, FlowId, FlowKind, ResetCode, Role};
use fulmar_proto::units::Instant;
use socket2::SockRef;
use std::io::{ErrorKind, Write};
use std::net::{SocketAddr, TcpStream};

/// Connections accepted in one turn.
const ACCEPTS_PER_TURN: usize = 64;

/// The code point of the client's first packet: the kernel tells it of an accepted connection only
/// where it was told to answer with the same (`tcp_reflect_tos`).
pub(in crate::gateway) fn code_point(stream: &TcpStream) -> Option<Dscp> {
    let tos = SockRef::from(stream).tos_v4().ok()?;
    u8::try_from(tos).ok().map(Dscp::from_tos)
}

/// A client's wish for a flow.
#[derive(Debug)]
pub(in crate::gateway) struct Wish {
    pub(in crate::gateway) peer: usize,
    pub(in crate::gateway) kind: FlowKind,
    pub(in crate::gateway) to: Destination,
    pub(in crate::gateway) class: FlowClass,
}

impl Running {
    pub(in crate::gateway) fn entry_ready(&mut self, now: Instant, link: &mut Link, token: Token) {
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
            let rule = entry.rule.clone();
            match self.keeping.accept(entry) {
                Ok(stream) => self.accepted(now, link, &rule, (stream, Moved::default())),
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
        // The poller watches levels, so it tells again that more wait.
        self.source_again();
    }

    /// Handles a client that was accepted now, or by the gateway before, which moved `moved` octets.
    pub(in crate::gateway) fn accepted(
        &mut self,
        now: Instant,
        link: &mut Link,
        rule: &Rule,
        (stream, moved): (TcpStream, Moved),
    ) {
        // A client that has left already has no address.
        if let Ok(from) = stream.peer_addr()
            && kernel::prepare(&stream).is_ok()
        {
            self.arrived(now, link, rule, (stream, from, moved));
        }
        self.keeping.end_accept();
    }

    /// Leaves an entry alone for a while: the system is short of something.
    fn rest(&mut self, now: Instant, token: Token) {
        if let Some(entry) = self.entries.get(&token)
            && let Port::Tcp(listener) = &entry.port
        {
            drop(self.poller.pause(listener));
        }
        let (_, tokens) = self.resting.get_or_insert((now + ACCEPT_PAUSE, Vec::new()));
        tokens.push(token);
    }

    pub(in crate::gateway) fn end_rest(&mut self, now: Instant) {
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

    /// Handles a TCP client that has arrived.
    fn arrived(
        &mut self,
        now: Instant,
        link: &mut Link,
        rule: &Rule,
        (stream, from, moved): (TcpStream, SocketAddr, Moved),
    ) {
        let party = Party::new(rule.peer, Role::Opener);
        let permit = match self.admit(now, link, party, Some(from.ip().into())) {
            Ok(permit) => permit,
            Err(refusal) => return self.turn_away(now, refusal.name(), stream),
        };
        match &rule.way {
            Way::Forward(to) => {
                self.open_stream(now, link, rule, to.clone(), (stream, permit));
            }
            Way::Transparent => match stream.local_addr() {
                Ok(original) => {
                    let to = SocketAddr::new(original.ip().to_canonical(), original.port());
                    if to.port() == rule.listen.port() && is_own(to.ip()) {
                        // Not diverted: it connected to us directly, and its flow would lead back here.
                        return self.turn_away(now, "not_diverted", stream);
                    }
                    self.open_stream(now, link, rule, to.into(), (stream, permit));
                }
                Err(_) => kernel::reset(stream),
            },
            Way::Socks(credentials) => {
                match Negotiation::resumed(stream, credentials.clone(), moved) {
                    Ok(negotiation) => self.apply(now, link, rule, (negotiation, permit)),
                    Err(stream) => kernel::reset(stream),
                }
            }
        }
    }

    pub(in crate::gateway) fn turn_away(
        &mut self,
        now: Instant,
        reason: &'static str,
        stream: TcpStream,
    ) {
        if let Some(skipped) = self.repeats.may(now, reason) {
            tracing::warn!(event = "client_turned_away", reason, skipped);
        }
        kernel::reset(stream);
    }

    pub(in crate::gateway) fn open(
        &mut self,
        now: Instant,
        link: &mut Link,
        wish: &Wish,
    ) -> Option<FlowId> {
        self.report_link(now, link, wish.peer);
        let path = PathId(u32::try_from(wish.peer).unwrap_or(u32::MAX));
        let to = wish.to.clone();
        match link.inner_mut().open(now, path, wish.kind, to, wish.class) {
            Ok(id) => Some(id),
            Err(error) => {
                let news = (&wish.to, error.to_string());
                self.newsbox.not_opened(now, wish.peer, news);
                if let Some(skipped) = self.repeats.may(now, "open") {
                    let destination = &wish.to;
                    tracing::warn!(event = "flow_not_opened", %destination, %error, skipped);
                }
                None
            }
        }
    }

    /// The class that `rule` gives to a stream to `port`.
    pub(in crate::gateway) fn stream_class(
        &self,
        rule: &Rule,
        port: u16,
        stream: &TcpStream,
    ) -> Option<ClassSettings> {
        let class = rule.classes.choose(port, code_point(stream));
        self.config.classes.get(class).cloned()
    }

    fn open_stream(
        &mut self,
        now: Instant,
        link: &mut Link,
        rule: &Rule,
        to: Destination,
        (stream, permit): (TcpStream, Permit),
    ) {
        let Some(settings) = self.stream_class(rule, to.port, &stream) else {
            return kernel::reset(stream);
        };
        let wish = Wish {
            peer: rule.peer,
            kind: FlowKind::Stream,
            to,
            class: settings.flow,
        };
        let Some(id) = self.open(now, link, &wish) else {
            return kernel::reset(stream);
        };
        let token = self.token(Target::Flow(id));
        let watched = self.poller.watch_edges(&stream, token);
        let custody = self.custody((id, wish.peer), &settings, || {
            self.record(Role::Opener, &wish)
        });
        let body = Stream::new(stream, custody);
        self.insert_stream(now, id, wish, token, (body, permit));
        self.opened(now, link, id);
        if watched.is_err() {
            return self.abandon(now, link, id);
        }
        self.keep(id, Vec::new());
        // At once, so that octets that the client has sent already travel with the opening.
        self.turn(now, link, id);
    }

    fn insert_stream(
        &mut self,
        now: Instant,
        id: FlowId,
        wish: Wish,
        token: Token,
        (body, permit): (Stream, Permit),
    ) {
        let new = NewFlow {
            proxied: body.is_held(),
            entered: true,
            kind: wish.kind,
            peer: wish.peer,
            class: wish.class,
            destination: wish.to,
            body: Body::Stream(body),
            token: Some(token),
            permit,
        };
        self.flows.insert(now, id, new);
        let patience = self.config.limits.tcp_silent;
        self.flows.set_patience(id, now + patience);
    }

    /// Gives up a flow whose socket cannot be watched.
    fn abandon(&mut self, now: Instant, link: &mut Link, id: FlowId) {
        link.inner_mut().reset(now, id, ResetCode::Shutdown);
        self.drop_flow(now, id, "no_descriptor", true);
    }

    /// Opens a flow for a proxy's client, which waits for an answer. The first `ahead` octets in its socket are its
    /// request.
    pub(in crate::gateway) fn open_proxied(
        &mut self,
        now: Instant,
        link: &mut Link,
        settings: &ClassSettings,
        wish: Wish,
        (stream, ahead, permit): (TcpStream, usize, Permit),
    ) {
        let Some(id) = self.open(now, link, &wish) else {
            let reply = codec::reply(codec::Reply::GeneralFailure, no_address());
            // The connection ends, whether the reply was sent or not.
            drop((&stream).write(&reply));
            return kernel::finish(&stream);
        };
        let token = self.token(Target::Flow(id));
        // It is watched already, under another name.
        let watched = self.poller.rename(&stream, token);
        let custody = self.custody((id, wish.peer), settings, || {
            self.record(Role::Opener, &wish)
        });
        let mut body = Stream::new(stream, custody);
        body.hold(ahead as u64);
        self.insert_stream(now, id, wish, token, (body, permit));
        self.opened(now, link, id);
        if watched.is_err() {
            return self.abandon(now, link, id);
        }
        self.keep(id, Vec::new());
    }
}
