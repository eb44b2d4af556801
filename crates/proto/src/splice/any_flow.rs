//! A flow of either kind, as the splicer's indexes hold it.

use super::address::{FlowId, FlowKind};
use super::association::Association;
use super::class::FlowClass;
use super::codes::{RefuseCode, ResetCode};
use super::flow::Flow;
use super::graves::Outcome;
use super::records::{Open, Question};
use super::restored::Role;
use super::shared::Shared;
use crate::machine::{Deadline, PathId};
use crate::transport::aerotp::{CloseReason, ConnectionId};
use crate::units::Instant;
use core::net::SocketAddr;

#[derive(Debug)]
pub(super) enum AnyFlow {
    Stream(Box<Flow>),
    Datagrams(Box<Association>),
}

/// Calls the same method of a flow of either kind.
macro_rules! each {
    ($self:expr, $flow:ident => $call:expr) => {
        match $self {
            AnyFlow::Stream($flow) => $call,
            AnyFlow::Datagrams($flow) => $call,
        }
    };
}

impl AnyFlow {
    pub(super) fn id(&self) -> FlowId {
        each!(self, flow => flow.id())
    }

    pub(super) const fn kind(&self) -> FlowKind {
        match self {
            Self::Stream(_) => FlowKind::Stream,
            Self::Datagrams(_) => FlowKind::Datagrams,
        }
    }

    pub(super) fn peer(&self) -> PathId {
        each!(self, flow => flow.peer())
    }

    pub(super) fn role(&self) -> Role {
        each!(self, flow => flow.role())
    }

    pub(super) fn attempt(&self) -> u64 {
        each!(self, flow => flow.attempt())
    }

    pub(super) fn class(&self) -> &FlowClass {
        each!(self, flow => flow.class())
    }

    pub(super) fn connection(&self) -> Option<ConnectionId> {
        each!(self, flow => flow.connection())
    }

    pub(super) fn is_alive(&self) -> bool {
        each!(self, flow => flow.is_alive())
    }

    pub(super) fn is_gone(&self) -> bool {
        each!(self, flow => flow.is_gone())
    }

    pub(super) fn next_deadline(&self) -> Option<Deadline> {
        each!(self, flow => flow.next_deadline())
    }

    pub(super) fn outcome(&self) -> Option<Outcome> {
        match self {
            Self::Stream(flow) => flow.outcome(),
            Self::Datagrams(_) => None,
        }
    }

    /// Whether the far side knows that the flow ended.
    pub(super) fn end_is_heard(&self) -> bool {
        self.as_stream().is_none_or(Flow::end_is_heard)
    }

    pub(super) fn as_stream(&self) -> Option<&Flow> {
        match self {
            Self::Stream(flow) => Some(flow),
            Self::Datagrams(_) => None,
        }
    }

    pub(super) fn as_stream_mut(&mut self) -> Option<&mut Flow> {
        match self {
            Self::Stream(flow) => Some(flow),
            Self::Datagrams(_) => None,
        }
    }

    pub(super) fn as_datagrams_mut(&mut self) -> Option<&mut Association> {
        match self {
            Self::Stream(_) => None,
            Self::Datagrams(flow) => Some(flow),
        }
    }

    pub(super) fn settle(&mut self, now: Instant, shared: &mut Shared) {
        match self {
            Self::Stream(flow) => flow.settle(now, shared),
            Self::Datagrams(flow) => flow.settle(shared),
        }
    }

    pub(super) fn handle_deadline(&mut self, now: Instant, shared: &mut Shared) {
        each!(self, flow => flow.handle_deadline(now, shared));
    }

    pub(super) fn on_octets(&mut self, now: Instant, shared: &mut Shared, octets: &[u8]) {
        each!(self, flow => flow.on_octets(now, shared, octets));
    }

    pub(super) fn on_room(&mut self, now: Instant, shared: &mut Shared) {
        match self {
            Self::Stream(flow) => flow.on_room(now, shared),
            Self::Datagrams(flow) => flow.feed(now, shared),
        }
    }

    pub(super) fn on_peer_finished(&mut self, now: Instant, shared: &mut Shared) {
        each!(self, flow => flow.on_peer_finished(now, shared));
    }

    pub(super) fn on_connection_closed(
        &mut self,
        now: Instant,
        shared: &mut Shared,
        why: CloseReason,
    ) {
        match self {
            Self::Stream(flow) => flow.on_connection_closed(now, shared, why),
            Self::Datagrams(flow) => flow.on_connection_closed(now, shared),
        }
    }

    /// Handles a restart of the peer: it no longer knows the flow's connection, and perhaps not the
    /// flow.
    pub(super) fn on_peer_restarted(&mut self, now: Instant, shared: &mut Shared) {
        if let Self::Datagrams(flow) = self {
            flow.on_far_restarted(shared);
        }
        if let Self::Stream(flow) = self {
            flow.note_far_restart(shared);
        }
        if let Self::Stream(flow) = self
            && flow.dies_with_peer()
        {
            flow.lose(now, shared);
        } else if self.connection().is_some() {
            each!(self, flow => flow.drop_link(now, shared));
            self.on_connection_closed(now, shared, CloseReason::Reset);
        }
    }

    /// Handles the return of the link to the far side.
    pub(super) fn on_link_up(&mut self) {
        each!(self, flow => flow.on_link_up());
    }

    /// The question to ask the far side about this flow, if there is one.
    pub(super) fn question(&self) -> Option<Question> {
        each!(self, flow => flow.question())
    }

    /// Handles a question of the far side about the flow. The far side has lost the connection of
    /// opening `attempt`, if that is not 0.
    pub(super) fn on_asked(&mut self, now: Instant, shared: &mut Shared, attempt: u64) {
        if let Self::Stream(flow) = self {
            flow.on_asked(now, shared, attempt);
        }
    }

    /// Handles the answer that the far side has the flow.
    pub(super) fn on_known(&mut self) {
        each!(self, flow => flow.on_known());
    }

    /// Handles the answer that the far side does not have the flow.
    pub(super) fn on_gone(&mut self, now: Instant, shared: &mut Shared) {
        each!(self, flow => flow.on_gone(now, shared));
    }

    pub(super) fn take_reconnect(&mut self) -> bool {
        each!(self, flow => flow.take_reconnect())
    }

    /// Opener: connects again, or waits for the next try.
    pub(super) fn reconnect(&mut self, now: Instant, shared: &mut Shared, attempt: u64) {
        match self {
            Self::Stream(flow) => {
                if flow.connect(now, shared, attempt, 0).is_err() {
                    flow.pause(now, shared);
                }
            }
            Self::Datagrams(flow) => {
                if flow.connect(now, shared, attempt).is_err() {
                    flow.pause(now, shared);
                }
            }
        }
    }

    /// Acceptor: attaches the flow to connection `id`, on which the opener sent a newer opening;
    /// without a connection, in datagram mode.
    pub(super) fn attach(
        &mut self,
        now: Instant,
        shared: &mut Shared,
        id: Option<ConnectionId>,
        open: &Open,
    ) {
        match (self, id) {
            (Self::Stream(flow), Some(id)) => flow.attach(now, shared, id, open),
            (Self::Stream(_), None) => {}
            (Self::Datagrams(flow), id) => flow.attach(now, shared, id, open),
        }
    }

    pub(super) fn connected(&mut self, now: Instant, shared: &mut Shared, bound: SocketAddr) {
        each!(self, flow => flow.connected(now, shared, bound));
    }

    pub(super) fn refuse(&mut self, now: Instant, shared: &mut Shared, code: RefuseCode) {
        each!(self, flow => flow.refuse(now, shared, code));
    }

    pub(super) fn finish(&mut self, now: Instant, shared: &mut Shared) {
        each!(self, flow => flow.finish(now, shared));
    }

    pub(super) fn reset(&mut self, now: Instant, shared: &mut Shared, code: ResetCode) {
        each!(self, flow => flow.reset(now, shared, code));
    }
}
