//! The end that waits for tests: any number one after another, one at a time.

mod dialogue;

use super::client::PROBE_EVERY;
use super::meter::Meter;
use super::outgoing::{Outgoing, control_config};
use super::record::{Record, Records, Test};
use super::report::{PerfError, Report};
use super::{Observer, PERF_DATA_PORT, PERF_PORT};
use crate::transfer::Stop;
use crate::udp::{Application, Step};
use fulmar_proto::machine::{Deadline, PathId};
use fulmar_proto::transport::aerotp::{
    CloseReason, ConfigError, ConnectionConfig, ConnectionId, Endpoint, Event,
};
use fulmar_proto::units::{Bitrate, Duration, Instant};
use std::collections::BTreeMap;

/// Conversations at once, the running one included; further ones are reset.
const CONVERSATIONS_MAX: usize = 32;
/// A conversation that has not come to a test by then is reset.
const INTRODUCTION_MAX: Duration = Duration::from_secs(30);
/// What waits to be said to a client, at most, before more is read of it.
const OUTBOX_BYTES_MAX: usize = 1_024;
/// How long the last acknowledgements may take.
const LAST_ANSWERS: Duration = Duration::from_millis(200);

/// How to serve.
#[derive(Clone, Debug)]
pub struct ServerPlan {
    /// The connections' settings but for mode, parity and priority.
    pub connection: ConnectionConfig,
    /// The most to send at, in tests from here, all headers included.
    pub rate_max: Bitrate,
    /// Whether to end after one test.
    pub once: bool,
}

/// What came of the last conversation with a client.
#[derive(Debug)]
struct Conversation {
    path: PathId,
    since: Instant,
    records: Records,
    outbox: Vec<u8>,
    token: u64,
    test: Option<Test>,
    /// Refused or over: close once everything was said.
    leaving: bool,
}

/// The test that runs, and the conversation it belongs to.
#[derive(Debug)]
struct Running {
    control: ConnectionId,
    test: Test,
    /// When the client was heard last.
    heard: Instant,
    flow: Flow,
}

#[derive(Debug)]
enum Flow {
    Up {
        meter: Box<Meter>,
        lane: Option<ConnectionId>,
        lane_over: bool,
        /// What the client sent, and until when messages may still come.
        end: Option<(super::record::Sent, Instant)>,
    },
    Down {
        outgoing: Outgoing,
    },
    /// The result of the client is none of ours: it measured.
    Told,
}

/// Serves until it is stopped.
#[derive(Debug)]
pub struct Server<O> {
    plan: ServerPlan,
    stop: Stop,
    /// The one who watches.
    pub observer: O,
    conversations: BTreeMap<ConnectionId, Conversation>,
    running: Option<Running>,
    stop_at: Option<Instant>,
}

impl<O: Observer> Server<O> {
    /// Listens on `machine`.
    ///
    /// # Errors
    /// The settings cannot work.
    pub fn new(
        plan: ServerPlan,
        machine: &mut Endpoint,
        stop: Stop,
        observer: O,
    ) -> Result<Self, ConfigError> {
        machine.listen(PERF_PORT, control_config(plan.connection))?;
        machine.listen(PERF_DATA_PORT, plan.connection)?;
        Ok(Self {
            plan,
            stop,
            observer,
            conversations: BTreeMap::new(),
            running: None,
            stop_at: None,
        })
    }

    fn listen(&mut self, now: Instant, machine: &mut Endpoint) -> bool {
        let mut busy = false;
        if let Some(Running {
            heard,
            flow:
                Flow::Up {
                    meter,
                    lane: Some(lane),
                    ..
                },
            ..
        }) = &mut self.running
        {
            while let Some(chunk) = machine.read(now, *lane) {
                busy = true;
                *heard = now;
                meter.take(now, &chunk.octets);
                machine.recycle(*lane, chunk.octets);
            }
        }
        let controls: Vec<ConnectionId> = self.conversations.keys().copied().collect();
        for control in controls {
            // One that asks faster than it listens waits.
            let has_room = |server: &Self| {
                let conversation = server.conversations.get(&control);
                conversation.is_some_and(|one| one.outbox.len() <= OUTBOX_BYTES_MAX)
            };
            while has_room(self)
                && let Some(chunk) = machine.read(now, control)
            {
                busy = true;
                let outcome = self.take(now, machine, control, &chunk.octets);
                machine.recycle(control, chunk.octets);
                if let Err(error) = outcome {
                    self.drop_conversation(now, machine, control, error);
                    break;
                }
            }
        }
        busy
    }

    /// Lets the test do what is due; whether it did anything.
    fn advance(&mut self, now: Instant, machine: &mut Endpoint) -> bool {
        let Some(running) = &mut self.running else {
            return false;
        };
        let Some(conversation) = self.conversations.get_mut(&running.control) else {
            return false;
        };
        match &mut running.flow {
            Flow::Up {
                meter,
                lane,
                lane_over,
                end,
            } => {
                let mut busy = false;
                if let Some(interval) = meter.take_interval(now) {
                    Record::Interval(interval).encode(&mut conversation.outbox);
                    busy = true;
                }
                let Some((sent, until)) = *end else {
                    return busy;
                };
                if !*lane_over && now < until {
                    return busy;
                }
                if let Some(last) = meter.take_last_interval() {
                    Record::Interval(last).encode(&mut conversation.outbox);
                }
                let counters = lane.and_then(|lane| machine.counters(lane));
                let received = meter.measured(counters);
                Record::Result(received).encode(&mut conversation.outbox);
                let report = Report {
                    test: running.test.clone(),
                    sent: Some(sent),
                    received,
                    clocks: None,
                    intervals: Vec::new(),
                    stopped: false,
                };
                running.flow = Flow::Told;
                conversation.since = now;
                self.observer.ended(&Ok(report));
                true
            }
            Flow::Down { outgoing } => {
                let busy = outgoing.work(now, machine);
                if !outgoing.is_over() {
                    return busy;
                }
                let sent = outgoing.sent(machine);
                Record::End(sent).encode(&mut conversation.outbox);
                running.flow = Flow::Told;
                conversation.since = now;
                self.observer.sent(&sent);
                true
            }
            Flow::Told => false,
        }
    }

    /// Writes what is to be said; whether anything was.
    fn write(&mut self, now: Instant, machine: &mut Endpoint) -> bool {
        let mut busy = false;
        for (control, conversation) in &mut self.conversations {
            if conversation.outbox.is_empty() {
                continue;
            }
            // Of a connection that is over its own event tells.
            if let Ok(taken) = machine.write(now, *control, &conversation.outbox) {
                busy |= taken > 0;
                conversation.outbox.drain(..taken);
            }
            if conversation.leaving && conversation.outbox.is_empty() {
                machine.close(now, *control);
            }
        }
        busy
    }

    /// How long a client may be silent: several of its signs of life may be lost.
    fn patience(&self) -> Duration {
        self.plan.connection.give_up_after.max(4 * PROBE_EVERY)
    }

    /// Forgets conversations that came to nothing.
    fn expire(&mut self, now: Instant, machine: &mut Endpoint) {
        let running = self.running.as_ref().map(|running| running.control);
        let idle = |(id, conversation): (&ConnectionId, &Conversation)| {
            let is_old = conversation.since + INTRODUCTION_MAX <= now;
            (Some(*id) != running && is_old).then_some(*id)
        };
        let stale: Vec<ConnectionId> = self.conversations.iter().filter_map(idle).collect();
        for id in stale {
            machine.abort(now, id);
            self.conversations.remove(&id);
        }
        // The receiver of a flow wants nothing of the other end, and would wait for ever.
        let patience = self.patience();
        let silent = self.running.as_ref();
        let silent = silent.filter(|running| running.heard + patience <= now);
        if let Some(control) = silent.map(|running| running.control) {
            self.drop_conversation(now, machine, control, PerfError::Vanished(patience));
        }
    }

    fn drop_conversation(
        &mut self,
        now: Instant,
        machine: &mut Endpoint,
        control: ConnectionId,
        error: PerfError,
    ) {
        machine.abort(now, control);
        self.conversations.remove(&control);
        self.end_test(now, machine, control, error);
    }

    /// The conversation `control` is over, and its test with it.
    fn end_test(
        &mut self,
        now: Instant,
        machine: &mut Endpoint,
        control: ConnectionId,
        error: PerfError,
    ) {
        let Some(running) = self.running.take_if(|running| running.control == control) else {
            return;
        };
        match running.flow {
            Flow::Told => {}
            Flow::Up { lane, .. } => {
                if let Some(lane) = lane {
                    machine.abort(now, lane);
                }
                self.observer.ended(&Err(error));
            }
            Flow::Down { outgoing } => {
                machine.abort(now, outgoing.lane());
                self.observer.ended(&Err(error));
            }
        }
        if self.plan.once {
            self.stop_at.get_or_insert(now + LAST_ANSWERS);
        }
    }

    /// The messages' connection `id` will bring no more, or is over.
    fn on_lane_over(
        &mut self,
        now: Instant,
        machine: &mut Endpoint,
        id: ConnectionId,
        is_closed: bool,
    ) {
        match self.running.as_mut().map(|running| &mut running.flow) {
            Some(Flow::Up {
                meter,
                lane,
                lane_over,
                ..
            }) if *lane == Some(id) => {
                while let Some(chunk) = machine.read(now, id) {
                    meter.take(now, &chunk.octets);
                    machine.recycle(id, chunk.octets);
                }
                *lane_over = true;
                machine.close(now, id);
            }
            Some(Flow::Down { outgoing }) if is_closed && outgoing.lane() == id => {
                outgoing.on_closed();
            }
            _ => {}
        }
    }

    fn on_all_sent(&mut self, id: ConnectionId) {
        if let Some(Flow::Down { outgoing }) =
            self.running.as_mut().map(|running| &mut running.flow)
            && outgoing.lane() == id
        {
            outgoing.on_all_sent();
        }
    }
}

impl<O: Observer> Application<Endpoint> for Server<O> {
    fn deliver(&mut self, now: Instant, machine: &mut Endpoint, event: Event) {
        match event {
            Event::Incoming {
                id, path, local, ..
            } if local == PERF_PORT => {
                if self.conversations.len() >= CONVERSATIONS_MAX || self.stop_at.is_some() {
                    machine.abort(now, id);
                    return;
                }
                let conversation = Conversation {
                    path,
                    since: now,
                    records: Records::default(),
                    outbox: Vec::new(),
                    token: 0,
                    test: None,
                    leaving: false,
                };
                self.conversations.insert(id, conversation);
            }
            Event::Incoming { id, path, mode, .. } => {
                // What was said before may not have been read: that the test begins.
                self.listen(now, machine);
                let conversations = &self.conversations;
                let place = self.running.as_mut().and_then(|running| {
                    let theirs = conversations.get(&running.control)?.path == path;
                    let wanted = theirs && running.test.mode() == Ok(mode);
                    match &mut running.flow {
                        Flow::Up { lane, .. } if wanted && lane.is_none() => Some(lane),
                        _ => None,
                    }
                });
                match place {
                    Some(lane) => *lane = Some(id),
                    None => machine.abort(now, id),
                }
            }
            Event::Closed { id, why } => {
                self.listen(now, machine);
                if self.conversations.remove(&id).is_some() {
                    let error = match why {
                        CloseReason::PeerVanished => {
                            PerfError::Vanished(self.plan.connection.give_up_after)
                        }
                        _ => PerfError::Ended,
                    };
                    self.end_test(now, machine, id, error);
                } else {
                    self.on_lane_over(now, machine, id, true);
                }
            }
            Event::AllSent(id) => self.on_all_sent(id),
            Event::PeerFinished(id) => {
                if self.conversations.contains_key(&id) {
                    self.listen(now, machine);
                    machine.close(now, id);
                } else {
                    self.on_lane_over(now, machine, id, false);
                }
            }
            Event::Connected(_)
            | Event::Readable(_)
            | Event::Writable(_)
            | Event::Datagram { .. } => {}
        }
    }

    fn work(&mut self, now: Instant, machine: &mut Endpoint) -> Step {
        if self.stop.is_requested() && self.stop_at.is_none() {
            let controls: Vec<ConnectionId> = self.conversations.keys().copied().collect();
            for control in controls {
                self.drop_conversation(now, machine, control, PerfError::Stopped);
            }
            self.stop_at = Some(now);
        }
        if self.stop_at.is_some_and(|at| at <= now) {
            return Step::Stop;
        }
        self.expire(now, machine);
        let heard = self.listen(now, machine);
        let moved = self.advance(now, machine);
        let said = self.write(now, machine);
        if heard || moved || said {
            Step::Again
        } else {
            Step::Wait
        }
    }

    fn unreachable(&mut self, _now: Instant, _machine: &mut Endpoint, _path: PathId) {}

    fn next_deadline(&self) -> Option<Deadline> {
        let mut earliest = self.stop_at.map(|at| Deadline {
            at,
            why: "last acknowledgements",
        });
        let oldest = self.conversations.values().map(|one| one.since).min();
        if let (Some(since), None) = (oldest, &self.running) {
            let at = since + INTRODUCTION_MAX;
            let why = "a conversation without a test";
            earliest = Deadline::earlier(earliest, Some(Deadline { at, why }));
        }
        let Some(running) = &self.running else {
            return earliest;
        };
        let silent = Some(Deadline {
            at: running.heard + self.patience(),
            why: "patience with a silent client",
        });
        let flow = match &running.flow {
            Flow::Up {
                end: Some((_, at)), ..
            } => Some(Deadline {
                at: *at,
                why: "the last messages",
            }),
            Flow::Up { meter, .. } => meter.next_deadline(),
            Flow::Down { outgoing } => outgoing.next_deadline(),
            Flow::Told => None,
        };
        [silent, flow].into_iter().fold(earliest, Deadline::earlier)
    }
}

#[cfg(test)]
mod tests;
