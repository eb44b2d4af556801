//! A figure's data as comma-separated values (RFC 4180).

use crate::data::{CurvePoint, FamilyData, sample};
use crate::figure::Figure;
use crate::measure::{Measure, Statistic};
use core::fmt::Write as _;

/// One row for each line and value: n, mean, and both ends of the 95 % interval; a figure of medians has
/// the median and its interval beside them. Points of other sources follow.
pub(crate) fn table(figure: &Figure, data: &FamilyData) -> String {
    let family = data.family;
    let mut statistics = vec![Statistic::Mean];
    if figure.measure.statistic != Statistic::Mean {
        statistics.push(figure.measure.statistic);
    }
    let mut text = format!("line,{},n", family.x.column());
    let unit = figure.measure.unit_name.column;
    for statistic in &statistics {
        let name = statistic.name();
        let of = if *statistic == Statistic::Mean {
            String::new()
        } else {
            format!("_{name}")
        };
        let _ = write!(
            text,
            ",{name}_{unit},ci95_low{of}_{unit},ci95_high{of}_{unit}"
        );
    }
    text += "\r\n";
    for (line, points) in family.lines.iter().zip(&data.lines) {
        for (place, point) in family.x.places().into_iter().zip(points) {
            let of = |statistic: &Statistic| {
                let statistic = *statistic;
                let measure = Measure {
                    statistic,
                    ..figure.measure
                };
                sample(place, point, &measure)
            };
            let samples: Vec<Option<CurvePoint>> = statistics.iter().map(of).collect();
            row(&mut text, line.label, &family.x.value_at(place), &samples);
        }
    }
    for overlay in figure.overlays {
        for point in overlay.points(&figure.measure) {
            let samples: Vec<Option<CurvePoint>> = statistics
                .iter()
                .map(|statistic| (*statistic == overlay.statistic).then_some(point))
                .collect();
            row(
                &mut text,
                overlay.label,
                &family.x.value_at(point.x),
                &samples,
            );
        }
    }
    text
}

fn row(text: &mut String, label: &str, x: &str, samples: &[Option<CurvePoint>]) {
    let n = samples.iter().flatten().next().map_or(0, |sample| sample.n);
    let label = if label.contains([',', '"']) {
        format!("\"{}\"", label.replace('"', "\"\""))
    } else {
        label.to_owned()
    };
    let _ = write!(text, "{label},{x},{n}");
    for sample in samples {
        let ends = [
            sample.map(|sample| sample.value),
            sample.and_then(|sample| sample.low),
            sample.and_then(|sample| sample.high),
        ];
        for value in ends {
            let _ = write!(text, ",{}", number(value));
        }
    }
    text.push_str("\r\n");
}

fn number(value: Option<f64>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}
