//! The copies that follow a TPDU where each is sent several times.
//!
//! Repetition is the simplest and the most expensive forward error correction (FSO paper, Section 3.1). The
//! copies belong to the attempt that they follow: a TPDU is held lost when its last copy is, and a copy is
//! saved when an answer to an earlier one comes first.

use super::{Sender, Unit};
use crate::machine::TransmitKind;
use crate::transport::parts::Scoreboard;
use crate::units::Instant;
use crate::wire::TpduSeq;
use core::num::NonZeroU8;

/// The copies that remain to be sent of the TPDU that left last.
#[derive(Debug)]
pub(super) struct Copies {
    to_each: NonZeroU8,
    /// The TPDU, and the number of its copies.
    due: Option<(TpduSeq, NonZeroU8)>,
}

impl Copies {
    /// Copies for a sender that sends each TPDU `to_each` times.
    pub(super) const fn new(to_each: NonZeroU8) -> Self {
        Self { to_each, due: None }
    }

    /// Notes that `seq` left, so that its copies follow.
    pub(super) const fn follow(&mut self, seq: TpduSeq) {
        self.due = match NonZeroU8::new(self.to_each.get() - 1) {
            Some(left) => Some((seq, left)),
            None => None,
        };
    }

    /// Notes that `seq` left, and that so many copies follow, if that are more.
    pub(super) fn follow_by(&mut self, seq: TpduSeq, copies: u8) {
        if copies >= self.to_each.get() {
            self.due = NonZeroU8::new(copies).map(|left| (seq, left));
        }
    }

    /// The copies of `seq` that have yet to leave.
    pub(super) fn count_of(&self, seq: TpduSeq) -> u8 {
        let due = self.due.filter(|(due, _)| *due == seq);
        due.map_or(0, |(_, left)| left.get())
    }

    /// Whether a copy is to be sent of a TPDU that was not answered yet.
    pub(super) fn are_due(&self, board: &Scoreboard) -> bool {
        self.due.is_some_and(|(seq, _)| board.is_in_flight(seq))
    }

    /// Whether copies of `seq` have yet to leave.
    pub(super) fn remain_of(&self, seq: TpduSeq) -> bool {
        self.due.is_some_and(|(due, _)| due == seq)
    }

    /// The TPDU whose copy leaves next.
    pub(super) fn next(&self, board: &Scoreboard) -> Option<TpduSeq> {
        let (seq, _) = self.due?;
        board.is_in_flight(seq).then_some(seq)
    }

    fn take(&mut self, board: &Scoreboard) -> Option<TpduSeq> {
        let (seq, left) = self
            .due
            .take()
            .filter(|(seq, _)| board.is_in_flight(*seq))?;
        self.due = NonZeroU8::new(left.get() - 1).map(|left| (seq, left));
        Some(seq)
    }
}

impl Sender {
    /// The next copy of the TPDU that left last; it counts as sent.
    pub(super) fn next_copy(&mut self, now: Instant) -> Option<Unit> {
        let seq = self.copies.take(&self.board)?;
        let entry = self.board.get(seq)?;
        let (position, len) = (entry.position, entry.len_again());
        self.board.on_copied(now, seq);
        if self.rules.retransmits() {
            self.arm_retransmission(now);
        }
        Some(Unit {
            seq,
            kind: TransmitKind::Retransmission,
            position,
            len,
            is_copy: true,
            repair: None,
            window: None,
        })
    }
}
