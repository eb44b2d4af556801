//! One connection: routes what happens to its parts.
//!
//! Sequence numbers exist on the wire alone. Inside, both directions count positions of their
//! stream from 0 in 64 bits, a SYN lies before position 0 and a FIN takes the position after the
//! last octet; translation is `parts::stream`'s and done in the two files beside this.
//!
//! What calls sender and receiver in turn reads as TCP's connection does: both are of other types
//! there, and traits over them would take more lines than they save.

mod arrivals;
mod departures;

use super::config::LtTcpConfig;
use super::endpoint::LtTcpCounters;
use super::receiver::Receiver;
use super::sender::Sender;
use crate::machine::Deadline;
use crate::transport::parts::stream::{Key, Numbers, Passed, States, StreamConnection};
use crate::transport::tcp::{TcpCloseReason, TcpConnectionId, TcpWriteError};
use crate::units::Instant;
use crate::wire::tcp::TcpHeader;

pub(super) use arrivals::Reply;

/// The longest segment that a network layer hands over.
const SEGMENT_MAX: usize = 65_535;
/// Events that wait for the endpoint, and SYNs of which one is the peer's.
const OTHER_BYTES_MAX: usize = 4_096;

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
    states: States,
    config: LtTcpConfig,
    /// SYNs that came to the listener and may be the peer's, the newest last. Which of them is shows
    /// with the first segment that acknowledges ours, for which a forger must see the path.
    syns: Vec<TcpHeader>,
    numbers: Numbers,
    sender: Sender,
    receiver: Receiver,
    /// A SYN asks for ours: that is no try of ours.
    syn_asked: bool,
    /// Ours was sent more than once: no sample of the round trip (Karn).
    syn_sent_again: bool,
    agreed: Agreed,
    octets: Vec<u8>,
    scratch: Vec<u8>,
}

impl Connection {
    /// A connection in SYN-SENT, its SYN due.
    pub(super) fn open(id: TcpConnectionId, key: Key, config: &LtTcpConfig, iss: u32) -> Self {
        Self {
            states: States::new(id, key, config.time_wait),
            config: *config,
            syns: Vec::new(),
            numbers: Numbers::new(iss),
            sender: Sender::new(config),
            receiver: Receiver::new(config),
            syn_asked: false,
            syn_sent_again: false,
            agreed: Agreed::default(),
            octets: Vec::new(),
            scratch: Vec::new(),
        }
    }

    /// The send side, to look at.
    pub(super) const fn sender(&self) -> &Sender {
        &self.sender
    }

    /// The receive side, to look at.
    pub(super) const fn receiver(&self) -> &Receiver {
        &self.receiver
    }

    /// Octets of memory taken.
    pub(super) fn memory_bytes(&self) -> usize {
        let parts = self.sender.memory_bytes() + self.receiver.memory_bytes();
        let syns = self.syns.capacity() * size_of::<TcpHeader>();
        let scratch = self.octets.capacity() + self.scratch.capacity();
        size_of::<Self>() + parts + self.states.memory_bytes() + syns + scratch
    }

    /// The most that a connection with `config` takes, whatever its peer sends and asks for.
    pub(super) fn memory_max(config: &LtTcpConfig) -> usize {
        let sender = Sender::memory_max(config.send_buffer.as_usize());
        let receiver = Receiver::memory_max(config.receive_buffer.as_usize());
        size_of::<Self>() + sender + receiver + 2 * SEGMENT_MAX + OTHER_BYTES_MAX
    }

    /// Writes as much of `octets` as there is room for.
    pub(super) fn write(&mut self, octets: &[u8]) -> Result<usize, TcpWriteError> {
        self.states.check_write(self.sender.is_finishing())?;
        let taken = self.sender.write(octets);
        self.states.on_written(taken, octets.len());
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

    /// No more will be written.
    pub(super) fn close(&mut self) {
        if self.states.close(self.sender.is_all_acked()) {
            self.sender.finish();
        }
    }

    fn tell_finish(&mut self) {
        if self.receiver.is_finished() && !self.receiver.is_readable() {
            self.states.tell_finish();
        }
    }
}

impl StreamConnection for Connection {
    type Ledger = LtTcpCounters;

    fn states(&self) -> &States {
        &self.states
    }

    fn states_mut(&mut self) -> &mut States {
        &mut self.states
    }

    fn next_deadline(&self) -> Option<Deadline> {
        let (owed, sender) = (self.receiver.answers.owed(), self.sender.next_deadline());
        self.states.next_deadline(owed, "delayed feedback", sender)
    }

    fn handle_deadline(&mut self, now: Instant) {
        match self.states.handle_deadline(now, self.config.syn_retries) {
            Passed::End => return,
            Passed::Syn => self.sender.rtt_mut().on_silence(),
            Passed::Nothing => {}
        }
        self.receiver.answers.handle_deadline(now);
        if self.states.state().may_send() && !self.sender.handle_deadline(now) {
            self.states.end(TcpCloseReason::TimedOut);
        }
    }

    fn book(&self, ledger: &mut LtTcpCounters) {
        ledger.add(self);
    }
}
