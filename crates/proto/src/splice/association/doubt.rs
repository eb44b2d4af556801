//! Whether the far side still has the association after an outage.

use super::super::codes::ResetCode;
use super::super::records::Question;
use super::super::restored::Role;
use super::super::shared::Shared;
use super::{Association, Phase, Way};
use crate::units::Instant;
use crate::wire::Mode;

impl Association {
    /// The link was down, and is up.
    pub(in super::super) fn on_link_up(&mut self) {
        if matches!(self.way, Way::Away) {
            self.reconnect_due = self.role == Role::Opener;
        } else {
            // An opener that was not answered asks with its opening.
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

    /// The far side does not know the flow: it is over at an acceptor, and asked for again by an
    /// opener.
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
            // There is no connection to find again: the next message asks.
            Role::Opener if self.class.mode == Mode::Datagram => self.answered = false,
            Role::Opener => {
                self.drop_link(now, shared);
                self.on_connection_closed(now, shared);
            }
        }
    }
}
