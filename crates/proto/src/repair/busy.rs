//! The time that a flow in order waits behind a loss, when symbols and repetitions mend it.
//!
//! A loss makes the flow wait: one equation is wanting. Each further loss in that time makes it one more, each symbol and
//! each repetition that arrives one less. At none the wait ends, and all that came meanwhile is read. The distribution
//! of the wait's length is computed forward in steps of a quarter of the time between two messages.

use super::Odds;

/// The rounds of repetition that a plan names; later ones are like the last.
pub const ROUNDS: usize = 3;
/// Equations that may be wanting, at most: more count as so many.
const WANTING_MAX: usize = 16;
/// Steps between two messages.
pub(super) const STEPS: usize = 4;
/// The longest wait that is told from longer ones, in steps.
pub(super) const HORIZON: usize = 256;

/// The share of waits that are not followed any further.
const NEGLIGIBLE: Odds = Odds::of(1, 1 << 20);

/// The wait behind a loss, by plan and loss.
pub(super) struct Busy {
    /// The share of waits that last longer than so many steps.
    longer: [Odds; HORIZON],
}

/// The part of a plan and of its link that the wait depends on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mending {
    /// Symbols for four messages.
    pub(super) ahead_quarters: u8,
    /// Transmissions in each round of repetition.
    pub(super) times: [u8; ROUNDS],
    /// The steps from one transmission to its repetition.
    pub(super) round_steps: usize,
    /// Losses of messages behind a loss, and of symbols.
    pub(super) loss: Odds,
    /// Losses of a repetition, when it is sent once.
    pub(super) again: Odds,
}

impl Mending {
    /// The share of losses that no repetition has mended after so many steps.
    pub(super) fn not_repeated(&self, steps: usize) -> Odds {
        let rounds = steps / self.round_steps.max(1);
        let more = rounds.saturating_sub(ROUNDS);
        let last = self.again.power(u32::from(self.times[ROUNDS - 1]));
        let further = (0..more.min(HORIZON)).fold(Odds::ALWAYS, |all, _| all.and(last));
        self.reaches(rounds.min(ROUNDS)).and(further)
    }

    /// The same without repetitions.
    pub(super) const fn without_repetitions(self) -> Self {
        Self {
            round_steps: HORIZON,
            ..self
        }
    }

    /// The share of losses for which all rounds before this one failed.
    pub(super) fn reaches(&self, round: usize) -> Odds {
        let before = self.times[..round].iter();
        let failed = before.map(|times| self.again.power(u32::from(*times)));
        failed.fold(Odds::ALWAYS, Odds::and)
    }

    /// The chance that a repetition of a loss comes at `step`, and that it arrives.
    fn mended_at(&self, step: usize) -> impl Iterator<Item = Odds> {
        let of_round = move |round: usize| {
            let since = step.checked_sub((round + 1) * self.round_steps.max(1))?;
            if !since.is_multiple_of(STEPS) {
                return None;
            }
            // The first loss of the wait is certain, those of later messages are not.
            let is_due = if since == 0 { Odds::ALWAYS } else { self.loss };
            let arrives = self.again.power(u32::from(self.times[round])).not();
            Some(is_due.and(self.reaches(round)).and(arrives))
        };
        (0..ROUNDS).filter_map(of_round)
    }
}

impl Busy {
    pub(super) fn of(mending: &Mending) -> Self {
        let mut longer = [Odds::NEVER; HORIZON];
        let mut wanting = [Odds::NEVER; WANTING_MAX];
        wanting[1] = Odds::ALWAYS;
        let mut symbols = 0_usize;
        let arrives = mending.loss.not();
        for (step, longer) in longer.iter_mut().enumerate() {
            if step.is_multiple_of(STEPS) {
                if step > 0 {
                    more(&mut wanting, mending.loss);
                }
                symbols += usize::from(mending.ahead_quarters);
                for _ in 0..symbols / STEPS {
                    fewer(&mut wanting, arrives);
                }
                symbols %= STEPS;
            }
            for mended in mending.mended_at(step) {
                fewer(&mut wanting, mended);
            }
            *longer = wanting[1..]
                .iter()
                .fold(Odds::NEVER, |all, one| all.plus(*one));
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

    /// Messages that are sent while the flow waits.
    pub(super) fn messages(&self) -> Odds {
        let meanwhile = (STEPS - 1..HORIZON).step_by(STEPS);
        meanwhile.fold(Odds::NEVER, |all, at| all.plus(self.longer[at]))
    }
}

/// One more is wanting, at these odds.
fn more(wanting: &mut [Odds; WANTING_MAX], odds: Odds) {
    let top = WANTING_MAX - 1;
    for at in (1..top).rev() {
        let moved = wanting[at].and(odds);
        wanting[at] = wanting[at].less(moved);
        wanting[at + 1] = wanting[at + 1].plus(moved);
    }
}

/// One fewer is wanting, at these odds. None is the end.
fn fewer(wanting: &mut [Odds; WANTING_MAX], odds: Odds) {
    for at in 1..WANTING_MAX {
        let moved = wanting[at].and(odds);
        wanting[at] = wanting[at].less(moved);
        if at > 1 {
            wanting[at - 1] = wanting[at - 1].plus(moved);
        }
    }
}
