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
use fulmar_lab::parts::{is_whole, merge};
use fulmar_lab::{FailedRuns, KeptParts, PartError, Study, SweepPart};
use std::fs;
use std::path::{Path, PathBuf};

/// A sweep is cut into so many parts, so that little is lost when it is killed; but each has several runs for each
/// thread, since a part waits for its slowest, and none has more than [`PART_RUNS_MAX`], which bounds the memory.
const PARTS: usize = 64;
const RUNS_PER_THREAD: usize = 4;
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
    if is_whole(study, out).or_exit(Exit::Usage)? && points_file(out).exists() {
        let shown = out.display();
        eprintln!("fulmar: all {total} runs are in {shown} already; remove it to make them again");
        return Ok(Exit::Done);
    }
    let directory = PathBuf::from(format!("{}.parts", out.display()));
    fs::create_dir_all(&directory)
        .with_context(|| format!("--out: cannot make the directory {}", directory.display()))
        .or_exit(Exit::Device)?;
    let found = || {
        KeptParts::found(study, &build, &directory)
            .with_context(|| format!("--out: cannot read the directory {}", directory.display()))
            .or_exit(Exit::Device)
    };
    let kept = found()?;
    let missing = kept.missing(study, part_runs(total, args.workers.jobs));
    let progress = stoppable(signals);
    let experiment = &study.experiment;
    let there = kept.runs();
    if there > 0 {
        let shown = directory.display();
        eprintln!("fulmar: {there} of {total} runs are in {shown} already");
        let spans = kept.parts.iter().map(|kept| kept.part.runs.clone());
        let costs = spans
            .flat_map(|runs| experiment.span(runs))
            .map(|index| experiment.cost(index.point));
        let cost = costs.fold(0, u64::saturating_add);
        progress.done.store(there, Ordering::Relaxed);
        progress.cost.store(cost, Ordering::Relaxed);
    }
    watch(&Total::runs([experiment]), &progress, || {
        for part in &missing {
            let name = part.content_name(study, &build);
            let file = directory.join(format!("{name}.parquet"));
            match part.write(study, &build, &file, args.workers.jobs, &progress) {
                Err(PartError::Cancelled) => break,
                written => written.or_exit(Exit::Device)?,
            }
        }
        Ok::<(), Failure>(())
    })??;
    let KeptParts { parts, spare } = found()?;
    let over: usize = parts.iter().map(|kept| kept.part.runs.len()).sum();
    let interrupted = |exit| {
        let shown = directory.display();
        eprintln!(
            "fulmar: interrupted; {over} of {total} runs are in {shown}, and the same command goes on"
        );
        Ok(exit)
    };
    if let Some(exit) = signals.exit() {
        return interrupted(exit);
    }
    let files: Vec<PathBuf> = parts.into_iter().map(|kept| kept.file).collect();
    let points = points_file(out);
    let failed = match merge(&files, out, &points, &progress.cancel) {
        Err(PartError::Cancelled) => return interrupted(signals.exit().unwrap_or(Exit::Failed)),
        merged => merged.or_exit(Exit::Device)?,
    };
    for file in files.iter().chain(&spare) {
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
    Ok(told(&failed))
}

/// The runs of a part, of so many in all, on `jobs` threads (0: one for each core).
fn part_runs(total: usize, jobs: usize) -> usize {
    let threads = match jobs {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        jobs => jobs,
    };
    let least = RUNS_PER_THREAD.saturating_mul(threads);
    total.div_ceil(PARTS).max(least).min(PART_RUNS_MAX)
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
    let own = study.experiment.span(part.runs.clone());
    let cost = own.map(|index| study.experiment.cost(index.point));
    let cost = cost.fold(0, u64::saturating_add);
    let count = part.runs.len();
    let total_cost = Total::of("runs", count as u64, cost);
    let written = watch(&total_cost, &progress, || {
        part.write(study, build, out, args.workers.jobs, &progress)
    })?;
    if let Err(PartError::Cancelled) = written {
        eprintln!("fulmar: interrupted; nothing was written, since a shard is written as a whole");
        return Ok(signals.exit().unwrap_or(Exit::Failed));
    }
    written.or_exit(Exit::Device)?;
    let shown = out.display();
    eprintln!("fulmar: {count} of {total} runs, shard {number} of {of}, are in {shown}");
    Ok(Exit::Done)
}

/// Says which runs broke a promise, if some did.
pub(crate) fn told(failed: &FailedRuns) -> Exit {
    let Some((point, seed, error)) = &failed.first else {
        return Exit::Done;
    };
    tell_of_failures(failed.count, *point, *seed, error);
    Exit::Failed
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
