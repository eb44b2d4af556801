//! `fulmar sim SCENARIO`: a scenario in virtual time.

mod beside;
mod figure;
mod graph;
mod observe;
pub(crate) mod parquet;
mod print;
mod store;
mod swarm;

use super::overwrite;
use super::watch::{Total, stoppable, watch};
use crate::exit::{Exit, Failure, OrExit};
use crate::signals::Signals;
use crate::table::Columns;
use crate::workers::Workers;
use anyhow::Context;
use core::sync::atomic::Ordering;
use fulmar_lab::Study;
use fulmar_sim::experiment::{Experiment, PointResult};
use fulmar_sim::report::record::RunRecord;
use fulmar_sim::scenario::{Document, NAMED_BY, Origin, RECORDS_MAX, RUNS_MAX, SettingsError};
use print::RowNames;
use std::io::Read;
use std::path::{Path, PathBuf};
use store::Store;

const EXAMPLES: &str = "\
Examples:
  fulmar sim scenarios/airborne.toml --set hop.ber=1e-4 --runs 25
      25 runs with one bit in 10,000 inverted: a table of means with 95 % intervals
  fulmar sim scenarios/airborne.toml --set 'sweep.hop.loss=[0%,10%,30%]' --csv loss.csv
      a row for each run and one for each rate of loss
  fulmar sim scenarios/setup.toml --json | jq 'select(.record == \"aggregate\") | .first_arrival_s'
      one measure out of the records
  fulmar sim scenarios/airborne.toml --set 'sweep.hop.ber=[0,1e-5,1e-4]' --runs 1000 --out sweep/
      runs.ndjson and runs.csv in a directory; killed, the same command goes on where it was
  fulmar sim scenarios/airborne.toml --set 'sweep.hop.ber=[0,1e-5,1e-4]' --runs 1000 --out sweep.parquet
      the same as one table with units, for pandas, Polars or DuckDB
  fulmar sim scenarios/airborne.toml --runs 1000 --shard 3/16 --out part-3.parquet
      a sixteenth of the runs, on one of sixteen machines; then fulmar merge part-*.parquet --out all.parquet
  fulmar sim scenarios/airborne.toml --runs 1 --capture run.pcapng --trace run.jsonl
      every packet of one run for Wireshark, with what became of it, and what AeroTP noted
  fulmar sim scenarios/two-paths.toml --draw two-paths.svg
      its nodes, hops and flows as a picture
  fulmar sim scenarios/airborne.toml --runs 1 --set hop.loss=10% --flow-figure flow.svg
      the packets of a flow between its ends as a figure, with what became of each
  fulmar sim --swarm 10000 --seed 1
      random sessions under random faults; one that breaks a promise is printed as a command
  fulmar sim --swarm 10000 --links
      those of link layers alone, 10,000 of each
  fulmar sim scenarios/messages.toml --auto-vs-fixed
      how far the scenario's mode = \"auto\" is from the best fixed setting in hindsight
  fulmar sim --auto-vs-fixed --random 500
      the same for random links, goals and changes on the way

Ctrl-C prints the runs that were over. Scenarios and records: docs/guide/simulator.md; captures: docs/guide/captures.md.
";

/// The longest scenario that is read: ten thousand flows with every key are a tenth of this.
const SCENARIO_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// The name of the action in errors about stdout.
const STDOUT: &str = "writing to standard output";

/// The arguments of `fulmar sim`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES, after_long_help = EXAMPLES)]
pub(crate) struct SimArgs {
    /// The scenario, a TOML file; `-` is stdin.
    #[arg(required_unless_present_any = ["swarm", "random", "settings"])]
    scenario: Option<PathBuf>,
    /// Instead of a scenario, run N random sessions each of AeroTP, of LT-TCP, of TCP, of every link layer and of gateways under random
    /// faults and check that nothing is lost, doubled or altered and that all ends. --seed is the first one's.
    #[arg(long, value_name = "N", conflicts_with_all = ["scenario", "sets", "runs", "csv"])]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    swarm: Option<u64>,
    /// With --swarm: of the sessions only those of link layers, N of each, counted layer by layer.
    #[arg(long, requires = "swarm", conflicts_with_all = ["show", "scenario"])]
    links: bool,
    /// With --swarm 1 or --random 1: print the scenario of AeroTP that the seed draws, and run nothing.
    #[arg(long, conflicts_with_all = ["json", "scenario"])]
    show: bool,
    #[command(flatten)]
    beside: beside::BesideArgs,
    /// Change a value before the run, such as hop.ber=1e-4, flow.bytes=20MB or
    /// sweep.hop.loss=[0%,10%].
    #[arg(long = "set", value_name = "PATH=VALUE")]
    sets: Vec<String>,
    /// Runs for each point.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=RUNS_MAX))]
    runs: Option<u64>,
    /// The first run's seed; the others follow by one.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    #[command(flatten)]
    workers: Workers,
    /// Print records, one JSON object a line, instead of text.
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    #[command(flatten)]
    columns: Columns,
    /// Write rows of comma-separated values to a file; `-` is stdout.
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Keep every run in this directory as soon as it is over, and go on from what is there: records
    /// in runs.ndjson, a table in runs.csv. With a name that ends in .parquet: one Parquet file of all runs, and one of
    /// points beside it.
    #[arg(long, value_name = "DIR|FILE.parquet", conflicts_with_all = ["json", "csv", "swarm"])]
    out: Option<PathBuf>,
    /// Make only shard K of N, of 1 to N, into --out FILE.parquet; `fulmar merge` puts all N together.
    #[arg(long, value_name = "K/N", requires = "out", conflicts_with_all = ["capture", "trace", "flow_figure"])]
    shard: Option<parquet::Shard>,
    /// Write every packet of the one run there is to a pcapng file for Wireshark, with what became of
    /// it as a comment.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["swarm", "out"])]
    capture: Option<PathBuf>,
    /// Draw the nodes, hops and flows of the scenario's first point into an SVG file, and run nothing.
    #[arg(long, value_name = "FILE.svg", conflicts_with_all = ["swarm", "out", "csv", "json", "capture", "trace", "flow_figure", "auto_vs_fixed"])]
    draw: Option<PathBuf>,
    /// Write the events of AeroTP's machines in the one run there is to a file, one JSON object a line.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["swarm", "out"])]
    trace: Option<PathBuf>,
    #[command(flatten)]
    figure: figure::FigureArgs,
    /// The scenario itself, of the recording that `scenario` names.
    #[arg(skip)]
    text: Option<String>,
}

/// The scenario of a recording, and what is asked of it.
#[derive(Debug)]
pub(crate) struct RecordedScenario {
    /// The recording.
    pub(crate) recording: PathBuf,
    /// The scenario, TOML.
    pub(crate) text: String,
    /// Changed values.
    pub(crate) sets: Vec<String>,
    /// Whether `auto` is put beside every fixed setting.
    pub(crate) auto_vs_fixed: bool,
    pub(crate) runs: Option<u64>,
    pub(crate) seed: Option<u64>,
    pub(crate) workers: Workers,
    pub(crate) json: bool,
    pub(crate) columns: Columns,
    pub(crate) csv: Option<PathBuf>,
}

/// Runs the scenario of a recording and prints its results.
///
/// # Errors
/// As [`run`].
pub(crate) fn run_recorded(scenario: RecordedScenario) -> Result<Exit, Failure> {
    run(&SimArgs {
        scenario: Some(scenario.recording),
        swarm: None,
        links: false,
        show: false,
        beside: beside::BesideArgs {
            auto_vs_fixed: scenario.auto_vs_fixed,
            random: None,
            settings: false,
        },
        sets: scenario.sets,
        runs: scenario.runs,
        seed: scenario.seed,
        workers: scenario.workers,
        json: scenario.json,
        columns: scenario.columns,
        csv: scenario.csv,
        out: None,
        shard: None,
        capture: None,
        trace: None,
        draw: None,
        figure: figure::FigureArgs::default(),
        text: Some(scenario.text),
    })
}

/// Runs the scenario and prints its results.
///
/// # Errors
/// The scenario cannot be read or run, or the results cannot be written.
pub(crate) fn run(args: &SimArgs) -> Result<Exit, Failure> {
    if let Some(count) = args.swarm {
        return swarm::run(count, args);
    }
    if args.beside.settings {
        return beside::list();
    }
    if let Some(count) = args.beside.random {
        return beside::random(count, args);
    }
    if let (Some(file), Some(scenario)) = (&args.csv, &args.scenario) {
        overwrite::refuse("--csv", file, scenario)?;
    }
    if args.beside.auto_vs_fixed {
        return beside::one(args);
    }
    observe::check(args)?;
    let study = read(args)?;
    if let Some(file) = &args.draw {
        return draw(file, &study);
    }
    args.figure.check(&study)?;
    let (experiment, varied) = (&study.experiment, study.varied());
    let rows = RowNames {
        varied: &varied,
        has_seeds: args.text.is_some(),
    };
    print::check_columns(rows, &args.columns)?;
    let signals = Signals::catch(&[])?;
    if let Some(out) = &args.out {
        return if parquet::is_named(out) {
            parquet::sweep(out, &study, args, &signals)
        } else if args.shard.is_some() {
            let problem = "--shard: a shard is one file; name it --out FILE.parquet";
            Err(anyhow::anyhow!(problem)).or_exit(Exit::Usage)
        } else {
            sweep(out, &study, args, &signals)
        };
    }
    let (results, shown) = if observe::is_wanted(args) {
        observe::compute(args, experiment, &signals)?
    } else {
        (compute(experiment, args.workers.jobs, &signals)?, Ok(()))
    };
    let interrupted = signals.exit();
    if interrupted.is_some() {
        let over: usize = results.iter().map(|point| point.runs.len()).sum();
        let planned = experiment.run_count();
        if over == 0 {
            eprintln!(
                "fulmar: interrupted; none of {planned} runs was over: there is nothing to show"
            );
        } else {
            eprintln!("fulmar: interrupted; {over} of {planned} runs were over and are reported");
        }
    }
    if results.is_empty() {
        // Nothing to show, and no earlier file worth overwriting with it.
    } else if args.json {
        written(print::json(&results).context(STDOUT))?;
    } else if let Some(file) = &args.csv {
        written(print::csv_file(file, &results, &varied))?;
    } else {
        let aggregates = results.iter().map(|point| &point.aggregate);
        print::table(experiment, aggregates, rows, &args.columns)?;
    }
    shown?;
    let failed: Vec<_> = results
        .iter()
        .flat_map(|point| &point.runs)
        .filter_map(|run| Some((run, run.error.as_ref()?)))
        .collect();
    if let Some((run, error)) = failed.first() {
        tell_of_failures(failed.len(), run.point, run.seed, error);
        return Ok(interrupted.unwrap_or(Exit::Failed));
    }
    Ok(interrupted.unwrap_or(Exit::Done))
}

/// Draws the scenario's first point into a file.
fn draw(file: &Path, study: &Study) -> Result<Exit, Failure> {
    let Some(first) = study.points().first() else {
        return Ok(Exit::Done);
    };
    std::fs::write(file, fulmar_lab::drawing::draw(&first.plan))
        .with_context(|| format!("--draw: cannot write {}", file.display()))
        .or_exit(Exit::Device)?;
    eprintln!("fulmar: the scenario is drawn in {}", file.display());
    Ok(Exit::Done)
}

fn tell_of_failures(count: usize, point: usize, seed: u64, error: &str) {
    eprintln!(
        "fulmar: {count} of the runs failed; the first at point {point}, seed {seed}: {error}"
    );
}

/// Makes the runs that `directory` does not have yet, and puts all in order when none is missing.
fn sweep(
    directory: &Path,
    study: &Study,
    args: &SimArgs,
    signals: &Signals,
) -> Result<Exit, Failure> {
    let experiment = &study.experiment;
    let jobs = args.workers.jobs;
    let store = Store::open(directory, experiment, &study.digest)?;
    let shown = directory.display();
    let (planned, found) = (experiment.run_count(), store.count());
    if found > 0 {
        eprintln!("fulmar: {found} of {planned} runs are in {shown} already");
    }
    if found < planned {
        let progress = stoppable(signals);
        let missing = store.missing();
        let there = experiment.indices().filter(|index| !missing(*index));
        let cost = there.map(|index| experiment.cost(index.point));
        let cost = cost.fold(0, u64::saturating_add);
        progress.done.store(found, Ordering::Relaxed);
        progress.cost.store(cost, Ordering::Relaxed);
        let keep = |record: &RunRecord| store.keep(record);
        watch(&Total::runs([experiment]), &progress, || {
            experiment.run_wanted(jobs, &progress, missing, keep)
        })?
        .or_exit(Exit::Device)?
        .or_exit(Exit::Device)?;
    }
    let over = store.count();
    if over < planned {
        eprintln!(
            "fulmar: interrupted; {over} of {planned} runs are in {shown}, and the same command goes on"
        );
        return Ok(signals.exit().unwrap_or(Exit::Failed));
    }
    let varied = study.varied();
    let finished = store.finish(&varied).or_exit(Exit::Device)?;
    let rows = RowNames {
        varied: &varied,
        has_seeds: false,
    };
    print::table(experiment, &finished.aggregates, rows, &args.columns)?;
    eprintln!("fulmar: {planned} runs and their summaries are in {shown}");
    if let Some((point, seed, error)) = &finished.first_failure {
        tell_of_failures(finished.failed, *point, *seed, error);
        return Ok(Exit::Failed);
    }
    Ok(Exit::Done)
}

/// Accepts a reader that has seen enough (`| head`): that is no failure.
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

fn read(args: &SimArgs) -> Result<Study, Failure> {
    let path = args.scenario.as_deref().unwrap_or(Path::new("-"));
    let name = path.display().to_string();
    let octets = match &args.text {
        Some(text) => text.clone().into_bytes(),
        None => read_octets(path)
            .with_context(|| format!("cannot read the scenario {name}"))
            .or_exit(Exit::Usage)?,
    };
    let text = String::from_utf8(octets).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = before.split(|&octet| octet == b'\n').count();
        let name = name.clone();
        SettingsError::new(
            Origin::File { name, line },
            "",
            "is not UTF-8; a scenario is a text, TOML",
        )
    });
    let text = text.or_exit(Exit::Usage)?;
    let mut document = Document::parse(&name, &text).or_exit(Exit::Usage)?;
    document.named_by = NAMED_BY;
    refuse_said_twice(args)?;
    for set in &args.sets {
        document.set(set).or_exit(Exit::Usage)?;
    }
    for (path, value) in [("run.runs", args.runs), ("run.seed", args.seed)] {
        if let Some(value) = value {
            document
                .set(&format!("{path}={value}"))
                .or_exit(Exit::Usage)?;
        }
    }
    let study = Study::read(path, &document).or_exit(Exit::Usage)?;
    let is_table = args.out.as_deref().is_some_and(parquet::is_named);
    let runs = study.experiment.run_count();
    if runs > RECORDS_MAX && !is_table && args.draw.is_none() {
        let problem = format!(
            "{runs} runs are more than {RECORDS_MAX} records; write a table, --out FILE.parquet, or take fewer"
        );
        let error = SettingsError::new(document.origin_of("run.runs"), "run.runs", problem);
        return Err(error).or_exit(Exit::Usage);
    }
    for input in &study.inputs {
        let outputs = [
            ("--csv", &args.csv),
            ("--capture", &args.capture),
            ("--trace", &args.trace),
            ("--draw", &args.draw),
            ("--flow-figure", &args.figure.file),
        ];
        for (flag, output) in outputs {
            if let Some(output) = output {
                overwrite::refuse(flag, output, input)?;
            }
        }
    }
    Ok(study)
}

/// Refuses a value that is given twice: the last would hold, and the other be ignored without a word.
fn refuse_said_twice(args: &SimArgs) -> Result<(), Failure> {
    let path_of = |set: &str| set.split('=').next().unwrap_or_default().trim().to_owned();
    let flags = [
        ("--runs", "run.runs", args.runs.is_some()),
        ("--seed", "run.seed", args.seed.is_some()),
    ];
    for (index, set) in args.sets.iter().enumerate() {
        let path = path_of(set);
        let earlier = args.sets[..index].iter().find(|set| path_of(set) == path);
        let flag = flags
            .iter()
            .find(|(_, of, given)| *given && *of == path)
            .map(|(flag, ..)| (*flag).to_owned());
        if let Some(other) = earlier.map(|set| format!("--set {set}")).or(flag) {
            let problem = format!("--set {set}: {other} gives `{path}` already; keep one of them");
            return Err(anyhow::anyhow!(problem)).or_exit(Exit::Usage);
        }
    }
    Ok(())
}

/// The octets of a file or of stdin, of bounded length.
fn read_octets(path: &Path) -> anyhow::Result<Vec<u8>> {
    let source: Box<dyn Read> = if path == Path::new("-") {
        Box::new(std::io::stdin())
    } else {
        Box::new(std::fs::File::open(path)?)
    };
    let mut octets = Vec::new();
    source
        .take(SCENARIO_BYTES_MAX + 1)
        .read_to_end(&mut octets)?;
    if octets.len() as u64 > SCENARIO_BYTES_MAX {
        anyhow::bail!("it is longer than {SCENARIO_BYTES_MAX} octets; a scenario is a short text");
    }
    Ok(octets)
}

/// Runs the experiment with a progress bar: all of it, or the runs that were over when a signal came.
fn compute(
    experiment: &Experiment,
    jobs: usize,
    signals: &Signals,
) -> Result<Vec<PointResult>, Failure> {
    let progress = stoppable(signals);
    let total = Total::runs([experiment]);
    watch(&total, &progress, || experiment.run(jobs, &progress))?.or_exit(Exit::Device)
}
