//! Messages that are worth nothing once they are late: those that never leave, and those that are taken back.
//!
//! The time of a deadline counts from writing. A message that could not be there in time any more is dropped before it
//! has a number; one that was sent has a number, so an empty TPDU takes its place.

use super::super::thin_repair::ThinRepair;
use super::Sender;
use super::thin::Thin;
use crate::repair::DeliveryGoal;
use crate::transport::aerotp::modes::AckScheme;
use crate::units::Instant;
use crate::wire::TpduSeq;

impl Sender {
    /// Repairs what leaves as it is written as `allowed` says, from now on. A mode that does not answer each TPDU
    /// cannot.
    pub(in super::super) fn allow_thin(&mut self, allowed: ThinRepair) {
        match &mut self.thin {
            Some(thin) => thin.allow(allowed),
            None if self.rules.acks == AckScheme::Aggregated => {
                self.thin = Some(Thin::new(allowed));
            }
            None => {}
        }
    }

    /// Messages that never left, because they would have been too late.
    pub(in super::super) const fn late_unsent(&self) -> u64 {
        self.late_unsent
    }

    pub(super) fn goal(&self) -> Option<DeliveryGoal> {
        self.thin.as_ref().and_then(|thin| thin.allowed().goal())
    }

    /// Whether the payload of `seq` was taken back.
    pub(in super::super) fn is_withdrawn(&self, seq: TpduSeq) -> bool {
        self.board.get(seq).is_some_and(|entry| entry.is_withdrawn)
    }

    /// Notes that what was just written is as old as `since`, where a deadline counts from it. What was written in the far
    /// future is never late and never given up.
    pub(super) fn note_written(&mut self, since: Instant) {
        if self.goal().is_some() {
            self.written.note(since, self.buffer.end());
        }
    }

    /// Takes the time at which the octet at `position` was written, which is the next to leave.
    pub(super) fn take_written(&mut self, position: u64) -> Option<Instant> {
        self.written.forget_before(position);
        self.written.at(position)
    }

    /// Whether what was written then would miss its deadline if it left now, as far as the shortest way tells.
    fn is_late(&self, now: Instant, written_at: Instant, goal: DeliveryGoal) -> bool {
        let way = self.rtt.min().unwrap_or_default() / 2;
        now + way > written_at + goal.deadline
    }

    /// Drops the messages that have waited too long to be worth anything. They have no numbers yet.
    pub(super) fn drop_late(&mut self, now: Instant) {
        let Some(goal) = self.goal().filter(DeliveryGoal::takes_back) else {
            return;
        };
        while let Some(len) = self.messages.front().copied() {
            let written_at = self.take_written(self.next_position);
            if !written_at.is_some_and(|at| self.is_late(now, at, goal)) {
                break;
            }
            self.messages.pop_front();
            self.next_position += len as u64;
            self.late_unsent += 1;
            if let Some(thin) = &mut self.thin {
                thin.on_dropped();
            }
        }
        self.release(now);
    }

    /// Takes a message back that would come too late to be worth anything, as far as the shortest way tells.
    pub(super) fn withdraw_late(&mut self, now: Instant, seq: TpduSeq) {
        let by = self.goal().filter(DeliveryGoal::takes_back);
        let entry = self.board.get(seq).filter(|entry| !entry.is_withdrawn);
        if let (Some(goal), Some(entry)) = (by, entry) {
            let written_at = entry.written_at();
            let is_late = self.is_late(now, written_at, goal);
            let thin = self.thin.as_ref();
            let is_given_up = thin.is_some_and(|thin| thin.gives_up_after(entry.attempts));
            if is_late || (is_given_up && written_at != Instant::FAR_FUTURE) {
                self.board.withdraw(seq);
            }
        }
    }
}
