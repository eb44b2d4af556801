//! The sending end: an application on an AeroTP endpoint.
//!
//! ```text
//!  Talking ──OFFER behind our position──▶ Verifying ──▶ Talking ──all sent, END──▶ AwaitingVerdict
//!     │ reset by a receiver that was restarted                                          │ DONE
//!     └──▶ Pausing ──▶ a new connection, Talking                              Leaving ◀─┘
//!  any ──stopped, or the file cannot be read──▶ Farewell ──confirmed──▶ ended
//! ```
//!
//! # Promises
//! - The first octets go out with the set-up, without waiting for a round trip. Octets that the receiver
//!   has already may be sent again for one round trip at most, until its OFFER arrives.
//! - END follows only after the OFFER was settled, so the verdict is about the right octets.
//! - A receiver that is restarted within the patience costs a reconnection, not the transfer; the
//!   patience ends also when every connection is lost again without progress.
//! - A sender that is stopped tells the receiver and waits, for some round trips, until that is confirmed.

mod farewell;
mod patience;
mod talk;

use super::record::{Digest, Item, Record, Records, TransferRefusal};
use super::report::{SendError, SendReport, SentSoFar};
use super::source::{Prefix, Source};
use super::{FILE_PORT, Stop};
use crate::udp::{Application, Step};
use farewell::Farewell;
use fulmar_proto::machine::{Deadline, PathId, Priority};
use fulmar_proto::transport::aerotp::{
    AerotpEndpoint, ConnectionConfig, ConnectionId, Counters, Event, ModeRules, PathRate,
};
use fulmar_proto::units::{Duration, Instant};
use fulmar_proto::wire::Mode;
use patience::Patience;
use std::ops::Range;

/// The time that the last acknowledgements may take once the verdict is known.
const LEAVING_MAX: Duration = Duration::from_secs(1);

/// The plan of a sender.
#[derive(Clone, Debug)]
pub struct SendPlan {
    /// The name for the receiver.
    pub name: String,
    /// The connection's settings, the mode among them.
    pub connection: ConnectionConfig,
    /// The time to try before anything was heard.
    pub connect_timeout: Duration,
    /// The number of this transfer; unpredictable.
    pub id: u64,
}

/// Someone who watches a sender.
pub trait SendObserver {
    /// The receiver already has so many octets.
    fn resumed(&mut self, _offset: u64) {}
    /// These octets were handed to the transport.
    fn submitted(&mut self, _now: Instant, _range: Range<u64>) {}
    /// So many octets of the file were confirmed, those beyond holes included. In modes that confirm nothing,
    /// so many were sent.
    fn confirmed(&mut self, _now: Instant, _octets: u64) {}
    /// The connection was lost and is opened again.
    fn reconnecting(&mut self) {}
}

impl SendObserver for () {}

#[derive(Debug)]
enum Phase {
    New,
    Talking,
    Verifying(Box<Prefix>),
    AwaitingVerdict,
    Leaving { until: Instant },
    Pausing { until: Instant },
    Farewell(Farewell),
    Ended,
}

/// The state of the data's own connection, in modes that may lose some.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lane {
    Open(ConnectionId),
    Closing(ConnectionId),
    Empty,
}

/// One file on its way.
#[derive(Debug)]
pub struct Sender<O> {
    plan: SendPlan,
    path: PathId,
    source: Source,
    stop: Stop,
    /// The one who watches.
    pub observer: O,
    phase: Phase,
    control: Option<ConnectionId>,
    lane: Option<Lane>,
    records: Records,
    outbox: Vec<u8>,
    outbox_sent: usize,
    /// The place in the outbox where the file's octets begin, and their offset in the file.
    outbox_data: Option<(usize, u64)>,
    message: Vec<u8>,
    offered: bool,
    source_ended: bool,
    started: Option<Instant>,
    first_submitted: Option<Instant>,
    heard: bool,
    resumed_at: u64,
    /// The octets that the receiver had at the first offer; `None` before that.
    present_before: Option<u64>,
    reconnections: u32,
    patience: Patience,
    verdict: Option<(Instant, u64, u64, bool)>,
    counters: Option<Counters>,
    submitted: u64,
    /// The octets given to the connection that carries the file.
    written: u64,
    /// The offset in the file after the last of them.
    written_to: u64,
    confirmed: u64,
    /// The path's last rate.
    path_rate: Option<PathRate>,
    outcome: Option<Result<SendReport, SendError>>,
}

impl<O: SendObserver> Sender<O> {
    /// A sender of `source` over `path`, which begins when it is run.
    pub fn new(plan: SendPlan, path: PathId, source: Source, stop: Stop, observer: O) -> Self {
        Self {
            plan,
            path,
            source,
            stop,
            observer,
            phase: Phase::New,
            control: None,
            lane: None,
            records: Records::default(),
            outbox: Vec::new(),
            outbox_sent: 0,
            outbox_data: None,
            message: Vec::new(),
            offered: false,
            source_ended: false,
            started: None,
            first_submitted: None,
            heard: false,
            resumed_at: 0,
            present_before: None,
            reconnections: 0,
            patience: Patience::default(),
            verdict: None,
            counters: None,
            submitted: 0,
            written: 0,
            written_to: 0,
            confirmed: 0,
            path_rate: None,
            outcome: None,
        }
    }

    /// The outcome; `None` while the transfer runs.
    pub fn take_outcome(&mut self) -> Option<Result<SendReport, SendError>> {
        self.outcome.take()
    }

    /// The sender's knowledge while there is no report.
    pub fn so_far(&self) -> SentSoFar {
        SentSoFar {
            size: self.source.size(),
            resumed_at: self.resumed_at,
            submitted: self.submitted.max(self.resumed_at),
            confirmed: self.confirmed.max(self.resumed_at),
            counters: self.counters,
            reconnections: self.reconnections,
        }
    }

    const fn mode(&self) -> Mode {
        self.plan.connection.mode
    }

    /// Whether the data needs a connection of its own beside the records.
    fn is_lossy(&self) -> bool {
        !ModeRules::of(self.mode()).complete
    }

    fn fail(&mut self, error: SendError) {
        self.phase = Phase::Ended;
        self.outcome.get_or_insert(Err(error));
    }

    fn connect(&mut self, now: Instant, machine: &mut AerotpEndpoint) -> Result<(), SendError> {
        let mut config = self.plan.connection;
        if self.is_lossy() {
            config.mode = Mode::Reliable;
            config.block = None;
            config.priority = Priority(config.priority.0.saturating_add(1));
        }
        self.control = Some(machine.connect(now, self.path, FILE_PORT, config)?);
        if let Some(Lane::Open(data) | Lane::Closing(data)) = self.lane.take() {
            machine.abort(now, data);
        }
        self.records = Records::default();
        self.outbox.clear();
        self.outbox_sent = 0;
        self.outbox_data = None;
        self.message.clear();
        self.offered = false;
        self.source_ended = false;
        self.written = 0;
        self.written_to = 0;
        self.source.rewind().map_err(SendError::Read)?;
        self.say(&Record::Hello {
            mode: self.mode(),
            id: self.plan.id,
            size: self.source.size(),
            seekable: self.source.is_seekable() && !self.is_lossy(),
            name: self.plan.name.clone(),
        });
        self.phase = Phase::Talking;
        Ok(())
    }

    /// Queues a record. Called at record boundaries only.
    fn say(&mut self, record: &Record) {
        record.encode(&mut self.outbox);
    }

    /// Writes the queued octets; returns whether all were taken.
    fn write_outbox(&mut self, now: Instant, machine: &mut AerotpEndpoint) -> bool {
        let Some(control) = self.control else {
            return false;
        };
        let waiting = self.outbox.get(self.outbox_sent..).unwrap_or_default();
        if waiting.is_empty() {
            return true;
        }
        // A closed connection says why in its own event.
        let Ok(taken) = machine.write(now, control, waiting) else {
            return false;
        };
        let before = self.outbox_sent;
        self.outbox_sent += taken;
        if !self.is_lossy() {
            self.written += taken as u64;
        }
        if let Some((begins, offset)) = self.outbox_data {
            let place = |at: usize| offset + at.saturating_sub(begins) as u64;
            self.submitted(now, place(before)..place(self.outbox_sent));
        }
        let is_empty = self.outbox_sent == self.outbox.len();
        if is_empty {
            self.outbox.clear();
            self.outbox_sent = 0;
            self.outbox_data = None;
        }
        is_empty
    }

    fn submitted(&mut self, now: Instant, range: Range<u64>) {
        if !range.is_empty() {
            self.first_submitted.get_or_insert(now);
            self.submitted = self.submitted.max(range.end);
            self.written_to = range.end;
            self.observer.submitted(now, range);
        }
    }

    fn listen(&mut self, now: Instant, machine: &mut AerotpEndpoint) -> Result<(), SendError> {
        let Some(control) = self.control else {
            return Ok(());
        };
        while let Some(chunk) = machine.read(now, control) {
            let mut octets = chunk.octets.as_slice();
            while let Some(item) = self.records.next(&mut octets)? {
                if let Item::Record(record) = item {
                    self.on_record(now, machine, record)?;
                }
            }
            machine.recycle(control, chunk.octets);
        }
        Ok(())
    }

    fn on_record(
        &mut self,
        now: Instant,
        machine: &mut AerotpEndpoint,
        record: Record,
    ) -> Result<(), SendError> {
        match record {
            Record::Offer { offset, digest } => {
                self.patience.on_offer(now, offset);
                self.on_offer(offset, digest);
                Ok(())
            }
            Record::Done {
                delivered,
                missing,
                intact,
            } => {
                self.verdict = Some((now, delivered, missing, intact));
                self.take_counters(machine);
                if let Some(control) = self.control {
                    machine.close(now, control);
                }
                self.phase = Phase::Leaving {
                    until: now + LEAVING_MAX,
                };
                Ok(())
            }
            Record::Refuse {
                reason: TransferRefusal::Stopped,
                ..
            } => Err(SendError::ReceiverStopped),
            Record::Refuse { reason, text } => Err(SendError::Refused { reason, text }),
            Record::Hello { .. }
            | Record::Start { .. }
            | Record::End { .. }
            | Record::Leave { .. }
            | Record::Ping => Ok(()),
        }
    }

    fn on_offer(&mut self, offset: u64, digest: Digest) {
        if offset == 0 || !self.source.is_seekable() {
            self.offered = true;
            self.present_before.get_or_insert(0);
        } else if matches!(self.phase, Phase::Talking) && !self.offered {
            self.phase = Phase::Verifying(Box::new(Prefix::new(offset, digest)));
        }
    }

    fn verify(&mut self, now: Instant, machine: &mut AerotpEndpoint) -> Result<Step, SendError> {
        // A record that was begun must be ended before anything else is said.
        self.write_outbox(now, machine);
        let Phase::Verifying(prefix) = &mut self.phase else {
            return Ok(Step::Again);
        };
        let Some(same) = self.source.verify_more(prefix).map_err(SendError::Read)? else {
            // The next step follows at once, but after the socket had its turn.
            return Ok(Step::Wait);
        };
        if !self.write_outbox(now, machine) {
            return Ok(Step::Wait);
        }
        let Phase::Verifying(prefix) = std::mem::replace(&mut self.phase, Phase::Talking) else {
            return Ok(Step::Again);
        };
        self.offered = true;
        self.source_ended = false;
        let present = if same { prefix.wanted() } else { 0 };
        self.present_before.get_or_insert(present);
        if same {
            self.resumed_at = prefix.wanted();
            if Some(self.resumed_at) != self.source.size() {
                self.observer.resumed(self.resumed_at);
            }
            self.source.skip_to(&prefix).map_err(SendError::Read)?;
        } else {
            self.source.rewind().map_err(SendError::Read)?;
            self.say(&Record::Start { offset: 0 });
        }
        Ok(Step::Again)
    }

    /// Reports how much of the file is confirmed, if that is more than before. All unconfirmed octets are taken for
    /// the file's, though some belong to records.
    fn note_confirmed(&mut self, now: Instant, machine: &AerotpEndpoint) {
        let data = match self.lane {
            Some(Lane::Open(data) | Lane::Closing(data)) => Some(data),
            Some(Lane::Empty) => None,
            None => self.control.filter(|_| !self.is_lossy()),
        };
        let outstanding = data.and_then(|data| {
            if ModeRules::of(self.mode()).confirms() {
                let counters = machine.counters(data)?;
                Some(self.written.saturating_sub(counters.confirmed_bytes))
            } else {
                machine.unsent_bytes(data)
            }
        });
        let confirmed = outstanding.map(|octets| self.written_to.saturating_sub(octets));
        if let Some(confirmed) = confirmed.filter(|confirmed| *confirmed > self.confirmed) {
            self.confirmed = confirmed;
            self.observer.confirmed(now, confirmed);
        }
    }

    fn take_counters(&mut self, machine: &AerotpEndpoint) {
        self.take_counters_of(machine, self.control);
    }

    fn take_counters_of(&mut self, machine: &AerotpEndpoint, control: Option<ConnectionId>) {
        let data = match self.lane {
            Some(Lane::Open(data) | Lane::Closing(data)) => Some(data),
            Some(Lane::Empty) => None,
            None => control,
        };
        if let Some(counters) = data.and_then(|data| machine.counters(data)) {
            self.counters = Some(*counters);
            self.path_rate = machine.path_rate(self.path).or(self.path_rate);
        }
    }

    fn conclude(&mut self) {
        self.phase = Phase::Ended;
        let Some((told, delivered, missing, intact)) = self.verdict else {
            return;
        };
        let begun = self.first_submitted.or(self.started).unwrap_or(told);
        self.outcome.get_or_insert(Ok(SendReport {
            mode: self.mode(),
            size: self.source.position(),
            resumed_at: self.resumed_at,
            present_before: self.present_before.unwrap_or_default(),
            delivered,
            missing,
            intact,
            elapsed: told.saturating_since(begun),
            counters: self.counters.unwrap_or_default(),
            path_rate: self.path_rate,
            reconnections: self.reconnections,
        }));
    }

    fn step(&mut self, now: Instant, machine: &mut AerotpEndpoint) -> Result<Step, SendError> {
        if let Phase::Ended = self.phase {
            return Ok(Step::Stop);
        }
        self.listen(now, machine)?;
        self.note_confirmed(now, machine);
        self.started.get_or_insert(now);
        if let Some((deadline, error)) = self.patience_ends()
            && deadline.at <= now
        {
            return Err(error);
        }
        match self.phase {
            Phase::New => {
                self.connect(now, machine)?;
                Ok(Step::Again)
            }
            Phase::Pausing { until } if until <= now => {
                self.connect(now, machine)?;
                Ok(Step::Again)
            }
            Phase::Leaving { until } if until <= now => {
                self.conclude();
                Ok(Step::Stop)
            }
            Phase::Farewell(Farewell { until, .. }) if until <= now => {
                self.leave_farewell();
                Ok(Step::Stop)
            }
            Phase::Talking => self.talk(now, machine),
            Phase::Verifying(_) => self.verify(now, machine),
            Phase::AwaitingVerdict => {
                self.write_outbox(now, machine);
                Ok(Step::Wait)
            }
            Phase::Pausing { .. } | Phase::Leaving { .. } | Phase::Farewell(_) => Ok(Step::Wait),
            Phase::Ended => Ok(Step::Stop),
        }
    }
}

impl<O: SendObserver> Application<AerotpEndpoint> for Sender<O> {
    fn deliver(&mut self, now: Instant, machine: &mut AerotpEndpoint, event: Event) {
        match event {
            Event::Connected(_) => self.heard = true,
            // At once, since a reset that follows would discard the peer's last words.
            Event::Readable(id) if Some(id) == self.control => {
                if let Err(error) = self.listen(now, machine) {
                    self.give_up(now, machine, error);
                }
            }
            Event::Closed { id, why } if Some(id) == self.control => {
                if self.verdict.is_none() {
                    self.take_counters(machine);
                }
                self.on_closed(now, why);
            }
            Event::AllSent(id) | Event::Closed { id, .. } => {
                if self.end_farewell(id) {
                    return;
                }
                if let Some(Lane::Open(data) | Lane::Closing(data)) = self.lane
                    && data == id
                {
                    self.take_counters(machine);
                    self.lane = Some(Lane::Empty);
                }
            }
            Event::Incoming { id, .. } => machine.abort(now, id),
            Event::Readable(_)
            | Event::Writable(_)
            | Event::PeerFinished(_)
            | Event::Datagram { .. } => {}
        }
    }

    fn work(&mut self, now: Instant, machine: &mut AerotpEndpoint) -> Step {
        let is_undecided = self.outcome.is_none() && self.verdict.is_none();
        let is_said = matches!(self.phase, Phase::Farewell(_));
        let stopped = self.stop.is_requested() && is_undecided && !is_said;
        let step = if stopped {
            Err(SendError::Stopped)
        } else {
            self.step(now, machine)
        };
        match step {
            Ok(step) => step,
            Err(error) => {
                self.give_up(now, machine, error);
                Step::Again
            }
        }
    }

    fn unreachable(&mut self, now: Instant, machine: &mut AerotpEndpoint, _path: PathId) {
        self.on_port_closed(now, machine);
    }

    fn peer_restarted(&mut self, now: Instant, machine: &mut AerotpEndpoint, _path: PathId) {
        // This comes before its connections end: their end would be taken for the receiver's own.
        self.connect_anew(now, machine);
    }

    fn times_departures(&self, machine: &AerotpEndpoint) -> bool {
        machine.finds_rates()
    }

    fn next_deadline(&self) -> Option<Deadline> {
        match &self.phase {
            Phase::Leaving { until } => Some(Deadline {
                at: *until,
                why: "last acknowledgements",
            }),
            Phase::Pausing { until } => Some(Deadline {
                at: *until,
                why: "next attempt",
            }),
            Phase::Farewell(Farewell { until, .. }) => Some(Deadline {
                at: *until,
                why: "patience with the last word",
            }),
            Phase::Verifying(_) => Some(Deadline {
                at: Instant::START,
                why: "verifying a prefix",
            }),
            _ => self.patience_ends().map(|(deadline, _)| deadline),
        }
    }
}

#[cfg(test)]
mod tests;
