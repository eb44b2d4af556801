//! Sweeps in parts: spans of runs that are made by any process, each kept as a Parquet file, and put together
//! to the whole.
//!
//! The whole has the same octets however it was cut and whoever made the parts: its rows stand in the order of
//! points and seeds, in groups of fixed size, and what it says of itself depends on the scenario and the version
//! alone. A part is written beside its place and moved there, so a killed process leaves no half of one. It says
//! which sweep and which build of the program it is of: parts of others are refused.

use crate::points::PointTable;
use crate::points::{ERROR, POINT, SEED};
use crate::runs::RunTable;
use crate::study::Study;
use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_schema::{Schema, SchemaRef};
use arrow_select::coalesce::BatchCoalescer;
use core::ops::Range;
use fulmar_sim::{ExperimentError, ExperimentProgress, RunRecord};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{WriterProperties, WriterVersion};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The rows that are encoded at once, and the rows of a group: fixed, so that the octets do not depend on how
/// the runs came.
const BATCH_ROWS: usize = 4_096;
const GROUP_ROWS: usize = 16 * BATCH_ROWS;
/// The key of a file's own description in its metadata.
const ABOUT: &str = "fulmar";

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
    #[error("cannot read {} as runs of a sweep: {cause}", path.display())]
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

/// The description that a file has of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct About {
    table_schema: u32,
    version: String,
    scenario: String,
    digest: String,
    /// The first seed of the first point, and the number of runs in all.
    seed: u64,
    runs: usize,
    points: usize,
    /// The parameters of the first point; where others differ, a column says in what.
    parameters: BTreeMap<String, String>,
    /// The runs that it has and the build that made it, if it is a part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    part: Option<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Part {
    first: usize,
    count: usize,
    build: String,
}

impl About {
    fn of(study: &Study) -> Self {
        let first = study.points().first();
        Self {
            table_schema: TABLE_SCHEMA,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            scenario: study.experiment.scenario.clone(),
            digest: study.digest.clone(),
            seed: first.map_or(0, |point| point.plan.run.seed),
            runs: study.experiment.run_count(),
            points: study.points().len(),
            parameters: first
                .map(|point| point.parameters.clone())
                .unwrap_or_default(),
            part: None,
        }
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
        let about = About::read(path).ok()?;
        let part = about.part.clone()?;
        let own = About {
            part: about.part.clone(),
            ..About::of(study)
        };
        (own == about && part.build == build).then(|| Self {
            runs: part.first..part.first + part.count,
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
/// matter.
///
/// # Errors
/// A part cannot be read or is of another sweep, runs are missing or doubled, or a file cannot be written.
pub fn merge(
    parts: &[PathBuf],
    runs_file: &Path,
    points_file: &Path,
) -> Result<FailedRuns, PartError> {
    let mut read: Vec<(Part, &PathBuf)> = Vec::new();
    let mut whole: Option<(About, &PathBuf)> = None;
    for path in parts {
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

/// The rows of a file.
fn batches_of(
    path: &Path,
    schema: &SchemaRef,
) -> Result<impl Iterator<Item = Result<RecordBatch, ParquetError>>, ParquetError> {
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path)?)?;
    let batches = reader.with_batch_size(BATCH_ROWS).build()?;
    let schema = Arc::clone(schema);
    Ok(batches.map(move |batch| Ok(batch?.with_schema(Arc::clone(&schema))?)))
}

fn cannot_read(path: &Path, cause: ParquetError) -> PartError {
    PartError::Read {
        path: path.to_owned(),
        cause,
    }
}

fn cannot_write(path: &Path, cause: ParquetError) -> PartError {
    PartError::Write {
        path: path.to_owned(),
        cause,
    }
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

impl About {
    fn read(path: &Path) -> Result<Self, ParquetError> {
        let builder = ParquetRecordBatchReaderBuilder::try_new(File::open(path)?)?;
        let metadata = builder.metadata().file_metadata().key_value_metadata();
        let own = metadata.and_then(|all| all.iter().find(|entry| entry.key == ABOUT));
        let foreign = || ParquetError::General("it was not written by Fulmar".to_owned());
        let text = own.and_then(|entry| entry.value.as_deref());
        let about: Self = serde_json::from_str(text.ok_or_else(foreign)?)
            .map_err(|error| ParquetError::General(format!("its description: {error}")))?;
        if about.table_schema == TABLE_SCHEMA {
            return Ok(about);
        }
        let other = about.table_schema;
        Err(ParquetError::General(format!(
            "its tables are of version {other}, ours of {TABLE_SCHEMA}"
        )))
    }
}

/// A file that is being written, beside its place.
struct Rows<'a> {
    place: &'a Path,
    writer: ArrowWriter<File>,
    even: BatchCoalescer,
}

impl Rows<'_> {
    fn take(&mut self, rows: &RecordBatch) -> Result<(), PartError> {
        let pushed = self.even.push_batch(rows.clone());
        pushed.map_err(|cause| cannot_write(self.place, cause.into()))?;
        self.flush()
            .map_err(|cause| cannot_write(self.place, cause))
    }

    fn flush(&mut self) -> Result<(), ParquetError> {
        while let Some(batch) = self.even.next_completed_batch() {
            self.writer.write(&batch)?;
        }
        Ok(())
    }

    fn finish(mut self) -> Result<(), ParquetError> {
        self.even.finish_buffered_batch()?;
        self.flush()?;
        self.writer.into_inner()?.sync_all()?;
        Ok(())
    }
}

/// The columns of a file, without the file's own description.
fn schema_of(path: &Path) -> Result<SchemaRef, ParquetError> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(File::open(path)?)?;
    Ok(Arc::new(Schema::new(builder.schema().fields().clone())))
}

/// Writes a file beside its place, under a name that is the same each time, and moves it there.
fn written(
    path: &Path,
    about: &About,
    schema: SchemaRef,
    rows: impl FnOnce(&mut Rows<'_>) -> Result<(), PartError>,
) -> Result<(), PartError> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    let beside = PathBuf::from(beside);
    let open = || -> Result<Rows<'_>, ParquetError> {
        let text = serde_json::to_string(about).map_err(io::Error::from)?;
        let properties = WriterProperties::builder()
            .set_writer_version(WriterVersion::PARQUET_2_0)
            .set_compression(Compression::SNAPPY)
            .set_created_by(format!("fulmar version {}", env!("CARGO_PKG_VERSION")))
            .set_max_row_group_row_count(Some(GROUP_ROWS))
            .set_key_value_metadata(Some(vec![KeyValue::new(ABOUT.to_owned(), text)]))
            .build();
        let file = File::create(&beside)?;
        Ok(Rows {
            place: path,
            writer: ArrowWriter::try_new(file, Arc::clone(&schema), Some(properties))?,
            even: BatchCoalescer::new(schema, BATCH_ROWS),
        })
    };
    let write = || {
        let mut file = open().map_err(|cause| cannot_write(path, cause))?;
        rows(&mut file)?;
        let whole = file.finish();
        let moved = whole.and_then(|()| Ok(fs::rename(&beside, path)?));
        moved.map_err(|cause| cannot_write(path, cause))
    };
    write().inspect_err(|_| {
        // What is left of it helps nobody.
        let _ = fs::remove_file(&beside);
    })
}
