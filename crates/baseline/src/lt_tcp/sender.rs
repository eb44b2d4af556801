//! The send side: blocks, repair, and the segments that may leave.
//!
//! Positions count octets of the stream; the FIN takes the position after the last one. The window
//! is compared with all octets in flight: source units, parity and retransmissions share it. It
//! grows as TCP's does (slow start and congestion avoidance of RFC 5681, by octets that arrive,
//! RFC 3465) and shrinks when a mark is echoed.

mod departures;
mod feedback;
mod timers;

use super::block::SentBlock;
use super::config::LtTcpConfig;
use super::flight::Flight;
use super::receiver::BLOCKS_MAX;
use crate::congestion::{self, Algorithm, Beginning, CongestionControl};
use crate::wire::lt_tcp::RUNS_MAX;
use core::ops::Range;
use fulmar_proto::bytes::SendBuffer;
use fulmar_proto::transport::parts::{RtoLimits, RttEstimator};
use fulmar_proto::units::{Duration, Instant};
use std::collections::VecDeque;

pub(super) use departures::Planned;
pub(super) use feedback::FeedbackArrival;
use timers::Timer;

/// The counters of the send side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LtTcpSendCounts {
    pub(super) blocks: u64,
    pub(super) proactive: u64,
    pub(super) reactive: u64,
    pub(super) resent: u64,
    pub(super) timeouts: u64,
    pub(super) marks: u64,
}

/// The state after a timeout, until something comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Silence {
    /// Units that may still leave before the next timeout.
    allowance: u8,
    /// Source units to retransmit uncoded, before any parity.
    uncoded: u8,
    /// Whether no mark came before it; if none comes after it either, the window returns to its
    /// former value.
    unmarked: bool,
}

/// The sending side of one direction.
#[expect(
    clippy::struct_excessive_bools,
    reason = "facts without a common order"
)]
#[derive(Debug)]
pub(super) struct LtTcpSender {
    config: LtTcpConfig,
    buffer: SendBuffer,
    control: Box<dyn CongestionControl>,
    rtt: RttEstimator,
    flight: Flight,
    blocks: VecDeque<SentBlock>,
    next_block: u64,
    una: u64,
    /// The position where the next block begins.
    next: u64,
    /// The position behind the last one that the peer's window allows.
    edge: u64,
    /// The receiver's estimate and its deviation.
    loss: (f64, f64),
    /// The number of transmissions that the receiver got in all, modulo 2^16.
    arrivals: u16,
    /// The octets that are known to have arrived beyond the first hole.
    runs: Vec<Range<u64>>,
    fin_at: Option<u64>,
    /// Whether the FIN was sent at least once.
    fin_sent: bool,
    /// Whether the FIN is in flight.
    fin_out: bool,
    /// Whether the window last kept something from leaving.
    limited: bool,
    timer: Option<Timer>,
    /// The time at which transmissions that left, and may be late, are settled.
    settle_at: Option<Instant>,
    persist: Option<Instant>,
    persist_count: u32,
    /// Probes that are to be sent.
    probes_due: u8,
    /// Whether probes were sent since the last progress.
    probed: bool,
    tries: u32,
    silence: Option<Silence>,
    /// The transmission whose feedback has to arrive before another mark is answered, since one was
    /// answered.
    reduced_until: Option<u64>,
    marked_at: Option<Instant>,
    /// Units that still have to tell that the window was reduced.
    tell_reduced: u8,
    scratch: Vec<u8>,
    counts: LtTcpSendCounts,
}

/// The clock's granularity G in RFC 6298.
const GRANULARITY: Duration = Duration::from_millis(1);

/// The timeout's limits in the estimator's form.
fn rto_limits(config: &LtTcpConfig) -> RtoLimits {
    RtoLimits {
        initial: config.rto.initial,
        probe_millis: None,
        margin: GRANULARITY,
        variations: 4,
        round_trips: 0,
        min: config.rto.min,
        max: config.rto.max,
    }
}

fn start_control(config: &LtTcpConfig) -> Box<dyn CongestionControl> {
    let beginning = Beginning {
        mss: u32::from(config.unit_max()),
        segments: config.initial_window,
        byte_counting: true,
    };
    congestion::start(Algorithm::NewReno, beginning)
}

impl LtTcpSender {
    pub(super) fn new(config: &LtTcpConfig) -> Self {
        Self {
            config: *config,
            buffer: SendBuffer::new(config.send_buffer.as_usize()),
            control: start_control(config),
            rtt: RttEstimator::new(rto_limits(config)),
            flight: Flight::default(),
            blocks: VecDeque::new(),
            next_block: 0,
            una: 0,
            next: 0,
            edge: 0,
            loss: (0.0, 0.0),
            arrivals: 0,
            runs: Vec::new(),
            fin_at: None,
            fin_sent: false,
            fin_out: false,
            limited: false,
            timer: None,
            settle_at: None,
            persist: None,
            persist_count: 0,
            probes_due: 0,
            probed: false,
            tries: 0,
            silence: None,
            reduced_until: None,
            marked_at: None,
            tell_reduced: 0,
            scratch: Vec::new(),
            counts: LtTcpSendCounts::default(),
        }
    }

    /// Notes that the peer takes segments of at most `mss`.
    pub(super) fn agree(&mut self, mss: u16) {
        let shortest = self.config.unit_min + self.config.mss - self.config.unit_max();
        self.config.mss = self.config.mss.min(mss.max(shortest));
        self.control = start_control(&self.config);
    }

    pub(super) fn write(&mut self, octets: &[u8]) -> usize {
        self.buffer.write(octets)
    }

    /// The number of octets that fit.
    pub(super) fn room_to_write(&self) -> usize {
        self.buffer.free()
    }

    /// Notes that no octet follows those written.
    pub(super) fn finish(&mut self) {
        self.fin_at.get_or_insert(self.buffer.end());
    }

    pub(super) const fn is_finishing(&self) -> bool {
        self.fin_at.is_some()
    }

    /// Whether the FIN was acknowledged.
    pub(super) fn is_fin_acked(&self) -> bool {
        self.fin_at.is_some_and(|fin| self.una > fin)
    }

    /// Whether everything written was acknowledged.
    pub(super) fn is_all_acked(&self) -> bool {
        self.una >= self.buffer.end()
    }

    /// The oldest position that is not acknowledged.
    pub(super) const fn una(&self) -> u64 {
        self.una
    }

    /// The position behind the last one sent; the FIN's counts too.
    pub(super) fn sent_end(&self) -> u64 {
        let fin = self.fin_at.filter(|_| self.fin_sent);
        fin.map_or(self.next, |fin| fin + 1)
    }

    /// Octets of memory allocated, used or not.
    pub(super) fn memory_bytes(&self) -> usize {
        let blocks = self.blocks.capacity() * size_of::<SentBlock>();
        let runs = self.runs.capacity() * size_of::<Range<u64>>();
        self.buffer.memory_bytes() + self.flight.memory_bytes() + blocks + runs
    }

    /// The most memory that a sender with room for `buffer` octets takes.
    pub(super) const fn memory_max(buffer: usize) -> usize {
        let blocks = 2 * BLOCKS_MAX * size_of::<SentBlock>();
        2 * buffer + Flight::memory_max() + blocks + 2 * RUNS_MAX * size_of::<Range<u64>>()
    }

    pub(super) const fn counts(&self) -> &LtTcpSendCounts {
        &self.counts
    }

    pub(super) const fn rtt(&self) -> &RttEstimator {
        &self.rtt
    }

    pub(super) const fn rtt_mut(&mut self) -> &mut RttEstimator {
        &mut self.rtt
    }

    /// The retransmission timeout.
    pub(super) fn rto(&self) -> Duration {
        self.rtt.rto().min(self.config.rto.max)
    }

    /// The congestion window and the threshold, in octets.
    pub(super) fn windows(&self) -> (u64, u64) {
        (self.control.window(), self.control.threshold())
    }

    /// Octets in flight.
    pub(super) const fn pipe(&self) -> u64 {
        self.flight.pipe()
    }

    /// The receiver's loss estimate.
    pub(super) const fn loss(&self) -> f64 {
        self.loss.0
    }

    /// The loss that parity is sized for.
    fn expected_loss(&self) -> f64 {
        let (loss, deviation) = self.loss;
        if loss < self.config.fec.floor.value() {
            return 0.0;
        }
        loss + self.config.fec.deviations * deviation
    }

    /// The peer's window, from `una` on. Its edge does not move back.
    pub(super) fn set_peer_window(&mut self, window: u64) {
        self.edge = self.edge.max(self.una + window);
    }

    /// Whether another block may begin.
    fn has_room_for_block(&self) -> bool {
        self.blocks.len() < BLOCKS_MAX
    }
}
