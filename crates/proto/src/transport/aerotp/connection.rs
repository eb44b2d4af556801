//! One connection: set-up, close, patience, and the way between its parts.
//!
//! The states are those of the papers (multi-mode paper, Figure 6), with their two slips mended
//! (spec, A6). Data needs no permission: it rides on the ASYN, and whatever arrives first opens
//! the connection at the other end.

use super::config::{ConfigError, ConnectionConfig};
use super::counters::Counters;
use super::event::{CloseReason, ConnectionId, Event, State, WriteError};
use super::intake::append_parity;
use super::modes::ModeRules;
use super::receiver::{Arrival, Receiver};
use super::sender::{Sender, Unit};
use crate::bytes::Chunk;
use crate::fec::packet::PacketCode;
use crate::machine::{Deadline, Kind, PathId, Priority};
use crate::timer::{TimerKind, TimerTable};
use crate::trace::{Record, Trace};
use crate::units::{Duration, Instant};
use crate::wire::aerotp::{
    BodyCheck, EcnField, FecStrength, Feedback, Flags, Header, Mack, Mode, Nack, Outgoing, Port,
    Tpdu, TpduKind, encode,
};
use std::collections::VecDeque;

#[derive(Clone, Copy, Debug, PartialEq)]
enum ConnectionTimer {
    Setup,
    Afin,
    Linger,
    Silence,
    KeepAlive,
}

impl TimerKind for ConnectionTimer {
    const COUNT: usize = 5;
    fn index(self) -> usize {
        self as usize
    }
    fn why(self) -> &'static str {
        match self {
            Self::Setup => "ASYN again",
            Self::Afin => "AFIN again",
            Self::Linger => "CLOSE_TO",
            Self::Silence => "peer silent for too long",
            Self::KeepAlive => "keep-alive",
        }
    }
}

/// The least time in which a closed connection still answers (spec, section 1.7).
const LINGER_MIN: Duration = Duration::from_secs(2);
/// In modes that confirm nothing, an AFIN without answer is repeated so often.
const AFIN_ATTEMPTS_UNCONFIRMED: u32 = 4;
/// Keep-alives in the time after which silence means that the peer is gone.
const KEEP_ALIVES_PER_PATIENCE: u32 = 4;

/// Which TPDU of two ends belongs to which connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) path: PathId,
    pub(super) local: u16,
    pub(super) remote: u16,
}

/// What a TPDU meant for the endpoint's rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RateSign {
    None,
    Marked,
    Clear,
}

#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts, each one bit of the state"
)]
pub(super) struct Connection {
    id: ConnectionId,
    key: Key,
    config: ConnectionConfig,
    rules: ModeRules,
    state: State,
    initiator: bool,
    /// Whether the peer was ever heard.
    heard: bool,
    sender: Sender,
    receiver: Receiver,
    counters: Counters,
    trace: Trace,
    events: VecDeque<Event>,
    setup_due: bool,
    closing: bool,
    afin_due: bool,
    afin_attempts: u32,
    afin_answered: bool,
    all_sent_told: bool,
    reset_due: bool,
    why_closed: Option<CloseReason>,
    gone: bool,
    last_received: Instant,
    last_sent: Instant,
    timers: TimerTable<ConnectionTimer>,
}

impl Connection {
    pub(super) fn new(
        now: Instant,
        id: ConnectionId,
        key: Key,
        config: ConnectionConfig,
        initiator: bool,
        trace: Trace,
    ) -> Result<Self, ConfigError> {
        let rules = ModeRules::of(config.mode);
        let payload_bytes = config.payload_bytes()?;
        let mut connection = Self {
            id,
            key,
            config,
            rules,
            state: if initiator {
                State::AsynSent
            } else {
                State::Established
            },
            initiator,
            heard: !initiator,
            sender: Sender::new(&config, rules, payload_bytes),
            receiver: Receiver::new(&config, rules),
            counters: Counters::default(),
            trace,
            events: VecDeque::new(),
            setup_due: initiator && rules.connection,
            closing: false,
            afin_due: false,
            afin_attempts: 0,
            afin_answered: false,
            all_sent_told: false,
            reset_due: false,
            why_closed: None,
            gone: false,
            last_received: now,
            last_sent: now,
            timers: TimerTable::default(),
        };
        connection.rearm_patience();
        Ok(connection)
    }

    pub(super) const fn key(&self) -> Key {
        self.key
    }

    pub(super) const fn mode(&self) -> Mode {
        self.config.mode
    }

    pub(super) const fn priority(&self) -> Priority {
        self.config.priority
    }

    pub(super) const fn state(&self) -> State {
        self.state
    }

    pub(super) const fn counters(&self) -> &Counters {
        &self.counters
    }

    pub(super) const fn trace_mut(&mut self) -> &mut Trace {
        &mut self.trace
    }

    pub(super) fn rtt(&self) -> Option<Duration> {
        self.sender.rtt().smoothed()
    }

    pub(super) const fn payload_bytes(&self) -> usize {
        self.sender.payload_bytes()
    }

    /// Whether the endpoint may forget it.
    pub(super) const fn is_gone(&self) -> bool {
        self.gone
    }

    pub(super) fn next_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    fn enter(&mut self, now: Instant, state: State) {
        if self.state != state {
            self.state = state;
            self.trace.note(now, Record::State { to: state.name() });
        }
    }

    fn writable(&self) -> Result<(), WriteError> {
        if self.why_closed.is_some() {
            Err(WriteError::Closed)
        } else if self.closing {
            Err(WriteError::Finishing)
        } else {
            Ok(())
        }
    }

    pub(super) fn write(&mut self, octets: &[u8]) -> Result<usize, WriteError> {
        self.writable()?;
        Ok(self.sender.write(octets))
    }

    pub(super) fn write_message(&mut self, octets: &[u8]) -> Result<bool, WriteError> {
        self.writable()?;
        let max = self.sender.payload_bytes();
        if octets.len() > max {
            return Err(WriteError::MessageTooLong {
                len: octets.len(),
                max,
            });
        }
        if octets.is_empty() && self.rules.connection {
            return Err(WriteError::EmptyMessage);
        }
        Ok(self.sender.write_message(octets))
    }

    pub(super) fn read(&mut self) -> Option<Chunk> {
        self.receiver.read(&mut self.counters)
    }

    pub(super) fn recycle(&mut self, octets: Vec<u8>) {
        self.receiver.recycle(octets);
    }

    /// No more will be written.
    pub(super) fn close(&mut self) {
        self.closing = true;
        self.sender.finish();
    }

    /// Ends at once; the peer is told.
    pub(super) fn abort(&mut self, now: Instant) {
        if self.why_closed.is_none() {
            self.reset_due = self.rules.connection;
            self.end(now, CloseReason::Aborted);
            self.gone = !self.reset_due;
        }
    }

    fn end(&mut self, now: Instant, why: CloseReason) {
        if self.why_closed.is_some() {
            return;
        }
        self.why_closed = Some(why);
        self.enter(now, State::Closed);
        self.events.push_back(Event::Closed { id: self.id, why });
        for timer in [
            ConnectionTimer::Setup,
            ConnectionTimer::Afin,
            ConnectionTimer::Silence,
        ] {
            self.timers.stop(timer);
        }
        self.timers.stop(ConnectionTimer::KeepAlive);
        if why == CloseReason::Finished && self.rules.connection {
            let linger = (self.sender.rto() * 4).max(LINGER_MIN);
            self.timers.set(ConnectionTimer::Linger, now + linger);
        } else {
            self.gone = why != CloseReason::Aborted;
        }
    }

    /// Called after every input: what follows from it for the connection as a whole.
    pub(super) fn settle(&mut self, now: Instant) {
        if self.receiver.take_readable() {
            self.events.push_back(Event::Readable(self.id));
        }
        if self.why_closed.is_some() {
            return;
        }
        let room = (self.config.send_buffer_bytes / 4).max(self.sender.payload_bytes());
        if self
            .sender
            .take_writable(room.min(self.config.send_buffer_bytes))
            && !self.closing
        {
            self.events.push_back(Event::Writable(self.id));
        }
        if self.receiver.take_end() {
            self.events.push_back(Event::PeerFinished(self.id));
        }
        if !self.closing || !self.sender.all_sent() {
            return;
        }
        if self.afin_attempts == 0 && self.rules.connection {
            self.afin_due = true;
        }
        if self.sender.all_settled() && !self.all_sent_told {
            self.all_sent_told = true;
            self.events.push_back(Event::AllSent(self.id));
        }
        let unconfirmed_end =
            !self.rules.confirms() && self.afin_attempts > AFIN_ATTEMPTS_UNCONFIRMED;
        let sent = self.sender.all_settled() && (self.afin_answered || unconfirmed_end);
        if !self.rules.connection || (sent && (self.receiver.has_ended() || unconfirmed_end)) {
            self.end(now, CloseReason::Finished);
        }
    }

    /// The listener took it: the first answer says so.
    pub(super) const fn on_accepted(&mut self) {
        self.receiver.answer_setup();
    }

    /// A TPDU of this connection.
    pub(super) fn on_tpdu(
        &mut self,
        now: Instant,
        tpdu: &Tpdu<'_>,
        corrected_symbols: u32,
        marked: bool,
    ) -> RateSign {
        self.last_received = now;
        self.rearm_patience();
        if !tpdu.fec_words.is_none() {
            self.receiver.note_strength(tpdu.fec_words);
        }
        let sign = self.route(now, tpdu, corrected_symbols, marked);
        if !self.heard && self.why_closed.is_none() {
            self.heard = true;
            if self.state == State::AsynSent {
                self.enter(now, State::Established);
            }
            self.setup_due = false;
            self.timers.stop(ConnectionTimer::Setup);
            self.events.push_back(Event::Connected(self.id));
        }
        sign
    }

    fn route(
        &mut self,
        now: Instant,
        tpdu: &Tpdu<'_>,
        corrected_symbols: u32,
        marked: bool,
    ) -> RateSign {
        let arrival = Arrival {
            seq: tpdu.header.seq,
            stamp: tpdu.header.timestamp,
            marked,
            corrected_symbols,
            body: tpdu.body,
        };
        let damaged = tpdu.check == BodyCheck::Damaged;
        match tpdu.kind() {
            TpduKind::Data { asyn } => {
                if asyn && self.why_closed.is_none() {
                    self.receiver.answer_setup();
                }
                if damaged {
                    self.receiver
                        .on_damaged(now, &arrival, &mut self.counters, &mut self.trace);
                } else {
                    self.receiver
                        .on_data(now, &arrival, &mut self.counters, &mut self.trace);
                }
            }
            TpduKind::Repair => {
                if let Some(block) = tpdu.block.filter(|_| !damaged && self.rules.blocks) {
                    let (counters, trace) = (&mut self.counters, &mut self.trace);
                    self.receiver
                        .on_repair(now, block, &arrival, counters, trace);
                }
            }
            TpduKind::Asyn => {
                self.receiver.note_stamp(now, arrival.stamp, marked);
                self.receiver.answer_setup();
            }
            TpduKind::Afin => {
                self.receiver.note_stamp(now, arrival.stamp, marked);
                self.receiver.on_end(now, arrival.seq);
                if self.state == State::Established {
                    self.enter(now, State::AfinReceived);
                }
            }
            TpduKind::Reset => {
                let finished =
                    self.closing && self.sender.all_settled() && self.receiver.is_complete();
                let why = if finished {
                    CloseReason::Finished
                } else {
                    CloseReason::Reset
                };
                self.end(now, why);
                self.gone = true;
            }
            TpduKind::Mack { afin, .. } => return self.on_mack(now, tpdu, afin),
            TpduKind::Nack => match Nack::of(tpdu) {
                Ok(nack) => {
                    self.sender
                        .on_nack(now, &nack, &mut self.counters, &mut self.trace);
                }
                Err(_) => self.counters.nonsense += 1,
            },
        }
        RateSign::None
    }

    fn on_mack(&mut self, now: Instant, tpdu: &Tpdu<'_>, afin: bool) -> RateSign {
        let Ok(mack) = Mack::of(tpdu) else {
            self.counters.nonsense += 1;
            return RateSign::None;
        };
        if !self
            .sender
            .on_mack(now, &mack, &mut self.counters, &mut self.trace)
        {
            self.counters.nonsense += 1;
            return RateSign::None;
        }
        if afin && self.afin_attempts > 0 {
            self.afin_answered = true;
            self.afin_due = false;
            self.timers.stop(ConnectionTimer::Afin);
        }
        if mack.ecn.echoes() {
            RateSign::Marked
        } else {
            RateSign::Clear
        }
    }

    /// Silence ends a connection whose peer should be heard: keep-alives and acknowledgements
    /// come from any living peer, but a mode that confirms nothing may run over a one-way link.
    fn rearm_patience(&mut self) {
        if !self.rules.connection || self.why_closed.is_some() {
            return;
        }
        if self.rules.confirms() || !self.initiator {
            let at = self.last_received + self.config.give_up_after;
            self.timers.set(ConnectionTimer::Silence, at);
        }
        let pause = self.config.give_up_after / KEEP_ALIVES_PER_PATIENCE;
        self.timers
            .set_if_idle(ConnectionTimer::KeepAlive, self.last_sent + pause);
    }

    pub(super) fn wants_to_answer(&self) -> bool {
        self.reset_due
            || (self
                .why_closed
                .is_none_or(|why| why == CloseReason::Finished)
                && (self.receiver.wants_to_answer() || self.afin_due || self.wants_setup()))
    }

    /// A pure ASYN is for an application that has nothing to say yet.
    fn wants_setup(&self) -> bool {
        self.setup_due && !self.sender.wants_to_send()
    }

    pub(super) fn wants_to_send(&self) -> bool {
        self.why_closed.is_none() && self.sender.wants_to_send()
    }

    fn header(&self, now: Instant, seq: crate::wire::TpduSeq, flags: Flags) -> Header {
        Header {
            source: Port(self.key.local),
            destination: Port(self.key.remote),
            seq,
            timestamp: now.as_wrapping_micros(),
            mode: self.config.mode,
            ecn: EcnField::NONE,
            flags,
        }
    }

    fn bare(&mut self, now: Instant, seq: crate::wire::TpduSeq, flags: Flags, out: &mut Vec<u8>) {
        let header = self.header(now, seq, flags);
        encode(
            &Outgoing {
                header,
                crc: true,
                fec_words: FecStrength::NONE,
                block: None,
                body: &[],
            },
            out,
        );
    }

    /// Appends one control TPDU, if one is due.
    pub(super) fn write_control(
        &mut self,
        now: Instant,
        code: &mut PacketCode,
        out: &mut Vec<u8>,
    ) -> Option<Kind> {
        if !self.wants_to_answer() {
            return None;
        }
        let start = out.len();
        if core::mem::take(&mut self.reset_due) {
            self.bare(now, self.sender.end_seq(), Flags::RST, out);
            self.gone = true;
        } else if self.wants_setup() {
            self.setup_due = false;
            self.timers
                .set(ConnectionTimer::Setup, now + self.sender.rto());
            self.bare(now, self.config.first_seq, Flags::ASYN, out);
        } else if core::mem::take(&mut self.afin_due) {
            self.afin_attempts += 1;
            self.timers
                .set(ConnectionTimer::Afin, now + self.sender.rto());
            self.enter(now, State::AfinSent);
            self.bare(now, self.sender.end_seq(), Flags::AFIN, out);
        } else {
            let strength = self.receiver.feedback_strength();
            let template = Feedback {
                source: Port(self.key.local),
                destination: Port(self.key.remote),
                mode: self.config.mode,
                ecn: EcnField::NONE,
                echo: 0,
                crc: true,
                fec_words: strength,
            };
            if !self.receiver.write_answer(now, template, out) {
                return None;
            }
            append_parity(code, out, start, strength);
        }
        self.on_sent(now, Kind::Control, out.len() - start);
        Some(Kind::Control)
    }

    fn on_sent(&mut self, now: Instant, kind: Kind, octets: usize) {
        self.last_sent = now;
        self.counters.on_sent(kind, octets);
    }

    /// Appends one TPDU with data or parity, if there is one to send.
    pub(super) fn write_data(
        &mut self,
        now: Instant,
        code: &mut PacketCode,
        scratch: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Option<Kind> {
        let unit = self.sender.next_unit(now, scratch)?;
        let start = out.len();
        let first = unit.seq == self.config.first_seq && unit.repair.is_none();
        let flags = if first && self.rules.connection && !self.heard {
            self.setup_due = false;
            self.timers
                .set(ConnectionTimer::Setup, now + self.sender.rto());
            Flags::ASYN
        } else {
            Flags::NONE
        };
        let header = self.header(now, unit.seq, flags);
        let fec_words = self.config.fec_words;
        let crc = self.config.payload_crc;
        let body = if unit.repair.is_some() {
            scratch.as_slice()
        } else {
            self.sender.body(&unit, scratch)
        };
        encode(
            &Outgoing {
                header,
                crc,
                fec_words,
                block: unit.repair,
                body,
            },
            out,
        );
        append_parity(code, out, start, fec_words);
        self.note_unit(now, &unit);
        self.on_sent(now, unit.kind, out.len() - start);
        Some(unit.kind)
    }

    fn note_unit(&mut self, now: Instant, unit: &Unit) {
        let record = match unit.repair {
            Some(block) => Record::RepairSent {
                first: unit.seq,
                index: block.repair_index,
            },
            None => Record::Sent {
                seq: unit.seq,
                position: unit.position,
                len: u32::try_from(unit.len).unwrap_or(u32::MAX),
                again: unit.kind == Kind::Retransmission,
            },
        };
        self.trace.note(now, record);
    }

    pub(super) fn handle_deadline(&mut self, now: Instant) {
        self.sender
            .handle_deadline(now, &mut self.counters, &mut self.trace);
        self.receiver
            .handle_deadline(now, &mut self.counters, &mut self.trace);
        while let Some(timer) = self.timers.expire(now) {
            match timer {
                ConnectionTimer::Setup => self.on_setup_timeout(now),
                ConnectionTimer::Afin => self.on_afin_timeout(now),
                ConnectionTimer::Linger => self.gone = true,
                ConnectionTimer::Silence => self.end(now, CloseReason::PeerVanished),
                ConnectionTimer::KeepAlive => self.on_keep_alive(now),
            }
        }
    }

    /// No answer to the set-up. Data under way asks again by itself where it is confirmed.
    fn on_setup_timeout(&mut self, now: Instant) {
        if self.heard {
            return;
        }
        if self.sender.awaits_answer() {
            self.timers
                .set(ConnectionTimer::Setup, now + self.sender.rto());
        } else {
            self.setup_due = true;
        }
    }

    fn on_afin_timeout(&mut self, now: Instant) {
        if self.afin_answered || self.why_closed.is_some() {
            return;
        }
        if self.rules.confirms() || self.afin_attempts <= AFIN_ATTEMPTS_UNCONFIRMED {
            self.afin_due = true;
        } else {
            self.settle(now);
        }
    }

    fn on_keep_alive(&mut self, now: Instant) {
        let pause = self.config.give_up_after / KEEP_ALIVES_PER_PATIENCE;
        if self.heard && self.why_closed.is_none() && now >= self.last_sent + pause {
            self.receiver.demand_ack();
            self.timers.set(ConnectionTimer::KeepAlive, now + pause);
        } else {
            self.timers.set(
                ConnectionTimer::KeepAlive,
                (self.last_sent + pause).max(now + pause / 4),
            );
        }
    }

    pub(super) fn next_deadline(&self) -> Option<Deadline> {
        let parts = Deadline::earlier(self.sender.next_deadline(), self.receiver.next_deadline());
        let own = self.timers.next_deadline();
        match self.why_closed {
            None => Deadline::earlier(parts, own),
            // Late copies are still answered while it lingers.
            Some(CloseReason::Finished) => Deadline::earlier(self.receiver.next_deadline(), own),
            Some(_) => own,
        }
    }
}
