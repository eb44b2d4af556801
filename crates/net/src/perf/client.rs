//! The end that asks for a test.
//!
//! ```text
//!  Asking ──ACCEPT──▶ Probing ──enough ECHOs──▶ Running ──END said, or heard──▶ Settling ──RESULT──▶ Leaving ──▶ ended
//! ```

use super::clocks::{ClockOffset, EXCHANGES};
use super::meter::Meter;
use super::outgoing::{Outgoing, control_config, lane_config};
use super::record::{Direction, Interval, Measured, Record, Records, Sent, Test};
use super::report::{PerfError, Report};
use super::{Observer, PERF_DATA_PORT, PERF_PORT};
use crate::transfer::Stop;
use crate::udp::{Application, Step};
use fulmar_proto::machine::{Deadline, PathId};
use fulmar_proto::transport::aerotp::{
    CloseReason, ConnectionConfig, ConnectionId, Endpoint, Event,
};
use fulmar_proto::units::{Duration, Instant};

/// How long the last acknowledgements may take.
const LEAVING_MAX: Duration = Duration::from_secs(1);
/// A day of tenths of a second.
const INTERVALS_MAX: usize = 864_000;
/// How often the server hears that the client is there.
pub(super) const PROBE_EVERY: Duration = Duration::from_secs(1);
/// How long messages may still come once the sender has said that it sent the last.
pub(super) const STRAGGLING_MAX: Duration = Duration::from_secs(1);

/// What to ask for and how.
#[derive(Clone, Debug)]
pub struct ClientPlan {
    /// The test.
    pub test: Test,
    /// The connections' settings but for mode, parity and priority.
    pub connection: ConnectionConfig,
    /// How long to try before anything was heard.
    pub connect_timeout: Duration,
}

#[derive(Debug)]
enum Phase {
    New,
    Asking,
    Probing,
    Running {
        next_probe: Instant,
    },
    /// Nothing more is sent; the receiver's last word is awaited, or the last messages.
    Settling {
        until: Instant,
    },
    Leaving {
        until: Instant,
    },
    Ended,
}

/// One test, from the client's side.
#[derive(Debug)]
pub struct Client<O> {
    plan: ClientPlan,
    path: PathId,
    stop: Stop,
    /// The one who watches.
    pub observer: O,
    phase: Phase,
    control: Option<ConnectionId>,
    records: Records,
    outbox: Vec<u8>,
    started: Option<Instant>,
    heard: bool,
    /// When the server said something last.
    heard_at: Instant,
    token: u64,
    clocks: Option<ClockOffset>,
    outgoing: Option<Outgoing>,
    /// Where messages come from, once they do.
    incoming: Option<(Meter, Option<ConnectionId>)>,
    /// Whether the messages' connection is over.
    lane_over: bool,
    sent: Option<Sent>,
    received: Option<Measured>,
    intervals: Vec<Interval>,
    stopped: bool,
    outcome: Option<Result<Report, PerfError>>,
}

impl<O: Observer> Client<O> {
    /// Will ask at `path` once it is run.
    pub fn new(plan: ClientPlan, path: PathId, stop: Stop, observer: O) -> Self {
        Self {
            plan,
            path,
            stop,
            observer,
            phase: Phase::New,
            control: None,
            records: Records::default(),
            outbox: Vec::new(),
            started: None,
            heard: false,
            heard_at: Instant::START,
            token: 0,
            clocks: None,
            outgoing: None,
            incoming: None,
            lane_over: false,
            sent: None,
            received: None,
            intervals: Vec::new(),
            stopped: false,
            outcome: None,
        }
    }

    /// How it ended; `None` while it runs.
    pub fn take_outcome(&mut self) -> Option<Result<Report, PerfError>> {
        self.outcome.take()
    }

    fn fail(&mut self, now: Instant, machine: &mut Endpoint, error: PerfError) {
        for id in [self.control, self.outgoing.as_ref().map(Outgoing::lane)]
            .into_iter()
            .flatten()
        {
            machine.abort(now, id);
        }
        self.phase = Phase::Ended;
        self.outcome.get_or_insert(Err(error));
    }

    fn begin(&mut self, now: Instant, machine: &mut Endpoint) -> Result<(), PerfError> {
        let base = self.plan.connection;
        if self.plan.test.direction == Direction::Down {
            let lane = lane_config(&self.plan.test, self.plan.test.link_rate(), base);
            machine
                .listen(PERF_DATA_PORT, lane)
                .map_err(fulmar_proto::transport::aerotp::ConnectError::from)?;
        }
        let control = machine.connect(now, self.path, PERF_PORT, control_config(base))?;
        self.control = Some(control);
        self.started = Some(now);
        self.say(&Record::Hello(self.plan.test.clone()));
        self.phase = Phase::Asking;
        Ok(())
    }

    fn say(&mut self, record: &Record) {
        record.encode(&mut self.outbox);
    }

    fn write_outbox(&mut self, now: Instant, machine: &mut Endpoint) {
        if let Some(control) = self.control
            && !self.outbox.is_empty()
            && let Ok(taken) = machine.write(now, control, &self.outbox)
        {
            self.outbox.drain(..taken);
        }
    }

    fn listen(&mut self, now: Instant, machine: &mut Endpoint) -> Result<bool, PerfError> {
        let mut busy = false;
        if let Some((meter, Some(lane))) = &mut self.incoming {
            while let Some(chunk) = machine.read(now, *lane) {
                busy = true;
                meter.take(now, &chunk.octets);
                machine.recycle(*lane, chunk.octets);
            }
        }
        let Some(control) = self.control else {
            return Ok(busy);
        };
        while let Some(chunk) = machine.read(now, control) {
            busy = true;
            self.heard = true;
            self.heard_at = now;
            let mut octets = chunk.octets.as_slice();
            while let Some(record) = self.records.next(&mut octets)? {
                self.on_record(now, machine, record)?;
            }
            machine.recycle(control, chunk.octets);
        }
        Ok(busy)
    }

    fn on_record(
        &mut self,
        now: Instant,
        machine: &mut Endpoint,
        record: Record,
    ) -> Result<(), PerfError> {
        match record {
            Record::Accept { token } if matches!(self.phase, Phase::Asking) => {
                self.token = token;
                self.phase = Phase::Probing;
                self.probe(now);
            }
            Record::Refuse { text } => {
                // It goes to a terminal.
                return Err(PerfError::Refused(text.replace(char::is_control, " ")));
            }
            Record::Echo {
                sent,
                came,
                answered,
            } if matches!(self.phase, Phase::Probing) => {
                let at = Instant::from_nanos;
                let offset =
                    ClockOffset::add(self.clocks, (at(sent), now), (at(came), at(answered)));
                self.clocks = Some(offset);
                if offset.exchanges < EXCHANGES {
                    self.probe(now);
                } else {
                    self.ask_to_begin(now, offset.ahead);
                }
            }
            // Later probes only show that we are there.
            Record::Echo { .. } => {}
            Record::Go
                if matches!(self.phase, Phase::Running { .. }) && self.outgoing.is_none() =>
            {
                self.go(now, machine)?;
            }
            Record::Interval(interval) if self.outgoing.is_some() => {
                if self.plan.test.interval.is_some() && self.intervals.len() < INTERVALS_MAX {
                    self.on_interval(interval);
                }
            }
            Record::End(sent) if self.incoming.is_some() => {
                self.sent = Some(sent);
                self.phase = Phase::Settling {
                    until: now + STRAGGLING_MAX,
                };
            }
            Record::Result(measured) if self.outgoing.is_some() && self.sent.is_some() => {
                self.received = Some(measured);
            }
            Record::Interval(_) => return Err(PerfError::Sequence("INTERVAL")),
            Record::Accept { .. } => return Err(PerfError::Sequence("ACCEPT")),
            Record::Go => return Err(PerfError::Sequence("GO")),
            Record::End(_) => return Err(PerfError::Sequence("END")),
            Record::Result(_) => return Err(PerfError::Sequence("RESULT")),
            Record::Hello(_) => return Err(PerfError::Sequence("HELLO")),
            Record::Probe { .. } => return Err(PerfError::Sequence("PROBE")),
            Record::Begin { .. } => return Err(PerfError::Sequence("BEGIN")),
        }
        Ok(())
    }

    fn on_interval(&mut self, interval: Interval) {
        self.observer.interval(&interval);
        self.intervals.push(interval);
    }

    fn probe(&mut self, now: Instant) {
        self.say(&Record::Probe {
            token: self.token,
            sent: now.as_nanos(),
        });
    }

    fn ask_to_begin(&mut self, now: Instant, ahead: i64) {
        if self.plan.test.direction == Direction::Down {
            // The server is the sender, and its clock is ahead of ours by that.
            let test = self.plan.test.clone();
            self.incoming = Some((Meter::new(test, ahead.saturating_neg()), None));
        }
        let token = self.token;
        self.say(&Record::Begin { token, ahead });
        self.phase = Phase::Running {
            next_probe: now + PROBE_EVERY,
        };
    }

    /// The server expects the messages.
    fn go(&mut self, now: Instant, machine: &mut Endpoint) -> Result<(), PerfError> {
        let test = self.plan.test.clone();
        if test.direction == Direction::Up && !self.stopped {
            let config = lane_config(&test, test.link_rate(), self.plan.connection);
            let lane = machine.connect(now, self.path, PERF_DATA_PORT, config)?;
            self.outgoing = Some(Outgoing::new(now, test, lane));
        }
        Ok(())
    }

    /// Stops early: what there is by now is the result.
    fn hurry(&mut self, now: Instant, machine: &mut Endpoint) -> Result<(), PerfError> {
        self.stopped = true;
        match (&mut self.outgoing, &self.incoming) {
            (Some(outgoing), _) => outgoing.finish(now, machine),
            // The server hears of it by the end of the conversation.
            (None, Some(_)) => {
                self.phase = Phase::Settling { until: now };
            }
            (None, None) => return Err(PerfError::Stopped),
        }
        Ok(())
    }

    fn step(&mut self, now: Instant, machine: &mut Endpoint) -> Result<Step, PerfError> {
        if self.stop.is_requested()
            && !self.stopped
            && !matches!(self.phase, Phase::Leaving { .. } | Phase::Ended)
        {
            self.hurry(now, machine)?;
        }
        let mut busy = self.listen(now, machine)?;
        if let Some((meter, _)) = &mut self.incoming
            && let Some(interval) = meter.take_interval(now)
        {
            self.on_interval(interval);
            busy = true;
        }
        if let Some(deadline) = self.patience_ends()
            && deadline.at <= now
        {
            return Err(PerfError::Vanished(self.plan.connection.give_up_after));
        }
        match self.phase {
            Phase::New => {
                self.begin(now, machine)?;
                busy = true;
            }
            Phase::Asking | Phase::Probing => {
                let patience = self.plan.connect_timeout;
                if !self.heard
                    && self
                        .started
                        .is_some_and(|started| now >= started + patience)
                {
                    return Err(PerfError::Unreachable(patience));
                }
            }
            Phase::Running { next_probe } => {
                if next_probe <= now {
                    self.probe(now);
                    self.phase = Phase::Running {
                        next_probe: now + PROBE_EVERY,
                    };
                }
                busy |= self.advance(now, machine);
            }
            Phase::Settling { until } => {
                let is_done = match &self.outgoing {
                    Some(_) => self.received.is_some() || until <= now,
                    None => self.lane_over || until <= now,
                };
                if is_done {
                    self.conclude(now, machine)?;
                    busy = true;
                }
            }
            Phase::Leaving { until } if until <= now => {
                self.phase = Phase::Ended;
                return Ok(Step::Stop);
            }
            Phase::Leaving { .. } => {}
            Phase::Ended => return Ok(Step::Stop),
        }
        self.write_outbox(now, machine);
        Ok(if busy { Step::Again } else { Step::Wait })
    }

    /// How long a server that was heard may owe us its next word, before and between messages: the transport does
    /// not mind its silence.
    fn patience_ends(&self) -> Option<Deadline> {
        let is_owed = matches!(
            self.phase,
            Phase::Asking | Phase::Probing | Phase::Running { .. }
        );
        (is_owed && self.heard).then(|| Deadline {
            at: self.heard_at + self.plan.connection.give_up_after.max(4 * PROBE_EVERY),
            why: "patience with a server that says nothing",
        })
    }

    /// Sends further messages, and says how many there were.
    fn advance(&mut self, now: Instant, machine: &mut Endpoint) -> bool {
        let Some(outgoing) = &mut self.outgoing else {
            return false;
        };
        let busy = outgoing.work(now, machine);
        if !outgoing.is_over() {
            return busy;
        }
        let sent = outgoing.sent(machine);
        self.sent = Some(sent);
        self.say(&Record::End(sent));
        self.phase = Phase::Settling {
            until: now + self.plan.connection.give_up_after,
        };
        true
    }

    fn conclude(&mut self, now: Instant, machine: &mut Endpoint) -> Result<(), PerfError> {
        if let Some((meter, lane)) = &mut self.incoming {
            let last = meter.take_last_interval();
            let counters = lane.and_then(|lane| machine.counters(lane));
            self.received = Some(meter.measured(counters));
            if let Some(last) = last {
                self.on_interval(last);
            }
        }
        let Some(received) = self.received else {
            return Err(PerfError::Vanished(self.plan.connection.give_up_after));
        };
        self.outcome.get_or_insert(Ok(Report {
            test: self.plan.test.clone(),
            sent: self.sent,
            received,
            clocks: self.clocks,
            intervals: std::mem::take(&mut self.intervals),
            stopped: self.stopped,
        }));
        if let Some(control) = self.control {
            machine.close(now, control);
        }
        self.phase = Phase::Leaving {
            until: now + LEAVING_MAX,
        };
        Ok(())
    }

    fn on_closed(&mut self, now: Instant, machine: &mut Endpoint, why: CloseReason) {
        if self.outcome.is_some() {
            self.phase = Phase::Ended;
            return;
        }
        let patience = self.plan.connection.give_up_after;
        let error = match why {
            CloseReason::PeerVanished if self.heard => PerfError::Vanished(patience),
            CloseReason::PeerVanished => PerfError::Unreachable(patience),
            CloseReason::Finished | CloseReason::Aborted | CloseReason::Reset => PerfError::Ended,
        };
        self.fail(now, machine, error);
    }
}

impl<O: Observer> Application<Endpoint> for Client<O> {
    fn deliver(&mut self, now: Instant, machine: &mut Endpoint, event: Event) {
        match event {
            Event::Incoming { id, local, .. } if local == PERF_DATA_PORT => {
                match &mut self.incoming {
                    Some((_, lane @ None)) => *lane = Some(id),
                    _ => machine.abort(now, id),
                }
            }
            Event::Incoming { id, .. } => machine.abort(now, id),
            Event::Closed { id, why } if Some(id) == self.control => {
                // What was said before is still to be taken.
                if let Err(error) = self.listen(now, machine) {
                    self.fail(now, machine, error);
                } else if self.received.is_none() || !matches!(self.phase, Phase::Settling { .. }) {
                    self.on_closed(now, machine, why);
                }
            }
            Event::Closed { id, .. } | Event::AllSent(id) | Event::PeerFinished(id) => {
                let outgoing = self.outgoing.as_mut();
                if let Some(outgoing) = outgoing.filter(|outgoing| outgoing.lane() == id) {
                    match event {
                        Event::AllSent(_) => outgoing.on_all_sent(),
                        Event::Closed { .. } => outgoing.on_closed(),
                        _ => {}
                    }
                } else if let Some((meter, Some(lane))) = &mut self.incoming
                    && *lane == id
                    && !matches!(event, Event::AllSent(_))
                {
                    while let Some(chunk) = machine.read(now, id) {
                        meter.take(now, &chunk.octets);
                        machine.recycle(id, chunk.octets);
                    }
                    self.lane_over = true;
                    machine.close(now, id);
                }
            }
            Event::Connected(_)
            | Event::Readable(_)
            | Event::Writable(_)
            | Event::Datagram { .. } => {}
        }
    }

    fn work(&mut self, now: Instant, machine: &mut Endpoint) -> Step {
        match self.step(now, machine) {
            Ok(step) => step,
            Err(error) => {
                self.fail(now, machine, error);
                Step::Again
            }
        }
    }

    fn unreachable(&mut self, now: Instant, machine: &mut Endpoint, _path: PathId) {
        // Later it may be a moment's truth.
        if !self.heard {
            self.fail(now, machine, PerfError::PortClosed);
        }
    }

    fn next_deadline(&self) -> Option<Deadline> {
        let own = match self.phase {
            Phase::Asking | Phase::Probing if !self.heard => Some(Deadline {
                at: self.started? + self.plan.connect_timeout,
                why: "patience with a silent server",
            }),
            Phase::Running { next_probe } => Some(Deadline {
                at: next_probe,
                why: "a sign of life",
            }),
            Phase::Settling { until } => Some(Deadline {
                at: until,
                why: "patience with the result",
            }),
            Phase::Leaving { until } => Some(Deadline {
                at: until,
                why: "last acknowledgements",
            }),
            _ => None,
        };
        let outgoing = self.outgoing.as_ref().and_then(Outgoing::next_deadline);
        let meter = self.incoming.as_ref();
        let meter = meter.and_then(|(meter, _)| meter.next_deadline());
        let running = matches!(self.phase, Phase::Running { .. } | Phase::Settling { .. });
        let meter = meter.filter(|_| running);
        [outgoing, meter, self.patience_ends()]
            .into_iter()
            .fold(own, Deadline::earlier)
    }
}
