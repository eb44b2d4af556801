//! The events of the link, about peers and about flows.

use crate::gateway::entries::entry;
use crate::gateway::entries::socks::{codec, no_address};
use crate::gateway::exits::Asked;
use crate::gateway::flows::{Body, Messages};
use crate::gateway::running::{Link, Running, Target};
use crate::gateway::sockets::{Token, kernel};
use crate::session::{PeerIndex, SessionEvent};
use fulmar_proto::machine::PathId;
use fulmar_proto::splice::{FlowEvent, FlowId, RefuseCode, ResetCode};
use fulmar_proto::units::Instant;
use std::io::Write;
use std::net::SocketAddr;

impl Running {
    fn name_of(&self, peer: PeerIndex) -> &str {
        self.peer_name(usize::try_from(peer.0).unwrap_or(usize::MAX))
    }

    /// The address of the datagram that an event is about.
    fn address_of(&self, path: PathId) -> Option<String> {
        // The link is drained after every datagram, so it is the last one.
        let (_, from) = self.heard.filter(|(of, _)| *of == path)?;
        // IPv4 hosts by their own addresses, though the socket is for both families.
        Some(SocketAddr::new(from.ip().to_canonical(), from.port()).to_string())
    }

    pub(in crate::gateway) fn session_event(
        &mut self,
        now: Instant,
        link: &mut Link,
        event: SessionEvent<FlowEvent>,
    ) {
        self.note_event(now, &event);
        match event {
            SessionEvent::Inner(event) => self.flow_event(now, link, event),
            SessionEvent::Up { peer, resumed, .. } => {
                tracing::info!(event = "peer_up", peer = self.name_of(peer), resumed);
            }
            SessionEvent::PeerRestarted(peer) => {
                tracing::warn!(event = "peer_restarted", peer = self.name_of(peer));
            }
            // Only early data needs the epoch on the disk, and none is sent or taken.
            SessionEvent::EpochSeen { .. } => {}
            SessionEvent::Rekeyed(peer) => {
                tracing::debug!(event = "peer_rekeyed", peer = self.name_of(peer));
            }
            SessionEvent::Closed(peer) => {
                tracing::info!(event = "peer_closed", peer = self.name_of(peer));
            }
            SessionEvent::LinkDown { peer, silent_for } => tracing::warn!(
                event = "link_down",
                peer = self.name_of(peer),
                silent_seconds = silent_for.as_secs_f64()
            ),
            SessionEvent::LinkUp { peer, outage } => tracing::info!(
                event = "link_up",
                peer = self.name_of(peer),
                outage_seconds = outage.as_secs_f64()
            ),
            SessionEvent::Moved { peer, .. } => {
                tracing::info!(event = "peer_moved", peer = self.name_of(peer));
            }
            SessionEvent::ReportDue(peer) => self.report_to(now, link, peer),
            SessionEvent::Reported { peer, octets } => {
                link.inner_mut().on_report(peer.inner_path(), &octets);
            }
            SessionEvent::MtuChanged { peer, sizes } => tracing::info!(
                event = "path_mtu",
                peer = self.name_of(peer),
                packet_bytes = sizes.packet.0
            ),
            SessionEvent::TooNarrow { peer, why } => tracing::warn!(
                event = "path_mtu_too_small",
                peer = self.name_of(peer),
                error = why
            ),
            SessionEvent::Mismatch {
                peer,
                what,
                ours,
                theirs,
            } => {
                tracing::error!(
                    event = "peer_mismatch",
                    peer = self.name_of(peer),
                    what,
                    ours,
                    theirs
                );
            }
            SessionEvent::Refused { path, peer, reason } => {
                let peer = peer.map(|peer| self.name_of(peer).to_owned());
                let from = self.address_of(path);
                tracing::warn!(event = "handshake_refused", peer, from, %reason);
            }
            SessionEvent::TurnedAway { peer, path, hint } => {
                let from = self.address_of(path);
                tracing::warn!(
                    event = "refused_by_peer",
                    peer = self.name_of(peer),
                    from,
                    proven = false,
                    %hint
                );
            }
            SessionEvent::NoAnswer { peer, waited } => tracing::warn!(
                event = "no_answer",
                peer = self.name_of(peer),
                waited_seconds = waited.as_secs_f64()
            ),
        }
    }

    fn flow_event(&mut self, now: Instant, link: &mut Link, event: FlowEvent) {
        match event {
            FlowEvent::Requested {
                flow,
                peer,
                kind,
                destination,
                class,
                earlier,
            } => {
                let asked = Asked {
                    kind,
                    destination,
                    class,
                    earlier,
                };
                self.requested(now, link, flow, peer, asked);
            }
            FlowEvent::Connected { flow, bound } => self.connected(flow, bound),
            FlowEvent::Refused { flow, code } => self.refused(now, flow, code),
            FlowEvent::Readable(flow) | FlowEvent::Writable(flow) => self.flows.wake(flow),
            FlowEvent::Resume { flow, from } => self.resumed(now, link, flow, from),
            FlowEvent::PeerFinished(id) => {
                self.with_stream(id, crate::gateway::flows::Stream::far_finished);
            }
            FlowEvent::Stopped(id) => self.with_stream(id, crate::gateway::flows::Stream::unheard),
            FlowEvent::Delivered { flow, offset } => {
                self.with_stream(flow, |stream| stream.far_delivered(offset));
            }
            FlowEvent::Reset { flow, code } => self.drop_flow(now, flow, code.name(), true),
            FlowEvent::Closed(flow) => self.drop_flow(now, flow, "finished", false),
        }
    }

    /// Resumes a flow: the far side asks for octets that it was given before. A stream that kept nothing cannot go on.
    fn resumed(&mut self, now: Instant, link: &mut Link, id: FlowId, from: u64) {
        let keeps = self.flows.get_mut(id).is_none_or(|flow| match &flow.body {
            Body::Stream(stream) => stream.keeps(),
            _ => true,
        });
        if keeps {
            tracing::info!(event = "flow_resumed", flow = %id, from);
            self.trace_resumed(now, id, from);
            self.flows.wake(id);
        } else {
            link.inner_mut().reset(now, id, ResetCode::CustodyLost);
            self.drop_flow(now, id, ResetCode::CustodyLost.name(), true);
        }
    }

    fn with_stream(&mut self, id: FlowId, call: impl FnOnce(&mut crate::gateway::flows::Stream)) {
        if let Some(flow) = self.flows.get_mut(id)
            && let Body::Stream(stream) = &mut flow.body
        {
            call(stream);
            self.flows.wake(id);
        }
    }

    fn connected(&mut self, id: FlowId, bound: SocketAddr) {
        self.begin_held(id, codec::reply(codec::Reply::Succeeded, bound));
        self.flows.wake(id);
    }

    /// Answers a proxy's client that waits, once the keeper has been told. Otherwise the next gateway would take the
    /// reply
    /// for the beginning of the destination's answer.
    pub(in crate::gateway) fn begin_held(&mut self, id: FlowId, reply: Vec<u8>) {
        let is_held = |flow: &crate::gateway::flows::Flow| matches!(&flow.body, Body::Stream(stream) if stream.is_held());
        if !self.flows.get(id).is_some_and(is_held) {
            return;
        }
        let is_noted = !self.keeping.is_behind() && self.keep(id, reply.clone());
        if !is_noted || self.keeping.is_behind() {
            return self.keeping.reply_later(id, reply);
        }
        self.with_stream(id, |stream| stream.begin(reply));
    }

    fn refused(&mut self, now: Instant, id: FlowId, code: RefuseCode) {
        let Some(flow) = self.flows.get_mut(id) else {
            return;
        };
        let destination = flow.destination.clone();
        let mut rst = true;
        if flow.proxied
            && let Body::Stream(stream) = &mut flow.body
            && stream.is_held()
        {
            // A proxy tells the reason, and closes in the ordinary way so that the answer arrives.
            let reply = codec::reply(code.into(), no_address());
            rst = stream
                .socket()
                .is_none_or(|mut client| client.write(&reply).is_err());
        }
        if let Some(skipped) = self.repeats.may_for(now, "refused", code.name()) {
            tracing::info!(event = "flow_refused", %destination, reason = code.name(), skipped);
        }
        self.drop_flow(now, id, code.name(), rst);
    }

    /// Forgets a flow and closes its socket: with a reset, or in the ordinary way.
    pub(in crate::gateway) fn drop_flow(
        &mut self,
        now: Instant,
        id: FlowId,
        reason: &str,
        rst: bool,
    ) {
        let Some(flow) = self.flows.remove(id) else {
            return;
        };
        if let Some(token) = flow.token {
            self.targets.remove(&token);
        }
        let moved = flow.moved_bytes();
        self.trace_ended(now, &flow, reason);
        tracing::debug!(
            event = "flow_ended",
            %id,
            peer = self.peer_name(flow.peer),
            class = self.class_name(flow.class_id().0),
            destination = %flow.destination,
            reason,
            from_client_bytes = moved.0,
            to_client_bytes = moved.1,
            seconds = now.saturating_since(flow.began).as_secs_f64(),
        );
        if let Some(client) = flow.client {
            self.clients.remove(&client);
        }
        match flow.body {
            Body::Stream(stream) => {
                // Before the keeper lets go: a kill in between would cause a reset, although everything was sent.
                if let Some(socket) = stream.socket().filter(|_| !rst) {
                    kernel::finish(socket);
                }
                if stream.is_durable() {
                    self.keeping.forget(id);
                }
                let (socket, custody) = stream.into_parts();
                if let Some(custody) = custody {
                    custody.forget();
                }
                match socket {
                    Some(socket) if rst => kernel::reset(socket),
                    Some(_) | None => {}
                }
            }
            Body::Messages(Messages::Association(token)) => {
                if let Some(association) = self.associations.get_mut(&token) {
                    association.flows.remove(&flow.destination);
                }
            }
            Body::Messages(Messages::Entry { .. } | Messages::Own(_))
            | Body::Resolving
            | Body::Connecting(_) => {}
        }
    }

    /// Opens an entry and watches its port.
    pub(in crate::gateway) fn add_entry(
        &mut self,
        rule: entry::Rule,
    ) -> Result<SocketAddr, crate::gateway::GatewayError> {
        let entry = self.open_entry(rule, None)?;
        self.watch_entry(entry)
    }

    /// Watches the port of an entry, and gives it to the keeper. No client must wait at a port of which no gateway can
    /// hear.
    pub(in crate::gateway) fn watch_entry(
        &mut self,
        entry: entry::Entry,
    ) -> Result<SocketAddr, crate::gateway::GatewayError> {
        match self.watch_port(&entry) {
            Ok((local, token)) => {
                self.keep_port(&entry);
                self.entries.insert(token, entry);
                Ok(local)
            }
            Err(error) => {
                self.close_port(&entry);
                Err(error)
            }
        }
    }

    fn watch_port(
        &mut self,
        entry: &entry::Entry,
    ) -> Result<(SocketAddr, Token), crate::gateway::GatewayError> {
        let listen = entry.rule.listen;
        let wrong = |source| crate::gateway::GatewayError::Listen {
            what: "entry",
            listen,
            source,
        };
        let local = entry.local().map_err(wrong)?;
        let token = self.token(Target::Entry);
        let watched = match &entry.port {
            entry::Port::Tcp(listener) => self.poller.watch_level(listener, token),
            entry::Port::Udp(socket) => self.poller.watch_level(socket, token),
        };
        if let Err(error) = watched {
            self.targets.remove(&token);
            return Err(wrong(error));
        }
        tracing::info!(
            event = "listening",
            protocol = entry.rule.protocol.name(),
            %local,
            way = entry.rule.way.name(),
            peer = self.peer_name(entry.rule.peer),
        );
        if entry.rule.way == entry::Way::Socks(None) && !local.ip().to_canonical().is_loopback() {
            tracing::warn!(
                event = "open_proxy",
                %local,
                "whoever reaches this SOCKS port can use it; write user and password_file, or \
                 listen at 127.0.0.1"
            );
        }
        Ok((local, token))
    }
}
