//! The sender without answers: timeouts, and probes of a path that is silent.

use super::super::counters::Counters;
use super::thin::Thin;
use super::{Sender, SenderTimer};
use crate::machine::Deadline;
use crate::trace::{Trace, TraceRecord};
use crate::units::{Duration, Instant};

/// The number of flush times without an acknowledgement before a TPDU's timeout, since
/// acknowledgements are lost too.
const MACKS_LOST_FOR_TIMEOUT: u32 = 4;
/// The number of flush times without one before the path counts as down. At 50 % loss that is wrong
/// one time in a million.
const MACKS_LOST_FOR_SILENCE: u32 = 20;
/// Consecutive silent timeouts for one doubling of the timeout: a single lost probe is common on
/// these links and must not slow recovery.
const SILENCES_PER_BACK_OFF: u32 = 2;
/// The silence into which thin flows with a deadline are written.
const SILENCE_WRITTEN_INTO: Duration = Duration::from_secs(2);
/// The probes for a first answer. At 40 % loss each way two connections in a hundred get no answer to the first TPDU and
/// to all of these.
const FIRST_PROBES_MAX: u32 = 8;

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

    /// Whether what is written leaves though the path is silent: a thin flow whose messages are due soon costs little, and each
    /// of them finds out whether the path is back.
    fn may_go_on(&self, now: Instant) -> bool {
        let silence = now.saturating_since(self.unanswered_since.unwrap_or(now));
        self.goal().is_some() && silence < SILENCE_WRITTEN_INTO
    }

    /// Whether nothing leaves but probes.
    pub(super) fn only_probes(&self) -> bool {
        self.stalled && !(self.goes_on && self.has_window_to_spare())
    }

    /// Handles a missing answer. If nothing at all was heard since the oldest TPDU left, the path
    /// counts as down and only probes are sent; else only that TPDU's answer is missing.
    fn on_timeout(&mut self, now: Instant, counters: &mut Counters, trace: &mut Trace) {
        let Some((seq, _)) = self.board.oldest_in_flight() else {
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
            self.goes_on = self.may_go_on(now);
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
        self.probe = self.board.oldest_in_flight().map(|(seq, _)| seq);
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
            if self.has_new() && !self.window_open() {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repair::{Deliver, DeliveryGoal, DeliveryOrder};
    use crate::transport::aerotp::{ConnectionConfig, ModeRules, ThinRepair};

    /// A sender that writes into a path from which nothing is heard, once only probes leave, and the time.
    fn in_silence(thin: ThinRepair) -> (Sender, Instant) {
        let config = ConnectionConfig {
            thin: Some(thin),
            ..ConnectionConfig::default()
        };
        let mut sender = Sender::new(&config, ModeRules::of(config.mode), 1_000);
        let (mut counters, mut trace) = (Counters::default(), Trace::default());
        let mut now = Instant::START;
        sender.expect_round_trip(now, Duration::from_millis(40));
        for _ in 0..100 {
            assert!(sender.write_message(now, &[0; 100], now));
            sender.handle_deadline(now, &mut counters, &mut trace);
            while sender.next_unit(now, &mut Vec::new()).is_some() {}
            if sender.stalled {
                break;
            }
            now += Duration::from_millis(20);
        }
        assert!(sender.stalled);
        (sender, now)
    }

    #[test]
    fn a_thin_flow_with_a_deadline_goes_on_in_silence_for_a_while_and_no_other_does() {
        let goal = DeliveryGoal {
            deadline: Duration::from_millis(150),
            missed_millionths: 10_000,
            deliver: Deliver::All,
            order: DeliveryOrder::Kept,
        };
        let with_goal = ThinRepair::default().with_goal(goal).expect("sound");
        for (thin, goes_on) in [(with_goal, true), (ThinRepair::default(), false)] {
            let (mut sender, mut now) = in_silence(thin);
            assert!(sender.write_message(now, &[0; 100], now));
            assert_eq!(sender.wants_to_send(), goes_on);
            let sent = sender.next_unit(now, &mut Vec::new()).is_some();
            assert_eq!(sent, goes_on);
            assert!(!sender.wants_to_send() || !goes_on, "nothing is repeated");
            // Not for ever.
            let (mut counters, mut trace) = (Counters::default(), Trace::default());
            for _ in 0..100 {
                now += SILENCE_WRITTEN_INTO / 50;
                sender.handle_deadline(now, &mut counters, &mut trace);
                while sender.next_unit(now, &mut Vec::new()).is_some() {}
            }
            assert!(sender.write_message(now, &[0; 100], now));
            assert!(!sender.wants_to_send());
        }
    }
}
