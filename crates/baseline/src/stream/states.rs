//! RFC 9293's states from the SYN to TIME-WAIT, and the events they give the application.

use super::Owed;
use crate::tcp::{TcpCloseReason, TcpConnectionId, TcpEvent, TcpState, TcpWriteError};
use fulmar_proto::machine::{Deadline, PathId};
use fulmar_proto::units::{Duration, Instant};
use fulmar_proto::wire::Port;
use std::collections::VecDeque;

/// The key of a connection: its path and ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct StreamKey {
    pub(crate) path: PathId,
    pub(crate) local: Port,
    pub(crate) remote: Port,
}

/// The timer that [`StreamStates::handle_deadline`] found to have run out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Passed {
    /// No timer of the states.
    Nothing,
    /// The SYN's: our SYN is to be retransmitted.
    Syn,
    /// The last: the connection is over.
    End,
}

/// The handshake of our side.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HandshakeTries {
    /// Whether our SYN is to be sent.
    pub(crate) due: bool,
    pub(crate) tries: u8,
    pub(crate) sent_at: Option<Instant>,
    pub(crate) timer: Option<Instant>,
}

/// A connection's state, its own timers, and events that wait for the endpoint.
#[derive(Debug)]
pub(crate) struct StreamStates {
    id: TcpConnectionId,
    key: StreamKey,
    state: TcpState,
    /// Whether it came to a listener.
    passive: bool,
    pub(crate) handshake: HandshakeTries,
    /// The duration of TIME-WAIT, and its end.
    waits: Duration,
    time_wait: Option<Instant>,
    write_refused: bool,
    finish_told: bool,
    events: VecDeque<TcpEvent>,
}

impl StreamStates {
    /// A connection in SYN-SENT whose SYN is due; TIME-WAIT will last for `waits`.
    pub(crate) const fn new(id: TcpConnectionId, key: StreamKey, waits: Duration) -> Self {
        Self {
            id,
            key,
            state: TcpState::SynSent,
            passive: false,
            handshake: HandshakeTries {
                due: true,
                tries: 0,
                sent_at: None,
                timer: None,
            },
            waits,
            time_wait: None,
            write_refused: false,
            finish_told: false,
            events: VecDeque::new(),
        }
    }

    pub(crate) const fn state(&self) -> TcpState {
        self.state
    }

    pub(crate) const fn key(&self) -> StreamKey {
        self.key
    }

    /// Whether the connection came to a listener.
    pub(crate) const fn is_passive(&self) -> bool {
        self.passive
    }

    pub(crate) const fn is_closed(&self) -> bool {
        matches!(self.state, TcpState::Closed)
    }

    /// Octets of memory that events take.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.events.capacity() * size_of::<TcpEvent>()
    }

    /// Makes the connection the answer to a SYN that came to a listener.
    pub(crate) const fn accept(&mut self) {
        self.passive = true;
        self.state = TcpState::SynReceived;
    }

    /// Notes that both sides' SYNs crossed.
    pub(crate) const fn cross(&mut self) {
        self.state = TcpState::SynReceived;
        self.handshake.due = true;
    }

    /// Establishes the connection: our SYN is acknowledged; `finishing` if no more will be written.
    /// Returns the handshake.
    pub(crate) fn establish(&mut self, finishing: bool) -> HandshakeTries {
        self.state = if finishing {
            TcpState::FinWait1
        } else {
            TcpState::Established
        };
        let StreamKey {
            path,
            local,
            remote,
        } = self.key;
        let id = self.id;
        self.events.push_back(if self.passive {
            TcpEvent::Incoming {
                id,
                path,
                local,
                remote,
            }
        } else {
            TcpEvent::Connected(id)
        });
        core::mem::take(&mut self.handshake)
    }

    /// Checks whether anything may be written; `finishing` if the end of the stream is known.
    pub(crate) const fn check_write(&self, finishing: bool) -> Result<(), TcpWriteError> {
        match self.state {
            TcpState::Closed | TcpState::TimeWait => Err(TcpWriteError::Closed),
            _ if finishing => Err(TcpWriteError::Finishing),
            _ => Ok(()),
        }
    }

    /// Notes that `taken` of `offered` octets were written.
    pub(crate) const fn on_written(&mut self, taken: usize, offered: usize) {
        self.write_refused = taken < offered;
    }

    /// Tells an application that was refused that it may write again.
    pub(crate) fn tell_room(&mut self, wants_writing: bool) {
        if self.write_refused && wants_writing {
            self.write_refused = false;
            self.events.push_back(TcpEvent::Writable(self.id));
        }
    }

    /// Tells the application that there is something new to read.
    pub(crate) fn tell_readable(&mut self) {
        self.events.push_back(TcpEvent::Readable(self.id));
    }

    /// Tells the application that the peer's stream was read to its end.
    pub(crate) fn tell_finish(&mut self) {
        if !self.finish_told {
            self.finish_told = true;
            self.events.push_back(TcpEvent::PeerFinished(self.id));
        }
    }

    /// Notes that the application will write no more (RFC 9293, section 3.10.4). Returns `true` if
    /// the stream ends with the octets written. These are sent even if there was no answer to the
    /// SYN yet, where the RFC would drop them. A connection with nothing to send (`all_acked`) is
    /// then forgotten.
    pub(crate) fn close(&mut self, all_acked: bool) -> bool {
        match self.state {
            TcpState::SynSent if all_acked => {
                self.end(TcpCloseReason::Aborted);
                false
            }
            TcpState::SynSent | TcpState::SynReceived => true,
            TcpState::Established => {
                self.state = TcpState::FinWait1;
                true
            }
            TcpState::CloseWait => {
                self.state = TcpState::LastAck;
                true
            }
            _ => false,
        }
    }

    /// Ends the connection at once. Returns `true` if the peer should hear of it.
    pub(crate) fn abort(&mut self) -> bool {
        let peer_knows = !matches!(
            self.state,
            TcpState::SynSent | TcpState::TimeWait | TcpState::Closed
        );
        self.end(TcpCloseReason::Aborted);
        peer_knows
    }

    /// Ends the connection.
    pub(crate) fn end(&mut self, why: TcpCloseReason) {
        // An application that was never told of a connection does not hear of its end.
        let told = !self.passive || self.state != TcpState::SynReceived;
        if told && !self.is_closed() {
            self.events.push_back(TcpEvent::Closed { id: self.id, why });
        }
        self.state = TcpState::Closed;
        self.handshake.timer = None;
        self.time_wait = None;
    }

    /// Notes that the peer acknowledged our FIN.
    pub(crate) fn on_fin_acked(&mut self, now: Instant) {
        match self.state {
            TcpState::FinWait1 => self.state = TcpState::FinWait2,
            TcpState::Closing => self.wait(now),
            TcpState::LastAck => self.end(TcpCloseReason::Finished),
            _ => {}
        }
    }

    /// Notes that the peer's stream is complete.
    pub(crate) fn on_peer_finished(&mut self, now: Instant) {
        match self.state {
            TcpState::Established => self.state = TcpState::CloseWait,
            TcpState::FinWait1 => self.state = TcpState::Closing,
            TcpState::FinWait2 => self.wait(now),
            // This is a late copy: the peer may not have heard our answer.
            TcpState::TimeWait => self.restart_wait(now),
            _ => {}
        }
    }

    fn wait(&mut self, now: Instant) {
        self.state = TcpState::TimeWait;
        self.time_wait = Some(now + self.waits);
    }

    /// Notes that the peer sent its FIN again: TIME-WAIT, if that is the state, begins anew.
    pub(crate) fn restart_wait(&mut self, now: Instant) {
        if self.time_wait.is_some() {
            self.time_wait = Some(now + self.waits);
        }
    }

    /// The next event.
    pub(crate) fn poll_event(&mut self) -> Option<TcpEvent> {
        self.events.pop_front()
    }

    /// The earliest of the states' own timers, of the answer that is owed, whose reason is `why`,
    /// and of the sender's timers.
    pub(crate) fn next_deadline(
        &self,
        owed: Owed,
        why: &'static str,
        sender: Option<Deadline>,
    ) -> Option<Deadline> {
        if self.is_closed() {
            return None;
        }
        let named = |at: Option<Instant>, why| at.map(|at| Deadline { at, why });
        let answer = match owed {
            Owed::At(at) => Some(at),
            Owed::Nothing | Owed::Now => None,
        };
        let own = Deadline::earlier(
            named(self.handshake.timer, "SYN timeout"),
            named(self.time_wait, "TIME-WAIT"),
        );
        let own = Deadline::earlier(own, named(answer, why));
        Deadline::earlier(own, sender.filter(|_| self.state.may_send()))
    }

    /// Handles the timers that have run out; a SYN may be retransmitted `retries` times.
    pub(crate) fn handle_deadline(&mut self, now: Instant, retries: u8) -> Passed {
        let due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if self.is_closed() {
            return Passed::End;
        }
        if due(self.time_wait) {
            self.end(TcpCloseReason::Finished);
            return Passed::End;
        }
        if !due(self.handshake.timer) {
            return Passed::Nothing;
        }
        self.handshake.timer = None;
        if self.handshake.tries > retries {
            self.end(TcpCloseReason::TimedOut);
            return Passed::End;
        }
        self.handshake.due = true;
        Passed::Syn
    }
}
