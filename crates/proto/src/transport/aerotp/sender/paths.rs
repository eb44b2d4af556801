//! Several paths to the peer: what is known of them here, and what is repeated because one went down.

use super::super::counters::Counters;
use super::Sender;
use super::path_taken::PathTaken;
use super::thin::IN_FLIGHT_MAX;
use crate::trace::Trace;
use crate::units::Instant;
use crate::wire::TpduSeq;

/// The copies that follow what was under way on a path that went down, once its repetition was lost as well. Everything behind
/// it waits for it: with three at once and 10 % loss, one in a thousand of those waits a round trip more.
const OVERDUE_COPIES: u8 = 2;

impl Sender {
    /// Sends what follows on this path.
    pub(in super::super) fn leave_on(&mut self, path: PathTaken) {
        // Answers tell of what left on the quickest.
        let usual = self.rtt.smoothed().unwrap_or(path.round_trip);
        let lag = path.round_trip.saturating_sub(usual);
        self.board.leave_on(path.place, lag);
        if let Some(thin) = &mut self.thin {
            thin.spread(&path);
        }
    }

    /// The octets ahead of what is written next; `None` for bulk, which writes as much as there is room for.
    pub(in super::super) fn octets_ahead(&self) -> Option<u64> {
        if self.board.has_lost() {
            return Some(0);
        }
        let (unsent, room) = (self.unsent(), self.room());
        if !self.messages.is_empty() {
            return Some(unsent);
        }
        (u64::try_from(room).unwrap_or(u64::MAX) > unsent).then_some(unsent)
    }

    /// Whether little is under way, of a flow whose data are repaired as they leave.
    pub(in super::super) fn is_thin(&self) -> bool {
        self.thin.is_some() && self.board.in_flight() <= IN_FLIGHT_MAX
    }

    /// The path on which the TPDU that is to be repeated next, or mended, left before, if the flow is thin.
    pub(in super::super) fn repeats_on(&mut self) -> Option<u8> {
        if !self.is_thin() || self.probe.is_some() {
            return None;
        }
        if let Some(seq) = self.copies.next(&self.board) {
            return self.board.path_of(seq);
        }
        if self.has_symbol_due() {
            // It mends what left last, with whatever else is missing.
            return Some(self.board.left_on());
        }
        let seq = self.board.first_lost()?;
        self.board.path_of(seq)
    }

    /// Goes on, if an outage had stopped it: the silence was that of a path that is known to be down, and others are up.
    pub(in super::super) fn go_on_by_others(&mut self, now: Instant, trace: &mut Trace) {
        if self.rules.retransmits() {
            self.heard(now, trace);
            self.rtt.on_progress();
        }
    }

    /// Takes the word of the layer below that one of the peer's paths is down.
    pub(in super::super) fn on_path_down(
        &mut self,
        now: Instant,
        place: u8,
        counters: &mut Counters,
        trace: &mut Trace,
    ) {
        if self.rules.retransmits() {
            self.board.on_path_down(place);
            self.overdue_before = Some(self.board.next_seq());
            self.note_losses(now, counters, trace);
            self.arm_retransmission(now);
        }
    }

    /// Lets copies follow the repetition that just left, if a path that went down took what it repeats and the first repetition was
    /// lost, too.
    pub(super) fn copy_overdue(&mut self, seq: TpduSeq, len: usize) {
        let Some(end) = self.overdue_before else {
            return;
        };
        if !self.board.base().before(end) {
            self.overdue_before = None;
        } else if seq.before(end) && self.board.get(seq).is_some_and(|entry| entry.attempts > 2) {
            let due = self.copies.count_of(seq);
            let mut more = OVERDUE_COPIES.saturating_sub(due);
            // Those of a thin flow are paid for like its other copies.
            if self.copies_are_bounded()
                && let Some(thin) = &mut self.thin
            {
                let paid = thin.pay(u32::from(more), len);
                more = u8::try_from(paid).unwrap_or_default();
            }
            self.copies.follow_by(seq, due + more);
        }
    }
}
