//! The events of the link about flows.

use super::Link;
use super::entries::socks::{codec, no_address};
use super::exits::Asked;
use super::flows::{Body, Flow, Happened, Messages, Stream};
use super::running::Running;
use super::sockets::kernel;
use fulmar_proto::splice::{FlowEvent, FlowId, RefuseCode, ResetCode};
use fulmar_proto::units::Instant;
use std::io::Write;
use std::net::SocketAddr;

impl Running {
    /// Notes that a flow has begun.
    pub(super) fn opened(&mut self, now: Instant, link: &Link, id: FlowId) {
        if !self.newsbox.is_wanted() {
            return;
        }
        let number = link.inner().number_of(id);
        if let Some(flow) = self.flows.get_mut(id) {
            flow.number = number;
            self.newsbox.opened(now, id, flow);
        }
    }

    pub(super) fn flow_event(&mut self, now: Instant, link: &mut Link, event: FlowEvent) {
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
                self.with_stream(id, Stream::far_finished);
            }
            FlowEvent::Stopped(id) => self.with_stream(id, Stream::unheard),
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
            if let Some(flow) = self.flows.get(id) {
                let resumed = Happened::Resumed {
                    position_bytes: from,
                };
                self.newsbox.of_flow(now, flow, resumed);
            }
            self.flows.wake(id);
        } else {
            link.inner_mut().reset(now, id, ResetCode::CustodyLost);
            self.drop_flow(now, id, ResetCode::CustodyLost.name(), true);
        }
    }

    fn with_stream(&mut self, id: FlowId, call: impl FnOnce(&mut Stream)) {
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
    pub(super) fn begin_held(&mut self, id: FlowId, reply: Vec<u8>) {
        let is_held = |flow: &Flow| matches!(&flow.body, Body::Stream(stream) if stream.is_held());
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
    pub(super) fn drop_flow(&mut self, now: Instant, id: FlowId, reason: &'static str, rst: bool) {
        let Some(flow) = self.flows.remove(id) else {
            return;
        };
        if let Some(token) = flow.token {
            self.targets.remove(&token);
        }
        let moved = flow.moved_bytes();
        self.newsbox.ended(now, &flow, reason);
        tracing::debug!(
            event = "flow_ended",
            %id,
            peer = self.config.peer_name(flow.peer),
            class = &*self.config.class_name(flow.class_id().0),
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
}
