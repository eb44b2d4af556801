//! Points as an Arrow table: one row for each, with means and confidence intervals over its runs.

use crate::measure::{MEASURES, summary_fields};
use crate::runs::NAMES;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, UInt64Type};
use arrow_array::{Array, ArrayRef, Float64Array, RecordBatch, UInt64Array};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use arrow_select::concat::{concat, concat_batches};
use fulmar_sim::measure::statistics::{RunningSummary, Summary};
use std::sync::Arc;

/// The table of a sweep's points, which takes in batches of runs in their order: `scenario`, `point`, `seed` (of
/// the first run), `n` (runs), `failed` (runs with an error), the swept paths, and for each measure its mean and,
/// in a column of its own, half the width of its 95 % interval (Student's t). The mean of a truth is the share of runs.
#[derive(Debug)]
pub struct PointTable {
    schema: SchemaRef,
    /// The number of columns of runs before their measures.
    before_measures: usize,
    /// The last point, whose end has not been seen.
    open: Option<OpenPoint>,
    rows: Vec<RecordBatch>,
}

/// A point whose runs are coming in. Of the runs nothing is kept: a million of them are half a gigabyte.
#[derive(Debug)]
struct OpenPoint {
    point: u64,
    /// Scenario, point, seed, and the swept paths, of its first run.
    named: [ArrayRef; 3],
    swept: Vec<ArrayRef>,
    runs: u64,
    failed: u64,
    measures: Vec<RunningSummary>,
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
            open: None,
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
            if self.open.as_ref().is_some_and(|open| open.point != point) {
                self.close()?;
            }
            let runs = runs.slice(from, len);
            let open = match &mut self.open {
                Some(open) => open,
                none => none.insert(OpenPoint::of(&runs, point, self.before_measures)?),
            };
            open.take(&runs, self.before_measures)?;
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

    fn close(&mut self) -> Result<(), ArrowError> {
        let Some(open) = self.open.take() else {
            return Ok(());
        };
        let count = |value: u64| -> ArrayRef { Arc::new(UInt64Array::from(vec![value])) };
        let real = |value: Option<f64>| -> ArrayRef { Arc::new(Float64Array::from(vec![value])) };
        let mut columns = open.named.to_vec();
        columns.extend([count(open.runs), count(open.failed)]);
        columns.extend(open.swept);
        for measure in &open.measures {
            let Summary { mean, ci95, .. } = measure.summary();
            columns.extend([real(mean), real(ci95)]);
        }
        self.rows
            .push(RecordBatch::try_new(self.schema(), columns)?);
        if self.rows.len() == ROWS_APART_MAX {
            let together = concat_batches(&self.schema, &self.rows)?;
            self.rows = vec![together];
        }
        Ok(())
    }
}

impl OpenPoint {
    fn of(runs: &RecordBatch, point: u64, before_measures: usize) -> Result<Self, ArrowError> {
        // Copied, for a slice would keep the runs.
        let first_of = |index: usize| concat(&[&runs.column(index).slice(0, 1)]);
        let swept = NAMES.len()..before_measures;
        let measures = runs.num_columns().saturating_sub(before_measures);
        Ok(Self {
            point,
            named: [first_of(0)?, first_of(POINT)?, first_of(SEED)?],
            swept: swept.map(first_of).collect::<Result<_, _>>()?,
            runs: 0,
            failed: 0,
            measures: vec![RunningSummary::default(); measures],
        })
    }

    fn take(&mut self, runs: &RecordBatch, before_measures: usize) -> Result<(), ArrowError> {
        let failed = runs.num_rows() - runs.column(ERROR).null_count();
        self.runs += runs.num_rows() as u64;
        self.failed += failed as u64;
        let columns = runs.columns().iter().skip(before_measures);
        for (measure, column) in self.measures.iter_mut().zip(columns) {
            take_column(measure, column)?;
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

fn take_column(measure: &mut RunningSummary, column: &ArrayRef) -> Result<(), ArrowError> {
    match column.data_type() {
        DataType::Boolean => {
            let truths = column.as_boolean().iter();
            let shares = truths.map(|truth| truth.map(|t| f64::from(u8::from(t))));
            shares.for_each(|share| measure.take(share));
        }
        DataType::UInt64 => {
            let counts = column.as_primitive::<UInt64Type>().iter();
            counts.for_each(|count| measure.take(count.map(|c| c as f64)));
        }
        DataType::Int64 => {
            let differences = column.as_primitive::<Int64Type>().iter();
            differences.for_each(|difference| measure.take(difference.map(|d| d as f64)));
        }
        DataType::Float64 => {
            let reals = column.as_primitive::<Float64Type>().iter();
            reals.for_each(|real| measure.take(real));
        }
        other => {
            let problem = format!("a measure of type {other}");
            return Err(ArrowError::SchemaError(problem));
        }
    }
    Ok(())
}
