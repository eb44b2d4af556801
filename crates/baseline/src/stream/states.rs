//! RFC 9293's states from the SYN to TIME-WAIT, and what the application is told of them.

use super::Owed;
use crate::tcp::{TcpCloseReason, TcpConnectionId, TcpEvent, TcpState, TcpWriteError};
use fulmar_proto::machine::{Deadline, PathId};
use fulmar_proto::units::{Duration, Instant};
use fulmar_proto::wire::Port;
use std::collections::VecDeque;

/// Which connection: its path and ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) path: PathId,
    pub(crate) local: Port,
    pub(crate) remote: Port,
}

/// What [`States::handle_deadline`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Passed {
    /// Nothing of the states' own.
    Nothing,
    /// Our SYN is to be sent again.
    Syn,
    /// The connection is over.
    End,
}

/// The handshake of our side.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Handshake {
    /// Our SYN is to be sent.
    pub(crate) due: bool,
    pub(crate) tries: u8,
    pub(crate) sent_at: Option<Instant>,
    pub(crate) timer: Option<Instant>,
}

/// A connection's state, its own timers, and events that wait for the endpoint.
#[derive(Debug)]
pub(crate) struct States {
    id: TcpConnectionId,
    key: Key,
    state: TcpState,
    /// It came to a listener.
    passive: bool,
    pub(crate) handshake: Handshake,
    /// How long TIME-WAIT lasts, and until when.
    waits: Duration,
    time_wait: Option<Instant>,
    write_refused: bool,
    finish_told: bool,
    events: VecDeque<TcpEvent>,
}

impl States {
    /// SYN-SENT, the SYN due; TIME-WAIT will last for `waits`.
    pub(crate) const fn new(id: TcpConnectionId, key: Key, waits: Duration) -> Self {
        Self {
            id,
            key,
            state: TcpState::SynSent,
            passive: false,
            handshake: Handshake {
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

    pub(crate) const fn key(&self) -> Key {
        self.key
    }

    /// Whether it came to a listener.
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

    /// It is the answer to a SYN that came to a listener.
    pub(crate) const fn accept(&mut self) {
        self.passive = true;
        self.state = TcpState::SynReceived;
    }

    /// Both sides' SYNs crossed.
    pub(crate) const fn cross(&mut self) {
        self.state = TcpState::SynReceived;
        self.handshake.due = true;
    }

    /// Our SYN is acknowledged; `finishing` if no more will be written. What the handshake was.
    pub(crate) fn establish(&mut self, finishing: bool) -> Handshake {
        self.state = if finishing {
            TcpState::FinWait1
        } else {
            TcpState::Established
        };
        let Key {
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

    /// Whether something may be written; `finishing` if the end of the stream is known.
    pub(crate) const fn check_write(&self, finishing: bool) -> Result<(), TcpWriteError> {
        match self.state {
            TcpState::Closed | TcpState::TimeWait => Err(TcpWriteError::Closed),
            _ if finishing => Err(TcpWriteError::Finishing),
            _ => Ok(()),
        }
    }

    /// Of `offered` octets `taken` were written.
    pub(crate) const fn on_written(&mut self, taken: usize, offered: usize) {
        self.write_refused = taken < offered;
    }

    /// An application that was refused may write on.
    pub(crate) fn tell_room(&mut self, wants_writing: bool) {
        if self.write_refused && wants_writing {
            self.write_refused = false;
            self.events.push_back(TcpEvent::Writable(self.id));
        }
    }

    /// There is something to read that was not there before.
    pub(crate) fn tell_readable(&mut self) {
        self.events.push_back(TcpEvent::Readable(self.id));
    }

    /// The peer's stream was read to its end.
    pub(crate) fn tell_finish(&mut self) {
        if !self.finish_told {
            self.finish_told = true;
            self.events.push_back(TcpEvent::PeerFinished(self.id));
        }
    }

    /// The application will write no more (RFC 9293, section 3.10.4). `true` if the stream ends with
    /// what was written: that is still sent before there was an answer to the SYN, where the RFC
    /// would drop it. A connection with nothing to send (`all_acked`) is forgotten then.
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

    /// Ends it at once. `true` if the peer should hear of it.
    pub(crate) fn abort(&mut self) -> bool {
        let peer_knows = !matches!(
            self.state,
            TcpState::SynSent | TcpState::TimeWait | TcpState::Closed
        );
        self.end(TcpCloseReason::Aborted);
        peer_knows
    }

    /// It is over.
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

    /// The peer acknowledged our FIN.
    pub(crate) fn on_fin_acked(&mut self, now: Instant) {
        match self.state {
            TcpState::FinWait1 => self.state = TcpState::FinWait2,
            TcpState::Closing => self.wait(now),
            TcpState::LastAck => self.end(TcpCloseReason::Finished),
            _ => {}
        }
    }

    /// The peer's stream is whole.
    pub(crate) fn on_peer_finished(&mut self, now: Instant) {
        match self.state {
            TcpState::Established => self.state = TcpState::CloseWait,
            TcpState::FinWait1 => self.state = TcpState::Closing,
            TcpState::FinWait2 => self.wait(now),
            // A late copy: the peer may not have heard.
            TcpState::TimeWait => self.restart_wait(now),
            _ => {}
        }
    }

    fn wait(&mut self, now: Instant) {
        self.state = TcpState::TimeWait;
        self.time_wait = Some(now + self.waits);
    }

    /// The peer sent its FIN again: TIME-WAIT, if it is that, begins anew.
    pub(crate) fn restart_wait(&mut self, now: Instant) {
        if self.time_wait.is_some() {
            self.time_wait = Some(now + self.waits);
        }
    }

    /// The next event.
    pub(crate) fn poll_event(&mut self) -> Option<TcpEvent> {
        self.events.pop_front()
    }

    /// The first of the states' own timers, the answer that is owed, which is for `why`, and the
    /// sender's.
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

    /// A timer may have run out; a SYN may be sent `retries` times more than once.
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
