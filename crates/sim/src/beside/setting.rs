//! The fixed settings that stand beside `auto`.

use crate::scenario::{AerotpPlan, FlowPlan, RepairChoice, TransportPlan};
use core::fmt;
use core::num::NonZeroU8;
use fulmar_proto::fec::block::BlockPlan;
use fulmar_proto::repair::{Deliver, DeliveryGoal, DeliveryOrder, ROUNDS, RepairPlan};
use fulmar_proto::transport::aerotp::{HoleWaits, ThinRepair};
use fulmar_proto::units::Duration;
use fulmar_proto::wire::Mode;

/// A setting that stays as it is, whatever the link does.
#[derive(Clone, Copy, Debug)]
pub struct FixedSetting {
    mode: Mode,
    block: Option<BlockPlan>,
    copies: NonZeroU8,
    repair: FixedRepair,
}

/// The repair of what is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FixedRepair {
    /// As that of bulk: a loss is known by later arrivals.
    Plain,
    /// As that of thin flows without a goal, with at most so much overhead in hundredths.
    Thin(u8),
    /// This plan.
    Plan(RepairPlan),
}

/// The overhead of a fixed plan: more than any of them takes, so that nothing but the plan decides.
const PLAN_OVERHEAD: u8 = u8::MAX;
/// The deadline of flows without one, for which a plan is fixed all the same.
const FAR: Duration = Duration::from_secs(3_600);

/// Symbols ahead for eight messages.
const AHEAD_EIGHTHS: [u8; 8] = [0, 2, 4, 6, 8, 10, 12, 16];
/// Transmissions in each round of repetition.
const TIMES: [[u8; ROUNDS]; 8] = [
    [1, 1, 1],
    [1, 2, 2],
    [1, 3, 3],
    [2, 2, 2],
    [2, 3, 3],
    [2, 4, 4],
    [3, 3, 3],
    [4, 4, 4],
];
/// The same for messages that nothing goes ahead of: most copies in the last round, or an end after the first or second.
const TIMES_ALONE: [[u8; ROUNDS]; 7] = [
    [1, 1, 2],
    [1, 1, 4],
    [1, 2, 4],
    [1, 4, 6],
    [1, 0, 0],
    [2, 0, 0],
    [1, 2, 0],
];
/// Sources and repair symbols of a block.
const BLOCKS: [(u8, u8); 10] = [
    (4, 1),
    (4, 2),
    (4, 4),
    (8, 2),
    (8, 4),
    (10, 3),
    (10, 5),
    (20, 4),
    (20, 10),
    (32, 8),
];
/// The time after which a block is closed: gateways' default.
const BLOCK_CLOSES: Duration = Duration::from_millis(20);
const COPIES: [u8; 4] = [1, 2, 3, 4];
const OVERHEADS: [u8; 4] = [0, 20, 40, 90];

impl FixedSetting {
    /// Every loss is repeated once, and nothing else is sent: what an overhead is counted from.
    pub const PLAIN: Self = Self::planned(RepairPlan::PLAIN);
    /// Everything is sent once.
    pub const ONCE: Self = Self::named(Mode::Unreliable);

    const fn named(mode: Mode) -> Self {
        Self {
            mode,
            block: None,
            copies: NonZeroU8::MIN,
            repair: FixedRepair::Plain,
        }
    }

    const fn planned(plan: RepairPlan) -> Self {
        Self {
            repair: FixedRepair::Plan(plan),
            ..Self::named(Mode::HybridNackMack)
        }
    }

    /// Every setting, [`FixedSetting::PLAIN`] first and [`FixedSetting::ONCE`] second.
    pub fn grid() -> Vec<Self> {
        let complete = Self::named(Mode::HybridNackMack);
        let copied = |setting: Self| {
            COPIES
                .into_iter()
                .filter_map(NonZeroU8::new)
                .map(move |copies| Self { copies, ..setting })
        };
        let planned = AHEAD_EIGHTHS.into_iter().flat_map(|ahead_eighths| {
            TIMES.map(|times| RepairPlan {
                ahead_eighths,
                times,
                put_off: 0,
            })
        });
        let alone = TIMES_ALONE.map(|times| RepairPlan {
            ahead_eighths: 0,
            times,
            put_off: 0,
        });
        let plans = planned.chain(alone).map(Self::planned);
        let blocks = BLOCKS.into_iter().filter_map(|(sources, repairs)| {
            let block = BlockPlan::new(NonZeroU8::new(sources)?, repairs, BLOCK_CLOSES)?;
            Some(Self {
                block: Some(block),
                ..Self::named(Mode::QuasiReliable)
            })
        });
        let thin = OVERHEADS.map(|overhead| Self {
            repair: FixedRepair::Thin(overhead),
            ..complete
        });
        let first = [Self::PLAIN, Self::ONCE];
        let others = plans.skip(1).chain(copied(Self::ONCE).skip(1));
        let others = others.chain(blocks).chain(copied(complete)).chain(thin);
        first.into_iter().chain(others).collect()
    }

    /// The flow with this setting in place of `auto`; `None` if a message and the setting have no room in one packet.
    pub fn of_flow(&self, flow: &FlowPlan) -> Option<FlowPlan> {
        let TransportPlan::Aerotp(own) = &flow.transport else {
            return None;
        };
        let mut connection = own.connection;
        connection.mode = self.mode;
        connection.block = self.block;
        connection.copies = self.copies;
        if self.block.is_some() {
            connection.hole_waits = HoleWaits {
                parity: Duration::from_secs(1),
                ..connection.hole_waits
            };
        }
        connection.thin = match self.repair {
            FixedRepair::Plain => None,
            FixedRepair::Thin(overhead) => Some(ThinRepair::at_most(overhead)),
            FixedRepair::Plan(plan) => {
                let goal = own.goal().unwrap_or(DeliveryGoal {
                    deadline: FAR,
                    missed_millionths: DeliveryGoal::usual_miss(Deliver::All),
                    deliver: Deliver::All,
                    order: DeliveryOrder::Kept,
                });
                let thin = ThinRepair::at_most(PLAN_OVERHEAD).with_goal(goal).ok()?;
                Some(thin.with_plan(plan))
            }
        };
        let aerotp = AerotpPlan {
            connection,
            repair: RepairChoice::Named,
            ..**own
        };
        if aerotp.payload() < flow.message_bytes().unwrap_or_default() {
            return None;
        }
        Some(FlowPlan {
            transport: TransportPlan::Aerotp(Box::new(aerotp)),
            ..flow.clone()
        })
    }
}

impl fmt::Display for FixedSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            mode,
            block,
            copies,
            repair,
        } = self;
        write!(f, "{mode}")?;
        if let Some(block) = block {
            write!(f, " {}+{}", block.k(), block.repairs())?;
        }
        if *copies > NonZeroU8::MIN {
            write!(f, ", all {copies} times")?;
        }
        match repair {
            FixedRepair::Plain => Ok(()),
            FixedRepair::Thin(overhead) => write!(f, ", thin, overhead {overhead}%"),
            FixedRepair::Plan(plan) => {
                let (ahead, [first, second, third]) = (plan.ahead(), plan.times);
                write!(f, ", ahead {ahead}, rounds {first} {second} {third}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_grid_has_more_than_sixty_settings_and_none_twice() {
        let grid = FixedSetting::grid();
        let names: BTreeSet<String> = grid.iter().map(ToString::to_string).collect();
        assert_eq!(names.len(), grid.len());
        assert!(grid.len() >= 60, "{}", grid.len());
        assert_eq!(grid[0].to_string(), FixedSetting::PLAIN.to_string());
        assert_eq!(grid[1].to_string(), FixedSetting::ONCE.to_string());
    }
}
