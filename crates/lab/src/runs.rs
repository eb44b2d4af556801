//! Runs as an Arrow table: one row for each run.

use crate::graph_columns::GraphColumn;
use crate::measure::{MEASURES, MeasureColumn, MeasureKind};
use crate::parameter::ParameterColumn;
use arrow_array::builder::{
    BooleanBuilder, Float64Builder, Int64Builder, StringBuilder, UInt64Builder,
};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use fulmar_sim::{RunRecord, SweepPoint};
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::sync::Arc;

/// The table of a sweep's runs: `scenario`, `point`, `run`, `seed`, `end_reason`, `error`, a column for each
/// swept path, one for each of the [`MEASURES`], and those of a graph's flows and hops. Each column has its unit and its meaning as metadata.
#[derive(Clone, Debug)]
pub struct RunTable {
    schema: SchemaRef,
    parameters: Vec<ParameterColumn>,
    graph: Vec<GraphColumn>,
}

/// The columns that say which run it is, before those of the swept paths.
pub(crate) const NAMES: [&str; 6] = ["scenario", "point", "run", "seed", "end_reason", "error"];

impl RunTable {
    /// The table of these points' runs.
    pub fn of(points: &[SweepPoint]) -> Self {
        let parameters = ParameterColumn::of(points);
        let mut fields = vec![
            named(
                "scenario",
                DataType::Utf8,
                "the name of the scenario's file",
            ),
            named("point", DataType::UInt64, "the point of the sweep, from 0"),
            named("run", DataType::UInt64, "the run of the point, from 0"),
            named("seed", DataType::UInt64, "the seed that repeats the run"),
            named("end_reason", DataType::Utf8, "why the run ended"),
            named(
                "error",
                DataType::Utf8,
                "the broken promise, if one was broken",
            ),
        ];
        fields.extend(parameters.iter().map(ParameterColumn::field));
        fields.extend(MEASURES.iter().map(MeasureColumn::field));
        let graph = GraphColumn::all(points);
        fields.extend(graph.iter().map(GraphColumn::field));
        let schema = Arc::new(Schema::new(fields));
        Self {
            schema,
            parameters,
            graph,
        }
    }

    /// The schema, without the metadata of a file.
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// The rows of these runs, in their order. `points` are those that the table was made of.
    ///
    /// # Errors
    /// A run is of no point.
    pub fn batch(
        &self,
        points: &[SweepPoint],
        runs: &[RunRecord],
    ) -> Result<RecordBatch, ArrowError> {
        let unknown = |run: &RunRecord| {
            ArrowError::InvalidArgumentError(format!("point {} is not of this sweep", run.point))
        };
        let of_runs: Vec<&SweepPoint> = runs
            .iter()
            .map(|run| points.get(run.point).ok_or_else(|| unknown(run)))
            .collect::<Result<_, _>>()?;
        let mut columns: Vec<ArrayRef> = vec![
            texts(runs.iter().map(|run| Some(run.scenario.as_str()))),
            counts(runs.iter().map(|run| Some(run.point as u64))),
            counts(runs.iter().map(|run| Some(run.run as u64))),
            counts(runs.iter().map(|run| Some(run.seed))),
            texts(runs.iter().map(|run| Some(&*run.metrics.end_reason))),
            texts(runs.iter().map(|run| run.error.as_deref())),
        ];
        let parameters = self.parameters.iter();
        columns.extend(parameters.map(|column| column.array(of_runs.iter().copied())));
        let measured: Vec<Map<String, Value>> = runs.iter().map(measures).collect();
        for measure in &MEASURES {
            let values = measured.iter().map(|run| value(run, measure.name));
            columns.push(match measure.kind {
                MeasureKind::Truth => {
                    let mut truths = BooleanBuilder::new();
                    values.for_each(|v| truths.append_option(v.and_then(Value::as_bool)));
                    Arc::new(truths.finish())
                }
                MeasureKind::Count => counts(values.map(|v| v.and_then(Value::as_u64))),
                MeasureKind::Difference => {
                    let mut differences = Int64Builder::new();
                    values.for_each(|v| differences.append_option(v.and_then(Value::as_i64)));
                    Arc::new(differences.finish())
                }
                MeasureKind::Real => {
                    let mut reals = Float64Builder::new();
                    values.for_each(|v| reals.append_option(v.and_then(Value::as_f64)));
                    Arc::new(reals.finish())
                }
            });
        }
        columns.extend(self.graph.iter().map(|column| column.array(&measured)));
        RecordBatch::try_new(self.schema(), columns)
    }
}

fn named(name: &str, data_type: DataType, about: &str) -> Field {
    let metadata = HashMap::from([("about".to_owned(), about.to_owned())]);
    Field::new(name, data_type, name == "error").with_metadata(metadata)
}

fn texts<'a>(values: impl Iterator<Item = Option<&'a str>>) -> ArrayRef {
    let mut texts = StringBuilder::new();
    values.for_each(|value| texts.append_option(value));
    Arc::new(texts.finish())
}

fn counts(values: impl Iterator<Item = Option<u64>>) -> ArrayRef {
    let mut counts = UInt64Builder::new();
    values.for_each(|value| counts.append_option(value));
    Arc::new(counts.finish())
}

fn measures(run: &RunRecord) -> Map<String, Value> {
    // Serialising to a value cannot fail: every key is a text.
    match serde_json::to_value(&run.metrics) {
        Ok(Value::Object(measures)) => measures,
        _ => Map::new(),
    }
}

/// A measure by its flat name.
fn value<'a>(run: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    match name.split_once('.') {
        Some((outer, inner)) => run.get(outer)?.get(inner),
        None => run.get(name),
    }
}
