//! The send side: segments that may leave, losses, and the timer.
//!
//! Positions count octets of the stream; the FIN takes the position after the last one. Congestion
//! control sets the window; the octets that count against it depend on the stage.
//!
//! The window is compared with the pipe: the octets that are probably in the network (RFC 6675).
//! Without SACK each duplicate acknowledgement shows that one segment left it. Which one is a
//! guess, and its length is that of the oldest that may have left. For segments of full length that
//! is RFC 6582's inflated window; for short ones it is less, where the RFC's window would cause a
//! burst. Limited Transmit (RFC 3042) follows by itself; without it, the first duplicates do not
//! count.
//!
//! After a timeout every segment that is not known to have arrived is lost, and is retransmitted as
//! the window allows.

mod acks;
mod rate_reduction;
mod timeouts;

use super::config::TcpConfig;
use super::scoreboard::SackScoreboard;
use crate::congestion::{self, Beginning, CongestionControl};
use core::ops::Range;
use fulmar_proto::bytes::SendBuffer;
use fulmar_proto::transport::parts::{RtoLimits, RttEstimator};
use fulmar_proto::units::{ByteCount, Duration, Instant};
use rate_reduction::RateReduction;

pub(super) use acks::AckArrival;

/// The stage of a sender in the repair of losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Nothing is known to be missing.
    Open,
    /// Fast recovery until `until` is acknowledged.
    Recovery {
        /// The position behind everything sent when it began.
        until: u64,
        /// Whether a partial acknowledgement came.
        partial: bool,
        /// Whether RFC 6675's rescue retransmission was sent.
        rescued: bool,
        /// The rate reduction; without it, the window is the threshold at once.
        reduction: Option<RateReduction>,
    },
    /// The repair after a timeout, until `until` is acknowledged.
    Loss {
        /// The position behind everything sent when the timeout passed.
        until: u64,
        /// F-RTO's next step.
        frto: Frto,
    },
}

/// F-RTO (RFC 5682, section 2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Frto {
    /// F-RTO is not, or no longer, in doubt.
    Off,
    /// The first acknowledgement after the timeout decides whether F-RTO tries.
    First,
    /// New data was sent; the next acknowledgement decides.
    Second,
}

/// A segment to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SegmentPlan {
    /// The positions; the FIN's counts too.
    pub(super) range: Range<u64>,
    /// Whether the FIN is the last of them.
    pub(super) fin: bool,
    /// Whether they were sent before.
    pub(super) again: bool,
}

/// The reason why no new segment leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Held {
    /// The congestion window has no room.
    ByCongestion,
    /// The peer's window, Nagle's rule, or nothing to send.
    ByOthers,
}

/// The counters of the send side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TcpSendCounts {
    pub(super) timeouts: u64,
    pub(super) timeout_repairs: u64,
    pub(super) fast_recoveries: u64,
    pub(super) spurious_timeouts: u64,
    pub(super) resent: u64,
    pub(super) marks: u64,
}

/// The sending side of one direction.
#[expect(
    clippy::struct_excessive_bools,
    reason = "four facts without a common order"
)]
#[derive(Debug)]
pub(super) struct TcpSender {
    buffer: SendBuffer,
    board: SackScoreboard,
    control: Box<dyn CongestionControl>,
    rtt: RttEstimator,
    stage: Stage,
    config: TcpConfig,
    sack: bool,
    /// Octets of payload in a segment.
    mss: u64,
    una: u64,
    next: u64,
    /// The position behind the last one that the peer's window allows.
    edge: u64,
    window_max: u64,
    duplicates: u32,
    /// Octets beyond the window that were sent because of duplicates.
    extra_sent: u64,
    /// The value of `next` at the last timeout: this sender may itself have caused duplicates below
    /// it.
    recover: u64,
    resend_now: Option<Range<u64>>,
    fin_at: Option<u64>,
    /// Whether the window last kept something from leaving.
    limited: bool,
    timer: Option<Instant>,
    persist: Option<Instant>,
    persist_count: u32,
    probe_now: bool,
    tries: u32,
    last_sent: Instant,
    /// The position whose acknowledgement has to arrive before another mark is answered, since one
    /// was answered.
    reduced_until: Option<u64>,
    tell_reduced: bool,
    counts: TcpSendCounts,
}

/// The timeout's limits in the estimator's form.
pub(super) fn rto_limits(config: &TcpConfig) -> RtoLimits {
    RtoLimits {
        initial: config.rto.initial,
        probe_millis: None,
        margin: config.rto_rule.granularity,
        variations: config.rto_rule.variations,
        round_trips: config.rto_rule.round_trips,
        min: config.rto.min,
        max: config.rto.max,
    }
}

/// The rule that `config` names, for segments of `mss` octets.
fn start_control(config: &TcpConfig, mss: u32) -> Box<dyn CongestionControl> {
    let beginning = Beginning {
        mss,
        segments: config.growth.initial_window,
        byte_counting: config.growth.byte_counting,
    };
    congestion::start(config.growth.algorithm, beginning)
}

impl TcpSender {
    /// A sender after the handshake, in segments of `mss` octets. `rtt` may have a sample.
    pub(super) fn new(config: &TcpConfig, mss: u32, sack: bool, rtt: RttEstimator) -> Self {
        Self {
            buffer: SendBuffer::new(config.send_buffer.as_usize()),
            board: SackScoreboard::default(),
            control: start_control(config, mss),
            rtt,
            stage: Stage::Open,
            config: *config,
            sack,
            mss: u64::from(mss),
            una: 0,
            next: 0,
            edge: 0,
            window_max: 0,
            duplicates: 0,
            extra_sent: 0,
            recover: 0,
            resend_now: None,
            fin_at: None,
            limited: false,
            timer: None,
            persist: None,
            persist_count: 0,
            probe_now: false,
            tries: 0,
            last_sent: Instant::START,
            reduced_until: None,
            tell_reduced: false,
            counts: TcpSendCounts::default(),
        }
    }

    /// Takes the values that the handshake agreed on, when data were written before it.
    pub(super) fn agree(&mut self, mss: u32, sack: bool, threshold: Option<u64>) {
        self.mss = u64::from(mss);
        self.sack = sack;
        self.control = start_control(&self.config, mss);
        if let Some(threshold) = threshold {
            self.control.set_threshold(threshold);
        }
    }

    pub(super) fn write(&mut self, octets: &[u8]) -> usize {
        let taken = octets.len().min(self.room_to_write());
        self.buffer.write(octets.get(..taken).unwrap_or_default())
    }

    /// The number of octets that fit.
    pub(super) fn room_to_write(&self) -> usize {
        let free = self.buffer.free();
        self.config.unsent_max.map_or(free, |limit| {
            let unsent = self.buffer.end().saturating_sub(self.next);
            free.min(ByteCount(limit.0.saturating_sub(unsent)).as_usize())
        })
    }

    /// Whether an application that was refused should write again.
    pub(super) fn wants_writing(&self) -> bool {
        let unsent = self.buffer.end().saturating_sub(self.next);
        let runs_low = |limit: ByteCount| unsent <= limit.0 / 2;
        self.buffer.free() > 0 && self.config.unsent_max.is_none_or(runs_low)
    }

    /// Notes that no octet follows those written.
    pub(super) fn finish(&mut self) {
        self.fin_at.get_or_insert(self.buffer.end());
    }

    pub(super) const fn is_finishing(&self) -> bool {
        self.fin_at.is_some()
    }

    /// Whether the FIN was acknowledged.
    pub(super) fn is_fin_acked(&self) -> bool {
        self.fin_at.is_some_and(|fin| self.una > fin)
    }

    /// Whether everything written was acknowledged.
    pub(super) fn is_all_acked(&self) -> bool {
        self.una >= self.buffer.end()
    }

    /// Octets of memory of buffer and scoreboard.
    pub(super) fn memory_bytes(&self) -> usize {
        self.buffer.memory_bytes() + self.board.memory_bytes()
    }

    pub(super) const fn una(&self) -> u64 {
        self.una
    }

    pub(super) const fn next(&self) -> u64 {
        self.next
    }

    pub(super) const fn window_max(&self) -> u64 {
        self.window_max
    }

    pub(super) const fn counts(&self) -> &TcpSendCounts {
        &self.counts
    }

    pub(super) const fn rtt(&self) -> &RttEstimator {
        &self.rtt
    }

    pub(super) const fn rtt_mut(&mut self) -> &mut RttEstimator {
        &mut self.rtt
    }

    /// The retransmission timeout. A wrong sample cannot raise it above the bound of backing off.
    pub(super) fn rto(&self) -> Duration {
        self.rtt.rto().min(self.config.rto.max)
    }

    /// The congestion window and the threshold, in octets.
    pub(super) fn windows(&self) -> (u64, u64) {
        (self.control.window(), self.control.threshold())
    }

    /// The peer's window, from `una` on.
    pub(super) fn set_peer_window(&mut self, window: u64) {
        self.window_max = self.window_max.max(window);
        self.edge = self.una + window;
    }

    const fn flight(&self) -> u64 {
        self.next - self.una
    }

    /// The position behind the last one to send: that of the last octet, or of the FIN.
    fn end(&self) -> u64 {
        self.buffer.end() + u64::from(self.fin_at.is_some())
    }

    /// The number of octets that the congestion window still lets out.
    fn room(&self) -> u64 {
        let limited = self.config.recovery.limited_transmit;
        let out = if self.stage == Stage::Open && self.duplicates > 0 && !limited {
            self.flight()
        } else {
            self.board.pipe()
        };
        let window = match &self.stage {
            Stage::Recovery {
                reduction: Some(reduction),
                ..
            } => reduction.window(),
            _ => self.control.window(),
        };
        window.saturating_sub(out)
    }

    /// The segment that may leave at `now`, if there is one.
    pub(super) fn next_plan(&mut self, now: Instant) -> Option<SegmentPlan> {
        if let Some(range) = self.resend_now.clone() {
            return Some(self.plan(range, true));
        }
        if core::mem::take(&mut self.probe_now) {
            return self.probe();
        }
        self.restart_if_idle(now);
        let room = self.room();
        if !self.prefers_new_data()
            && let Some(range) = self.board.next_lost(self.mss)
        {
            return (room >= range.end - range.start).then(|| self.plan(range, true));
        }
        let new = self.new_data(room);
        self.limited |= new == Err(Held::ByCongestion);
        new.ok().or_else(|| self.third_and_fourth_rule(room))
    }

    /// Whether F-RTO sends new data in place of segments that may not be lost.
    const fn prefers_new_data(&self) -> bool {
        matches!(
            self.stage,
            Stage::Loss {
                frto: Frto::Second,
                ..
            }
        )
    }

    fn plan(&self, range: Range<u64>, again: bool) -> SegmentPlan {
        SegmentPlan {
            fin: self.fin_at.is_some_and(|fin| range.end > fin),
            range,
            again,
        }
    }

    /// The next segment that was never sent. A FIN that has no place in the peer's window follows
    /// later by itself; it holds nothing back.
    fn new_data(&self, room: u64) -> Result<SegmentPlan, Held> {
        if self.end() <= self.next {
            return Err(Held::ByOthers);
        }
        let octets = self.buffer.end().saturating_sub(self.next);
        let peer = self.edge.saturating_sub(self.next);
        // The FIN needs no room in a segment, but a place in the peer's window.
        let fits = self.is_finishing() && octets <= self.mss && octets < peer;
        let fin = u64::from(fits);
        let len = octets.min(self.mss);
        if len == 0 && !fits {
            return Err(Held::ByOthers);
        }
        if len > peer {
            return self.squeezed(room, peer);
        }
        if len > room {
            return Err(Held::ByCongestion);
        }
        // Nothing comes after the last octets that a short segment could wait for.
        let is_last = self.is_finishing() && len == octets;
        let small = len < self.mss && !is_last;
        if small && self.config.nagle && self.flight() > 0 {
            return Err(Held::ByOthers);
        }
        Ok(self.plan(self.next..self.next + len + fin, false))
    }

    /// Handles a peer's window that is too small for the segment. A part of the segment leaves if
    /// it is at least half of the largest window (RFC 9293, section 3.8.6.2.1); else a timer waits.
    fn squeezed(&self, room: u64, peer: u64) -> Result<SegmentPlan, Held> {
        if peer > 0 && peer >= self.window_max / 2 && peer <= room {
            return Ok(self.plan(self.next..self.next + peer, false));
        }
        Err(Held::ByOthers)
    }

    /// The segment by RFC 6675's rules 3 and 4, in fast recovery with SACK when there is nothing
    /// else to send.
    fn third_and_fourth_rule(&mut self, room: u64) -> Option<SegmentPlan> {
        let Stage::Recovery { rescued, .. } = self.stage else {
            return None;
        };
        if !self.sack || room < self.mss || self.end() > self.next {
            return None;
        }
        if let Some(range) = self.board.next_doubtful(self.mss) {
            return Some(self.plan(range, true));
        }
        if rescued || !self.config.recovery.rescue {
            return None;
        }
        let range = self.board.last_missing(self.mss)?;
        if let Stage::Recovery { rescued, .. } = &mut self.stage {
            *rescued = true;
        }
        Some(self.plan(range, true))
    }

    /// The octets that fit a small window that will not grow by itself, or one octet beyond a shut
    /// one (RFC 9293, sections 3.8.6.1 and 3.8.6.2.1). From then on the retransmission timer asks.
    fn probe(&self) -> Option<SegmentPlan> {
        let unsent = self.end().saturating_sub(self.next);
        let len = self.edge.saturating_sub(self.next).clamp(1, self.mss);
        (unsent > 0).then(|| self.plan(self.next..self.next + len.min(unsent), false))
    }

    fn restart_if_idle(&mut self, now: Instant) {
        if self.config.growth.restart_after_idle
            && self.flight() == 0
            && self.end() > self.next
            && now.saturating_since(self.last_sent) > self.rto()
        {
            let restart = self.mss * u64::from(self.config.growth.initial_window);
            self.control.on_idle(now, restart);
            self.last_sent = now;
        }
    }

    /// The octets of a plan, without the FIN.
    pub(super) fn octets<'a>(&'a self, plan: &SegmentPlan, scratch: &'a mut Vec<u8>) -> &'a [u8] {
        let len = plan.range.end - plan.range.start - u64::from(plan.fin);
        let len = usize::try_from(len).unwrap_or(0);
        self.buffer.slice(plan.range.start, len, scratch)
    }

    /// Whether the segment with this plan tells that the window was reduced.
    pub(super) const fn tells_reduced(&mut self, plan: &SegmentPlan) -> bool {
        if plan.again || !self.tell_reduced {
            return false;
        }
        self.tell_reduced = false;
        true
    }

    /// Notes that the segment of a plan was sent.
    pub(super) fn on_sent(&mut self, now: Instant, plan: &SegmentPlan) {
        self.last_sent = now;
        if let Stage::Recovery {
            reduction: Some(reduction),
            ..
        } = &mut self.stage
        {
            reduction.on_sent(plan.range.end - plan.range.start);
        }
        if plan.again {
            self.resend_now = None;
            self.counts.resent += 1;
            self.board.on_resent(now, &plan.range);
        } else {
            self.board.on_sent(now, plan.range.clone());
            self.next = plan.range.end;
            if self.duplicates > 0 {
                self.extra_sent += plan.range.end - plan.range.start;
            }
        }
        if self.timer.is_none() {
            self.timer = Some(now + self.rto());
        }
    }

    /// Whether a segment with data ends the octets written so far, so that it is pushed.
    pub(super) fn is_pushed(&self, plan: &SegmentPlan) -> bool {
        plan.range.end >= self.buffer.end()
    }
}
