//! One connection: routes events to its parts.
//!
//! Sequence numbers exist on the wire alone. Inside, both directions count positions of their
//! stream from 0 in 64 bits; a SYN lies before position 0, and a FIN takes the position after the
//! last octet. `crate::stream` translates, called from the two files beside this one.

mod arrivals;
mod departures;

use super::config::TcpConfig;
use super::endpoint::Ledger;
use super::event::{TcpCloseReason, TcpConnectionId};
use super::receiver::TcpReceiver;
use super::scoreboard::SackScoreboard;
use super::sender::{TcpSender, rto_limits};
use crate::stream::{Challenges, Numbers, StreamKey, StreamStates, stream_connection};
use crate::wire::tcp::{TCP_OPTIONS_MAX, TcpSeq};
use fulmar_proto::bytes::StreamReassembly;
use fulmar_proto::transport::parts::RttEstimator;
use fulmar_proto::units::{Duration, Instant};

/// The values that connections on a path learn from each other (RFC 9040).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Learned {
    pub(super) threshold: Option<u64>,
    pub(super) rtt: Option<(Duration, Duration)>,
}

/// The values that both SYNs agreed on.
#[derive(Clone, Copy, Debug)]
struct Agreed {
    timestamps: bool,
    sack: bool,
    ecn: bool,
    /// The shifts of windows: of those that we advertise, and of the peer's; `None` without
    /// scaling.
    shifts: Option<(u8, u8)>,
    mss: u32,
}

/// A connection.
#[derive(Debug)]
pub(super) struct TcpConnection {
    states: StreamStates,
    config: TcpConfig,
    numbers: Numbers,
    sender: TcpSender,
    receiver: TcpReceiver,
    agreed: Agreed,
    learned: Learned,
    /// The distance of our timestamps from the run's clock, so that they do not reveal it.
    clock_offset: u32,
    ts_recent: Option<(u32, Instant)>,
    /// The position of the last acknowledgement sent.
    acked_position: u64,
    /// The segment from which the window was last taken: its position and its acknowledgement.
    window_from: (u64, u64),
    challenges: Challenges,
    scratch: Vec<u8>,
}

/// The longest segment that a network layer hands over.
const SEGMENT_MAX: usize = 65_535;
/// Memory for events that wait for the endpoint, and for options.
const OTHER_BYTES_MAX: usize = 4_096;
/// The segment size that a peer takes without the option (RFC 9293, section 3.7.1).
const MSS_DEFAULT: u32 = 536;
/// The timeout after a SYN was retransmitted: that shows that the path is slow (RFC 6298, section
/// 5.7).
const RTO_AFTER_SYN_LOSS: Duration = Duration::from_secs(3);

stream_connection!(TcpConnection, Ledger, owes "delayed acknowledgement");

impl TcpConnection {
    /// A connection in SYN-SENT whose SYN is due.
    pub(super) fn open(
        id: TcpConnectionId,
        key: StreamKey,
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
            states: StreamStates::new(id, key, config.time_wait),
            config: *config,
            numbers: Numbers::new(secrets.0),
            sender: TcpSender::new(config, MSS_DEFAULT, false, rtt),
            receiver: TcpReceiver::new(config),
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
            challenges: Challenges::new(),
            scratch: Vec::with_capacity(TCP_OPTIONS_MAX),
        }
    }

    /// Octets of memory allocated.
    pub(super) fn memory_bytes(&self) -> usize {
        let events = self.states.memory_bytes();
        let parts = self.sender.memory_bytes() + self.receiver.memory_bytes();
        size_of::<Self>() + parts + events + self.scratch.capacity()
    }

    /// The most that a connection with `config` takes, whatever its peer sends and asks for.
    pub(super) fn memory_max(config: &TcpConfig) -> usize {
        let (send, receive) = (
            config.send_buffer.as_usize(),
            config.receive_buffer.as_usize(),
        );
        let sender = 2 * send + SackScoreboard::memory_max(send) + SEGMENT_MAX;
        size_of::<Self>() + sender + StreamReassembly::memory_max(receive) + OTHER_BYTES_MAX
    }

    /// The send side, for reading.
    pub(super) const fn sender(&self) -> &TcpSender {
        &self.sender
    }

    /// The values that other connections on the path may use.
    pub(super) fn lessons(&self) -> Learned {
        let (_, threshold) = self.sender.windows();
        let rtt = self.sender.rtt();
        Learned {
            threshold: (threshold < u64::MAX).then_some(threshold),
            rtt: rtt.smoothed().map(|smoothed| (smoothed, rtt.variation())),
        }
    }

    /// Whether `seq` lies beyond all that the peer sent.
    pub(super) fn is_beyond(&self, seq: TcpSeq) -> bool {
        seq.distance_from(self.numbers.their_seq(self.receiver.next())) > 0
    }

    /// Ends TIME-WAIT early.
    pub(super) fn make_way(&mut self) {
        self.states.end(TcpCloseReason::Finished);
    }

    /// Tells an application that was refused that it may write again.
    fn tell_room(&mut self) {
        let wants = !self.sender.is_finishing() && self.sender.wants_writing();
        self.states.tell_room(wants);
    }
}
