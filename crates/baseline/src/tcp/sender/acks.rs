//! The effect of an acknowledgement on a sender.

use super::rate_reduction::RateReduction;
use super::{Frto, Stage, TcpSender};
use crate::congestion::Acked;
use crate::tcp::config::ReduceFrom;
use core::ops::Range;
use fulmar_proto::units::{Duration, Instant};

/// An acceptable acknowledgement.
#[derive(Clone, Debug)]
pub(in crate::tcp) struct AckArrival {
    /// The position expected next.
    pub(in crate::tcp) ack: u64,
    /// The window, counted from that position.
    pub(in crate::tcp) window: u64,
    /// Whether the segment has neither data nor FIN.
    pub(in crate::tcp) bare: bool,
    /// Runs that arrived beyond a hole.
    pub(in crate::tcp) blocks: Vec<Range<u64>>,
    /// The age of the echoed timestamp.
    pub(in crate::tcp) echo_age: Option<Duration>,
    /// Whether a congestion mark is echoed.
    pub(in crate::tcp) echoes_congestion: bool,
    /// Whether the window field is newer than the one known (RFC 9293's WL1 and WL2).
    pub(in crate::tcp) updates_window: bool,
}

impl TcpSender {
    /// Takes an acknowledgement between `una` and `next`. Returns the number of octets newly
    /// acknowledged.
    pub(in crate::tcp) fn on_ack(&mut self, now: Instant, arrival: &AckArrival) -> u64 {
        // All arrivals: octets that are acknowledged, and octets reported beyond a hole.
        let delivered_before = self.una + self.board.sacked();
        let mut news = 0;
        if self.sack {
            for block in &arrival.blocks {
                if block.start >= arrival.ack && block.end <= self.next && block.start < block.end {
                    news += self.board.on_sacked(block);
                }
            }
        }
        let same_window = self.una + arrival.window == self.edge;
        let acked = arrival.ack.saturating_sub(self.una);
        if acked > 0 {
            self.on_advance(now, arrival, acked);
        }
        // RFC 6675 counts acknowledgements that tell something new, though they may advance, too;
        // RFC 5681 counts those that tell nothing new.
        let duplicate = if self.sack {
            news > 0
        } else {
            acked == 0 && arrival.ack == self.una && arrival.bare && same_window
        };
        if duplicate && self.flight() > 0 {
            self.on_duplicate(now, delivered_before);
        }
        self.reduce_in_proportion(delivered_before, acked > 0 && news == 0);
        if arrival.echoes_congestion {
            self.on_mark(now);
        }
        if arrival.updates_window && acked == 0 {
            self.set_peer_window(arrival.window);
        }
        if arrival.window == 0 {
            // A peer that tells of a shut window asks for patience; it is not silent.
            self.tries = 0;
        }
        self.wait_for_window(now);
        acked
    }

    fn on_advance(&mut self, now: Instant, arrival: &AckArrival, acked: u64) {
        let used = core::mem::take(&mut self.limited) || !self.config.growth.validation;
        let covered = self.board.on_acked_before(arrival.ack);
        self.una = arrival.ack;
        self.set_peer_window(arrival.window);
        self.buffer.release(arrival.ack.min(self.buffer.end()));
        self.duplicates = 0;
        self.extra_sent = 0;
        self.resend_now = None;
        self.sample(now, covered.sent_at, arrival.echo_age);
        if self.reduced_until.is_some_and(|until| self.una >= until) {
            self.reduced_until = None;
        }
        let mut restart_timer = true;
        match self.stage {
            Stage::Recovery { until, .. } if self.una >= until => {
                self.stage = Stage::Open;
                self.forget_guesses();
                if self.config.growth.at_recovery_end {
                    self.grow(now, acked);
                }
            }
            Stage::Recovery { partial, .. } => {
                self.on_partial();
                // RFC 6582, section 4, "impatient": a recovery that takes long ends by timeout.
                // With SACK RFC 6298's rule holds (RFC 6675, section 6).
                restart_timer = self.sack || !partial;
            }
            Stage::Loss { until, frto } => {
                if self.una >= until {
                    self.stage = Stage::Open;
                }
                self.grow_after_timeout(now, acked, until);
                self.doubt_timeout(now, until, frto, covered.any_original);
            }
            Stage::Open => {
                self.forget_guesses();
                if used {
                    self.grow(now, acked);
                }
            }
        }
        self.tries = 0;
        if self.flight() == 0 {
            self.timer = None;
        } else if restart_timer || self.timer.is_none() {
            self.timer = Some(now + self.rto());
        }
    }

    /// Grows the window for an acknowledgement that came in the repair after a timeout.
    fn grow_after_timeout(&mut self, now: Instant, octets: u64, until: u64) {
        let above = self.una.saturating_sub(until);
        if self.una < until || self.config.growth.at_repair_end {
            self.grow(now, octets);
        } else if above >= self.mss {
            self.grow(now, above);
        }
    }

    fn grow(&mut self, now: Instant, octets: u64) {
        let rtt = self.rtt.smoothed();
        self.control.on_acked(Acked { now, octets, rtt });
    }

    /// Takes a sample of the round trip, if there is one.
    fn sample(&mut self, now: Instant, sent_at: Option<Instant>, echo_age: Option<Duration>) {
        if let Some(sent_at) = sent_at {
            self.rtt.on_sample(now.saturating_since(sent_at));
        } else if let Some(age) = echo_age {
            if self.config.samples_of_retransmissions {
                self.rtt.on_sample(age);
            } else {
                self.rtt.on_progress();
            }
        }
    }

    /// Handles a partial acknowledgement: the next hole is lost, too.
    fn on_partial(&mut self) {
        if let Stage::Recovery { partial, .. } = &mut self.stage {
            *partial = true;
        }
        if self.sack {
            self.detect_lost();
        } else {
            self.resend_head();
        }
    }

    /// Retransmits the oldest segment, which is lost, whatever the window. Without SACK nothing is
    /// known of the segments behind it, and a full segment is sent from there.
    fn resend_head(&mut self) {
        self.board.hold_head_lost();
        self.resend_now = if self.sack {
            self.board.next_lost(self.mss)
        } else {
            Some(self.una..self.next.min(self.una + self.mss))
        };
    }

    /// Forgets, without SACK, the guesses that duplicates led to.
    fn forget_guesses(&mut self) {
        if !self.sack {
            self.board.forget_sacks();
        }
    }

    /// Holds segments lost by the arrivals above them.
    fn detect_lost(&mut self) {
        if self.sack {
            let duplicates = usize::from(self.config.recovery.duplicates);
            self.board.detect_lost(duplicates);
        }
    }

    fn on_duplicate(&mut self, now: Instant, delivered_before: u64) {
        let threshold = u32::from(self.config.recovery.duplicates);
        if threshold == 0 {
            return;
        }
        // Duplicates after a timeout may answer retransmissions that were not needed (RFC 6582,
        // section 4). They also end F-RTO's doubts (RFC 5682, steps 2a and 3a).
        if let Stage::Loss { frto, .. } = &mut self.stage {
            *frto = Frto::Off;
            return;
        }
        if !self.sack {
            self.board.guess_sacked();
        }
        self.detect_lost();
        if self.stage == Stage::Open {
            self.duplicates += 1;
            let told = self.duplicates >= threshold || (self.sack && self.board.is_head_lost());
            let careful = self.config.recovery.careful && !self.sack && self.recover > 0;
            if told && self.una >= self.recover + u64::from(careful) {
                self.enter_recovery(now, delivered_before);
            }
        }
    }

    fn enter_recovery(&mut self, now: Instant, delivered_before: u64) {
        self.counts.fast_recoveries += 1;
        let reduces = self.config.recovery.rate_reduction;
        // The octets of this acknowledgement count as delivered in the recovery.
        let flight = self.next.saturating_sub(delivered_before);
        let base = self.reduction_base();
        if self.reduced_until.is_none() {
            self.control.on_loss(now, base);
        }
        self.tell_reduced = true;
        self.stage = Stage::Recovery {
            until: self.next,
            partial: false,
            rescued: false,
            reduction: reduces.then(|| RateReduction::begin(flight)),
        };
        self.recover = self.next;
        self.duplicates = 0;
        self.resend_head();
        self.timer = Some(now + self.rto());
    }

    /// Updates the rate reduction of a recovery after an acknowledgement.
    fn reduce_in_proportion(&mut self, delivered_before: u64, is_safe: bool) {
        let delivered = (self.una + self.board.sacked()).saturating_sub(delivered_before);
        let (pipe, mss) = (self.board.pipe(), self.mss);
        let threshold = self.control.threshold();
        if let Stage::Recovery {
            reduction: Some(reduction),
            ..
        } = &mut self.stage
        {
            reduction.on_ack(delivered, is_safe, pipe, threshold, mss);
        }
    }

    /// The amount of which a reduction takes its share.
    pub(super) fn reduction_base(&self) -> u64 {
        match self.config.recovery.reduce {
            // Octets sent by Limited Transmit do not count (RFC 5681, section 3.2, step 2).
            ReduceFrom::Flight => self.flight().saturating_sub(self.extra_sent),
            ReduceFrom::Window => self.control.window(),
            ReduceFrom::Pipe => self.board.pipe(),
        }
    }

    fn on_mark(&mut self, now: Instant) {
        if self.reduced_until.is_some() || self.stage != Stage::Open {
            return;
        }
        self.counts.marks += 1;
        let base = self.reduction_base();
        self.control.on_loss(now, base);
        self.reduced_until = Some(self.next);
        self.tell_reduced = true;
    }

    /// Handles the first acknowledgements after a timeout (RFC 5682, section 2.1).
    fn doubt_timeout(&mut self, now: Instant, until: u64, step: Frto, any_original: bool) {
        let next_step = match step {
            // Step 2b: it advances, but does not cover everything: send new data, if there are any
            // and the windows let them out.
            Frto::First if self.una < until && self.new_data(self.room()).is_ok() => Frto::Second,
            // Step 3b: a segment that was sent only once arrives, so the timeout was spurious.
            Frto::Second if any_original => {
                self.counts.spurious_timeouts += 1;
                self.board.hold_none_lost();
                self.control.undo(now);
                self.stage = Stage::Open;
                return;
            }
            _ => Frto::Off,
        };
        if let Stage::Loss { frto, .. } = &mut self.stage {
            *frto = next_step;
        }
    }
}
