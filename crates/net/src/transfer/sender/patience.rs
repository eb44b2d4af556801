//! A sender's behaviour when nobody answers, or when those who answered no longer know the transfer.

use super::super::report::SendError;
use super::{Phase, SendObserver, Sender};
use fulmar_proto::machine::Deadline;
use fulmar_proto::transport::aerotp::{AerotpEndpoint, CloseReason};
use fulmar_proto::units::{Duration, Instant};

/// The time after which the network's word that nobody listens is believed: a receiver may be just starting.
const CLOSED_PORT_PATIENCE: Duration = Duration::from_secs(1);
/// The pause between a lost connection and the next attempt.
const PAUSE: Duration = Duration::from_millis(250);

/// The time for which connections have been lost without progress between them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Patience {
    /// The time since which the network says that nobody listens, before anyone was heard.
    closed_since: Option<Instant>,
    /// The time at which the current connection was offered a place to continue.
    offered_at: Option<Instant>,
    /// The furthest place that was ever offered.
    furthest: u64,
    /// The first connection lost since the last progress.
    lost_since: Option<Instant>,
}

impl Patience {
    pub(super) fn on_offer(&mut self, now: Instant, offset: u64) {
        self.offered_at = Some(now);
        if offset > self.furthest {
            self.furthest = offset;
            self.lost_since = None;
        }
    }

    /// Notes a lost connection, and returns the time since which connections have been lost. One that stood for as
    /// long as the patience counts as progress, even where every file begins anew.
    fn on_lost(&mut self, now: Instant, patience: Duration) -> Instant {
        let stood = self.offered_at.take();
        if stood.is_some_and(|since| now.saturating_since(since) >= patience) {
            self.lost_since = None;
        }
        *self.lost_since.get_or_insert(now)
    }
}

impl<O: SendObserver> Sender<O> {
    /// The time at which waiting ends if nothing else happens, and the error then.
    pub(super) fn patience_ends(&self) -> Option<(Deadline, SendError)> {
        let give_up = self.plan.connection.give_up_after;
        if self.verdict.is_some() || matches!(self.phase, Phase::Farewell(_)) {
            return None;
        }
        let (at, why, error) = match self.patience.lost_since {
            _ if !self.heard => {
                let at = self.started? + self.plan.connect_timeout;
                let error = SendError::Unreachable(self.plan.connect_timeout);
                (at, "patience before the first answer", error)
            }
            Some(since) if self.patience.offered_at.is_none() => {
                let error = SendError::Vanished(give_up);
                (since + give_up, "patience with a lost receiver", error)
            }
            _ => return None,
        };
        Some((Deadline { at, why }, error))
    }

    pub(super) fn on_closed(&mut self, now: Instant, why: CloseReason) {
        if let Phase::Leaving { .. } = self.phase {
            self.phase = Phase::Leaving { until: now };
            return;
        }
        self.control = None;
        match why {
            CloseReason::Reset => self.reconnect(now),
            CloseReason::PeerVanished if self.heard => {
                self.fail(SendError::Vanished(self.plan.connection.give_up_after));
            }
            CloseReason::PeerVanished => {
                self.fail(SendError::Unreachable(self.plan.connection.give_up_after));
            }
            CloseReason::Finished | CloseReason::Aborted | CloseReason::Disagreed => {
                self.fail(SendError::Stopped);
            }
        }
    }

    fn reconnect(&mut self, now: Instant) {
        let give_up = self.plan.connection.give_up_after;
        let was_offered = self.patience.offered_at.is_some();
        let lost_since = self.patience.on_lost(now, give_up);
        if !self.source.is_seekable() {
            self.fail(SendError::Unrepeatable);
        } else if now.saturating_since(lost_since) >= give_up {
            self.fail(SendError::Unsteady(give_up));
        } else {
            if was_offered {
                self.reconnections += 1;
                self.observer.reconnecting();
            }
            self.phase = Phase::Pausing { until: now + PAUSE };
        }
    }

    /// Handles the network's word that nobody listens. Once someone was heard, that means that the receiver has
    /// ended, and its knowledge of the connection with it.
    pub(super) fn on_port_closed(&mut self, now: Instant, machine: &mut AerotpEndpoint) {
        if let Phase::Farewell(_) = self.phase {
            // Nobody is left to tell.
            return self.leave_farewell();
        }
        if !self.heard {
            let since = *self.patience.closed_since.get_or_insert(now);
            if now.saturating_since(since) >= CLOSED_PORT_PATIENCE {
                self.fail(SendError::PortClosed);
            }
            return;
        }
        self.connect_anew(now, machine);
    }

    /// Lets go of a connection that the receiver knows no more, if it still carries something, and opens another one
    /// after a pause.
    pub(super) fn connect_anew(&mut self, now: Instant, machine: &mut AerotpEndpoint) {
        let is_under_way = matches!(
            self.phase,
            Phase::Talking | Phase::Verifying(_) | Phase::AwaitingVerdict
        );
        if let Some(control) = self.control.filter(|_| is_under_way) {
            self.control = None;
            machine.abort(now, control);
            self.reconnect(now);
        }
    }
}
