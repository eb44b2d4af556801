//! The receive side: reassembly, the window, and the time of acknowledgements.
//!
//! An acknowledgement is owed at once when a segment leaves or fills a gap, comes again, or ends
//! the stream. A segment that arrives in order waits for others to be acknowledged with (RFC 5681,
//! section 4.2).

use super::config::TcpConfig;
use crate::stream::OwedAnswers;
use core::num::NonZeroU8;
use core::ops::Range;
use fulmar_proto::bytes::StreamReassembly;
use fulmar_proto::units::Instant;

/// Blocks told in one acknowledgement, at most, and therefore remembered.
const REMEMBERED: usize = 4;

/// The octets received, and the answers due. Positions are octets of the peer's stream.
#[derive(Debug)]
pub(super) struct TcpReceiver {
    reassembly: StreamReassembly,
    /// The end of the peer's stream, once its FIN was seen.
    end: Option<u64>,
    /// Whether the FIN was reached, so that the stream is complete.
    finished: bool,
    /// The position behind the last one that the peer was told it may send.
    edge: u64,
    mss: u64,
    buffer: u64,
    acks: super::config::DelayedAcks,
    keep_out_of_order: bool,
    runs_kept_max: Option<NonZeroU8>,
    /// The answer that is owed to the peer.
    pub(super) answers: OwedAnswers,
    gap_seen: bool,
    /// Positions in runs beyond a hole, most recent first.
    recent: Vec<u64>,
}

impl TcpReceiver {
    pub(super) fn new(config: &TcpConfig) -> Self {
        Self {
            reassembly: StreamReassembly::new(config.receive_buffer.as_usize()),
            end: None,
            finished: false,
            edge: 0,
            mss: u64::from(config.mss),
            buffer: config.receive_buffer.0,
            acks: config.acks,
            keep_out_of_order: config.keep_out_of_order,
            runs_kept_max: config.runs_kept_max,
            answers: OwedAnswers::new(),
            gap_seen: false,
            recent: Vec::new(),
        }
    }

    /// Octets of memory that reassembly takes.
    pub(super) fn memory_bytes(&self) -> usize {
        self.reassembly.memory_bytes()
    }

    /// The position expected next; the FIN's counts too.
    pub(super) const fn next(&self) -> u64 {
        self.reassembly.next() + if self.finished { 1 } else { 0 }
    }

    /// The position behind the last one that is acceptable.
    pub(super) fn window_end(&self) -> u64 {
        self.edge
            .max(self.reassembly.next() + self.reassembly.room() as u64)
    }

    /// The window to advertise, in octets from [`TcpReceiver::next`]. Its edge does not move back, and
    /// moves on by no less than a segment or half of the buffer (RFC 9293, section 3.8.6.2.2).
    pub(super) fn window(&self) -> u64 {
        let open = self.reassembly.next() + self.reassembly.room() as u64;
        let worthwhile = self.mss.min(self.buffer / 2);
        let edge = if open >= self.edge + worthwhile {
            open
        } else {
            self.edge
        };
        edge.saturating_sub(self.next())
    }

    /// Whether the stream has ended.
    pub(super) const fn is_finished(&self) -> bool {
        self.finished
    }

    /// Whether something can be read.
    pub(super) fn is_readable(&self) -> bool {
        self.reassembly.is_readable()
    }

    /// Takes octets at `position`, and the FIN behind them if `fin`.
    pub(super) fn on_segment(&mut self, now: Instant, position: u64, octets: &[u8], fin: bool) {
        if fin {
            self.end.get_or_insert(position + octets.len() as u64);
        }
        let before = self.reassembly.next();
        if !octets.is_empty() {
            if position > before && !self.keeps(position, octets.len() as u64) {
                self.answers.owe_now();
                return;
            }
            let had_holes = self.reassembly.has_holes();
            let taken = self.reassembly.insert(position, octets);
            let in_order = self.reassembly.next() > before;
            let beyond = if taken.is_empty() {
                position
            } else {
                taken.start
            };
            if beyond > before {
                self.remember(beyond);
                self.gap_seen = true;
            }
            if in_order && !had_holes {
                self.delay(now);
            } else {
                self.answers.owe_now();
            }
        }
        if !self.finished && self.end.is_some_and(|end| end <= self.reassembly.next()) {
            self.finished = true;
            self.answers.owe_now();
        } else if fin {
            self.answers.owe_now();
        }
    }

    /// Whether octets beyond the first hole are kept: they belong to an existing run, or there is
    /// room for another run.
    fn keeps(&self, position: u64, len: u64) -> bool {
        let Some(most) = self.runs_kept_max else {
            return self.keep_out_of_order;
        };
        let end = position.saturating_add(len);
        let mut runs = self.reassembly.runs();
        let belongs = runs.any(|run| run.start <= end && position <= run.end);
        self.keep_out_of_order
            && (belongs || self.reassembly.runs().len() < usize::from(most.get()))
    }

    /// Notes that the handshake is over, and that the peer began it.
    pub(super) fn expect_first(&mut self) {
        if self.acks.first_at_once {
            self.answers.expect(self.acks.every.saturating_sub(1));
        }
    }

    fn delay(&mut self, now: Instant) {
        let at_once = self.acks.after_slow_start && !self.gap_seen;
        self.answers
            .wait(now, self.acks.every, self.acks.time, at_once);
    }

    /// Notes a segment at `position` beyond a hole, new or not: its run is told first (RFC 2018,
    /// section 4).
    fn remember(&mut self, position: u64) {
        let Some(run) = self.reassembly.run_at(position).cloned() else {
            return;
        };
        self.recent.retain(|other| !run.contains(other));
        self.recent.insert(0, position);
        self.recent.truncate(REMEMBERED);
    }

    /// The runs beyond the first hole that the peer should hear of, the newest first.
    pub(super) fn blocks(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        let runs = self.recent.iter();
        runs.filter_map(|&position| self.reassembly.run_at(position).cloned())
    }

    /// Notes that a segment with an acknowledgement and the present window was sent.
    pub(super) fn on_acknowledged(&mut self) {
        self.edge = self.edge.max(self.next() + self.window());
        self.answers.on_sent();
    }

    /// Takes the next octets in order.
    pub(super) fn read(&mut self) -> Option<Vec<u8>> {
        let chunk = self.reassembly.read()?;
        let told = self.edge.saturating_sub(self.next());
        self.answers.on_read(told, self.window(), self.buffer);
        Some(chunk)
    }

    /// Takes back a vector for reuse.
    pub(super) fn recycle(&mut self, octets: Vec<u8>) {
        self.reassembly.recycle(octets);
    }
}
