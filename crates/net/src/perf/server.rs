//! The end that waits for tests: any number one after another, one at a time.

mod dialogue;

use super::client::with_patience;
use super::flows::Flows;
use super::outgoing::control_config;
use super::record::{Record, Records};
use super::report::PerfError;
use super::test::Test;
use super::{Observer, PERF_PORT};
use crate::places::{Guest, Latest, Seat, TakenPlace, seat};
use crate::session::source_octets;
use crate::transfer::Stop;
use crate::udp::{Application, DatagramOrigin, Step};
use fulmar_proto::machine::{Datagram, Deadline, PathId};
use fulmar_proto::rate::RateSharing;
use fulmar_proto::transport::aerotp::{
    AerotpEndpoint, CloseReason, ConfigError, ConnectionConfig, ConnectionId, Event,
};
use fulmar_proto::units::{Bitrate, Duration, Instant};
use std::collections::BTreeMap;

/// The most conversations at once. All but the one with a test give way ([`crate::places`]).
const CONVERSATIONS_MAX: usize = 32;
/// The time after which a conversation that has not come to a test is reset.
const INTRODUCTION_MAX: Duration = Duration::from_secs(30);
/// The most octets that wait to be said to a client before more is read of it or an interval is told.
const OUTBOX_BYTES_MAX: usize = 1_024;
/// The time that the last acknowledgements may take.
const LAST_ANSWERS: Duration = Duration::from_millis(200);

/// The plan of a server.
#[derive(Clone, Debug)]
pub struct ServerPlan {
    /// The connections' settings but for mode, parity and priority.
    pub connection: ConnectionConfig,
    /// The highest rate to send at, in tests from here, all headers included.
    pub rate_max: Bitrate,
    /// Whose the link is in tests from here, if not as
    /// [`RateSource::of`](fulmar_proto::transport::aerotp::RateSource::of) has it.
    pub sharing: Option<RateSharing>,
    /// Whether to end after one test.
    pub once: bool,
}

/// The state of the last conversation with a client.
#[derive(Debug)]
struct Conversation {
    path: PathId,
    guest: Guest,
    since: Instant,
    records: Records,
    outbox: Vec<u8>,
    token: u64,
    test: Option<Test>,
    /// Whether it is refused or over: it closes once everything was sent.
    leaving: bool,
}

impl Conversation {
    /// Whether a further answer may wait: a client that asks faster than it reads waits itself.
    const fn has_room(&self) -> bool {
        self.outbox.len() <= OUTBOX_BYTES_MAX
    }

    /// Whether the client has asked for nothing yet.
    const fn is_new(&self) -> bool {
        self.test.is_none() && !self.leaving
    }

    fn refuse(&mut self, text: String) {
        Record::Refuse { text }.encode(&mut self.outbox);
        self.leaving = true;
    }
}

/// The test that runs, and the conversation it belongs to.
#[derive(Debug)]
pub(super) struct Running {
    control: ConnectionId,
    /// The time at which the client was heard last.
    heard: Instant,
    /// The messages; empty once this end has sent all that it has to send.
    pub(super) flows: Flows,
}

/// Serves until it is stopped.
#[derive(Debug)]
pub struct PerfServer<O> {
    plan: ServerPlan,
    stop: Stop,
    /// The observer of the tests.
    pub observer: O,
    conversations: BTreeMap<ConnectionId, Conversation>,
    pub(super) running: Option<Running>,
    stop_at: Option<Instant>,
    /// The path whose rate is known as the last test from here wants it.
    rated: Option<PathId>,
    latest: Latest,
}

impl<O: Observer> PerfServer<O> {
    /// Listens on `machine`.
    ///
    /// # Errors
    /// The settings cannot work.
    pub fn new(
        mut plan: ServerPlan,
        machine: &mut AerotpEndpoint,
        stop: Stop,
        observer: O,
    ) -> Result<Self, ConfigError> {
        plan.connection = with_patience(plan.connection);
        machine.listen(PERF_PORT, control_config(plan.connection))?;
        Ok(Self {
            plan,
            stop,
            observer,
            conversations: BTreeMap::new(),
            running: None,
            stop_at: None,
            rated: None,
            latest: Latest::default(),
        })
    }

    fn listen(&mut self, now: Instant, machine: &mut AerotpEndpoint) -> bool {
        let mut busy = false;
        if let Some(running) = &mut self.running
            && let Some(incoming) = &mut running.flows.incoming
            && incoming.read(now, machine)
        {
            busy = true;
            running.heard = now;
        }
        let controls: Vec<ConnectionId> = self.conversations.keys().copied().collect();
        for control in controls {
            let has_room = |server: &Self| {
                let conversation = server.conversations.get(&control);
                conversation.is_some_and(Conversation::has_room)
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

    /// Lets the test do what is due; returns whether it did anything.
    fn advance(&mut self, now: Instant, machine: &mut AerotpEndpoint) -> bool {
        let Some(running) = &mut self.running else {
            return false;
        };
        let Some(conversation) = self.conversations.get_mut(&running.control) else {
            return false;
        };
        let mut busy = false;
        let has_room = conversation.has_room();
        let outbox = &mut conversation.outbox;
        if let Some(incoming) = &mut running.flows.incoming {
            if has_room && let Some(interval) = incoming.take_interval(now) {
                Record::Interval(interval).encode(outbox);
                busy = true;
            }
            if incoming.is_done(now) {
                if let Some(last) = incoming.take_last_interval() {
                    Record::Interval(last).encode(outbox);
                }
                let report = incoming.report(machine);
                let each = report.streams.iter().map(|stream| stream.received);
                for (stream, measured) in (0..).map(Some).zip(each) {
                    Record::Result { stream, measured }.encode(outbox);
                }
                let (stream, measured) = (None, report.sum.received);
                Record::Result { stream, measured }.encode(outbox);
                incoming.abort(now, machine);
                running.flows.incoming = None;
                conversation.since = now;
                self.observer.ended(&Ok(report));
                busy = true;
            }
        }
        if let Some(outgoing) = &mut running.flows.outgoing {
            busy |= outgoing.work(now, machine);
            if outgoing.is_over() {
                let sent = outgoing.sent(machine);
                for (stream, sent) in (0..).zip(sent.iter().copied()) {
                    Record::End { stream, sent }.encode(outbox);
                }
                running.flows.outgoing = None;
                conversation.since = now;
                self.observer.sent(&sent);
                busy = true;
            }
        }
        busy
    }

    /// Writes the waiting records; returns whether there were any.
    fn write(&mut self, now: Instant, machine: &mut AerotpEndpoint) -> bool {
        let mut busy = false;
        for (control, conversation) in &mut self.conversations {
            if conversation.outbox.is_empty() {
                continue;
            }
            // The event of a connection that is over tells of it.
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

    /// Forgets conversations that came to nothing.
    fn expire(&mut self, now: Instant, machine: &mut AerotpEndpoint) {
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
        // The receiver of messages sends nothing that the other end must answer, and would wait for ever.
        let patience = self.plan.connection.give_up_after;
        let silent = self.running.as_ref();
        let silent = silent.filter(|running| running.heard + patience <= now);
        if let Some(control) = silent.map(|running| running.control) {
            self.drop_conversation(now, machine, control, PerfError::Vanished(patience));
        }
    }

    /// Whether there is room for a conversation with `guest`; another without a test may have to go.
    fn make_room(&mut self, now: Instant, machine: &mut AerotpEndpoint, guest: Guest) -> bool {
        let running = self.running.as_ref().map(|running| running.control);
        let mut by_age: Vec<_> = self.conversations.iter().collect();
        by_age.sort_by_key(|(_, conversation)| conversation.since);
        let taken = by_age.into_iter().map(|(id, conversation)| TakenPlace {
            id: *id,
            guest: conversation.guest,
            gives_way: Some(*id) != running,
        });
        let taken: Vec<_> = taken.collect();
        match seat(CONVERSATIONS_MAX, guest, &taken) {
            Seat::Free => true,
            Seat::Of(goes) => {
                machine.abort(now, goes);
                self.conversations.remove(&goes);
                true
            }
            Seat::Nowhere => false,
        }
    }

    /// Lets the rate of the last test from here go with it: others come from there, and paths without end.
    pub(super) fn forget_rate(&mut self, now: Instant, machine: &mut AerotpEndpoint) {
        if let Some(path) = self.rated.take() {
            machine.forget_rate_source(now, path);
        }
    }

    fn drop_conversation(
        &mut self,
        now: Instant,
        machine: &mut AerotpEndpoint,
        control: ConnectionId,
        error: PerfError,
    ) {
        machine.abort(now, control);
        self.conversations.remove(&control);
        self.end_test(now, machine, control, error);
    }

    /// Ends the conversation `control` that is over, and its test with it.
    fn end_test(
        &mut self,
        now: Instant,
        machine: &mut AerotpEndpoint,
        control: ConnectionId,
        error: PerfError,
    ) {
        let Some(running) = self.running.take_if(|running| running.control == control) else {
            return;
        };
        running.flows.abort(now, machine);
        self.forget_rate(now, machine);
        if !running.flows.is_empty() {
            self.observer.ended(&Err(error));
        }
        if self.plan.once {
            self.stop_at.get_or_insert(now + LAST_ANSWERS);
        }
    }
}

impl<O: Observer> Application<AerotpEndpoint> for PerfServer<O> {
    fn deliver(&mut self, now: Instant, machine: &mut AerotpEndpoint, event: Event) {
        match event {
            Event::Incoming {
                id, path, local, ..
            } if local == PERF_PORT => {
                let guest = self.latest.guest(path);
                if self.stop_at.is_some() || !self.make_room(now, machine, guest) {
                    machine.abort(now, id);
                    return;
                }
                let conversation = Conversation {
                    path,
                    guest,
                    since: now,
                    records: Records::default(),
                    outbox: Vec::new(),
                    token: 0,
                    test: None,
                    leaving: false,
                };
                self.conversations.insert(id, conversation);
            }
            Event::Incoming {
                id,
                path,
                local,
                mode,
            } => {
                // Earlier records may not have been read, such as the beginning of the test.
                self.listen(now, machine);
                let conversations = &self.conversations;
                let is_wanted = self.running.as_mut().is_some_and(|running| {
                    let client = conversations.get(&running.control);
                    let is_theirs = client.is_some_and(|client| client.path == path);
                    let incoming = running.flows.incoming.as_mut().filter(|_| is_theirs);
                    incoming.is_some_and(|incoming| incoming.accept(local, mode, id))
                });
                if !is_wanted {
                    machine.abort(now, id);
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
                } else if let Some(running) = &mut self.running {
                    running.flows.deliver(now, machine, &event);
                }
            }
            Event::PeerFinished(id) if self.conversations.contains_key(&id) => {
                self.listen(now, machine);
                machine.close(now, id);
            }
            event => {
                if let Some(running) = &mut self.running {
                    running.flows.deliver(now, machine, &event);
                }
            }
        }
    }

    fn work(&mut self, now: Instant, machine: &mut AerotpEndpoint) -> Step {
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

    fn unreachable(&mut self, _now: Instant, _machine: &mut AerotpEndpoint, _path: PathId) {}

    fn arrived(
        &mut self,
        now: Instant,
        machine: &mut AerotpEndpoint,
        datagram: Datagram<'_>,
        DatagramOrigin { from, .. }: DatagramOrigin,
    ) {
        self.latest.note(datagram.path, from);
        machine.handle_datagram_from(now, datagram, &source_octets(from));
    }

    fn paths_in_use(&self, now: Instant, machine: &AerotpEndpoint) -> Option<Vec<PathId>> {
        machine.paths_in_use(now)
    }

    fn times_departures(&self, machine: &AerotpEndpoint) -> bool {
        machine.finds_rates()
    }

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
            at: running.heard + self.plan.connection.give_up_after,
            why: "patience with a silent client",
        });
        let conversation = self.conversations.get(&running.control);
        let can_tell = conversation.is_some_and(Conversation::has_room);
        [silent, running.flows.next_deadline(can_tell)]
            .into_iter()
            .fold(earliest, Deadline::earlier)
    }
}

#[cfg(test)]
mod tests;
