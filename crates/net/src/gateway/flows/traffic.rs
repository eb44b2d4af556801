//! All flows of a gateway, with what they share: their places, stores and keeper.

use super::admission::{Admission, Permit};
use super::custody::{Budget, Custody, MemoryCustody};
use super::floor::Floor;
use super::flow::{Body, ClientKey, Flow, Flows, Messages, NewFlow, Wish};
use super::flow_record::FlowRecord;
use super::keeping::Keeping;
use super::news::{Happened, Newsbox};
use super::relayed::Relays;
use super::stream::Stream;
use crate::gateway::config::{ClassSettings, CustodyPlace, GatewayConfig};
use crate::gateway::sockets::{Came, Token, kernel};
use fulmar_proto::machine::PathId;
use fulmar_proto::splice::{Destination, FlowClass, FlowId, RefuseCode, ResetCode};
use fulmar_proto::units::ByteCount;
use std::collections::{BTreeMap, BTreeSet};

/// Octets read from a socket at once.
const SCRATCH_BYTES: usize = 256 * 1024;

/// The flows that are carried.
#[derive(Debug)]
pub(in crate::gateway) struct Traffic {
    pub(in crate::gateway) flows: Flows,
    /// Datagram flows of entries: by port, client, and original destination.
    pub(in crate::gateway) clients: BTreeMap<ClientKey, FlowId>,
    /// Datagram flows of associations: by the association's token and the destination.
    pub(in crate::gateway) relayed: BTreeMap<Token, BTreeMap<Destination, FlowId>>,
    pub(in crate::gateway) admission: Admission,
    /// The budget of stores in memory.
    pub(in crate::gateway) budget: Budget,
    /// The budget of the store on disk, in octets of files.
    pub(in crate::gateway) disk_budget: Budget,
    pub(in crate::gateway) keeping: Keeping,
    pub(super) relays: Relays,
    pub(in crate::gateway) newsbox: Newsbox,
    pub(in crate::gateway) scratch: Vec<u8>,
    /// Flows of the gateway before that could not go on; its store and its keeper bound their number.
    pub(in crate::gateway) given_up: BTreeSet<FlowId>,
    /// Whether flows were left to the next gateway.
    pub(in crate::gateway) left: bool,
}

impl Traffic {
    pub(in crate::gateway) fn new(config: &GatewayConfig, keeping: Keeping) -> Self {
        Self {
            flows: Flows::default(),
            clients: BTreeMap::new(),
            relayed: BTreeMap::new(),
            admission: Admission::new(config),
            budget: Budget::new(config.custody.limit, config.live_places()),
            disk_budget: Budget::new(config.custody.limit, config.live_places()),
            keeping,
            relays: Relays::default(),
            newsbox: Newsbox::default(),
            scratch: vec![0; SCRATCH_BYTES],
            given_up: BTreeSet::new(),
            left: false,
        }
    }

    /// A store in memory for a flow of `peer`.
    pub(in crate::gateway) fn memory(&self, peer: usize, limit: ByteCount) -> Box<dyn Custody> {
        Box::new(MemoryCustody::new(limit.as_usize(), self.budget.of(peer)))
    }

    /// A store for a flow of `class` with `peer`, if it keeps anything.
    pub(in crate::gateway) fn custody(
        &self,
        (id, peer): (FlowId, usize),
        class: &ClassSettings,
        record: impl FnOnce() -> FlowRecord,
    ) -> Option<Box<dyn Custody>> {
        match class.custody {
            CustodyPlace::None => None,
            CustodyPlace::Memory => Some(self.memory(peer, class.keep)),
            CustodyPlace::Disk => {
                let budget = self.disk_budget.of(peer);
                let flow = (id, record());
                self.keeping.custody(flow, None, class.keep, budget)
            }
        }
    }

    /// Opens a flow towards the far side; `None` if that is not possible, which is told.
    pub(in crate::gateway) fn open(
        &mut self,
        floor: &mut Floor<'_>,
        wish: &Wish,
    ) -> Option<FlowId> {
        floor.report_link(wish.peer);
        let path = PathId(u32::try_from(wish.peer).unwrap_or(u32::MAX));
        let to = wish.to.clone();
        match floor
            .link
            .inner_mut()
            .open(floor.now, path, wish.kind, to, wish.class)
        {
            Ok(id) => Some(id),
            Err(error) => {
                let news = (&wish.to, error.to_string());
                self.newsbox.not_opened(floor.now, wish.peer, news);
                if let Some(skipped) = floor.repeats.may(floor.now, "open") {
                    let destination = &wish.to;
                    tracing::warn!(event = "flow_not_opened", %destination, %error, skipped);
                }
                None
            }
        }
    }

    /// Opens a flow for messages between `side` and the far side.
    pub(in crate::gateway) fn open_messages(
        &mut self,
        floor: &mut Floor<'_>,
        wish: Wish,
        (side, permit): (Messages, Permit),
    ) -> Option<FlowId> {
        let id = self.open(floor, &wish)?;
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
        self.flows.insert(floor.now, id, new);
        self.opened(floor, id);
        Some(id)
    }

    /// Notes that a flow has begun.
    pub(in crate::gateway) fn opened(&mut self, floor: &Floor<'_>, id: FlowId) {
        if !self.newsbox.is_wanted() {
            return;
        }
        let number = floor.link.inner().number_of(id);
        if let Some(flow) = self.flows.get_mut(id) {
            flow.number = number;
            self.newsbox.opened(floor.now, id, flow);
        }
    }

    /// Resumes a flow: the far side asks for octets that it was given before. A stream that kept nothing cannot go on.
    pub(in crate::gateway) fn resumed(&mut self, floor: &mut Floor<'_>, id: FlowId, from: u64) {
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
                self.newsbox.of_flow(floor.now, flow, resumed);
            }
            self.flows.wake(id);
        } else {
            floor
                .link
                .inner_mut()
                .reset(floor.now, id, ResetCode::CustodyLost);
            self.drop_flow(floor, id, ResetCode::CustodyLost.name(), true);
        }
    }

    /// Tells a flow's stream something, after which the flow gets a turn.
    pub(in crate::gateway) fn with_stream(&mut self, id: FlowId, call: impl FnOnce(&mut Stream)) {
        if let Some(flow) = self.flows.get_mut(id)
            && let Body::Stream(stream) = &mut flow.body
        {
            call(stream);
            self.flows.wake(id);
        }
    }

    /// Answers a proxy's client that waits, once the keeper has been told. Otherwise the next gateway would take the
    /// reply for the beginning of the destination's answer.
    pub(in crate::gateway) fn begin_held(
        &mut self,
        config: &GatewayConfig,
        id: FlowId,
        reply: Vec<u8>,
    ) {
        let is_held = |flow: &Flow| matches!(&flow.body, Body::Stream(stream) if stream.is_held());
        if !self.flows.get(id).is_some_and(is_held) {
            return;
        }
        let is_noted = !self.keeping.is_behind() && self.keep(config, id, reply.clone());
        if !is_noted || self.keeping.is_behind() {
            return self.keeping.reply_later(id, reply);
        }
        self.with_stream(id, |stream| stream.begin(reply));
    }

    /// Forgets a flow and closes its socket: with a reset, or in the ordinary way.
    pub(in crate::gateway) fn drop_flow(
        &mut self,
        floor: &mut Floor<'_>,
        id: FlowId,
        reason: &'static str,
        rst: bool,
    ) {
        let Some(flow) = self.flows.remove(id) else {
            return;
        };
        if let Some(token) = flow.token {
            floor.sockets.forget(token);
        }
        let moved = flow.moved_bytes();
        self.newsbox.ended(floor.now, &flow, reason);
        tracing::debug!(
            event = "flow_ended",
            %id,
            peer = floor.config.peer_name(flow.peer),
            class = &*floor.config.class_name(flow.class_id().0),
            destination = %flow.destination,
            reason,
            from_client_bytes = moved.0,
            to_client_bytes = moved.1,
            seconds = floor.now.saturating_since(flow.began).as_secs_f64(),
        );
        if let Some(client) = flow.client {
            self.clients.remove(&client);
        }
        if let Some(token) = flow.association
            && let Some(relayed) = self.relayed.get_mut(&token)
        {
            relayed.remove(&flow.destination);
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
            Body::Relayed(_) => self.relayed_flow_dropped(floor, id),
            Body::Messages(Messages::Onward(other)) => {
                floor.link.inner_mut().finish(floor.now, other);
                self.drop_flow(floor, other, reason, false);
            }
            Body::Messages(_) | Body::Resolving | Body::Connecting => {}
        }
    }

    /// Refuses a peer's wish.
    pub(in crate::gateway) fn refuse(
        &mut self,
        floor: &mut Floor<'_>,
        id: FlowId,
        destination: &Destination,
        code: RefuseCode,
    ) {
        if let Some(skipped) = floor
            .repeats
            .may_for(floor.now, "exit_refused", code.name())
        {
            let cure = (code == RefuseCode::NotAllowed)
                .then(|| floor.config.permission_of(destination))
                .flatten();
            tracing::info!(event = "exit_refused", %destination, reason = code.name(), cure, skipped);
        }
        self.refuse_silently(floor, id, destination, code);
    }

    /// Refuses a peer's wish whose reason the log has already.
    pub(in crate::gateway) fn refuse_silently(
        &mut self,
        floor: &mut Floor<'_>,
        id: FlowId,
        destination: &Destination,
        code: RefuseCode,
    ) {
        self.newsbox.refused(floor.now, destination, code.name());
        floor.link.inner_mut().refused(floor.now, id, code);
    }

    /// Ends an exit that could not connect.
    pub(in crate::gateway) fn give_up(
        &mut self,
        floor: &mut Floor<'_>,
        id: FlowId,
        code: RefuseCode,
    ) {
        if let Some(flow) = self.flows.remove(id) {
            if let Some(token) = flow.token {
                floor.sockets.forget(token);
            }
            self.newsbox.ended(floor.now, &flow, code.name());
            self.refuse(floor, id, &flow.destination, code);
        }
    }

    /// Whether every start of this gateway writes down which flows of a class it has connected for.
    pub(in crate::gateway) fn keeps_on_disk(
        &self,
        config: &GatewayConfig,
        class: &FlowClass,
    ) -> bool {
        let known = config.classes.iter().find(|c| c.flow.id == class.id);
        let on_disk = known.is_some_and(|known| known.custody == CustodyPlace::Disk);
        class.resume && on_disk && self.keeping.has_store()
    }

    /// Writes down that a flow's destination is about to be given octets. Otherwise a later start would take the flow
    /// for one that nobody has connected for, and give the octets twice.
    pub(in crate::gateway) fn note_begun(
        &mut self,
        config: &GatewayConfig,
        id: FlowId,
    ) -> Result<(), RefuseCode> {
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
            tracing::error!(event = "exit_not_noted", %id, peer = config.peer_name(peer), reason, %error);
            RefuseCode::NotKept
        })
    }

    /// Hands a client's message to its flow, towards the far side.
    pub(in crate::gateway) fn accept_message(
        &mut self,
        floor: &mut Floor<'_>,
        id: FlowId,
        message: &[u8],
    ) {
        floor
            .link
            .inner_mut()
            .accept_datagram(floor.now, id, message);
        if let Some(flow) = self.flows.get_mut(id) {
            flow.moved.0 += message.len() as u64;
            flow.messages += 1;
        }
    }

    /// Whether its destination is being connected to.
    pub(in crate::gateway) fn is_connecting(&self, id: FlowId) -> bool {
        let flow = self.flows.get(id);
        flow.is_some_and(|flow| matches!(flow.body, Body::Connecting))
    }

    /// Whether there are flows to wait for: those that the next gateway could not go on with. Packets of a tunnel are none: who
    /// sent them repeats them, or does not need them.
    pub(in crate::gateway) fn must_finish(&self) -> bool {
        let mut flows = self.flows.iter();
        flows.any(|(_, flow)| !flow.is_durable() && !flow.is_of_tunnel())
    }

    /// A flow's socket may be ready.
    pub(in crate::gateway) fn socket_ready(&mut self, id: FlowId, came: Came) {
        if let Some(flow) = self.flows.get_mut(id) {
            if let Body::Stream(stream) = &mut flow.body {
                stream.ready(came.readable, came.writable);
            }
            self.flows.wake(id);
        }
    }
}
