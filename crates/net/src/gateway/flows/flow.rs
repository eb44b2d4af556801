//! The flows of a gateway, with the list of those that have something to do and the times at which others will.

use super::admission::{Newcomer, Permit};
use super::stream::Stream;
use crate::gateway::sockets::{Here, Token};
use fulmar_proto::splice::{ClassId, Destination, FlowClass, FlowId, FlowKind, Host};
use fulmar_proto::units::Instant;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{SocketAddr, UdpSocket};

/// The messages after which a datagram flow without an answer counts as meant: a forged source sends one.
const NEWCOMER_MESSAGES: u64 = 8;

/// The way back to a client at a port that it shares with others.
pub(in crate::gateway) trait Answers: core::fmt::Debug {
    /// Gives the client a message of `source`. It is lost if the port is closed or full, as UDP's are.
    fn answer(&self, source: &Destination, message: &[u8]);
}

/// The local side of a datagram flow.
#[derive(Debug)]
pub(in crate::gateway) enum Messages {
    /// A socket for this flow alone: an exit's, or one that speaks under a foreign address.
    Own(UdpSocket),
    /// A client that is heard and answered at a port of several.
    Shared(Box<dyn Answers>),
    /// Another flow, which carries the messages on.
    Onward(FlowId),
}

/// The state of a flow.
#[derive(Debug)]
pub(in crate::gateway) enum Body {
    /// Exit: its destination's name is being resolved.
    Resolving,
    /// Exit: its destination is being connected to.
    Connecting,
    /// Octets flow.
    Stream(Stream),
    /// Messages flow.
    Messages(Messages),
    /// Octets flow from and to another flow ([`super::relays`]).
    Relayed(RelayedFlow),
}

/// A flow that this gateway carries on, or that carries one on.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::gateway) struct RelayedFlow {
    /// Whether the next gateway goes on with it after a restart.
    pub(in crate::gateway) is_durable: bool,
    /// Octets to the far side in custody.
    pub(in crate::gateway) kept_bytes: u64,
}

/// One flow.
#[derive(Debug)]
pub(in crate::gateway) struct Flow {
    pub(in crate::gateway) kind: FlowKind,
    pub(in crate::gateway) peer: usize,
    pub(in crate::gateway) class: FlowClass,
    pub(in crate::gateway) destination: Destination,
    /// Whether its client is a proxy's and waits for an answer.
    pub(in crate::gateway) proxied: bool,
    /// Whether its client came in here.
    pub(in crate::gateway) entered: bool,
    pub(in crate::gateway) began: Instant,
    /// The flow's number in an event trace.
    pub(in crate::gateway) number: Option<u64>,
    /// Octets of messages from and to the local side.
    pub(in crate::gateway) moved: (u64, u64),
    /// Messages moved, in both directions.
    pub(in crate::gateway) messages: u64,
    pub(in crate::gateway) body: Body,
    /// The name by which the poller watches its sockets.
    pub(in crate::gateway) token: Option<Token>,
    /// Datagram flows of entries: the client they are found by.
    pub(in crate::gateway) client: Option<ClientKey>,
    /// Flows of an association: its token.
    pub(in crate::gateway) association: Option<Token>,
    pub(in crate::gateway) permit: Permit,
    /// Octets written to a client that had said nothing when it was last looked at.
    pub(in crate::gateway) said_to_silent: u64,
    timer: Option<Instant>,
    patience: Option<Instant>,
}

/// The key under which a datagram flow of an entry is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::gateway) struct ClientKey {
    pub(in crate::gateway) port: Token,
    pub(in crate::gateway) client: SocketAddr,
    /// The address that the client sent to, if that was diverted.
    pub(in crate::gateway) original: Option<SocketAddr>,
    /// The one of our addresses that it sent to.
    pub(in crate::gateway) here: Option<Here>,
}

impl Flow {
    pub(in crate::gateway) const fn class_id(&self) -> ClassId {
        self.class.id
    }

    /// Octets from and to the local side.
    pub(in crate::gateway) fn moved_bytes(&self) -> (u64, u64) {
        match &self.body {
            Body::Stream(stream) => stream.moved(),
            Body::Resolving | Body::Connecting | Body::Messages(_) | Body::Relayed(_) => self.moved,
        }
    }

    /// Whether it is a newcomer, which gives way if places are short. A stream flow is none once an octet has passed in
    /// either direction; a datagram flow is none once a message came back, or several went.
    pub(super) fn is_newcomer(&self) -> bool {
        match &self.body {
            Body::Resolving | Body::Connecting => true,
            Body::Stream(stream) => !stream.has_spoken() && stream.moved().1 == 0,
            // Its other flow would have to go with it.
            Body::Relayed(_) | Body::Messages(Messages::Onward(_)) => false,
            Body::Messages(_) => {
                let (from_local, to_local) = self.moved;
                let answers = if self.entered { to_local } else { from_local };
                answers == 0 && self.messages < NEWCOMER_MESSAGES
            }
        }
    }

    /// The protocol of its clients.
    pub(in crate::gateway) const fn protocol(&self) -> &'static str {
        match (self.kind, &self.destination.host) {
            (FlowKind::Stream, _) => "tcp",
            (FlowKind::Datagrams, Host::Tunnel(_)) => "ip",
            (FlowKind::Datagrams, _) => "udp",
        }
    }

    /// Whether it carries packets of a tunnel.
    pub(in crate::gateway) const fn is_of_tunnel(&self) -> bool {
        matches!(self.destination.host, Host::Tunnel(_))
    }

    /// Whether its client came in here: `in`; else its server is reached from here: `out`.
    pub(in crate::gateway) const fn direction(&self) -> &'static str {
        if self.entered { "in" } else { "out" }
    }

    /// Whether the next gateway can go on with it.
    pub(super) fn is_durable(&self) -> bool {
        match &self.body {
            Body::Stream(stream) => stream.is_durable() && !stream.is_held(),
            Body::Relayed(relayed) => relayed.is_durable,
            Body::Resolving | Body::Connecting | Body::Messages(_) => false,
        }
    }

    /// Octets to the far side that are in custody.
    pub(in crate::gateway) fn kept_bytes(&self) -> u64 {
        match &self.body {
            Body::Stream(stream) => stream.kept(),
            Body::Relayed(relayed) => relayed.kept_bytes,
            Body::Resolving | Body::Connecting | Body::Messages(_) => 0,
        }
    }
}

/// A client's wish for a flow.
#[derive(Debug)]
pub(in crate::gateway) struct Wish {
    pub(in crate::gateway) peer: usize,
    pub(in crate::gateway) kind: FlowKind,
    pub(in crate::gateway) to: Destination,
    pub(in crate::gateway) class: FlowClass,
}

/// The properties of a new flow.
#[derive(Debug)]
pub(in crate::gateway) struct NewFlow {
    pub(in crate::gateway) kind: FlowKind,
    pub(in crate::gateway) peer: usize,
    pub(in crate::gateway) class: FlowClass,
    pub(in crate::gateway) destination: Destination,
    pub(in crate::gateway) proxied: bool,
    pub(in crate::gateway) entered: bool,
    pub(in crate::gateway) body: Body,
    pub(in crate::gateway) token: Option<Token>,
    pub(in crate::gateway) permit: Permit,
}

/// All flows.
#[derive(Debug, Default)]
pub(in crate::gateway) struct Flows {
    all: BTreeMap<FlowId, Flow>,
    busy: BTreeSet<FlowId>,
    timers: BTreeSet<(Instant, FlowId)>,
    /// Flows that have ended while they were being connected.
    unreached: Vec<FlowId>,
    /// The times at which silent clients are looked at.
    patience: BTreeSet<(Instant, FlowId)>,
}

impl Flows {
    pub(in crate::gateway) fn insert(&mut self, now: Instant, id: FlowId, new: NewFlow) {
        let flow = Flow {
            kind: new.kind,
            peer: new.peer,
            class: new.class,
            destination: new.destination,
            proxied: new.proxied,
            entered: new.entered,
            began: now,
            number: None,
            moved: (0, 0),
            messages: 0,
            body: new.body,
            token: new.token,
            client: None,
            association: None,
            permit: new.permit,
            said_to_silent: 0,
            timer: None,
            patience: None,
        };
        flow.permit.belongs_to(Newcomer::Flow(id));
        self.all.insert(id, flow);
        self.busy.insert(id);
    }

    pub(in crate::gateway) fn get(&self, id: FlowId) -> Option<&Flow> {
        self.all.get(&id)
    }

    pub(in crate::gateway) fn get_mut(&mut self, id: FlowId) -> Option<&mut Flow> {
        self.all.get_mut(&id)
    }

    pub(in crate::gateway) fn remove(&mut self, id: FlowId) -> Option<Flow> {
        let flow = self.all.remove(&id)?;
        self.busy.remove(&id);
        if matches!(flow.body, Body::Connecting) {
            self.unreached.push(id);
        }
        if let Some(at) = flow.timer {
            self.timers.remove(&(at, id));
        }
        if let Some(at) = flow.patience {
            self.patience.remove(&(at, id));
        }
        Some(flow)
    }

    /// Takes out the flows that have ended while they were being connected.
    pub(in crate::gateway) fn take_unreached(&mut self) -> Vec<FlowId> {
        core::mem::take(&mut self.unreached)
    }

    pub(in crate::gateway) fn iter(&self) -> impl Iterator<Item = (FlowId, &Flow)> {
        self.all.iter().map(|(id, flow)| (*id, flow))
    }

    pub(in crate::gateway) fn ids(&self) -> Vec<FlowId> {
        self.all.keys().copied().collect()
    }

    pub(in crate::gateway) fn len(&self) -> usize {
        self.all.len()
    }

    /// Gives a flow a turn, since something happened to it.
    pub(in crate::gateway) fn wake(&mut self, id: FlowId) {
        if self.all.contains_key(&id) {
            self.busy.insert(id);
        }
    }

    /// The flows that have something to do, each at most once; they have no more until woken.
    pub(in crate::gateway) fn take_busy(&mut self) -> BTreeSet<FlowId> {
        core::mem::take(&mut self.busy)
    }

    pub(in crate::gateway) fn is_busy(&self) -> bool {
        !self.busy.is_empty()
    }

    /// Sets the time at which a flow wants a turn if nothing happens before.
    pub(in crate::gateway) fn set_timer(&mut self, id: FlowId, at: Option<Instant>) {
        let Some(flow) = self.all.get_mut(&id) else {
            return;
        };
        if flow.timer == at {
            return;
        }
        if let Some(old) = flow.timer {
            self.timers.remove(&(old, id));
        }
        if let Some(new) = at {
            self.timers.insert((new, id));
        }
        flow.timer = at;
    }

    /// Sets the time of the next look whether a flow's client has sent something.
    pub(in crate::gateway) fn set_patience(&mut self, id: FlowId, at: Instant) {
        if let Some(flow) = self.all.get_mut(&id) {
            if let Some(old) = flow.patience.replace(at) {
                self.patience.remove(&(old, id));
            }
            self.patience.insert((at, id));
        }
    }

    pub(in crate::gateway) fn next_patience(&self) -> Option<Instant> {
        self.patience.first().map(|(at, _)| *at)
    }

    /// A flow whose client is to be looked at now. It is not returned again until the next time is set.
    pub(super) fn take_impatient(&mut self, now: Instant) -> Option<FlowId> {
        let (at, id) = self
            .patience
            .first()
            .copied()
            .filter(|(at, _)| *at <= now)?;
        self.patience.remove(&(at, id));
        if let Some(flow) = self.all.get_mut(&id) {
            flow.patience = None;
        }
        Some(id)
    }

    pub(in crate::gateway) fn next_timer(&self) -> Option<Instant> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// Wakes the flows whose time has come.
    pub(in crate::gateway) fn wake_due(&mut self, now: Instant) {
        while let Some((at, id)) = self.timers.first().copied() {
            if at > now {
                return;
            }
            self.set_timer(id, None);
            self.wake(id);
        }
    }
}
