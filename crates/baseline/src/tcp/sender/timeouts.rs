//! The retransmission timer and the persist timer.

use super::{Frto, Stage, TcpSender};
use fulmar_proto::machine::Deadline;
use fulmar_proto::units::{Duration, Instant};

/// The number of doublings with which any timeout reaches its maximum.
const PERSIST_DOUBLINGS_MAX: u32 = 16;

impl TcpSender {
    /// The deadline at which to call [`TcpSender::handle_deadline`].
    pub(in crate::tcp) fn next_deadline(&self) -> Option<Deadline> {
        let retransmit = self.timer.map(|at| Deadline {
            at,
            why: "retransmission timeout",
        });
        let persist = self.persist.map(|at| Deadline {
            at,
            why: "window probe",
        });
        Deadline::earlier(retransmit, persist)
    }

    /// Starts the persist timer if only the peer's window holds data back.
    pub(in crate::tcp) fn wait_for_window(&mut self, now: Instant) {
        let wanted = self.end().saturating_sub(self.next);
        let peer = self.edge.saturating_sub(self.next);
        if self.flight() > 0 || wanted == 0 || peer >= wanted.min(self.mss) {
            self.persist = None;
            self.persist_count = 0;
        } else if self.persist.is_none() {
            self.persist = Some(now + self.persist_wait());
        }
    }

    fn persist_wait(&self) -> Duration {
        let factor = 1_u32 << self.persist_count.min(PERSIST_DOUBLINGS_MAX);
        let wait = self.rto().saturating_mul(factor);
        wait.min(self.config.rto.max)
    }

    /// Handles the timers that have run out. Returns `false` if nothing new came for so many tries
    /// that the connection should be given up.
    pub(in crate::tcp) fn handle_deadline(&mut self, now: Instant) -> bool {
        if self.persist.is_some_and(|at| at <= now) {
            self.persist_count += 1;
            self.probe_now = true;
            self.persist = Some(now + self.persist_wait());
        }
        if self.timer.is_none_or(|at| at > now) {
            return true;
        }
        self.timer = None;
        if self.flight() == 0 {
            return true;
        }
        if self.tries >= u32::from(self.config.data_retries) {
            return false;
        }
        self.tries += 1;
        self.counts.timeouts += 1;
        let begins = !matches!(self.stage, Stage::Loss { .. });
        self.counts.timeout_repairs += u64::from(begins);
        self.time_out(now);
        true
    }

    fn time_out(&mut self, now: Instant) {
        let again = matches!(self.stage, Stage::Loss { .. }) && self.board.is_head_resent();
        // RFC 5682, section 2.1, step 1: an earlier repair is not over.
        let is_repairing = self.stage != Stage::Open;
        let base = self.reduction_base();
        if self.edge > self.una {
            self.control.on_timeout(now, base, again);
            self.tell_reduced = true;
        }
        if !self.sack || self.board.is_head_sacked() {
            // The receiver took its reports back (RFC 2018, section 8), or they were guesses.
            self.board.forget_sacks();
        }
        self.board.hold_all_lost();
        let doubt = self.config.recovery.frto && !is_repairing;
        self.stage = Stage::Loss {
            until: self.next,
            frto: if doubt { Frto::First } else { Frto::Off },
        };
        self.recover = self.next;
        self.duplicates = 0;
        self.extra_sent = 0;
        self.reduced_until = None;
        self.rtt.on_silence();
        self.resend_now = self.board.next_lost(self.mss);
    }
}
