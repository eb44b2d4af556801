//! One connection: routes what happens to its parts.
//!
//! Sequence numbers exist on the wire alone. Inside, both directions count positions of their
//! stream from 0 in 64 bits, a SYN lies before position 0 and a FIN takes the position after the
//! last octet; translation is here and in the two files beside it.

mod arrivals;
mod departures;

use super::config::TcpConfig;
use super::event::{TcpCloseReason, TcpConnectionId, TcpEvent, TcpState, TcpWriteError};
use super::receiver::{Owed, Receiver};
use super::scoreboard::Scoreboard;
use super::sender::{Sender, rto_limits};
use crate::bytes::StreamReassembly;
use crate::machine::{Deadline, PathId};
use crate::transport::parts::RttEstimator;
use crate::units::{Duration, Instant};
use crate::wire::aerotp::Port;
use crate::wire::tcp::{TCP_OPTIONS_MAX, TcpSeq};
use std::collections::VecDeque;

pub(super) use arrivals::Reply;

/// Which connection: its path and ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) path: PathId,
    pub(super) local: Port,
    pub(super) remote: Port,
}

/// What connections on a path learn from each other (RFC 9040).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Learned {
    pub(super) threshold: Option<u64>,
    pub(super) rtt: Option<(Duration, Duration)>,
}

/// The handshake of our side.
#[derive(Clone, Copy, Debug, Default)]
struct Handshake {
    /// Our SYN is to be sent.
    due: bool,
    tries: u8,
    sent_at: Option<Instant>,
    timer: Option<Instant>,
}

/// What both SYNs agreed on.
#[derive(Clone, Copy, Debug)]
struct Agreed {
    timestamps: bool,
    sack: bool,
    ecn: bool,
    /// The shift of windows that we advertise, and of the peer's; `None` without scaling.
    shifts: Option<(u8, u8)>,
    mss: u32,
}

/// Acknowledgements of what cannot be accepted, in one second at most (RFC 5961, section 7).
const CHALLENGES_MAX: u8 = 10;
const CHALLENGES_SPAN: Duration = Duration::from_secs(1);

/// A connection.
#[expect(
    clippy::struct_excessive_bools,
    reason = "four facts without a common order"
)]
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) id: TcpConnectionId,
    pub(super) key: Key,
    state: TcpState,
    config: TcpConfig,
    /// It came to a listener.
    passive: bool,
    iss: TcpSeq,
    irs: TcpSeq,
    sender: Sender,
    receiver: Receiver,
    handshake: Handshake,
    agreed: Agreed,
    learned: Learned,
    /// Our timestamps' distance from the run's clock, so that they do not tell it.
    clock_offset: u32,
    ts_recent: Option<(u32, Instant)>,
    /// The position of the last acknowledgement sent.
    acked_position: u64,
    /// The segment the window was last taken from: its position and its acknowledgement.
    window_from: (u64, u64),
    time_wait: Option<Instant>,
    challenges: (Instant, u8),
    write_refused: bool,
    finish_told: bool,
    events: VecDeque<TcpEvent>,
    /// Whether it is in the endpoint's queue of those that may have something to send.
    pub(super) is_ready: bool,
    /// The deadline under which the endpoint has filed it.
    pub(super) filed: Option<Instant>,
    scratch: Vec<u8>,
}

/// The longest segment that a network layer hands over.
const SEGMENT_MAX: usize = 65_535;
/// Events that wait for the endpoint, and options.
const OTHER_BYTES_MAX: usize = 4_096;
/// Without the option a peer takes this (RFC 9293, section 3.7.1).
const MSS_DEFAULT: u32 = 536;
/// RFC 6298, section 5.7: a SYN that had to be sent again says that the path is slow.
const RTO_AFTER_SYN_LOSS: Duration = Duration::from_secs(3);

impl Connection {
    /// A connection in SYN-SENT, its SYN due.
    pub(super) fn open(
        id: TcpConnectionId,
        key: Key,
        config: &TcpConfig,
        secrets: (u32, u32),
        learned: Learned,
    ) -> Self {
        let limits = rto_limits(config);
        let rtt = match learned.rtt {
            Some((smoothed, variation)) if config.sharing.rtt => {
                RttEstimator::resumed(limits, smoothed, variation)
            }
            _ => RttEstimator::new(limits),
        };
        Self {
            id,
            key,
            state: TcpState::SynSent,
            config: *config,
            passive: false,
            iss: TcpSeq(secrets.0),
            irs: TcpSeq(0),
            sender: Sender::new(config, MSS_DEFAULT, false, rtt),
            receiver: Receiver::new(config),
            handshake: Handshake {
                due: true,
                ..Handshake::default()
            },
            agreed: Agreed {
                timestamps: config.timestamps,
                sack: config.recovery.sack,
                ecn: config.ecn,
                shifts: None,
                mss: MSS_DEFAULT,
            },
            learned,
            clock_offset: secrets.1,
            ts_recent: None,
            acked_position: 0,
            window_from: (0, 0),
            time_wait: None,
            challenges: (Instant::START, 0),
            write_refused: false,
            finish_told: false,
            events: VecDeque::new(),
            is_ready: false,
            filed: None,
            scratch: Vec::with_capacity(TCP_OPTIONS_MAX),
        }
    }

    /// The state.
    pub(super) const fn state(&self) -> TcpState {
        self.state
    }

    /// Octets of memory taken.
    pub(super) fn memory_bytes(&self) -> usize {
        let events = self.events.capacity() * size_of::<TcpEvent>();
        let parts = self.sender.memory_bytes() + self.receiver.memory_bytes();
        size_of::<Self>() + parts + events + self.scratch.capacity()
    }

    /// The most that a connection with `config` takes, whatever its peer sends and asks for.
    pub(super) fn memory_max(config: &TcpConfig) -> usize {
        let (send, receive) = (
            config.send_buffer.as_usize(),
            config.receive_buffer.as_usize(),
        );
        let sender = 2 * send + Scoreboard::memory_max(send) + SEGMENT_MAX;
        size_of::<Self>() + sender + StreamReassembly::memory_max(receive) + OTHER_BYTES_MAX
    }

    /// The send side, to look at.
    pub(super) const fn sender(&self) -> &Sender {
        &self.sender
    }

    /// What other connections on the path may use.
    pub(super) fn lessons(&self) -> Learned {
        let (_, threshold) = self.sender.windows();
        let rtt = self.sender.rtt();
        Learned {
            threshold: (threshold < u64::MAX).then_some(threshold),
            rtt: rtt.smoothed().map(|smoothed| (smoothed, rtt.variation())),
        }
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

    /// No more will be written (RFC 9293, section 3.10.4). What was written before there was an
    /// answer is still sent, where the RFC would drop it; without, the connection is forgotten.
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

    /// Whether `seq` lies beyond all that the peer sent.
    pub(super) fn is_beyond(&self, seq: TcpSeq) -> bool {
        seq.distance_from(self.irs.plus(1).plus(arrivals::wire(self.receiver.next()))) > 0
    }

    /// TIME-WAIT ends early.
    pub(super) fn make_way(&mut self) {
        self.end(TcpCloseReason::Finished);
    }

    fn end(&mut self, why: TcpCloseReason) {
        if self.state == TcpState::Closed {
            return;
        }
        self.state = TcpState::Closed;
        self.handshake.timer = None;
        self.time_wait = None;
        self.events.push_back(TcpEvent::Closed { id: self.id, why });
    }

    /// Lets an application write on that was refused.
    fn tell_room(&mut self) {
        if self.write_refused && !self.sender.is_finishing() && self.sender.wants_writing() {
            self.write_refused = false;
            self.events.push_back(TcpEvent::Writable(self.id));
        }
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
        let ack = match self.receiver.owed() {
            Owed::At(at) => Some(at),
            Owed::Nothing | Owed::Now => None,
        };
        let own = Deadline::earlier(
            named(self.handshake.timer, "SYN timeout"),
            named(self.time_wait, "TIME-WAIT"),
        );
        let own = Deadline::earlier(own, named(ack, "delayed acknowledgement"));
        Deadline::earlier(
            own,
            self.sender
                .next_deadline()
                .filter(|_| self.state.may_send()),
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
        if self.state.may_send() && !self.sender.handle_deadline(now) {
            self.end(TcpCloseReason::TimedOut);
        }
    }
}
