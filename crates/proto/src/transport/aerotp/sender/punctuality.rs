//! The messages of a flow with a goal against its deadline, as their reader sees them.
//!
//! In order a message is read once all before it are there. The goal lets a share of all messages miss the deadline. So where
//! more have missed than may, fewer are to miss from now on: the start of a flow and each change of its link cost messages
//! that no plan foresees.

use crate::repair::{DeliveryGoal, DeliveryOrder};
use crate::units::Instant;
use crate::wire::TpduSeq;
use std::collections::VecDeque;

/// A message, in the unit of shares of messages.
const MESSAGE: i64 = 1_000_000;
/// The messages over which misses are made up for (`docs/models/auto.md`).
const MADE_UP_OVER: i64 = 512;
/// The misses that are owed, at most, beyond the share of so many messages: who could not hold the goal for long is not to pay for it
/// for as long.
const OWED_MAX: i64 = 8 * MESSAGE;
/// The part of the goal's share that is aimed at, at least.
const AIM_PART: i64 = 8;
/// The messages in order that are there before one that is not, at most. Behind more nothing is judged until a new one leaves.
const WAITING_MAX: usize = 4_096;

/// The messages that were read, and those of them that missed the deadline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Judged {
    pub(super) messages: u32,
    pub(super) missed: u32,
}

impl core::ops::AddAssign for Judged {
    fn add_assign(&mut self, more: Self) {
        self.messages = self.messages.saturating_add(more.messages);
        self.missed = self.missed.saturating_add(more.missed);
    }
}

/// The messages of one flow against its deadline.
#[derive(Debug, Default)]
pub(super) struct Punctuality {
    /// The first message that was not read yet.
    unread: Option<TpduSeq>,
    /// From that one on, the times of writing of those that are there.
    there: VecDeque<Option<Instant>>,
    /// Misses that the goal allows beyond those that were, in millionths of a message.
    allowance: i64,
}

impl Punctuality {
    /// Notes that `seq` left for the first time.
    pub(super) fn on_sent(&mut self, seq: TpduSeq) {
        self.unread.get_or_insert(seq);
    }

    /// Notes that `seq`, which was written then, was there at `at`. Returns the messages that were read by that.
    pub(super) fn on_there(
        &mut self,
        goal: &DeliveryGoal,
        at: Instant,
        (seq, written_at): (TpduSeq, Instant),
    ) -> Judged {
        let mut judged = Judged::default();
        let mut read = |written_at: Instant| {
            judged.messages += 1;
            judged.missed += u32::from(at > written_at + goal.deadline);
        };
        match goal.order {
            DeliveryOrder::Any => read(written_at),
            DeliveryOrder::Kept => self.read_in_order((seq, written_at), read),
        }
        self.count(goal, judged);
        judged
    }

    /// Calls `read` for each message that is read now that `seq` is there.
    fn read_in_order(
        &mut self,
        (seq, written_at): (TpduSeq, Instant),
        mut read: impl FnMut(Instant),
    ) {
        let Some(unread) = self.unread.filter(|unread| !seq.before(*unread)) else {
            return;
        };
        let place = usize::try_from(seq.offset_from(unread)).unwrap_or(usize::MAX);
        if place >= WAITING_MAX {
            self.forget_order();
            return;
        }
        if self.there.len() <= place {
            self.there.resize(place + 1, None);
        }
        self.there[place] = Some(written_at);
        while let Some(Some(written_at)) = self.there.front().copied() {
            self.there.pop_front();
            self.unread = self.unread.map(|unread| unread.plus(1));
            read(written_at);
        }
    }

    fn forget_order(&mut self) {
        self.unread = None;
        self.there.clear();
    }

    /// Notes a message that was too late before it left.
    pub(super) fn on_dropped(&mut self, goal: &DeliveryGoal) -> Judged {
        let dropped = Judged {
            messages: 1,
            missed: 1,
        };
        self.count(goal, dropped);
        dropped
    }

    fn count(&mut self, goal: &DeliveryGoal, judged: Judged) {
        let may = i64::from(goal.missed_millionths);
        let most = may * MADE_UP_OVER;
        let more = may * i64::from(judged.messages) - MESSAGE * i64::from(judged.missed);
        self.allowance = (self.allowance + more).clamp(-most - OWED_MAX, most);
    }

    /// Begins again for another goal.
    pub(super) const fn begin_again(&mut self) {
        self.allowance = 0;
    }

    /// The goal by which the next plan is chosen: with the share that may miss from now on.
    pub(super) fn aim(&self, goal: &DeliveryGoal) -> DeliveryGoal {
        let may = i64::from(goal.missed_millionths);
        let aim = (may + self.allowance / MADE_UP_OVER).clamp(may / AIM_PART, may);
        DeliveryGoal {
            missed_millionths: u32::try_from(aim).unwrap_or_default(),
            ..*goal
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repair::Deliver;
    use crate::units::Duration;

    const fn goal(order: DeliveryOrder) -> DeliveryGoal {
        DeliveryGoal {
            deadline: Duration::from_millis(50),
            missed_millionths: 10_000,
            deliver: Deliver::All,
            order,
        }
    }

    const fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    /// A message every 10 ms from 0 on. The first one is there at 55 ms, the others 20 ms after they were written.
    fn first_is_late(order: DeliveryOrder) -> Judged {
        let mut punctuality = Punctuality::default();
        (0..5).for_each(|n| punctuality.on_sent(TpduSeq(n)));
        let mut all = Judged::default();
        for (n, there) in [(1, 30), (2, 40), (3, 50), (0, 65), (4, 65)] {
            let message = (TpduSeq(n), at(u64::from(n) * 10));
            let judged = punctuality.on_there(&goal(order), at(there), message);
            all.messages += judged.messages;
            all.missed += judged.missed;
        }
        all
    }

    #[test]
    fn in_order_those_behind_a_late_message_are_late_with_it() {
        let judged = |messages, missed| Judged { messages, missed };
        assert_eq!(first_is_late(DeliveryOrder::Any), judged(5, 1));
        // The second one was written 55 ms before.
        assert_eq!(first_is_late(DeliveryOrder::Kept), judged(5, 2));
    }

    #[test]
    fn misses_are_made_up_for_and_those_that_were_saved_count_against_them() {
        let goal = goal(DeliveryOrder::Any);
        let mut punctuality = Punctuality::default();
        let mut sent = 0;
        let mut see = |punctuality: &mut Punctuality, count: u32, there: u64| {
            for _ in 0..count {
                sent += 1;
                let message = (TpduSeq(sent), at(0));
                punctuality.on_there(&goal, at(there), message);
            }
            punctuality.aim(&goal).missed_millionths
        };
        assert_eq!(see(&mut punctuality, 0, 50), 10_000);
        let after_one = see(&mut punctuality, 1, 51);
        assert!((7_500..8_500).contains(&after_one), "{after_one}");
        assert_eq!(see(&mut punctuality, 100, 51), 1_250);
        // What is owed is bounded, so it is forgotten after some fifteen hundred messages.
        assert_eq!(see(&mut punctuality, 1_500, 50), 10_000);
        // None has missed since then: five may before anything is owed.
        see(&mut punctuality, 600, 50);
        assert_eq!(see(&mut punctuality, 5, 51), 10_000);
        assert!(see(&mut punctuality, 5, 51) < 10_000);
        punctuality.begin_again();
        assert_eq!(see(&mut punctuality, 0, 50), 10_000);
        punctuality.on_dropped(&goal);
        assert!(see(&mut punctuality, 0, 50) < 10_000);
    }

    #[test]
    fn a_message_that_never_comes_holds_a_bounded_number_of_others() {
        let goal = goal(DeliveryOrder::Kept);
        let mut punctuality = Punctuality::default();
        punctuality.on_sent(TpduSeq(0));
        let most = u32::try_from(WAITING_MAX).expect("few");
        for n in 1..=most {
            let judged = punctuality.on_there(&goal, at(1), (TpduSeq(n), at(0)));
            assert_eq!(judged, Judged::default());
        }
        assert!(punctuality.there.is_empty() && punctuality.unread.is_none());
        punctuality.on_sent(TpduSeq(most + 1));
        let judged = punctuality.on_there(&goal, at(1), (TpduSeq(most + 1), at(0)));
        assert_eq!(judged.messages, 1);
    }
}
