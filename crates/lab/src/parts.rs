//! Sweeps in parts: spans of runs that are made by any process, each kept as a Parquet file, and put together
//! to the whole.
//!
//! The whole has the same octets however it was cut and whoever made the parts: its rows stand in the order of
//! points and seeds, in groups of fixed size, and what it says of itself depends on the scenario and the version
//! alone. A part is written beside its place and moved there, so a killed process leaves no half of one. It says
//! which sweep and which build of the program it is of: parts of others are refused.

mod file;
mod kept;

use crate::points::PointTable;
use crate::points::{ERROR, POINT, SEED};
use crate::runs::RunTable;
use crate::study::Study;
use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_schema::SchemaRef;
use core::ops::Range;
use core::sync::atomic::{AtomicBool, Ordering};
pub(crate) use file::PARQUET;
use file::{
    About, BATCH_ROWS, Part, batches_of, cannot_read, cannot_write, plain, schema_of, written,
};
use fulmar_sim::{ExperimentError, ExperimentProgress, RunRecord};
pub use kept::{KeptPart, KeptParts};
use parquet::errors::ParquetError;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The version of the tables. A change of meaning or a removed column raises it.
pub const TABLE_SCHEMA: u32 = 1;

/// Some of a study's runs, by their numbers in the order of points and seeds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SweepPart {
    /// The numbers of its runs, from 0.
    pub runs: Range<usize>,
}

/// A part or a whole could not be made, written, read or put together.
#[derive(Debug, thiserror::Error)]
pub enum PartError {
    /// The worker threads could not be started.
    #[error(transparent)]
    Experiment(#[from] ExperimentError),
    /// A file could not be written.
    #[error("cannot write {}: {cause}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The cause.
        cause: ParquetError,
    },
    /// A file could not be read as runs.
    #[error("cannot read {} as runs of a sweep: {}", path.display(), plain(cause))]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        cause: ParquetError,
    },
    /// A file is of another sweep, or of another build of the program.
    #[error("{} is of another {what} than {}; put together parts of one sweep and one build", path.display(), first.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// The file that it was held against.
        first: PathBuf,
        /// The thing that differs.
        what: &'static str,
    },
    /// Runs are in no part, or in two.
    #[error("runs {} to {} of {of} are in {}", runs.start, runs.end - 1, if *doubled { "two parts; leave one out" } else { "no part; make the shard that has them" })]
    Runs {
        /// The numbers of the runs.
        runs: Range<usize>,
        /// The number of runs in all.
        of: usize,
        /// Whether they are there twice.
        doubled: bool,
    },
    /// There is nothing to put together.
    #[error("no parts were named")]
    None,
    /// A file has the results of another sweep.
    #[error("{} has the results of another sweep; name another file, or remove it", path.display())]
    Taken {
        /// The file.
        path: PathBuf,
    },
    /// It was cancelled.
    #[error("cancelled; nothing was written")]
    Cancelled,
}

impl PartError {
    /// The system's error behind it, if it is one of a file.
    pub fn system(&self) -> Option<&io::Error> {
        let (Self::Write { cause, .. } | Self::Read { cause, .. }) = self else {
            return None;
        };
        let ParquetError::External(cause) = cause else {
            return None;
        };
        cause.downcast_ref()
    }
}

impl SweepPart {
    /// Shard `number` of `of`, from 1: every run is in one shard, and their numbers of runs differ by one at most.
    pub fn shard(study: &Study, number: usize, of: usize) -> Self {
        let runs = study.experiment.run_count();
        let (number, of) = (number.clamp(1, of.max(1)), of.max(1));
        // Through u128, since runs times shards may pass the word.
        let bound = |number: usize| {
            let bound = runs as u128 * number as u128 / of as u128;
            usize::try_from(bound).unwrap_or(runs)
        };
        Self {
            runs: bound(number - 1)..bound(number),
        }
    }

    /// The parts of a study, of `count` runs each but for the last.
    pub fn all(study: &Study, count: usize) -> Vec<Self> {
        let runs = study.experiment.run_count();
        let firsts = (0..runs).step_by(count.max(1));
        firsts
            .map(|first| Self {
                runs: first..runs.min(first + count.max(1)),
            })
            .collect()
    }

    /// A name of the part that depends on all that its octets depend on: scenario, runs, and the build.
    pub fn content_name(&self, study: &Study, build: &str) -> String {
        let mut digest = blake3::Hasher::new();
        let about = (TABLE_SCHEMA, &study.digest, build, &self.runs);
        digest.update(format!("{about:?}").as_bytes());
        digest.finalize().to_hex()[..32].to_owned()
    }

    /// Makes the runs of the part on `jobs` threads (0: one for each core); `None` if it was cancelled.
    ///
    /// # Errors
    /// Threads could not be started.
    pub fn make(
        &self,
        study: &Study,
        jobs: usize,
        progress: &ExperimentProgress,
    ) -> Result<Option<Vec<RunRecord>>, ExperimentError> {
        let Range { start, end } = self.runs;
        let made = study
            .experiment
            .run_span(start, end - start, jobs, progress)?;
        Ok((made.len() == self.runs.len()).then_some(made))
    }

    /// Makes the runs of the part and writes them to a file, some thousand at a time. `build` is a digest of the program.
    ///
    /// # Errors
    /// The file cannot be written, threads could not be started, or it was cancelled.
    pub fn write(
        &self,
        study: &Study,
        build: &str,
        path: &Path,
        jobs: usize,
        progress: &ExperimentProgress,
    ) -> Result<(), PartError> {
        let about = About {
            part: Some(Part {
                first: self.runs.start,
                count: self.runs.len(),
                build: build.to_owned(),
            }),
            ..About::of(study)
        };
        let table = RunTable::of(study.points());
        written(path, &about, table.schema(), |file| {
            for start in self.runs.clone().step_by(BATCH_ROWS) {
                let step = Self {
                    runs: start..self.runs.end.min(start + BATCH_ROWS),
                };
                let made = step.make(study, jobs, progress)?;
                let runs = made.ok_or(PartError::Cancelled)?;
                let rows = table.batch(study.points(), &runs);
                let rows = rows.map_err(|cause| cannot_write(path, cause.into()))?;
                file.take(&rows)?;
            }
            Ok(())
        })
    }

    /// The part that a file has, if it is one of this study and this build.
    pub fn found(study: &Study, build: &str, path: &Path) -> Option<Self> {
        Self::of_whole(&About::of(study), build, path)
    }

    /// The part that a file has, if it is one of this whole and this build.
    fn of_whole(whole: &About, build: &str, path: &Path) -> Option<Self> {
        let mut about = About::read(path).ok()?;
        let part = about.part.take()?;
        let end = part.first.checked_add(part.count)?;
        let is_own = *whole == about && part.build == build && end <= whole.runs;
        is_own.then_some(Self {
            runs: part.first..end,
        })
    }
}

/// The runs of a whole that broke a promise.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FailedRuns {
    /// Their number.
    pub count: usize,
    /// Point, seed and promise of the first.
    pub first: Option<(usize, u64, String)>,
}

impl FailedRuns {
    fn take(&mut self, rows: &RecordBatch) {
        let errors = rows.column(ERROR).as_string_opt::<i32>();
        let (Some(errors), Some(points), Some(seeds)) = (
            errors,
            rows.column(POINT).as_primitive_opt::<UInt64Type>(),
            rows.column(SEED).as_primitive_opt::<UInt64Type>(),
        ) else {
            return;
        };
        for (row, error) in errors.iter().enumerate() {
            let Some(error) = error else { continue };
            self.count += 1;
            let point = usize::try_from(points.value(row)).unwrap_or(usize::MAX);
            let first = || (point, seeds.value(row), error.to_owned());
            self.first.get_or_insert_with(first);
        }
    }
}

/// Whether a file is the whole of this study, made by this version.
///
/// # Errors
/// It is something else, which is not to be overwritten.
pub fn is_whole(study: &Study, path: &Path) -> Result<bool, PartError> {
    if !path.exists() {
        return Ok(false);
    }
    let about = About::read(path).map_err(|cause| cannot_read(path, cause))?;
    if about == About::of(study) {
        return Ok(true);
    }
    Err(PartError::Taken {
        path: path.to_owned(),
    })
}

/// Puts parts together to a file of all runs, and makes a file of points of it. The order of the parts does not
/// matter. Setting `cancel` ends it, and nothing is written then.
///
/// # Errors
/// A part cannot be read or is of another sweep, runs are missing or doubled, a file cannot be written, or it was cancelled.
pub fn merge(
    parts: &[PathBuf],
    runs_file: &Path,
    points_file: &Path,
    cancel: &AtomicBool,
) -> Result<FailedRuns, PartError> {
    let stop_if_cancelled = || {
        let is_cancelled = cancel.load(Ordering::Relaxed);
        if is_cancelled {
            Err(PartError::Cancelled)
        } else {
            Ok(())
        }
    };
    let mut read: Vec<(Part, &PathBuf)> = Vec::new();
    let mut whole: Option<(About, &PathBuf)> = None;
    for path in parts {
        stop_if_cancelled()?;
        let unreadable = |cause| PartError::Read {
            path: path.clone(),
            cause,
        };
        let mut about = About::read(path).map_err(unreadable)?;
        let part = about.part.take().unwrap_or_else(|| Part {
            first: 0,
            count: about.runs,
            build: String::new(),
        });
        if let Some((known, first)) = &whole {
            let foreign = |what| PartError::Foreign {
                path: path.clone(),
                first: (*first).clone(),
                what,
            };
            if *known != about {
                return Err(foreign("sweep"));
            }
            if read.first().is_some_and(|(own, _)| own.build != part.build) {
                return Err(foreign("build"));
            }
        } else {
            whole = Some((about, path));
        }
        read.push((part, path));
    }
    let (about, first) = whole.ok_or(PartError::None)?;
    read.sort_by_key(|(part, _)| (part.first, part.count));
    check_spans(read.iter().map(|(part, _)| part), about.runs)?;
    let schema = schema_of(first).map_err(|cause| cannot_read(first, cause))?;
    let mut points = PointTable::of(&schema);
    let mut failed = FailedRuns::default();
    written(runs_file, &about, Arc::clone(&schema), |file| {
        for (_, path) in &read {
            for rows in batches_of(path, &schema).map_err(|cause| cannot_read(path, cause))? {
                stop_if_cancelled()?;
                let rows = rows.map_err(|cause| cannot_read(path, cause))?;
                let pushed = points.push(&rows);
                pushed.map_err(|cause| cannot_read(path, cause.into()))?;
                failed.take(&rows);
                file.take(&rows)?;
            }
        }
        Ok(())
    })?;
    let rows = points.finish();
    let rows = rows.map_err(|cause| cannot_write(points_file, cause.into()))?;
    written(points_file, &about, rows.schema(), |file| file.take(&rows))?;
    Ok(failed)
}

/// Reads a file of runs or of points that Fulmar wrote.
///
/// # Errors
/// It cannot be read, or is none.
pub fn read(path: &Path) -> Result<(SchemaRef, Vec<RecordBatch>), PartError> {
    let read = || -> Result<_, ParquetError> {
        About::read(path)?;
        let schema = schema_of(path)?;
        let batches = batches_of(path, &schema)?.collect::<Result<_, _>>()?;
        Ok((schema, batches))
    };
    read().map_err(|cause| cannot_read(path, cause))
}

/// The description that a file of runs or of points has of itself, as JSON: the scenario's text, the seed of its first run,
/// runs, points, version.
///
/// # Errors
/// It cannot be read, or Fulmar did not write it.
pub fn description(path: &Path) -> Result<String, PartError> {
    let about = About::read(path).map_err(|cause| cannot_read(path, cause))?;
    serde_json::to_string(&about)
        .map_err(|error| cannot_read(path, ParquetError::External(Box::new(error))))
}

fn check_spans<'a>(parts: impl Iterator<Item = &'a Part>, of: usize) -> Result<(), PartError> {
    let wrong = |runs, doubled| Err(PartError::Runs { runs, of, doubled });
    let mut next = 0;
    for part in parts.filter(|part| part.count > 0) {
        if part.first > next {
            return wrong(next..part.first, false);
        }
        if part.first < next {
            return wrong(part.first..next.min(part.first + part.count), true);
        }
        next += part.count;
    }
    if next < of {
        return wrong(next..of, false);
    }
    Ok(())
}
