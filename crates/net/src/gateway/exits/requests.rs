//! Exits: the wishes of a peer's clients, and the decision whether they are permitted.

use super::connect::{self, Connecting, Progress};
use super::permission::{self, Permitted};
use super::relaying;
use crate::gateway::flows::{Body, Floor, FlowRecord, Messages, NewFlow, Party, Stream, Traffic};
use crate::gateway::sockets::{Question, Resolver, Target, packets};
use crate::gateway::tunnels::leads_back;
use fulmar_proto::machine::PathId;
use fulmar_proto::splice::{Destination, FlowClass, FlowId, FlowKind, Host, RefuseCode, Role};
use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpStream};

/// The way to the destinations: names that are being resolved, and connections that are being made.
#[derive(Debug)]
pub(in crate::gateway) struct Exits {
    resolver: Resolver<FlowId>,
    connecting: BTreeMap<FlowId, Connecting>,
}

/// A peer's wish for a flow, on behalf of its client.
#[derive(Debug)]
pub(in crate::gateway) struct Asked {
    pub(in crate::gateway) kind: FlowKind,
    pub(in crate::gateway) destination: Destination,
    pub(in crate::gateway) class: FlowClass,
    /// Whether a start before this one may have connected for it.
    pub(in crate::gateway) earlier: bool,
}

impl Exits {
    pub(in crate::gateway) const fn new(resolver: Resolver<FlowId>) -> Self {
        Self {
            resolver,
            connecting: BTreeMap::new(),
        }
    }

    /// Handles a peer's wish for a flow.
    pub(in crate::gateway) fn requested(
        &mut self,
        floor: &mut Floor<'_>,
        traffic: &mut Traffic,
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
        let may_be_known = earlier && !traffic.keeps_on_disk(floor.config, &class);
        if may_be_known || traffic.given_up.contains(&id) {
            // Nothing tells what that start gave to the destination, and giving octets twice would falsify the stream.
            return traffic.refuse(floor, id, &destination, RefuseCode::Forgotten);
        }
        let peer = usize::try_from(peer.0).unwrap_or(usize::MAX);
        floor.report_link(peer);
        let party = Party::new(peer, Role::Acceptor);
        // Only flows are newcomers of this party.
        let Ok(permit) = traffic.admit(floor, (party, None), |_, _, _| false) else {
            return traffic.refuse(floor, id, &destination, RefuseCode::TooMany);
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
        traffic.flows.insert(floor.now, id, new);
        traffic.opened(floor, id);
        match &destination.host {
            Host::Address(ip) => {
                let address = SocketAddr::new(*ip, destination.port);
                self.resolved(floor, traffic, id, &[address]);
            }
            Host::Name(name) => {
                let question = Question {
                    peer,
                    tag: id,
                    name: name.as_str().to_owned(),
                    port: destination.port,
                };
                if !permission::is_possible(&floor.config.egress, &destination) {
                    traffic.give_up(floor, id, RefuseCode::NotAllowed);
                } else if !self.resolver.ask(question) {
                    traffic.give_up(floor, id, RefuseCode::TooMany);
                }
            }
            Host::Beyond(_) => relaying::carry_on(floor, traffic, id),
            // The tunnels have taken what is theirs.
            Host::Tunnel(_) => traffic.give_up(floor, id, RefuseCode::NotAllowed),
        }
    }

    /// Connects to a destination whose addresses are known now.
    fn resolved(
        &mut self,
        floor: &mut Floor<'_>,
        traffic: &mut Traffic,
        id: FlowId,
        addresses: &[SocketAddr],
    ) {
        // It may have been reset meanwhile.
        let Some(flow) = traffic.flows.get_mut(id) else {
            return;
        };
        if addresses.is_empty() {
            return traffic.give_up(floor, id, RefuseCode::NameUnknown);
        }
        let egress = &floor.config.egress;
        let mut addresses = permission::permitted(egress, &flow.destination, addresses);
        if flow.kind == FlowKind::Stream {
            // The peer asks for what it would only ask of us again.
            addresses.retain(|to| !leads_back(floor.config, flow.peer, to.ip()));
        }
        let Some(first) = addresses.first().copied() else {
            return traffic.give_up(floor, id, RefuseCode::NotAllowed);
        };
        match flow.kind {
            FlowKind::Stream => {
                let token = floor.sockets.token(Target::Flow(id));
                let timeout = floor.config.egress.connect_timeout;
                if let Some(flow) = traffic.flows.get_mut(id) {
                    flow.token = Some(token);
                    flow.body = Body::Connecting;
                    let connecting = Connecting::new(floor.now, token, &addresses, timeout);
                    self.connecting.insert(id, connecting);
                }
                traffic.flows.wake(id);
            }
            FlowKind::Datagrams => speak(floor, traffic, id, first),
        }
    }

    /// Looks after a connection that is being made; `true` if it stands.
    pub(in crate::gateway) fn connect_turn(
        &mut self,
        floor: &mut Floor<'_>,
        traffic: &mut Traffic,
        id: FlowId,
    ) -> bool {
        let Some(connecting) = self.connecting.get_mut(&id) else {
            return false;
        };
        match connecting.progress(floor.now, &floor.sockets.poller) {
            Progress::Wait => {
                let at = connecting.next_deadline();
                traffic.flows.set_timer(id, Some(at));
                false
            }
            Progress::Failed(code) => {
                traffic.give_up(floor, id, code);
                self.connecting.remove(&id);
                false
            }
            Progress::Done(socket) => {
                self.connecting.remove(&id);
                let established = establish(floor, traffic, id, socket);
                if let Err(code) = established {
                    traffic.give_up(floor, id, code);
                }
                established.is_ok()
            }
        }
    }

    /// Lets go the connections that were being made for flows that are over.
    pub(in crate::gateway) fn forget(&mut self, over: &[FlowId]) {
        for id in over {
            self.connecting.remove(id);
        }
    }

    /// Goes on with the destinations whose names were resolved.
    pub(in crate::gateway) fn look(&mut self, floor: &mut Floor<'_>, traffic: &mut Traffic) {
        while let Some(answer) = self.resolver.poll() {
            let addresses = answer.addresses.unwrap_or_default();
            self.resolved(floor, traffic, answer.tag, &addresses);
        }
    }
}

fn speak(floor: &mut Floor<'_>, traffic: &mut Traffic, id: FlowId, to: Permitted) {
    let token = floor.sockets.token(Target::Flow(id));
    let made = to.address().and_then(packets::speak_to).and_then(|socket| {
        floor.sockets.poller.watch_edges(&socket, token)?;
        let bound = socket.local_addr()?;
        Ok((socket, bound))
    });
    match made {
        Ok((socket, bound)) => {
            floor.link.inner_mut().connected(floor.now, id, bound);
            if let Some(flow) = traffic.flows.get_mut(id) {
                flow.token = Some(token);
                flow.body = Body::Messages(Messages::Own(socket));
            }
            traffic.flows.wake(id);
        }
        Err(error) => {
            floor.sockets.forget(token);
            traffic.give_up(floor, id, connect::code_of(&error));
        }
    }
}

fn establish(
    floor: &mut Floor<'_>,
    traffic: &mut Traffic,
    id: FlowId,
    socket: TcpStream,
) -> Result<(), RefuseCode> {
    let bound = socket.local_addr().map_err(|_| RefuseCode::Refused)?;
    let Some(flow) = traffic.flows.get(id) else {
        return Ok(());
    };
    let (class, peer) = (flow.class, flow.peer);
    let record = FlowRecord {
        role: Role::Acceptor,
        peer: floor.config.peer_name(flow.peer).to_owned(),
        destination: flow.destination.clone(),
        class,
        bound: Some(bound),
        received: 0,
        preface: Vec::new(),
        held: false,
        partner: None,
    };
    // The custody of the way back is the class's, if this side knows the class.
    let known = floor.config.classes.iter().find(|c| c.flow.id == class.id);
    let store = known
        .filter(|_| class.resume)
        .and_then(|settings| traffic.custody((id, peer), settings, || record))
        .or_else(|| class.resume.then(|| traffic.memory(peer, class.window)));
    if let Some(flow) = traffic.flows.get_mut(id) {
        flow.body = Body::Stream(Stream::new(socket, store));
    }
    // First the socket to the keeper, then the record: a flow with a record and without a socket would be over.
    traffic.keep(floor.config, id, Vec::new());
    if let Err(code) = traffic.note_begun(floor.config, id) {
        traffic.keeping.forget(id);
        return Err(code);
    }
    traffic.flows.set_timer(id, None);
    floor.link.inner_mut().connected(floor.now, id, bound);
    Ok(())
}
