//! Tables of losses: comma-separated values with the columns named in the first line.
//!
//! | columns | a row is | use |
//! |---|---|---|
//! | none, or `lost` | a packet that was sent: 1 lost, 0 not | fit, replay |
//! | `sent_s`, `lost` | the same, with the time it was sent | fit by time, replay |
//! | `sequence`, and `arrival_s` if known | a packet that came | fit, replay |
//! | `duration_s`, `loss` | an interval, and the share of packets lost in it | replay |
//! | `start_s`, `loss` | an interval that lasts until the next one begins | replay |
//!
//! Columns may stand in any order among others, which are not read. Blank lines and lines that
//! begin with `#` are skipped. The last interval of `start_s` is as long as the one before it.

use crate::error::TraceError;
use crate::lines::Lines;
use crate::losses::Losses;
use crate::sequence::{SequenceOptions, Tracker};
use core::time::Duration;
use fulmar_channel::{LossTrace, TimeTrace};
use fulmar_proto::units::PacketErrorRate;
use std::io::Read;

/// Octets of a longer name than any column has, and fewer than a key in base64.
const NAME_SHOWN_MAX: usize = 40;

/// The content of a table.
#[derive(Clone, Debug, PartialEq)]
pub enum TableContent {
    /// Packets one by one.
    Packets(Losses),
    /// The loss over time.
    Time(TimeTrace),
}

impl TableContent {
    /// The recording as a trace, to be replayed.
    pub fn into_trace(self) -> LossTrace {
        match self {
            Self::Packets(losses) => LossTrace::Packets(losses.into_packets()),
            Self::Time(trace) => LossTrace::Time(trace),
        }
    }
}

/// Columns by their places in a row.
#[derive(Clone, Copy)]
enum Form {
    Lost {
        lost: usize,
        sent: Option<usize>,
    },
    Sequence {
        number: usize,
        arrival: Option<usize>,
    },
    Durations {
        duration: usize,
        loss: usize,
    },
    Starts {
        start: usize,
        loss: usize,
    },
}

const COLUMNS: [&str; 7] = [
    "lost",
    "sent_s",
    "sequence",
    "arrival_s",
    "duration_s",
    "start_s",
    "loss",
];

/// Reads a table. `name` is the table's name in errors.
///
/// # Errors
/// The first line that is wrong, or an empty table.
pub fn read_table(
    name: &str,
    reader: impl Read,
    options: SequenceOptions,
) -> Result<TableContent, TraceError> {
    let mut lines = Lines::new(name, reader);
    let Some(first) = lines.next_line()? else {
        return Err(whole(
            name,
            "there is nothing in it; a table has a row for each packet",
        ));
    };
    let cells: Vec<String> = cells(first).map(str::to_owned).collect();
    let headless = cells.len() == 1 && matches!(cells[0].as_str(), "0" | "1");
    let form = if headless {
        Form::Lost {
            lost: 0,
            sent: None,
        }
    } else {
        form(&cells).map_err(|problem| lines.error("columns", problem))?
    };
    let mut table = Table::new(form, options);
    if headless {
        table.row(&lines, &cells[0])?;
    }
    // Each line is copied, since an error about it needs the reader.
    while let Some(line) = lines.next_line()?.map(str::to_owned) {
        table.row(&lines, &line)?;
    }
    table.finish(name)
}

fn whole(name: &str, problem: impl Into<String>) -> TraceError {
    TraceError::Whole {
        name: name.to_owned(),
        problem: problem.into(),
    }
}

fn cells(line: &str) -> impl Iterator<Item = &str> {
    line.split(',')
        .map(|cell| cell.trim().trim_matches('"').trim())
}

/// The form of the rows, by the names of the columns.
fn form(names: &[String]) -> Result<Form, String> {
    let place = |name: &str| names.iter().position(|known| known == name);
    let forms = [
        place("lost").map(|lost| Form::Lost {
            lost,
            sent: place("sent_s"),
        }),
        place("sequence").map(|number| Form::Sequence {
            number,
            arrival: place("arrival_s"),
        }),
        place("duration_s")
            .zip(place("loss"))
            .map(|(duration, loss)| Form::Durations { duration, loss }),
        place("start_s")
            .zip(place("loss"))
            .map(|(start, loss)| Form::Starts { start, loss }),
    ];
    let mut found = forms.into_iter().flatten();
    match (found.next(), found.next()) {
        (Some(form), None) => Ok(form),
        (Some(_), Some(_)) => Err(
            "say two things at once; keep one of lost, sequence, duration_s and start_s".to_owned(),
        ),
        (None, _) => {
            // A file of another kind may hold what nobody should read here, a key for instance.
            if names.iter().any(|name| name.len() > NAME_SHOWN_MAX) {
                let known = COLUMNS.join(", ");
                return Err(format!(
                    "the first line has no names of columns; known are {known}"
                ));
            }
            let shown: String = names.join(", ").chars().take(80).collect();
            if let Some(mark) = [';', '\t'].into_iter().find(|&mark| shown.contains(mark)) {
                return Err(format!(
                    "`{shown}` has {mark:?} between its names; columns are divided by commas"
                ));
            }
            Err(format!(
                "`{shown}` are none that are known; name them in the first line: {}",
                COLUMNS.join(", ")
            ))
        }
    }
}

/// A table while it is read.
struct Table {
    form: Form,
    losses: Losses,
    tracker: Tracker,
    trace: TimeTrace,
    /// The interval that has begun: its start, the length of the one before, and its loss.
    open: Option<(f64, f64, PacketErrorRate)>,
    last_sent: f64,
}

impl Table {
    fn new(form: Form, options: SequenceOptions) -> Self {
        Self {
            form,
            losses: Losses::default(),
            tracker: Tracker::new(options),
            trace: TimeTrace::default(),
            open: None,
            last_sent: f64::NEG_INFINITY,
        }
    }

    fn row<R: Read>(&mut self, lines: &Lines<'_, R>, line: &str) -> Result<(), TraceError> {
        let cell = |index: usize| cells(line).nth(index).unwrap_or_default();
        let wrong = |field: &str, index: usize, expected: &str| {
            let given: String = cell(index).chars().take(40).collect();
            lines.error(field, format!("`{given}` is not {expected}"))
        };
        let seconds = |field: &str, index: usize| {
            let number = cell(index).parse::<f64>().ok();
            number
                .filter(|s| s.abs() <= SECONDS_MAX)
                .ok_or_else(|| wrong(field, index, "a time in seconds, such as 12.5"))
        };
        let share = |index: usize| {
            let number = cell(index).parse::<PacketErrorRate>();
            number.map_err(|_| wrong("loss", index, "a share such as 1, 0.25 or 25%"))
        };
        match self.form {
            Form::Lost { lost, sent } => {
                let time = sent.map(|sent| seconds("sent_s", sent)).transpose()?;
                let fate = match cell(lost) {
                    "0" => false,
                    "1" => true,
                    _ => return Err(wrong("lost", lost, "0 (came) or 1 (lost)")),
                };
                if let Some(time) = time {
                    if time < self.last_sent {
                        let problem = "goes back; give the packets in the order they were sent";
                        return Err(lines.error("sent_s", problem));
                    }
                    self.last_sent = time;
                }
                let kept = self.losses.push(fate, time);
                kept.map_err(|problem| lines.error("lost", problem))
            }
            Form::Sequence { number, arrival } => {
                let time = arrival
                    .map(|arrival| seconds("arrival_s", arrival))
                    .transpose()?;
                let Ok(value) = cell(number).parse::<u64>() else {
                    return Err(wrong("sequence", number, "a whole number from 0 on"));
                };
                let kept = self.tracker.feed(value, time);
                kept.map_err(|problem| lines.error("sequence", problem))
            }
            Form::Durations { duration, loss } => {
                let length = seconds("duration_s", duration)?;
                if length < 0.0 {
                    return Err(wrong("duration_s", duration, "0 or more"));
                }
                self.interval(lines, length, share(loss)?)
            }
            Form::Starts { start, loss } => {
                let (start, loss) = (seconds("start_s", start)?, share(loss)?);
                let mut length = 0.0;
                if let Some((before, _, earlier)) = self.open {
                    length = start - before;
                    if length <= 0.0 {
                        let problem = "must be later than in the row before";
                        return Err(lines.error("start_s", problem));
                    }
                    self.interval(lines, length, earlier)?;
                }
                self.open = Some((start, length, loss));
                Ok(())
            }
        }
    }

    fn interval<R: Read>(
        &mut self,
        lines: &Lines<'_, R>,
        seconds: f64,
        loss: PacketErrorRate,
    ) -> Result<(), TraceError> {
        let length = Duration::try_from_secs_f64(seconds).unwrap_or_default();
        let kept = self.trace.push(length, loss);
        kept.map_err(|full| lines.error("loss", full.to_string()))
    }

    fn finish(mut self, name: &str) -> Result<TableContent, TraceError> {
        let recording = match self.form {
            Form::Lost { .. } => TableContent::Packets(self.losses),
            Form::Sequence { .. } => {
                let losses = self.tracker.finish();
                TableContent::Packets(losses.map_err(|problem| whole(name, problem))?)
            }
            Form::Durations { .. } | Form::Starts { .. } => {
                if let Some((_, length, loss)) = self.open {
                    let length = Duration::try_from_secs_f64(length).unwrap_or_default();
                    let kept = self.trace.push(length, loss);
                    kept.map_err(|full| whole(name, full.to_string()))?;
                }
                TableContent::Time(self.trace)
            }
        };
        let is_empty = match &recording {
            TableContent::Packets(losses) => losses.packets().is_empty(),
            TableContent::Time(trace) => trace.length().is_zero(),
        };
        if is_empty {
            return Err(whole(name, "there is no row in it that says something"));
        }
        Ok(recording)
    }
}

/// A thousand years: times in a file are of this era or count from a start.
const SECONDS_MAX: f64 = 3.2e10;
