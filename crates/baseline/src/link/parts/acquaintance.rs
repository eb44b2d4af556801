//! The life of the peer that is trusted: frames of a former life that were held up must not be.
//!
//! The first life that is heard of is trusted. Frames of another life wait here until it has
//! answered a challenge, and then count as if they had come late: no frame that a peer sent after
//! its restart is lost because of that. Each challenge is accepted once, and the next one is made
//! after that. So a life that answers was alive after the life that is followed was first trusted,
//! and lives are followed in the order in which they were lived, whatever the medium does to frames.
//!
//! # Does not
//! - Tell two lives of one name apart: the frames' numbers may do that.

use crate::wire::link::arq::Epoch;
use crate::wire::link::{Challenge, FrameNumber};
use fulmar_proto::rng::Rng;
use fulmar_proto::units::Instant;
use std::collections::VecDeque;

/// The names of a peer's lives, and its frames, of type `T`, that are not trusted yet.
#[derive(Clone, Debug)]
pub(crate) struct Acquaintance<T> {
    known: Option<Epoch>,
    challenge: Challenge,
    seed: u32,
    challenge_due: bool,
    /// The number that was next when the present challenge was first made.
    asked_at: Option<FrameNumber>,
    /// The challenge that the peer wants this end to answer.
    answer_due: Option<Challenge>,
    waiting: VecDeque<(Epoch, Instant, T)>,
    waiting_max: usize,
}

impl<T> Acquaintance<T> {
    /// An acquaintance with nobody; at most `waiting_max` frames wait. Challenges are drawn from
    /// `rng`.
    pub(crate) fn new(rng: &mut Rng, waiting_max: usize) -> Self {
        let seed = u32::try_from(rng.next_u64() >> 32).unwrap_or_default();
        Self {
            known: None,
            challenge: Challenge::NONE.after(seed),
            seed,
            challenge_due: false,
            asked_at: None,
            answer_due: None,
            waiting: VecDeque::new(),
            waiting_max,
        }
    }

    /// The life that is followed.
    pub(crate) const fn known(&self) -> Option<Epoch> {
        self.known
    }

    /// Follows `epoch` from now on.
    pub(crate) fn follow(&mut self, epoch: Epoch) {
        self.known = Some(epoch);
    }

    /// Keeps a frame that the life which is followed may not have sent, while its number `next` is
    /// awaited. The frame waits, and its sender is asked.
    pub(crate) fn doubt(
        &mut self,
        now: Instant,
        next: FrameNumber,
        epoch: Epoch,
        frame: Option<T>,
    ) {
        self.challenge_due = true;
        self.asked_at.get_or_insert(next);
        self.keep(now, epoch, frame);
    }

    /// Keeps a frame that waits for another one that makes it credible. The oldest frame makes room
    /// for it.
    pub(crate) fn keep(&mut self, now: Instant, epoch: Epoch, frame: Option<T>) {
        if let Some(frame) = frame {
            self.waiting.push_back((epoch, now, frame));
        }
        if self.waiting.len() > self.waiting_max {
            self.waiting.pop_front();
        }
    }

    /// Takes a copy of a frame that waits, as if it came only now. Returns `false` if none waits. The copy
    /// needs no room: on a medium that repeats frames it would drive out another frame, of which no copy
    /// may ever come.
    pub(crate) fn renew(
        &mut self,
        now: Instant,
        epoch: Epoch,
        is_copy: impl Fn(&T) -> bool,
    ) -> bool {
        let mut waiting = self.waiting.iter_mut();
        let copy = waiting.find(|(name, _, frame)| *name == epoch && is_copy(frame));
        copy.map(|(_, since, _)| *since = now).is_some()
    }

    /// The frames of `epoch` that waited, with the times at which they came.
    pub(crate) fn take(&mut self, epoch: Epoch) -> Vec<(Instant, T)> {
        let (of_epoch, others) = core::mem::take(&mut self.waiting)
            .into_iter()
            .partition(|&(name, _, _)| name == epoch);
        self.waiting = others;
        let of_epoch: VecDeque<(Epoch, Instant, T)> = of_epoch;
        let came = of_epoch.into_iter().map(|(_, since, frame)| (since, frame));
        came.collect()
    }

    /// The number that was awaited when the present challenge was first made, if `answer` answers it;
    /// the challenge is then over. The answer was given after that time.
    pub(crate) fn believes(&mut self, answer: Challenge) -> Option<FrameNumber> {
        if answer != self.challenge {
            return None;
        }
        self.challenge = self.challenge.after(self.seed);
        self.challenge_due = false;
        self.asked_at.take()
    }

    /// Takes the peer's question whether this end's life is the present one.
    pub(crate) fn challenged(&mut self, challenge: Challenge) {
        self.answer_due = Some(challenge);
    }

    /// The challenge to send, if one is due.
    pub(crate) fn poll_challenge(&mut self) -> Option<Challenge> {
        core::mem::take(&mut self.challenge_due).then_some(self.challenge)
    }

    /// The challenge to answer, if there is one.
    pub(crate) fn poll_answer(&mut self) -> Option<Challenge> {
        self.answer_due.take()
    }

    /// The frames that wait, of all lives.
    pub(crate) fn all_waiting(&self) -> impl Iterator<Item = &T> {
        self.waiting.iter().map(|(_, _, frame)| frame)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANCIENT: Epoch = Epoch(1);
    const FORMER: Epoch = Epoch(2);
    const PRESENT: Epoch = Epoch(3);

    fn met(epoch: Epoch) -> Acquaintance<u8> {
        let mut acquaintance = Acquaintance::new(&mut Rng::from_seed(1), 2);
        acquaintance.follow(epoch);
        acquaintance
    }

    #[test]
    fn frames_of_another_life_wait_until_it_answers_and_one_answer_counts_once() {
        let mut acquaintance = met(FORMER);
        for frame in 0..3 {
            let next = FrameNumber(u16::from(frame));
            acquaintance.doubt(Instant::START, next, PRESENT, Some(frame));
        }
        let challenge = acquaintance.poll_challenge().expect("it was asked");
        assert!(
            acquaintance.poll_challenge().is_none(),
            "once for all of them"
        );
        assert_eq!(acquaintance.believes(challenge.after(7)), None);
        assert_eq!(acquaintance.believes(challenge), Some(FrameNumber(0)));
        let waited: Vec<u8> = acquaintance.take(PRESENT).iter().map(|w| w.1).collect();
        assert_eq!(waited, [1, 2], "the last, as many as fit");
        assert_eq!(acquaintance.believes(challenge), None, "held up, repeated");
    }

    #[test]
    fn a_copy_of_a_frame_that_waits_takes_no_room_and_counts_as_the_last_that_came() {
        let mut acquaintance = met(FORMER);
        for frame in 0..2 {
            acquaintance.doubt(Instant::START, FrameNumber(0), PRESENT, Some(frame));
        }
        let later = Instant::from_nanos(1);
        assert!(acquaintance.renew(later, PRESENT, |waiting| *waiting == 0));
        assert!(!acquaintance.renew(later, PRESENT, |waiting| *waiting == 2));
        assert!(!acquaintance.renew(later, ANCIENT, |waiting| *waiting == 0));
        assert_eq!(
            acquaintance.take(PRESENT),
            [(later, 0), (Instant::START, 1)]
        );
    }

    #[test]
    fn the_frames_of_one_life_do_not_count_for_another() {
        let mut acquaintance = met(FORMER);
        acquaintance.doubt(Instant::START, FrameNumber(0), ANCIENT, Some(0));
        acquaintance.doubt(Instant::START, FrameNumber(0), PRESENT, Some(1));
        assert_eq!(acquaintance.take(PRESENT), [(Instant::START, 1)]);
        assert!(acquaintance.take(PRESENT).is_empty());
        assert_eq!(acquaintance.all_waiting().count(), 1);
    }
}
