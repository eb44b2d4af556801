//! The end of a flow, and the way in which both sides hear of it.
//!
//! The last word is a record and then the orderly close of the connection, never an abort: AeroTP
//! carries both across any outage that it survives. If the connection is lost all the same, the
//! opener of a flow that may resume connects once more to say it. An acceptor remembers its last
//! word until the opener asks (see `Graves`).

use super::super::codes::ResetCode;
use super::super::event::FlowEvent;
use super::super::graves::Outcome;
use super::super::restored::Role;
use super::super::shared::Shared;
use super::timers::FlowTimer;
use super::{Flow, Phase};
use crate::timer::TimerTable;
use crate::transport::aerotp::CloseReason;
use crate::units::Instant;

impl Flow {
    /// Enters the last phase: releases memory, and tells the far side `outcome` unless it knows.
    pub(super) fn end(&mut self, now: Instant, shared: &mut Shared, outcome: Outcome) {
        self.begin_ending(now, shared, outcome);
        match &mut self.link {
            None => self.on_ending_closed(now, shared, CloseReason::Reset),
            Some(link) if outcome == Outcome::Finished => link.close(now, &mut shared.endpoint),
            Some(_) => self.say_last_word(now, shared, outcome),
        }
    }

    /// Ends the flow after the far side said the last word.
    pub(super) fn end_silently(&mut self, now: Instant, shared: &mut Shared, outcome: Outcome) {
        self.begin_ending(now, shared, outcome);
        self.end_is_heard = true;
        if let Some(link) = &mut self.link {
            link.close_at_once(now, &mut shared.endpoint);
        } else {
            self.gone = true;
        }
    }

    fn begin_ending(&mut self, now: Instant, shared: &mut Shared, outcome: Outcome) {
        shared.counters.flows_now = shared.counters.flows_now.saturating_sub(1);
        self.phase = Phase::Ending(outcome);
        self.timers = TimerTable::default();
        self.stream.incoming.discard(&mut shared.pool);
        self.stream.out.set_ready(false);
        let patience = shared.config.connection.give_up_after;
        self.timers.set(FlowTimer::Ending, now + patience * 2);
    }

    /// Handles the connection's end while the flow was ending.
    pub(super) fn on_ending_closed(&mut self, now: Instant, shared: &mut Shared, why: CloseReason) {
        self.end_is_heard |= why == CloseReason::Finished;
        if self.end_is_heard || !self.class.resume || self.role == Role::Acceptor {
            self.gone = true;
        } else {
            self.pause(now, shared);
        }
    }

    /// Handles that the far side cut the flow off.
    pub(super) fn on_reset(&mut self, now: Instant, shared: &mut Shared, code: ResetCode) {
        shared.count_remote_reset(self.class.id, code);
        self.end_silently(now, shared, Outcome::Reset(code));
        shared.tell(FlowEvent::Reset {
            flow: self.id,
            code,
        });
    }

    /// Handles that the far side closed the connection without a last word.
    pub(in super::super) fn on_peer_finished(&mut self, now: Instant, shared: &mut Shared) {
        if self.is_alive() {
            self.fail(now, shared, ResetCode::PeerLost);
        }
    }

    /// Forgets the flow at the time limit of the last phase, whatever the far side knows.
    pub(super) fn give_up_ending(&mut self, now: Instant, shared: &mut Shared) {
        self.drop_link(now, shared);
        self.gone = true;
    }
}
