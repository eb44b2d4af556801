//! `fulmar sim SCENARIO`: a scenario in virtual time.

mod swarm;

use crate::exit::{Exit, Failure, OrExit};
use crate::signals::Signals;
use anyhow::Context;
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use core::sync::atomic::Ordering;
use fulmar_sim::experiment::{Experiment, PointResult, Progress};
use fulmar_sim::report::csv;
use fulmar_sim::report::record::COLUMNS;
use fulmar_sim::scenario::{Document, points};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  fulmar sim scenarios/airborne.toml --set hop.ber=1e-4 --runs 25
      25 runs with one bit in 10,000 inverted: a table of means with 95 % intervals
  fulmar sim scenarios/airborne.toml --set 'sweep.hop.loss=[0%,10%,30%]' --csv loss.csv
      a row for each run and one for each rate of loss
  fulmar sim scenarios/setup.toml --json | jq 'select(.record == \"aggregate\") | .first_arrival_s'
      one measure out of the records
  fulmar sim --swarm 10000 --seed 1
      random sessions under random faults; one that breaks a promise is printed as a command

Ctrl-C prints the runs that were over. Scenarios and records: docs/guide/simulator.md.
";

/// What could not be written.
const STDOUT: &str = "writing to standard output";

/// The arguments of `fulmar sim`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES, after_long_help = EXAMPLES)]
pub(crate) struct SimArgs {
    /// The scenario, a TOML file; `-` is stdin.
    #[arg(required_unless_present = "swarm")]
    scenario: Option<PathBuf>,
    /// Instead of a scenario, run N random sessions of AeroTP and of gateways under random faults and
    /// check that nothing is lost, doubled or altered and that all ends. --seed is the first one's.
    #[arg(long, value_name = "N", conflicts_with_all = ["scenario", "sets", "runs", "csv"])]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    swarm: Option<u64>,
    /// With --swarm 1: print the scenario of AeroTP that the seed draws, and run nothing.
    #[arg(long, conflicts_with_all = ["json", "scenario"])]
    show: bool,
    /// Change a value before the run, such as hop.ber=1e-4, flow.bytes=20MB or
    /// sweep.hop.loss=[0%,10%].
    #[arg(long = "set", value_name = "PATH=VALUE")]
    sets: Vec<String>,
    /// Runs for each point.
    #[arg(long, value_name = "N")]
    runs: Option<usize>,
    /// The first run's seed; the others follow by one.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Worker threads; 0 takes every core. Results do not depend on it.
    #[arg(long, value_name = "N", default_value_t = 0)]
    jobs: usize,
    /// Print records, one JSON object a line, instead of text.
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Write rows of comma-separated values to a file; `-` is stdout.
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
}

/// Runs the scenario and prints its results.
///
/// # Errors
/// The scenario cannot be read or run, or the results cannot be written.
pub(crate) fn run(args: &SimArgs) -> Result<Exit, Failure> {
    if let Some(count) = args.swarm {
        return swarm::run(count, args);
    }
    let experiment = read(args)?;
    let signals = Signals::catch(&[])?;
    let results = compute(&experiment, args.jobs, &signals)?;
    let varied = varied(&experiment);
    let interrupted = signals.exit();
    if interrupted.is_some() {
        let over: usize = results.iter().map(|point| point.runs.len()).sum();
        let planned = experiment.run_count();
        eprintln!("fulmar: interrupted; {over} of {planned} runs were over and are reported");
    }
    if results.is_empty() {
        // Nothing to show, and no earlier file worth overwriting with it.
    } else if args.json {
        written(write_json(&results).context(STDOUT))?;
    } else if let Some(file) = &args.csv {
        written(write_csv(file, &results, &varied))?;
    } else {
        written(print_table(&experiment, &results, &varied).context(STDOUT))?;
    }
    let failed: Vec<_> = results
        .iter()
        .flat_map(|point| &point.runs)
        .filter_map(|run| Some((run, run.error.as_ref()?)))
        .collect();
    if let Some((run, error)) = failed.first() {
        eprintln!(
            "fulmar: {} of the runs broke a promise; the first at point {}, seed {}: {error}",
            failed.len(),
            run.point,
            run.seed
        );
        return Ok(interrupted.unwrap_or(Exit::Failed));
    }
    Ok(interrupted.unwrap_or(Exit::Done))
}

/// A reader that has seen enough (`| head`) is no failure.
fn written(outcome: anyhow::Result<()>) -> Result<(), Failure> {
    let broken_pipe = |error: &anyhow::Error| {
        error.chain().any(|cause| {
            let io = cause
                .downcast_ref::<std::io::Error>()
                .map(std::io::Error::kind);
            let json = cause.downcast_ref::<serde_json::Error>();
            io.or_else(|| json?.io_error_kind()) == Some(std::io::ErrorKind::BrokenPipe)
        })
    };
    match outcome {
        Err(error) if broken_pipe(&error) => Ok(()),
        outcome => outcome.or_exit(Exit::Device),
    }
}

fn read(args: &SimArgs) -> Result<Experiment, Failure> {
    let path = args.scenario.as_deref().unwrap_or(Path::new("-"));
    let name = path.display().to_string();
    let text = if path == Path::new("-") {
        std::io::read_to_string(std::io::stdin())
    } else {
        std::fs::read_to_string(path)
    }
    .with_context(|| format!("cannot read the scenario {name}"))
    .or_exit(Exit::Usage)?;
    let mut document = Document::parse(&name, &text).or_exit(Exit::Usage)?;
    for set in &args.sets {
        document.set(set).or_exit(Exit::Usage)?;
    }
    for (path, value) in [
        ("run.runs", args.runs.map(|n| n as u64)),
        ("run.seed", args.seed),
    ] {
        if let Some(value) = value {
            document
                .set(&format!("{path}={value}"))
                .or_exit(Exit::Usage)?;
        }
    }
    Ok(Experiment {
        points: points(&document).or_exit(Exit::Usage)?,
        scenario: name,
        options: fulmar_sim::world::WorldOptions::default(),
    })
}

/// Runs the experiment with a progress bar: all of it, or what was over when a signal came.
fn compute(
    experiment: &Experiment,
    jobs: usize,
    signals: &Signals,
) -> Result<Vec<PointResult>, Failure> {
    let total = experiment.run_count() as u64;
    let progress = stoppable(signals);
    watch(total, "runs", &progress, || experiment.run(jobs, &progress))?.or_exit(Exit::Device)
}

/// Progress that a signal cancels.
fn stoppable(signals: &Signals) -> Progress {
    Progress {
        cancel: signals.stop().flag(),
        ..Progress::default()
    }
}

/// Runs `work` beside a progress bar.
fn watch<T: Send>(
    total: u64,
    what: &str,
    progress: &Progress,
    work: impl FnOnce() -> T + Send,
) -> Result<T, Failure> {
    let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
    let template = format!("{{bar:30}} {{pos}}/{{len}} {what}, {{eta}} left");
    let style = ProgressStyle::with_template(&template);
    bar.set_style(style.context("the progress bar's template is malformed")?);
    let outcome = std::thread::scope(|scope| {
        let watcher = std::thread::current();
        let worker = scope.spawn(move || {
            let result = work();
            watcher.unpark();
            result
        });
        while !worker.is_finished() {
            bar.set_position(progress.done.load(Ordering::Relaxed) as u64);
            // Only the picture waits here; the end of the work wakes it.
            std::thread::park_timeout(Duration::from_millis(50));
        }
        worker.join()
    });
    bar.finish_and_clear();
    outcome.map_err(|panic| std::panic::resume_unwind(panic))
}

/// The swept paths, in the order of the sweep.
fn varied(experiment: &Experiment) -> Vec<String> {
    experiment
        .points
        .first()
        .map(|point| point.varied.iter().map(|(path, _)| path.clone()).collect())
        .unwrap_or_default()
}

fn write_json(results: &[PointResult]) -> anyhow::Result<()> {
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

fn write_csv(file: &Path, results: &[PointResult], varied: &[String]) -> anyhow::Result<()> {
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

/// One row for each point: what varies, and the main measures with their intervals.
fn print_table(
    experiment: &Experiment,
    results: &[PointResult],
    varied: &[String],
) -> anyhow::Result<()> {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED);
    if std::io::stdout().is_terminal() {
        table.set_content_arrangement(ContentArrangement::Dynamic);
    }
    let headings = COLUMNS.iter().map(|column| column.heading.to_owned());
    table.set_header(
        varied
            .iter()
            .cloned()
            .chain(["n".to_owned()])
            .chain(headings),
    );
    for PointResult { aggregate, .. } in results {
        let point = &experiment.points[aggregate.point];
        let values = point.varied.iter().map(|(_, value)| value.clone());
        let n = if aggregate.incomplete {
            format!("{} of {}", aggregate.n, point.plan.run.runs)
        } else {
            aggregate.n.to_string()
        };
        let cells = COLUMNS.iter().map(|column| column.cell(aggregate));
        table.add_row(values.chain([n]).chain(cells));
    }
    for column in table.column_iter_mut().skip(varied.len()) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let mut out = std::io::stdout().lock();
    writeln!(out, "{table}").context("cannot write the table")?;
    writeln!(
        out,
        "means with 95 % confidence intervals; --json and --csv have every measure"
    )
    .context("cannot write the table")
}
