//! The effect of feedback on a sender.

use super::super::loss_estimate::share;
use super::super::redundancy::{LOSS_MAX, reactive};
use super::{LtTcpSender, Silence};
use crate::congestion::Acked;
use crate::wire::lt_tcp::{LtTcpFeedback, REPORTS_MAX};
use core::ops::Range;
use fulmar_proto::units::Instant;

/// Acceptable feedback.
#[derive(Clone, Debug)]
pub(in crate::lt_tcp) struct FeedbackArrival {
    /// The position expected next.
    pub(in crate::lt_tcp) ack: u64,
    /// The window, counted from that position.
    pub(in crate::lt_tcp) window: u64,
    /// The feedback on units.
    pub(in crate::lt_tcp) feedback: LtTcpFeedback,
    /// Its runs as positions.
    pub(in crate::lt_tcp) runs: Vec<Range<u64>>,
    /// Whether a congestion mark is echoed.
    pub(in crate::lt_tcp) echoes_congestion: bool,
}

/// The number of segments that tell that the window was reduced, because any may be lost.
const REDUCED_TOLD: u8 = 3;
/// The share of the window that stays after a mark: 4/5, as RFC 8511 recommends, since a queue that
/// marks is far from overflowing.
const MARK_KEEPS: (u64, u64) = (4, 5);
/// The probability that the units sent after a timeout bring an answer, if the way back loses as
/// much.
const ANSWERED: f64 = 0.9;
/// The fewest units sent after a timeout: one as it was, and one of parity.
const SILENT_UNITS_MIN: u8 = 2;

impl LtTcpSender {
    /// Takes feedback whose acknowledgement lies between `una` and the last position sent. Returns
    /// the number of octets newly acknowledged.
    pub(in crate::lt_tcp) fn on_feedback(&mut self, now: Instant, arrival: FeedbackArrival) -> u64 {
        let acked = self.on_ack(now, arrival.ack, arrival.window);
        let Some(left) = self.flight.on_feedback(arrival.feedback.arrived_end) else {
            return acked;
        };
        if let Some(sent_at) = left.sent_at {
            self.rtt.on_sample(now.saturating_since(sent_at));
        } else if left.advanced {
            self.rtt.on_progress();
        }
        let arrived = arrival.feedback.arrivals.wrapping_sub(self.arrivals);
        self.arrivals = arrival.feedback.arrivals;
        if left.advanced {
            if self.silence.is_some_and(|silence| silence.unmarked) && !arrival.echoes_congestion {
                // The losses were errors: a queue would have marked the segments that came through.
                self.control.undo(now);
            }
            self.on_progress(now);
        }
        if self
            .reduced_until
            .is_some_and(|until| self.flight.end() > until)
        {
            self.reduced_until = None;
        }
        if left.count > 0 {
            // The units that arrived have their share of the octets that left.
            let arrived = u64::from(arrived).min(left.count);
            self.grow(now, left.octets * arrived / left.count);
        }
        self.loss = (
            share(arrival.feedback.loss),
            share(arrival.feedback.deviation),
        );
        self.runs = arrival.runs;
        self.take_reports(&arrival.feedback);
        if arrival.echoes_congestion {
            self.on_mark(now);
        }
        self.settle(now, false);
        self.wait_for_window(now);
        acked
    }

    /// Takes the acknowledgement and the window of any segment. Returns the number of octets newly
    /// acknowledged.
    pub(in crate::lt_tcp) fn on_ack(&mut self, now: Instant, ack: u64, window: u64) -> u64 {
        let acked = ack.saturating_sub(self.una);
        self.una = self.una.max(ack);
        if ack == self.una {
            self.set_peer_window(window);
        }
        if acked == 0 {
            return 0;
        }
        while self.blocks.front().is_some_and(|b| b.end() <= self.una) {
            self.blocks.pop_front();
        }
        // Parity is made from whole blocks.
        let keep = self.blocks.front().map_or(self.next, |block| block.start);
        self.buffer.release(keep.min(self.una));
        self.on_progress(now);
        self.wait_for_window(now);
        acked
    }

    /// Notes that something new came back.
    fn on_progress(&mut self, now: Instant) {
        self.tries = 0;
        self.probed = false;
        self.silence = None;
        self.timer = None;
        if self.is_waiting() {
            self.start_timer(now);
        }
    }

    fn grow(&mut self, now: Instant, octets: u64) {
        let used = core::mem::take(&mut self.limited);
        if used && octets > 0 && self.reduced_until.is_none() {
            let rtt = self.rtt.smoothed();
            self.control.on_acked(Acked { now, octets, rtt });
        }
    }

    /// Takes the receiver's reports on blocks.
    fn take_reports(&mut self, feedback: &LtTcpFeedback) {
        // The oldest blocks are reported first. If a block is left out before another one, or where
        // there was room for more, none of its units arrived.
        let mut told = feedback.reports.len() < REPORTS_MAX;
        for block in self.blocks.iter_mut().rev() {
            let id = block.id();
            let report = feedback.reports.iter().find(|report| report.block == id);
            told |= report.is_some();
            block.known = told;
            if block.known {
                let k = block.shape.k;
                block.needed = report.map_or(k, |report| report.needed.min(k));
            }
            if block.needed == 0 {
                block.queued = 0;
            }
        }
    }

    /// Shrinks the window, once in a round trip (RFC 3168).
    fn on_mark(&mut self, now: Instant) {
        if self.reduced_until.is_some() {
            return;
        }
        self.counts.marks += 1;
        // The control halves the amount that it is told to reduce.
        let kept = 2 * MARK_KEEPS.0 * self.control.window() / MARK_KEEPS.1;
        self.control.on_loss(now, kept);
        self.reduced_until = Some(self.flight.next());
        self.marked_at = Some(now);
        self.tell_reduced = REDUCED_TOLD;
    }

    /// Settles transmissions that left, and asks for parity where too little will come.
    pub(super) fn settle(&mut self, now: Instant, in_time: bool) {
        while let Some(sent) = self.flight.settle(in_time) {
            let Some(number) = sent.block else {
                // A FIN that arrived is acknowledged as soon as everything before it has arrived.
                self.fin_out = false;
                continue;
            };
            let first = self.blocks.front().map_or(0, |block| block.number);
            let index = number.checked_sub(first);
            let index = index.and_then(|index| usize::try_from(index).ok());
            if let Some(block) = index.and_then(|index| self.blocks.get_mut(index)) {
                block.open = block.open.saturating_sub(1);
                block.round = block.round.saturating_sub(u16::from(sent.reactive));
            }
        }
        self.plan_repair();
        self.settle_at = match self.settle_at {
            _ if !self.flight.has_doubtful() => None,
            None => Some(now + self.reordering_window()),
            at => at,
        };
    }

    /// Plans one round of RFEC for each block that cannot be completed by the units in flight.
    pub(super) fn plan_repair(&mut self) {
        let loss = self.expected_loss().max(self.loss.0);
        let chance = self.config.fec.reactive.value();
        for block in &mut self.blocks {
            let out = block.open + block.unsent();
            let needed = u16::from(block.needed);
            if block.known && block.round == 0 && block.queued == 0 && needed > out {
                let units = reactive(u32::from(block.needed), loss, chance);
                let units = u16::try_from(units).unwrap_or(u16::MAX);
                block.queued = units.saturating_sub(out).max(needed - out);
            }
        }
    }

    /// The number of units that make an answer likely.
    pub(super) fn units_until_answer(&self) -> u8 {
        // A unit brings an answer only if it and the answer arrive.
        let arrives = 1.0 - self.loss.0.min(LOSS_MAX);
        let units = reactive(1, 1.0 - arrives * arrives, ANSWERED);
        u8::try_from(units).unwrap_or(u8::MAX)
    }

    /// Begins or continues a silence: few units leave.
    pub(super) fn fall_silent(&mut self, unmarked: bool) {
        self.silence = Some(Silence {
            allowance: self.units_until_answer().max(SILENT_UNITS_MIN),
            uncoded: 1,
            unmarked: self.silence.map_or(unmarked, |silence| silence.unmarked),
        });
    }
}
