//! Questions to the far side: does it still have the flow, where nothing else would tell?
//!
//! An opener without a connection comes by itself. An acceptor without one can only wait, and the
//! opener may have forgotten the flow: it was killed before its custody was written, or before it
//! said the last word. A side whose connection survived an outage may be the only one left too: the
//! far side may have given up meanwhile, with its last word lost. Both sides therefore ask.

use super::super::records::Question;
use super::super::restored::Role;
use super::super::shared::Shared;
use super::{Flow, Phase};
use crate::transport::aerotp::CloseReason;
use crate::units::Instant;

impl Flow {
    /// Handles the link's return after an outage. An opener without a connection need not wait for
    /// its next try.
    pub(in super::super) fn on_link_up(&mut self) {
        if self.link.is_none() {
            self.come_at_once();
            return;
        }
        // An opener that was not answered on this connection asks with its opening. The opening may
        // still be on its way, and an answer that nobody knows the flow would then be wrong.
        let answered = self.phase == Phase::Open && self.stream.out.is_ready();
        self.doubted = self.role == Role::Acceptor || answered;
    }

    fn come_at_once(&mut self) {
        if self.role == Role::Opener {
            self.reconnects = 0;
            self.reconnect_due = true;
        }
    }

    /// The question to ask the far side about this flow, if there is one.
    pub(in super::super) fn question(&self) -> Option<Question> {
        let away = self.link.is_none() && self.role == Role::Acceptor;
        let asks = self.is_alive() && (away || self.doubted);
        asks.then_some(Question {
            flow: self.id,
            attempt: if away { self.attempt } else { 0 },
        })
    }

    /// Handles a question of the far side. The far side has lost the connection of opening
    /// `attempt`, if that is not 0.
    pub(in super::super) fn on_asked(&mut self, now: Instant, shared: &mut Shared, attempt: u64) {
        if self.role != Role::Opener || attempt == 0 {
            return;
        }
        if self.link.is_some() && self.attempt == attempt {
            self.drop_link(now, shared);
            self.on_connection_closed(now, shared, CloseReason::Reset);
        }
        if self.link.is_none() {
            self.come_at_once();
        }
    }

    /// Handles the answer that the far side has the flow.
    pub(in super::super) const fn on_known(&mut self) {
        self.doubted = false;
    }

    /// Handles the answer that the far side does not know the flow. The flow may have begun, or
    /// ended, since that was said.
    pub(in super::super) fn on_gone(&mut self, now: Instant, shared: &mut Shared) {
        if self.question().is_none() {
            return;
        }
        self.doubted = false;
        match self.role {
            Role::Acceptor => self.lose(now, shared),
            // The next opening asks the acceptor, which may remember how the flow ended.
            Role::Opener => {
                self.drop_link(now, shared);
                self.on_connection_closed(now, shared, CloseReason::Reset);
                self.come_at_once();
            }
        }
    }
}
