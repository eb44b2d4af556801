//! Events of the protocol's machines, one JSON object a line, under a schema that is versioned.
//!
//! Every line has `v` and `event`, every line but the first `time_s`. The line of a machine names
//! the machine ([`EventPlace`]). Numbers carry their unit in the field's name. The page for users,
//! docs/guide/captures.md, lists every event with its fields; a test compares the two.

use crate::gateway_events::GatewayEvent;
use fulmar_proto::repair::RepairPlan;
use fulmar_proto::trace::{LossSign, TraceRecord};
use fulmar_proto::units::{Duration, Instant};
use serde::Serialize;
use std::io::{self, Write};

/// The version of the lines; it changes when a field changes its meaning or goes.
pub const EVENT_SCHEMA: u32 = 1;

/// The end of a flow at which a machine stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FlowEnd {
    /// The end whose application writes.
    Sender,
    /// The end whose application reads.
    Receiver,
}

impl FlowEnd {
    /// The end that `sends`, or the other one.
    pub const fn of(sends: bool) -> Self {
        if sends { Self::Sender } else { Self::Receiver }
    }
}

/// The machine that an event is of, as far as it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct EventPlace<'a> {
    /// Simulator: the node's address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<&'a str>,
    /// Gateway: the peer's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peer: Option<&'a str>,
    /// Gateway: the class's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<&'a str>,
    /// The flow, from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flow: Option<u64>,
    /// Gateways: the connection that carries it, from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connection: Option<u64>,
    /// Simulator: the end of the flow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<FlowEnd>,
}

/// The first line of a run: the scenario, the point of the sweep and the seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About<'a> {
    /// The scenario's name.
    pub scenario: &'a str,
    /// The point of the sweep, from 0.
    pub point: usize,
    /// The seed.
    pub seed: u64,
}

/// The first line of a program in real time: its role, its name, and when its clock began.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Started<'a> {
    /// The program's role, such as `gateway`.
    pub role: &'a str,
    /// The program's name.
    pub name: &'a str,
    /// The time of day, since 1970 in UTC, of [`Instant::START`].
    pub origin: Duration,
}

/// An event as it is written. The variants of [`TraceRecord`] under the names of the schema.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Event<'a> {
    Run {
        version: &'a str,
        scenario: &'a str,
        point: usize,
        seed: u64,
    },
    Started {
        version: &'a str,
        role: &'a str,
        name: &'a str,
        start_unix_s: f64,
        time_base: &'static str,
    },
    Sent {
        seq: u32,
        position_bytes: u64,
        payload_bytes: u32,
        again: bool,
    },
    RepairSent {
        first_seq: u32,
        index: u8,
    },
    HeldLost {
        seq: u32,
        sign: &'static str,
    },
    Accepted {
        seq: u32,
        corrected_symbols: u32,
    },
    Adapted {
        payload_bytes: u32,
        parity_words: u16,
        rate_octaves: u8,
    },
    RepairPlanned {
        loss_millionths: u32,
        loss_error_millionths: u32,
        behind_a_loss_millionths: u32,
        deadline_s: f64,
        may_miss_millionths: u32,
        will_miss_millionths: u32,
        packets_a_message: f64,
        missed_before: u32,
        messages_before: u32,
        ahead_a_message: f64,
        times: [u8; 3],
        put_off_s: f64,
    },
    Rebuilt {
        seq: u32,
    },
    Damaged {
        seq: u32,
    },
    GivenUp {
        seq: u32,
    },
    Stalled,
    Resumed,
    State {
        to: &'static str,
    },
    Missed {
        events: u64,
    },
    End {
        how: &'a str,
    },
}

impl From<TraceRecord> for Event<'static> {
    fn from(record: TraceRecord) -> Self {
        match record {
            TraceRecord::Sent {
                seq,
                position,
                len,
                again,
            } => Self::Sent {
                seq: seq.0,
                position_bytes: position,
                payload_bytes: len,
                again,
            },
            TraceRecord::RepairSent { first, index } => Self::RepairSent {
                first_seq: first.0,
                index,
            },
            TraceRecord::HeldLost { seq, sign } => Self::HeldLost {
                seq: seq.0,
                sign: match sign {
                    LossSign::Overtaken => "overtaken",
                    LossSign::Nack => "nack",
                    LossSign::Timeout => "timeout",
                    LossSign::Damaged => "damaged",
                },
            },
            TraceRecord::Accepted {
                seq,
                corrected_symbols,
            } => Self::Accepted {
                seq: seq.0,
                corrected_symbols,
            },
            TraceRecord::Adapted {
                payload,
                words,
                rate_octaves,
            } => Self::Adapted {
                payload_bytes: payload,
                parity_words: words,
                rate_octaves,
            },
            TraceRecord::RepairPlanned(decision) => Self::RepairPlanned {
                loss_millionths: decision.loss,
                loss_error_millionths: decision.loss_error,
                behind_a_loss_millionths: decision.behind_a_loss,
                deadline_s: decision.deadline.as_secs_f64(),
                may_miss_millionths: decision.may_miss,
                will_miss_millionths: decision.will_miss,
                packets_a_message: f64::from(decision.packets) / 1e6,
                missed_before: decision.missed,
                messages_before: decision.messages,
                ahead_a_message: f64::from(decision.ahead_eighths)
                    / f64::from(RepairPlan::AHEAD_UNIT),
                times: decision.times,
                put_off_s: decision.put_off.as_secs_f64(),
            },
            TraceRecord::Rebuilt { seq } => Self::Rebuilt { seq: seq.0 },
            TraceRecord::Damaged { seq } => Self::Damaged { seq: seq.0 },
            TraceRecord::GivenUp { seq } => Self::GivenUp { seq: seq.0 },
            TraceRecord::Stalled => Self::Stalled,
            TraceRecord::Resumed => Self::Resumed,
            TraceRecord::State { to } => Self::State { to },
        }
    }
}

#[derive(Serialize)]
struct Line<'a, E> {
    v: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    time_s: Option<f64>,
    #[serde(flatten)]
    place: EventPlace<'a>,
    #[serde(flatten)]
    event: E,
}

/// A writer of events, one line each.
#[derive(Debug)]
pub struct EventLines<W> {
    out: W,
    line: Vec<u8>,
    lines: u64,
    octets: u64,
}

impl<W: Write> EventLines<W> {
    /// Begins with a line that names the run.
    ///
    /// # Errors
    /// The errors of `out`.
    pub fn new(out: W, about: &About<'_>) -> io::Result<Self> {
        let About {
            scenario,
            point,
            seed,
        } = *about;
        Self::begin(
            out,
            Event::Run {
                version: env!("CARGO_PKG_VERSION"),
                scenario,
                point,
                seed,
            },
        )
    }

    /// Begins with a line that names the program and the start of its clock.
    ///
    /// # Errors
    /// The errors of `out`.
    pub fn started(out: W, started: &Started<'_>) -> io::Result<Self> {
        Self::begin(
            out,
            Event::Started {
                version: env!("CARGO_PKG_VERSION"),
                role: started.role,
                name: started.name,
                start_unix_s: started.origin.as_secs_f64(),
                time_base: "monotonic",
            },
        )
    }

    fn begin(out: W, first: Event<'_>) -> io::Result<Self> {
        let mut lines = Self {
            out,
            line: Vec::new(),
            lines: 0,
            octets: 0,
        };
        lines.write(None, EventPlace::default(), first)?;
        Ok(lines)
    }

    /// Writes an event that a machine noted.
    ///
    /// # Errors
    /// The errors of the writer.
    pub fn record(
        &mut self,
        at: Instant,
        place: EventPlace<'_>,
        record: TraceRecord,
    ) -> io::Result<()> {
        self.write(Some(at), place, Event::from(record))
    }

    /// Writes an event of a gateway.
    ///
    /// # Errors
    /// The errors of the writer.
    pub fn gateway(
        &mut self,
        at: Instant,
        place: EventPlace<'_>,
        event: &GatewayEvent<'_>,
    ) -> io::Result<()> {
        self.write(Some(at), place, event)
    }

    /// Writes that a machine noted more events than were kept.
    ///
    /// # Errors
    /// The errors of the writer.
    pub fn missed(&mut self, at: Instant, place: EventPlace<'_>, events: u64) -> io::Result<()> {
        self.write(Some(at), place, Event::Missed { events })
    }

    /// Writes the last line, which says how the run ended, and flushes the writer.
    ///
    /// # Errors
    /// The errors of the writer.
    pub fn end(&mut self, at: Instant, how: &str) -> io::Result<()> {
        self.write(Some(at), EventPlace::default(), Event::End { how })?;
        self.out.flush()
    }

    fn write(
        &mut self,
        at: Option<Instant>,
        place: EventPlace<'_>,
        event: impl Serialize,
    ) -> io::Result<()> {
        self.line.clear();
        let line = Line {
            v: EVENT_SCHEMA,
            time_s: at.map(Instant::as_secs_f64),
            place,
            event,
        };
        serde_json::to_writer(&mut self.line, &line)?;
        self.line.push(b'\n');
        self.lines += 1;
        self.octets += self.line.len() as u64;
        self.out.write_all(&self.line)
    }

    /// Lines written.
    pub const fn lines(&self) -> u64 {
        self.lines
    }

    /// Octets written.
    pub const fn octets(&self) -> u64 {
        self.octets
    }

    /// The writer behind this one.
    pub const fn out(&mut self) -> &mut W {
        &mut self.out
    }
}

#[cfg(test)]
mod tests;
