//! A block that was begun and is not acknowledged, as the sender knows it.

use super::granulation::Shape;
use crate::wire::lt_tcp::UnitHeader;

/// Units of a block in all, at most.
const UNITS: u16 = 256;

/// A row of the sender's state table.
#[derive(Clone, Debug)]
pub(super) struct SentBlock {
    /// The block's number; blocks count up from 0.
    pub(super) number: u64,
    /// The position in the stream where it begins.
    pub(super) start: u64,
    pub(super) shape: Shape,
    /// The next unit that was never sent; 256 when all were.
    pub(super) next_index: u16,
    /// RFEC units that wait to leave.
    pub(super) queued: u16,
    /// Units that may or may not have arrived.
    pub(super) open: u16,
    /// Units among these that were sent in answer to feedback: the round that is outstanding.
    pub(super) round: u16,
    /// Units that the receiver still needs, by its newest feedback.
    pub(super) needed: u8,
    /// Whether the newest feedback tells of the block, or that there is nothing to tell.
    pub(super) known: bool,
    /// The last source unit that was retransmitted, when parity ran out.
    cursor: u8,
}

impl SentBlock {
    pub(super) const fn new(number: u64, start: u64, shape: Shape) -> Self {
        Self {
            number,
            start,
            shape,
            next_index: 0,
            queued: 0,
            open: 0,
            round: 0,
            needed: shape.k,
            known: false,
            cursor: 0,
        }
    }

    /// The position behind its last octet.
    pub(super) fn end(&self) -> u64 {
        self.start + u64::from(self.shape.length)
    }

    /// Its number on the wire.
    #[expect(clippy::cast_possible_truncation, reason = "numbers wrap on the wire")]
    pub(super) const fn id(&self) -> u16 {
        self.number as u16
    }

    /// Units planned from the start that did not leave yet.
    pub(super) fn unsent(&self) -> u16 {
        u16::from(self.shape.n).saturating_sub(self.next_index)
    }

    /// The header of unit `index`, without the ordinal.
    pub(super) const fn unit(&self, index: u8) -> UnitHeader {
        UnitHeader {
            ordinal: 0,
            block: self.id(),
            index,
            k: self.shape.k,
            n: self.shape.n,
            length: self.shape.length,
        }
    }

    /// The unit to send next: a new one, or, when all 256 were, a source that `is_missing`.
    pub(super) fn next_unit(&mut self, is_missing: impl Fn(u64) -> bool) -> Option<u8> {
        if self.next_index < UNITS {
            let index = u8::try_from(self.next_index).ok();
            self.next_index += 1;
            return index;
        }
        let index = self.missing_source(self.cursor, is_missing)?;
        self.cursor = (index + 1) % self.shape.k;
        Some(index)
    }

    /// The first source from `from` on, around the end, whose octets are missing.
    pub(super) fn missing_source(&self, from: u8, is_missing: impl Fn(u64) -> bool) -> Option<u8> {
        let unit = self.unit(0);
        let missing = |index: &u8| is_missing(self.start + u64::from(unit.offset_of(*index)));
        (from..self.shape.k)
            .chain(0..from.min(self.shape.k))
            .find(missing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_all_parity_the_missing_sources_leave_in_turn() {
        let shape = Shape {
            length: 400,
            k: 4,
            n: 4,
        };
        let mut block = SentBlock::new(0, 1_000, shape);
        for index in 0..=255 {
            assert_eq!(block.next_unit(|_| true), Some(index));
        }
        let missing = |position: u64| position >= 1_200;
        let again: Vec<_> = (0..3).map(|_| block.next_unit(missing)).collect();
        assert_eq!(again, [Some(2), Some(3), Some(2)]);
        assert_eq!(block.next_unit(|_| false), None);
    }
}
