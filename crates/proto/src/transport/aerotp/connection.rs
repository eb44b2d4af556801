//! One connection: set-up, close, patience, and the way between its parts.
//!
//! The states are those of the papers (multi-mode paper, Figure 6), with two slips corrected: after
//! its ASYN the sender is in ASYN SENT (the multi-mode paper's text says AFIN SENT), and the
//! closing event is AFINACK RX (the hybrid-ARQ paper's table says AFINNACK RX). Data needs no
//! permission: it rides on the ASYN, and whatever arrives first opens the connection at the other
//! end.

mod arrivals;
mod departures;
mod headers;
mod timers;

use super::adaptation::Adaptation;
use super::config::{ConnectionConfig, Share, Treatment};
use super::config_error::ConfigError;
use super::counters::Counters;
use super::event::{CloseReason, ConnectionId, Event, State, WriteError};
use super::key::Key;
use super::modes::ModeRules;
use super::packing::Packing;
use super::receiver::Receiver;
use super::sender::Sender;
use super::thin_repair::ThinRepair;
use super::tombstones::{Past, Tombstone};
use super::tpdu_shape::TpduShape;
use crate::bytes::Chunk;
use crate::machine::{Priority, TpduForm};
use crate::repair::RepairView;
use crate::timer::TimerTable;
use crate::trace::{RepairDecision, Trace, TraceRecord};
use crate::transport::parts::{AttemptOutcome, DeliveryReport};
use crate::units::{BitErrorRate, Duration, Instant};
use crate::wire::{Mode, TpduSeq};
use std::collections::VecDeque;
use timers::{AFIN_ATTEMPTS_UNCONFIRMED, ConnectionTimer, IDLE_AFTER, LINGER_MIN};

/// The meaning of a TPDU for the path's rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RateSign {
    /// Whether an answer echoed a mark, if it was one.
    pub(super) marked: Option<bool>,
    /// Its report on the path.
    pub(super) report: Option<DeliveryReport>,
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
    /// The form of what is sent on the path.
    form: TpduForm,
    /// Whether the peer takes repair symbols over windows.
    windows: bool,
    sender: Sender,
    receiver: Receiver,
    /// Payload length and parity by the bit error rate, if they follow it.
    // Boxed, because most connections have none, and finished ones are kept for a while.
    adaptation: Option<Box<Adaptation>>,
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
    /// Whether the peer was found to know nothing of the connection.
    forgotten: bool,
    why_closed: Option<CloseReason>,
    gone: bool,
    last_received: Instant,
    last_sent: Instant,
    /// The TPDU with data that was appended last, unless parity was.
    last_source: Option<TpduSeq>,
    /// The last time that unused memory was freed.
    tidied_at: Instant,
    timers: TimerTable<ConnectionTimer>,
}

/// The octets that a TPDU in the long form may have.
fn long_bytes_max(config: &ConnectionConfig, form: TpduForm) -> usize {
    let type_bytes = Packing::of(form, false).long_type_bytes();
    config.tpdu_bytes_max.saturating_sub(type_bytes)
}

/// The shape of TPDUs before the peer's first estimate.
fn first_shape(config: &ConnectionConfig, payload: usize) -> TpduShape {
    TpduShape {
        payload,
        fec_words: config.fec_words,
    }
}

impl Connection {
    fn restart_adaptation(&mut self, payload_bytes: usize) {
        let first = first_shape(&self.config, payload_bytes);
        if let Some(adaptation) = &mut self.adaptation {
            adaptation.set_tpdu_bytes_max(long_bytes_max(&self.config, self.form), first);
            self.sender.cut_into(adaptation.payload_before_news(), None);
        }
    }

    /// Takes the bit error rate that the link's electronics derive from the received power.
    pub(super) fn on_power(&mut self, now: Instant, rate: BitErrorRate) {
        self.receiver.note_power(now, rate);
    }

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
            form: TpduForm::Long,
            windows: false,
            sender: Sender::new(now, &config, rules, payload_bytes),
            receiver: Receiver::new(&config, rules),
            adaptation: config.adapt.filter(|_| rules.confirms()).map(|coherence| {
                let first = first_shape(&config, payload_bytes);
                Box::new(Adaptation::new(coherence, config.tpdu_bytes_max, first))
            }),
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
            forgotten: false,
            why_closed: None,
            gone: false,
            last_received: now,
            last_sent: now,
            last_source: None,
            tidied_at: now,
            timers: TimerTable::default(),
        };
        connection.restart_adaptation(payload_bytes);
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

    pub(super) const fn share(&self) -> Share {
        self.config.share
    }

    pub(super) const fn state(&self) -> State {
        self.state
    }

    pub(super) const fn counters(&self) -> &Counters {
        &self.counters
    }

    pub(super) const fn id(&self) -> ConnectionId {
        self.id
    }

    pub(super) const fn trace_mut(&mut self) -> &mut Trace {
        &mut self.trace
    }

    pub(super) fn rtt(&self) -> Option<Duration> {
        self.sender.rtt().smoothed()
    }

    pub(super) const fn newest_stamp(&self) -> Option<(u32, Instant)> {
        self.receiver.newest_stamp()
    }

    pub(super) const fn in_order_after(&self) -> Option<Duration> {
        self.sender.in_order_after()
    }

    pub(super) fn rtt_min(&self) -> Option<Duration> {
        self.sender.rtt().min()
    }

    /// Takes the round trip of the path, which was learned elsewhere.
    pub(super) fn expect_round_trip(&mut self, now: Instant, round_trip: Duration) {
        self.sender.expect_round_trip(now, round_trip);
    }

    /// Takes the peer's first word, which is no answer to a TPDU.
    pub(super) fn on_challenge(&mut self, now: Instant) {
        self.sender.on_challenge(now);
    }

    pub(super) fn unsent_bytes(&self) -> u64 {
        self.sender.unsent()
    }

    pub(super) fn write_room(&self) -> usize {
        self.sender.room()
    }

    /// Takes over the part of `treatment` that concerns this side's data, if none was written.
    pub(super) fn reconfigure(&mut self, treatment: Treatment) -> Result<bool, ConfigError> {
        let config = ConnectionConfig {
            priority: treatment.priority,
            share: treatment.share,
            fec_words: treatment.fec_words,
            block: treatment.block,
            unsent_bytes_max: treatment.unsent_bytes_max,
            ..self.config
        };
        let payload_bytes = config.payload_bytes_in(self.packing())?;
        let fresh = !self.sender.has_written();
        if fresh {
            self.sender.reconfigure(&config, payload_bytes);
            self.config = config;
            self.restart_adaptation(payload_bytes);
        }
        Ok(fresh)
    }

    /// Makes TPDUs of at most `octets` from now on.
    pub(super) fn set_tpdu_bytes_max(&mut self, octets: usize) -> Result<(), ConfigError> {
        let config = ConnectionConfig {
            tpdu_bytes_max: octets,
            ..self.config
        };
        let payload_bytes = config.payload_bytes_in(self.packing())?;
        self.sender.set_payload_bytes(payload_bytes);
        self.config = config;
        self.restart_adaptation(payload_bytes);
        Ok(())
    }

    pub(super) fn all_settled(&self) -> bool {
        self.sender.all_settled()
    }

    /// Octets that the receiver holds while a TPDU before them is missing.
    pub(super) fn ahead_bytes(&self) -> usize {
        self.receiver.ahead_bytes()
    }

    /// Memory that grows with the data under way.
    pub(super) fn memory_bytes(&self) -> usize {
        self.sender.memory_bytes() + self.receiver.memory_bytes()
    }

    pub(super) const fn payload_bytes(&self) -> usize {
        self.sender.payload_bytes()
    }

    pub(super) const fn tpdu_bytes_max(&self) -> usize {
        self.config.tpdu_bytes_max
    }

    /// Keeps what becomes of TPDUs from now on, for [`Connection::drain_outcomes`], unless their shape follows what the peer
    /// tells.
    pub(super) fn keep_outcomes(&mut self) {
        if self.adaptation.is_none() {
            self.sender.keep_outcomes();
        }
    }

    /// Whether what becomes of TPDUs is kept, so that their length can follow it.
    pub(super) const fn keeps_outcomes(&self) -> bool {
        self.sender.keeps_outcomes()
    }

    /// Whether something became of TPDUs that was not taken yet.
    pub(super) fn has_outcomes(&self) -> bool {
        self.sender.has_outcomes()
    }

    /// Takes what became of TPDUs since the last call, in the order of sending.
    pub(super) fn drain_outcomes(&mut self, each: impl FnMut(AttemptOutcome)) {
        self.sender.drain_outcomes(each);
    }

    /// Whether far fewer TPDUs are unconfirmed than may be.
    pub(super) fn has_window_to_spare(&self) -> bool {
        self.sender.has_window_to_spare()
    }

    /// Whether the endpoint may forget the connection.
    pub(super) const fn is_gone(&self) -> bool {
        self.gone
    }

    pub(super) fn next_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// The answer to a peer that still asks once this connection is forgotten.
    pub(super) fn tombstone(&self) -> Tombstone {
        let past = match (self.why_closed, self.receiver.end_taken()) {
            _ if self.forgotten => Past::Forgotten,
            (Some(CloseReason::Finished), Some(end)) => Past::Finished(end),
            _ => Past::Silent,
        };
        Tombstone {
            past,
            initiator: self.initiator,
            mode: self.config.mode,
        }
    }

    fn enter(&mut self, now: Instant, state: State) {
        if self.state != state {
            self.state = state;
            self.trace
                .note(now, TraceRecord::State { to: state.name() });
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

    pub(super) fn write(&mut self, now: Instant, octets: &[u8]) -> Result<usize, WriteError> {
        self.writable()?;
        Ok(self.sender.write(now, octets))
    }

    pub(super) fn write_message(
        &mut self,
        now: Instant,
        octets: &[u8],
        since: Instant,
    ) -> Result<bool, WriteError> {
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
        Ok(self.sender.write_message(now, octets, since))
    }

    pub(super) fn read(&mut self, now: Instant) -> Option<Chunk> {
        self.receiver.read(now, &mut self.counters)
    }

    /// Lets what the peer writes be read as it comes, from now on.
    pub(super) fn read_in_any_order(&mut self) {
        self.receiver.read_in_any_order();
    }

    /// Lets the peer take back what it wrote, from now on.
    pub(super) const fn do_without_withdrawn(&mut self) {
        self.receiver.do_without_withdrawn();
    }

    /// Repairs this side's data as `allowed` says while nothing waits to be sent, from now on.
    pub(super) fn allow_thin(&mut self, allowed: ThinRepair) {
        self.config.thin = Some(allowed);
        self.sender.allow_thin(allowed);
    }

    /// The view from which this side's repair for a goal is chosen.
    pub(super) fn repair_view(&self) -> Option<RepairView> {
        self.sender.repair_view()
    }

    /// Whether everything that the peer wrote is here, with its end.
    pub(super) fn is_complete(&self) -> bool {
        self.receiver.is_complete()
    }

    pub(super) fn recycle(&mut self, octets: Vec<u8>) {
        self.receiver.recycle(octets);
    }

    /// Notes that no data is expected to follow for now.
    pub(super) fn pause(&mut self) {
        self.sender.pause();
    }

    /// Notes that no more will be written.
    pub(super) fn close(&mut self) {
        self.closing = true;
        self.sender.finish();
    }

    /// Ends the connection at once; the peer is told.
    pub(super) fn abort(&mut self, now: Instant) {
        if self.why_closed.is_none() {
            self.reset_due = self.rules.connection;
            self.end(now, CloseReason::Aborted);
            self.gone = !self.reset_due;
        }
    }

    /// The reason `why`, unless only the peer's confirmation of the end was missing: then
    /// everything is delivered both ways, and the connection is finished.
    fn unless_finished(&self, why: CloseReason) -> CloseReason {
        let finished = self.closing && self.sender.all_settled() && self.receiver.is_complete();
        if finished { CloseReason::Finished } else { why }
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

    /// Ends the connection at once; there is nobody to tell.
    pub(super) fn vanish(&mut self, now: Instant) {
        self.end(now, CloseReason::Aborted);
        self.reset_due = false;
        self.gone = true;
    }

    /// Ends a connection whose state the peer has lost. The connection that the peer has instead
    /// can come to no end with this side, so the peer is told.
    fn end_forgotten(&mut self, now: Instant) {
        self.end(now, CloseReason::Reset);
        self.forgotten = true;
        self.reset_due = true;
        self.gone = false;
    }

    /// Ends a connection of which a message was taken back that this end cannot do without.
    pub(super) fn refuse_withdrawal(&mut self, now: Instant) {
        self.end(now, CloseReason::Disagreed);
        self.reset_due = true;
        self.gone = false;
    }

    /// Takes the change of the repair that is to be told.
    pub(super) fn take_repair_change(&mut self, now: Instant) -> Option<RepairDecision> {
        let decision = self.sender.take_repair_change()?;
        self.trace.note(now, TraceRecord::RepairPlanned(decision));
        Some(decision)
    }

    /// Brings the connection as a whole up to date. Called after every input.
    pub(super) fn settle(&mut self, now: Instant) {
        self.counters.late_unsent = self.sender.late_unsent();
        if self.receiver.take_readable() {
            self.events.push_back(Event::Readable(self.id));
        }
        if self.why_closed.is_some() {
            return;
        }
        if self.last_sent.max(self.last_received) > self.tidied_at {
            self.timers
                .set_if_idle(ConnectionTimer::Idle, now + IDLE_AFTER);
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
}
