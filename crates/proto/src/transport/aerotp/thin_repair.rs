//! The settings of the repair of thin flows.

use super::config_error::ConfigError;
use crate::repair::{Deliver, DeliveryGoal, DeliveryOrder, RepairPlan};
use crate::units::Duration;
use core::num::NonZeroU8;

/// Millionths in the unit of [`ThinRepair::missed`].
const MISSED_UNIT: u32 = 10;
/// The share of messages that may miss a deadline, at most, in millionths.
const MISSED_MAX: u32 = 500_000;
const DEADLINE_MIN: Duration = Duration::from_micros(1);
const DEADLINE_MAX: Duration = Duration::from_secs(3_600);

/// The repair of thin flows: those whose data leave as they are written, so that the rate allows more.
///
/// Their data are answered at once, and more than once where answers are lost. What got no answer in time is repeated
/// without waiting until something later has one.
///
/// It stands in each connection's settings, which are copied, so it is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThinRepair {
    /// Octets of copies and of repair symbols ahead, in hundredths of the data, at most: what is sent beyond once for each
    /// loss. 0 for none.
    pub overhead_percent: u8,
    aim: Aim,
    /// The share that may miss the deadline, in parts of 100,000.
    missed: u16,
    deadline_micros: u32,
    pinned: Option<PinnedPlan>,
}

/// A plan that is not chosen, in four octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PinnedPlan {
    /// Eighths of a symbol ahead, and one more.
    ahead: NonZeroU8,
    times: [u8; 3],
}

/// The goal but for its figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Aim {
    None,
    AllInOrder,
    AllInAnyOrder,
    InTimeInOrder,
    InTimeInAnyOrder,
}

impl ThinRepair {
    /// The most overhead of a flow's class: all of the data once more. The settings of a connection may have more.
    pub const OVERHEAD_PERCENT_MAX: u8 = 100;

    /// The same with a goal that the repair is planned for. Without one, less than one message in a hundred waits for a second
    /// repetition. The share that may miss the deadline counts in steps of ten millionths, rounded down.
    ///
    /// # Errors
    /// [`ConfigError`] if the deadline is not 1 us to an hour, or more than half of the messages may miss it.
    pub fn with_goal(self, goal: DeliveryGoal) -> Result<Self, ConfigError> {
        let error = |field, problem: String| Err(ConfigError { field, problem });
        if !(DEADLINE_MIN..=DEADLINE_MAX).contains(&goal.deadline) {
            return error("deadline", "must be 1us to 1h".to_owned());
        }
        if goal.missed_millionths > MISSED_MAX {
            let problem = format!(
                "is {} of a million; half of the messages may miss the deadline, at most",
                goal.missed_millionths
            );
            return error("missed_millionths", problem);
        }
        let aim = match (goal.deliver, goal.order) {
            (Deliver::All, DeliveryOrder::Kept) => Aim::AllInOrder,
            (Deliver::All, DeliveryOrder::Any) => Aim::AllInAnyOrder,
            (Deliver::ByDeadline, DeliveryOrder::Kept) => Aim::InTimeInOrder,
            (Deliver::ByDeadline, DeliveryOrder::Any) => Aim::InTimeInAnyOrder,
        };
        Ok(Self {
            aim,
            missed: u16::try_from(goal.missed_millionths / MISSED_UNIT).unwrap_or(u16::MAX),
            deadline_micros: u32::try_from(goal.deadline.as_micros()).unwrap_or(u32::MAX),
            ..self
        })
    }

    /// The goal, if there is one.
    pub fn goal(&self) -> Option<DeliveryGoal> {
        let (deliver, order) = match self.aim {
            Aim::None => return None,
            Aim::AllInOrder => (Deliver::All, DeliveryOrder::Kept),
            Aim::AllInAnyOrder => (Deliver::All, DeliveryOrder::Any),
            Aim::InTimeInOrder => (Deliver::ByDeadline, DeliveryOrder::Kept),
            Aim::InTimeInAnyOrder => (Deliver::ByDeadline, DeliveryOrder::Any),
        };
        Some(DeliveryGoal {
            deadline: Duration::from_micros(self.deadline_micros.into()),
            missed_millionths: u32::from(self.missed) * MISSED_UNIT,
            deliver,
            order,
        })
    }

    /// The same with this plan whatever is lost, in place of one that is chosen for the goal: a fixed setting, to put beside
    /// the choice. Without a goal it means nothing.
    #[must_use]
    pub const fn with_plan(self, plan: RepairPlan) -> Self {
        let pinned = PinnedPlan {
            ahead: NonZeroU8::MIN.saturating_add(plan.ahead_eighths),
            times: plan.times,
        };
        Self {
            pinned: Some(pinned),
            ..self
        }
    }

    /// The plan that holds whatever is lost, if there is one. It puts nothing off.
    pub fn plan(&self) -> Option<RepairPlan> {
        self.pinned.map(|pinned| RepairPlan {
            ahead_eighths: pinned.ahead.get() - 1,
            times: pinned.times,
            put_off: 0,
        })
    }

    /// Refuses what no peer takes as a flow's goal: it ends the connection that says so.
    ///
    /// # Errors
    /// [`ConfigError`] if the overhead is more than [`ThinRepair::OVERHEAD_PERCENT_MAX`].
    pub(crate) fn checked_for_peer(&self) -> Result<(), ConfigError> {
        if self.overhead_percent <= Self::OVERHEAD_PERCENT_MAX {
            return Ok(());
        }
        let problem = format!(
            "is {} of a hundred; what is sent ahead or twice is as much as the data, at most",
            self.overhead_percent
        );
        Err(ConfigError {
            field: "overhead_percent",
            problem,
        })
    }

    /// Repair without a goal, of at most so much overhead in hundredths.
    pub const fn at_most(overhead_percent: u8) -> Self {
        Self {
            overhead_percent,
            aim: Aim::None,
            missed: 0,
            deadline_micros: 0,
            pinned: None,
        }
    }
}

impl Default for ThinRepair {
    fn default() -> Self {
        Self::at_most(40)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goal_comes_back_as_it_was_given() {
        assert_eq!(ThinRepair::default().goal(), None);
        for deliver in [Deliver::All, Deliver::ByDeadline] {
            for order in [DeliveryOrder::Kept, DeliveryOrder::Any] {
                let goal = DeliveryGoal {
                    deadline: Duration::from_millis(150),
                    missed_millionths: 700,
                    deliver,
                    order,
                };
                let thin = ThinRepair::at_most(70).with_goal(goal).expect("sound");
                assert_eq!((thin.overhead_percent, thin.goal()), (70, Some(goal)));
            }
        }
    }

    #[test]
    fn a_fixed_plan_comes_back_as_it_was_given() {
        assert_eq!(ThinRepair::default().plan(), None);
        for ahead_eighths in [0, 3, 8] {
            let plan = RepairPlan {
                ahead_eighths,
                times: [1, 2, 4],
                put_off: 0,
            };
            assert_eq!(ThinRepair::default().with_plan(plan).plan(), Some(plan));
        }
    }

    #[test]
    fn a_goal_that_means_nothing_is_refused_by_its_field() {
        let sound = DeliveryGoal {
            deadline: Duration::from_secs(3_600),
            missed_millionths: 500_000,
            deliver: Deliver::All,
            order: DeliveryOrder::Kept,
        };
        let refused = |goal| ThinRepair::default().with_goal(goal).err();
        assert_eq!(refused(sound), None);
        for deadline in [Duration::ZERO, sound.deadline + Duration::from_micros(1)] {
            let error = refused(DeliveryGoal { deadline, ..sound }).expect("refused");
            assert_eq!(error.field, "deadline");
            assert!(error.problem.contains("1us to 1h"), "{error}");
        }
        let missed_millionths = 500_001;
        let error = refused(DeliveryGoal {
            missed_millionths,
            ..sound
        })
        .expect("refused");
        assert_eq!(error.field, "missed_millionths");
        assert!(error.problem.contains("half of the messages"), "{error}");
    }
}
