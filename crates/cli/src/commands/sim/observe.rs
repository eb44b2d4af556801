//! `fulmar sim --capture`, `--trace` and `--flow-figure`: one run, shown to files.

use super::SimArgs;
use crate::commands::overwrite;
use crate::commands::watch::{Total, stoppable, watch};
use crate::exit::{Exit, Failure, OrExit};
use crate::signals::Signals;
use anyhow::{Context, anyhow};
use fulmar_sim::experiment::{Experiment, PointResult};
use fulmar_sim::{Observed, Observers, Output};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// A file whose errors name it.
struct Named {
    path: PathBuf,
    file: BufWriter<File>,
}

impl Named {
    fn named(&self, error: &io::Error) -> io::Error {
        io::Error::new(
            error.kind(),
            format!("writing {}: {error}", self.path.display()),
        )
    }
}

impl Write for Named {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        let written = self.file.write(octets);
        written.map_err(|error| self.named(&error))
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.file.flush();
        flushed.map_err(|error| self.named(&error))
    }
}

/// Whether a capture, a trace or a figure of a flow is asked for.
pub(super) fn is_wanted(args: &SimArgs) -> bool {
    args.capture.is_some() || args.trace.is_some() || args.figure.file.is_some()
}

/// Refuses recordings that cannot be made, before anything is read or overwritten.
///
/// # Errors
/// A file is the scenario, or both are one, or stdout.
pub(super) fn check(args: &SimArgs) -> Result<(), Failure> {
    let files = [
        ("--csv", &args.csv),
        ("--capture", &args.capture),
        ("--trace", &args.trace),
        ("--draw", &args.draw),
        ("--flow-figure", &args.figure.file),
    ];
    for (flag, file) in &files[1..] {
        let Some(file) = file else { continue };
        if file == Path::new("-") {
            let problem = format!("{flag} -: stdout has the results; name a file");
            return Err(anyhow!(problem)).or_exit(Exit::Usage);
        }
        if let Some(scenario) = &args.scenario {
            overwrite::refuse(flag, file, scenario)?;
        }
    }
    for (n, (flag, file)) in files.iter().enumerate() {
        for (other, before) in &files[..n] {
            if let (Some(file), Some(before)) = (file, before)
                && place(file) == place(before)
            {
                let problem = format!("{flag} names the file of {other}; name another");
                return Err(anyhow!(problem)).or_exit(Exit::Usage);
            }
        }
    }
    Ok(())
}

/// The place of a file that exists or will, by one name.
fn place(file: &Path) -> PathBuf {
    let directory = file
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let directory = directory.unwrap_or(Path::new(".")).canonicalize();
    match (file.canonicalize(), directory, file.file_name()) {
        (Ok(place), ..) => place,
        (_, Ok(directory), Some(name)) => directory.join(name),
        _ => file.to_owned(),
    }
}

/// Refuses more than one run, and says how to choose.
fn refuse_several(experiment: &Experiment) -> Result<(), Failure> {
    let (points, runs) = (experiment.points.len(), experiment.run_count());
    if runs == 1 {
        return Ok(());
    }
    let mut ways = Vec::new();
    if runs > points {
        ways.push("--runs 1, with --seed N for another than the first".to_owned());
    }
    let axes = axes(experiment);
    if !axes.is_empty() {
        ways.push(format!(
            "one value for each axis, such as {}",
            axes.join(" ")
        ));
    }
    let problem = format!(
        "--capture, --trace and --flow-figure show one run, and this scenario has {runs} ({points} points); \
         choose one: {}",
        ways.join("; and ")
    );
    Err(anyhow!(problem)).or_exit(Exit::Usage)
}

/// The settings that fix each axis of the sweep at its first value.
fn axes(experiment: &Experiment) -> Vec<String> {
    let first = experiment.points.first();
    let varied = first.map_or(&[][..], |point| &point.varied).iter();
    let varied = varied.filter(|(path, value)| {
        let mut points = experiment.points.iter();
        points.any(|point| {
            let mut others = point.varied.iter();
            others.any(|(other, there)| other == path && there != value)
        })
    });
    varied
        .map(|(path, value)| format!("--set 'sweep.{path}=[{value}]'"))
        .collect()
}

fn open(path: Option<&PathBuf>) -> Result<Option<Output>, Failure> {
    let Some(path) = path else {
        return Ok(None);
    };
    let file = File::create(path)
        .with_context(|| format!("cannot write {}", path.display()))
        .or_exit(Exit::Device)?;
    Ok(Some(Box::new(Named {
        path: path.clone(),
        file: BufWriter::new(file),
    })))
}

/// Makes the run and writes the files. Results are there even if a file could not be written.
///
/// # Errors
/// The scenario has several runs, or a file cannot be made.
pub(super) fn compute(
    args: &SimArgs,
    experiment: &Experiment,
    signals: &Signals,
) -> Result<(Vec<PointResult>, Result<(), Failure>), Failure> {
    refuse_several(experiment)?;
    let observers = Observers::new(open(args.capture.as_ref())?, open(args.trace.as_ref())?);
    let observers = observers.with_flow(args.figure.window());
    let progress = stoppable(signals);
    let total = Total::runs([experiment]);
    let (result, observed) = watch(&total, &progress, || {
        experiment.run_observed(observers, &progress)
    })?;
    let results = result.into_iter().collect();
    let told = observed.or_exit(Exit::Device).and_then(|observed| {
        tell(args, &observed);
        args.figure.draw(experiment, observed.flow.as_ref())
    });
    Ok((results, told))
}

/// Reports the contents of the files.
fn tell(args: &SimArgs, observed: &Observed) {
    if let Some(file) = &args.capture {
        eprintln!(
            "fulmar: {} packets are in {}",
            observed.packets,
            file.display()
        );
    }
    if let Some(file) = &args.trace {
        let lines = observed.lines;
        eprintln!("fulmar: {lines} events are in {}", file.display());
        // The first and the last.
        if lines <= 2 {
            eprintln!("fulmar: only flows with transport = \"aerotp\" tell of events");
        }
    }
}
