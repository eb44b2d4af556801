//! The receiving half: TPDUs that arrived, TPDUs that are missing, and the answers about both.

mod answers;
mod holes;

use super::acknowledger::Acknowledger;
use super::blocks::BlockAssembly;
use super::config::ConnectionConfig;
use super::counters::Counters;
use super::modes::{ModeRules, Nacks};
use super::patience::Patience;
use super::window_repair::{RebuiltTpdus, WindowAssembly};
use crate::bytes::{Chunk, Inserted, Reassembly};
use crate::damage::{ChannelReport, SeenErrors};
use crate::machine::Deadline;
use crate::repair::DeliveryOrder;
use crate::timer::{TimerKind, TimerTable};
use crate::trace::{Trace, TraceRecord};
use crate::units::{BitErrorRate, Duration, Instant};
use crate::wire::TpduSeq;
use crate::wire::aerotp::{
    BlockDescriptor, FecStrength, Handshake, LISTED_NUMBERS_MAX, WindowDescriptor,
};
use core::num::NonZeroU8;
use std::collections::VecDeque;

#[derive(Clone, Copy, Debug)]
enum ReceiverTimer {
    HoleWait,
    NackRepeat,
    Report,
}

impl TimerKind for ReceiverTimer {
    const COUNT: usize = 3;
    fn index(self) -> usize {
        self as usize
    }
    fn why(self) -> &'static str {
        match self {
            Self::HoleWait => "patience with a hole",
            Self::NackRepeat => "NACK repeat",
            Self::Report => "report on the path",
        }
    }
}

/// An arriving data TPDU, after correction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival<'a> {
    pub(super) seq: TpduSeq,
    pub(super) stamp: u32,
    pub(super) marked: bool,
    /// Whether the sender asks for an answer at once.
    pub(super) asks: bool,
    /// Whether the sender took the payload back: it would come too late.
    pub(super) is_withdrawn: bool,
    pub(super) corrected_symbols: u32,
    pub(super) body: &'a [u8],
}

/// The time between requests for holes, before a hole has ever been filled.
const NACK_REPEAT_INITIAL: Duration = Duration::from_millis(500);
/// The least time between requests.
const NACK_REPEAT_MIN: Duration = Duration::from_millis(10);

/// The time between reports on the path while data arrives, in modes that acknowledge nothing.
const REPORT_INTERVAL: Duration = Duration::from_millis(50);

#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts, each one bit of the state"
)]
pub(super) struct Receiver {
    rules: ModeRules,
    patience: Patience,
    first_seq: TpduSeq,
    deliver_damaged: bool,
    window: u16,
    ring: Reassembly,
    /// Whether the peer may take back what is still to be read in its turn.
    spares_withdrawn: bool,
    acks: Acknowledger,
    channel: Option<Box<ChannelReport>>,
    blocks: BlockAssembly,
    windows: WindowAssembly,
    /// The latest number beyond the window, in modes that may lose data.
    beyond: Option<TpduSeq>,
    asked_damaged: VecDeque<TpduSeq>,
    /// The latest TPDU that arrived damaged, if copies of it were still to leave. The sender may have taken
    /// these copies for the answer to the request.
    copies_awaited: Option<TpduSeq>,
    /// Whether each TPDU is sent several times.
    expects_copies: bool,
    asked_missing: bool,
    asked_at: Option<(TpduSeq, Instant)>,
    nack_repeat: Duration,
    end: Option<TpduSeq>,
    feedback_strength: FecStrength,
    /// Whether the sender should hear how its path does, in modes that acknowledge nothing.
    report_wanted: bool,
    has_reported: bool,
    readable_told: bool,
    end_told: bool,
    timers: TimerTable<ReceiverTimer>,
}

/// Parity words that protect acknowledgements where data has parity: enough for several errors in a MACK
/// of usual size, and little compared with it.
const FEEDBACK_WORDS_MAX: u16 = 4;

impl Receiver {
    pub(super) fn new(config: &ConnectionConfig, rules: ModeRules) -> Self {
        let mut ring = Reassembly::new(config.first_seq, usize::from(config.window_tpdus));
        let goal = config.thin.and_then(|thin| thin.goal());
        if goal.is_some_and(|goal| goal.order == DeliveryOrder::Any) {
            ring.read_in_any_order();
        }
        Self {
            rules,
            patience: Patience::new(config, rules),
            first_seq: config.first_seq,
            deliver_damaged: config.deliver_damaged,
            window: config.window_tpdus,
            ring,
            spares_withdrawn: false,
            acks: Acknowledger::new(rules.acks, config),
            channel: config
                .adapt
                .filter(|_| rules.confirms())
                .map(|memory| Box::new(ChannelReport::new(memory))),
            blocks: BlockAssembly::new(rules.blocks),
            windows: WindowAssembly::default(),
            beyond: None,
            asked_damaged: VecDeque::new(),
            copies_awaited: None,
            expects_copies: config.copies > NonZeroU8::MIN,
            asked_missing: false,
            asked_at: None,
            nack_repeat: NACK_REPEAT_INITIAL,
            end: None,
            feedback_strength: FecStrength::NONE,
            report_wanted: false,
            has_reported: false,
            readable_told: false,
            end_told: false,
            timers: TimerTable::default(),
        }
    }

    /// Notes the parity strength of data: acknowledgements get parity too.
    pub(super) fn note_strength(&mut self, strength: FecStrength) {
        let words = strength.words().min(FEEDBACK_WORDS_MAX);
        self.feedback_strength = FecStrength::from_words(words).unwrap_or_default();
    }

    pub(super) const fn feedback_strength(&self) -> FecStrength {
        self.feedback_strength
    }

    /// The number of the TPDU that is expected next.
    pub(super) fn next_expected(&self) -> TpduSeq {
        self.ring.next_expected()
    }

    pub(super) const fn newest_stamp(&self) -> Option<(u32, Instant)> {
        self.acks.newest_stamp()
    }

    pub(super) const fn note_stamp(&mut self, now: Instant, stamp: u32, marked: bool) {
        self.acks.note_stamp(now, stamp, marked);
    }

    /// Takes the number of wrong bits in a TPDU of so many octets. The sender hears at once of a
    /// rate that changes its choice.
    pub(super) fn note_errors(&mut self, now: Instant, octets: usize, errors: SeenErrors) {
        if let Some(channel) = &mut self.channel
            && channel.on_packet(now, octets, errors)
        {
            self.acks.demand();
        }
    }

    /// Takes the bit error rate that the received power gives.
    pub(super) fn note_power(&mut self, now: Instant, rate: BitErrorRate) {
        if let Some(channel) = &mut self.channel
            && channel.on_power(now, rate)
        {
            self.acks.demand();
        }
    }

    /// Takes an intact data TPDU.
    pub(super) fn on_data(
        &mut self,
        now: Instant,
        arrival: &Arrival<'_>,
        counters: &mut Counters,
        trace: &mut Trace,
    ) {
        self.acks.note_stamp(now, arrival.stamp, arrival.marked);
        self.ask_behind_copies(arrival.seq);
        if arrival.corrected_symbols > 0 {
            counters.recovered_fec_words += 1;
            counters.corrected_symbols += u64::from(arrival.corrected_symbols);
        }
        let body = if arrival.is_withdrawn {
            &[][..]
        } else {
            arrival.body
        };
        let inserted = self.insert(now, arrival.seq, body, true, counters);
        if !matches!(inserted, Inserted::Duplicate | Inserted::Beyond) {
            let (seq, corrected_symbols) = (arrival.seq, arrival.corrected_symbols);
            trace.note(
                now,
                TraceRecord::Accepted {
                    seq,
                    corrected_symbols,
                },
            );
            // A payload that was taken back mends nothing.
            if arrival.is_withdrawn {
                counters.late_withdrawn += 1;
            } else {
                self.blocks.on_source(now, arrival.seq, arrival.body);
                self.rebuild(now, counters, trace);
                let rebuilt = self.windows.on_source(arrival.seq, arrival.body);
                self.take_rebuilt(now, rebuilt, counters, trace);
            }
        }
        if arrival.asks {
            self.acks.on_asked(now);
        }
        self.after_arrival(now);
    }

    fn insert(
        &mut self,
        now: Instant,
        seq: TpduSeq,
        body: &[u8],
        intact: bool,
        counters: &mut Counters,
    ) -> Inserted {
        let mut inserted = self.ring.insert(now, seq, body, intact);
        if inserted == Inserted::Beyond && self.follow(seq, counters) {
            inserted = self.ring.insert(now, seq, body, intact);
        }
        if self.expects_copies && !matches!(inserted, Inserted::Beyond) {
            self.asked_damaged.retain(|asked| *asked != seq);
        }
        match inserted {
            Inserted::Next | Inserted::Filled => {
                counters.accepted_tpdus += 1;
                let holes = self.ring.has_holes();
                // A hole filled while others remain is news that the sender should get soon.
                self.acks.on_arrival(now, seq, false);
                if !holes {
                    self.asked_missing = false;
                }
                self.learn_fill_time(now, seq);
            }
            Inserted::Ahead { new_holes } => {
                counters.accepted_tpdus += 1;
                counters.on_holes(u64::from(new_holes));
                self.acks.on_holes(new_holes);
                self.acks.on_arrival(now, seq, new_holes > 0);
                if new_holes > 0 && self.rules.nacks == Nacks::DamagedAndHoles {
                    self.asked_missing = true;
                }
            }
            Inserted::Duplicate => {
                counters.duplicates += 1;
                self.acks.on_duplicate(now, seq);
            }
            Inserted::Beyond => {
                counters.beyond_window += 1;
                // A probe into a closed window wants to hear whether it is open.
                if self.rules.confirms() {
                    self.acks.demand();
                }
            }
        }
        inserted
    }

    /// Follows a sender that went on without us, in modes that may lose data. One number beyond the
    /// window may be damage that no check noticed; two that fit one window come from the sender
    /// (RFC 3550, appendix A.1).
    fn follow(&mut self, seq: TpduSeq, counters: &mut Counters) -> bool {
        let window = u32::from(self.window);
        let agrees = |before: TpduSeq| (1..window).contains(&seq.offset_from(before));
        let follows = !self.rules.complete && self.beyond.is_some_and(agrees);
        self.beyond = Some(seq);
        if follows {
            self.pass_over(seq.plus(1), counters);
        }
        follows
    }

    fn pass_over(&mut self, end: TpduSeq, counters: &mut Counters) {
        let skipped = self.ring.make_room(end);
        counters.on_holes(u64::from(skipped.unnoticed));
        counters.residual_lost += u64::from(skipped.lost) + u64::from(skipped.unnoticed);
        counters.residual_damaged += u64::from(skipped.damaged);
    }

    fn learn_fill_time(&mut self, now: Instant, seq: TpduSeq) {
        if let Some((asked, at)) = self.asked_at
            && asked == seq
        {
            let took = now.saturating_since(at) * 3 / 2;
            self.nack_repeat = ((self.nack_repeat + took) / 2).max(NACK_REPEAT_MIN);
            self.asked_at = None;
        }
    }

    /// Takes a data TPDU that is damaged beyond its parity.
    pub(super) fn on_damaged(
        &mut self,
        now: Instant,
        arrival: &Arrival<'_>,
        counters: &mut Counters,
        trace: &mut Trace,
    ) {
        self.acks.note_stamp(now, arrival.stamp, arrival.marked);
        self.ask_behind_copies(arrival.seq);
        counters.wire_damaged += 1;
        trace.note(now, TraceRecord::Damaged { seq: arrival.seq });
        if self.deliver_damaged && !self.rules.complete {
            self.insert(now, arrival.seq, arrival.body, false, counters);
        } else {
            let seen = self.ring.end_seen();
            let wanted = self.ring.note_damaged(now, arrival.seq);
            let skipped = arrival.seq.distance_from(seen);
            if wanted && let Ok(skipped) = u64::try_from(skipped) {
                counters.on_holes(skipped);
            }
            if wanted && self.rules.nacks != Nacks::None {
                let is_asked = self.expects_copies && self.asked_damaged.contains(&arrival.seq);
                if !is_asked && self.asked_damaged.len() < LISTED_NUMBERS_MAX {
                    self.asked_damaged.push_back(arrival.seq);
                }
                self.copies_awaited = self.expects_copies.then_some(arrival.seq);
                if wanted && skipped > 0 && self.rules.nacks == Nacks::DamagedAndHoles {
                    self.asked_missing = true;
                }
            }
        }
        self.after_arrival(now);
    }

    /// Takes a repair symbol; its sequence number is the block's first source.
    pub(super) fn on_repair(
        &mut self,
        now: Instant,
        block: BlockDescriptor,
        arrival: &Arrival<'_>,
        counters: &mut Counters,
        trace: &mut Trace,
    ) {
        match self.blocks.on_repair(now, arrival.seq, block, arrival.body) {
            Some(span) => self.patience.note_repair(span),
            None => counters.nonsense += 1,
        }
        self.acks.note_stamp(now, arrival.stamp, arrival.marked);
        self.rebuild(now, counters, trace);
        self.after_arrival(now);
    }

    fn rebuild(&mut self, now: Instant, counters: &mut Counters, trace: &mut Trace) {
        for (seq, octets) in self.blocks.take_rebuilt() {
            let inserted = self.ring.insert(now, seq, &octets, true);
            if !matches!(inserted, Inserted::Duplicate | Inserted::Beyond) {
                counters.accepted_tpdus += 1;
                counters.recovered_fec_block += 1;
                trace.note(now, TraceRecord::Rebuilt { seq });
            }
        }
    }

    /// Takes a repair symbol over a window; its sequence number is the window's first source.
    pub(super) fn on_window(
        &mut self,
        now: Instant,
        window: WindowDescriptor,
        (first, symbol): (TpduSeq, &[u8]),
        counters: &mut Counters,
        trace: &mut Trace,
    ) {
        let span = (first, self.ring.end_seen());
        if let Some(rebuilt) = self.windows.on_symbol(span, window, symbol) {
            self.take_rebuilt(now, rebuilt, counters, trace);
            self.after_arrival(now);
        }
    }

    fn take_rebuilt(
        &mut self,
        now: Instant,
        rebuilt: RebuiltTpdus,
        counters: &mut Counters,
        trace: &mut Trace,
    ) {
        for (seq, octets) in rebuilt {
            let inserted = self.insert(now, seq, &octets, true, counters);
            if !matches!(inserted, Inserted::Duplicate | Inserted::Beyond) {
                counters.recovered_fec_block += 1;
                trace.note(now, TraceRecord::Rebuilt { seq });
                // Its sender may be about to repeat it.
                self.acks.on_asked(now);
            }
        }
    }

    /// Whether more was received in order than a peer whose data ends before `end` ever sent. Then
    /// the peer has lost this connection's state, and `end` is that of another connection under the
    /// same ports.
    pub(super) fn is_beyond(&self, end: TpduSeq) -> bool {
        self.rules.confirms() && end.distance_from(self.ring.next_expected()) < 0
    }

    /// Notes that the peer's data ends before `end`.
    pub(super) fn on_end(&mut self, now: Instant, end: TpduSeq, counters: &mut Counters) {
        if self.end.is_none() && end.distance_from(self.ring.end_seen()) >= 0 {
            self.end = Some(end);
        }
        if let Some(end) = self.end {
            self.patience.note_end(now);
            self.reach_end(now, end, counters);
            if self.ring.has_holes() && self.rules.nacks == Nacks::DamagedAndHoles {
                self.asked_missing = true;
            }
        }
        self.acks.answer(Handshake::Afin);
        self.after_arrival(now);
    }

    fn reach_end(&mut self, now: Instant, end: TpduSeq, counters: &mut Counters) {
        if !self.rules.complete {
            // The AFIN is answered as soon as it arrives, so it may be the only one.
            self.pass_over(end, counters);
        }
        self.ring.note_end(now, end);
    }

    pub(super) const fn answer_setup(&mut self) {
        self.acks.answer(Handshake::Asyn);
    }

    pub(super) const fn demand_ack(&mut self) {
        self.acks.demand();
    }

    /// Lets payloads be read as they come, from now on.
    pub(super) fn read_in_any_order(&mut self) {
        self.ring.read_in_any_order();
    }

    /// Lets the peer take back what it wrote, from now on: what is read in its turn passes over it.
    pub(super) const fn do_without_withdrawn(&mut self) {
        self.spares_withdrawn = true;
    }

    /// Whether a payload was taken back that this side waits for.
    pub(super) fn cannot_miss(&self, arrival: &Arrival<'_>) -> bool {
        let spares = self.spares_withdrawn || self.ring.reads_in_any_order();
        arrival.is_withdrawn && !spares && self.ring.is_wanted(arrival.seq)
    }

    /// The next payload. Of a connection an empty one was taken back.
    fn next_chunk(&mut self) -> Option<Chunk> {
        loop {
            let chunk = self.ring.read()?;
            if !chunk.octets.is_empty() || !self.rules.connection {
                return Some(chunk);
            }
            self.ring.recycle(chunk.octets);
        }
    }

    /// Takes the next payload, in order unless any order will do.
    pub(super) fn read(&mut self, now: Instant, counters: &mut Counters) -> Option<Chunk> {
        let Some(chunk) = self.next_chunk() else {
            self.readable_told = false;
            self.acks.on_window(self.ring.window(), self.window);
            return None;
        };
        counters.delivered_bytes += chunk.octets.len() as u64;
        if !chunk.intact {
            counters.delivered_damaged_bytes += chunk.octets.len() as u64;
        }
        self.acks.on_window(self.ring.window(), self.window);
        // Unread TPDUs may have stood between the window and the end.
        if let Some(end) = self.end
            && self.ring.end_seen().before(end)
        {
            self.reach_end(now, end, counters);
            self.after_arrival(now);
        }
        Some(chunk)
    }

    /// Octets held while a TPDU before them is missing. No number that a peer names counts, only octets that came.
    pub(super) fn ahead_bytes(&self) -> usize {
        if self.ring.has_holes() {
            self.ring.memory_bytes()
        } else {
            0
        }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.ring.memory_bytes() + self.windows.memory_bytes()
    }

    /// Frees memory that the held TPDUs do not need; nothing came for a while.
    pub(super) fn give_back(&mut self) {
        self.ring.give_back();
        self.acks.give_back();
        self.blocks.give_back();
        self.windows.give_back();
        self.asked_damaged.shrink_to_fit();
    }

    pub(super) fn recycle(&mut self, octets: Vec<u8>) {
        self.ring.recycle(octets);
    }

    /// Whether there is something new to read; asked often, `true` once until the application has
    /// read.
    pub(super) fn take_readable(&mut self) -> bool {
        let news = !self.readable_told && self.ring.is_readable();
        self.readable_told |= news;
        news
    }

    /// Whether the peer's end was reached and everything before it read; `true` is returned once.
    pub(super) fn take_end(&mut self) -> bool {
        let news = !self.end_told && self.has_ended();
        self.end_told |= news;
        news
    }

    pub(super) fn has_ended(&self) -> bool {
        self.end == Some(self.ring.next_expected()) && !self.ring.is_readable()
    }

    /// The peer's end, if everything before it was read or given up.
    pub(super) fn end_taken(&self) -> Option<TpduSeq> {
        self.end.filter(|_| self.has_ended())
    }

    /// Whether the end is known and nothing before it is missing; it may still have to be read.
    pub(super) fn is_complete(&self) -> bool {
        self.end == Some(self.ring.next_expected())
    }

    pub(super) fn handle_deadline(
        &mut self,
        now: Instant,
        counters: &mut Counters,
        trace: &mut Trace,
    ) {
        self.acks.handle_deadline(now);
        while let Some(timer) = self.timers.expire(now) {
            match timer {
                ReceiverTimer::Report => self.report_wanted = true,
                ReceiverTimer::HoleWait => self.give_up_holes(now, counters, trace),
                ReceiverTimer::NackRepeat => {
                    if self.ring.has_holes() {
                        self.asked_missing = true;
                        self.asked_at = None;
                    }
                }
            }
        }
    }

    pub(super) fn next_deadline(&self) -> Option<Deadline> {
        Deadline::earlier(self.acks.next_deadline(), self.timers.next_deadline())
    }
}
