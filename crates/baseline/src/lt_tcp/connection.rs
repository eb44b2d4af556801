//! One connection: routes events to its parts.
//!
//! Sequence numbers exist on the wire alone. Inside, both directions count positions of their
//! stream from 0 in 64 bits; a SYN lies before position 0, and a FIN takes the position after the
//! last octet. `crate::stream` translates, called from the two files beside this one.

mod arrivals;
mod departures;

use super::config::LtTcpConfig;
use super::counters::LtTcpCounters;
use super::receiver::LtTcpReceiver;
use super::sender::LtTcpSender;
use crate::stream::{Challenges, Numbers, StreamKey, StreamStates, stream_connection};
use crate::tcp::TcpConnectionId;
use crate::wire::tcp::TcpHeader;

/// The longest segment that a network layer hands over.
const SEGMENT_MAX: usize = 65_535;
/// Memory for events that wait for the endpoint, and for SYNs of which one is the peer's.
const OTHER_BYTES_MAX: usize = 4_096;

/// The values that both SYNs agreed on.
#[derive(Clone, Copy, Debug, Default)]
struct Agreed {
    ecn: bool,
    /// The shifts of windows: of those that we advertise, and of the peer's.
    shifts: (u8, u8),
}

/// A connection.
#[derive(Debug)]
pub(super) struct LtTcpConnection {
    states: StreamStates,
    config: LtTcpConfig,
    /// SYNs that came to the listener and may be the peer's, the newest last. The first segment that
    /// acknowledges ours shows which of them is the peer's; to forge it, a forger must see the path.
    syns: Vec<TcpHeader>,
    numbers: Numbers,
    sender: LtTcpSender,
    receiver: LtTcpReceiver,
    /// Whether a SYN asks for ours; sending it then does not count as a try.
    syn_asked: bool,
    /// Whether our SYN was sent more than once, so that it gives no sample of the round trip
    /// (Karn).
    syn_sent_again: bool,
    agreed: Agreed,
    challenges: Challenges,
    /// Segments that arrived with numbers that the peer cannot mean.
    unbelieved: u64,
    octets: Vec<u8>,
    scratch: Vec<u8>,
}

stream_connection!(LtTcpConnection, LtTcpCounters, owes "delayed feedback");

impl LtTcpConnection {
    /// A connection in SYN-SENT whose SYN is due.
    pub(super) fn open(
        id: TcpConnectionId,
        key: StreamKey,
        config: &LtTcpConfig,
        iss: u32,
    ) -> Self {
        Self {
            states: StreamStates::new(id, key, config.time_wait),
            config: *config,
            syns: Vec::new(),
            numbers: Numbers::new(iss),
            sender: LtTcpSender::new(config),
            receiver: LtTcpReceiver::new(config),
            syn_asked: false,
            syn_sent_again: false,
            agreed: Agreed::default(),
            challenges: Challenges::new(),
            unbelieved: 0,
            octets: Vec::new(),
            scratch: Vec::new(),
        }
    }

    /// The send side, for reading.
    pub(super) const fn sender(&self) -> &LtTcpSender {
        &self.sender
    }

    /// The receive side, for reading.
    pub(super) const fn receiver(&self) -> &LtTcpReceiver {
        &self.receiver
    }

    /// Counts the segments that arrived with numbers that the peer cannot mean.
    pub(super) const fn unbelieved(&self) -> u64 {
        self.unbelieved
    }

    /// Octets of memory allocated.
    pub(super) fn memory_bytes(&self) -> usize {
        let parts = self.sender.memory_bytes() + self.receiver.memory_bytes();
        let syns = self.syns.capacity() * size_of::<TcpHeader>();
        let scratch = self.octets.capacity() + self.scratch.capacity();
        size_of::<Self>() + parts + self.states.memory_bytes() + syns + scratch
    }

    /// The most that a connection with `config` takes, whatever its peer sends and asks for.
    pub(super) fn memory_max(config: &LtTcpConfig) -> usize {
        let sender = LtTcpSender::memory_max(config.send_buffer.as_usize());
        let receiver = LtTcpReceiver::memory_max(config.receive_buffer.as_usize());
        size_of::<Self>() + sender + receiver + 2 * SEGMENT_MAX + OTHER_BYTES_MAX
    }
}
