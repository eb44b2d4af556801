//! Power as comma-separated values, the columns named in the first line.
//!
//! | column | is |
//! |---|---|
//! | `power_w`, `power_nw`, `power_dbm`, `power` | the power in watts, nanowatts, dBm, or any unit |
//! | `time_s` | when it was measured, in seconds, evenly spaced; without it the spacing must be given |
//!
//! Columns may stand in any order among others, which are not read. Without names, one number in a row is
//! `power` and two are `time_s` and `power`. Blank lines and lines that begin with `#` are skipped.

use super::collect::Collector;
use crate::error::TraceError;
use crate::lines::Lines;
use core::time::Duration;
use fulmar_channel::fading::PowerTrace;
use std::io::Read;

/// A unit of power.
#[derive(Clone, Copy)]
enum Unit {
    /// Multiples of so many watts, or of anything.
    Linear(f64),
    Dbm,
}

const UNITS: [(&str, Unit); 4] = [
    ("power_w", Unit::Linear(1.0)),
    ("power_nw", Unit::Linear(1e-9)),
    ("power_dbm", Unit::Dbm),
    ("power", Unit::Linear(1.0)),
];

#[derive(Clone, Copy)]
struct Columns {
    count: usize,
    power: (usize, &'static str, Unit),
    time: Option<usize>,
}

fn cells(line: &str) -> impl Iterator<Item = &str> {
    line.split(',')
        .map(|cell| cell.trim().trim_matches('"').trim())
}

impl Columns {
    /// The unit that the first line names, and whether that line is a row itself.
    fn of(line: &str) -> Result<(Self, bool), String> {
        let names: Vec<&str> = cells(line).collect();
        let count = names.len();
        let is_row = names.iter().all(|cell| cell.parse::<f64>().is_ok());
        let any = Unit::Linear(1.0);
        let columns = match (is_row, count) {
            (true, 1) => (0, "power", any, None),
            (true, 2) => (1, "power", any, Some(0)),
            (true, _) => {
                return Err(format!(
                    "{count} numbers without names; name the columns in the first line: time_s, \
                     power_w"
                ));
            }
            (false, _) => {
                let place = |name: &str| names.iter().position(|known| *known == name);
                let mut found = UNITS
                    .into_iter()
                    .filter_map(|(name, unit)| Some((place(name)?, name, unit)));
                match (found.next(), found.next()) {
                    (Some((power, name, unit)), None) => (power, name, unit, place("time_s")),
                    (Some(_), Some(_)) => {
                        return Err("give the power more than once; keep one column of it".into());
                    }
                    (None, _) => {
                        let shown: String = names.join(", ").chars().take(80).collect();
                        return Err(format!(
                            "`{shown}` have no power among them; name it in the first line: \
                             power_w, power_nw, power_dbm or power (any unit), and time_s if known"
                        ));
                    }
                }
            }
        };
        let (power, name, unit, time) = columns;
        let power = (power, name, unit);
        Ok((Self { count, power, time }, is_row))
    }
}

/// A table while it is read.
struct Rows {
    columns: Columns,
    /// Samples so far.
    count: u64,
    /// The first time and the last one.
    times: Option<(f64, f64)>,
    /// The first distance of two samples; a different one is a gap.
    step: Option<f64>,
}

/// Reads a table.
pub(super) fn read(
    name: &str,
    reader: impl Read,
    mut collector: Collector<'_>,
) -> Result<PowerTrace, TraceError> {
    let whole = |problem: &str| TraceError::Whole {
        name: name.to_owned(),
        problem: problem.to_owned(),
    };
    let mut lines = Lines::new(name, reader);
    let Some(first) = lines.next_line()?.map(str::to_owned) else {
        return Err(whole(
            "there is nothing in it; a recording has a row for each sample",
        ));
    };
    let (columns, is_row) =
        Columns::of(&first).map_err(|problem| lines.error("columns", problem))?;
    if columns.time.is_none() && collector.options.spacing.is_none() {
        let problem = "there is no `time_s` among them; say how far apart the samples are: \
                       `trace FILE spacing 100us`";
        return Err(lines.error("columns", problem));
    }
    let mut rows = Rows {
        columns,
        count: 0,
        times: None,
        step: None,
    };
    let mut is_over = is_row && rows.row(&lines, &first, &mut collector)?;
    while !is_over {
        // The line is copied, since an error about it needs the reader.
        let Some(line) = lines.next_line()?.map(str::to_owned) else {
            break;
        };
        is_over = rows.row(&lines, &line, &mut collector)?;
    }
    let Some(spacing) = collector.options.spacing.or_else(|| rows.mean_spacing()) else {
        return Err(whole(
            "there are not two samples in it, whose times would tell how far apart they are",
        ));
    };
    let length = (!is_over).then_some(rows.count as f64 * spacing.as_secs_f64());
    collector.finish(spacing, length)
}

impl Rows {
    /// Takes a row. Returns whether the wanted part is complete.
    fn row<R: Read>(
        &mut self,
        lines: &Lines<'_, R>,
        line: &str,
        collector: &mut Collector<'_>,
    ) -> Result<bool, TraceError> {
        let (power, name, unit) = self.columns.power;
        let given = cells(line).count();
        if given != self.columns.count {
            let problem = format!(
                "there are {given}, and {} in the first line; give every row as many",
                self.columns.count
            );
            return Err(lines.error("columns", problem));
        }
        let number = |field: &str, index: usize| {
            let text = cells(line).nth(index).unwrap_or_default();
            text.parse::<f64>().map_err(|_| {
                let shown: String = text.chars().take(40).collect();
                let problem = if shown.is_empty() {
                    "nothing is given; cut the file there, or write what was received".to_owned()
                } else {
                    format!("`{shown}` is not a number such as 3.72e-8; decimals have a point")
                };
                lines.error(field, problem)
            })
        };
        let value = number(name, power)?;
        let watts = match unit {
            Unit::Linear(factor) => value * factor,
            Unit::Dbm => 1e-3 * 10_f64.powf(value / 10.0),
        };
        let at = match (collector.options.spacing, self.columns.time) {
            (Some(spacing), _) => self.count as f64 * spacing.as_secs_f64(),
            (None, Some(time)) => self
                .since_start(number("time_s", time)?)
                .map_err(|problem| lines.error("time_s", problem))?,
            (None, None) => 0.0,
        };
        self.count += 1;
        let taken = collector.take(at, watts);
        let taken = taken.map_err(|problem| lines.error(name, problem))?;
        Ok(taken.is_break())
    }

    /// Checks that a time follows the one before at the same distance as the others. Returns the
    /// seconds since the first.
    fn since_start(&mut self, time: f64) -> Result<f64, String> {
        if !time.is_finite() || time.abs() > SECONDS_MAX {
            return Err(format!("{time} is not a time in seconds, such as 12.5"));
        }
        let Some((first, last)) = self.times else {
            self.times = Some((time, time));
            return Ok(0.0);
        };
        let step = time - last;
        if step <= 0.0 {
            return Err(format!(
                "{time} is not later than {last} in the row before; write times with more digits, or \
                 leave them out and give the distance: `spacing 100us`"
            ));
        }
        let usual = *self.step.get_or_insert(step);
        if step > 1.5 * usual {
            return Err(format!(
                "after {last} there is a gap of {step:.6} s where samples are {usual:.6} s apart; fill \
                 it, or take a part without it: `part 0s+{:.3}s`",
                last - first
            ));
        }
        if step < 0.5 * usual {
            return Err(format!(
                "samples are {step:.6} s apart here and {usual:.6} s at the start; bring them to one \
                 distance"
            ));
        }
        self.times = Some((first, time));
        Ok(time - first)
    }

    fn mean_spacing(&self) -> Option<Duration> {
        let (first, last) = self.times?;
        let intervals = self.count.checked_sub(1).filter(|&count| count > 0)?;
        Duration::try_from_secs_f64((last - first) / intervals as f64).ok()
    }
}

/// A thousand years: times in a file are of this era or count from a start.
const SECONDS_MAX: f64 = 3.2e10;
