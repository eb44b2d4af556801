//! The sender without answers: timeouts, and probes of a path that is silent.

use super::super::counters::Counters;
use super::thin::Thin;
use super::{Sender, SenderTimer, Unit};
use crate::machine::Deadline;
use crate::trace::{Trace, TraceRecord};
use crate::units::{Duration, Instant};
use crate::wire::TpduSeq;

/// The number of flush times without an acknowledgement before a TPDU's timeout, since
/// acknowledgements are lost too.
const MACKS_LOST_FOR_TIMEOUT: u32 = 4;
/// The number of flush times without one before the path counts as down. At 50 % loss that is wrong
/// one time in a million.
const MACKS_LOST_FOR_SILENCE: u32 = 20;
/// Consecutive silent timeouts for one doubling of the timeout: a single lost probe is common on
/// these links and must not slow recovery.
const SILENCES_PER_BACK_OFF: u32 = 2;
/// The probes for a first answer. At 40 % loss each way two connections in a hundred get no answer to the first TPDU and
/// to all of these.
const FIRST_PROBES_MAX: u32 = 8;
/// The TPDUs of a flow with a deadline that ask in one silence by leaving as they are written. Bursts of losses are counted in
/// packets on many links, so whoever sends little sits in one for long; one of eight packets in the mean is longer than
/// this once in seventy times.
const NEW_IN_SILENCE_MAX: u32 = 32;

impl Sender {
    /// The timeout, including the time that the peer may wait before it answers, the path's
    /// reordering, and the lateness of answers that thin flows have learned.
    pub(in super::super) fn rto(&self) -> Duration {
        let slack = self.thin.as_ref().map_or(Duration::ZERO, Thin::slack);
        self.rtt.rto()
            + self.ack_flush * MACKS_LOST_FOR_TIMEOUT
            + self.board.reorder_window()
            + slack
            + self.put_off()
    }

    pub(in super::super) fn handle_deadline(
        &mut self,
        now: Instant,
        counters: &mut Counters,
        trace: &mut Trace,
    ) {
        while let Some(timer) = self.timers.expire(now) {
            match timer {
                SenderTimer::Retransmission => self.on_timeout(now, counters, trace),
                SenderTimer::Retention => self.release(now),
                SenderTimer::FirstAnswer => self.on_no_first_answer(now),
                SenderTimer::Late => {
                    if self.on_late(now) {
                        self.on_timeout(now, counters, trace);
                    }
                }
            }
        }
        self.board.handle_deadline(now);
        self.parity.handle_deadline(now);
        self.note_losses(now, counters, trace);
    }

    /// Whether nothing at all was heard for so long that the path counts as down.
    pub(super) fn is_silent(&self, now: Instant) -> bool {
        let silence = now.saturating_since(self.unanswered_since.unwrap_or(now));
        silence >= self.rto() + self.ack_flush * MACKS_LOST_FOR_SILENCE
    }

    /// Whether something new may leave although the path counts as down: of a flow with a deadline, which would miss it. There is a
    /// bound to what that puts on a path that is down.
    pub(super) fn asks_with_new(&self) -> bool {
        self.goal().is_some()
            && self.new_in_silence < NEW_IN_SILENCE_MAX
            && self.has_new()
            && self.window_open()
    }

    /// The next new TPDU in a silence, if it may leave.
    pub(super) fn next_new_in_silence(&mut self, now: Instant) -> Option<Unit> {
        self.drop_late(now);
        if !self.asks_with_new() {
            return None;
        }
        self.new_in_silence += 1;
        Some(self.new_unit(now))
    }

    /// Handles a missing answer. If nothing at all was heard since the oldest TPDU left, the path
    /// counts as down and only probes are sent; else only that TPDU's answer is missing.
    fn on_timeout(&mut self, now: Instant, counters: &mut Counters, trace: &mut Trace) {
        let in_flight = self.board.oldest_in_flight().map(|(seq, _)| seq);
        let Some(seq) = in_flight.or_else(|| self.lost_in_silence()) else {
            if self.has_new() {
                self.window_probe = true;
            }
            return;
        };
        let rto = self.rto();
        if self.stalled || self.is_silent(now) {
            if !self.stalled {
                self.stalled = true;
                counters.stalls += 1;
                trace.note(now, TraceRecord::Stalled);
            }
            self.silences += 1;
            if self.silences.is_multiple_of(SILENCES_PER_BACK_OFF) {
                self.rtt.on_silence();
            }
            self.probe = Some(seq);
            self.timers
                .set(SenderTimer::Retransmission, now + self.rto());
        } else if self.copies.remain_of(seq) {
            // It leaves again as soon as the rate allows.
            self.timers.set(SenderTimer::Retransmission, now + rto);
        } else {
            self.board.on_timeout(now - rto);
            self.arm_retransmission(now);
        }
    }

    /// In a silence, the oldest TPDU that is held lost: where all that was under way went down with its paths, it asks.
    fn lost_in_silence(&mut self) -> Option<TpduSeq> {
        self.stalled.then(|| self.board.first_lost()).flatten()
    }

    /// Sets the timer for probes as long as nothing has answered.
    fn arm_first_answer(&mut self, now: Instant) {
        let pause = self.rtt.probe_pause();
        match pause.filter(|_| self.first_probes < FIRST_PROBES_MAX) {
            Some(pause) => self
                .timers
                .set_if_idle(SenderTimer::FirstAnswer, now + pause),
            None => self.timers.stop(SenderTimer::FirstAnswer),
        }
    }

    /// Takes a round trip that was learned elsewhere; the timer of what is in flight follows it.
    pub(in super::super) fn expect_round_trip(&mut self, now: Instant, round_trip: Duration) {
        self.rtt.expect(round_trip);
        self.arm_retransmission(now);
    }

    /// Takes a challenge: the time since the first TPDU is a round trip, unless the challenge may answer a probe.
    pub(in super::super) fn on_challenge(&mut self, now: Instant) {
        if let (0, Some(since)) = (self.first_probes, self.unanswered_since) {
            self.expect_round_trip(now, now.saturating_since(since));
        }
    }

    /// Asks with the TPDU that was sent least recently. Nothing is held for lost: a long path may just not have
    /// answered yet.
    fn on_no_first_answer(&mut self, now: Instant) {
        let oldest = self.board.oldest_in_flight();
        if let Some((seq, _)) = oldest.filter(|_| self.rtt.probe_pause().is_some()) {
            self.probe = Some(seq);
            self.first_probes += 1;
            self.arm_first_answer(now);
        }
    }

    /// Handles the return of the path, as the layer below reports it. Nobody knows whether the
    /// TPDUs that were out have arrived: one TPDU asks.
    pub(in super::super) fn on_path_back(&mut self, now: Instant) {
        if !self.rules.confirms() {
            return;
        }
        self.silences = 0;
        self.rtt.on_progress();
        self.unanswered_since = None;
        let in_flight = self.board.oldest_in_flight().map(|(seq, _)| seq);
        self.probe = in_flight.or_else(|| self.lost_in_silence());
        if self.probe.is_some() {
            self.timers
                .set(SenderTimer::Retransmission, now + self.rto());
        }
    }

    pub(in super::super) fn next_deadline(&self) -> Option<Deadline> {
        let own = self.timers.next_deadline();
        let board = self.board.next_deadline();
        Deadline::earlier(Deadline::earlier(own, board), self.parity.next_deadline())
    }

    pub(super) fn arm_retransmission(&mut self, now: Instant) {
        if !self.rules.confirms() {
            return;
        }
        let Some((_, sent_at)) = self.board.oldest_in_flight() else {
            self.unanswered_since = None;
            if self.lost_in_silence().is_some() || self.has_new() && !self.window_open() {
                self.timers
                    .set_if_idle(SenderTimer::Retransmission, now + self.rto());
            } else {
                self.timers.stop(SenderTimer::Retransmission);
            }
            self.timers.stop(SenderTimer::Late);
            return;
        };
        self.arm_late(now, sent_at);
        self.unanswered_since.get_or_insert(now);
        self.arm_first_answer(now);
        if self.stalled {
            self.timers
                .set_if_idle(SenderTimer::Retransmission, now + self.rto());
        } else {
            self.timers
                .set(SenderTimer::Retransmission, (sent_at + self.rto()).max(now));
        }
    }
}
