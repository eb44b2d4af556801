//! Questions after an outage: does the far side still have the association?

use super::super::codes::ResetCode;
use super::super::records::Question;
use super::super::restored::Role;
use super::super::shared::Shared;
use super::{Association, Phase, Way};
use crate::units::Instant;
use crate::wire::Mode;

impl Association {
    /// Handles the link's return after an outage.
    pub(in super::super) fn on_link_up(&mut self) {
        if matches!(self.way, Way::Away) {
            self.reconnect_due = self.role == Role::Opener;
        } else {
            // An opener that was not answered asks by its opening.
            let answered = self.phase == Phase::Open && self.answered;
            self.doubted = self.role == Role::Acceptor || answered;
        }
    }

    pub(in super::super) fn question(&self) -> Option<Question> {
        let asks = self.is_alive() && self.doubted;
        asks.then_some(Question {
            flow: self.id,
            attempt: 0,
        })
    }

    pub(in super::super) const fn on_known(&mut self) {
        self.doubted = false;
    }

    /// Handles that the far side does not know the flow: an acceptor ends it, and an opener asks
    /// for it again.
    pub(in super::super) fn on_gone(&mut self, now: Instant, shared: &mut Shared) {
        if self.question().is_none() {
            return;
        }
        self.doubted = false;
        match self.role {
            Role::Acceptor => {
                self.drop_link(now, shared);
                self.fail(now, shared, ResetCode::PeerLost);
            }
            // There is no connection to be found again: the next message asks.
            Role::Opener if self.class.mode == Mode::Datagram => self.answered = false,
            Role::Opener => {
                self.drop_link(now, shared);
                self.on_connection_closed(now, shared);
            }
        }
    }
}
