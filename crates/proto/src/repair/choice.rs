//! The choice of a plan.

use super::outlook::Outlook;
use super::plan::{FlowShape, PUT_OFF_MAX, Prediction, RepairPlan};
use super::{DeliveryGoal, DeliveryOrder, LossPattern, Odds};

/// The part of its cost by which another plan must be cheaper before a good one is left.
const WORTH_CHANGING: u64 = 32;
/// The packets that are worth it to save one message from missing, beyond those that may. The score of `fulmar sim
/// --auto-vs-fixed` has the same worth.
const MISS_WORTH: u64 = 50;
/// The millionths of a packet for each message that missing twice the allowed share costs at least: a goal that lets few miss is
/// meant so.
const SHARE_WORTH: u64 = 500_000;
/// The part of the residual within which a plan stays although it no longer quite holds the goal.
const TOLERATED: u64 = 8;

impl RepairPlan {
    /// The plan that costs least, a miss beyond the goal counted in packets; in any order the cheapest one that holds the goal, if one
    /// does. None costs more than repetition alone by more than `overhead_percent` of the data, or than the data alone where
    /// messages are given up. `now` is the plan in use: it stays unless another is worth it.
    pub fn choose(
        goal: &DeliveryGoal,
        overhead_percent: u8,
        (pattern, shape): (&LossPattern, &FlowShape),
        now: Self,
    ) -> (Self, Prediction) {
        if pattern.loss() == Odds::NEVER {
            return (Self::PLAIN, Prediction::NOTHING_LOST);
        }
        let mut outlook = Outlook::of(goal, pattern, shape);
        let plain = outlook.predict(Self::PLAIN);
        let least = if goal.takes_back() {
            Odds::ALWAYS
        } else {
            plain.cost
        };
        let most = least.plus(Odds::of(u64::from(overhead_percent), 100));
        let wanted = goal.missed();
        let current = outlook.predict(now);
        let miss_worth = MISS_WORTH.max(SHARE_WORTH / u64::from(goal.missed_millionths.max(1)));
        // In order a plan that nearly holds the goal may cost much less. What comes by itself is held to it.
        let holds_first = goal.order == DeliveryOrder::Any;
        let rank = |prediction: &Prediction| {
            let beyond = prediction.missed.less(wanted);
            let fails = holds_first && beyond != Odds::NEVER;
            (fails, beyond.by(miss_worth).plus(prediction.cost))
        };
        // Symbols are of use where messages wait for each other, or where no repetition comes in time.
        let is_alone = goal.order == DeliveryOrder::Any && outlook.rounds > 0;
        // Nothing is gained by waiting where losses come alone.
        let put_off_max = if outlook.is_in_bursts() {
            PUT_OFF_MAX
        } else {
            0
        };
        let alone = (0..=put_off_max)
            .flat_map(|messages| {
                Self::alone(goal.takes_back()).map(move |plan| plan.after(messages))
            })
            .filter(|_| is_alone);
        let together = Self::together().filter(|_| !is_alone);
        let mut best: Option<(Self, Prediction)> = None;
        for plan in alone.chain(together) {
            // What cannot cost less need not be predicted.
            let least = plan.least_cost();
            if least > most || best.is_some_and(|(_, best)| (false, least) >= rank(&best)) {
                continue;
            }
            let prediction = outlook.predict(plan);
            let is_better = best.is_none_or(|(_, best)| rank(&prediction) < rank(&best));
            if prediction.cost <= most && is_better {
                best = Some((plan, prediction));
            }
        }
        // What comes in no time may be left alone, if nobody waits for it.
        let dear = goal.takes_back() && plain.cost > most;
        let last = if dear { Self::NOTHING } else { Self::PLAIN };
        let best = best.unwrap_or_else(|| (last, outlook.predict(last)));
        let tolerated = wanted.plus(wanted.part(TOLERATED));
        let fails = holds_first && current.missed > tolerated;
        let (in_use, new) = if holds_first {
            (current.cost, best.1.cost)
        } else {
            (rank(&current).1, rank(&best.1).1)
        };
        let saved = in_use.less(new);
        if !fails && current.cost <= most && saved <= in_use.part(WORTH_CHANGING) {
            (now, current)
        } else {
            best
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repair::Deliver;
    use crate::rng::Rng;
    use crate::units::Duration;
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
        assert!(plan.ahead_eighths > 0, "{plan:?}");
        assert!(prediction.missed <= near.missed(), "{prediction:?}");
    }

    #[test]
    fn some_symbols_are_of_use_where_the_next_message_would_be_too_late() {
        let shape = FlowShape {
            gap: 80 * MS,
            one_way: 40 * MS,
            round: 88 * MS,
        };
        let near = goal(62 * MS, DeliveryOrder::Kept);
        let pattern = one_in(12);
        let (plan, prediction) =
            RepairPlan::choose(&near, 90, (&pattern, &shape), RepairPlan::PLAIN);
        assert_eq!(plan.ahead_eighths, 6, "{prediction:?}");
        assert!(prediction.missed < pattern.loss().part(2), "{prediction:?}");
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
        assert_eq!(plan.ahead_eighths, 0);
        assert!(plan.times[1] >= plan.times[0] + 2, "{plan:?}");
        assert!(prediction.missed <= by.missed(), "{prediction:?}");
    }

    #[test]
    fn where_half_is_lost_each_loss_is_predicted_to_take_its_three_rounds() {
        // Most of the 64 messages that are followed wait. The rounds told apart take 1/2 + 1/4 + 1/8.
        let shape = FlowShape {
            gap: MS,
            one_way: 32 * MS,
            round: 4 * MS,
        };
        let pattern = one_in(2);
        let lost = pattern.loss().millionths() as f64 / 1e6;
        let far = goal(10_000 * MS, DeliveryOrder::Kept);
        let (plan, prediction) = RepairPlan::choose(&far, 0, (&pattern, &shape), RepairPlan::PLAIN);
        assert_eq!(plan, RepairPlan::PLAIN);
        let cost = prediction.cost.millionths() as f64 / 1e6;
        let expected = 1.0 + lost + lost.powi(2) + lost.powi(3);
        assert!(
            (cost - expected).abs() < 0.1 * expected,
            "{cost}, {expected}"
        );
        let near = goal(33 * MS, DeliveryOrder::Kept);
        for (_, prediction) in [chosen(&near, 0, &pattern), chosen(&near, 90, &pattern)] {
            assert!(prediction.missed <= Odds::ALWAYS, "{prediction:?}");
        }
    }

    /// Loss of 25 and 75 % in turn, five messages each.
    fn in_turn() -> LossPattern {
        let mut pattern = LossPattern::default();
        let mut rng = Rng::from_seed(77);
        for n in 0..4_000 {
            let loss = if n / 5 % 2 == 0 { 0.25 } else { 0.75 };
            pattern.note(TpduSeq(n), rng.chance(loss));
        }
        pattern
    }

    #[test]
    fn repetitions_are_put_off_where_bursts_end_by_then_and_there_is_time() {
        let by = goal(300 * MS, DeliveryOrder::Any);
        let (plan, prediction) = chosen(&by, 90, &in_turn());
        assert!(plan.put_off > 0, "{plan:?}");
        let (_, even) = chosen(&by, 90, &one_in(2));
        assert!(prediction.missed < even.missed, "{prediction:?} {even:?}");
        // Losses that come alone are repeated at once.
        for every in [2, 3, 10] {
            assert_eq!(chosen(&by, 90, &one_in(every)).0.put_off, 0);
        }
    }

    #[test]
    fn no_plan_for_messages_that_are_given_up_costs_more_than_the_cap() {
        for every in [2, 3, 10] {
            let pattern = one_in(every);
            // No repetition comes in 30 ms.
            for deadline in [30, 60, 80, 150, 300] {
                for cap in [0_u8, 20, 60, 90] {
                    let by = goal(MS * deadline, DeliveryOrder::Any);
                    let (plan, prediction) = chosen(&by, cap, &pattern);
                    let most = Odds::ALWAYS.plus(Odds::of(u64::from(cap), 100));
                    assert!(prediction.cost <= most, "{plan:?} {prediction:?}");
                }
            }
        }
    }

    /// All plans of messages in order whose cost is within the cap, with the chosen one first.
    fn in_order_within(
        by: &DeliveryGoal,
        cap: u8,
        pattern: &LossPattern,
    ) -> (Prediction, Vec<Prediction>) {
        let mut outlook = Outlook::of(by, pattern, &SHAPE);
        let most = outlook.predict(RepairPlan::PLAIN).cost;
        let most = most.plus(Odds::of(u64::from(cap), 100));
        let all = RepairPlan::together().map(|plan| outlook.predict(plan));
        let all = all.filter(|plan| plan.cost <= most).collect();
        (chosen(by, cap, pattern).1, all)
    }

    #[test]
    fn in_order_a_miss_is_saved_where_that_takes_few_packets_and_not_where_it_takes_many() {
        let packets = |odds: Odds| odds.millionths() as f64 / 1e6;
        let (mut saved_cheaply, mut left, mut nearly) = (0, 0, 0);
        for (every, deadline) in [3, 5, 8, 12, 20]
            .into_iter()
            .flat_map(|every| [45, 60, 75, 90, 120].map(|deadline| (every, deadline)))
        {
            let by = DeliveryGoal {
                missed_millionths: 40_000,
                ..goal(MS * deadline, DeliveryOrder::Kept)
            };
            let (taken, all) = in_order_within(&by, 100, &one_in(every));
            let plain = Outlook::of(&by, &one_in(every), &SHAPE).predict(RepairPlan::PLAIN);
            let is_held = |plan: &Prediction| plan.missed <= by.missed();
            nearly += u32::from(!is_held(&taken) && all.iter().any(is_held));
            // Repetition alone is in use, and stays for a little.
            if taken.cost == plain.cost {
                continue;
            }
            let beyond = |plan: &Prediction| packets(plan.missed.less(by.missed()));
            for other in &all {
                let fewer = beyond(&taken) - beyond(other);
                let dearer = packets(other.cost) - packets(taken.cost);
                // Shares are predicted to a millionth or so.
                if fewer > 1e-4 {
                    left += 1;
                    assert!(dearer > 25.0 * fewer, "{every} {deadline}: {other:?}");
                } else if fewer < -1e-4 {
                    saved_cheaply += 1;
                    assert!(dearer > 100.0 * fewer, "{every} {deadline}: {other:?}");
                }
            }
        }
        assert!(
            saved_cheaply > 0 && left > 0 && nearly > 0,
            "{saved_cheaply} {left} {nearly}"
        );
    }

    #[test]
    fn twice_the_share_that_may_miss_is_worth_half_a_packet() {
        let mut missed_twice = 0;
        for (every, deadline) in [3, 5, 8, 12, 20]
            .into_iter()
            .flat_map(|every| [60, 90, 120, 160, 200].map(|deadline| (every, deadline)))
        {
            let by = DeliveryGoal {
                missed_millionths: 500,
                ..goal(MS * deadline, DeliveryOrder::Kept)
            };
            let (taken, all) = in_order_within(&by, 150, &one_in(every));
            if taken.missed > by.missed().by(2) {
                missed_twice += 1;
                let most = taken.cost.part(WORTH_CHANGING);
                let near = taken.cost.plus(Odds::of(1, 2)).less(most);
                let held = |plan: &Prediction| plan.missed <= by.missed() && plan.cost < near;
                assert!(!all.iter().any(held), "{every} {deadline}: {taken:?}");
            }
        }
        assert!(missed_twice > 0, "some deadlines are too short");
    }

    #[test]
    fn a_plan_that_does_stays() {
        let by = goal(90 * MS, DeliveryOrder::Kept);
        let (pattern, more) = (one_in(4), one_in(4));
        let (plan, _) = chosen(&by, 150, &pattern);
        let (again, _) = RepairPlan::choose(&by, 150, (&more, &SHAPE), plan);
        assert_eq!(again, plan);
        // The estimate wanders around one in four. Who looks at the plan in use changes it less often.
        let mut pattern = one_in(4);
        let mut rng = Rng::from_seed(5);
        let (mut in_use, mut fresh) = (plan, plan);
        let mut changes = [0, 0];
        for n in 4_000..8_000 {
            pattern.note(TpduSeq(n), rng.chance(0.25));
            if n % 25 == 0 {
                let chosen_now = |from| RepairPlan::choose(&by, 150, (&pattern, &SHAPE), from).0;
                let (kept, anew) = (chosen_now(in_use), chosen_now(RepairPlan::PLAIN));
                changes[0] += u32::from(kept != in_use);
                changes[1] += u32::from(anew != fresh);
                (in_use, fresh) = (kept, anew);
            }
        }
        assert!(changes[0] * 3 < changes[1] * 2, "{changes:?}");
    }
}
