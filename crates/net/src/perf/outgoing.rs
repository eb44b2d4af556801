//! The sending end of a test's messages.

use super::figures::Sent;
use super::message::Head;
use super::streams::{ahead_of_found, lane_config, port_of};
use super::test::{Limit, Test};
use fulmar_proto::machine::{Deadline, PathId, Priority};
use fulmar_proto::transport::aerotp::{
    AerotpEndpoint, ConnectError, ConnectionConfig, ConnectionId, Counters, ModeRules,
};
use fulmar_proto::units::{Bitrate, Duration, Instant};

/// Messages handed over before the socket gets its turn, of all streams together.
const MESSAGES_PER_TURN: usize = 64;
/// The longest end of a connection with messages once the last was written, in modes that confirm nothing.
const CLOSING_MAX: Duration = Duration::from_secs(5);

/// The settings of the conversation's connection, which has priority over the messages.
pub(super) fn control_config(base: ConnectionConfig) -> ConnectionConfig {
    ConnectionConfig {
        mode: fulmar_proto::wire::Mode::Reliable,
        block: None,
        thin: None,
        priority: Priority(base.priority.0.saturating_add(1)),
        ..base
    }
}

/// All streams' messages on their way out.
#[derive(Debug)]
pub(super) struct Outgoing {
    schedule: Schedule,
    streams: Vec<Stream>,
    /// The stream that begins next.
    turn: usize,
    path: PathId,
    /// The octets of a packet where the rate is found.
    packet_of_found: Option<usize>,
}

/// The times at which each stream may begin a message, and the limit on messages.
#[derive(Debug)]
struct Schedule {
    test: Test,
    begun: Instant,
    /// Messages that no stream has begun; `None` if the time limits the test.
    left: Option<u64>,
}

impl Schedule {
    fn is_enough(&self, now: Instant) -> bool {
        self.ends_at().is_some_and(|end| end <= now) || self.left == Some(0)
    }

    fn ends_at(&self) -> Option<Instant> {
        match self.test.limit {
            Limit::Time(span) => Some(self.begun + span),
            Limit::Bytes(_) => None,
        }
    }

    /// The time at which the message `sequence` of `stream` is due.
    fn due(&self, stream: u8, sequence: u64) -> Instant {
        self.begun + self.test.due(stream, sequence)
    }

    /// The time from which the delay of a message that is written now counts: where messages have a rate, the time at which it was
    /// due, so that one which had to wait for room, as in an outage, is not held for quick.
    fn counts_from(&self, now: Instant, stream: u8, sequence: u64) -> Instant {
        let has_rate = self.test.rate_bps.is_some();
        let due = has_rate.then(|| self.due(stream, sequence));
        due.map_or(now, |due| due.min(now))
    }

    fn on_begun(&mut self) {
        self.left = self.left.map(|left| left.saturating_sub(1));
    }
}

impl Outgoing {
    /// Sends `test`'s messages on `path`, over a link of `rate` if it was told, from now on.
    ///
    /// # Errors
    /// The connections cannot be opened; then there are none.
    pub(super) fn open(
        now: Instant,
        machine: &mut AerotpEndpoint,
        path: PathId,
        (test, rate): (Test, Option<Bitrate>),
        base: ConnectionConfig,
    ) -> Result<Self, ConnectError> {
        let config = lane_config(&test, rate, base);
        let count = test.streams;
        let mut outgoing = Self {
            schedule: Schedule {
                begun: now,
                left: test.messages_max(),
                test,
            },
            streams: Vec::with_capacity(usize::from(count)),
            turn: 0,
            path,
            packet_of_found: rate.is_none().then_some(config.tpdu_bytes_max),
        };
        for index in 0..count {
            match machine.connect(now, path, port_of(index), config) {
                Ok(lane) => {
                    let stream = Stream::new(&outgoing.schedule.test, index, lane);
                    outgoing.streams.push(stream);
                }
                Err(error) => {
                    outgoing.abort(now, machine);
                    return Err(error);
                }
            }
        }
        Ok(outgoing)
    }

    /// Writes messages that are due and have room; returns whether it did anything.
    pub(super) fn work(&mut self, now: Instant, machine: &mut AerotpEndpoint) -> bool {
        let each = (MESSAGES_PER_TURN / self.streams.len().max(1)).max(1);
        // No stream is always first.
        self.turn = (self.turn + 1) % self.streams.len().max(1);
        let (later, sooner) = self.streams.split_at_mut(self.turn);
        let mut busy = false;
        let ahead = self.packet_of_found.map(|packet| {
            let streams = sooner.len() + later.len();
            ahead_of_found(streams, machine.rate_of(self.path), packet)
        });
        for stream in sooner.iter_mut().chain(later) {
            busy |= stream.work(now, machine, &mut self.schedule, (each, ahead));
        }
        busy
    }

    /// Begins no further message; written ones are sent to their end.
    pub(super) fn finish(&mut self, now: Instant, machine: &mut AerotpEndpoint) {
        for stream in &mut self.streams {
            stream.finish(now, machine);
        }
    }

    /// Drops the connections, with all that waits on them.
    pub(super) fn abort(&self, now: Instant, machine: &mut AerotpEndpoint) {
        for stream in &self.streams {
            machine.abort(now, stream.lane);
        }
    }

    fn of(&mut self, lane: ConnectionId) -> Option<&mut Stream> {
        self.streams.iter_mut().find(|stream| stream.lane == lane)
    }

    /// Notes that everything written so far on `lane` was sent or confirmed, if that is one of ours.
    pub(super) fn on_all_sent(&mut self, lane: ConnectionId) {
        if let Some(stream) = self.of(lane)
            && let Phase::Closing { .. } = stream.phase
        {
            stream.phase = Phase::Over;
        }
    }

    /// Notes that the connection `lane` is over, if that is one of ours. The other streams go on.
    pub(super) fn on_closed(&mut self, machine: &AerotpEndpoint, lane: ConnectionId) {
        if let Some(stream) = self.of(lane) {
            stream.phase = Phase::Over;
            stream.counters = machine.counters(lane).copied();
        }
    }

    /// Whether every stream's last message was sent, and in modes that confirm, confirmed.
    pub(super) fn is_over(&self) -> bool {
        self.streams
            .iter()
            .all(|stream| stream.phase == Phase::Over)
    }

    /// The figures of what each stream sent.
    pub(super) fn sent(&self, machine: &AerotpEndpoint) -> Vec<Sent> {
        let bytes = self.schedule.test.message_bytes;
        let sent = |stream: &Stream| {
            let counters = machine.counters(stream.lane);
            let counters = counters.or(stream.counters.as_ref());
            Sent::of(stream.written, bytes, counters)
        };
        self.streams.iter().map(sent).collect()
    }

    /// The time of the next thing to do if nothing happens before.
    pub(super) fn next_deadline(&self) -> Option<Deadline> {
        let each = self.streams.iter();
        each.map(|stream| stream.next_deadline(&self.schedule))
            .fold(None, Deadline::earlier)
    }
}

/// The phase of a stream's messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Writing,
    /// Closed, until the connection tells that all was sent, or until this time.
    Closing {
        until: Option<Instant>,
    },
    Over,
}

/// One stream's messages.
#[derive(Debug)]
struct Stream {
    index: u8,
    lane: ConnectionId,
    /// Whether messages are pieces of a stream of octets, which is confirmed; otherwise each is a packet.
    is_complete: bool,
    /// Messages written whole.
    written: u64,
    /// The message that is being written, and the octets of it that were taken.
    message: Vec<u8>,
    taken: usize,
    /// Whether writing waits for room, and not for the time.
    blocked: bool,
    phase: Phase,
    /// The connection's counters when it was over: the machine forgets them when there are many.
    counters: Option<Counters>,
}

impl Stream {
    fn new(test: &Test, index: u8, lane: ConnectionId) -> Self {
        // Any octets serve, except a run of zeros, which some links would compress.
        let pattern =
            (0..test.message_bytes).map(|place| (place.wrapping_mul(0x9E37_79B1) >> 24) as u8);
        Self {
            index,
            lane,
            is_complete: test.mode().is_ok_and(|mode| ModeRules::of(mode).complete),
            written: 0,
            message: pattern.collect(),
            taken: 0,
            blocked: false,
            phase: Phase::Writing,
            counters: None,
        }
    }

    /// Writes up to `most` messages, while less than `ahead` octets wait, if that is given; returns whether it did
    /// anything.
    fn work(
        &mut self,
        now: Instant,
        machine: &mut AerotpEndpoint,
        schedule: &mut Schedule,
        (most, ahead): (usize, Option<usize>),
    ) -> bool {
        if let Phase::Closing { until: Some(until) } = self.phase
            && until <= now
        {
            machine.abort(now, self.lane);
            self.phase = Phase::Over;
            return true;
        }
        if self.phase != Phase::Writing {
            return false;
        }
        for count in 0..most {
            if self.taken == 0 {
                if schedule.is_enough(now) {
                    self.finish(now, machine);
                    return true;
                }
                if schedule.due(self.index, self.written) > now {
                    return count > 0;
                }
            }
            let waiting = || machine.unsent_bytes(self.lane).unwrap_or_default();
            let has_room = machine.write_room(self.lane).is_none_or(|room| room > 0)
                && ahead.is_none_or(|ahead| waiting() < ahead as u64);
            if !has_room || !self.write(now, machine, schedule) {
                self.blocked = true;
                return count > 0;
            }
        }
        true
    }

    /// Writes the current message, or more of it; returns whether it is written whole.
    fn write(
        &mut self,
        now: Instant,
        machine: &mut AerotpEndpoint,
        schedule: &mut Schedule,
    ) -> bool {
        let is_new = self.taken == 0;
        if is_new {
            let head = Head {
                id: schedule.test.id,
                sequence: self.written,
                sent: schedule.counts_from(now, self.index, self.written),
            };
            head.write(&mut self.message);
        }
        let outcome = if self.is_complete {
            let rest = self.message.get(self.taken..).unwrap_or_default();
            machine.write(now, self.lane, rest)
        } else {
            let whole = self.message.len();
            let written = machine.write_message(now, self.lane, &self.message);
            written.map(|is_taken| if is_taken { whole } else { 0 })
        };
        let Ok(taken) = outcome else {
            // The connection's own event tells why it is over.
            self.phase = Phase::Over;
            return false;
        };
        if is_new && taken > 0 {
            schedule.on_begun();
        }
        self.taken += taken;
        let is_whole = self.taken == self.message.len();
        if is_whole {
            self.written += 1;
            self.taken = 0;
        }
        self.blocked = false;
        is_whole
    }

    fn finish(&mut self, now: Instant, machine: &mut AerotpEndpoint) {
        if self.phase == Phase::Writing {
            machine.close(now, self.lane);
            // Where everything is confirmed, only the connection's own patience ends the wait.
            let until = (!self.is_complete).then_some(now + CLOSING_MAX);
            self.phase = Phase::Closing { until };
        }
    }

    fn next_deadline(&self, schedule: &Schedule) -> Option<Deadline> {
        let (at, why) = match self.phase {
            // The connection tells when there is room.
            Phase::Writing if self.taken > 0 => return None,
            Phase::Writing => {
                let due = (!self.blocked).then(|| schedule.due(self.index, self.written));
                let at = [schedule.ends_at(), due].into_iter().flatten().min();
                (at?, "the next message")
            }
            Phase::Closing { until } => (until?, "patience with the messages' end"),
            Phase::Over => return None,
        };
        Some(Deadline { at, why })
    }
}
