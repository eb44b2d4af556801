//! `--out FILE.parquet` and `--shard K/N`: a sweep's runs as a Parquet file, made in parts.
//!
//! The parts lie in `FILE.parquet.parts` until the last one is there. A killed sweep goes on from them; then they
//! are put together and removed.

use super::super::watch::{Total, stoppable, watch};
use super::{SimArgs, tell_of_failures};
use crate::exit::{Exit, Failure, OrExit};
use crate::signals::Signals;
use anyhow::{Context, anyhow};
use core::str::FromStr;
use core::sync::atomic::Ordering;
use fulmar_lab::parts::merge;
use fulmar_lab::{Study, SweepPart};
use fulmar_sim::RunRecord;
use std::fs;
use std::path::{Path, PathBuf};

/// A sweep is cut into so many parts, so that little is lost when it is killed; no part has more runs than
/// [`PART_RUNS_MAX`], which bounds the memory.
const PARTS: usize = 64;
const PART_RUNS_MAX: usize = 4_096;

/// Shard `number` of `of`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shard {
    number: usize,
    of: usize,
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("`{text}` is no shard; write one of 1/16 to 16/16 for the sixteen shards");
        let (number, of) = text.split_once('/').ok_or_else(wrong)?;
        let number = number.parse().map_err(|_| wrong())?;
        let of = of.parse().map_err(|_| wrong())?;
        (1..=of)
            .contains(&number)
            .then_some(Self { number, of })
            .ok_or_else(wrong)
    }
}

/// Whether the name is that of a Parquet file.
pub(super) fn is_named(out: &Path) -> bool {
    out.extension()
        .is_some_and(|extension| extension == "parquet")
}

/// The file of points beside a file of runs.
pub(crate) fn points_file(runs: &Path) -> PathBuf {
    let stem = runs.file_stem().unwrap_or_default().to_string_lossy();
    runs.with_file_name(format!("{stem}-points.parquet"))
}

/// Makes the sweep's parts that are missing, or one shard, and the file of all runs.
pub(super) fn sweep(
    out: &Path,
    study: &Study,
    args: &SimArgs,
    signals: &Signals,
) -> Result<Exit, Failure> {
    let build = super::store::build().or_exit(Exit::Device)?;
    if let Some(shard) = args.shard {
        return make_shard(out, study, shard, &build, args, signals);
    }
    let total = study.experiment.run_count();
    let parts = SweepPart::all(study, total.div_ceil(PARTS).clamp(1, PART_RUNS_MAX));
    let directory = PathBuf::from(format!("{}.parts", out.display()));
    fs::create_dir_all(&directory)
        .with_context(|| format!("--out: cannot make the directory {}", directory.display()))
        .or_exit(Exit::Device)?;
    let file = |part: &SweepPart| {
        let name = part.content_name(study, &build);
        directory.join(format!("{name}.parquet"))
    };
    let is_there = |part: &&SweepPart| SweepPart::found(study, &build, &file(part)).is_some();
    let progress = stoppable(signals);
    let experiment = &study.experiment;
    let there: usize = parts
        .iter()
        .filter(is_there)
        .map(|part| part.runs.len())
        .sum();
    if there > 0 {
        let shown = directory.display();
        eprintln!("fulmar: {there} of {total} runs are in {shown} already");
    }
    let mut failed = Failed::default();
    watch(&Total::runs([experiment]), &progress, || {
        for part in &parts {
            if is_there(&part) {
                let runs = experiment
                    .indices()
                    .skip(part.runs.start)
                    .take(part.runs.len());
                for index in runs {
                    progress.done.fetch_add(1, Ordering::Relaxed);
                    let cost = experiment.cost(index.point);
                    progress.cost.fetch_add(cost, Ordering::Relaxed);
                }
                continue;
            }
            let made = part.make(study, args.workers.jobs, &progress);
            let Some(runs) = made.or_exit(Exit::Device)? else {
                break;
            };
            failed.take(&runs);
            part.write(study, &build, &runs, &file(part))
                .or_exit(Exit::Device)?;
        }
        Ok::<(), Failure>(())
    })??;
    if let Some(exit) = signals.exit() {
        let over: usize = parts
            .iter()
            .filter(is_there)
            .map(|part| part.runs.len())
            .sum();
        let shown = directory.display();
        eprintln!(
            "fulmar: interrupted; {over} of {total} runs are in {shown}, and the same command goes on"
        );
        return Ok(exit);
    }
    let files: Vec<PathBuf> = parts.iter().map(file).collect();
    let points = points_file(out);
    merge(&files, out, &points).or_exit(Exit::Device)?;
    for file in &files {
        fs::remove_file(file)
            .with_context(|| format!("--out: cannot remove {}", file.display()))
            .or_exit(Exit::Device)?;
    }
    // Parts of another scenario or build may lie there; they are the user's.
    let _ = fs::remove_dir(&directory);
    eprintln!(
        "fulmar: {total} runs are in {}, their means in {}",
        out.display(),
        points.display()
    );
    Ok(failed.told())
}

fn make_shard(
    out: &Path,
    study: &Study,
    shard: Shard,
    build: &str,
    args: &SimArgs,
    signals: &Signals,
) -> Result<Exit, Failure> {
    let Shard { number, of } = shard;
    let total = study.experiment.run_count();
    if of > total {
        let problem = format!(
            "--shard {number}/{of}: there are only {total} runs; take as many shards at most"
        );
        return Err(anyhow!(problem)).or_exit(Exit::Usage);
    }
    let part = SweepPart::shard(study, number, of);
    let progress = stoppable(signals);
    let indices = study.experiment.indices();
    let own = indices.skip(part.runs.start).take(part.runs.len());
    let cost = own.map(|index| study.experiment.cost(index.point));
    let cost = cost.fold(0, u64::saturating_add);
    let made = watch(
        &Total::of("runs", part.runs.len() as u64, cost),
        &progress,
        || part.make(study, args.workers.jobs, &progress),
    )?;
    let Some(runs) = made.or_exit(Exit::Device)? else {
        eprintln!("fulmar: interrupted; nothing was written, since a shard is written as a whole");
        return Ok(signals.exit().unwrap_or(Exit::Failed));
    };
    part.write(study, build, &runs, out).or_exit(Exit::Device)?;
    let count = runs.len();
    eprintln!(
        "fulmar: {count} of {total} runs, shard {number} of {of}, are in {}",
        out.display()
    );
    let mut failed = Failed::default();
    failed.take(&runs);
    Ok(failed.told())
}

/// The runs that broke a promise.
#[derive(Debug, Default)]
struct Failed {
    count: usize,
    first: Option<(usize, u64, String)>,
}

impl Failed {
    fn take(&mut self, runs: &[RunRecord]) {
        for run in runs {
            if let Some(error) = &run.error {
                self.count += 1;
                let first = || (run.point, run.seed, error.clone());
                self.first.get_or_insert_with(first);
            }
        }
    }

    fn told(&self) -> Exit {
        let Some((point, seed, error)) = &self.first else {
            return Exit::Done;
        };
        tell_of_failures(self.count, *point, *seed, error);
        Exit::Failed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shard_is_one_of_its_number() {
        assert_eq!("3/16".parse(), Ok(Shard { number: 3, of: 16 }));
        for wrong in ["0/4", "5/4", "3", "a/b", "1/0", "/"] {
            let error = wrong.parse::<Shard>().expect_err("refused");
            assert!(error.contains("1/16 to 16/16"), "{error}");
        }
    }

    #[test]
    fn points_lie_beside_their_runs() {
        assert_eq!(
            points_file(Path::new("a/x.parquet")),
            Path::new("a/x-points.parquet")
        );
    }
}
