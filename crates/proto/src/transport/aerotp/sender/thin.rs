//! Thin flows: what was written has left, so nothing later shows a loss, and the rate allows more.
//!
//! # Late answers
//! A TPDU without an answer after a round trip, the receiver's longest wait and some slack is repeated, whether or not
//! anything later arrived, and so is its repetition. A repetition that turns out needless widens the slack: the answer
//! was slower than thought, or was lost. A rightful one narrows it again. Which of the two it was is known by the
//! transmission that the answer echoes: one that knows of nothing that left since does not answer the repetition.
//!
//! # Copies of repetitions
//! Sending everything twice costs a packet for each message. Sending repetitions twice costs one for each *lost* message, and halves
//! nothing but the long waits, which are those that matter (`docs/adr/0034-repair-of-thin-flows.md`). The number is the least
//! that leaves less than [`SLOW_MAX`] of the messages behind a second wait, predicted from the loss seen; the
//! overhead that is allowed bounds it. In bulk only what was lost more than once has a copy, where that is rare.
//!
//! # Goals
//! A flow with a deadline has a [`RepairPlan`] instead: symbols ahead of any loss, and copies of repetitions by round
//! (`docs/adr/0035-repair-to-order.md`). Each is bounded by the same overhead.

mod sending;

use super::super::thin_repair::ThinRepair;
use super::super::window_repair::WindowSymbols;
use super::path_taken::PathTaken;
use crate::fec::window::LENGTH_PREFIX;
use crate::repair::{DeliveryGoal, FlowShape, LossPattern, Odds, Prediction, RepairPlan};
use crate::trace::RepairDecision;
use crate::transport::parts::{FirstFate, LateRepetition, RttEstimator, Settled};
use crate::units::{Duration, Instant};
use crate::wire::aerotp::short::{NAMED_BYTES, Named, WINDOW_BYTES};

/// The share of messages, of 2^16, that may wait for a second repetition: one in a hundred.
const SLOW_MAX: u32 = (1 << 16) / 100;
/// The times that a repetition leaves, at most.
const COPIES_MAX: u32 = 4;
/// The messages that one loss may keep waiting, at most, as far as copies are concerned.
const BLOCKED_MAX: u32 = 64;
/// The TPDUs in flight above which a flow without a goal is bulk. Below, what copies of repetitions send more is no matter to a link
/// that carries more flows than this one.
pub(super) const IN_FLIGHT_MAX: usize = 32;
/// The share of the TPDUs of bulk whose repetitions have copies, at most. They were lost more than once, and the window waits for them
/// (`docs/models/found-rate.md`, section 7).
const RARE: Odds = Odds::of(1, 200);
/// The octets of copies that may be saved up.
const CREDIT_MAX: u64 = 16 * 1_500;
/// The part of a round trip by which an answer may be late in any case, and by which slack grows.
const SLACK_PART: u32 = 32;
/// The most slack.
const SLACK_MAX: Duration = Duration::from_secs(2);
/// The part of the slack that a rightful repetition takes back, and by which it grows at least.
const SLACK_NARROWS: u32 = 8;
/// The octets of a symbol's frame beyond those of the longest data that it spans.
const SYMBOL_MORE: usize = WINDOW_BYTES + LENGTH_PREFIX - NAMED_BYTES;
/// The times that a repetition leaves, by its round, over several paths: one of them may be down, which takes as long to notice.
/// Few messages need a later round, so that many copies of it cost little.
const SPREAD_TIMES: [u8; 2] = [2, 6];
/// The times that a later repetition leaves on the last of several paths that is up: there is no other way.
const LAST_PATH_TIMES: u8 = 4;
/// The times that a repetition leaves if the path that lost it may be down: then everything since is lost, too, and there is hardly
/// time for another round.
const DOUBTED_TIMES: u8 = 3;
/// Where the peer has several paths, the part of the misses that a goal allows for which repair is planned: the others are for
/// paths that die, of which the loss seen says nothing.
const PLANNED_MISSES: u32 = 2;
/// The weight of the past in the mean time between two TPDUs.
const GAP_MEMORY: u32 = 8;
/// The least time between two changes of plan that are told.
const TOLD_EVERY: Duration = Duration::from_secs(1);
/// The time between two choices of a plan.
const PLAN_EVERY: Duration = Duration::from_millis(500);
/// The time by which the answer to a symbol comes later than that to the message before it: its transmission, and the
/// least time between two answers.
const SYMBOL_WAIT: Duration = Duration::from_millis(4);
/// A loss of which little is to be learned sooner, of 2^16: one in 256; and the fates from which it is known.
const HARDLY_ANY: u32 = 1 << 8;
const FATES_TO_TRUST: u32 = 64;
/// The unconfirmed TPDUs that a symbol ahead spans, at most.
const AHEAD_SPAN: u32 = 16;

/// The repair of one flow's data while nothing waits to be sent.
#[derive(Debug)]
pub(super) struct Thin {
    allowed: ThinRepair,
    /// Loss of first transmissions.
    pattern: LossPattern,
    /// Hundredths of octets that copies may have.
    credit: u64,
    slack: Duration,
    gap: Option<Duration>,
    /// The mean time from writing to the first transmission.
    waited: Duration,
    last_at: Option<Instant>,
    /// Repair symbols, if the peer takes them, and how many of them are due.
    symbols: Option<(Named, WindowSymbols)>,
    symbols_due: u8,
    /// The plan for the goal, if there is one, with its prediction and the time of its choice.
    plan: RepairPlan,
    chosen: Option<(Prediction, Instant)>,
    /// The last plan that was told, and the time; the change that is to be told.
    told: Option<(RepairPlan, Instant)>,
    news: Option<RepairDecision>,
    /// Messages since then, and those of them that took too long.
    since: (u32, u32),
    /// Symbols ahead that the plan has earned, in eighths, and those that are due.
    ahead_eighths: u8,
    ahead_due: u8,
    /// Whether the peer has several paths, whether repetitions leave on several, and whether what is repeated next left before on
    /// one that may be down.
    is_one_of_several: bool,
    is_spread: bool,
    repeats_doubted: bool,
}

impl Thin {
    pub(super) fn new(allowed: ThinRepair) -> Self {
        Self {
            allowed,
            pattern: LossPattern::default(),
            credit: 0,
            slack: Duration::ZERO,
            gap: None,
            waited: Duration::ZERO,
            last_at: None,
            symbols: None,
            symbols_due: 0,
            plan: RepairPlan::PLAIN,
            chosen: None,
            told: None,
            news: None,
            since: (0, 0),
            ahead_eighths: 0,
            ahead_due: 0,
            is_one_of_several: false,
            is_spread: false,
            repeats_doubted: false,
        }
    }

    /// The repair that is allowed.
    pub(super) const fn allowed(&self) -> ThinRepair {
        self.allowed
    }

    /// Follows another goal from now on, or another bound of the overhead.
    pub(super) fn allow(&mut self, allowed: ThinRepair) {
        if self.allowed != allowed {
            self.allowed = allowed;
            self.chosen = None;
        }
    }

    /// Chooses the plan anew, if it is time.
    fn replan(&mut self, now: Instant, rtt: &RttEstimator, answered_after: Duration) {
        let Some(goal) = self.allowed.goal() else {
            return;
        };
        if let Some(fixed) = self.allowed.plan() {
            self.plan = fixed;
            return;
        }
        let recent = |(_, at): (Prediction, Instant)| now.saturating_since(at) < PLAN_EVERY;
        let Some(shape) = self.shape(rtt, answered_after) else {
            return;
        };
        if self.chosen.is_some_and(recent) {
            return;
        }
        let seen = (&self.pattern, &shape);
        let overhead = self.allowed.overhead_percent;
        let mut planned = goal;
        if self.is_one_of_several {
            planned.missed_millionths /= PLANNED_MISSES;
        }
        let (plan, prediction) = RepairPlan::choose(&planned, overhead, seen, self.plan);
        self.plan = plan;
        self.chosen = Some((prediction, now));
        self.tell(now, &goal, prediction);
    }

    /// The flow's shape, once a round trip and the time between two messages are known.
    fn shape(&self, rtt: &RttEstimator, answered_after: Duration) -> Option<FlowShape> {
        Some(FlowShape {
            gap: self.gap?,
            one_way: rtt.smoothed()? / 2 + self.waited,
            round: answered_after,
        })
    }

    /// Tells of another plan than the last one told, as often as a person can read it.
    fn tell(&mut self, now: Instant, goal: &DeliveryGoal, prediction: Prediction) {
        let (before, at) = self.told.unwrap_or((RepairPlan::PLAIN, Instant::START));
        let recent = self.told.is_some() && now.saturating_since(at) < TOLD_EVERY;
        if self.plan == before || recent {
            return;
        }
        let millionths = |odds: Odds| u32::try_from(odds.millionths()).unwrap_or(u32::MAX);
        let (messages, missed) = core::mem::take(&mut self.since);
        self.told = Some((self.plan, now));
        self.news = Some(RepairDecision {
            loss: millionths(self.pattern.loss()),
            loss_error: millionths(self.pattern.error()),
            behind_a_loss: millionths(self.pattern.behind_a_loss()),
            may_miss: goal.missed_millionths,
            deadline: goal.deadline,
            will_miss: millionths(prediction.missed),
            packets: millionths(prediction.cost),
            missed,
            messages,
            ahead_eighths: self.plan.ahead_eighths,
            times: self.plan.times,
            put_off: self.put_off(),
        });
    }

    /// Notes the path on which what follows leaves.
    pub(super) const fn spread(&mut self, path: &PathTaken) {
        self.is_one_of_several = path.is_one_of_several;
        self.is_spread = path.has_other;
        self.repeats_doubted = path.repeats_doubted;
    }

    /// The times that a repetition of this round leaves by the plan for the goal, and over several paths at least.
    fn times_in(&self, round: u32) -> u8 {
        let times = self.plan.times_in(round);
        if times == 0 {
            return times;
        }
        if self.repeats_doubted {
            return times.max(DOUBTED_TIMES);
        }
        let [first, later] = match (self.is_spread, self.is_one_of_several) {
            (true, _) => SPREAD_TIMES,
            (false, true) => [1, LAST_PATH_TIMES],
            (false, false) => return times,
        };
        times.max(if round > 1 { later } else { first })
    }

    /// Takes the change of plan that is to be told.
    const fn take_news(&mut self) -> Option<RepairDecision> {
        self.news.take()
    }

    /// Counts a message against the goal: it was there half a round trip before that was known.
    fn judge(&mut self, settled: Settled, rtt: Option<Duration>) {
        if let Some(goal) = self.allowed.goal() {
            let way_back = rtt.unwrap_or_default() / 2;
            let is_late = settled.age.saturating_sub(way_back) > goal.deadline;
            self.since.0 = self.since.0.saturating_add(1);
            self.since.1 = self.since.1.saturating_add(u32::from(is_late));
        }
    }

    /// Counts a message that was too late before it left.
    pub(super) const fn on_dropped(&mut self) {
        self.since.0 = self.since.0.saturating_add(1);
        self.since.1 = self.since.1.saturating_add(1);
    }

    /// Takes up to `wanted` transmissions of `len` octets out of what copies may have.
    pub(super) fn pay(&mut self, wanted: u32, len: usize) -> u32 {
        let cost = len.max(1) as u64 * 100;
        let affordable = u32::try_from(self.credit / cost).unwrap_or(u32::MAX);
        let paid = wanted.min(affordable);
        self.credit -= u64::from(paid) * cost;
        paid
    }

    /// Notes that a repetition of `len` octets left. Where late messages are given up the overhead counts from the data alone, so
    /// repetitions are paid for like their copies, as far as there is anything to pay with.
    fn on_repeated(&mut self, len: usize) {
        if self.allowed.goal().is_some_and(|goal| goal.takes_back()) {
            self.credit = self.credit.saturating_sub(len as u64 * 100);
        }
    }

    /// The symbols that go ahead behind a message of `len` octets. They are paid for.
    fn ahead(&mut self, len: usize) -> u8 {
        let eighths = self.ahead_eighths.saturating_add(self.plan.ahead_eighths);
        self.ahead_eighths = eighths % RepairPlan::AHEAD_UNIT;
        let paid = self.pay(u32::from(eighths / RepairPlan::AHEAD_UNIT), len);
        u8::try_from(paid).unwrap_or_default()
    }

    /// Notes that `len` octets left first, and the time that they had waited, if it counts.
    pub(super) fn on_first_sent(&mut self, now: Instant, (len, waited): (usize, Option<Duration>)) {
        if let Some(waited) = waited {
            self.waited = (self.waited * (GAP_MEMORY - 1) + waited) / GAP_MEMORY;
        }
        let earned = len as u64 * u64::from(self.allowed.overhead_percent);
        self.credit = (self.credit + earned).min(CREDIT_MAX * 100);
        if let Some(last_at) = self.last_at.replace(now) {
            let gap = now.saturating_since(last_at);
            let past = self.gap.map(|past| past * (GAP_MEMORY - 1) + gap);
            self.gap = Some(past.map_or(gap, |sum| sum / GAP_MEMORY));
        }
    }

    /// Notes that a TPDU arrived. Until then nobody knows whether it was lost or its answer was.
    pub(super) fn on_settled(&mut self, settled: Settled, rtt: Option<Duration>) {
        match settled.late {
            LateRepetition::Needlessly => {
                // An answer that waits in a queue may be many round trips late.
                let more = rtt.unwrap_or_default() / SLACK_PART;
                let more = more.max(self.slack / SLACK_NARROWS);
                self.slack = (self.slack + more).min(SLACK_MAX);
            }
            LateRepetition::Rightly => self.slack -= self.slack / SLACK_NARROWS,
            LateRepetition::Never | LateRepetition::Unclear => {}
        }
        self.judge(settled, rtt);
        match settled.first {
            FirstFate::Arrived => self.pattern.note(settled.seq, false),
            FirstFate::Lost => self.pattern.note(settled.seq, true),
            FirstFate::Unknown => {}
        }
    }

    /// Whether answers that wait for more, for `flush` at most, do as well as one to each TPDU: hardly anything is lost, and
    /// more follows meanwhile.
    fn is_answered_anyway(&self, flush: Duration) -> bool {
        let loss = self.pattern.share();
        let is_known = loss.weight() >= FATES_TO_TRUST && loss.of_65536() <= HARDLY_ANY;
        is_known && self.gap.is_some_and(|gap| gap < flush)
    }

    /// The time by which answers are later than the round trip tells.
    pub(super) const fn slack(&self) -> Duration {
        self.slack
    }

    /// The time by which the plan puts each repetition off.
    fn put_off(&self) -> Duration {
        let planned = self.allowed.goal().is_some();
        let messages = if planned { self.plan.put_off } else { 0 };
        self.gap.unwrap_or_default() * u32::from(messages)
    }

    /// The time without an answer after which a TPDU is repeated, once there was an answer to anything.
    fn patience(&self, rtt: &RttEstimator) -> Option<Duration> {
        let smoothed = rtt.smoothed()?;
        let least = smoothed / SLACK_PART;
        Some(smoothed + (rtt.variation() * 4).max(least) + self.slack)
    }

    /// The messages that wait for one that is repeated after `patience`, itself included, in a flow in order.
    fn blocked(&self, patience: Duration) -> u32 {
        let gap = self.gap.unwrap_or_default().as_nanos().max(1);
        let behind = patience.as_nanos() / gap;
        u32::try_from(behind)
            .unwrap_or(BLOCKED_MAX)
            .min(BLOCKED_MAX - 1)
            + 1
    }

    /// The copies that follow a repetition of `len` octets, the `attempts`-th transmission. They are paid for.
    fn copies(&mut self, attempts: u16, len: usize, patience: Duration) -> u8 {
        let round = u32::from(attempts.saturating_sub(1));
        let copies = match self.allowed.goal() {
            Some(_) => u32::from(self.times_in(round)).saturating_sub(1),
            None => self.copies_unplanned(attempts, patience),
        };
        u8::try_from(self.pay(copies, len)).unwrap_or_default()
    }

    /// The copies that follow a repetition of `len` octets in bulk, which was held lost `losses` times. They are paid for.
    fn copies_of_bulk(&mut self, losses: u16, len: usize) -> u8 {
        let is_rare = losses > 1 && self.pattern.loss().power(u32::from(losses)) < RARE;
        u8::try_from(self.pay(u32::from(is_rare), len)).unwrap_or_default()
    }

    /// Whether the plan sends nothing more after so many attempts.
    pub(super) fn gives_up_after(&self, attempts: u16) -> bool {
        self.allowed.goal().is_some() && self.plan.times_in(u32::from(attempts)) == 0
    }

    /// The copies without a goal.
    fn copies_unplanned(&self, attempts: u16, patience: Duration) -> u32 {
        let loss = self.pattern.share();
        // All of a repetition and the transmission before it are lost so often:
        let together = loss.enough(SLOW_MAX / self.blocked(patience), COPIES_MAX + 1);
        let wanted = together.saturating_sub(1).max(1);
        // What each loss may cost follows from how many there are: a few copies for each do more than many for some.
        let each = u32::from(self.allowed.overhead_percent) / loss.percent().max(1);
        if attempts == 2 {
            (wanted - 1).min(each)
        } else if self.allowed.overhead_percent > 0 {
            // Who waits for the third time has waited longest.
            wanted.min(COPIES_MAX - 1).min(each + 1)
        } else {
            0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::TpduSeq;

    #[test]
    fn of_bulk_only_what_is_rarely_lost_so_often_has_a_copy_and_none_where_nothing_may_go_beyond_repetition()
     {
        let copies = |percent: u32, losses: u16, overhead_percent: u8| {
            let mut thin = Thin::new(ThinRepair::at_most(overhead_percent));
            for seq in 0..2_000 {
                thin.pattern.note(TpduSeq(seq), seq % (100 / percent) == 0);
                thin.on_first_sent(Instant::START, (1_200, None));
            }
            thin.copies_of_bulk(losses, 1_200)
        };
        // The third transmission of one in 400, and the fourth of one in a thousand.
        assert_eq!([1, 2, 3].map(|losses| copies(5, losses, 100)), [0, 1, 1]);
        assert_eq!([1, 2, 3].map(|losses| copies(10, losses, 100)), [0, 0, 1]);
        assert_eq!(copies(5, 2, 0), 0);
    }

    #[test]
    fn three_eighths_of_a_symbol_are_three_symbols_for_eight_messages() {
        let mut thin = Thin::new(ThinRepair::at_most(100));
        thin.plan.ahead_eighths = 3;
        let sent = [(); 8].map(|()| {
            thin.on_first_sent(Instant::START, (1_000, None));
            thin.ahead(1_000)
        });
        assert_eq!(sent, [0, 0, 1, 0, 0, 1, 0, 1]);
    }
}
