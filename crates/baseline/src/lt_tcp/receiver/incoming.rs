//! A block that is being rebuilt.

use crate::wire::lt_tcp::{LtTcpBlockReport, UnitHeader};
use core::num::NonZeroU8;
use fulmar_proto::bytes::StreamReassembly;
use fulmar_proto::fec::block::BlockDecoder;

/// The outcome of taking a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// The unit is kept, or was of no use.
    Kept,
    /// The unit completed the block, and so many sources were rebuilt.
    Rebuilt(u64),
    /// The block cannot continue like this.
    Spoiled,
}

/// One block. Its units take no more memory than the block has octets, and parity no more than
/// the sources that are missing.
#[derive(Debug)]
pub(super) struct Incoming {
    start: u64,
    /// The position behind its last octet.
    pub(super) end: u64,
    shape: UnitHeader,
    /// `None` when the block is whole.
    decoder: Option<BlockDecoder>,
    received: u16,
    highest: u8,
}

impl Incoming {
    /// The block to which `unit` belongs.
    pub(super) fn new(start: u64, unit: &UnitHeader) -> Option<Self> {
        Some(Self {
            start,
            end: start + u64::from(unit.length),
            shape: *unit,
            decoder: Some(BlockDecoder::new(NonZeroU8::new(unit.k)?)),
            received: 0,
            highest: 0,
        })
    }

    /// Octets of memory allocated.
    pub(super) fn memory_bytes(&self) -> usize {
        let units = self.decoder.as_ref().map_or(0, BlockDecoder::memory_bytes);
        size_of::<Self>() + units
    }

    /// Takes a unit, and rebuilds missing sources as soon as that is possible.
    pub(super) fn take(
        &mut self,
        reassembly: &mut StreamReassembly,
        unit: &UnitHeader,
        octets: &[u8],
    ) -> Taken {
        let same = |unit: &UnitHeader| (unit.block, unit.k, unit.length);
        if same(unit) != same(&self.shape) {
            return Taken::Kept;
        }
        let Some(decoder) = &mut self.decoder else {
            return Taken::Kept;
        };
        let taken = if unit.is_source() {
            let start = self.start + u64::from(unit.offset_of(unit.index));
            if !placed(reassembly, start, octets) {
                return Taken::Kept;
            }
            decoder.add_source(unit.index, octets)
        } else {
            decoder.add_repair(unit.index - unit.k, octets)
        };
        if taken.is_err() {
            return Taken::Kept;
        }
        self.received += 1;
        self.highest = self.highest.max(unit.index);
        if decoder.needed() > 0 {
            return Taken::Kept;
        }
        let Ok(rebuilt) = decoder.decode() else {
            return Taken::Spoiled;
        };
        let count = rebuilt.len() as u64;
        for (index, octets) in rebuilt {
            let fits = octets.len() == self.shape.source_len(index) as usize;
            let start = self.start + u64::from(self.shape.offset_of(index));
            if !fits || !placed(reassembly, start, &octets) {
                return Taken::Spoiled;
            }
        }
        self.decoder = None;
        Taken::Rebuilt(count)
    }

    /// The report on the block for the sender.
    pub(super) fn report(&self) -> LtTcpBlockReport {
        let narrow = |count: usize| u8::try_from(count).unwrap_or(u8::MAX);
        let received = usize::from(self.received);
        let seen = usize::from(self.highest) + 1;
        LtTcpBlockReport {
            block: self.shape.block,
            received: narrow(received),
            needed: narrow(self.decoder.as_ref().map_or(0, BlockDecoder::needed)),
            lost: narrow(seen.saturating_sub(received)),
        }
    }
}

/// Puts the octets into the reassembly, unless they are there. Returns whether they are.
fn placed(reassembly: &mut StreamReassembly, start: u64, octets: &[u8]) -> bool {
    let end = start + octets.len() as u64;
    end <= reassembly.next() || !reassembly.insert(start, octets).is_empty()
}
