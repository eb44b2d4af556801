//! The Parquet files of parts and wholes: their description of themselves, their rows, and how they are written.

use super::{PartError, TABLE_SCHEMA};
use crate::study::Study;
use arrow_array::RecordBatch;
use arrow_schema::{Schema, SchemaRef};
use arrow_select::coalesce::BatchCoalescer;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{WriterProperties, WriterVersion};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The rows that are encoded at once, and the rows of a group: fixed, so that the octets do not depend on how
/// the runs came.
pub(super) const BATCH_ROWS: usize = 4_096;
const GROUP_ROWS: usize = 16 * BATCH_ROWS;
/// The first octets of a Parquet file.
pub(crate) const PARQUET: &[u8] = b"PAR1";
/// The key of a file's own description in its metadata.
const ABOUT: &str = "fulmar";

/// The description that a file has of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct About {
    pub(super) table_schema: u32,
    pub(super) version: String,
    pub(super) scenario: String,
    pub(super) digest: String,
    /// The scenario as TOML, with all changes and the sweep: read again it gives the same points and runs.
    pub(super) document: String,
    /// The first seed of the first point, and the number of runs in all.
    pub(super) seed: u64,
    pub(super) runs: usize,
    pub(super) points: usize,
    /// The parameters of the first point; where others differ, a column says in what.
    pub(super) parameters: BTreeMap<String, String>,
    /// The runs that it has and the build that made it, if it is a part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) part: Option<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Part {
    pub(super) first: usize,
    pub(super) count: usize,
    pub(super) build: String,
}

impl About {
    pub(super) fn of(study: &Study) -> Self {
        let first = study.points().first();
        Self {
            table_schema: TABLE_SCHEMA,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            scenario: study.experiment.scenario.clone(),
            digest: study.digest.clone(),
            document: study.document.clone(),
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
/// The rows of a file.
pub(super) fn batches_of(
    path: &Path,
    schema: &SchemaRef,
) -> Result<impl Iterator<Item = Result<RecordBatch, ParquetError>>, ParquetError> {
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path)?)?;
    let batches = reader.with_batch_size(BATCH_ROWS).build()?;
    let schema = Arc::clone(schema);
    Ok(batches.map(move |batch| Ok(batch?.with_schema(Arc::clone(&schema))?)))
}

/// A cause without the words by which the library begins it.
pub(super) fn plain(cause: &ParquetError) -> String {
    match cause {
        ParquetError::General(problem) => problem.clone(),
        ParquetError::External(cause) => cause.to_string(),
        other => other.to_string(),
    }
}

pub(super) fn cannot_read(path: &Path, cause: ParquetError) -> PartError {
    PartError::Read {
        path: path.to_owned(),
        cause,
    }
}

pub(super) fn cannot_write(path: &Path, cause: ParquetError) -> PartError {
    PartError::Write {
        path: path.to_owned(),
        cause,
    }
}

impl About {
    pub(super) fn read(path: &Path) -> Result<Self, ParquetError> {
        let mut head = Vec::new();
        let magic = File::open(path)?.take(PARQUET.len() as u64);
        { magic }.read_to_end(&mut head)?;
        if head != PARQUET {
            let problem =
                "it is no Parquet file; name files that `fulmar sim --out FILE.parquet` made";
            return Err(ParquetError::General(problem.to_owned()));
        }
        let builder = ParquetRecordBatchReaderBuilder::try_new(File::open(path)?)?;
        let metadata = builder.metadata().file_metadata().key_value_metadata();
        let own = metadata.and_then(|all| all.iter().find(|entry| entry.key == ABOUT));
        let foreign = || {
            let problem = "it was not written by Fulmar; name files that `fulmar sim --out FILE.parquet` made";
            ParquetError::General(problem.to_owned())
        };
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
pub(super) struct Rows<'a> {
    place: &'a Path,
    writer: ArrowWriter<File>,
    even: BatchCoalescer,
}

impl Rows<'_> {
    pub(super) fn take(&mut self, rows: &RecordBatch) -> Result<(), PartError> {
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
pub(super) fn schema_of(path: &Path) -> Result<SchemaRef, ParquetError> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(File::open(path)?)?;
    Ok(Arc::new(Schema::new(builder.schema().fields().clone())))
}

/// Writes a file beside its place, under a name that is the same each time, and moves it there.
pub(super) fn written(
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
