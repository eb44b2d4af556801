//! Events of the protocol's machines, one JSON object a line, under a schema that is versioned.
//!
//! Every line has `v` and `event`, every line but the first `time_s`. Lines of machines say which
//! (`node`, `flow`, `end`). Numbers carry their unit in the field's name. The page for users,
//! docs/guide/captures.md, lists every event with its fields; a test holds it to that.

use fulmar_proto::trace::{LossSign, Record};
use fulmar_proto::units::Instant;
use serde::Serialize;
use std::io::{self, Write};

/// The version of the lines; it changes when a field changes its meaning or goes.
pub const EVENT_SCHEMA: u32 = 1;

/// Which end of a flow a machine is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FlowEnd {
    /// The one whose application writes.
    Sender,
    /// The one whose application reads.
    Receiver,
}

/// Whose event it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Place<'a> {
    /// The node's address.
    pub node: &'a str,
    /// The flow, from 0.
    pub flow: usize,
    /// Which of its ends.
    pub end: FlowEnd,
}

/// The first line: what ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About<'a> {
    /// The scenario's name.
    pub scenario: &'a str,
    /// The point of the sweep, from 0.
    pub point: usize,
    /// The seed.
    pub seed: u64,
}

/// An event as it is written. The variants of [`Record`] under the names of the schema.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Event<'a> {
    Run {
        version: &'a str,
        scenario: &'a str,
        point: usize,
        seed: u64,
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

impl From<Record> for Event<'static> {
    fn from(record: Record) -> Self {
        match record {
            Record::Sent {
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
            Record::RepairSent { first, index } => Self::RepairSent {
                first_seq: first.0,
                index,
            },
            Record::HeldLost { seq, sign } => Self::HeldLost {
                seq: seq.0,
                sign: match sign {
                    LossSign::Overtaken => "overtaken",
                    LossSign::Nack => "nack",
                    LossSign::Timeout => "timeout",
                },
            },
            Record::Accepted {
                seq,
                corrected_symbols,
            } => Self::Accepted {
                seq: seq.0,
                corrected_symbols,
            },
            Record::Adapted {
                payload,
                words,
                rate_octaves,
            } => Self::Adapted {
                payload_bytes: payload,
                parity_words: words,
                rate_octaves,
            },
            Record::Rebuilt { seq } => Self::Rebuilt { seq: seq.0 },
            Record::Damaged { seq } => Self::Damaged { seq: seq.0 },
            Record::GivenUp { seq } => Self::GivenUp { seq: seq.0 },
            Record::Stalled => Self::Stalled,
            Record::Resumed => Self::Resumed,
            Record::State { to } => Self::State { to },
        }
    }
}

#[derive(Serialize)]
struct Line<'a> {
    v: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    time_s: Option<f64>,
    #[serde(flatten)]
    place: Option<Place<'a>>,
    #[serde(flatten)]
    event: Event<'a>,
}

/// Events under way to a writer.
#[derive(Debug)]
pub struct EventLines<W> {
    out: W,
    line: Vec<u8>,
    lines: u64,
}

impl<W: Write> EventLines<W> {
    /// Begins with a line that says what ran.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn new(out: W, about: &About<'_>) -> io::Result<Self> {
        let mut lines = Self {
            out,
            line: Vec::new(),
            lines: 0,
        };
        let About {
            scenario,
            point,
            seed,
        } = *about;
        let event = Event::Run {
            version: env!("CARGO_PKG_VERSION"),
            scenario,
            point,
            seed,
        };
        lines.write(None, None, event)?;
        Ok(lines)
    }

    /// Writes what a machine noted.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn record(&mut self, at: Instant, place: Place<'_>, record: Record) -> io::Result<()> {
        self.write(Some(at), Some(place), record.into())
    }

    /// Writes that a machine noted more than was kept for it.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn missed(&mut self, at: Instant, place: Place<'_>, events: u64) -> io::Result<()> {
        self.write(Some(at), Some(place), Event::Missed { events })
    }

    /// Writes the last line, how it ended, and hands everything on.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn end(&mut self, at: Instant, how: &str) -> io::Result<()> {
        self.write(Some(at), None, Event::End { how })?;
        self.out.flush()
    }

    fn write(
        &mut self,
        at: Option<Instant>,
        place: Option<Place<'_>>,
        event: Event<'_>,
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
        self.out.write_all(&self.line)
    }

    /// Lines written.
    pub const fn lines(&self) -> u64 {
        self.lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fulmar_proto::wire::TpduSeq;
    use serde_json::Value;
    use std::collections::BTreeSet;

    const SEQ: TpduSeq = TpduSeq(7);
    const PAGE: &str = include_str!("../../../docs/guide/captures.md");

    /// One of each; a new variant of `Record` does not compile in `From` until it has a name.
    const RECORDS: [Record; 11] = [
        Record::Sent {
            seq: SEQ,
            position: 1_000,
            len: 500,
            again: true,
        },
        Record::RepairSent {
            first: SEQ,
            index: 2,
        },
        Record::HeldLost {
            seq: SEQ,
            sign: LossSign::Overtaken,
        },
        Record::Accepted {
            seq: SEQ,
            corrected_symbols: 3,
        },
        Record::Adapted {
            payload: 400,
            words: 5,
            rate_octaves: 13,
        },
        Record::Rebuilt { seq: SEQ },
        Record::Damaged { seq: SEQ },
        Record::GivenUp { seq: SEQ },
        Record::Stalled,
        Record::Resumed,
        Record::State { to: "ESTABLISHED" },
    ];

    fn lines() -> Vec<String> {
        let mut octets = Vec::new();
        let about = About {
            scenario: "my.toml",
            point: 0,
            seed: 3,
        };
        let mut lines = EventLines::new(&mut octets, &about).unwrap();
        let place = Place {
            node: "10.0.0.1",
            flow: 0,
            end: FlowEnd::Sender,
        };
        let at = Instant::START + core::time::Duration::from_millis(1_500);
        for record in RECORDS {
            lines.record(at, place, record).unwrap();
        }
        lines.missed(at, place, 4).unwrap();
        lines.end(at, "completed").unwrap();
        assert_eq!(lines.lines(), 14);
        let text = String::from_utf8(octets).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn golden_lines() {
        let lines = lines();
        let version = env!("CARGO_PKG_VERSION");
        let run = format!(
            r#"{{"v":1,"event":"run","version":"{version}","scenario":"my.toml","point":0,"seed":3}}"#
        );
        assert_eq!(lines[0], run);
        assert_eq!(
            lines[1],
            r#"{"v":1,"time_s":1.5,"node":"10.0.0.1","flow":0,"end":"sender","event":"sent","seq":7,"position_bytes":1000,"payload_bytes":500,"again":true}"#
        );
        assert_eq!(
            lines[13],
            r#"{"v":1,"time_s":1.5,"event":"end","how":"completed"}"#
        );
    }

    #[test]
    fn the_guide_lists_every_event_with_its_fields_and_no_other() {
        let table = PAGE.split("<!-- events -->").nth(1).expect("the table");
        let told: BTreeSet<(String, Vec<String>)> = table
            .lines()
            .filter_map(|row| row.strip_prefix("| `"))
            .map(|row| {
                let (event, rest) = row.split_once('`').unwrap();
                let fields = rest.split('|').nth(1).unwrap();
                let fields = fields.split('`').skip(1).step_by(2);
                (event.to_owned(), fields.map(str::to_owned).collect())
            })
            .collect();
        let common = ["v", "time_s", "node", "flow", "end", "event"];
        let written = lines()
            .iter()
            .map(|line| {
                let line: Value = serde_json::from_str(line).unwrap();
                let fields = line.as_object().unwrap().keys();
                let own = fields.filter(|key| !common.contains(&key.as_str()));
                let mut own: Vec<String> = own.cloned().collect();
                own.sort();
                (line["event"].as_str().unwrap().to_owned(), own)
            })
            .collect();
        let told: BTreeSet<_> = told
            .into_iter()
            .map(|(event, mut fields)| {
                fields.sort();
                (event, fields)
            })
            .collect();
        assert_eq!(told, written);
    }
}
