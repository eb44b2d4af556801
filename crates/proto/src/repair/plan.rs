//! The table of plans.

use super::Odds;
use super::busy::{AHEAD_UNIT, ROUNDS, TIMES_MAX};
use crate::units::Duration;

/// The messages by which repetitions are put off in any plan, at most.
pub(super) const PUT_OFF_MAX: u8 = 8;

/// The symbols ahead for eight messages in any plan, at most.
pub(super) const AHEAD_MAX: u8 = 16;

/// Symbols ahead for eight messages, in the plans of the table.
const AHEAD_EIGHTHS: [u8; 11] = [0, 1, 2, 3, 4, 5, 6, 8, 10, 12, AHEAD_MAX];
/// Transmissions in one round of repetition beside symbols, or in order.
const TIMES_TOGETHER_MAX: u8 = 4;

/// The shape of a thin flow and of its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowShape {
    /// The time between two messages.
    pub gap: Duration,
    /// The time from writing to arrival, if nothing is lost.
    pub one_way: Duration,
    /// The time from a transmission to its repetition.
    pub round: Duration,
}

/// A sender's view when it chooses the repair of a flow with a goal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RepairView {
    /// The flow's shape.
    pub shape: FlowShape,
    /// First transmissions that are lost.
    pub loss: Odds,
    /// The standard error of `loss`.
    pub loss_error: Odds,
    /// The share lost of what follows a loss.
    pub behind_a_loss: Odds,
    /// The plan in use.
    pub plan: RepairPlan,
}

/// The repair of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RepairPlan {
    /// Repair symbols ahead of any loss, for eight messages.
    pub ahead_eighths: u8,
    /// The transmissions in each round of repetition.
    pub times: [u8; ROUNDS],
    /// The times between two messages for which each repetition is put off: it may meet a better time.
    pub put_off: u8,
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
    pub(super) const NOTHING_LOST: Self = Self {
        missed: Odds::NEVER,
        cost: Odds::ALWAYS,
    };
}

impl RepairPlan {
    /// Every loss is repeated once, and nothing else is sent.
    pub const PLAIN: Self = Self {
        ahead_eighths: 0,
        times: [1; ROUNDS],
        put_off: 0,
    };

    /// Every loss is given up.
    pub(super) const NOTHING: Self = Self {
        ahead_eighths: 0,
        times: [0; ROUNDS],
        put_off: 0,
    };

    /// The messages for which a plan has a whole number of symbols ahead.
    pub const AHEAD_UNIT: u8 = AHEAD_UNIT;

    /// The symbols ahead for each message.
    pub fn ahead(&self) -> f64 {
        f64::from(self.ahead_eighths) / f64::from(AHEAD_UNIT)
    }

    /// The transmissions in a round of repetition, the first being 1.
    pub fn times_in(&self, round: u32) -> u8 {
        let at = usize::try_from(round.saturating_sub(1)).unwrap_or(ROUNDS);
        self.times[at.min(ROUNDS - 1)]
    }

    /// The packets for each message where nothing is lost.
    pub(super) const fn least_cost(self) -> Odds {
        Odds::ALWAYS.plus(Odds::of(self.ahead_eighths as u64, AHEAD_UNIT as u64))
    }

    /// Plans without symbols, by the transmissions in each round.
    pub(super) fn alone(gives_up: bool) -> impl Iterator<Item = Self> {
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
        // What all wait for is repeated once at a time when it is late anyway.
        let late = times(2).flat_map(move |first| {
            let second = [1].into_iter().chain(times(first));
            second.map(move |second| [first, second, 1])
        });
        let late = late.filter(move |_| !gives_up);
        rounds.chain(given_up).chain(late).map(|times| Self {
            ahead_eighths: 0,
            times,
            put_off: 0,
        })
    }

    /// The same with each repetition put off by so many messages.
    pub(super) const fn after(self, put_off: u8) -> Self {
        Self { put_off, ..self }
    }

    /// Plans for messages that wait for each other, or are mended with the help of each other.
    pub(super) fn together() -> impl Iterator<Item = Self> {
        let times = |from: u8| from..=TIMES_TOGETHER_MAX;
        let rounds =
            times(1).flat_map(move |first| times(first).map(move |more| [first, more, more]));
        rounds.flat_map(|times| {
            AHEAD_EIGHTHS.map(|ahead_eighths| Self {
                ahead_eighths,
                times,
                put_off: 0,
            })
        })
    }
}
