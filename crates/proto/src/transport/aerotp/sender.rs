//! The sending half: the next TPDU to send, and the meaning of the peer's answers.
//!
//! The rate is not decided here: the endpoint's pacer asks for one unit at a time. Error control is
//! here and knows nothing of rate (multi-mode paper, Section III-A: "fully decoupled").
//!
//! # Order
//! The next TPDU is a probe when the path is silent; else a copy of the TPDU that just left; else a lost TPDU, oldest
//! first; else parity of closed blocks; else new data. Besides, once nothing more is expected and the path is known to
//! lose, the unconfirmed tail is repeated while the link would be idle.

mod answers;
mod copies;
mod late;
mod path_taken;
mod paths;
mod silence;
mod tail;
mod thin;
mod written;

use super::blocks::ParityPlan;
use super::config::ConnectionConfig;
use super::modes::{AckScheme, ModeRules};
use crate::bytes::SendBuffer;
use crate::machine::TransmitKind;
use crate::timer::{TimerKind, TimerTable};
use crate::transport::parts::{AttemptOutcome, RttEstimator, Scoreboard};
use crate::units::{Duration, Instant};
use crate::wire::TpduSeq;
use crate::wire::aerotp::short::Named;
use crate::wire::aerotp::{BlockDescriptor, WindowDescriptor};
use copies::Copies;
pub(super) use path_taken::PathTaken;
use std::collections::VecDeque;
use tail::Tail;
use thin::Thin;
use written::Written;

/// One TPDU to send.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unit {
    pub(super) seq: TpduSeq,
    pub(super) kind: TransmitKind,
    pub(super) position: u64,
    pub(super) len: usize,
    /// Whether it follows the same TPDU at once.
    pub(super) is_copy: bool,
    /// The block, for repair symbols, whose octets are in the sender's scratch buffer.
    pub(super) repair: Option<BlockDescriptor>,
    /// The window, for repair symbols over one, whose octets are there too, and the connection's name.
    pub(super) window: Option<(Named, WindowDescriptor)>,
}

#[derive(Clone, Copy, Debug)]
enum SenderTimer {
    Retransmission,
    Retention,
    FirstAnswer,
    Late,
}

impl TimerKind for SenderTimer {
    const COUNT: usize = 4;
    fn index(self) -> usize {
        self as usize
    }
    fn why(self) -> &'static str {
        match self {
            Self::Retransmission => "retransmission timeout",
            Self::Retention => "retention of sent TPDUs",
            Self::FirstAnswer => "probe for a first answer",
            Self::Late => "answer is late",
        }
    }
}

/// The write that was refused and waits to be offered again.
#[derive(Clone, Copy, Debug)]
enum Refused {
    Stream,
    /// A whole message of this length.
    Message(usize),
}

#[derive(Debug)]
pub(super) struct Sender {
    rules: ModeRules,
    /// The time before which nothing of the connection left.
    begun: Instant,
    payload_bytes: usize,
    /// The octets of a stream that go into one TPDU; at most `payload_bytes`.
    cut_bytes: usize,
    /// The octets of the next one, at most.
    next_bytes_max: usize,
    /// Lost payloads longer than this wait for new data, if new data may be sent.
    deferred_over: Option<usize>,
    window: u16,
    peer_window: Option<u16>,
    tail_repeats: u16,
    retention: Duration,
    ack_flush: Duration,
    buffer: SendBuffer,
    unsent_max: usize,
    /// The stream position of the next octet to be sent for the first time.
    next_position: u64,
    /// Lengths of messages not yet sent; empty for a stream.
    messages: VecDeque<usize>,
    /// The times of writing, where a deadline counts from them.
    written: Written,
    /// Messages that never left, because they would have been too late.
    late_unsent: u64,
    board: Scoreboard,
    rtt: RttEstimator,
    parity: ParityPlan,
    copies: Copies,
    /// The repair of data while nothing waits to be sent, if that is wanted.
    thin: Option<Thin>,
    /// The end of what was under way when a path went down last, until all of that is settled.
    overdue_before: Option<TpduSeq>,
    finishing: bool,
    tail: Tail,
    stalled: bool,
    /// TPDUs that left for the first time since the peer was last heard, while the path counted as down.
    new_in_silence: u32,
    silences: u32,
    probe: Option<TpduSeq>,
    /// The probes for a first answer so far.
    first_probes: u32,
    window_probe: bool,
    /// The time since when TPDUs are in flight and nothing at all was heard.
    unanswered_since: Option<Instant>,
    /// The end of what a MACK that says "everything before" confirmed.
    confirmed: TpduSeq,
    /// The time at which that MACK came.
    advanced_at: Option<Instant>,
    refused: Option<Refused>,
    timers: TimerTable<SenderTimer>,
}

impl Sender {
    pub(super) fn new(
        now: Instant,
        config: &ConnectionConfig,
        rules: ModeRules,
        payload_bytes: usize,
    ) -> Self {
        let rto = RttEstimator::new(config.rto);
        Self {
            rules,
            begun: now,
            payload_bytes,
            cut_bytes: payload_bytes,
            next_bytes_max: usize::MAX,
            deferred_over: None,
            window: config.window_tpdus,
            peer_window: None,
            tail_repeats: config.tail_repeats,
            retention: config.hole_waits.requested,
            ack_flush: config.ack.in_mode(rules.acks).flush,
            buffer: SendBuffer::new(config.send_buffer_bytes),
            unsent_max: config.unsent_bytes_max,
            next_position: 0,
            messages: VecDeque::new(),
            written: Written::default(),
            late_unsent: 0,
            board: Scoreboard::new(config.first_seq),
            rtt: rto,
            parity: ParityPlan::new(config.block.filter(|_| rules.blocks)),
            copies: Copies::new(config.copies),
            thin: config
                .thin
                .filter(|_| rules.acks == AckScheme::Aggregated)
                .map(Thin::new),
            overdue_before: None,
            finishing: false,
            tail: Tail::default(),
            stalled: false,
            new_in_silence: 0,
            silences: 0,
            probe: None,
            first_probes: 0,
            window_probe: false,
            unanswered_since: None,
            confirmed: config.first_seq,
            advanced_at: None,
            refused: None,
            timers: TimerTable::default(),
        }
    }

    /// Takes stream octets; fewer than offered when the buffer is full.
    pub(super) fn write(&mut self, now: Instant, octets: &[u8]) -> usize {
        let taken = self.buffer.write(&octets[..octets.len().min(self.room())]);
        self.note_written(now);
        if taken > 0 {
            self.tail.on_written(now, self.rtt.smoothed());
        }
        if taken < octets.len() {
            self.refused = Some(Refused::Stream);
        }
        self.probe_closed_window(now);
        taken
    }

    /// Takes a whole message that is as old as `since`, or nothing of it when the buffer is full.
    pub(super) fn write_message(&mut self, now: Instant, octets: &[u8], since: Instant) -> bool {
        if !self.takes_message(octets.len()) {
            self.refused = Some(Refused::Message(octets.len()));
            return false;
        }
        self.buffer.write(octets);
        self.note_written(since);
        self.tail.on_written(now, self.rtt.smoothed());
        self.messages.push_back(octets.len());
        self.probe_closed_window(now);
        true
    }

    fn takes_message(&self, len: usize) -> bool {
        let crowded = self.has_new() && self.room() < len;
        // An empty message occupies no octets, so their number has a bound of its own.
        !crowded && self.buffer.free() >= len && self.messages.len() < usize::from(u16::MAX)
    }

    /// Starts probing a closed window. With nothing in flight no answer will tell that the window
    /// has opened, and the MACK that told so may be lost (RFC 9293, section 3.8.6.1).
    fn probe_closed_window(&mut self, now: Instant) {
        if self.board.is_empty() && !self.window_open() {
            self.arm_retransmission(now);
        }
    }

    /// Whether a writer that was refused may write again; `true` is returned once.
    pub(super) fn take_writable(&mut self, at_least: usize) -> bool {
        let writable = match self.refused {
            None => false,
            Some(Refused::Stream) => self.room() >= at_least.min(self.unsent_max / 2),
            // A writer that writes again at once would ask for ever if it were told sooner.
            Some(Refused::Message(len)) => self.takes_message(len),
        };
        if writable {
            self.refused = None;
        }
        writable
    }

    /// The number of octets that a write would take.
    pub(super) fn room(&self) -> usize {
        let unsent = usize::try_from(self.unsent()).unwrap_or(usize::MAX);
        self.buffer
            .free()
            .min(self.unsent_max.saturating_sub(unsent))
    }

    /// Changes the settings before anything is written.
    pub(super) fn reconfigure(&mut self, config: &ConnectionConfig, payload_bytes: usize) {
        self.set_payload_bytes(payload_bytes);
        self.unsent_max = config.unsent_bytes_max;
        self.parity = ParityPlan::new(config.block.filter(|_| self.rules.blocks));
    }

    /// Whether anything was ever written.
    pub(super) fn has_written(&self) -> bool {
        self.buffer.end() > 0 || self.has_new() || self.board.has_sent()
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.buffer.memory_bytes()
    }

    /// Frees memory that the TPDUs in flight do not need.
    pub(super) fn give_back(&mut self, now: Instant) {
        self.release(now);
        self.buffer.give_back();
        self.board.give_back();
        self.messages.shrink_to_fit();
        self.written.give_back();
    }

    pub(super) const fn payload_bytes(&self) -> usize {
        self.payload_bytes
    }

    /// Sets the payload of TPDUs that are cut from now on. TPDUs that were sent keep their octets,
    /// since their numbers stand for them.
    pub(super) const fn set_payload_bytes(&mut self, payload_bytes: usize) {
        self.payload_bytes = payload_bytes;
        self.cut_bytes = payload_bytes;
        self.deferred_over = None;
    }

    /// Cuts a stream into TPDUs of so many octets from now on. Lost payloads longer than
    /// `deferred_over` wait until there is nothing new to send.
    pub(super) fn cut_into(&mut self, octets: usize, deferred_over: Option<usize>) {
        self.cut_bytes = octets.clamp(1, self.payload_bytes);
        self.deferred_over = deferred_over;
    }

    /// Cuts the next TPDU of a stream into so many octets at most.
    pub(super) fn cut_next(&mut self, octets: usize) {
        self.next_bytes_max = octets.max(1);
    }

    /// Keeps what becomes of attempts from now on, for [`Sender::drain_outcomes`].
    pub(super) fn keep_outcomes(&mut self) {
        if self.rules.confirms() {
            self.board.keep_outcomes();
        }
    }

    /// Whether what becomes of attempts is kept.
    pub(super) const fn keeps_outcomes(&self) -> bool {
        self.board.keeps_outcomes()
    }

    /// Whether something became of attempts that was not taken yet.
    pub(super) fn has_outcomes(&self) -> bool {
        self.board.has_outcomes()
    }

    /// Takes what became of attempts since the last call, in the order of sending.
    pub(super) fn drain_outcomes(&mut self, each: impl FnMut(AttemptOutcome)) {
        self.board.drain_outcomes(each);
    }

    fn defers_lost(&mut self) -> bool {
        let Some(limit) = self.deferred_over else {
            return false;
        };
        let first = self.board.first_lost();
        let first = first.and_then(|seq| self.board.get(seq));
        first.is_some_and(|entry| entry.len as usize > limit)
            && self.has_new()
            && self.window_open()
    }

    /// Octets written and not yet sent for the first time.
    pub(super) fn unsent(&self) -> u64 {
        self.buffer.end() - self.next_position
    }

    /// Notes that no more will be written.
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
        !self.has_new() && !self.parity.is_pending() && !self.copies.are_due(&self.board)
    }

    /// Whether nothing remains to be done for what was written.
    pub(super) fn all_settled(&self) -> bool {
        self.all_sent() && (!self.rules.confirms() || self.board.is_empty())
    }

    /// One past the last TPDU sent.
    pub(super) fn end_seq(&self) -> TpduSeq {
        self.board.next_seq()
    }

    /// The first TPDU that is not settled, or that is kept in case the peer asks for it.
    pub(super) const fn first_unsettled(&self) -> TpduSeq {
        self.board.base()
    }

    /// Takes echoed timestamps for rounded down to the short form's unit, from now on.
    pub(super) const fn cut_stamps(&mut self) {
        self.board.cut_stamps();
    }

    pub(super) const fn cuts_stamps(&self) -> bool {
        self.board.cuts_stamps()
    }

    /// The mean time from a TPDU's first transmission until it and all before it are known to have arrived.
    pub(super) const fn in_order_after(&self) -> Option<Duration> {
        self.board.in_order_after()
    }

    pub(super) const fn rtt(&self) -> &RttEstimator {
        &self.rtt
    }

    /// Whether TPDUs are in flight that the peer should answer.
    pub(super) fn awaits_answer(&self) -> bool {
        self.rules.confirms() && !self.board.is_empty()
    }

    /// The TPDUs that may be unconfirmed.
    fn window_tpdus(&self) -> usize {
        let peer = self.peer_window.unwrap_or(self.window);
        usize::from(peer.min(self.window))
    }

    fn window_open(&self) -> bool {
        !self.rules.confirms() || self.board.len() < self.window_tpdus()
    }

    /// Whether no more than a quarter of the window is in use.
    pub(super) fn has_window_to_spare(&self) -> bool {
        self.board.len() <= self.window_tpdus() / 4
    }

    /// Whether [`Sender::next_unit`] would return a unit, not counting a repetition of the tail.
    pub(super) fn wants_to_send(&self) -> bool {
        if self.probe.is_some() {
            return true;
        }
        if self.stalled {
            return self.asks_with_new();
        }
        self.copies.are_due(&self.board)
            || self.has_symbol_due()
            || self.board.has_lost()
            || self.parity.is_ready()
            || (self.has_new() && (self.window_open() || self.window_probe))
    }

    /// The next TPDU to send; it counts as sent.
    pub(super) fn next_unit(&mut self, now: Instant, scratch: &mut Vec<u8>) -> Option<Unit> {
        if let Some(unit) = self.probe.take().and_then(|seq| self.again(now, seq)) {
            return Some(unit);
        }
        if self.stalled {
            return self.next_new_in_silence(now);
        }
        if let Some(unit) = self.next_copy(now) {
            return Some(unit);
        }
        if let Some(unit) = self.next_symbol(now, scratch) {
            return Some(unit);
        }
        while !self.defers_lost()
            && let Some(seq) = self.board.next_lost()
        {
            self.withdraw_late(now, seq);
            if let Some(unit) = self.again(now, seq) {
                self.copies.follow(seq);
                self.copy_repetition(seq, unit.len);
                self.copy_overdue(seq, unit.len);
                return Some(unit);
            }
        }
        if let Some(unit) = self.next_repair(scratch) {
            return Some(unit);
        }
        self.drop_late(now);
        if self.has_new() && (self.window_open() || self.window_probe) {
            self.window_probe = false;
            return Some(self.new_unit(now));
        }
        None
    }

    fn again(&mut self, now: Instant, seq: TpduSeq) -> Option<Unit> {
        let entry = self.board.get(seq)?;
        let (position, len) = (entry.position, entry.len_again());
        self.board.on_sent_again(now, seq);
        self.arm_retransmission(now);
        Some(Unit {
            seq,
            kind: TransmitKind::Retransmission,
            position,
            len,
            is_copy: false,
            repair: None,
            window: None,
        })
    }

    fn next_repair(&mut self, scratch: &mut Vec<u8>) -> Option<Unit> {
        let (seq, repair) = self
            .parity
            .next_repair(&self.board, &self.buffer, scratch)?;
        let len = scratch.len();
        Some(Unit {
            seq,
            kind: TransmitKind::Repair,
            position: 0,
            len,
            is_copy: false,
            repair: Some(repair),
            window: None,
        })
    }

    fn new_unit(&mut self, now: Instant) -> Unit {
        // It is released before and not after: the caller has yet to copy what this call returns.
        self.release(now);
        let position = self.next_position;
        let unsent = usize::try_from(self.unsent()).unwrap_or(usize::MAX);
        let len = self
            .messages
            .pop_front()
            .unwrap_or_else(|| unsent.min(self.cut_bytes).min(self.next_bytes_max));
        self.next_position += len as u64;
        // A payload is at most 65,000 octets.
        let entry_len = u32::try_from(len).unwrap_or(u32::MAX);
        let seq = self.board.on_first_sent(now, position, entry_len);
        self.copies.follow(seq);
        let since = self.take_written(position).unwrap_or(now);
        self.board.note_written(seq, since);
        // The waits of bulk say nothing about those of a thin flow.
        let waited = (!self.has_new()).then(|| now.saturating_since(since));
        if let Some(thin) = &mut self.thin {
            thin.on_first_sent(now, (len, waited));
        }
        if !self.stalled {
            self.repair_ahead(now, seq, len);
        }
        self.parity.on_source(now, seq);
        if self.rules.retransmits() {
            self.arm_retransmission(now);
        }
        if !self.has_new() {
            self.tail.on_all_left(now);
            if self.finishing {
                self.parity.close();
            }
        }
        Unit {
            seq,
            kind: TransmitKind::Source,
            position,
            len,
            is_copy: false,
            repair: None,
            window: None,
        }
    }

    /// The octets of a source TPDU.
    pub(super) fn body<'a>(&'a self, unit: &Unit, scratch: &'a mut Vec<u8>) -> &'a [u8] {
        self.buffer.slice(unit.position, unit.len, scratch)
    }

    /// Frees payloads that nobody will ask for: settled ones in confirming modes, old ones in
    /// asking modes, and in the others those that were sent and are in no open block.
    fn release(&mut self, now: Instant) {
        if self.rules.confirms() {
            self.board.release_settled(now);
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
}
