//! Event traces in real time: events as JSON lines, in a [recording](crate::recording).

mod traced;

use crate::clock::{Clock, unix_time};
use crate::recording::{
    EndOfRecording, Format, Recording, RecordingConfig, RecordingCounters, RecordingError,
};
use fulmar_capture::{EventLines, EventPlace, GatewayEvent, Started};
use fulmar_proto::trace::TraceRecord;
use fulmar_proto::units::Instant;
use std::io;
pub(crate) use traced::NOTES_MAX;
pub use traced::Traced;

/// The most octets of a line together with one that tells how many are missing; names and reasons are bounded.
const LINE_OCTETS_MAX: usize = 8 << 10;

/// Lines, and the time of the last one.
#[derive(Debug)]
struct Lines {
    lines: EventLines<Vec<u8>>,
    at: Instant,
}

impl Lines {
    fn begin(clock: Clock, role: &str, name: &str) -> Self {
        let at = clock.now();
        let origin = unix_time().saturating_sub(at.saturating_since(Instant::START));
        let started = Started { role, name, origin };
        let lines = EventLines::started(Vec::new(), &started).expect("memory takes everything");
        Self { lines, at }
    }

    fn write(
        &mut self,
        at: Instant,
        missed: u64,
        line: impl FnOnce(&mut EventLines<Vec<u8>>) -> io::Result<()>,
    ) -> io::Result<()> {
        if missed > 0 {
            self.lines.missed(at, EventPlace::default(), missed)?;
        }
        line(&mut self.lines)?;
        self.at = at;
        Ok(())
    }
}

impl Format for Lines {
    const KIND: &'static str = "trace";
    const END_OCTETS: u64 = 128;

    fn out(&mut self) -> &mut Vec<u8> {
        self.lines.out()
    }

    fn octets(&self) -> u64 {
        self.lines.octets()
    }

    fn ends_at_size(&mut self) {
        let written = self.lines.end(self.at, "size");
        written.expect("memory takes everything");
    }

    fn entries(octets: &[u8]) -> u64 {
        let ends = octets.split(|&octet| octet == b'\n').count() - 1;
        ends as u64
    }

    fn whole_octets(octets: &[u8], written: usize) -> usize {
        let written = octets.get(..written).unwrap_or(octets);
        let last = written.iter().rposition(|&octet| octet == b'\n');
        last.map_or(0, |last| last + 1)
    }
}

/// An event trace under way. Dropped, it writes what is left and closes its file.
#[derive(Debug)]
pub struct EventTrace(Recording<Lines>);

impl EventTrace {
    /// Makes the file and begins a trace of the program called `name` in the role `role`, with times of
    /// `clock`. `tell` is called once if the trace ends before it is dropped.
    ///
    /// # Errors
    /// [`RecordingError`]: there is no file, or no thread.
    pub fn start(
        clock: Clock,
        config: RecordingConfig,
        role: &str,
        name: &str,
        tell: impl FnOnce(EndOfRecording) + Send + 'static,
    ) -> Result<Self, RecordingError> {
        Recording::start(config, Lines::begin(clock, role, name), tell).map(Self)
    }

    /// Writes a machine's note, or counts it as missed.
    pub fn record(&self, at: Instant, place: EventPlace<'_>, record: TraceRecord) {
        self.0.spool().record(LINE_OCTETS_MAX, |lines, missed| {
            lines.write(at, missed, |lines| lines.record(at, place, record))
        });
    }

    /// Writes an event of a gateway, or counts it as missed.
    pub fn gateway(&self, at: Instant, place: EventPlace<'_>, event: &GatewayEvent<'_>) {
        self.0.spool().record(LINE_OCTETS_MAX, |lines, missed| {
            lines.write(at, missed, |lines| lines.gateway(at, place, event))
        });
    }

    /// Counts events that never came here.
    pub fn note_missed(&self, events: u64) {
        self.0.spool().note_missed(events);
    }

    /// Writes the last line, which tells how it ended. Nothing that happens afterwards is in the trace.
    pub fn end(&self, at: Instant, how: &str) {
        self.0.spool().record(LINE_OCTETS_MAX, |lines, missed| {
            lines.write(at, missed, |lines| lines.end(at, how))
        });
        self.0.spool().close();
    }

    /// The counters so far, in lines.
    pub fn counters(&self) -> RecordingCounters {
        self.0.spool().counters()
    }
}

#[cfg(test)]
mod tests;
