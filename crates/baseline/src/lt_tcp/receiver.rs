//! The receive side: units to octets, the window, and the time of feedback.
//!
//! Source units go straight into the reassembly, so that parity costs no time while nothing is
//! missing; a block's units are kept beside it until the block is whole.

mod incoming;

use super::config::LtTcpConfig;
use super::loss_estimate::PathLossEstimate;
use crate::stream::OwedAnswers;
use crate::wire::lt_tcp::{LtTcpBlockReport, REPORTS_MAX, RUNS_MAX, UnitHeader};
use core::ops::Range;
use fulmar_proto::bytes::StreamReassembly;
use fulmar_proto::fec::block::{LENGTH_PREFIX, UNITS_MAX};
use fulmar_proto::units::{Duration, Instant};
use incoming::{Incoming, Taken};
use std::collections::BTreeMap;

/// Blocks that are being rebuilt, at most. A sender of ours has no more of them in flight.
pub(super) const BLOCKS_MAX: usize = 64;
/// The least octets of a vector that is not empty.
const UNIT_HEAP_MIN: usize = 8;
/// The loss above which each unit is answered (docs/models/lt-tcp.md, "Feedback").
const LOSS_OF_EACH: f64 = 0.1;

/// The octets received, and the answers due. Positions are octets of the peer's stream.
#[derive(Debug)]
pub(super) struct LtTcpReceiver {
    reassembly: StreamReassembly,
    /// Blocks by the position where they begin. They do not overlap, and end beyond the position
    /// expected next.
    blocks: BTreeMap<u64, Incoming>,
    estimate: PathLossEstimate,
    /// The position where the newest block begins.
    newest: Option<u64>,
    fin_at: Option<u64>,
    finished: bool,
    every: u8,
    delay: Duration,
    buffer: u64,
    /// The answer that is owed to the peer.
    pub(super) answers: OwedAnswers,
    /// The window that was told last.
    told: u64,
    recovered: u64,
}

impl LtTcpReceiver {
    pub(super) fn new(config: &LtTcpConfig) -> Self {
        Self {
            reassembly: StreamReassembly::new(config.receive_buffer.as_usize()),
            blocks: BTreeMap::new(),
            estimate: PathLossEstimate::new(config.fec.gain.value(), config.granularity),
            newest: None,
            fin_at: None,
            finished: false,
            every: config.ack_every,
            delay: config.ack_delay,
            buffer: config.receive_buffer.0,
            answers: OwedAnswers::new(),
            told: config.receive_buffer.0,
            recovered: 0,
        }
    }

    /// The position expected next; the FIN's counts too.
    pub(super) const fn next(&self) -> u64 {
        self.reassembly.next() + if self.finished { 1 } else { 0 }
    }

    /// The position behind the last octet that there is room for.
    pub(super) const fn window_end(&self) -> u64 {
        self.reassembly.next() + self.reassembly.room() as u64
    }

    /// The window to advertise, in octets from [`LtTcpReceiver::next`].
    pub(super) const fn window(&self) -> u64 {
        self.window_end().saturating_sub(self.next())
    }

    /// Whether the stream has ended.
    pub(super) const fn is_finished(&self) -> bool {
        self.finished
    }

    /// Whether something can be read.
    pub(super) fn is_readable(&self) -> bool {
        self.reassembly.is_readable()
    }

    /// Octets of memory allocated.
    pub(super) fn memory_bytes(&self) -> usize {
        let blocks = self.blocks.values().map(Incoming::memory_bytes);
        self.reassembly.memory_bytes() + blocks.sum::<usize>()
    }

    /// The most memory that a receiver with room for `buffer` octets takes. Blocks lie apart within
    /// that room, and each keeps at most as many units as it has sources, all of one length.
    pub(super) const fn memory_max(buffer: usize) -> usize {
        let units = UNITS_MAX * (size_of::<Vec<u8>>() + LENGTH_PREFIX + UNIT_HEAP_MIN);
        let blocks = BLOCKS_MAX * (size_of::<Incoming>() + units);
        StreamReassembly::memory_max(buffer) + 2 * buffer + blocks
    }

    /// Source units rebuilt from parity.
    pub(super) const fn recovered(&self) -> u64 {
        self.recovered
    }

    /// Takes a unit; `position` is the position of its sequence number.
    pub(super) fn on_unit(
        &mut self,
        now: Instant,
        position: u64,
        unit: &UnitHeader,
        octets: &[u8],
        fin: bool,
    ) {
        if !unit.is_coded() {
            self.estimate.on_arrival(unit.ordinal, false);
            if fin && position >= self.reassembly.next() {
                self.fin_at.get_or_insert(position);
            }
            self.finish();
            self.answers.owe_now();
            return;
        }
        let source = unit.is_source();
        let offset = if source {
            unit.offset_of(unit.index)
        } else {
            0
        };
        let Some(start) = position.checked_sub(u64::from(offset)) else {
            return;
        };
        let begins = self.newest.is_none_or(|newest| start > newest);
        let is_new = self.estimate.on_arrival(unit.ordinal, begins);
        if start + u64::from(unit.length) > self.window_end() {
            self.answers.owe_now();
            return;
        }
        if begins {
            self.newest = Some(start);
        }
        let before = self.reassembly.next();
        let had_holes = self.reassembly.has_holes();
        self.take(start, unit, octets);
        self.blocks
            .retain(|_, block| block.end > self.reassembly.next());
        self.finish();
        let in_order = !had_holes && !self.reassembly.has_holes();
        let expected = self.reassembly.next() > before || !source;
        let ends_block = u16::from(unit.index) + 1 == u16::from(unit.n);
        if is_new && in_order && expected && !ends_block && !self.finished {
            self.delay(now);
        } else {
            self.answers.owe_now();
        }
    }

    /// Puts a unit into its block.
    fn take(&mut self, start: u64, unit: &UnitHeader, octets: &[u8]) {
        let end = start + u64::from(unit.length);
        if end <= self.reassembly.next() {
            return;
        }
        if !self.blocks.contains_key(&start) {
            let overlaps = self
                .blocks
                .range(..end)
                .next_back()
                .is_some_and(|(_, block)| block.end > start);
            if overlaps || self.blocks.len() >= BLOCKS_MAX {
                return;
            }
            let Some(block) = Incoming::new(start, unit) else {
                return;
            };
            self.blocks.insert(start, block);
        }
        let Some(block) = self.blocks.get_mut(&start) else {
            return;
        };
        match block.take(&mut self.reassembly, unit, octets) {
            Taken::Kept => {}
            Taken::Rebuilt(sources) => self.recovered += sources,
            // Its units contradict each other, or the reassembly has too many pieces: the block
            // begins again as if no unit had come.
            Taken::Spoiled => {
                self.blocks.remove(&start);
            }
        }
    }

    fn finish(&mut self) {
        if self.fin_at.is_some_and(|fin| fin <= self.reassembly.next()) {
            self.finished = true;
        }
    }

    /// The number of units for one feedback. Where many units are lost, feedback may be lost too,
    /// and a window without any stands still until a timeout.
    fn feedback_every(&self) -> u8 {
        if self.estimate.loss() > LOSS_OF_EACH {
            1
        } else {
            self.every
        }
    }

    fn delay(&mut self, now: Instant) {
        let every = self.feedback_every();
        self.answers.wait(now, every, self.delay, false);
    }

    /// The state of the blocks beyond the position expected next, oldest first.
    pub(super) fn reports(&self) -> Vec<LtTcpBlockReport> {
        let blocks = self.blocks.values().take(REPORTS_MAX);
        blocks.map(Incoming::report).collect()
    }

    /// The lowest runs beyond the first hole.
    pub(super) fn runs(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.reassembly.runs().take(RUNS_MAX).cloned()
    }

    /// The estimate: arrivals, and the loss that follows from them.
    pub(super) const fn estimate(&self) -> &PathLossEstimate {
        &self.estimate
    }

    /// Notes that feedback with the present window was sent.
    pub(super) const fn on_feedback_sent(&mut self) {
        self.told = self.window_end();
        self.answers.on_sent();
    }

    /// Takes the next octets in order.
    pub(super) fn read(&mut self) -> Option<Vec<u8>> {
        let chunk = self.reassembly.read()?;
        let told = self.told.saturating_sub(self.next());
        self.answers.on_read(told, self.window(), self.buffer);
        Some(chunk)
    }

    /// Takes back a vector for reuse.
    pub(super) fn recycle(&mut self, octets: Vec<u8>) {
        self.reassembly.recycle(octets);
    }
}

#[cfg(test)]
mod tests;
