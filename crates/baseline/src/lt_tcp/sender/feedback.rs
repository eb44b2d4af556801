//! What feedback does to a sender.

use super::super::loss_estimate::share;
use super::super::redundancy::{LOSS_MAX, reactive};
use super::{Sender, Silence};
use crate::congestion::Acked;
use crate::wire::lt_tcp::{Feedback, REPORTS_MAX};
use core::ops::Range;
use fulmar_proto::units::Instant;

/// Acceptable feedback.
#[derive(Clone, Debug)]
pub(in crate::lt_tcp) struct FeedbackArrival {
    /// The position expected next.
    pub(in crate::lt_tcp) ack: u64,
    /// The window, from there.
    pub(in crate::lt_tcp) window: u64,
    /// What it says of units.
    pub(in crate::lt_tcp) feedback: Feedback,
    /// Its runs as positions.
    pub(in crate::lt_tcp) runs: Vec<Range<u64>>,
    /// Whether a congestion mark is echoed.
    pub(in crate::lt_tcp) echoes_congestion: bool,
}

/// A segment that says that the window was reduced may be lost; so many say it.
const REDUCED_TOLD: u8 = 3;
/// What a mark leaves of the window: 4/5, as RFC 8511 recommends, since a queue that marks is far
/// from overflowing.
const MARK_KEEPS: (u64, u64) = (4, 5);
/// The chance that what leaves after a timeout brings an answer, if the way back loses as much.
const ANSWERED: f64 = 0.9;
/// At the least one unit as it was and one of parity.
const SILENT_UNITS_MIN: u8 = 2;

impl Sender {
    /// Takes feedback whose acknowledgement lies between `una` and what was sent, and says how many
    /// octets it acknowledges newly.
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
                // What was lost was lost to errors: a queue would have marked what came through.
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
            // Those that arrived have their share of the octets that left.
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

    /// Takes the acknowledgement and the window of any segment; says how many octets are newly
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
        // Parity is made of whole blocks.
        let keep = self.blocks.front().map_or(self.next, |block| block.start);
        self.buffer.release(keep.min(self.una));
        self.on_progress(now);
        self.wait_for_window(now);
        acked
    }

    /// Something new came back.
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

    /// What the receiver has of each block.
    fn take_reports(&mut self, feedback: &Feedback) {
        // The oldest blocks are reported first: of one that is left out before another, or where
        // there was room for more, nothing arrived.
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

    /// The window shrinks, once in a round trip (RFC 3168).
    fn on_mark(&mut self, now: Instant) {
        if self.reduced_until.is_some() {
            return;
        }
        self.counts.marks += 1;
        // The control halves what it is told to reduce.
        let kept = 2 * MARK_KEEPS.0 * self.control.window() / MARK_KEEPS.1;
        self.control.on_loss(now, kept);
        self.reduced_until = Some(self.flight.next());
        self.marked_at = Some(now);
        self.tell_reduced = REDUCED_TOLD;
    }

    /// Settles what left, and asks for parity where that shows that too little will come.
    pub(super) fn settle(&mut self, now: Instant, in_time: bool) {
        while let Some(sent) = self.flight.settle(in_time) {
            let Some(number) = sent.block else {
                // A FIN that arrived is acknowledged as soon as all before it is here.
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

    /// One round of RFEC for each block that cannot be whole with what is out.
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

    /// How many units make an answer likely.
    pub(super) fn units_until_answer(&self) -> u8 {
        // Whether a unit brings an answer takes two ways.
        let arrives = 1.0 - self.loss.0.min(LOSS_MAX);
        let units = reactive(1, 1.0 - arrives * arrives, ANSWERED);
        u8::try_from(units).unwrap_or(u8::MAX)
    }

    /// A silence begins or goes on: little leaves.
    pub(super) fn fall_silent(&mut self, unmarked: bool) {
        self.silence = Some(Silence {
            allowance: self.units_until_answer().max(SILENT_UNITS_MIN),
            uncoded: 1,
            unmarked: self.silence.map_or(unmarked, |silence| silence.unmarked),
        });
    }
}
