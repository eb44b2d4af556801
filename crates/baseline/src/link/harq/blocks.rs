//! The blocks under way at a receiver: they are rebuilt, and their packets released in order.
//!
//! A packet leaves as soon as all its parts have arrived and all packets before it left or were
//! passed over; its block need not be complete.

use super::HarqConfig;
use super::sender::{FIRST_PART, LAST_PART, PACKET_NUMBER};
use crate::link::LinkCounters;
use crate::wire::link::FrameNumber;
use crate::wire::link::harq::UnitKind;
use fulmar_proto::fec::block::SpanDecoder;
use fulmar_proto::wire::checksum::crc32;
use std::collections::{BTreeMap, VecDeque};

/// A bound on the octets that one block holds, above those that a block and its parity have.
const BLOCK_OCTETS_MAX: usize = 400_000;

/// A block that has begun and was not released.
#[derive(Clone, Debug, Default)]
struct Block {
    decoder: SpanDecoder,
    /// The sources that are known to exist.
    span: u8,
    /// The block's number of sources, once that is known.
    total: Option<u8>,
    /// The sources that arrived as such: bit i is source i.
    arrived: u64,
    /// Whether its second round was asked for.
    asked: bool,
    /// Whether the block was passed over, so that nothing more comes of it.
    passed: bool,
    /// Sources that were taken out in order.
    released: u8,
    /// Packets that were released or are missing.
    packets: u8,
    /// Packets of which a part arrived.
    heard: u8,
    /// The parts of the packet under assembly, if its first part arrived.
    assembly: Option<Vec<u8>>,
    /// Whether a part of that packet had to be rebuilt.
    rebuilt: bool,
}

impl Block {
    /// Whether every source is there. Units that contradict each other because of damage may be
    /// enough in number and still rebuild nothing.
    fn is_complete(&self) -> bool {
        let is_there = |index| self.decoder.source(index).is_some();
        self.total.is_some_and(|total| (0..total).all(is_there))
    }

    /// Whether the last of `end` sources is missing.
    fn ends_with_a_hole(&self, end: u8) -> bool {
        end.checked_sub(1)
            .is_none_or(|last| self.decoder.source(last).is_none())
    }

    /// Adds a part of a packet. Returns the packet, if this was its last part.
    fn put(&mut self, part: &[u8]) -> Option<Vec<u8>> {
        let (&place, octets) = part.split_first()?;
        if place & FIRST_PART != 0 {
            self.assembly = Some(Vec::new());
            self.rebuilt = false;
        }
        let bit = 1_u64
            .checked_shl(u32::from(self.released))
            .unwrap_or_default();
        self.rebuilt |= self.arrived & bit == 0;
        self.assembly.as_mut()?.extend_from_slice(octets);
        if place & LAST_PART == 0 {
            return None;
        }
        let octets = self.assembly.take()?;
        let (packet, check) = octets.split_last_chunk::<4>()?;
        let sound = !packet.is_empty() && crc32(packet) == u32::from_be_bytes(*check);
        sound.then(|| packet.to_vec())
    }
}

/// Blocks by number, released in order.
#[derive(Clone, Debug)]
pub(super) struct HarqBlocks {
    size: u16,
    /// The lowest block that was not released completely.
    next: FrameNumber,
    /// Blocks by number. The map is never iterated in the order of its keys, because they wrap.
    begun: BTreeMap<u16, Block>,
    outbox: VecDeque<Vec<u8>>,
}

impl HarqBlocks {
    pub(super) fn new(size: u16) -> Self {
        Self {
            size,
            next: FrameNumber(0),
            begun: BTreeMap::new(),
            outbox: VecDeque::new(),
        }
    }

    /// The lowest block that the receiver still waits for.
    pub(super) const fn next(&self) -> FrameNumber {
        self.next
    }

    pub(super) const fn size(&self) -> u16 {
        self.size
    }

    /// Whether the receiver still waits for units of this block.
    pub(super) fn is_open(&self, number: FrameNumber) -> bool {
        number.ahead_of(self.next) < self.size
            && self
                .begun
                .get(&number.0)
                .is_none_or(|block| !block.passed && !block.is_complete())
    }

    /// The sources that are known to exist, and the number of symbols that are needed for them.
    pub(super) fn needs(&self, number: FrameNumber) -> (u8, usize) {
        self.begun.get(&number.0).map_or((0, 0), |block| {
            (block.span, block.decoder.needed(block.span))
        })
    }

    /// Whether the whole block is known to be there.
    pub(super) fn is_complete(&self, number: FrameNumber) -> bool {
        number.is_behind(self.next) || self.begun.get(&number.0).is_some_and(Block::is_complete)
    }

    /// Notes whether the block's second round is asked for.
    pub(super) fn ask(&mut self, number: FrameNumber, asked: bool) {
        if let Some(block) = self.begun.get_mut(&number.0) {
            block.asked = asked;
        }
    }

    /// Sets the block's number of sources, unless more are known to exist.
    pub(super) fn set_total(&mut self, number: FrameNumber, total: u8) {
        if total == 0 || total > HarqConfig::FRAGMENTS_MAX || !self.is_open(number) {
            return;
        }
        let block = self.begun.entry(number.0).or_default();
        if block.total.is_none() && total >= block.span {
            block.total = Some(total);
            block.span = total;
        }
    }

    /// Takes a unit's octets for an open block. Returns `false` if they bring nothing new.
    pub(super) fn take(&mut self, number: FrameNumber, kind: UnitKind, octets: &[u8]) -> bool {
        if !self.is_open(number) {
            return false;
        }
        let block = self.begun.entry(number.0).or_default();
        let most = block.total.unwrap_or(HarqConfig::FRAGMENTS_MAX);
        if block.decoder.octets() + octets.len() > BLOCK_OCTETS_MAX {
            return false;
        }
        match kind {
            UnitKind::Source { index } if index < most => {
                block.span = block.span.max(index + 1);
                block.arrived |= 1_u64.checked_shl(u32::from(index)).unwrap_or_default();
                block.decoder.add_source(index, octets)
            }
            UnitKind::Parity { row, span, .. } if span <= most => {
                block.span = block.span.max(span);
                block.decoder.add_repair(row, span, octets)
            }
            _ => false,
        }
    }

    /// Notes that nothing more comes of this block.
    pub(super) fn pass_over(&mut self, number: FrameNumber) {
        if number.ahead_of(self.next) < self.size {
            self.begun.entry(number.0).or_default().passed = true;
        }
    }

    /// Releases the packets that are next in order, as far as they are there.
    pub(super) fn release(&mut self, counters: &mut LinkCounters) {
        while let Some(block) = self.begun.get_mut(&self.next.0) {
            let end = block.total.unwrap_or(block.span);
            while block.released < end {
                let part = block.decoder.source(block.released).map(<[u8]>::to_vec);
                if part.is_none() && !block.passed {
                    return;
                }
                let Some(part) = part else {
                    block.assembly = None;
                    block.released += 1;
                    continue;
                };
                let number = part.first().map_or(0, |place| place & PACKET_NUMBER);
                block.heard = block.heard.max(number + 1);
                let packet = block.put(&part);
                block.released += 1;
                if let Some(packet) = packet {
                    counters.skipped += u64::from(number.saturating_sub(block.packets));
                    block.packets = number + 1;
                    counters.recovered_by_arq += u64::from(block.rebuilt && block.asked);
                    counters.recovered_by_parity += u64::from(block.rebuilt && !block.asked);
                    self.outbox.push_back(packet);
                }
            }
            if block.total.is_none() && !block.passed {
                return;
            }
            // The number of packets lost behind the last one that was heard of is not known.
            let unfinished = block.heard.saturating_sub(block.packets);
            let lost = unfinished.max(u8::from(block.ends_with_a_hole(end)));
            counters.skipped += u64::from(lost);
            self.begun.remove(&self.next.0);
            self.next = self.next.plus(1);
        }
    }

    /// Continues at `next` and passes over everything before it.
    pub(super) fn advance_to(&mut self, next: FrameNumber, counters: &mut LinkCounters) {
        while self.next.is_behind(next) {
            self.begun.entry(self.next.0).or_default().passed = true;
            self.release(counters);
        }
    }

    /// Begins again at `next`.
    pub(super) fn restart_at(&mut self, next: FrameNumber, counters: &mut LinkCounters) {
        let begun = self
            .begun
            .keys()
            .map(|&number| FrameNumber(number).ahead_of(self.next));
        if let Some(farthest) = begun.max() {
            self.advance_to(self.next.plus(farthest).plus(1), counters);
        }
        self.begun.clear();
        self.next = next;
    }

    /// Octets of units and packets kept here.
    pub(super) fn held_octets(&self) -> usize {
        let begun = self.begun.values().map(|block| {
            let assembly = block.assembly.as_ref().map_or(0, Vec::len);
            block.decoder.octets() + assembly
        });
        begun.sum::<usize>() + self.outbox.iter().map(Vec::len).sum::<usize>()
    }

    /// The next packet for the node above.
    pub(super) fn pop(&mut self) -> Option<Vec<u8>> {
        self.outbox.pop_front()
    }
}
