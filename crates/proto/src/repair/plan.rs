//! The table of plans, the prediction for each, and the choice.

use super::busy::{Busy, HORIZON, Mending, ROUNDS, STEPS};
use super::{Deliver, DeliveryGoal, DeliveryOrder, LossPattern, Odds};
use crate::units::Duration;

/// Symbols ahead for four messages, in the plans of the table.
const AHEAD_QUARTERS: [u8; 8] = [0, 1, 2, 3, 4, 5, 6, 8];
/// Transmissions in one round of repetition, at most.
const TIMES_MAX: u8 = 6;
/// The same beside symbols, or in order.
const TIMES_TOGETHER_MAX: u8 = 4;
/// The part of its cost by which another plan must be cheaper before a good one is left.
const WORTH_CHANGING: u64 = 32;
/// The part of the residual within which a plan stays although it no longer quite holds the goal.
const TOLERATED: u64 = 8;

/// The shape of a thin flow and of its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowShape {
    /// The time between two messages.
    pub gap: Duration,
    /// The time one way.
    pub one_way: Duration,
    /// The time from a transmission to its repetition.
    pub round: Duration,
}

/// The repair of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RepairPlan {
    /// Repair symbols ahead of any loss, for four messages.
    pub ahead_quarters: u8,
    /// The transmissions in each round of repetition.
    pub times: [u8; ROUNDS],
}

/// The expectation of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prediction {
    /// Messages that miss the deadline.
    pub missed: Odds,
    /// Packets for each message.
    pub cost: Odds,
}

impl Prediction {
    const NOTHING_LOST: Self = Self {
        missed: Odds::NEVER,
        cost: Odds::ALWAYS,
    };
}

impl RepairPlan {
    /// Every loss is repeated once, and nothing else is sent.
    pub const PLAIN: Self = Self {
        ahead_quarters: 0,
        times: [1; ROUNDS],
    };

    /// The transmissions in a round of repetition, the first being 1.
    pub fn times_in(&self, round: u32) -> u8 {
        let at = usize::try_from(round.saturating_sub(1)).unwrap_or(ROUNDS);
        self.times[at.min(ROUNDS - 1)]
    }

    /// Plans without symbols, by the transmissions in each round.
    fn alone(gives_up: bool) -> impl Iterator<Item = Self> {
        let times = |from: u8| from..=TIMES_MAX;
        let rounds = times(1).flat_map(move |first| {
            times(first)
                .flat_map(move |second| times(second).map(move |third| [first, second, third]))
        });
        // What nobody waits for may be given up after one or two repetitions.
        let once = times(1).map(|first| [first, 0, 0]);
        let twice =
            times(1).flat_map(move |first| times(first).map(move |second| [first, second, 0]));
        let given_up = once.chain(twice).filter(move |_| gives_up);
        rounds.chain(given_up).map(|times| Self {
            ahead_quarters: 0,
            times,
        })
    }

    /// Plans for messages that wait for each other, or are mended with the help of each other.
    fn together() -> impl Iterator<Item = Self> {
        let times = |from: u8| from..=TIMES_TOGETHER_MAX;
        let rounds =
            times(1).flat_map(move |first| times(first).map(move |more| [first, more, more]));
        rounds.flat_map(|times| {
            AHEAD_QUARTERS.map(|ahead_quarters| Self {
                ahead_quarters,
                times,
            })
        })
    }

    /// The cheapest plan that holds the goal, and else the one that misses it least; none costs more than repetition
    /// alone by more than `overhead_percent` of the data, or than the data alone where messages are given up. `now` is the plan in use: it stays unless another is worth it.
    pub fn choose(
        goal: &DeliveryGoal,
        overhead_percent: u8,
        (pattern, shape): (&LossPattern, &FlowShape),
        now: Self,
    ) -> (Self, Prediction) {
        if pattern.loss() == Odds::NEVER {
            return (Self::PLAIN, Prediction::NOTHING_LOST);
        }
        let outlook = Outlook::of(goal, pattern, shape);
        let plain = outlook.predict(Self::PLAIN);
        let least = if goal.takes_back() {
            Odds::ALWAYS
        } else {
            plain.cost
        };
        let most = least.plus(Odds::of(u64::from(overhead_percent), 100));
        let wanted = goal.missed();
        let current = outlook.predict(now);
        let holds = |prediction: &Prediction, wanted| {
            prediction.missed <= wanted && prediction.cost <= most
        };
        let stays = holds(&current, wanted.plus(wanted.part(TOLERATED)));
        let better =
            |one: &Prediction, than: &Prediction| match (holds(one, wanted), holds(than, wanted)) {
                (true, true) => one.cost < than.cost,
                (false, false) => one.missed < than.missed,
                (one, _) => one,
            };
        // Symbols are of use where messages wait for each other, or where no repetition comes in time.
        let is_alone = goal.order == DeliveryOrder::Any && outlook.rounds > 0;
        let alone = Self::alone(goal.takes_back()).filter(|_| is_alone);
        let together = Self::together().filter(|_| !is_alone);
        let affordable = alone
            .chain(together)
            .map(|plan| (plan, outlook.predict(plan)))
            .filter(|(_, prediction)| prediction.cost <= most);
        let best = affordable.reduce(
            |best, next| {
                if better(&next.1, &best.1) { next } else { best }
            },
        );
        let best = best.unwrap_or((Self::PLAIN, plain));
        let saved = current.cost.less(best.1.cost);
        if stays && saved <= current.cost.part(WORTH_CHANGING) {
            (now, current)
        } else {
            best
        }
    }
}

/// The losses that plans are weighed against.
struct Outlook {
    goal: DeliveryGoal,
    loss: Odds,
    /// Losses of messages and symbols that leave soon behind a loss.
    behind: Odds,
    /// Losses of a repetition.
    again: Odds,
    /// The time that a message has between its earliest arrival and its deadline, in steps.
    left_steps: usize,
    round_steps: usize,
    /// The rounds of repetition that arrive in time.
    rounds: usize,
}

/// `span` in steps of `gap`, rounded up or down.
fn steps(span: Duration, gap: Duration) -> (usize, usize) {
    let gap = gap.as_nanos().max(1);
    let quarters = span.as_nanos().saturating_mul(STEPS as u128);
    let whole = |steps: u128| usize::try_from(steps).unwrap_or(HORIZON).min(HORIZON);
    (whole(quarters / gap), whole(quarters.div_ceil(gap)))
}

impl Outlook {
    fn of(goal: &DeliveryGoal, pattern: &LossPattern, shape: &FlowShape) -> Self {
        let left = goal.deadline.saturating_sub(shape.one_way);
        let round = shape.round.as_nanos().max(1);
        let gaps = shape.round.as_nanos() / shape.gap.as_nanos().max(1);
        Self {
            goal: *goal,
            loss: pattern.loss(),
            behind: pattern.behind_a_loss(),
            again: pattern.after_a_loss(u32::try_from(gaps).unwrap_or(u32::MAX).max(1)),
            left_steps: steps(left, shape.gap).0,
            round_steps: steps(shape.round, shape.gap).1,
            rounds: usize::try_from(left.as_nanos() / round).unwrap_or(usize::MAX),
        }
    }

    fn mending(&self, plan: RepairPlan) -> Mending {
        Mending {
            ahead_quarters: plan.ahead_quarters,
            times: plan.times,
            round_steps: self.round_steps,
            loss: self.behind,
            again: self.again,
        }
    }

    fn predict(&self, plan: RepairPlan) -> Prediction {
        if plan.ahead_quarters == 0 && self.goal.order == DeliveryOrder::Any {
            self.predict_alone(plan)
        } else {
            self.predict_together(plan)
        }
    }

    /// Messages that do not wait for each other, without symbols: each has its rounds.
    fn predict_alone(&self, plan: RepairPlan) -> Prediction {
        let by_deadline = self.goal.deliver == Deliver::ByDeadline;
        let (mut open, mut cost) = (self.loss, Odds::ALWAYS);
        let mut missed = open;
        for round in 0..HORIZON {
            let in_time = round < self.rounds;
            if open == Odds::NEVER || (by_deadline && !in_time) {
                break;
            }
            let times = u32::from(plan.times[round.min(ROUNDS - 1)]);
            if times == 0 {
                break;
            }
            cost = cost.plus(open.by(u64::from(times)));
            open = open.and(self.again.power(times));
            if in_time {
                missed = open;
            }
        }
        Prediction { missed, cost }
    }

    /// Messages in order, or with symbols that mend one with the help of others.
    fn predict_together(&self, plan: RepairPlan) -> Prediction {
        let mending = self.mending(plan);
        let busy = Busy::of(&mending);
        // A wait begins with a loss while none goes on.
        let waits = self
            .loss
            .and(Odds::ALWAYS.plus(self.loss.and(busy.messages())).inverse());
        // A message is read once the wait is over, or once a repetition of each loss up to it has come.
        let by_symbols = Busy::of(&mending.without_repetitions());
        let left = self.left_steps;
        let waiting = |at: usize| match self.goal.order {
            DeliveryOrder::Any if at > left => self.behind.and(mending.not_repeated(left)),
            DeliveryOrder::Any => mending.not_repeated(left),
            // The first loss of the wait has had longest.
            DeliveryOrder::Kept => (left..at)
                .step_by(STEPS)
                .fold(mending.not_repeated(at), |all, had| {
                    all.plus(self.behind.and(mending.not_repeated(had)))
                })
                .min(Odds::ALWAYS),
        };
        let late = (left..HORIZON).step_by(STEPS).fold(Odds::NEVER, |all, at| {
            let unmended = by_symbols.longer_than(at).and(waiting(at));
            all.plus(unmended.min(busy.longer_than(at)))
        });
        let ahead = Odds::of(u64::from(plan.ahead_quarters), STEPS as u64);
        let mut again = Odds::NEVER;
        for (round, times) in plan.times.iter().enumerate() {
            let at = (round + 1) * self.round_steps;
            // It is still waited for when its repetition is due.
            let first = busy
                .longer_than(at.saturating_sub(1))
                .min(mending.reaches(round));
            let later = (at + STEPS..HORIZON).step_by(STEPS);
            let later = later.fold(Odds::NEVER, |all, at| all.plus(busy.longer_than(at - 1)));
            let later = later.and(self.behind).and(mending.reaches(round));
            again = again.plus(first.plus(later).by(u64::from(*times)));
        }
        let missed = if plan.ahead_quarters == 0 {
            // Each loss keeps what is behind it until it is repeated.
            let had = (left..HORIZON)
                .step_by(STEPS)
                .map(|had| mending.not_repeated(had));
            self.loss
                .and(had.fold(Odds::NEVER, Odds::plus))
                .min(Odds::ALWAYS)
        } else {
            waits.and(late)
        };
        Prediction {
            missed,
            cost: Odds::ALWAYS.plus(ahead).plus(waits.and(again)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use crate::wire::TpduSeq;

    const MS: Duration = Duration::from_millis(1);
    const SHAPE: FlowShape = FlowShape {
        gap: Duration::from_millis(20),
        one_way: Duration::from_millis(21),
        round: Duration::from_millis(48),
    };

    /// Loss of one in so many, each by itself.
    fn one_in(every: u32) -> LossPattern {
        let mut pattern = LossPattern::default();
        let mut rng = Rng::from_seed(u64::from(every));
        for n in 0..4_000 {
            let lost = every > 0 && rng.below(u64::from(every)) == 0;
            pattern.note(TpduSeq(n), lost);
        }
        pattern
    }

    fn goal(deadline: Duration, order: DeliveryOrder) -> DeliveryGoal {
        let deliver = match order {
            DeliveryOrder::Kept => Deliver::All,
            DeliveryOrder::Any => Deliver::ByDeadline,
        };
        DeliveryGoal {
            deadline,
            missed_millionths: DeliveryGoal::usual_miss(deliver),
            deliver,
            order,
        }
    }

    fn chosen(
        goal: &DeliveryGoal,
        overhead: u8,
        pattern: &LossPattern,
    ) -> (RepairPlan, Prediction) {
        RepairPlan::choose(goal, overhead, (pattern, &SHAPE), RepairPlan::PLAIN)
    }

    #[test]
    fn a_clean_link_gets_nothing_more() {
        for order in [DeliveryOrder::Kept, DeliveryOrder::Any] {
            let (plan, prediction) = chosen(&goal(40 * MS, order), 100, &one_in(0));
            assert_eq!(plan, RepairPlan::PLAIN);
            assert_eq!(prediction.missed, Odds::NEVER);
            assert_eq!(prediction.cost, Odds::ALWAYS);
        }
    }

    #[test]
    fn a_deadline_far_away_asks_for_repetition_alone_and_a_near_one_for_repair_ahead() {
        let pattern = one_in(5);
        let far = goal(2_000 * MS, DeliveryOrder::Kept);
        assert_eq!(chosen(&far, 100, &pattern).0, RepairPlan::PLAIN);
        let near = goal(60 * MS, DeliveryOrder::Kept);
        let (plan, prediction) = chosen(&near, 200, &pattern);
        assert!(plan.ahead_quarters > 0, "{plan:?}");
        assert!(prediction.missed <= near.missed(), "{prediction:?}");
    }

    #[test]
    fn the_cap_holds_where_the_goal_cannot() {
        let pattern = one_in(3);
        let near = goal(60 * MS, DeliveryOrder::Kept);
        let plain = chosen(&near, 0, &pattern);
        assert_eq!(plain.0, RepairPlan::PLAIN);
        for cap in [20_u8, 50, 100] {
            let (_, prediction) = chosen(&near, cap, &pattern);
            let most = plain.1.cost.plus(Odds::of(u64::from(cap), 100));
            assert!(prediction.cost <= most, "{cap}: {prediction:?}");
            assert!(prediction.missed < plain.1.missed, "{cap}: {prediction:?}");
        }
    }

    #[test]
    fn messages_in_any_order_leave_most_of_their_copies_to_the_last_round() {
        // Two repetitions arrive in 150 ms.
        let by = goal(150 * MS, DeliveryOrder::Any);
        let (plan, prediction) = chosen(&by, 100, &one_in(3));
        assert_eq!(plan.ahead_quarters, 0);
        assert!(plan.times[1] >= plan.times[0] + 2, "{plan:?}");
        assert!(prediction.missed <= by.missed(), "{prediction:?}");
    }

    #[test]
    fn a_plan_that_does_stays() {
        let by = goal(90 * MS, DeliveryOrder::Kept);
        let (pattern, more) = (one_in(4), one_in(4));
        let (plan, _) = chosen(&by, 150, &pattern);
        let (again, _) = RepairPlan::choose(&by, 150, (&more, &SHAPE), plan);
        assert_eq!(again, plan);
    }
}
