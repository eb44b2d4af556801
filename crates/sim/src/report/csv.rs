//! Records as comma-separated values (RFC 4180): one row for each run and one for each point.
//!
//! The first columns name the run or point; then come the swept parameters, and then every measure followed
//! by half the width of its 95 % interval, which only the rows of points have. The end reason of a point is
//! empty, or `incomplete` after an interrupt.

use super::aggregate::AggregateRecord;
use super::record::RunRecord;
use crate::scenario::path::same;
use core::fmt::Write as _;

/// The header line, for records like `run` in an experiment that varies `varied`.
pub fn header(run: &RunRecord, varied: &[String]) -> String {
    let mut line = String::from("record,scenario,point,run,seed,n,end_reason,error");
    for path in varied {
        let _ = write!(line, ",{}", quoted(path));
    }
    for (name, _) in run.numbers() {
        let _ = write!(line, ",{name},{name}_ci95");
    }
    line
}

/// The row of a run.
pub fn run_row(run: &RunRecord, varied: &[String]) -> String {
    let mut line = format!(
        "run,{},{},{},{},1,{},{}",
        quoted(&run.scenario),
        run.point,
        run.run,
        run.seed,
        run.metrics.end_reason,
        quoted(run.error.as_deref().unwrap_or_default()),
    );
    parameters(&mut line, &run.parameters, varied);
    for (_, value) in run.numbers() {
        let _ = write!(line, ",{},", number(value));
    }
    line
}

/// The row of a point.
pub fn aggregate_row(point: &AggregateRecord, varied: &[String]) -> String {
    let mut line = format!(
        "aggregate,{},{},,{},{},{},",
        quoted(&point.scenario),
        point.point,
        point.seed,
        point.n,
        if point.incomplete { "incomplete" } else { "" }
    );
    parameters(&mut line, &point.parameters, varied);
    for (_, summary) in &point.flat {
        let _ = write!(line, ",{},{}", number(summary.mean), number(summary.ci95));
    }
    line
}

fn parameters(
    line: &mut String,
    all: &std::collections::BTreeMap<String, String>,
    varied: &[String],
) {
    for path in varied {
        // Records have the swept `hop.ber` under each hop's own path, and all hops have the swept value.
        let value = all.get(path).or_else(|| {
            let mut all = all.iter();
            all.find(|(known, _)| same(known, path))
                .map(|(_, value)| value)
        });
        let value = value.map_or("", String::as_str);
        let _ = write!(line, ",{}", quoted(value));
    }
}

fn number(value: Option<f64>) -> String {
    value
        .filter(|v| v.is_finite())
        .map_or_else(String::new, |v| v.to_string())
}

fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}
