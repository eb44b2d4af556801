//! The sending of a thin flow: copies, symbols, and repetitions of what got no answer in time.

use super::super::{Sender, SenderTimer, Unit};
use super::{AHEAD_SPAN, IN_FLIGHT_MAX, SYMBOL_MORE, SYMBOL_WAIT, Thin};
use crate::machine::TransmitKind;
use crate::repair::RepairView;
use crate::trace::RepairDecision;
use crate::units::{Duration, Instant};
use crate::wire::TpduSeq;
use crate::wire::aerotp::short::Named;

impl Sender {
    /// Takes the change of plan that is to be told.
    pub(in super::super::super) fn take_repair_change(&mut self) -> Option<RepairDecision> {
        self.thin.as_mut().and_then(Thin::take_news)
    }

    /// Whether what leaves should be answered at once: nothing follows it.
    pub(in super::super::super) fn asks_at_once(&self) -> bool {
        let thin = self.thin.as_ref().filter(|_| !self.has_new());
        thin.is_some_and(|thin| !thin.is_answered_anyway(self.ack_flush))
    }

    /// Whether so little is in flight that copies are no matter, or a goal bounds what they take.
    pub(in super::super) fn copies_are_bounded(&self) -> bool {
        self.goal().is_some() || self.board.in_flight() <= IN_FLIGHT_MAX
    }

    /// The time by which repetitions are put off, while the flow is thin.
    pub(in super::super) fn put_off(&self) -> Duration {
        let thin = self.thin.as_ref().filter(|_| !self.has_new());
        thin.map_or(Duration::ZERO, Thin::put_off)
    }

    /// The time without an answer after which a TPDU is repeated, while the flow is thin.
    pub(in super::super) fn late_after(&self) -> Option<Duration> {
        Some(self.answered_within()? + self.put_off())
    }

    /// The time within which a TPDU is answered, if the answer is not late.
    fn answered_within(&self) -> Option<Duration> {
        let thin = self.thin.as_ref().filter(|_| !self.has_new())?;
        let patience = thin.patience(&self.rtt)?;
        Some(patience + self.ack_flush + self.board.reorder_window())
    }

    /// The view from which the repair for a goal is chosen, once there is something to see.
    pub(in super::super::super) fn repair_view(&self) -> Option<RepairView> {
        let thin = self.thin.as_ref()?;
        thin.allowed.goal()?;
        Some(RepairView {
            shape: thin.shape(&self.rtt, self.answered_within()?)?,
            loss: thin.pattern.loss(),
            loss_error: thin.pattern.error(),
            behind_a_loss: thin.pattern.behind_a_loss(),
            plan: thin.plan,
        })
    }

    /// Lets copies follow the repetition that just left, if they are worth it.
    pub(in super::super) fn copy_repetition(&mut self, seq: TpduSeq, len: usize) {
        if let Some(thin) = &mut self.thin {
            thin.on_repeated(len);
        }
        let patience = self.late_after();
        let entry = self.board.get(seq).filter(|entry| !entry.is_withdrawn);
        let Some((attempts, losses)) = entry.map(|entry| (entry.attempts, entry.losses())) else {
            return;
        };
        if !self.copies_are_bounded() {
            let thin = self.thin.as_mut();
            let copies = thin.map_or(0, |thin| thin.copies_of_bulk(losses, len));
            self.copies.follow_by(seq, copies);
            return;
        }
        let Some(patience) = patience else {
            return;
        };
        let several = self.board.repeated().nth(1).is_some();
        let mends_more = several && self.has_room_for(self.board.repeated());
        if let Some(thin) = &mut self.thin {
            let copies = thin.copies(attempts, len, patience);
            if thin.symbols.is_some() && mends_more {
                thin.symbols_due = thin.symbols_due.saturating_add(copies);
            } else {
                self.copies.follow_by(seq, copies);
            }
        }
    }

    /// Lets repair symbols follow a message that left for the first time, as the plan has it. A message that nothing is
    /// unconfirmed beside is copied.
    pub(in super::super) fn repair_ahead(&mut self, now: Instant, seq: TpduSeq, len: usize) {
        let is_thin = self.copies_are_bounded();
        let Some(patience) = self.answered_within().filter(|_| is_thin) else {
            // Of bulk no symbol goes ahead.
            self.board.wait_for_symbols(Duration::ZERO);
            return;
        };
        let spanned = self.ahead_spans(seq);
        let several = spanned != seq && self.has_room_for(self.board.open());
        if let Some(thin) = &mut self.thin {
            thin.replan(now, &self.rtt, patience);
            let goes_ahead = thin.plan.ahead_eighths > 0;
            let wait = if goes_ahead {
                SYMBOL_WAIT
            } else {
                thin.put_off()
            };
            self.board.wait_for_symbols(wait);
            let due = thin.ahead(len);
            if thin.symbols.is_some() && several {
                thin.ahead_due = due;
            } else {
                self.copies.follow_by(seq, due);
            }
        }
    }

    /// The first TPDU that a symbol ahead behind `newest` spans.
    fn ahead_spans(&self, newest: TpduSeq) -> TpduSeq {
        let near = |seq: &TpduSeq| newest.offset_from(*seq) < AHEAD_SPAN;
        self.board.open().find(near).unwrap_or(newest)
    }

    /// Sends repair symbols over windows under this name from now on, or none.
    pub(in super::super::super) fn use_windows(&mut self, named: Option<Named>) {
        if let Some(thin) = &mut self.thin {
            let before = thin.symbols.take().map(|(_, symbols)| symbols);
            thin.symbols = named.map(|named| (named, before.unwrap_or_default()));
            thin.symbols_due = 0;
            thin.ahead_due = 0;
        }
    }

    /// Whether a repair symbol over these fits the path in one piece.
    fn has_room_for(&self, mut spanned: impl Iterator<Item = TpduSeq>) -> bool {
        spanned.all(|seq| {
            let len = self.board.get(seq).map_or(0, |entry| entry.len as usize);
            len + SYMBOL_MORE <= self.payload_bytes
        })
    }

    pub(in super::super) fn has_symbol_due(&self) -> bool {
        let due = |thin: &Thin| thin.symbols_due > 0 || thin.ahead_due > 0;
        self.thin.as_ref().is_some_and(due) && !self.board.is_empty()
    }

    /// The next repair symbol: over what was repeated and is not confirmed, or ahead over all that is not.
    pub(in super::super) fn next_symbol(
        &mut self,
        now: Instant,
        scratch: &mut Vec<u8>,
    ) -> Option<Unit> {
        if !self.has_symbol_due() {
            return None;
        }
        let newest = TpduSeq(self.board.next_seq().0.wrapping_sub(1));
        let first = self.ahead_spans(newest);
        let thin = self.thin.as_mut()?;
        let (named, symbols) = thin.symbols.as_mut()?;
        let named = *named;
        let sent = (&self.board, &self.buffer);
        let (seq, window) = if thin.symbols_due > 0 {
            thin.symbols_due -= 1;
            symbols.write(self.board.repeated(), sent, scratch)?
        } else {
            thin.ahead_due -= 1;
            let spanned = self.board.open().filter(|seq| !seq.before(first));
            symbols.write(spanned, sent, scratch)?
        };
        self.board.on_symbol(now);
        Some(Unit {
            seq,
            kind: TransmitKind::Repair,
            position: 0,
            len: scratch.len(),
            is_copy: false,
            repair: None,
            window: Some((named, window)),
        })
    }

    /// Repeats what got no answer in time, though the path is not silent. Returns whether the path is silent.
    pub(in super::super) fn on_late(&mut self, now: Instant) -> bool {
        let Some(after) = self.late_after().filter(|_| !self.stalled) else {
            return false;
        };
        if self.is_silent(now) {
            return true;
        }
        match self.board.oldest_in_flight() {
            // It leaves again as soon as the rate allows.
            Some((seq, _)) if self.copies.remain_of(seq) => {
                self.timers.set(SenderTimer::Late, now + after);
            }
            _ => {
                self.board.on_late(now - after);
                self.arm_retransmission(now);
            }
        }
        false
    }

    /// Sets the timer for the answer to what was sent at `sent_at`.
    pub(in super::super) fn arm_late(&mut self, now: Instant, sent_at: Instant) {
        match self.late_after().filter(|_| !self.stalled) {
            Some(after) => self
                .timers
                .set(SenderTimer::Late, (sent_at + after).max(now)),
            None => self.timers.stop(SenderTimer::Late),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::aerotp::{ConnectionConfig, ModeRules, ThinRepair};

    #[test]
    fn a_flow_that_became_bulk_waits_for_no_symbol() {
        let config = ConnectionConfig {
            thin: Some(ThinRepair::default()),
            ..ConnectionConfig::default()
        };
        let mut sender = Sender::new(Instant::START, &config, ModeRules::of(config.mode), 1_000);
        sender.board.wait_for_symbols(SYMBOL_WAIT);
        assert_eq!(sender.write(Instant::START, &[0; 5_000]), 5_000);
        assert!(sender.next_unit(Instant::START, &mut Vec::new()).is_some());
        assert_eq!(sender.board.symbol_wait(), Duration::ZERO);
    }
}
