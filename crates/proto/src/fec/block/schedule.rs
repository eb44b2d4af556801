//! The rule by which a block closes, and the number of repair symbols that it then gets.
//!
//! A block closes when it has k sources, or when its first source has waited long enough: without
//! the second rule the last packets of a burst would stay unprotected until the next burst.

use crate::machine::Deadline;
use crate::units::{Bitrate, ByteCount, Duration, Instant};
use core::num::NonZeroU8;

/// A plan for grouping sources into blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockPlan {
    k: NonZeroU8,
    repairs: u8,
    close_after: Duration,
}

impl BlockPlan {
    /// A plan for blocks of `k` sources with `repairs` repair symbols, which close at the latest
    /// `close_after` their first source. `None` if `k` and `repairs` together exceed the field's
    /// 256 units.
    pub fn new(k: NonZeroU8, repairs: u8, close_after: Duration) -> Option<Self> {
        let last_unit = k.get().checked_add(repairs.saturating_sub(1));
        last_unit.map(|_| Self {
            k,
            repairs,
            close_after,
        })
    }

    /// Sources of a full block.
    pub fn k(self) -> NonZeroU8 {
        self.k
    }

    /// Repair symbols of a full block.
    pub fn repairs(self) -> u8 {
        self.repairs
    }

    /// The time that a block waits for more sources, counted from its first.
    pub fn close_after(self) -> Duration {
        self.close_after
    }

    /// The same plan with a waiting time that suits `rate`: the time that the block's sources take
    /// as packets of `packet` octets, and a fifth more for other packets sent meanwhile.
    #[must_use]
    pub fn at_rate(self, rate: Bitrate, packet: ByteCount) -> Self {
        let sources = rate.time_to_send(packet) * u32::from(self.k.get());
        Self {
            close_after: self.close_after.max(sources * 6 / 5),
            ..self
        }
    }

    /// Repair symbols for a block that closed with `sources` of its k: the same share, rounded up,
    /// so that a short block is protected no less than a full one.
    fn repairs_for(self, sources: u8) -> u8 {
        let share = (u16::from(self.repairs) * u16::from(sources)).div_ceil(self.k.get().into());
        u8::try_from(share).unwrap_or(self.repairs)
    }
}

/// The reason why a block closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockCloseReason {
    /// The block has k sources.
    Count,
    /// The block's first source waited long enough.
    Time,
    /// The sender asked for it, or the ordinals jumped.
    Early,
}

/// A block that takes no more sources, so that its repair symbols can be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClosedBlock {
    /// The ordinal of its first source.
    pub first: u32,
    /// The number of its sources, which have consecutive ordinals.
    pub k: NonZeroU8,
    /// The number of repair symbols that the plan gives it.
    pub repairs: u8,
    /// The reason why it closed.
    pub why: BlockCloseReason,
}

#[derive(Clone, Copy, Debug)]
struct OpenBlock {
    first: u32,
    sources: NonZeroU8,
    opened: Instant,
    /// The plan when it was opened; a new plan serves the next block.
    plan: BlockPlan,
}

impl OpenBlock {
    fn is_full(self) -> bool {
        self.sources >= self.plan.k
    }

    fn closes_at(self) -> Instant {
        if self.is_full() {
            self.opened
        } else {
            self.opened + self.plan.close_after
        }
    }

    fn close(self, otherwise: BlockCloseReason) -> ClosedBlock {
        let why = if self.is_full() {
            BlockCloseReason::Count
        } else {
            otherwise
        };
        ClosedBlock {
            first: self.first,
            k: self.sources,
            repairs: self.plan.repairs_for(self.sources.get()),
            why,
        }
    }
}

/// A sender's schedule of blocks: which block is open, and until when. Blocks do not overlap.
#[derive(Clone, Debug)]
pub struct BlockSchedule {
    plan: BlockPlan,
    open: Option<OpenBlock>,
}

impl BlockSchedule {
    /// A schedule without an open block.
    pub fn new(plan: BlockPlan) -> Self {
        Self { plan, open: None }
    }

    /// The plan of the next block.
    pub fn plan(&self) -> BlockPlan {
        self.plan
    }

    /// Changes the plan, from the next block on.
    pub fn set_plan(&mut self, plan: BlockPlan) {
        self.plan = plan;
    }

    /// Notes that source `ordinal` was sent for the first time. Returns the block that this closes.
    ///
    /// Ordinals count up by one (and wrap). A source whose ordinal does not follow the last one
    /// opens a new block, and the old block closes early.
    pub fn on_source(&mut self, now: Instant, ordinal: u32) -> Option<ClosedBlock> {
        let follows = |open: &OpenBlock| {
            let next = open.first.wrapping_add(u32::from(open.sources.get()));
            !open.is_full() && ordinal == next
        };
        if let Some(open) = self.open.as_mut().filter(|open| follows(open)) {
            open.sources = open.sources.saturating_add(1);
            return self
                .open
                .take_if(|open| open.is_full())
                .map(|open| open.close(BlockCloseReason::Count));
        }
        let displaced = self.open.replace(OpenBlock {
            first: ordinal,
            sources: NonZeroU8::MIN,
            opened: now,
            plan: self.plan,
        });
        // A call returns one block: where both are done, the new one closes by its deadline, which
        // is now.
        match displaced {
            Some(open) => Some(open.close(BlockCloseReason::Early)),
            None => self
                .open
                .take_if(|open| open.is_full())
                .map(|open| open.close(BlockCloseReason::Count)),
        }
    }

    /// Notes that the deadline may have come. Returns the block whose time is up.
    pub fn on_deadline(&mut self, now: Instant) -> Option<ClosedBlock> {
        let due = self.open.take_if(|open| open.closes_at() <= now)?;
        Some(due.close(BlockCloseReason::Time))
    }

    /// Closes the open block, because the sender knows that no more sources follow.
    pub fn close(&mut self) -> Option<ClosedBlock> {
        self.open
            .take()
            .map(|open| open.close(BlockCloseReason::Early))
    }

    /// The time at which the open block's waiting ends.
    pub fn next_deadline(&self) -> Option<Deadline> {
        self.open.map(|open| Deadline {
            at: open.closes_at(),
            why: "repair block closes",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLOSE_AFTER: Duration = Duration::from_millis(50);

    fn k(k: u8) -> NonZeroU8 {
        NonZeroU8::new(k).unwrap()
    }

    fn at(millis: u64) -> Instant {
        Instant::START + Duration::from_millis(millis)
    }

    #[test]
    fn a_block_has_the_time_that_its_sources_take_at_the_rate_of_the_link() {
        let plan = BlockPlan::new(k(32), 16, CLOSE_AFTER).unwrap();
        let close_after = |bits| {
            let rate = Bitrate::from_bits_per_second(bits);
            plan.at_rate(rate, ByteCount(1500)).close_after()
        };
        // 2.4 ms each; 32 of them and a fifth.
        assert_eq!(close_after(5_000_000), Duration::from_micros(92_160));
        assert_eq!(close_after(100_000_000), CLOSE_AFTER);
    }

    fn schedule(sources: u8, repairs: u8) -> BlockSchedule {
        BlockSchedule::new(BlockPlan::new(k(sources), repairs, CLOSE_AFTER).unwrap())
    }

    #[test]
    fn a_plan_stays_within_the_256_units_of_the_field() {
        let plan = |sources, repairs| BlockPlan::new(k(sources), repairs, CLOSE_AFTER);
        assert!(plan(255, 1).is_some());
        assert!(plan(255, 2).is_none());
        assert!(plan(1, 255).is_some());
        assert!(plan(255, 0).is_some());
    }

    #[test]
    fn a_block_closes_with_its_kth_source() {
        let mut schedule = schedule(3, 2);
        assert_eq!(schedule.on_source(at(0), u32::MAX), None);
        assert_eq!(schedule.on_source(at(1), 0), None);
        let closed = schedule.on_source(at(2), 1);
        let expected = ClosedBlock {
            first: u32::MAX,
            k: k(3),
            repairs: 2,
            why: BlockCloseReason::Count,
        };
        assert_eq!(closed, Some(expected));
        assert_eq!(schedule.next_deadline(), None);
    }

    #[test]
    fn a_block_closes_by_time_with_its_share_of_repairs_rounded_up() {
        let mut schedule = schedule(8, 2);
        for ordinal in 10..15 {
            assert_eq!(
                schedule.on_source(at(100 + u64::from(ordinal)), ordinal),
                None
            );
        }
        let deadline = schedule.next_deadline().unwrap();
        assert_eq!(deadline.at, at(160), "counted from the first source");
        assert_eq!(schedule.on_deadline(at(159)), None);
        let closed = schedule.on_deadline(at(160)).unwrap();
        assert_eq!(
            (closed.first, closed.k, closed.why),
            (10, k(5), BlockCloseReason::Time)
        );
        // 2 · 5 / 8 = 1.25.
        assert_eq!(closed.repairs, 2);
        assert_eq!(schedule.on_deadline(at(400)), None, "closed once");
    }

    #[test]
    fn a_jump_of_the_ordinals_closes_the_open_block_early() {
        let mut schedule = schedule(4, 1);
        schedule.on_source(at(0), 1);
        let closed = schedule.on_source(at(1), 7).unwrap();
        assert_eq!(
            (closed.first, closed.k, closed.why),
            (1, k(1), BlockCloseReason::Early)
        );
        assert_eq!(schedule.close().map(|block| block.first), Some(7));
        assert_eq!(schedule.close(), None);
    }

    #[test]
    fn a_new_plan_serves_the_next_block() {
        let mut schedule = schedule(2, 1);
        schedule.on_source(at(0), 0);
        schedule.set_plan(BlockPlan::new(k(1), 3, CLOSE_AFTER).unwrap());
        assert_eq!(
            schedule.on_source(at(1), 1).map(|block| block.repairs),
            Some(1)
        );
        let single = schedule.on_source(at(2), 2).unwrap();
        assert_eq!(
            (single.first, single.repairs, single.why),
            (2, 3, BlockCloseReason::Count)
        );
    }

    #[test]
    fn two_blocks_done_at_once_come_one_by_one() {
        let mut schedule = schedule(2, 1);
        schedule.on_source(at(0), 0);
        schedule.set_plan(BlockPlan::new(k(1), 3, CLOSE_AFTER).unwrap());
        let displaced = schedule.on_source(at(1), 9).unwrap();
        assert_eq!(
            (displaced.first, displaced.why),
            (0, BlockCloseReason::Early)
        );
        assert_eq!(
            schedule.next_deadline().map(|deadline| deadline.at),
            Some(at(1))
        );
        let full = schedule.on_deadline(at(1)).unwrap();
        assert_eq!((full.first, full.why), (9, BlockCloseReason::Count));
    }
}
