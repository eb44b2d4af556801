//! The end that asks for a test.
//!
//! ```text
//!  Asking ──ACCEPT──▶ Probing ──enough ECHOs──▶ Running ──ENDs said──▶ Settling ──RESULTs──▶ Leaving ──▶ ended
//!                                                  └───ENDs heard, and the last messages───▶
//! ```

mod dialogue;

use super::clocks::ClockOffset;
use super::figures::{Interval, Measured, Sent};
use super::flows::Flows;
use super::incoming::Incoming;
use super::outgoing::control_config;
use super::record::{Record, Records};
use super::report::{PerfError, PerfReport};
use super::sounding::Sounding;
use super::streams::PerStream;
use super::test::{Test, TestDirection};
use super::{Observer, PERF_PORT};
use crate::transfer::Stop;
use crate::udp::{Application, Step};
use fulmar_proto::machine::{Deadline, PathId};
use fulmar_proto::transport::aerotp::{
    AerotpEndpoint, CloseReason, ConnectionConfig, ConnectionId, Event,
};
use fulmar_proto::units::{Duration, Instant};

/// The time that the last acknowledgements may take.
const LEAVING_MAX: Duration = Duration::from_secs(1);
/// The most intervals kept: a day of tenths of a second for one stream, fewer for several streams.
const INTERVALS_MAX: usize = 864_000;
/// The time between two signs of life to the server.
const PROBE_EVERY: Duration = Duration::from_secs(1);
/// The shortest time after which silence means that the other end is gone: several signs of life may be lost.
const PATIENCE_MIN: Duration = Duration::from_secs(4);

/// The settings with a patience that bears lost signs of life.
pub(super) fn with_patience(connection: ConnectionConfig) -> ConnectionConfig {
    ConnectionConfig {
        give_up_after: connection.give_up_after.max(PATIENCE_MIN),
        ..connection
    }
}

/// The plan of a client.
#[derive(Clone, Debug)]
pub struct ClientPlan {
    /// The test.
    pub test: Test,
    /// The connections' settings but for mode, parity and priority.
    pub connection: ConnectionConfig,
    /// The time to try before anything was heard.
    pub connect_timeout: Duration,
    /// The time between two soundings while this end sends messages, if there are any: small datagrams that nobody reads, by which
    /// a capture shows when an outage ended.
    pub sounding_every: Option<Duration>,
}

#[derive(Debug)]
enum Phase {
    New,
    Asking,
    Probing,
    Running {
        next_probe: Instant,
    },
    /// Nothing more is sent; the receiver's last word is awaited.
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
    /// The observer of the test.
    pub observer: O,
    phase: Phase,
    control: Option<ConnectionId>,
    records: Records,
    outbox: Vec<u8>,
    started: Option<Instant>,
    heard: bool,
    /// The time at which the server said something last.
    heard_at: Instant,
    token: u64,
    clocks: Option<ClockOffset>,
    pub(super) flows: Flows,
    sounding: Option<Sounding>,
    /// The sender's figures of each stream, once all of it was sent.
    sent: Option<Vec<Sent>>,
    /// The server's word on what it received: of each stream, and of all together.
    results: PerStream<Measured>,
    result: Option<Measured>,
    intervals: Vec<Interval>,
    stopped: bool,
    outcome: Option<Result<PerfReport, PerfError>>,
}

impl<O: Observer> Client<O> {
    /// A client that asks at `path` once it is run.
    pub fn new(plan: ClientPlan, path: PathId, stop: Stop, observer: O) -> Self {
        let connection = with_patience(plan.connection);
        Self {
            results: PerStream::new(plan.test.streams),
            plan: ClientPlan { connection, ..plan },
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
            flows: Flows::default(),
            sounding: None,
            sent: None,
            result: None,
            intervals: Vec::new(),
            stopped: false,
            outcome: None,
        }
    }

    /// The outcome; `None` while the test runs.
    pub fn take_outcome(&mut self) -> Option<Result<PerfReport, PerfError>> {
        self.outcome.take()
    }

    fn fail(&mut self, now: Instant, machine: &mut AerotpEndpoint, error: PerfError) {
        self.flows.abort(now, machine);
        self.end_sounding(now, machine);
        if let Some(control) = self.control {
            machine.abort(now, control);
        }
        self.phase = Phase::Ended;
        self.outcome.get_or_insert(Err(error));
    }

    fn end_sounding(&mut self, now: Instant, machine: &mut AerotpEndpoint) {
        if let Some(sounding) = self.sounding.take() {
            sounding.end(now, machine);
        }
    }

    fn begin(&mut self, now: Instant, machine: &mut AerotpEndpoint) -> Result<(), PerfError> {
        let config = control_config(self.plan.connection);
        let control = machine.connect(now, self.path, PERF_PORT, config)?;
        self.control = Some(control);
        self.started.get_or_insert(now);
        self.records = Records::default();
        self.outbox.clear();
        self.say(&Record::Hello(self.plan.test.clone()));
        self.phase = Phase::Asking;
        Ok(())
    }

    fn say(&mut self, record: &Record) {
        record.encode(&mut self.outbox);
    }

    fn write_outbox(&mut self, now: Instant, machine: &mut AerotpEndpoint) {
        if let Some(control) = self.control
            && !self.outbox.is_empty()
            && let Ok(taken) = machine.write(now, control, &self.outbox)
        {
            self.outbox.drain(..taken);
        }
    }

    /// Stops early: the messages until now are the result.
    fn hurry(&mut self, now: Instant, machine: &mut AerotpEndpoint) -> Result<(), PerfError> {
        self.stopped = true;
        if let Some(outgoing) = &mut self.flows.outgoing {
            outgoing.finish(now, machine);
            return Ok(());
        }
        // The end of the conversation tells the server.
        let incoming = self.flows.incoming.take().ok_or(PerfError::Stopped)?;
        self.measured(now, machine, incoming);
        Ok(())
    }

    fn step(&mut self, now: Instant, machine: &mut AerotpEndpoint) -> Result<Step, PerfError> {
        if self.stop.is_requested()
            && !self.stopped
            && !matches!(self.phase, Phase::Leaving { .. } | Phase::Ended)
        {
            self.hurry(now, machine)?;
        }
        let mut busy = self.listen(now, machine)?;
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
                if let Some(report) = self.told() {
                    self.conclude(now, machine, report);
                    busy = true;
                } else if until <= now {
                    return Err(PerfError::Vanished(self.plan.connection.give_up_after));
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

    /// The time until which a server that was heard may owe us its next word, before and between messages. The
    /// transport does not mind its silence.
    fn patience_ends(&self) -> Option<Deadline> {
        let is_owed = matches!(
            self.phase,
            Phase::Asking | Phase::Probing | Phase::Running { .. }
        );
        (is_owed && self.heard).then(|| Deadline {
            at: self.heard_at + self.plan.connection.give_up_after,
            why: "patience with a server that says nothing",
        })
    }

    /// Sends further messages, and tells their number at the end; or watches the server's messages come.
    fn advance(&mut self, now: Instant, machine: &mut AerotpEndpoint) -> bool {
        let mut busy = false;
        if let Some(outgoing) = &mut self.flows.outgoing {
            busy |= outgoing.work(now, machine);
            if let Some(sounding) = &mut self.sounding {
                busy |= sounding.work(now, machine);
            }
            if outgoing.is_over() {
                let sent = outgoing.sent(machine);
                for (stream, sent) in (0..).zip(sent.iter().copied()) {
                    self.say(&Record::End { stream, sent });
                }
                self.sent = Some(sent);
                self.end_sounding(now, machine);
                self.settle(now);
                busy = true;
            }
        }
        if let Some(incoming) = &mut self.flows.incoming {
            let interval = incoming.take_interval(now);
            let is_done = incoming.is_done(now);
            if let Some(interval) = interval {
                self.on_interval(interval);
                busy = true;
            }
            if is_done && let Some(incoming) = self.flows.incoming.take() {
                self.measured(now, machine, incoming);
                busy = true;
            }
        }
        busy
    }

    /// Waits for the next of the server's last records from `now` on.
    fn settle(&mut self, now: Instant) {
        self.phase = Phase::Settling {
            until: now + self.plan.connection.give_up_after,
        };
    }

    fn on_interval(&mut self, interval: Interval) {
        self.observer.interval(&self.plan.test, &interval);
        if self.intervals.len() < INTERVALS_MAX / usize::from(self.plan.test.streams.max(1)) {
            self.intervals.push(interval);
        }
    }

    /// The report on what we sent, once the server has told what it received.
    fn told(&self) -> Option<PerfReport> {
        let sent = self.sent.iter().flatten().copied().map(Some);
        let received = self.results.all()?;
        let test = self.plan.test.clone();
        Some(PerfReport::new(test, sent.zip(received), self.result?))
    }

    /// Ends with what we received.
    fn measured(&mut self, now: Instant, machine: &mut AerotpEndpoint, mut incoming: Incoming) {
        if let Some(last) = incoming.take_last_interval() {
            self.on_interval(last);
        }
        incoming.abort(now, machine);
        self.conclude(now, machine, incoming.report(machine));
    }

    fn conclude(&mut self, now: Instant, machine: &mut AerotpEndpoint, report: PerfReport) {
        let found = machine.path_rate(self.path);
        let found = found.and_then(|rate| rate.link.filter(|_| rate.belief.is_some()));
        let losses = machine.path_losses(self.path);
        let is_sender = self.plan.test.direction == TestDirection::Up;
        self.outcome.get_or_insert(Ok(PerfReport {
            link: found.filter(|_| is_sender),
            losses: losses.filter(|_| is_sender),
            clocks: self.clocks,
            intervals: std::mem::take(&mut self.intervals),
            stopped: self.stopped,
            ..report
        }));
        self.flows = Flows::default();
        if let Some(control) = self.control {
            machine.close(now, control);
        }
        self.phase = Phase::Leaving {
            until: now + LEAVING_MAX,
        };
    }

    fn on_closed(&mut self, now: Instant, machine: &mut AerotpEndpoint, why: CloseReason) {
        if self.outcome.is_some() {
            self.phase = Phase::Ended;
            return;
        }
        let patience = self.plan.connection.give_up_after;
        let error = match why {
            CloseReason::PeerVanished if self.heard => PerfError::Vanished(patience),
            CloseReason::PeerVanished => PerfError::Unreachable(patience),
            CloseReason::Reset if !self.heard => PerfError::NotUnderstood,
            CloseReason::Finished
            | CloseReason::Aborted
            | CloseReason::Disagreed
            | CloseReason::Reset => PerfError::Ended,
        };
        self.fail(now, machine, error);
    }
}

impl<O: Observer> Application<AerotpEndpoint> for Client<O> {
    fn deliver(&mut self, now: Instant, machine: &mut AerotpEndpoint, event: Event) {
        match event {
            Event::Incoming {
                id, local, mode, ..
            } => {
                let incoming = self.flows.incoming.as_mut();
                if !incoming.is_some_and(|incoming| incoming.accept(local, mode, id)) {
                    machine.abort(now, id);
                }
            }
            Event::Closed { id, why } if Some(id) == self.control => {
                // Records that came before are still to be read.
                if let Err(error) = self.listen(now, machine) {
                    self.fail(now, machine, error);
                } else if !matches!(self.phase, Phase::Settling { .. }) || self.told().is_none() {
                    self.on_closed(now, machine, why);
                }
            }
            event => self.flows.deliver(now, machine, &event),
        }
    }

    fn work(&mut self, now: Instant, machine: &mut AerotpEndpoint) -> Step {
        match self.step(now, machine) {
            Ok(step) => step,
            Err(error) => {
                self.fail(now, machine, error);
                Step::Again
            }
        }
    }

    fn unreachable(&mut self, now: Instant, machine: &mut AerotpEndpoint, _path: PathId) {
        // Later the refusal may hold for a moment only.
        if !self.heard {
            self.fail(now, machine, PerfError::PortClosed);
        }
    }

    fn peer_restarted(&mut self, now: Instant, machine: &mut AerotpEndpoint, _path: PathId) {
        // A question without an answer is asked again. A test that was agreed on ends with its connections.
        if !self.heard
            && let Some(control) = self.control.take()
        {
            machine.abort(now, control);
            self.phase = Phase::New;
        }
    }

    fn times_departures(&self, machine: &AerotpEndpoint) -> bool {
        machine.finds_rates()
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
        let sounding = self.sounding.as_ref().map(Sounding::next_deadline);
        [
            self.flows.next_deadline(true),
            self.patience_ends(),
            sounding,
        ]
        .into_iter()
        .fold(own, Deadline::earlier)
    }
}

#[cfg(test)]
mod tests;
