//! The record of one point: every measure over its runs, with confidence intervals.

use super::record::{RunRecord, SCHEMA};
use crate::measure::statistics::{Summary, summarise};
use serde::Serialize;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// One point of an experiment, as a line of NDJSON.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AggregateRecord {
    /// Always `aggregate`.
    pub record: &'static str,
    /// [`SCHEMA`].
    pub schema: u32,
    /// The version of the program.
    pub version: Cow<'static, str>,
    /// The name of the scenario's file.
    pub scenario: String,
    /// The point of the sweep, from 0.
    pub point: usize,
    /// The first run's seed.
    pub seed: u64,
    /// The number of runs.
    pub n: usize,
    /// Whether an interrupt kept further runs of the point from being made.
    pub incomplete: bool,
    /// The number of runs that broke a promise.
    pub failed: usize,
    /// Everything the scenario says at this point, by path, as written.
    pub parameters: BTreeMap<String, String>,
    /// The measures by name, nested as in a run's record; each an object of `mean`, `ci95` (half
    /// the width of the 95 % interval) and `n`. A truth value's mean is the share of runs.
    #[serde(flatten)]
    pub metrics: BTreeMap<String, Value>,
    /// The measures by flat name, with dots for the nesting.
    #[serde(skip)]
    pub flat: Vec<(String, Summary)>,
}

impl AggregateRecord {
    /// Summarises the runs of one point, of which `planned` were asked for; `None` of no runs.
    pub fn of(runs: &[RunRecord], planned: usize) -> Option<Self> {
        let first = runs.first()?;
        let numbers: Vec<BTreeMap<String, Option<f64>>> = runs
            .iter()
            .map(|run| run.numbers().into_iter().collect())
            .collect();
        let flat: Vec<(String, Summary)> = first
            .numbers()
            .into_iter()
            .map(|(name, _)| {
                let values = numbers.iter().map(|run| run.get(&name).copied().flatten());
                let summary = summarise(values);
                (name, summary)
            })
            .collect();
        Some(Self {
            record: "aggregate",
            schema: SCHEMA,
            version: first.version.clone(),
            scenario: first.scenario.clone(),
            point: first.point,
            seed: first.seed,
            n: runs.len(),
            incomplete: runs.len() < planned,
            failed: runs.iter().filter(|run| run.error.is_some()).count(),
            parameters: first.parameters.clone(),
            metrics: nested(&flat),
            flat,
        })
    }

    /// The division of the link among several flows, in a line for people.
    pub fn shares_line(&self) -> Option<String> {
        let mean = |name: &str| self.summary(name)?.mean;
        let jain = mean("shares.jain")?;
        let shares = (0..).map_while(|flow| mean(&format!("shares.{flow}")));
        let shares: Vec<String> = shares.map(|share| format!("{share:.2}")).collect();
        let of = match &*shares {
            [] => String::new(),
            shares => format!(" {} of a fair share,", shares.join(" ")),
        };
        Some(format!("flows:{of} Jain's index {jain:.3}"))
    }

    /// A measure by its flat name.
    pub fn summary(&self, name: &str) -> Option<&Summary> {
        self.flat
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, summary)| summary)
    }
}

impl RunRecord {
    /// Every number among the measures by its flat name, in the order of the record; truth values
    /// count as 0 and 1.
    pub fn numbers(&self) -> Vec<(String, Option<f64>)> {
        let mut numbers = Vec::new();
        // Serialising to a value cannot fail: every key is a text.
        if let Ok(Value::Object(metrics)) = serde_json::to_value(&self.metrics) {
            flatten("", &metrics, &mut numbers);
        }
        numbers
    }
}

fn flatten(prefix: &str, object: &Map<String, Value>, into: &mut Vec<(String, Option<f64>)>) {
    for (key, value) in object {
        let name = format!("{prefix}{key}");
        match value {
            Value::Object(inner) => flatten(&format!("{name}."), inner, into),
            Value::Number(number) => into.push((name, number.as_f64())),
            Value::Bool(truth) => into.push((name, Some(f64::from(u8::from(*truth))))),
            Value::Null => into.push((name, None)),
            Value::String(_) | Value::Array(_) => {}
        }
    }
}

fn nested(flat: &[(String, Summary)]) -> BTreeMap<String, Value> {
    let mut top = BTreeMap::new();
    for (name, summary) in flat {
        let value = serde_json::json!(summary);
        match name.split_once('.') {
            Some((outer, inner)) => {
                if let Value::Object(object) = top
                    .entry(outer.to_owned())
                    .or_insert_with(|| Value::Object(Map::new()))
                {
                    object.insert(inner.to_owned(), value);
                }
            }
            None => {
                top.insert(name.clone(), value);
            }
        }
    }
    top
}
