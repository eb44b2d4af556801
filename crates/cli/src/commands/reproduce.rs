//! `fulmar reproduce PAPER`: a paper's figures and claims, run again.

use super::watch::{stoppable, watch};
use crate::exit::{Exit, Failure, OrExit};
use crate::output;
use crate::signals::Signals;
use anyhow::Context;
use fulmar_reproduce::{OutputFile, PAPERS, Paper, Reproduction};
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  fulmar reproduce aerotp-multi-mode --out page/
      page/index.html, claims.json, and a CSV and an SVG of each figure
  fulmar reproduce aerotp-multi-mode --out quick/ --runs 5
      the same with fewer runs for each point: wider intervals

Figures of the papers that are not made yet are told on stderr and on the page.
";

/// The arguments of `fulmar reproduce`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES, after_long_help = EXAMPLES)]
pub(crate) struct ReproduceArgs {
    /// Which paper.
    #[arg(value_parser = paper)]
    paper: &'static Paper,
    /// Where the page goes; the directory is made. Files of the same names are replaced.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Runs for each point, instead of each figure's own number.
    #[arg(long, value_name = "N")]
    runs: Option<usize>,
    /// Worker threads; 0 takes every core. The page does not depend on it.
    #[arg(long, value_name = "N", default_value_t = 0)]
    jobs: usize,
}

fn paper(name: &str) -> Result<&'static Paper, String> {
    let known = PAPERS.iter().find(|paper| paper.name == name);
    known.copied().ok_or_else(|| {
        let names: Vec<&str> = PAPERS.iter().map(|paper| paper.name).collect();
        format!("no such paper; there is {}", names.join(", "))
    })
}

/// Makes the runs and writes the page.
///
/// # Errors
/// The number of runs is out of range, or the files cannot be written.
pub(crate) fn run(args: &ReproduceArgs) -> Result<Exit, Failure> {
    let reproduction = Reproduction::new(args.paper, args.runs).or_exit(Exit::Usage)?;
    // Before the runs: nobody wants to wait for an error that was there from the start.
    std::fs::create_dir_all(&args.out)
        .with_context(|| format!("making the directory {}", args.out.display()))
        .or_exit(Exit::Device)?;
    let signals = Signals::catch(&[])?;
    let progress = stoppable(&signals);
    let experiment = reproduction.experiment();
    let results = watch(experiment.run_count() as u64, "runs", &progress, || {
        experiment.run(args.jobs, &progress)
    })?
    .or_exit(Exit::Device)?;
    if let Some(exit) = signals.exit() {
        eprintln!("fulmar: interrupted; nothing was written");
        return Ok(exit);
    }
    let broken: usize = results.iter().map(|point| point.aggregate.failed).sum();
    let files = reproduction
        .files(results, &command(args))
        .or_exit(Exit::Failed)?;
    for file in &files {
        write(&args.out, file).or_exit(Exit::Device)?;
    }
    for part in args.paper.missing() {
        eprintln!("fulmar: not made yet: {}: {}", part.place, part.what);
    }
    output::line(&args.out.join("index.html").display().to_string())?;
    if broken > 0 {
        eprintln!("fulmar: {broken} of the runs broke a promise");
        return Ok(Exit::Failed);
    }
    Ok(Exit::Done)
}

/// The command as the page tells it: without what its content does not depend on.
fn command(args: &ReproduceArgs) -> String {
    let runs = args.runs.map(|runs| format!(" --runs {runs}"));
    let runs = runs.unwrap_or_default();
    format!("fulmar reproduce {} --out DIR{runs}", args.paper.name)
}

fn write(directory: &Path, file: &OutputFile) -> anyhow::Result<()> {
    let path = directory.join(&file.name);
    std::fs::write(&path, &file.text).with_context(|| format!("writing {}", path.display()))
}
