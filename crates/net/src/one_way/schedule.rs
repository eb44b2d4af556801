//! The order in which the units of a file are sent.
//!
//! The blocks of a group take turns, so that a burst takes little from each. A later round goes on behind the units of the one before:
//! all of them are of use to everybody. Behind a block's last unit its first comes again.

use super::layout::FileLayout;

/// The blocks that take turns. The parity of all of them is held in memory meanwhile.
pub(super) const GROUP_BLOCKS: usize = 4;
/// A block uses so many times its sources as units, rounded up to powers of two; rebuilding takes time and memory by the highest one.
const SPANS_USED: u32 = 4;
/// Small blocks use so many units at least: with fewer, repetitions would come early.
const UNITS_USED_LEAST: u32 = 256;

/// The units of a block that a round sends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockSends {
    /// The first one, in the first round.
    pub first: u32,
    /// Their number in each round.
    pub units: u32,
}

/// The number of units of a block that are used before the first comes again.
pub(super) fn units_used(layout: &FileLayout, block: u16) -> u32 {
    layout.block(block).map_or(1, |block| {
        let sources = u32::from(block.sources());
        let used = (SPANS_USED * sources.next_power_of_two()).max(UNITS_USED_LEAST);
        used.min(block.units())
    })
}

#[derive(Debug)]
struct BlockTurns {
    sends: BlockSends,
    used: u32,
}

/// The next unit to send, again and again.
#[derive(Debug)]
pub(super) struct Schedule {
    blocks: Vec<BlockTurns>,
    /// The first block of the group.
    group: usize,
    /// The block whose turn it is, within the group.
    turn: usize,
    /// The unit of each block in this round.
    step: u32,
    round: u32,
}

impl Schedule {
    pub(super) fn new(layout: &FileLayout, sends: &[BlockSends]) -> Self {
        let blocks = layout
            .numbers()
            .zip(sends)
            .map(|(number, sends)| BlockTurns {
                sends: *sends,
                used: units_used(layout, number),
            });
        Self {
            blocks: blocks.collect(),
            group: 0,
            turn: 0,
            step: 0,
            round: 0,
        }
    }

    /// The rounds that are over.
    pub(super) const fn rounds(&self) -> u32 {
        self.round
    }

    /// For each block, the unit behind the last one of the rounds that are over.
    pub(super) fn ends(&self) -> Vec<u32> {
        let end = |block: &BlockTurns| {
            let sent = u64::from(self.round) * u64::from(block.sends.units);
            let end = (u64::from(block.sends.first) + sent) % u64::from(block.used);
            u32::try_from(end).unwrap_or(0)
        };
        self.blocks.iter().map(end).collect()
    }

    /// The units of one round.
    pub(super) fn units(&self) -> u64 {
        self.blocks
            .iter()
            .map(|block| u64::from(block.sends.units))
            .sum()
    }

    /// Block and unit to send next; `None`: a round is over, and the next call begins another.
    pub(super) fn next(&mut self) -> Option<(u16, u32)> {
        while self.group < self.blocks.len() {
            let group = self.blocks.iter().skip(self.group).take(GROUP_BLOCKS);
            let longest = group.map(|block| block.sends.units).max().unwrap_or(0);
            while self.step < longest {
                let number = self.group + self.turn;
                let block = self.blocks.get(number).filter(|_| self.turn < GROUP_BLOCKS);
                let Some(block) = block else {
                    self.turn = 0;
                    self.step += 1;
                    continue;
                };
                self.turn += 1;
                if self.step < block.sends.units {
                    let before = u64::from(self.round) * u64::from(block.sends.units);
                    let place = u64::from(block.sends.first) + before + u64::from(self.step);
                    let unit = u32::try_from(place % u64::from(block.used)).unwrap_or(0);
                    return u16::try_from(number).ok().map(|number| (number, unit));
                }
            }
            self.step = 0;
            self.turn = 0;
            self.group += GROUP_BLOCKS;
        }
        self.group = 0;
        self.round = self.round.saturating_add(1);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fulmar_proto::fec::long_block::LONG_SOURCES_MAX;

    fn round(schedule: &mut Schedule) -> Vec<(u16, u32)> {
        core::iter::from_fn(|| schedule.next()).collect()
    }

    #[test]
    fn blocks_take_turns_and_the_next_round_goes_on_behind() {
        let layout = FileLayout::new(u64::from(LONG_SOURCES_MAX) * 2 * 2, 2).expect("even");
        let sends = [
            BlockSends { first: 0, units: 3 },
            BlockSends { first: 7, units: 2 },
        ];
        let mut schedule = Schedule::new(&layout, &sends);
        assert_eq!(schedule.units(), 5);
        assert_eq!(
            round(&mut schedule),
            [(0, 0), (1, 7), (0, 1), (1, 8), (0, 2)]
        );
        assert_eq!(
            round(&mut schedule),
            [(0, 3), (1, 9), (0, 4), (1, 10), (0, 5)]
        );
        assert_eq!(schedule.rounds(), 2);
    }

    #[test]
    fn groups_come_one_after_the_other_and_each_unit_once() {
        let layout = FileLayout::new(u64::from(LONG_SOURCES_MAX) * 2 * 6, 2).expect("even");
        let sends = [BlockSends { first: 0, units: 5 }; 6];
        let mut schedule = Schedule::new(&layout, &sends);
        let order = round(&mut schedule);
        let (first, second) = order.split_at(20);
        assert!(first.iter().all(|(block, _)| *block < 4), "{order:?}");
        assert!(second.iter().all(|(block, _)| *block >= 4), "{order:?}");
        let distinct: std::collections::BTreeSet<_> = order.iter().collect();
        assert_eq!(distinct.len(), 30);
    }

    #[test]
    fn behind_the_last_unit_the_first_comes_again() {
        let layout = FileLayout::new(2, 2).expect("even");
        let used = units_used(&layout, 0);
        assert_eq!(used, UNITS_USED_LEAST);
        let mut schedule = Schedule::new(
            &layout,
            &[BlockSends {
                first: used - 1,
                units: 2,
            }],
        );
        assert_eq!(round(&mut schedule), [(0, used - 1), (0, 0)]);
        // Nothing to send ends at once.
        let mut nothing = Schedule::new(&layout, &[BlockSends::default()]);
        assert_eq!(nothing.next(), None);
    }
}
