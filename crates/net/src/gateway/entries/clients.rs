//! TCP clients coming in: accepted, given a class, and opened a flow.

use super::entrance::Entries;
use super::entry::{Port, Rule, Way};
use super::socks::{Moved, Negotiation, codec, no_address};
use crate::gateway::config::{ClassSettings, Dscp, GatewayConfig};
use crate::gateway::flows::{Body, Floor, NewFlow, Party, Permit, Stream, Traffic, Wish, record};
use crate::gateway::sockets::{Target, Token, is_own, kernel};
use fulmar_proto::splice::{Destination, FlowId, FlowKind, ResetCode, Role};
use fulmar_proto::units::Duration;
use socket2::SockRef;
use std::io::{ErrorKind, Write};
use std::net::{SocketAddr, TcpStream};

/// The pause of an entry when the system has no descriptor left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);
/// Connections accepted in one turn.
const ACCEPTS_PER_TURN: usize = 64;

/// The code point of the client's first packet: the kernel tells it of an accepted connection only
/// where it was told to answer with the same (`tcp_reflect_tos`).
pub(super) fn code_point(stream: &TcpStream) -> Option<Dscp> {
    let tos = SockRef::from(stream).tos_v4().ok()?;
    u8::try_from(tos).ok().map(Dscp::from_tos)
}

impl Entries {
    pub(in crate::gateway) fn entry_ready(
        &mut self,
        floor: &mut Floor<'_>,
        traffic: &mut Traffic,
        token: Token,
    ) {
        let Some(entry) = self.ports.get(&token) else {
            return;
        };
        match &entry.port {
            Port::Tcp(_) => self.accept(floor, traffic, token),
            Port::Udp(_) => self.entry_datagrams(floor, traffic, token),
        }
    }

    fn accept(&mut self, floor: &mut Floor<'_>, traffic: &mut Traffic, token: Token) {
        for _ in 0..ACCEPTS_PER_TURN {
            let Some(entry) = self.ports.get(&token) else {
                return;
            };
            let rule = entry.rule.clone();
            let Port::Tcp(listener) = &entry.port else {
                return;
            };
            match traffic.keeping.accept(listener, entry.kept.as_deref()) {
                Ok(stream) => self.accepted(floor, traffic, &rule, (stream, Moved::default())),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                // The client has left already, or a signal came.
                Err(error)
                    if matches!(
                        error.kind(),
                        ErrorKind::ConnectionAborted | ErrorKind::Interrupted
                    ) => {}
                Err(error) => {
                    if let Some(skipped) = floor.repeats.may(floor.now, "accept") {
                        tracing::error!(event = "accept_failed", %error, skipped);
                    }
                    return self.rest(floor, token);
                }
            }
        }
        // The poller watches levels, so it tells again that more wait.
        floor.sockets.look_again();
    }

    /// Handles a client that was accepted now, or by the gateway before, which moved `moved` octets.
    pub(in crate::gateway) fn accepted(
        &mut self,
        floor: &mut Floor<'_>,
        traffic: &mut Traffic,
        rule: &Rule,
        (stream, moved): (TcpStream, Moved),
    ) {
        // A client that has left already has no address.
        if let Ok(from) = stream.peer_addr()
            && kernel::prepare(&stream).is_ok()
        {
            self.arrived(floor, traffic, rule, (stream, from, moved));
        }
        traffic.keeping.end_accept();
    }

    /// Leaves an entry alone for a while: the system is short of something.
    fn rest(&mut self, floor: &mut Floor<'_>, token: Token) {
        if let Some(entry) = self.ports.get(&token)
            && let Port::Tcp(listener) = &entry.port
        {
            drop(floor.sockets.poller.pause(listener));
        }
        let (_, tokens) = self
            .resting
            .get_or_insert((floor.now + ACCEPT_PAUSE, Vec::new()));
        tokens.push(token);
    }

    pub(in crate::gateway) fn end_rest(&mut self, floor: &mut Floor<'_>) {
        if self
            .resting
            .as_ref()
            .is_none_or(|(until, _)| floor.now < *until)
        {
            return;
        }
        for token in self
            .resting
            .take()
            .map(|(_, tokens)| tokens)
            .into_iter()
            .flatten()
        {
            if let Some(entry) = self.ports.get(&token)
                && let Port::Tcp(listener) = &entry.port
            {
                drop(floor.sockets.poller.resume(listener, token));
            }
        }
    }

    /// Handles a TCP client that has arrived.
    fn arrived(
        &mut self,
        floor: &mut Floor<'_>,
        traffic: &mut Traffic,
        rule: &Rule,
        (stream, from, moved): (TcpStream, SocketAddr, Moved),
    ) {
        let party = Party::new(rule.peer, Role::Opener);
        let permit = match self.admit(floor, traffic, (party, Some(from.ip().into()))) {
            Ok(permit) => permit,
            Err(refusal) => return turn_away(floor, refusal.name(), stream),
        };
        match &rule.way {
            Way::Forward(to) => {
                open_stream(floor, traffic, rule, to.clone(), (stream, permit));
            }
            Way::Transparent => match stream.local_addr() {
                Ok(original) => {
                    let to = SocketAddr::new(original.ip().to_canonical(), original.port());
                    if to.port() == rule.listen.port() && is_own(to.ip()) {
                        // Not diverted: it connected to us directly, and its flow would lead back here.
                        return turn_away(floor, "not_diverted", stream);
                    }
                    open_stream(floor, traffic, rule, to.into(), (stream, permit));
                }
                Err(_) => kernel::reset(stream),
            },
            Way::Accelerated(place) => {
                let tunnel = floor.config.tunnels.get(*place);
                let original = kernel::original_destination(&stream);
                let Some(to) = original.filter(|to| tunnel.is_some_and(|it| it.leads_to(to.ip())))
                else {
                    return turn_away(floor, "not_diverted", stream);
                };
                open_stream(floor, traffic, rule, to.into(), (stream, permit));
            }
            Way::Socks(credentials) => {
                match Negotiation::resumed(stream, credentials.clone(), moved) {
                    Ok(negotiation) => self.apply(floor, traffic, rule, (negotiation, permit)),
                    Err(stream) => kernel::reset(stream),
                }
            }
        }
    }
}

pub(super) fn turn_away(floor: &mut Floor<'_>, reason: &'static str, stream: TcpStream) {
    if let Some(skipped) = floor.repeats.may(floor.now, reason) {
        tracing::warn!(event = "client_turned_away", reason, skipped);
    }
    kernel::reset(stream);
}

/// The class that `rule` gives to a stream to `port`.
pub(super) fn stream_class(
    config: &GatewayConfig,
    rule: &Rule,
    port: u16,
    stream: &TcpStream,
) -> Option<ClassSettings> {
    let class = rule.classes.choose(port, code_point(stream));
    config.classes.get(class).cloned()
}

fn open_stream(
    floor: &mut Floor<'_>,
    traffic: &mut Traffic,
    rule: &Rule,
    to: Destination,
    (stream, permit): (TcpStream, Permit),
) {
    let Some(settings) = stream_class(floor.config, rule, to.port, &stream) else {
        return kernel::reset(stream);
    };
    let Some(wish) = rule.wish(FlowKind::Stream, to, settings.flow) else {
        return kernel::reset(stream);
    };
    let Some(id) = traffic.open(floor, &wish) else {
        return kernel::reset(stream);
    };
    let token = floor.sockets.token(Target::Flow(id));
    let watched = floor.sockets.poller.watch_edges(&stream, token);
    let custody = traffic.custody((id, wish.peer), &settings, || {
        record(floor.config, Role::Opener, &wish)
    });
    let body = Stream::new(stream, custody);
    insert_stream(floor, traffic, id, wish, token, (body, permit));
    traffic.opened(floor, id);
    if watched.is_err() {
        return abandon(floor, traffic, id);
    }
    traffic.keep(floor.config, id, Vec::new());
    // At once, so that octets that the client has sent already travel with the opening.
    traffic.turn(floor, id);
}

fn insert_stream(
    floor: &mut Floor<'_>,
    traffic: &mut Traffic,
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
    traffic.flows.insert(floor.now, id, new);
    let patience = floor.config.limits.tcp_silent;
    traffic.flows.set_patience(id, floor.now + patience);
}

/// Gives up a flow whose socket cannot be watched.
fn abandon(floor: &mut Floor<'_>, traffic: &mut Traffic, id: FlowId) {
    floor
        .link
        .inner_mut()
        .reset(floor.now, id, ResetCode::Shutdown);
    traffic.drop_flow(floor, id, "no_descriptor", true);
}

/// Opens a flow for a proxy's client, which waits for an answer. The first `ahead` octets in its socket are its
/// request.
pub(super) fn open_proxied(
    floor: &mut Floor<'_>,
    traffic: &mut Traffic,
    settings: &ClassSettings,
    wish: Wish,
    (stream, ahead, permit): (TcpStream, usize, Permit),
) {
    let Some(id) = traffic.open(floor, &wish) else {
        let reply = codec::reply(codec::Reply::GeneralFailure, no_address());
        // The connection ends, whether the reply was sent or not.
        drop((&stream).write(&reply));
        return kernel::finish(&stream);
    };
    let token = floor.sockets.token(Target::Flow(id));
    // It is watched already, under another name.
    let watched = floor.sockets.poller.rename(&stream, token);
    let custody = traffic.custody((id, wish.peer), settings, || {
        record(floor.config, Role::Opener, &wish)
    });
    let mut body = Stream::new(stream, custody);
    body.hold(ahead as u64);
    insert_stream(floor, traffic, id, wish, token, (body, permit));
    traffic.opened(floor, id);
    if watched.is_err() {
        return abandon(floor, traffic, id);
    }
    traffic.keep(floor.config, id, Vec::new());
}
