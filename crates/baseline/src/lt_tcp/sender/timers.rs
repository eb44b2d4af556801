//! The retransmission timer with its probe, the reordering timer and the persist timer.

use super::LtTcpSender;
use fulmar_proto::machine::Deadline;
use fulmar_proto::units::{Duration, Instant};

/// The retransmission timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Timer {
    at: Instant,
    /// Whether it is for a probe: nothing is held for lost yet, and an answer is asked for.
    probes: bool,
}

/// The units that the oldest block sends after a timeout, if nothing is known of it; the silence's
/// allowance is mostly smaller.
const SILENT_QUEUE: u8 = 16;
/// The number of doublings with which any timeout reaches its maximum.
const DOUBLINGS_MAX: u32 = 16;

impl LtTcpSender {
    /// The deadline at which to call [`LtTcpSender::handle_deadline`].
    pub(in crate::lt_tcp) fn next_deadline(&self) -> Option<Deadline> {
        let named = |at: Option<Instant>, why| at.map(|at| Deadline { at, why });
        let timer = self.timer.map(|timer| Deadline {
            at: timer.at,
            why: if timer.probes {
                "tail probe"
            } else {
                "retransmission timeout"
            },
        });
        let waits = Deadline::earlier(
            named(self.settle_at, "reordering window"),
            named(self.persist, "window probe"),
        );
        Deadline::earlier(timer, waits)
    }

    /// Whether an answer is still to come.
    pub(super) fn is_waiting(&self) -> bool {
        self.flight.is_out() || self.una < self.sent_end()
    }

    /// Starts the timer: first for a probe, where the round trip is known (as the tail loss probe
    /// of RFC 8985), then for the timeout.
    pub(super) fn start_timer(&mut self, now: Instant) {
        let rto = self.rto();
        let probe = self.rtt.smoothed().map(|rtt| rtt * 2);
        let probe = probe.filter(|wait| !self.probed && self.silence.is_none() && *wait < rto);
        self.timer = Some(Timer {
            at: now + probe.unwrap_or(rto),
            probes: probe.is_some(),
        });
    }

    /// The time for which a transmission that was overtaken may still arrive.
    pub(super) fn reordering_window(&self) -> Duration {
        self.rtt.smoothed().unwrap_or(self.config.rto.initial) / 4
    }

    /// Starts the persist timer if only the peer's window holds data back.
    pub(in crate::lt_tcp) fn wait_for_window(&mut self, now: Instant) {
        let waits = self.buffer.end() > self.next
            && self.edge <= self.next
            && !self.is_waiting()
            && self.blocks.is_empty();
        if self.edge > self.next {
            self.persist_count = 0;
        }
        if !waits {
            self.persist = None;
        } else if self.persist.is_none() {
            let factor = 1_u32 << self.persist_count.min(DOUBLINGS_MAX);
            let wait = self.rto().saturating_mul(factor);
            self.persist = Some(now + wait.min(self.config.rto.max));
        }
    }

    /// Handles the timers that have run out. Returns `false` if nothing came back for so many tries
    /// that the connection should be given up.
    pub(in crate::lt_tcp) fn handle_deadline(&mut self, now: Instant) -> bool {
        if self.settle_at.is_some_and(|at| at <= now) {
            self.settle_at = None;
            self.settle(now, true);
        }
        if self.persist.is_some_and(|at| at <= now) {
            self.persist = None;
            self.persist_count += 1;
            self.probes_due = self.units_until_answer();
        }
        let Some(timer) = self.timer.filter(|timer| timer.at <= now) else {
            return true;
        };
        self.timer = None;
        if !self.is_waiting() {
            return true;
        }
        if timer.probes {
            self.probed = true;
            self.probes_due = self.units_until_answer();
            self.start_timer(now);
            return true;
        }
        if self.tries >= u32::from(self.config.data_retries) {
            return false;
        }
        self.tries += 1;
        self.counts.timeouts += 1;
        self.time_out(now);
        true
    }

    fn time_out(&mut self, now: Instant) {
        let window = self.control.window();
        let marked = self.was_marked_lately(now);
        if self.silence.is_none() {
            // Without a mark one halving must do, until the reason for the silence is known.
            if marked {
                self.control.on_timeout(now, window, false);
            } else {
                self.control.on_loss(now, window);
            }
        }
        self.rtt.on_silence();
        self.flight.give_up();
        for block in &mut self.blocks {
            block.queued = 0;
        }
        self.settle(now, true);
        self.fin_out = false;
        self.fall_silent(!marked);
        // The oldest block is sent again, whatever feedback said of it.
        if let Some(block) = self.blocks.front_mut() {
            block.queued = block.queued.max(u16::from(SILENT_QUEUE));
        } else {
            self.probes_due = self.units_until_answer();
        }
        self.start_timer(now);
    }

    fn was_marked_lately(&self, now: Instant) -> bool {
        let rtt = self.rtt.smoothed().unwrap_or(self.config.rto.initial);
        self.marked_at
            .is_some_and(|at| now.saturating_since(at) <= rtt + self.rto())
    }
}
