//! The connection's own timers: for its set-up, its close, and a silent peer.

use super::super::event::{CloseReason, State};
use super::Connection;
use crate::machine::Deadline;
use crate::timer::TimerKind;
use crate::units::{Duration, Instant};

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum ConnectionTimer {
    Setup,
    Afin,
    Linger,
    Silence,
    KeepAlive,
    Idle,
}

impl TimerKind for ConnectionTimer {
    const COUNT: usize = 6;
    fn index(self) -> usize {
        self as usize
    }
    fn why(self) -> &'static str {
        match self {
            Self::Setup => "ASYN again",
            Self::Afin => "AFIN again",
            Self::Linger => "CLOSE_TO",
            Self::Silence => "peer silent for too long",
            Self::KeepAlive => "keep-alive",
            Self::Idle => "memory of an idle connection",
        }
    }
}

/// The time without traffic after which memory for traffic is freed. It is longer than the default
/// wait for any parity.
pub(super) const IDLE_AFTER: Duration = Duration::from_secs(2);
/// The least time in which a closed connection still answers. The papers say "long enough" and give
/// no value.
pub(super) const LINGER_MIN: Duration = Duration::from_secs(2);
/// The number of AFINs without answer, in modes that confirm nothing.
pub(super) const AFIN_ATTEMPTS_UNCONFIRMED: u32 = 4;
/// Keep-alives in the time after which silence means that the peer is gone.
const KEEP_ALIVES_PER_PATIENCE: u32 = 4;

impl Connection {
    /// Sets the timer for a silent peer. Silence ends a connection whose peer should be heard,
    /// since keep-alives and acknowledgements come from any living peer. A mode that confirms
    /// nothing may run over a one-way link.
    pub(super) fn rearm_patience(&mut self) {
        if !self.rules.connection || self.why_closed.is_some() {
            return;
        }
        if self.rules.confirms() || !self.initiator {
            let at = self.last_received + self.config.give_up_after;
            self.timers.set(ConnectionTimer::Silence, at);
        }
        let pause = self.config.give_up_after / KEEP_ALIVES_PER_PATIENCE;
        self.timers
            .set_if_idle(ConnectionTimer::KeepAlive, self.last_sent + pause);
    }

    pub(in super::super) fn handle_deadline(&mut self, now: Instant) {
        self.sender
            .handle_deadline(now, &mut self.counters, &mut self.trace);
        self.receiver
            .handle_deadline(now, &mut self.counters, &mut self.trace);
        while let Some(timer) = self.timers.expire(now) {
            match timer {
                ConnectionTimer::Setup => self.on_setup_timeout(now),
                ConnectionTimer::Afin => self.on_afin_timeout(now),
                ConnectionTimer::Linger => self.gone = true,
                ConnectionTimer::Silence => {
                    self.end(now, self.unless_finished(CloseReason::PeerVanished));
                }
                ConnectionTimer::KeepAlive => self.on_keep_alive(now),
                ConnectionTimer::Idle => self.on_idle(now),
            }
        }
    }

    /// Handles a set-up without answer. Confirmed data under way asks again by itself.
    fn on_setup_timeout(&mut self, now: Instant) {
        if self.heard {
            return;
        }
        if self.sender.awaits_answer() {
            self.timers
                .set(ConnectionTimer::Setup, now + self.sender.rto());
        } else {
            self.setup_due = true;
        }
    }

    fn on_afin_timeout(&mut self, now: Instant) {
        if self.afin_answered || self.why_closed.is_some() {
            return;
        }
        if self.rules.confirms() || self.afin_attempts <= AFIN_ATTEMPTS_UNCONFIRMED {
            self.afin_due = true;
        } else {
            self.settle(now);
        }
    }

    fn on_keep_alive(&mut self, now: Instant) {
        let pause = self.config.give_up_after / KEEP_ALIVES_PER_PATIENCE;
        if self.heard && self.why_closed.is_none() && now >= self.last_sent + pause {
            self.receiver.demand_ack();
            self.timers.set(ConnectionTimer::KeepAlive, now + pause);
        } else {
            self.timers.set(
                ConnectionTimer::KeepAlive,
                (self.last_sent + pause).max(now + pause / 4),
            );
        }
    }

    /// Settles the connection while the path is down; called after [`Connection::settle`]. A reset
    /// cannot be told: the peer hears of it when it asks. An end cannot be told either, and in
    /// modes that wait for nobody nothing else bounds the number of tries.
    pub(in super::super) fn settle_held(&mut self, now: Instant) {
        if core::mem::take(&mut self.reset_due) {
            self.forgotten = true;
            self.gone = true;
        }
        if self.closing && self.why_closed.is_none() {
            self.timers
                .set_if_idle(ConnectionTimer::Silence, now + self.config.give_up_after);
        }
    }

    /// Handles the return of a path that was down since `since`. A part that waits for an answer
    /// asks at once. A connection that was in use also tells at once what it has received.
    pub(in super::super) fn on_path_back(&mut self, now: Instant, since: Instant) {
        if self.why_closed.is_some() {
            return;
        }
        self.sender.on_path_back(now);
        if !self.rules.confirms() && self.initiator && self.afin_attempts == 0 {
            self.timers.stop(ConnectionTimer::Silence);
        }
        self.setup_due |= self.initiator && self.rules.connection && !self.heard;
        self.afin_due |= self.state == State::AfinSent && !self.afin_answered;
        if self.heard && self.last_sent.max(self.last_received) + IDLE_AFTER >= since {
            self.receiver.demand_ack();
        }
    }

    /// Frees memory after a while in which nothing was sent or received.
    fn on_idle(&mut self, now: Instant) {
        let idle_at = self.last_sent.max(self.last_received) + IDLE_AFTER;
        if now < idle_at {
            self.timers.set(ConnectionTimer::Idle, idle_at);
            return;
        }
        self.tidied_at = now;
        self.sender.give_back(now);
        self.receiver.give_back();
        self.events.shrink_to_fit();
    }

    pub(in super::super) fn next_deadline(&self) -> Option<Deadline> {
        let parts = Deadline::earlier(self.sender.next_deadline(), self.receiver.next_deadline());
        let own = self.timers.next_deadline();
        match self.why_closed {
            None => Deadline::earlier(parts, own),
            // Late copies are still answered while it lingers.
            Some(CloseReason::Finished) => Deadline::earlier(self.receiver.next_deadline(), own),
            Some(_) => own,
        }
    }
}
