//! Exits: the wishes of a peer's clients, and the decision whether they are permitted.

use super::connect::{self, Connecting, Progress};
use super::permission::{self, Permitted};
use crate::gateway::Link;
use crate::gateway::config::Custody as Keep;
use crate::gateway::flows::{Body, FlowRecord, Messages, NewFlow, Party, Stream};
use crate::gateway::running::{Running, Target};
use crate::gateway::sockets::{Question, packets};
use crate::session::PeerIndex;
use fulmar_proto::machine::PathId;
use fulmar_proto::splice::{Destination, FlowClass, FlowId, FlowKind, Host, RefuseCode, Role};
use fulmar_proto::transport::parts::LinkReport;
use fulmar_proto::units::Instant;
use std::net::{SocketAddr, TcpStream};

/// A peer's wish for a flow, on behalf of its client.
#[derive(Debug)]
pub(in crate::gateway) struct Asked {
    pub(in crate::gateway) kind: FlowKind,
    pub(in crate::gateway) destination: Destination,
    pub(in crate::gateway) class: FlowClass,
    /// Whether a start before this one may have connected for it.
    pub(in crate::gateway) earlier: bool,
}

impl Running {
    /// Handles a peer's wish for a flow.
    pub(in crate::gateway) fn requested(
        &mut self,
        now: Instant,
        link: &mut Link,
        id: FlowId,
        peer: PathId,
        asked: Asked,
    ) {
        let Asked {
            kind,
            destination,
            class,
            earlier,
        } = asked;
        let may_be_known = earlier && !self.keeps_on_disk(&class);
        if may_be_known || self.given_up.contains(&id) {
            // Nothing tells what that start gave to the destination, and giving octets twice would falsify the stream.
            return self.refuse(now, link, id, &destination, RefuseCode::Forgotten);
        }
        let peer = usize::try_from(peer.0).unwrap_or(usize::MAX);
        self.report_link(now, link, peer);
        let party = Party::new(peer, Role::Acceptor);
        let Ok(permit) = self.admit(now, link, party, None) else {
            return self.refuse(now, link, id, &destination, RefuseCode::TooMany);
        };
        let new = NewFlow {
            kind,
            peer,
            class,
            destination: destination.clone(),
            proxied: false,
            entered: false,
            body: Body::Resolving,
            token: None,
            permit,
        };
        self.flows.insert(now, id, new);
        self.opened(now, link, id);
        match &destination.host {
            Host::Address(ip) => {
                let address = SocketAddr::new(*ip, destination.port);
                self.resolved(now, link, id, &[address]);
            }
            Host::Name(name) => {
                let question = Question {
                    peer,
                    tag: id,
                    name: name.as_str().to_owned(),
                    port: destination.port,
                };
                if !permission::is_possible(&self.config.egress, &destination) {
                    self.give_up(now, link, id, RefuseCode::NotAllowed);
                } else if !self.resolver.ask(question) {
                    self.give_up(now, link, id, RefuseCode::TooMany);
                }
            }
        }
    }

    /// Reports what is known of the peer's link to the transport: the rate configured, and the round trip that the
    /// session measured. So flows that begin need not measure them again.
    pub(in crate::gateway) fn report_link(&self, now: Instant, link: &mut Link, peer: usize) {
        if let Some(settings) = self.config.peers.get(peer) {
            let path = PathId(u32::try_from(peer).unwrap_or(u32::MAX));
            let report = LinkReport {
                available: Some(settings.rate),
                queue: None,
                congested: false,
            };
            let index = PeerIndex(path.0);
            let round_trip = link.status(index).and_then(|status| status.rtt);
            let endpoint = link.inner_mut().endpoint_mut();
            endpoint.link_report(now, path, report);
            if let Some(round_trip) = round_trip {
                endpoint.expect_round_trip(path, round_trip);
            }
        }
    }

    /// Whether every start of this gateway writes down which flows of a class it has connected for.
    fn keeps_on_disk(&self, class: &FlowClass) -> bool {
        let known = self.config.classes.iter().find(|c| c.flow.id == class.id);
        let on_disk = known.is_some_and(|known| known.custody == Keep::Disk);
        class.resume && on_disk && self.keeping.has_store()
    }

    fn refuse(
        &mut self,
        now: Instant,
        link: &mut Link,
        id: FlowId,
        destination: &Destination,
        code: RefuseCode,
    ) {
        self.newsbox.refused(now, destination, code.name());
        if let Some(skipped) = self.repeats.may_for(now, "exit_refused", code.name()) {
            tracing::info!(event = "exit_refused", %destination, reason = code.name(), skipped);
        }
        link.inner_mut().refused(now, id, code);
    }

    /// Ends an exit that could not connect.
    pub(in crate::gateway) fn give_up(
        &mut self,
        now: Instant,
        link: &mut Link,
        id: FlowId,
        code: RefuseCode,
    ) {
        if let Some(flow) = self.flows.remove(id) {
            if let Some(token) = flow.token {
                self.targets.remove(&token);
            }
            self.newsbox.ended(now, &flow, code.name());
            self.refuse(now, link, id, &flow.destination, code);
        }
    }

    /// Connects to a destination whose addresses are known now.
    pub(in crate::gateway) fn resolved(
        &mut self,
        now: Instant,
        link: &mut Link,
        id: FlowId,
        addresses: &[SocketAddr],
    ) {
        // It may have been reset meanwhile.
        let Some(flow) = self.flows.get_mut(id) else {
            return;
        };
        if addresses.is_empty() {
            return self.give_up(now, link, id, RefuseCode::NameUnknown);
        }
        let egress = &self.config.egress;
        let addresses = permission::permitted(egress, &flow.destination, addresses);
        let Some(first) = addresses.first().copied() else {
            return self.give_up(now, link, id, RefuseCode::NotAllowed);
        };
        match flow.kind {
            FlowKind::Stream => {
                let token = self.token(Target::Flow(id));
                let timeout = self.config.egress.connect_timeout;
                if let Some(flow) = self.flows.get_mut(id) {
                    flow.token = Some(token);
                    flow.body = Body::Connecting(Connecting::new(now, token, &addresses, timeout));
                }
                self.flows.wake(id);
            }
            FlowKind::Datagrams => self.speak(now, link, id, first),
        }
    }

    fn speak(&mut self, now: Instant, link: &mut Link, id: FlowId, to: Permitted) {
        let token = self.token(Target::Flow(id));
        let made = to.address().and_then(packets::speak_to).and_then(|socket| {
            self.poller.watch_edges(&socket, token)?;
            let bound = socket.local_addr()?;
            Ok((socket, bound))
        });
        match made {
            Ok((socket, bound)) => {
                link.inner_mut().connected(now, id, bound);
                if let Some(flow) = self.flows.get_mut(id) {
                    flow.token = Some(token);
                    flow.body = Body::Messages(Messages::Own(socket));
                }
                self.flows.wake(id);
            }
            Err(error) => {
                self.targets.remove(&token);
                self.give_up(now, link, id, connect::code_of(&error));
            }
        }
    }

    /// Looks after a connection that is being made; `true` if it stands.
    pub(in crate::gateway) fn connect_turn(
        &mut self,
        now: Instant,
        link: &mut Link,
        id: FlowId,
    ) -> bool {
        let Some(flow) = self.flows.get_mut(id) else {
            return false;
        };
        let Body::Connecting(connecting) = &mut flow.body else {
            return false;
        };
        match connecting.progress(now, &self.poller) {
            Progress::Wait => {
                let at = connecting.next_deadline();
                self.flows.set_timer(id, Some(at));
                false
            }
            Progress::Failed(code) => {
                self.give_up(now, link, id, code);
                false
            }
            Progress::Done(socket) => {
                let established = self.establish(now, link, id, socket);
                if let Err(code) = established {
                    self.give_up(now, link, id, code);
                }
                established.is_ok()
            }
        }
    }

    fn establish(
        &mut self,
        now: Instant,
        link: &mut Link,
        id: FlowId,
        socket: TcpStream,
    ) -> Result<(), RefuseCode> {
        let bound = socket.local_addr().map_err(|_| RefuseCode::Refused)?;
        let Some(flow) = self.flows.get(id) else {
            return Ok(());
        };
        let (class, peer) = (flow.class, flow.peer);
        let record = FlowRecord {
            role: Role::Acceptor,
            peer: self.config.peer_name(flow.peer).to_owned(),
            destination: flow.destination.clone(),
            class,
            bound: Some(bound),
            received: 0,
            preface: Vec::new(),
            held: false,
        };
        // The custody of the way back is the class's, if this side knows the class.
        let known = self.config.classes.iter().find(|c| c.flow.id == class.id);
        let store = known
            .filter(|_| class.resume)
            .and_then(|settings| self.custody((id, peer), settings, || record))
            .or_else(|| class.resume.then(|| self.memory(peer, class.window)));
        if let Some(flow) = self.flows.get_mut(id) {
            flow.body = Body::Stream(Stream::new(socket, store));
        }
        // First the socket to the keeper, then the record: a flow with a record and without a socket would be over.
        self.keep(id, Vec::new());
        if let Err(code) = self.note_begun(id) {
            self.keeping.forget(id);
            return Err(code);
        }
        self.flows.set_timer(id, None);
        link.inner_mut().connected(now, id, bound);
        Ok(())
    }

    /// Writes down that a flow's destination is about to be given octets. Otherwise a later start would take the flow
    /// for
    /// one that nobody has connected for, and give the octets twice.
    pub(in crate::gateway) fn note_begun(&mut self, id: FlowId) -> Result<(), RefuseCode> {
        let Some(flow) = self.flows.get_mut(id) else {
            return Ok(());
        };
        let Body::Stream(stream) = &mut flow.body else {
            return Ok(());
        };
        let noted = stream.note_begun();
        let peer = flow.peer;
        noted.map_err(|error| {
            let reason = RefuseCode::NotKept.name();
            tracing::error!(event = "exit_not_noted", %id, peer = self.config.peer_name(peer), reason, %error);
            RefuseCode::NotKept
        })
    }
}
