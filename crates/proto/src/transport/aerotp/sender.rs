//! The sending half: what goes out next, and what an answer means for it.
//!
//! Rate is not decided here: the endpoint's pacer asks for one unit at a time. Error control is
//! here and knows nothing of rate (multi-mode paper, Section III-A: "fully decoupled").
//!
//! # Order
//! A probe when the path is silent; else what is lost, oldest first; else parity of closed
//! blocks; else new data; else, once the application has closed and the path is known to lose,
//! the unconfirmed tail again.

use super::blocks::ParityPlan;
use super::config::ConnectionConfig;
use super::counters::Counters;
use super::modes::ModeRules;
use crate::bytes::SendBuffer;
use crate::machine::{Deadline, Kind};
use crate::timer::{TimerKind, TimerTable};
use crate::trace::{LossSign, Record, Trace};
use crate::transport::parts::{RttEstimator, Scoreboard, Settled};
use crate::units::{Duration, Instant};
use crate::wire::TpduSeq;
use crate::wire::aerotp::{Acks, BlockDescriptor, Mack, Nack};
use std::collections::VecDeque;

/// One TPDU to send.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unit {
    pub(super) seq: TpduSeq,
    pub(super) kind: Kind,
    pub(super) position: u64,
    pub(super) len: usize,
    /// Set for repair symbols, whose octets are in the sender's scratch buffer.
    pub(super) repair: Option<BlockDescriptor>,
}

#[derive(Clone, Copy, Debug)]
enum SenderTimer {
    Retransmission,
    Retention,
}

impl TimerKind for SenderTimer {
    const COUNT: usize = 2;
    fn index(self) -> usize {
        self as usize
    }
    fn why(self) -> &'static str {
        match self {
            Self::Retransmission => "retransmission timeout",
            Self::Retention => "retention of sent TPDUs",
        }
    }
}

/// The share of losses from which on the tail is worth repeating.
const TAIL_LOSS_MIN: f64 = 0.001;
/// The tail is repeated until a TPDU of it is missing with this probability.
const TAIL_MISS_TARGET: f64 = 0.01;
/// Acknowledgements are lost too: so many flush times may pass without one before a TPDU's
/// timeout ...
const MACKS_LOST_FOR_TIMEOUT: u32 = 4;
/// ... and so many before the path is taken for down. At 50 % loss, one in a million.
const MACKS_LOST_FOR_SILENCE: u32 = 20;
/// Consecutive silent timeouts for one doubling of the timeout: a single lost probe is common on
/// these links and must not slow recovery.
const SILENCES_PER_BACK_OFF: u32 = 2;

/// What timestamps count in (wire format, section 2).
const STAMP_UNIT: Duration = Duration::from_micros(1);

#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts, each one bit of the state"
)]
pub(super) struct Sender {
    rules: ModeRules,
    payload_bytes: usize,
    window: u16,
    peer_window: Option<u16>,
    tail_repeats: u16,
    retention: Duration,
    ack_flush: Duration,
    /// As the loss seen so far asks for.
    tail_repeats_now: u16,
    buffer: SendBuffer,
    unsent_max: usize,
    /// Stream position of the next octet to go out for the first time.
    next_position: u64,
    /// Lengths of messages not yet sent; empty for a stream.
    messages: VecDeque<usize>,
    board: Scoreboard,
    rtt: RttEstimator,
    parity: ParityPlan,
    finishing: bool,
    stalled: bool,
    silences: u32,
    probe: Option<TpduSeq>,
    window_probe: bool,
    /// Since when something is out and nothing at all was heard.
    unanswered_since: Option<Instant>,
    /// When the oldest unconfirmed TPDU last became a later one.
    advanced_at: Option<Instant>,
    blocked_writer: bool,
    timers: TimerTable<SenderTimer>,
}

impl Sender {
    pub(super) fn new(config: &ConnectionConfig, rules: ModeRules, payload_bytes: usize) -> Self {
        let rto = RttEstimator::new(config.rto);
        Self {
            rules,
            payload_bytes,
            window: config.window_tpdus,
            peer_window: None,
            tail_repeats: config.tail_repeats,
            retention: config.hole_waits.requested,
            ack_flush: config.ack.in_mode(rules.acks).flush,
            tail_repeats_now: 0,
            buffer: SendBuffer::new(config.send_buffer_bytes),
            unsent_max: config.unsent_bytes_max,
            next_position: 0,
            messages: VecDeque::new(),
            board: Scoreboard::new(config.first_seq),
            rtt: rto,
            parity: ParityPlan::new(config.block.filter(|_| rules.blocks)),
            finishing: false,
            stalled: false,
            silences: 0,
            probe: None,
            window_probe: false,
            unanswered_since: None,
            advanced_at: None,
            blocked_writer: false,
            timers: TimerTable::default(),
        }
    }

    /// Takes stream octets; fewer than offered when the buffer is full.
    pub(super) fn write(&mut self, now: Instant, octets: &[u8]) -> usize {
        let taken = self.buffer.write(&octets[..octets.len().min(self.room())]);
        if taken < octets.len() {
            self.blocked_writer = true;
        }
        self.probe_closed_window(now);
        taken
    }

    /// Takes a whole message, or nothing of it when the buffer is full.
    pub(super) fn write_message(&mut self, now: Instant, octets: &[u8]) -> bool {
        // An empty message occupies no octets, so its number is bounded by the window's.
        let crowded = self.has_new() && self.room() < octets.len();
        let full = crowded || self.buffer.free() < octets.len();
        if full || self.messages.len() >= usize::from(u16::MAX) {
            self.blocked_writer = true;
            return false;
        }
        self.buffer.write(octets);
        self.messages.push_back(octets.len());
        self.probe_closed_window(now);
        true
    }

    /// With nothing in flight no answer will tell that the window has opened, and the MACK that
    /// told so may be lost (RFC 9293, section 3.8.6.1).
    fn probe_closed_window(&mut self, now: Instant) {
        if self.board.is_empty() && !self.window_open() {
            self.arm_retransmission(now);
        }
    }

    /// Whether a writer that was refused may write again; asked once, answered once.
    pub(super) fn take_writable(&mut self, at_least: usize) -> bool {
        let roomy = self.room() >= at_least.min(self.unsent_max / 2);
        self.blocked_writer && roomy && {
            self.blocked_writer = false;
            true
        }
    }

    /// How many octets a write would take.
    pub(super) fn room(&self) -> usize {
        let unsent = usize::try_from(self.unsent()).unwrap_or(usize::MAX);
        self.buffer
            .free()
            .min(self.unsent_max.saturating_sub(unsent))
    }

    /// Takes other settings for what will be written; nothing was yet.
    pub(super) fn reconfigure(&mut self, config: &ConnectionConfig, payload_bytes: usize) {
        self.payload_bytes = payload_bytes;
        self.parity = ParityPlan::new(config.block.filter(|_| self.rules.blocks));
    }

    /// Whether anything was ever written.
    pub(super) fn has_written(&self) -> bool {
        self.buffer.end() > 0 || self.has_new() || self.board.has_sent()
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.buffer.memory_bytes()
    }

    pub(super) const fn payload_bytes(&self) -> usize {
        self.payload_bytes
    }

    /// Octets written and not yet sent for the first time.
    pub(super) fn unsent(&self) -> u64 {
        self.buffer.end() - self.next_position
    }

    /// No more will be written.
    pub(super) fn finish(&mut self) {
        self.finishing = true;
        if !self.has_new() {
            self.parity.close();
        }
    }

    fn has_new(&self) -> bool {
        self.unsent() > 0 || !self.messages.is_empty()
    }

    /// Whether everything written has left at least once, parity included.
    pub(super) fn all_sent(&self) -> bool {
        !self.has_new() && !self.parity.is_pending()
    }

    /// Whether nothing remains to be done for what was written.
    pub(super) fn all_settled(&self) -> bool {
        self.all_sent() && (!self.rules.confirms() || self.board.is_empty())
    }

    /// One past the last TPDU sent.
    pub(super) fn end_seq(&self) -> TpduSeq {
        self.board.next_seq()
    }

    pub(super) const fn rtt(&self) -> &RttEstimator {
        &self.rtt
    }

    /// The timeout, with what the peer may wait before it answers and the path may reorder.
    pub(super) fn rto(&self) -> Duration {
        self.rtt.rto() + self.ack_flush * MACKS_LOST_FOR_TIMEOUT + self.board.reorder_window()
    }

    /// Whether something is out that the peer should answer.
    pub(super) fn awaits_answer(&self) -> bool {
        self.rules.confirms() && !self.board.is_empty()
    }

    fn window_open(&self) -> bool {
        let limit = self
            .peer_window
            .map_or(self.window, |peer| peer.min(self.window));
        !self.rules.confirms() || self.board.len() < usize::from(limit)
    }

    /// Whether [`Sender::next_unit`] would have something.
    pub(super) fn wants_to_send(&self) -> bool {
        if self.probe.is_some() {
            return true;
        }
        if self.stalled {
            return false;
        }
        self.board.has_lost()
            || self.parity.is_ready()
            || (self.has_new() && (self.window_open() || self.window_probe))
            || self.tail_wanted()
    }

    fn tail_wanted(&self) -> bool {
        self.finishing
            && self.rules.confirms()
            && !self.has_new()
            && self.tail_repeats_now > 0
            && self.board.least_recent(self.tail_repeats_now).is_some()
    }

    /// The next TPDU to send; it counts as sent.
    pub(super) fn next_unit(&mut self, now: Instant, scratch: &mut Vec<u8>) -> Option<Unit> {
        if let Some(unit) = self.probe.take().and_then(|seq| self.again(now, seq)) {
            return Some(unit);
        }
        if self.stalled {
            return None;
        }
        while let Some(seq) = self.board.next_lost() {
            if let Some(unit) = self.again(now, seq) {
                return Some(unit);
            }
        }
        if let Some(unit) = self.next_repair(scratch) {
            return Some(unit);
        }
        if self.has_new() && (self.window_open() || self.window_probe) {
            self.window_probe = false;
            return Some(self.new_unit(now));
        }
        if self.tail_wanted() {
            let seq = self.board.least_recent(self.tail_repeats_now)?;
            return self.again(now, seq);
        }
        None
    }

    fn again(&mut self, now: Instant, seq: TpduSeq) -> Option<Unit> {
        let entry = self.board.get(seq)?;
        let (position, len) = (entry.position, entry.len as usize);
        self.board.on_sent_again(now, seq);
        self.arm_retransmission(now);
        Some(Unit {
            seq,
            kind: Kind::Retransmission,
            position,
            len,
            repair: None,
        })
    }

    fn next_repair(&mut self, scratch: &mut Vec<u8>) -> Option<Unit> {
        let (seq, repair) = self
            .parity
            .next_repair(&self.board, &self.buffer, scratch)?;
        let len = scratch.len();
        Some(Unit {
            seq,
            kind: Kind::Repair,
            position: 0,
            len,
            repair: Some(repair),
        })
    }

    fn new_unit(&mut self, now: Instant) -> Unit {
        // Not after: the caller has yet to copy what this call returns.
        self.release(now);
        let position = self.next_position;
        let unsent = usize::try_from(self.unsent()).unwrap_or(usize::MAX);
        let len = self
            .messages
            .pop_front()
            .unwrap_or_else(|| unsent.min(self.payload_bytes));
        self.next_position += len as u64;
        // A payload is at most 65,000 octets.
        let entry_len = u32::try_from(len).unwrap_or(u32::MAX);
        let seq = self.board.on_first_sent(now, position, entry_len);
        self.parity.on_source(now, seq);
        if self.rules.retransmits() {
            self.arm_retransmission(now);
        }
        if self.finishing && !self.has_new() {
            self.parity.close();
        }
        Unit {
            seq,
            kind: Kind::Source,
            position,
            len,
            repair: None,
        }
    }

    /// The octets of a source TPDU.
    pub(super) fn body<'a>(&'a self, unit: &Unit, scratch: &'a mut Vec<u8>) -> &'a [u8] {
        self.buffer.slice(unit.position, unit.len, scratch)
    }

    /// Frees what nobody will ask for: in confirming modes what is settled, in asking modes what is
    /// old, in the others what was sent and is in no open block.
    fn release(&mut self, now: Instant) {
        if self.rules.confirms() {
            self.board.release_settled();
        } else {
            let keep_from = self.parity.oldest_needed().unwrap_or(self.board.next_seq());
            let retained = self.rules.retransmits();
            while self.board.base().before(keep_from) {
                let young = self
                    .board
                    .front_sent_at()
                    .is_some_and(|sent| now.saturating_since(sent) < self.retention);
                if retained && young && self.board.len() < usize::from(self.window) {
                    break;
                }
                self.board.release_before(self.board.base().plus(1));
            }
            if retained && !self.board.is_empty() {
                self.timers
                    .set_if_idle(SenderTimer::Retention, now + self.retention);
            }
        }
        self.buffer
            .release(self.board.base_position().unwrap_or(self.next_position));
    }

    fn arm_retransmission(&mut self, now: Instant) {
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
            return;
        };
        self.unanswered_since.get_or_insert(now);
        if self.stalled {
            self.timers
                .set_if_idle(SenderTimer::Retransmission, now + self.rto());
        } else {
            self.timers
                .set(SenderTimer::Retransmission, (sent_at + self.rto()).max(now));
        }
    }

    /// Whether an acknowledgement comes from a peer that has forgotten this connection: it answers
    /// what was sent after an earlier confirmation was known, and takes that confirmation back.
    pub(super) fn is_forgotten(&self, now: Instant, mack: &Mack<'_>) -> bool {
        let Acks::Cumulative {
            next_expected,
            receiver,
            ..
        } = &mack.acks
        else {
            return false;
        };
        // Without a hold nothing was received, and the echo is of nothing.
        let (Some(advanced_at), Some(age), Some(_)) = (
            self.advanced_at,
            age_of(now, mack.echo),
            receiver.hold.to_duration(),
        ) else {
            return false;
        };
        let sent_since = now.saturating_since(advanced_at).checked_sub(age);
        next_expected.distance_from(self.board.base()) < 0
            && sent_since.is_some_and(|since| since > STAMP_UNIT)
    }

    /// An acknowledgement came. Returns whether it made sense.
    pub(super) fn on_mack(
        &mut self,
        now: Instant,
        mack: &Mack<'_>,
        counters: &mut Counters,
        trace: &mut Trace,
    ) -> bool {
        self.heard(now, trace);
        let age = age_of(now, mack.echo);
        let hold = match &mack.acks {
            Acks::Cumulative { receiver, .. } => receiver.hold.to_duration(),
            Acks::Listed { .. } => Some(Duration::ZERO),
        };
        // Before anything was received there is nothing to echo.
        let echoes = self.board.has_sent();
        if let (Some(age), Some(hold), true) = (age, hold, echoes)
            && let Some(sample) = age.checked_sub(hold)
        {
            self.rtt.on_sample(sample);
        }
        if !self.rules.confirms() {
            // An answer to set-up or close; what parity still needs must not be released by it.
            return true;
        }
        let rtt_min = self.rtt.min();
        let base = self.board.base();
        let mut sane = true;
        let mut settle = |settled: Settled| {
            counters.confirmed_tpdus += 1;
            match settled.attempts {
                0 | 1 => {}
                2 => counters.recovered_arq[0] += 1,
                3 => counters.recovered_arq[1] += 1,
                _ => counters.recovered_arq[2] += 1,
            }
        };
        match &mack.acks {
            Acks::Cumulative {
                next_expected,
                receiver,
                above,
            } => {
                sane = next_expected.distance_from(self.board.next_seq()) <= 0;
                if sane {
                    self.peer_window = Some(receiver.window);
                    self.board
                        .on_acked_before(now, *next_expected, rtt_min, &mut settle);
                    for seq in above.clone() {
                        if let Some(settled) = self.board.on_acked(now, seq, rtt_min) {
                            settle(settled);
                        }
                    }
                }
            }
            Acks::Listed { first, further } => {
                for seq in core::iter::once(*first).chain(further.clone()) {
                    if let Some(settled) = self.board.on_acked(now, seq, rtt_min) {
                        settle(settled);
                    }
                }
            }
        }
        if sane && age.is_some() {
            self.board.on_arrival_of(now, mack.echo);
        }
        self.note_losses(now, counters, trace);
        self.release(now);
        if self.board.base() != base {
            self.advanced_at = Some(now);
        }
        self.arm_retransmission(now);
        sane
    }

    /// The receiver asks for TPDUs again.
    pub(super) fn on_nack(
        &mut self,
        now: Instant,
        nack: &Nack<'_>,
        counters: &mut Counters,
        trace: &mut Trace,
    ) {
        self.heard(now, trace);
        if age_of(now, nack.echo).is_none() {
            counters.nonsense += 1;
            return;
        }
        for seq in nack.wanted() {
            self.board.on_nack(seq, nack.echo);
        }
        self.note_losses(now, counters, trace);
        self.arm_retransmission(now);
    }

    /// Anything of the peer's shows that the path works.
    fn heard(&mut self, now: Instant, trace: &mut Trace) {
        self.unanswered_since = None;
        self.silences = 0;
        if self.stalled {
            self.stalled = false;
            self.timers.stop(SenderTimer::Retransmission);
            trace.note(now, Record::Resumed);
        }
    }

    fn note_losses(&mut self, now: Instant, counters: &mut Counters, trace: &mut Trace) {
        for (seq, sign) in self.board.take_held_lost() {
            match sign {
                LossSign::Overtaken => counters.held_lost_overtaken += 1,
                LossSign::Nack => counters.held_lost_nack += 1,
                LossSign::Timeout => counters.held_lost_timeout += 1,
            }
            trace.note(now, Record::HeldLost { seq, sign });
        }
        self.tail_repeats_now = self.tail_repeats.min(tail_repeats_for(counters));
    }

    pub(super) fn handle_deadline(
        &mut self,
        now: Instant,
        counters: &mut Counters,
        trace: &mut Trace,
    ) {
        while let Some(timer) = self.timers.expire(now) {
            match timer {
                SenderTimer::Retransmission => self.on_timeout(now, counters, trace),
                SenderTimer::Retention => self.release(now),
            }
        }
        self.board.handle_deadline(now);
        self.parity.handle_deadline(now);
        self.note_losses(now, counters, trace);
    }

    /// Nothing answered in time. If nothing at all was heard since the oldest TPDU left, the path
    /// is taken for down and only probes go out; else just that TPDU's answer is missing.
    fn on_timeout(&mut self, now: Instant, counters: &mut Counters, trace: &mut Trace) {
        let Some((seq, _)) = self.board.oldest_in_flight() else {
            if self.has_new() {
                self.window_probe = true;
            }
            return;
        };
        let rto = self.rto();
        let silence = now.saturating_since(self.unanswered_since.unwrap_or(now));
        let patience = rto + self.ack_flush * MACKS_LOST_FOR_SILENCE;
        if self.stalled || silence >= patience {
            if !self.stalled {
                self.stalled = true;
                counters.stalls += 1;
                trace.note(now, Record::Stalled);
            }
            self.silences += 1;
            if self.silences.is_multiple_of(SILENCES_PER_BACK_OFF) {
                self.rtt.on_silence();
            }
            self.probe = Some(seq);
            self.timers
                .set(SenderTimer::Retransmission, now + self.rto());
        } else {
            self.board.on_timeout(now - rto);
            self.arm_retransmission(now);
        }
    }

    pub(super) fn next_deadline(&self) -> Option<Deadline> {
        let own = self.timers.next_deadline();
        let board = self.board.next_deadline();
        Deadline::earlier(Deadline::earlier(own, board), self.parity.next_deadline())
    }
}

/// How long ago our own timestamp `stamp` was made; `None` if it lies in the future.
fn age_of(now: Instant, stamp: u32) -> Option<Duration> {
    let age = now.as_wrapping_micros().wrapping_sub(stamp);
    (age < 1 << 31).then(|| Duration::from_micros(u64::from(age)))
}

/// How often the tail should be repeated at the loss seen so far.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "float to integer casts saturate; the user's cap follows"
)]
fn tail_repeats_for(counters: &Counters) -> u16 {
    let lost = counters.held_lost_overtaken + counters.held_lost_nack + counters.held_lost_timeout;
    let sent = counters.sent_tpdus[0] + counters.sent_tpdus[2];
    let share = lost as f64 / sent.max(1) as f64;
    if share < TAIL_LOSS_MIN {
        return 0;
    }
    (TAIL_MISS_TARGET.ln() / share.min(0.9).ln()).ceil() as u16
}
