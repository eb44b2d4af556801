//! The units of a file that are here.

use super::layout::FileLayout;
use fulmar_proto::fec::long_block::LongBlock;

const WORD_BITS: u32 = 64;

/// The units of one block.
#[derive(Clone, Debug)]
struct HeldBlock {
    block: LongBlock,
    /// One bit for each unit, up to the highest that is here.
    bits: Vec<u64>,
    held: u32,
    /// One past the highest unit heard.
    next: u32,
}

impl HeldBlock {
    fn missing(&self) -> u32 {
        u32::from(self.block.sources()).saturating_sub(self.held)
    }

    fn bit(&mut self, unit: u32) -> Option<(&mut u64, u64)> {
        let word = self.bits.get_mut((unit / WORD_BITS) as usize)?;
        Some((word, 1 << (unit % WORD_BITS)))
    }
}

/// The fate of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HeldOutcome {
    /// It is new, and was needed.
    Taken,
    /// It is here already, or its block has enough.
    Surplus,
    /// The file has no such unit.
    Outside,
}

/// The units of all blocks of a file.
#[derive(Clone, Debug)]
pub(super) struct HeldUnits {
    blocks: Vec<HeldBlock>,
    missing: u64,
}

impl HeldUnits {
    pub(super) fn new(layout: &FileLayout) -> Self {
        let blocks = layout.numbers().filter_map(|number| {
            layout.block(number).map(|block| HeldBlock {
                block,
                bits: Vec::new(),
                held: 0,
                next: 0,
            })
        });
        let blocks: Vec<HeldBlock> = blocks.collect();
        let missing = blocks.iter().map(|block| u64::from(block.missing())).sum();
        Self { blocks, missing }
    }

    /// The number of units that are still needed.
    pub(super) const fn missing(&self) -> u64 {
        self.missing
    }

    /// Takes a unit of `len` octets.
    pub(super) fn take(&mut self, block: u16, unit: u16, len: usize) -> HeldOutcome {
        let unit = u32::from(unit);
        let Some(held) = self.blocks.get_mut(usize::from(block)) else {
            return HeldOutcome::Outside;
        };
        if unit >= held.block.units() || len != usize::from(held.block.symbol_bytes()) {
            return HeldOutcome::Outside;
        }
        held.next = held.next.max(unit + 1);
        if held.missing() == 0 {
            return HeldOutcome::Surplus;
        }
        let words = (unit / WORD_BITS) as usize + 1;
        if held.bits.len() < words {
            held.bits.resize(words, 0);
        }
        match held.bit(unit) {
            Some((word, bit)) if *word & bit == 0 => *word |= bit,
            _ => return HeldOutcome::Surplus,
        }
        held.held += 1;
        self.missing -= 1;
        HeldOutcome::Taken
    }

    /// Forgets a unit that could not be kept.
    pub(super) fn forget(&mut self, block: u16, unit: u16) {
        let Some(held) = self.blocks.get_mut(usize::from(block)) else {
            return;
        };
        if let Some((word, bit)) = held.bit(unit.into())
            && *word & bit != 0
        {
            *word &= !bit;
            held.held -= 1;
            self.missing += 1;
        }
    }

    /// For each block that needs some: its number, its sources, the units needed, and one past the highest heard.
    pub(super) fn needs(&self) -> impl Iterator<Item = (u16, u16, u32, u32)> + '_ {
        let blocks = (0..=u16::MAX).zip(&self.blocks);
        let short = blocks.filter(|(_, block)| block.missing() > 0);
        short.map(|(number, block)| (number, block.block.sources(), block.missing(), block.next))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_counts_once_and_none_beyond_what_is_needed() {
        let layout = FileLayout::new(10, 2).expect("even");
        let mut held = HeldUnits::new(&layout);
        assert_eq!(held.missing(), 5);
        assert_eq!(held.take(0, 300, 2), HeldOutcome::Taken);
        assert_eq!(held.take(0, 300, 2), HeldOutcome::Surplus);
        assert_eq!(held.take(1, 0, 2), HeldOutcome::Outside);
        assert_eq!(held.take(0, 1, 4), HeldOutcome::Outside);
        let units = layout.block(0).expect("it has it").units();
        assert_eq!(
            held.take(0, u16::try_from(units).expect("fits"), 2),
            HeldOutcome::Outside
        );
        for unit in 0..4 {
            assert_eq!(held.take(0, unit, 2), HeldOutcome::Taken);
        }
        assert_eq!(
            (held.missing(), held.take(0, 9, 2)),
            (0, HeldOutcome::Surplus)
        );
        assert_eq!(held.needs().count(), 0);
        held.forget(0, 2);
        held.forget(0, 2);
        held.forget(0, 77);
        assert_eq!(held.missing(), 1);
        assert_eq!(held.needs().collect::<Vec<_>>(), [(0, 5, 1, 301)]);
        assert_eq!(held.take(0, 2, 2), HeldOutcome::Taken);
    }
}
