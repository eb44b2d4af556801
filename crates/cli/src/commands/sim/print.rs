//! Results for people and programs: a table, records, rows.

use super::STDOUT;
use crate::exit::Failure;
use crate::table::{Columns, HEAVIEST, Listing};
use anyhow::Context;
use fulmar_sim::experiment::{Experiment, PointResult};
use fulmar_sim::report::aggregate::AggregateRecord;
use fulmar_sim::report::column::{COLUMNS, ReportColumn};
use fulmar_sim::report::csv;
use fulmar_sim::scenario::RunPlan;
use std::io::{BufWriter, Write};
use std::path::Path;

/// The weight of the number of runs, which is worth less than their results.
const N_WEIGHT: u8 = 65;

/// Every record on stdout, one JSON object a line.
pub(super) fn json(results: &[PointResult]) -> anyhow::Result<()> {
    let mut out = BufWriter::new(std::io::stdout().lock());
    for point in results {
        for run in &point.runs {
            serde_json::to_writer(&mut out, run)?;
            out.write_all(b"\n")?;
        }
        serde_json::to_writer(&mut out, &point.aggregate)?;
        out.write_all(b"\n")?;
    }
    out.flush().context("cannot write the records")
}

/// Every row to `file`; `-` is stdout.
pub(super) fn csv_file(
    file: &Path,
    results: &[PointResult],
    varied: &[String],
) -> anyhow::Result<()> {
    let is_stdout = file == Path::new("-");
    let mut out: Box<dyn Write> = if is_stdout {
        Box::new(std::io::stdout().lock())
    } else {
        let created = std::fs::File::create(file);
        Box::new(created.with_context(|| format!("cannot create {}", file.display()))?)
    };
    let mut text = String::new();
    let mut rows = 0;
    if let Some(run) = results.first().and_then(|point| point.runs.first()) {
        text.push_str(&csv::header(run, varied));
        text.push('\n');
    }
    for point in results {
        for run in &point.runs {
            text.push_str(&csv::run_row(run, varied));
            text.push('\n');
        }
        text.push_str(&csv::aggregate_row(&point.aggregate, varied));
        text.push('\n');
        rows += point.runs.len() + 1;
    }
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .with_context(|| {
            if is_stdout {
                STDOUT.to_owned()
            } else {
                format!("cannot write {}", file.display())
            }
        })?;
    if file != Path::new("-") {
        eprintln!("fulmar: {rows} rows written to {}", file.display());
    }
    Ok(())
}

/// The columns that say what a row of a table is of.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowNames<'a> {
    /// The swept parameters.
    pub(super) varied: &'a [String],
    /// Whether its seeds are among them.
    pub(super) has_seeds: bool,
}

impl RowNames<'_> {
    fn headings(&self) -> impl Iterator<Item = String> {
        let seeds = self.has_seeds.then(|| "seeds".to_owned());
        self.varied.iter().cloned().chain(seeds)
    }

    fn count(&self) -> usize {
        self.varied.len() + usize::from(self.has_seeds)
    }
}

/// The seeds of a point's runs, in words.
pub(super) fn seeds(run: &RunPlan) -> String {
    let further = run.runs.saturating_sub(1) as u64;
    match further {
        0 => run.seed.to_string(),
        further => format!("{} to {}", run.seed, run.seed.saturating_add(further)),
    }
}

/// An empty table: columns for what a row is of, and these measures.
fn empty(rows: RowNames<'_>, shown: &[&ReportColumn]) -> Listing {
    let measures = shown.iter().map(|column| column.heading.to_owned());
    let headings = rows.headings().chain(["n".to_owned()]);
    let weights = rows.headings().map(|_| HEAVIEST).chain([N_WEIGHT]);
    let names: Vec<&str> = shown.iter().map(|column| column.name).collect();
    Listing::new(headings.chain(measures), rows.count())
        .weigh(weights.chain(shown.iter().map(|column| column.weight)))
        .name_last(&names)
}

/// Checks that the chosen columns exist, before runs that may take hours.
///
/// # Errors
/// No column has such a name.
pub(super) fn check_columns(rows: RowNames<'_>, columns: &Columns) -> Result<(), Failure> {
    let all: Vec<&ReportColumn> = COLUMNS.iter().collect();
    empty(rows, &all).chosen(columns).map(|_| ())
}

/// One row for each point: what it is of, and the main measures with their intervals.
pub(super) fn table<'a>(
    experiment: &Experiment,
    aggregates: impl IntoIterator<Item = &'a AggregateRecord>,
    rows: RowNames<'_>,
    columns: &Columns,
) -> Result<(), Failure> {
    let aggregates: Vec<&AggregateRecord> = aggregates.into_iter().collect();
    // Only flows whose messages are due at a time fill the columns about that.
    let is_due = |point: &&AggregateRecord| {
        point
            .summary("in_time")
            .is_some_and(|share| share.mean.is_some())
    };
    let keeps_optional = !columns.columns.is_empty() || aggregates.iter().any(is_due);
    let shown: Vec<&ReportColumn> = COLUMNS
        .iter()
        .filter(|column| keeps_optional || !column.optional)
        .collect();
    let graph = super::graph::tables(experiment, &aggregates, rows.varied);
    let mut table = empty(rows, &shown);
    let mut shares = String::new();
    for aggregate in aggregates {
        let point = &experiment.points[aggregate.point];
        let values = point.varied.iter().map(|(_, value)| value.clone());
        let n = if aggregate.incomplete {
            format!("{} of {}", aggregate.n, point.plan.run.runs)
        } else {
            aggregate.n.to_string()
        };
        let cells = shown.iter().map(|column| column.cell(aggregate));
        if let Some(line) = aggregate.shares_line() {
            let values: Vec<&str> = point.varied.iter().map(|(_, value)| &**value).collect();
            let place = match &*values {
                [] => String::new(),
                values => format!("{}: ", values.join(", ")),
            };
            shares.extend([&*place, &*line, "\n"]);
        }
        let seeds = rows.has_seeds.then(|| seeds(&point.plan.run));
        table.row(values.chain(seeds).chain([n]).chain(cells));
    }
    let table = table.chosen(columns)?;
    super::written(write_table(&table, &shares, &graph).context(STDOUT))
}

fn write_table(table: &Listing, shares: &str, graph: &[Listing]) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{table}").context("cannot write the table")?;
    write!(out, "{shares}").context("cannot write the table")?;
    for table in graph {
        writeln!(out, "{table}").context("cannot write the table")?;
    }
    writeln!(
        out,
        "means with 95 % confidence intervals; --columns chooses, --json and --csv have every measure"
    )
    .context("cannot write the table")
}
