//! The receiver's answers: requests first, then acknowledgements and reports.

use super::super::acknowledger::ReceiverState;
use super::super::answer::Answer;
use super::{Receiver, ReceiverTimer};
use crate::units::Instant;
use crate::wire::aerotp::{NackCause, PathReport};

impl Receiver {
    pub(in super::super) fn wants_to_answer(&self) -> bool {
        self.acks.is_due() || self.report_wanted || self.wants_to_ask()
    }

    /// Makes a report on the path due.
    pub(in super::super) const fn want_report(&mut self) {
        self.report_wanted = true;
    }

    fn wants_to_ask(&self) -> bool {
        !self.asked_damaged.is_empty() || (self.asked_missing && self.ring.has_holes())
    }

    /// Appends the answer that is due, if any. An acknowledgement takes the report.
    pub(in super::super) fn write_answer(
        &mut self,
        now: Instant,
        mut answer: Answer,
        report: &mut Option<PathReport>,
        out: &mut Vec<u8>,
    ) -> bool {
        answer.template.echo = self.acks.echo();
        let room = answer.asked_max();
        if let Some(first) = self.asked_damaged.pop_front() {
            let further = self.asked_damaged.iter().copied().take(room);
            let told = answer.nack(NackCause::Damaged, first, further, out);
            self.asked_damaged.drain(..told);
            return true;
        }
        if core::mem::take(&mut self.asked_missing) {
            let mut holes = self.ring.holes(room + 1);
            if let Some(first) = holes.next() {
                answer.nack(NackCause::Missing, first, holes, out);
                self.asked_at.get_or_insert((first, now));
                self.timers
                    .set(ReceiverTimer::NackRepeat, now + self.nack_repeat);
                return true;
            }
        }
        // Another connection of the path may have sent the report.
        let reports = core::mem::take(&mut self.report_wanted) && report.is_some();
        if self.acks.is_due() || reports {
            let state = ReceiverState {
                next_expected: self.ring.next_expected(),
                window: self.ring.window(),
                has_holes: self.ring.has_holes(),
                channel: self.channel.as_mut().map(|channel| channel.word(now)),
                report: report.take(),
            };
            self.acks.write(now, answer, state, out);
            return true;
        }
        false
    }
}
