//! Points as an Arrow table: one row for each, with means and confidence intervals over its runs.

use crate::measure::{MEASURES, summary_fields};
use crate::runs::NAMES;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, UInt64Type};
use arrow_array::{Array, ArrayRef, Float64Array, RecordBatch, UInt64Array};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use arrow_select::concat::{concat, concat_batches};
use fulmar_sim::measure::statistics::{Summary, summarise};
use std::sync::Arc;

/// The table of a sweep's points, which takes in batches of runs in their order: `scenario`, `point`, `seed` (of
/// the first run), `n` (runs), `failed` (runs with an error), the swept paths, and for each measure its mean and,
/// in a column of its own, half the width of its 95 % interval (Student's t). The mean of a truth is the share of runs.
#[derive(Debug)]
pub struct PointTable {
    schema: SchemaRef,
    /// The number of columns of runs before their measures.
    before_measures: usize,
    /// Runs of the last point, whose end has not been seen.
    open: Vec<RecordBatch>,
    rows: Vec<RecordBatch>,
}

const COUNTED: [&str; 2] = ["n", "failed"];
/// The rows that are kept one by one before they are put together: each has buffers of its own.
const ROWS_APART_MAX: usize = 256;
/// The places of columns of runs.
pub(crate) const POINT: usize = 1;
pub(crate) const SEED: usize = 3;
pub(crate) const ERROR: usize = 5;

impl PointTable {
    /// The table of the points of runs with these columns ([`RunTable::schema`](crate::RunTable::schema)),
    /// without rows yet.
    pub fn of(from: &SchemaRef) -> Self {
        let before_measures = from.index_of(MEASURES[0].name);
        let before_measures = before_measures.unwrap_or(from.fields().len());
        let mut fields: Vec<Field> = ["scenario", "point", "seed"]
            .iter()
            .filter_map(|name| from.field_with_name(name).ok().cloned())
            .collect();
        fields.extend(COUNTED.map(|name| Field::new(name, DataType::UInt64, false)));
        let swept = NAMES.len()..before_measures;
        fields.extend(swept.map(|index| from.field(index).clone()));
        let measures = from.fields().iter().skip(before_measures);
        fields.extend(measures.flat_map(|field| summary_fields(field)));
        Self {
            schema: Arc::new(Schema::new(fields)),
            before_measures,
            open: Vec::new(),
            rows: Vec::new(),
        }
    }

    /// The schema.
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// Takes in the next runs.
    ///
    /// # Errors
    /// The batch is none of such runs.
    pub fn push(&mut self, runs: &RecordBatch) -> Result<(), ArrowError> {
        let points = column::<UInt64Type>(runs, POINT)?;
        let mut from = 0;
        while from < runs.num_rows() {
            let point = points.value(from);
            let same = (from..runs.num_rows()).take_while(|&row| points.value(row) == point);
            let len = same.count();
            if self.open_point()?.is_some_and(|open| open != point) {
                self.close()?;
            }
            self.open.push(runs.slice(from, len));
            from += len;
        }
        Ok(())
    }

    /// All points, in one batch.
    ///
    /// # Errors
    /// A batch was none of such runs.
    pub fn finish(mut self) -> Result<RecordBatch, ArrowError> {
        self.close()?;
        concat_batches(&self.schema, &self.rows)
    }

    fn open_point(&self) -> Result<Option<u64>, ArrowError> {
        let first = self.open.first();
        first
            .map(|runs| Ok(column::<UInt64Type>(runs, POINT)?.value(0)))
            .transpose()
    }

    fn close(&mut self) -> Result<(), ArrowError> {
        let Some(first) = self.open.first() else {
            return Ok(());
        };
        let count_in = |of: fn(&RecordBatch) -> usize| self.open.iter().map(of).sum::<usize>();
        let runs = count_in(RecordBatch::num_rows);
        let failed = runs - count_in(|runs| runs.column(ERROR).null_count());
        let count = |value: usize| -> ArrayRef { Arc::new(UInt64Array::from(vec![value as u64])) };
        // Copied, for a slice would keep the runs.
        let first_of = |index: usize| concat(&[&first.column(index).slice(0, 1)]);
        let mut columns = vec![first_of(0)?, first_of(POINT)?, first_of(SEED)?];
        columns.extend([count(runs), count(failed)]);
        for index in NAMES.len()..self.before_measures {
            columns.push(first_of(index)?);
        }
        for index in self.before_measures..first.num_columns() {
            // One column at a time: a point of a million runs is half a gigabyte as it is.
            let pieces = self.open.iter().map(|runs| runs.column(index).as_ref());
            let Summary { mean, ci95, .. } = summary(&concat(&pieces.collect::<Vec<_>>())?)?;
            let real =
                |value: Option<f64>| -> ArrayRef { Arc::new(Float64Array::from(vec![value])) };
            columns.extend([real(mean), real(ci95)]);
        }
        self.rows
            .push(RecordBatch::try_new(self.schema(), columns)?);
        self.open.clear();
        if self.rows.len() == ROWS_APART_MAX {
            let together = concat_batches(&self.schema, &self.rows)?;
            self.rows = vec![together];
        }
        Ok(())
    }
}

fn column<T: arrow_array::ArrowPrimitiveType>(
    runs: &RecordBatch,
    index: usize,
) -> Result<&arrow_array::PrimitiveArray<T>, ArrowError> {
    let column = runs
        .columns()
        .get(index)
        .and_then(|column| column.as_primitive_opt::<T>());
    column.ok_or_else(|| ArrowError::SchemaError(format!("column {index} is none of a run")))
}

fn summary(column: &ArrayRef) -> Result<Summary, ArrowError> {
    Ok(match column.data_type() {
        DataType::Boolean => {
            let truths = column.as_boolean().iter();
            summarise(truths.map(|truth| truth.map(|t| f64::from(u8::from(t)))))
        }
        DataType::UInt64 => {
            let counts = column.as_primitive::<UInt64Type>().iter();
            summarise(counts.map(|count| count.map(|c| c as f64)))
        }
        DataType::Int64 => {
            let differences = column.as_primitive::<Int64Type>().iter();
            summarise(differences.map(|difference| difference.map(|d| d as f64)))
        }
        DataType::Float64 => summarise(column.as_primitive::<Float64Type>().iter()),
        other => {
            let problem = format!("a measure of type {other}");
            return Err(ArrowError::SchemaError(problem));
        }
    })
}
