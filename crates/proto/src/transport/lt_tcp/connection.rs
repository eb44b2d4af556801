//! One connection: routes what happens to its parts.
//!
//! Sequence numbers exist on the wire alone. Inside, both directions count positions of their
//! stream from 0 in 64 bits, a SYN lies before position 0 and a FIN takes the position after the
//! last octet; translation is here and in the two files beside it.

mod arrivals;
mod departures;

use super::config::LtTcpConfig;
use super::receiver::{Owed, Receiver};
use super::sender::Sender;
use crate::machine::{Deadline, PathId};
use crate::transport::tcp::{TcpCloseReason, TcpConnectionId, TcpEvent, TcpState, TcpWriteError};
use crate::units::Instant;
use crate::wire::aerotp::Port;
use crate::wire::tcp::{TcpHeader, TcpSeq};
use std::collections::VecDeque;

pub(super) use arrivals::Reply;

/// Which connection: its path and ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) path: PathId,
    pub(super) local: Port,
    pub(super) remote: Port,
}

/// The handshake of our side.
#[derive(Clone, Copy, Debug, Default)]
struct Handshake {
    /// Our SYN is to be sent.
    due: bool,
    /// A SYN asks for it: that is no try of ours.
    asked: bool,
    tries: u8,
    sent_at: Option<Instant>,
    /// It was sent more than once: no sample of the round trip (Karn).
    again: bool,
    timer: Option<Instant>,
}

/// What both SYNs agreed on.
#[derive(Clone, Copy, Debug, Default)]
struct Agreed {
    ecn: bool,
    /// The shift of windows that we advertise, and of the peer's.
    shifts: (u8, u8),
}

/// A connection.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) id: TcpConnectionId,
    pub(super) key: Key,
    state: TcpState,
    config: LtTcpConfig,
    /// It came to a listener.
    passive: bool,
    /// SYNs that came to the listener and may be the peer's, the newest last. Which of them is shows
    /// with the first segment that acknowledges ours, for which a forger must see the path.
    syns: Vec<TcpHeader>,
    iss: TcpSeq,
    irs: TcpSeq,
    sender: Sender,
    receiver: Receiver,
    handshake: Handshake,
    agreed: Agreed,
    time_wait: Option<Instant>,
    write_refused: bool,
    finish_told: bool,
    events: VecDeque<TcpEvent>,
    octets: Vec<u8>,
    scratch: Vec<u8>,
}

impl Connection {
    /// A connection in SYN-SENT, its SYN due.
    pub(super) fn open(id: TcpConnectionId, key: Key, config: &LtTcpConfig, iss: u32) -> Self {
        Self {
            id,
            key,
            state: TcpState::SynSent,
            config: *config,
            passive: false,
            syns: Vec::new(),
            iss: TcpSeq(iss),
            irs: TcpSeq(0),
            sender: Sender::new(config),
            receiver: Receiver::new(config),
            handshake: Handshake {
                due: true,
                ..Handshake::default()
            },
            agreed: Agreed::default(),
            time_wait: None,
            write_refused: false,
            finish_told: false,
            events: VecDeque::new(),
            octets: Vec::new(),
            scratch: Vec::new(),
        }
    }

    /// The state.
    pub(super) const fn state(&self) -> TcpState {
        self.state
    }

    /// The send side, to look at.
    pub(super) const fn sender(&self) -> &Sender {
        &self.sender
    }

    /// The receive side, to look at.
    pub(super) const fn receiver(&self) -> &Receiver {
        &self.receiver
    }

    /// Writes as much of `octets` as there is room for.
    pub(super) fn write(&mut self, octets: &[u8]) -> Result<usize, TcpWriteError> {
        match self.state {
            TcpState::Closed | TcpState::TimeWait => return Err(TcpWriteError::Closed),
            _ if self.sender.is_finishing() => return Err(TcpWriteError::Finishing),
            _ => {}
        }
        let taken = self.sender.write(octets);
        self.write_refused = taken < octets.len();
        Ok(taken)
    }

    /// Takes the next octets in order.
    pub(super) fn read(&mut self) -> Option<Vec<u8>> {
        let chunk = self.receiver.read();
        self.tell_finish();
        chunk
    }

    /// Takes back a vector for reuse.
    pub(super) fn recycle(&mut self, octets: Vec<u8>) {
        self.receiver.recycle(octets);
    }

    /// No more will be written. What was written is still sent; before there was an answer to the
    /// SYN, a connection without any is forgotten.
    pub(super) fn close(&mut self) {
        match self.state {
            TcpState::SynSent if self.sender.is_all_acked() => self.end(TcpCloseReason::Aborted),
            TcpState::SynSent | TcpState::SynReceived | TcpState::Established => {
                self.sender.finish();
                if self.state == TcpState::Established {
                    self.state = TcpState::FinWait1;
                }
            }
            TcpState::CloseWait => {
                self.sender.finish();
                self.state = TcpState::LastAck;
            }
            _ => {}
        }
    }

    /// Ends it at once. `true` if the peer should hear of it.
    pub(super) fn abort(&mut self) -> bool {
        let peer_knows = !matches!(
            self.state,
            TcpState::SynSent | TcpState::TimeWait | TcpState::Closed
        );
        self.end(TcpCloseReason::Aborted);
        peer_knows
    }

    fn end(&mut self, why: TcpCloseReason) {
        if self.state == TcpState::Closed {
            return;
        }
        let known = !self.passive || self.state != TcpState::SynReceived;
        self.state = TcpState::Closed;
        self.handshake.timer = None;
        self.time_wait = None;
        if !known {
            // The application was never told of it.
            return;
        }
        self.events.push_back(TcpEvent::Closed { id: self.id, why });
    }

    fn tell_finish(&mut self) {
        if self.receiver.is_finished() && !self.receiver.is_readable() && !self.finish_told {
            self.finish_told = true;
            self.events.push_back(TcpEvent::PeerFinished(self.id));
        }
    }

    /// The next event.
    pub(super) fn poll_event(&mut self) -> Option<TcpEvent> {
        self.events.pop_front()
    }

    /// When to call [`Connection::handle_deadline`].
    pub(super) fn next_deadline(&self) -> Option<Deadline> {
        let named = |at: Option<Instant>, why| at.map(|at| Deadline { at, why });
        if self.state == TcpState::Closed {
            return None;
        }
        let feedback = match self.receiver.owed() {
            Owed::At(at) => Some(at),
            Owed::Nothing | Owed::Now => None,
        };
        let own = Deadline::earlier(
            named(self.handshake.timer, "SYN timeout"),
            named(self.time_wait, "TIME-WAIT"),
        );
        let own = Deadline::earlier(own, named(feedback, "delayed feedback"));
        let sending = self.sender.next_deadline();
        Deadline::earlier(own, sending.filter(|_| self.may_send()))
    }

    /// Whether octets and FIN of ours may leave.
    fn may_send(&self) -> bool {
        matches!(
            self.state,
            TcpState::Established
                | TcpState::FinWait1
                | TcpState::CloseWait
                | TcpState::Closing
                | TcpState::LastAck
        )
    }

    /// A timer may have run out.
    pub(super) fn handle_deadline(&mut self, now: Instant) {
        let due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if self.state == TcpState::Closed {
            return;
        }
        if due(self.time_wait) {
            self.end(TcpCloseReason::Finished);
            return;
        }
        if due(self.handshake.timer) {
            self.handshake.timer = None;
            if self.handshake.tries > self.config.syn_retries {
                self.end(TcpCloseReason::TimedOut);
                return;
            }
            self.sender.rtt_mut().on_silence();
            self.handshake.due = true;
        }
        self.receiver.handle_deadline(now);
        if self.may_send() && !self.sender.handle_deadline(now) {
            self.end(TcpCloseReason::TimedOut);
        }
    }
}
