//! Answers at once to data that ask for them, and more than once where answers are lost.
//!
//! Behind the last TPDU of a burst nothing follows that would bring its answer about again, so a lost answer costs a
//! needless repetition, or the time until the sender knows better. The sender says so with each such TPDU
//! (`docs/protocol/aerotp.md`, section 4). Whether answers are lost is not seen here: the way back is taken to lose
//! what the way here does, and TPDUs that come again though they had arrived count as lost ones.

use crate::transport::parts::LossShare;
use crate::units::{Duration, Instant};
use crate::wire::TpduSeq;
use std::collections::VecDeque;

/// The least time between two answers. All to one TPDU leave within the default wait for more arrivals.
const GAP: Duration = Duration::from_micros(750);
/// The answers to one TPDU, at most.
const ANSWERS_MAX: u32 = 7;
/// All answers to a TPDU are lost so often at the most, of 2^16: one time in 256.
const MISSED_MAX: u32 = 1 << 8;
/// Arrivals that are remembered, to know the copies of a TPDU that were sent with it.
const REMEMBERED: usize = 16;
/// Transmissions less apart than this, in microseconds, were made together.
const TOGETHER_MICROS: u32 = 12_000;

#[derive(Debug, Default)]
pub(super) struct PromptAnswers {
    /// Answers that are still to be sent.
    left: u32,
    told_at: Option<Instant>,
    loss: LossShare,
    /// The stamps of the newest arrivals, oldest first.
    latest: VecDeque<(TpduSeq, u32)>,
}

impl PromptAnswers {
    /// Notes a TPDU that is new.
    pub(super) fn on_arrival(&mut self, seq: TpduSeq, stamp: u32) {
        self.loss.arrived();
        if self.latest.len() == REMEMBERED {
            self.latest.pop_front();
        }
        self.latest.push_back((seq, stamp));
    }

    /// Notes TPDUs that turn out to be missing.
    pub(super) fn on_holes(&mut self, holes: u32) {
        // More of them in a row say no more of single losses.
        (0..holes.min(8)).for_each(|_| self.loss.lost());
    }

    /// Notes a TPDU that had arrived: its sender missed the answers, unless it sent both together.
    pub(super) fn on_duplicate(&mut self, seq: TpduSeq, stamp: u32) {
        let is_copy = |(latest, at): &(TpduSeq, u32)| {
            *latest == seq && stamp.wrapping_sub(*at) < TOGETHER_MICROS
        };
        if !self.latest.iter().any(is_copy) {
            self.loss.lost();
        }
    }

    /// The time of the answer to a TPDU that asks for one.
    pub(super) fn on_asked(&mut self, now: Instant) -> Instant {
        self.left = self.loss.enough(MISSED_MAX, ANSWERS_MAX);
        self.told_at.map_or(now, |at| now.max(at + GAP))
    }

    /// Notes an answer that leaves. Returns the time of the next one, if it is to be said again.
    pub(super) fn on_told(&mut self, now: Instant) -> Option<Instant> {
        self.told_at = Some(now);
        self.left = self.left.saturating_sub(1);
        (self.left > 0).then(|| now + GAP)
    }

    pub(super) fn give_back(&mut self) {
        self.latest = VecDeque::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The times of the answers to one TPDU at `now`.
    fn answers(answers: &mut PromptAnswers, now: Instant) -> Vec<Duration> {
        let mut next = Some(answers.on_asked(now));
        core::iter::from_fn(|| {
            let at = next?;
            next = answers.on_told(at);
            Some(at.saturating_since(now))
        })
        .collect()
    }

    #[test]
    fn where_nothing_is_lost_there_is_one_answer_and_where_much_is_lost_there_are_seven() {
        let mut prompt = PromptAnswers::default();
        let second = |n| Instant::START + Duration::from_secs(n);
        (0..100).for_each(|n| prompt.on_arrival(TpduSeq(n), 0));
        assert_eq!(answers(&mut prompt, second(1)), [Duration::ZERO]);
        prompt.on_holes(1);
        assert_eq!(
            answers(&mut prompt, second(2)),
            [Duration::ZERO, GAP],
            "one in a hundred"
        );
        for _ in 0..5 {
            prompt.on_holes(8);
        }
        let all = [0, 1, 2, 3, 4].map(|n| GAP * n);
        assert_eq!(answers(&mut prompt, second(3)), all, "29 in a hundred");
        for _ in 0..20 {
            prompt.on_holes(8);
        }
        assert_eq!(answers(&mut prompt, second(4)).len(), 7, "the most");
    }

    #[test]
    fn what_was_sent_together_does_not_count_as_lost_and_what_comes_later_does() {
        let mut prompt = PromptAnswers::default();
        (0..50).for_each(|n| prompt.on_arrival(TpduSeq(n), n * 20_000));
        prompt.on_duplicate(TpduSeq(49), 49 * 20_000 + 1_000);
        assert_eq!(prompt.loss.percent(), 0);
        prompt.on_duplicate(TpduSeq(48), 48 * 20_000 + 47_000);
        assert_eq!(prompt.loss.percent(), 2);
    }

    #[test]
    fn answers_keep_their_distance_however_often_they_are_asked_for() {
        let mut prompt = PromptAnswers::default();
        let now = Instant::START + Duration::from_secs(1);
        assert_eq!(prompt.on_asked(now), now);
        assert_eq!(prompt.on_told(now), None);
        assert_eq!(prompt.on_asked(now + GAP / 3), now + GAP);
    }
}
