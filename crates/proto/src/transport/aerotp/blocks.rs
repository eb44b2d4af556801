//! Parity across TPDUs: the part between the scoreboard and the block code.
//!
//! Source TPDUs are sent unmodified with consecutive numbers; a closed block's repair symbols
//! follow as TPDUs of their own. The receiver keeps recent payloads, since a symbol may come after
//! the sources were read.

use super::window_repair::payloads;
use crate::bytes::SendBuffer;
use crate::fec::block::{BlockDecoder, BlockPlan, BlockSchedule, ClosedBlock, encode_repair};
use crate::machine::Deadline;
use crate::transport::parts::Scoreboard;
use crate::units::{Duration, Instant};
use crate::wire::TpduSeq;
use crate::wire::aerotp::BlockDescriptor;
use core::num::NonZeroU8;
use std::collections::VecDeque;

/// The sender's side of parity across TPDUs.
#[derive(Debug)]
pub(super) struct ParityPlan {
    schedule: Option<BlockSchedule>,
    open_from: Option<TpduSeq>,
    closed: VecDeque<(ClosedBlock, u8)>,
}

impl ParityPlan {
    pub(super) fn new(plan: Option<BlockPlan>) -> Self {
        let schedule = plan.map(BlockSchedule::new);
        Self {
            schedule,
            open_from: None,
            closed: VecDeque::new(),
        }
    }

    fn queue(&mut self, block: Option<ClosedBlock>) {
        if let Some(block) = block {
            self.open_from = None;
            if block.repairs > 0 {
                self.closed.push_back((block, 0));
            }
        }
    }

    pub(super) fn on_source(&mut self, now: Instant, seq: TpduSeq) {
        let Some(schedule) = &mut self.schedule else {
            return;
        };
        let closed = schedule.on_source(now, seq.0);
        self.open_from.get_or_insert(seq);
        self.queue(closed);
    }

    /// Notes that no more sources follow.
    pub(super) fn close(&mut self) {
        let closed = self.schedule.as_mut().and_then(BlockSchedule::close);
        self.queue(closed);
    }

    /// Whether parity can be sent now.
    pub(super) fn is_ready(&self) -> bool {
        !self.closed.is_empty()
    }

    /// Whether parity is still to be sent, now or once a block closes.
    pub(super) fn is_pending(&self) -> bool {
        self.is_ready() || self.open_from.is_some()
    }

    /// The oldest TPDU whose payload parity still needs.
    pub(super) fn oldest_needed(&self) -> Option<TpduSeq> {
        self.closed
            .front()
            .map(|(block, _)| TpduSeq(block.first))
            .or(self.open_from)
    }

    /// Writes the next repair symbol to `symbol`.
    pub(super) fn next_repair(
        &mut self,
        board: &Scoreboard,
        buffer: &SendBuffer,
        symbol: &mut Vec<u8>,
    ) -> Option<(TpduSeq, BlockDescriptor)> {
        loop {
            let (block, index) = self.closed.front_mut()?;
            let first = TpduSeq(block.first);
            let (k, repairs) = (block.k.get(), block.repairs);
            let this = *index;
            *index += 1;
            if *index >= repairs {
                self.closed.pop_front();
            }
            let mut wrapped = vec![Vec::new(); usize::from(k)];
            let slices = payloads(first, (board, buffer), &mut wrapped);
            symbol.clear();
            let descriptor =
                BlockDescriptor::new(BlockDescriptor::CAUCHY_GF256, u16::from(k), this);
            if let Some(descriptor) = descriptor
                && encode_repair(&slices, this, symbol).is_ok()
            {
                return Some((first, descriptor));
            }
        }
    }

    pub(super) fn handle_deadline(&mut self, now: Instant) {
        let closed = self
            .schedule
            .as_mut()
            .and_then(|schedule| schedule.on_deadline(now));
        self.queue(closed);
    }

    pub(super) fn next_deadline(&self) -> Option<Deadline> {
        self.schedule
            .as_ref()
            .and_then(BlockSchedule::next_deadline)
    }
}

/// Payloads kept for symbols that come later: two full blocks.
const HISTORY_MAX: usize = 512;
/// Blocks under reconstruction at once; an older one is given up.
const BLOCKS_MAX: usize = 8;

/// A source TPDU that may be needed to rebuild others of its block.
#[derive(Debug)]
struct Payload {
    seq: TpduSeq,
    arrived: Instant,
    octets: Vec<u8>,
}

/// A block that is being rebuilt: at least one repair symbol has come.
#[derive(Debug)]
struct Rebuilding {
    first: TpduSeq,
    /// The arrival of the first of its sources.
    opened: Instant,
    decoder: BlockDecoder,
}

/// The receiver's side of parity across TPDUs.
#[derive(Debug)]
pub(super) struct BlockAssembly {
    active: bool,
    history: VecDeque<Payload>,
    blocks: VecDeque<Rebuilding>,
    rebuilt: Vec<(TpduSeq, Vec<u8>)>,
}

impl BlockAssembly {
    pub(super) const fn new(active: bool) -> Self {
        Self {
            active,
            history: VecDeque::new(),
            blocks: VecDeque::new(),
            rebuilt: Vec::new(),
        }
    }

    pub(super) fn on_source(&mut self, now: Instant, seq: TpduSeq, payload: &[u8]) {
        if !self.active {
            return;
        }
        for block in &mut self.blocks {
            if let Ok(index) = u8::try_from(seq.offset_from(block.first)) {
                // A source outside the block, or known already, changes nothing.
                let _known = block.decoder.add_source(index, payload).is_err();
            }
        }
        self.try_decode();
        let mut octets = if self.history.len() == HISTORY_MAX {
            self.history
                .pop_front()
                .map(|oldest| oldest.octets)
                .unwrap_or_default()
        } else {
            Vec::new()
        };
        octets.clear();
        octets.extend_from_slice(payload);
        self.history.push_back(Payload {
            seq,
            arrived: now,
            octets,
        });
    }

    /// Takes a repair symbol. Returns the time since the first of its block's sources came; `None`
    /// if it cannot belong to any block of ours.
    pub(super) fn on_repair(
        &mut self,
        now: Instant,
        first: TpduSeq,
        descriptor: BlockDescriptor,
        symbol: &[u8],
    ) -> Option<Duration> {
        let k = u8::try_from(descriptor.sources())
            .ok()
            .and_then(NonZeroU8::new);
        let known = self.active && descriptor.code == BlockDescriptor::CAUCHY_GF256;
        let k = k.filter(|_| known)?;
        let position = self.blocks.iter().position(|block| block.first == first);
        let position = position.unwrap_or_else(|| {
            if self.blocks.len() == BLOCKS_MAX {
                self.blocks.pop_front();
            }
            self.blocks.push_back(self.with_history(now, first, k));
            self.blocks.len() - 1
        });
        let block = self.blocks.get_mut(position)?;
        if block.decoder.k() != usize::from(k.get()) {
            return None;
        }
        let span = now.saturating_since(block.opened);
        // A surplus or repeated symbol changes nothing.
        let _surplus = block
            .decoder
            .add_repair(descriptor.repair_index, symbol)
            .is_err();
        self.try_decode();
        Some(span)
    }

    fn with_history(&self, now: Instant, first: TpduSeq, k: NonZeroU8) -> Rebuilding {
        let mut decoder = BlockDecoder::new(k);
        let mut opened = now;
        for payload in &self.history {
            let index = u8::try_from(payload.seq.offset_from(first));
            if let Some(index) = index.ok().filter(|index| *index < k.get()) {
                let _known = decoder.add_source(index, &payload.octets).is_err();
                opened = opened.min(payload.arrived);
            }
        }
        Rebuilding {
            first,
            opened,
            decoder,
        }
    }

    fn try_decode(&mut self) {
        for block in &mut self.blocks {
            if block.decoder.needed() == 0
                && !block.decoder.is_complete()
                && let Ok(sources) = block.decoder.decode()
            {
                let seq_of = |index: u8| block.first.plus(u32::from(index));
                self.rebuilt
                    .extend(sources.into_iter().map(|(i, octets)| (seq_of(i), octets)));
            }
        }
    }

    /// Frees the memory for rebuilding old blocks.
    pub(super) fn give_back(&mut self) {
        self.history = VecDeque::new();
        self.blocks = VecDeque::new();
    }

    /// Takes the TPDUs that were rebuilt.
    pub(super) fn take_rebuilt(&mut self) -> Vec<(TpduSeq, Vec<u8>)> {
        core::mem::take(&mut self.rebuilt)
    }
}
