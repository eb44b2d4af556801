//! The end of an association.

use super::super::codes::{RefuseCode, ResetCode};
use super::super::event::FlowEvent;
use super::super::restored::Role;
use super::super::shared::Shared;
use super::{Association, AssociationTimer, LastWord, Phase, Way};
use crate::units::Instant;
use core::net::SocketAddr;

impl Association {
    pub(in super::super) fn connected(
        &mut self,
        now: Instant,
        shared: &mut Shared,
        bound: SocketAddr,
    ) {
        if self.phase == Phase::Requested {
            self.phase = Phase::Open;
            self.bound = Some(bound);
            self.timers.stop(AssociationTimer::Answer);
            self.note_activity(now);
            self.feed(now, shared);
        }
    }

    pub(in super::super) fn refuse(&mut self, now: Instant, shared: &mut Shared, code: RefuseCode) {
        if self.phase == Phase::Requested {
            shared.count_refusal(self.class.id, code);
            self.outbox.clear();
            self.part(now, shared, LastWord::Refused(code));
        }
    }

    pub(in super::super) fn finish(&mut self, now: Instant, shared: &mut Shared) {
        shared.class(self.class.id).flows_finished += 1;
        self.part(now, shared, LastWord::End);
    }

    pub(in super::super) fn reset(&mut self, now: Instant, shared: &mut Shared, code: ResetCode) {
        shared.count_local_reset(self.class.id, code);
        self.outbox.clear();
        self.part(now, shared, LastWord::Reset(code));
    }

    /// Cuts the flow off from this side, without being told to.
    pub(super) fn fail(&mut self, now: Instant, shared: &mut Shared, code: ResetCode) {
        if self.is_alive() {
            self.reset(now, shared, code);
            shared.tell(FlowEvent::Reset {
                flow: self.id,
                code,
            });
        }
    }

    /// Ends the flow for the driver. Waiting messages are sent, then the last word.
    pub(super) fn part(&mut self, now: Instant, shared: &mut Shared, word: LastWord) {
        if !self.is_alive() {
            return;
        }
        shared.counters.flows_now = shared.counters.flows_now.saturating_sub(1);
        self.phase = Phase::Parting(word);
        self.inbox.discard(&mut shared.pool);
        self.timers.stop(AssociationTimer::Answer);
        self.timers.stop(AssociationTimer::Parts);
        let at = now + shared.config.datagram_idle_max;
        self.timers.set(AssociationTimer::Idle, at);
        if matches!(self.way, Way::Away) {
            self.gone = true;
        } else {
            self.feed(now, shared);
        }
    }

    /// Forgets the flow: the far side knows that it is over, or will not hear it.
    pub(super) fn leave(&mut self, now: Instant, shared: &mut Shared) {
        if self.is_alive() {
            shared.counters.flows_now = shared.counters.flows_now.saturating_sub(1);
        }
        self.inbox.discard(&mut shared.pool);
        self.outbox.clear();
        if let Some(id) = self.connection() {
            shared.endpoint.close(now, id);
        }
        self.gone = true;
    }

    pub(super) fn on_end(&mut self, now: Instant, shared: &mut Shared) {
        shared.class(self.class.id).flows_finished += 1;
        shared.tell(FlowEvent::Closed(self.id));
        self.leave(now, shared);
    }

    pub(super) fn on_reset(&mut self, now: Instant, shared: &mut Shared, code: ResetCode) {
        shared.count_remote_reset(self.class.id, code);
        shared.tell(FlowEvent::Reset {
            flow: self.id,
            code,
        });
        self.leave(now, shared);
    }

    /// Handles that the far side closed the connection; its last word may have been lost.
    pub(in super::super) fn on_peer_finished(&mut self, now: Instant, shared: &mut Shared) {
        if self.is_alive() {
            self.on_end(now, shared);
        }
    }

    /// Handles the end of the connection. Messages under way on it may be lost; an opener connects
    /// again.
    pub(in super::super) fn on_connection_closed(&mut self, now: Instant, shared: &mut Shared) {
        self.way = Way::Away;
        if !self.is_alive() {
            self.gone = true;
        } else if self.role == Role::Opener {
            self.pause(now, shared);
        } else {
            self.on_end(now, shared);
        }
    }

    pub(in super::super) fn drop_link(&mut self, now: Instant, shared: &mut Shared) {
        if let Some(id) = self.connection() {
            shared.endpoint.abort(now, id);
            self.way = Way::Away;
        }
    }

    pub(in super::super) fn poll_datagram(
        &mut self,
        now: Instant,
        shared: &mut Shared,
    ) -> Option<Vec<u8>> {
        let counters = shared.counters.classes.entry(self.class.id).or_default();
        let message = self.inbox.pop(&mut shared.pool, counters)?;
        self.tell_received(shared);
        self.note_activity(now);
        Some(message)
    }
}
