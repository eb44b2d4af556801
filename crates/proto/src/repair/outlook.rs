//! The prediction for a plan: the messages that miss the deadline, and the packets it takes.

use super::busy::{Busy, HORIZON, Mending, ROUNDS, STEPS, Together};
use super::plan::{AHEAD_MAX, FlowShape, PUT_OFF_MAX, Prediction, RepairPlan};
use super::{Deliver, DeliveryGoal, DeliveryOrder, LossPattern, Odds};
use crate::units::Duration;

/// The losses that plans are weighed against.
pub(super) struct Outlook {
    goal: DeliveryGoal,
    loss: Odds,
    /// Losses of messages and symbols that leave soon behind a loss.
    behind: Odds,
    /// Losses of repetitions that leave together.
    again: Together,
    /// The same, and the rounds that arrive in time, with repetitions put off by so many messages.
    put_off: [(Together, usize); PUT_OFF_MAX as usize + 1],
    /// The time that a message has between its earliest arrival and its deadline, in steps.
    left_steps: usize,
    round_steps: usize,
    /// The rounds of repetition that arrive in time.
    pub(super) rounds: usize,
    /// The wait that symbols alone end, by their number for eight messages, as far as it was asked for.
    by_symbols: [Option<Box<Busy>>; AHEAD_MAX as usize + 1],
}

/// `span` in steps of `gap`, rounded up or down.
fn steps(span: Duration, gap: Duration) -> (usize, usize) {
    let gap = gap.as_nanos().max(1);
    let quarters = span.as_nanos().saturating_mul(STEPS as u128);
    let whole = |steps: u128| usize::try_from(steps).unwrap_or(HORIZON).min(HORIZON);
    (whole(quarters / gap), whole(quarters.div_ceil(gap)))
}

impl Outlook {
    pub(super) fn of(goal: &DeliveryGoal, pattern: &LossPattern, shape: &FlowShape) -> Self {
        let left = goal.deadline.saturating_sub(shape.one_way);
        let round = shape.round.as_nanos().max(1);
        let gaps = shape.round.as_nanos() / shape.gap.as_nanos().max(1);
        let gaps = u32::try_from(gaps).unwrap_or(u32::MAX).max(1);
        let again = pattern.after_a_loss(gaps);
        let put_off = core::array::from_fn(|messages| {
            let messages = u32::try_from(messages).unwrap_or_default();
            let again = pattern.after_a_loss(gaps.saturating_add(messages));
            let round = (shape.round + shape.gap * messages).as_nanos().max(1);
            let rounds = usize::try_from(left.as_nanos() / round).unwrap_or(usize::MAX);
            (Together::of(again), rounds)
        });
        Self {
            goal: *goal,
            loss: pattern.loss(),
            behind: pattern.behind_a_loss(),
            again: Together::of(again),
            put_off,
            left_steps: steps(left, shape.gap).0,
            round_steps: steps(shape.round, shape.gap).1,
            rounds: usize::try_from(left.as_nanos() / round).unwrap_or(usize::MAX),
            by_symbols: Default::default(),
        }
    }

    /// Whether what follows a loss by any of the times that plans know fares otherwise than other transmissions.
    pub(super) fn is_in_bursts(&self) -> bool {
        let again = |(again, _): &(Together, usize)| again.lost(1);
        self.put_off
            .iter()
            .map(again)
            .any(|again| again != self.loss)
    }

    pub(super) fn predict(&mut self, plan: RepairPlan) -> Prediction {
        if plan.ahead_eighths == 0 && self.goal.order == DeliveryOrder::Any {
            self.predict_alone(plan)
        } else {
            self.predict_together(plan)
        }
    }

    /// Messages that do not wait for each other, without symbols: each has its rounds.
    fn predict_alone(&self, plan: RepairPlan) -> Prediction {
        let by_deadline = self.goal.deliver == Deliver::ByDeadline;
        let (again, rounds) = &self.put_off[usize::from(plan.put_off.min(PUT_OFF_MAX))];
        let (mut open, mut cost) = (self.loss, Odds::ALWAYS);
        let mut missed = open;
        for round in 0..HORIZON {
            let in_time = round < *rounds;
            if open == Odds::NEVER || (by_deadline && !in_time) {
                break;
            }
            let times = plan.times[round.min(ROUNDS - 1)];
            if times == 0 {
                break;
            }
            cost = cost.plus(open.by(u64::from(times)));
            open = open.and(again.lost(times));
            if in_time {
                missed = open;
            }
        }
        Prediction { missed, cost }
    }

    /// Messages in order, or with symbols that mend one with the help of others.
    fn predict_together(&mut self, plan: RepairPlan) -> Prediction {
        let repeated = (plan.times, self.round_steps);
        let mending = Mending::new(plan.ahead_eighths, repeated, (self.behind, &self.again));
        let busy = self.busy(&mending);
        // A wait begins with a loss while none goes on.
        let waits = self
            .loss
            .and(Odds::ALWAYS.plus(self.loss.and(busy.messages())).inverse());
        let mut again = Odds::NEVER;
        for (round, times) in plan.times.iter().enumerate() {
            let at = (round + 1) * self.round_steps;
            // It is still waited for when its repetition is due.
            let first = busy
                .longer_than(at.saturating_sub(1))
                .min(mending.reaches(round));
            let later = busy.messages_from(at + STEPS - 1);
            let later = later.and(self.behind).and(mending.reaches(round));
            again = again.plus(first.plus(later).by(u64::from(*times)));
        }
        let missed = if plan.ahead_eighths == 0 {
            // Each loss keeps what is behind it until it is repeated.
            let had = mending.not_repeated(self.left_steps);
            let messages = HORIZON.saturating_sub(self.left_steps).div_ceil(STEPS);
            let late = had.take(messages).fold(Odds::NEVER, Odds::plus);
            self.loss.and(late)
        } else {
            waits.and(self.late(plan.ahead_eighths, &mending, &busy))
        };
        Prediction {
            missed: missed.min(Odds::ALWAYS),
            cost: plan.least_cost().plus(waits.and(again)),
        }
    }

    /// The wait behind a loss. Where the next message's symbol is too late, all depends on whether the lost one's own has part in
    /// one.
    fn busy(&self, mending: &Mending) -> Busy {
        if self.left_steps < STEPS {
            Busy::from_anywhere(mending)
        } else {
            Busy::of(mending)
        }
    }

    /// The messages of a wait that are late, where symbols go ahead.
    fn late(&mut self, ahead_eighths: u8, mending: &Mending, busy: &Busy) -> Odds {
        let ahead = usize::from(ahead_eighths.min(AHEAD_MAX));
        let behind = self.behind;
        // A message is read once the wait is over, or once a repetition of each loss up to it has come.
        let left = self.left_steps;
        if self.by_symbols[ahead].is_none() {
            let alone = Mending::by_symbols(ahead_eighths, behind);
            self.by_symbols[ahead] = Some(Box::new(self.busy(&alone)));
        }
        let by_symbols = self.by_symbols[ahead].as_ref();
        let by_symbols_longer =
            |at: usize| by_symbols.map_or(Odds::ALWAYS, |by| by.longer_than(at));
        let mut all = Odds::NEVER;
        // The losses of the wait before the message that no repetition has mended.
        let mut before = Odds::NEVER;
        let first_open = mending.not_repeated(left).next().unwrap_or_default();
        for (at, open) in (left..HORIZON)
            .step_by(STEPS)
            .zip(mending.not_repeated(left))
        {
            let longer = busy.longer_than(at);
            if longer == Odds::NEVER {
                break;
            }
            let waiting = match self.goal.order {
                DeliveryOrder::Any if at > left => behind.and(first_open),
                DeliveryOrder::Any => first_open,
                // The first loss of the wait has had longest.
                DeliveryOrder::Kept => open.plus(before).min(Odds::ALWAYS),
            };
            before = before.plus(behind.and(open));
            let unmended = by_symbols_longer(at).and(waiting);
            all = all.plus(unmended.min(longer));
        }
        all
    }
}
