//! The receiving end of a test's messages: the streams' connections, the counts of each, and the intervals.

use super::figures::{Interval, Measured, Sent};
use super::meter::Meter;
use super::report::{PerfError, PerfReport};
use super::streams::{PerStream, lane_config, port_of, stream_at};
use super::test::Test;
use fulmar_proto::machine::Deadline;
use fulmar_proto::transport::aerotp::{
    AerotpEndpoint, ConfigError, ConnectionConfig, ConnectionId, Counters, ThinRepair,
};
use fulmar_proto::units::{Duration, Instant};
use fulmar_proto::wire::{Mode, Port};

/// The time for which messages may still come once the sender has said that it sent the last.
const STRAGGLING_MAX: Duration = Duration::from_secs(1);

/// All streams' messages as they come.
#[derive(Debug)]
pub(super) struct Incoming {
    test: Test,
    streams: Vec<Stream>,
    /// The sender's word on what it sent.
    ends: PerStream<Sent>,
    /// The time until which messages may still come, once that is known of every stream.
    until: Option<Instant>,
    current: Option<Current>,
}

/// The interval that is not over.
#[derive(Debug)]
struct Current {
    /// The arrival of the first message of any stream, from which intervals count.
    first_arrival: Instant,
    begin: Instant,
    /// Messages of each stream before it.
    before: Vec<u64>,
}

#[derive(Debug)]
struct Stream {
    lane: Option<ConnectionId>,
    /// Whether there may be something to read.
    readable: bool,
    /// Whether the connection brings no more.
    is_over: bool,
    meter: Meter,
    /// The connection's counters when it was over: the machine forgets them when there are many.
    counters: Option<Counters>,
}

impl Stream {
    /// Reads all messages that have come; returns whether there were any.
    fn read(&mut self, now: Instant, machine: &mut AerotpEndpoint) -> bool {
        let Some(lane) = self.lane else {
            return false;
        };
        let mut busy = false;
        while let Some(chunk) = machine.read(now, lane) {
            busy = true;
            self.meter.take(now, &chunk.octets);
            machine.recycle(lane, chunk.octets);
        }
        self.readable = false;
        busy
    }

    fn counters(&self, machine: &AerotpEndpoint) -> Counters {
        let live = self.lane.and_then(|lane| machine.counters(lane));
        live.copied().or(self.counters).unwrap_or_default()
    }
}

impl Incoming {
    /// The receiving end of `test`'s messages on `machine`, from a sender whose clock ours is `ahead` of, in
    /// nanoseconds.
    ///
    /// # Errors
    /// The settings cannot work.
    pub(super) fn open(
        machine: &mut AerotpEndpoint,
        test: Test,
        base: ConnectionConfig,
        ahead: i64,
    ) -> Result<Self, ConfigError> {
        let config = ConnectionConfig {
            // A sender with a goal asks for answers at once.
            thin: Some(ThinRepair::default()),
            ..lane_config(&test, test.link_rate(), base)
        };
        let mut streams = Vec::with_capacity(usize::from(test.streams));
        for stream in 0..test.streams {
            machine.listen(port_of(stream), config)?;
            streams.push(Stream {
                lane: None,
                readable: false,
                is_over: false,
                meter: Meter::new(test.clone(), ahead),
                counters: None,
            });
        }
        Ok(Self {
            streams,
            ends: PerStream::new(test.streams),
            until: None,
            current: None,
            test,
        })
    }

    /// Takes the connection `id` of `mode` that came to `port`; returns whether it belongs to a stream without a
    /// connection.
    pub(super) fn accept(&mut self, port: Port, mode: Mode, id: ConnectionId) -> bool {
        let stream = stream_at(port, self.test.streams);
        let place = stream.and_then(|stream| self.streams.get_mut(usize::from(stream)));
        match place {
            Some(stream) if stream.lane.is_none() && self.test.mode() == Ok(mode) => {
                stream.lane = Some(id);
                true
            }
            _ => false,
        }
    }

    fn of(&mut self, lane: ConnectionId) -> Option<&mut Stream> {
        let is_its = |stream: &&mut Stream| stream.lane == Some(lane);
        self.streams.iter_mut().find(is_its)
    }

    /// Notes that there is something to read on `lane`, if that is one of ours.
    pub(super) fn on_readable(&mut self, lane: ConnectionId) {
        if let Some(stream) = self.of(lane) {
            stream.readable = true;
        }
    }

    /// Reads all messages that have come; returns whether there were any.
    pub(super) fn read(&mut self, now: Instant, machine: &mut AerotpEndpoint) -> bool {
        let mut busy = false;
        for stream in self.streams.iter_mut().filter(|stream| stream.readable) {
            busy |= stream.read(now, machine);
        }
        self.note_first_arrival(now);
        busy
    }

    fn note_first_arrival(&mut self, now: Instant) {
        let is_first = || self.streams.iter().any(|one| one.meter.messages() > 0);
        if self.current.is_none() && is_first() {
            self.current = Some(Current {
                first_arrival: now,
                begin: now,
                before: vec![0; self.streams.len()],
            });
        }
    }

    /// Notes that the connection `lane` will bring no more, or is over, if it is one of ours.
    pub(super) fn on_over(
        &mut self,
        now: Instant,
        machine: &mut AerotpEndpoint,
        lane: ConnectionId,
    ) {
        if let Some(stream) = self.of(lane) {
            stream.read(now, machine);
            stream.is_over = true;
            machine.close(now, lane);
            stream.counters = Some(stream.counters(machine));
        }
        self.note_first_arrival(now);
    }

    /// Takes the sender's figures of `stream`.
    ///
    /// # Errors
    /// There is no such stream, or its figures came already.
    pub(super) fn on_end(&mut self, now: Instant, stream: u8, sent: Sent) -> Result<(), PerfError> {
        self.ends.put(stream, sent, "END")?;
        if self.ends.all().is_some() {
            self.until = Some(now + STRAGGLING_MAX);
        }
        Ok(())
    }

    /// Whether nothing more is to be expected.
    pub(super) fn is_done(&self, now: Instant) -> bool {
        let is_complete = || self.streams.iter().all(|stream| stream.is_over);
        self.until
            .is_some_and(|until| until <= now || is_complete())
    }

    /// The interval that is over. Several intervals are returned as one that is as long as all: messages were not
    /// counted
    /// for each.
    pub(super) fn take_interval(&mut self, now: Instant) -> Option<Interval> {
        let begin = self.current.as_ref()?.begin;
        let span = self.test.interval?;
        let over = now.saturating_since(begin).as_nanos() / span.as_nanos().max(1);
        let over = u32::try_from(over).unwrap_or(u32::MAX);
        (over > 0).then(|| self.end_interval(begin + span * over))?
    }

    /// The messages that came since the last interval, if any.
    pub(super) fn take_last_interval(&mut self) -> Option<Interval> {
        self.test.interval?;
        let current = self.current.as_ref()?;
        let last = self.streams.iter().map(|one| one.meter.last_arrival());
        // A single message comes at the very beginning of an interval.
        let end = last.max()?.max(current.begin);
        let is_news = self.messages() != current.before;
        is_news.then(|| self.end_interval(end))?
    }

    fn messages(&self) -> Vec<u64> {
        let each = self.streams.iter();
        each.map(|stream| stream.meter.messages()).collect()
    }

    fn end_interval(&mut self, end: Instant) -> Option<Interval> {
        let messages = self.messages();
        let current = self.current.as_mut()?;
        let since = messages.iter().zip(&current.before);
        let interval = Interval {
            from: current.begin.saturating_since(current.first_arrival),
            until: end.saturating_since(current.first_arrival),
            messages: since.map(|(now, before)| now - before).collect(),
        };
        current.begin = end;
        current.before = messages;
        Some(interval)
    }

    fn interval_ends(&self) -> Option<Instant> {
        Some(self.current.as_ref()?.begin + self.test.interval?)
    }

    /// The time of the next thing to do if nothing happens before. An interval's end counts while `can_tell` is set.
    pub(super) fn next_deadline(&self, can_tell: bool) -> Option<Deadline> {
        let deadline = |at: Option<Instant>, why| at.map(|at| Deadline { at, why });
        let interval_ends = self.interval_ends().filter(|_| can_tell);
        Deadline::earlier(
            deadline(interval_ends, "end of an interval"),
            deadline(self.until, "the last messages"),
        )
    }

    /// The figures of what came: of each stream, and of all together.
    pub(super) fn measured(&self, machine: &AerotpEndpoint) -> (Vec<Measured>, Measured) {
        let (mut sum, mut counters) = (Meter::new(self.test.clone(), 0), Counters::default());
        let each = self.streams.iter().map(|stream| {
            let its = stream.counters(machine);
            sum.merge(&stream.meter);
            counters += its;
            stream.meter.measured(&its)
        });
        let each = each.collect();
        (each, sum.measured(&counters))
    }

    /// The report on the test, as far as this end knows.
    pub(super) fn report(&self, machine: &AerotpEndpoint) -> PerfReport {
        let (each, sum) = self.measured(machine);
        PerfReport::new(self.test.clone(), self.ends.each().zip(each), sum)
    }

    /// The connection of `stream`, once it came.
    #[cfg(test)]
    pub(super) fn lane(&self, stream: usize) -> Option<ConnectionId> {
        self.streams.get(stream)?.lane
    }

    /// Drops the connections that are not over.
    pub(super) fn abort(&self, now: Instant, machine: &mut AerotpEndpoint) {
        let open = self.streams.iter().filter(|stream| !stream.is_over);
        for lane in open.filter_map(|stream| stream.lane) {
            machine.abort(now, lane);
        }
    }
}
