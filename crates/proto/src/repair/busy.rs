//! The time that a flow in order waits behind a loss, when symbols and repetitions mend it.
//!
//! A loss makes the flow wait: one equation is wanting. Each further loss in that time makes it one more, each symbol and
//! each repetition that arrives one less. At none the wait ends, and all that came meanwhile is read. The distribution
//! of the wait's length is computed forward in steps of a quarter of the time between two messages.

use super::Odds;

/// The rounds of repetition that a plan names; later ones are like the last.
pub const ROUNDS: usize = 3;
/// Transmissions in one round of repetition, at most.
pub(super) const TIMES_MAX: u8 = 6;
/// Equations that may be wanting, at most: more count as so many.
const WANTING_MAX: usize = 16;
/// Steps between two messages.
pub(super) const STEPS: usize = 4;
/// The longest wait that is told from longer ones, in steps.
pub(super) const HORIZON: usize = 256;

/// The messages for which a plan has a whole number of symbols ahead: each earns so many parts of a symbol.
pub(super) const AHEAD_UNIT: u8 = 8;
/// The parts that make up a symbol.
const UNIT: usize = AHEAD_UNIT as usize;

/// The share of waits that are not followed any further.
const NEGLIGIBLE: Odds = Odds::of(1, 1 << 20);

/// The chance that all of so many repetitions are lost which leave together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Together([Odds; TIMES_MAX as usize + 1]);

impl Together {
    /// `again` is the loss of one.
    pub(super) fn of(again: Odds) -> Self {
        let mut all = [Odds::ALWAYS; TIMES_MAX as usize + 1];
        for times in 1..all.len() {
            all[times] = all[times - 1].and(again);
        }
        Self(all)
    }

    /// All of `times` are lost; more than [`TIMES_MAX`] count as so many.
    pub(super) fn lost(&self, times: u8) -> Odds {
        self.0[usize::from(times.min(TIMES_MAX))]
    }
}

/// The wait behind a loss, by plan and loss.
pub(super) struct Busy {
    /// The share of waits that last longer than so many steps.
    longer: [Odds; HORIZON],
}

/// The part of a plan and of its link that the wait depends on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mending {
    /// Symbols for eight messages.
    ahead_eighths: u8,
    /// The steps from one transmission to its repetition; `None` if nothing is repeated.
    round_steps: Option<usize>,
    /// Losses of messages behind a loss, and of symbols.
    loss: Odds,
    /// The chance that a round of repetition is lost.
    fails: [Odds; ROUNDS],
    /// The share of losses for which all rounds before this one failed.
    reaches: [Odds; ROUNDS + 1],
}

impl Mending {
    /// Symbols for eight messages, and so many transmissions in each round, `round_steps` apart.
    pub(super) fn new(
        ahead_eighths: u8,
        (times, round_steps): ([u8; ROUNDS], usize),
        (loss, again): (Odds, &Together),
    ) -> Self {
        let fails = times.map(|times| again.lost(times));
        let mut reaches = [Odds::ALWAYS; ROUNDS + 1];
        for round in 0..ROUNDS {
            reaches[round + 1] = reaches[round].and(fails[round]);
        }
        Self {
            ahead_eighths,
            round_steps: Some(round_steps.max(1)),
            loss,
            fails,
            reaches,
        }
    }

    /// Symbols alone.
    pub(super) const fn by_symbols(ahead_eighths: u8, loss: Odds) -> Self {
        Self {
            ahead_eighths,
            round_steps: None,
            loss,
            fails: [Odds::ALWAYS; ROUNDS],
            reaches: [Odds::ALWAYS; ROUNDS + 1],
        }
    }

    /// The share of losses that no repetition has mended `from` steps after, and each [`STEPS`] later.
    pub(super) fn not_repeated(&self, from: usize) -> impl Iterator<Item = Odds> {
        let round_steps = self.round_steps;
        let last = self.fails[ROUNDS - 1];
        let reaches = self.reaches;
        let (mut more, mut further) = (0, Odds::ALWAYS);
        (from..).step_by(STEPS).map(move |at| {
            let rounds = round_steps.map_or(0, |steps| at / steps);
            let wanted = rounds.saturating_sub(ROUNDS).min(HORIZON);
            while more < wanted && further > Odds::NEVER {
                further = further.and(last);
                more += 1;
            }
            reaches[rounds.min(ROUNDS)].and(further)
        })
    }

    /// The share of losses for which all rounds before this one failed.
    pub(super) const fn reaches(&self, round: usize) -> Odds {
        self.reaches[round]
    }

    /// The chance that a repetition of a loss comes at `step`, and that it arrives.
    fn mended_at(&self, step: usize) -> impl Iterator<Item = Odds> {
        let of_round = move |round: usize| {
            let since = step.checked_sub((round + 1) * self.round_steps?)?;
            if !since.is_multiple_of(STEPS) {
                return None;
            }
            // The first loss of the wait is certain, those of later messages are not.
            let is_due = if since == 0 { Odds::ALWAYS } else { self.loss };
            Some(is_due.and(self.reaches[round]).and(self.fails[round].not()))
        };
        (0..ROUNDS).filter_map(of_round)
    }
}

impl Busy {
    /// The wait if the message that was lost is as far from the next symbol as it can be.
    pub(super) fn of(mending: &Mending) -> Self {
        Self::earning(mending, 0)
    }

    /// The wait if the message that was lost may be any of those between two symbols.
    pub(super) fn from_anywhere(mending: &Mending) -> Self {
        // What was earned before is a multiple of this.
        let apart = 1
            << mending
                .ahead_eighths
                .trailing_zeros()
                .min(UNIT.trailing_zeros());
        if apart == UNIT {
            return Self::of(mending);
        }
        let mut longer = [Odds::NEVER; HORIZON];
        for earned in (0..UNIT).step_by(apart) {
            let one = Self::earning(mending, earned);
            let followed = one.longer.iter().take_while(|one| **one > Odds::NEVER);
            for (sum, one) in longer.iter_mut().zip(followed) {
                *sum = sum.plus(one.part((UNIT / apart) as u64));
            }
        }
        Self { longer }
    }

    /// The wait if so many eighths of a symbol were earned before the message that was lost.
    fn earning(mending: &Mending, earned: usize) -> Self {
        let mut longer = [Odds::NEVER; HORIZON];
        let mut wanting = Wanting::one();
        let mut symbols = earned;
        let arrives = mending.loss.not();
        for (step, longer) in longer.iter_mut().enumerate() {
            if step.is_multiple_of(STEPS) {
                if step > 0 {
                    wanting.more(mending.loss);
                }
                symbols += usize::from(mending.ahead_eighths);
                for _ in 0..symbols / UNIT {
                    wanting.fewer(arrives);
                }
                symbols %= UNIT;
            }
            for mended in mending.mended_at(step) {
                wanting.fewer(mended);
            }
            *longer = wanting.any;
            if *longer <= NEGLIGIBLE {
                break;
            }
        }
        Self { longer }
    }

    /// The share of waits that last longer than so many steps.
    pub(super) fn longer_than(&self, steps: usize) -> Odds {
        self.longer
            .get(steps)
            .copied()
            .unwrap_or(self.longer[HORIZON - 1])
    }

    /// The sum of the shares that last longer than `from` steps, and each [`STEPS`] later.
    pub(super) fn messages_from(&self, from: usize) -> Odds {
        (from..HORIZON)
            .step_by(STEPS)
            .map(|at| self.longer[at])
            .take_while(|longer| *longer > Odds::NEVER)
            .fold(Odds::NEVER, Odds::plus)
    }

    /// Messages that are sent while the flow waits.
    pub(super) fn messages(&self) -> Odds {
        self.messages_from(STEPS - 1)
    }
}

/// The distribution of the equations that are wanting.
struct Wanting {
    of: [Odds; WANTING_MAX],
    /// All of them but the share in which none is wanting.
    any: Odds,
    /// The largest number with a share.
    top: usize,
}

impl Wanting {
    /// One is wanting.
    const fn one() -> Self {
        let mut of = [Odds::NEVER; WANTING_MAX];
        of[1] = Odds::ALWAYS;
        Self {
            of,
            any: Odds::ALWAYS,
            top: 1,
        }
    }

    /// One more is wanting, at these odds.
    fn more(&mut self, odds: Odds) {
        for at in (1..=self.top.min(WANTING_MAX - 2)).rev() {
            let moved = self.of[at].and(odds);
            self.of[at] = self.of[at].less(moved);
            self.of[at + 1] = self.of[at + 1].plus(moved);
        }
        if self.top < WANTING_MAX - 1 && self.of[self.top + 1] > Odds::NEVER {
            self.top += 1;
        }
    }

    /// One fewer is wanting, at these odds. None is the end.
    fn fewer(&mut self, odds: Odds) {
        for at in 1..=self.top {
            let moved = self.of[at].and(odds);
            self.of[at] = self.of[at].less(moved);
            if at > 1 {
                self.of[at - 1] = self.of[at - 1].plus(moved);
            } else {
                self.any = self.any.less(moved);
            }
        }
        while self.top > 1 && self.of[self.top] == Odds::NEVER {
            self.top -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_meets_any_of_the_messages_between_two_symbols() {
        let waits = |ahead_eighths: u8| {
            let busy = Busy::from_anywhere(&Mending::by_symbols(ahead_eighths, Odds::NEVER));
            [0, 1, 2, 3].map(|messages| busy.longer_than(messages * STEPS).millionths())
        };
        assert_eq!(waits(8), [0; 4]);
        assert_eq!(waits(6), [250_000, 0, 0, 0]);
        assert_eq!(waits(4), [500_000, 0, 0, 0]);
        assert_eq!(waits(2), [750_000, 500_000, 250_000, 0]);
        assert_eq!(waits(12), [0; 4]);
        assert_eq!(waits(16), [0; 4]);
        assert_eq!(waits(3), [625_000, 250_000, 0, 0]);
        assert_eq!(waits(1), [875_000, 750_000, 625_000, 500_000]);
        assert_eq!(waits(0), [1_000_000; 4]);
    }
}
