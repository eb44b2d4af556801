//! A figure's data as comma-separated values (RFC 4180).

use crate::data::FamilyData;
use crate::paper::Figure;
use core::fmt::Write as _;

/// One row for each line and value: n, mean, and both ends of the 95 % interval.
pub(crate) fn table(figure: &Figure, data: &FamilyData) -> String {
    let family = data.family;
    let mut text = format!(
        "line,{},n,mean_{1},ci95_low_{1},ci95_high_{1}\r\n",
        family.x_path.replace('.', "_"),
        figure.measure.unit_name.replace('/', "_per_")
    );
    for (line, records) in family.lines.iter().zip(&data.lines) {
        for (x, record) in family.x_values.iter().zip(records) {
            let summary = record.summary(figure.measure.name);
            let mean = summary.and_then(|s| s.mean);
            let half = summary.and_then(|s| s.ci95);
            let end = |sign: f64| Some((mean? + sign * half?) / figure.measure.unit);
            let _ = write!(
                text,
                "{},{x},{},{},{},{}\r\n",
                line.label,
                summary.map_or(0, |s| s.n),
                number(mean.map(|mean| mean / figure.measure.unit)),
                number(end(-1.0)),
                number(end(1.0)),
            );
        }
    }
    text
}

fn number(value: Option<f64>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}
