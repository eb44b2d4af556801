//! Exhibits beside the figures: tables of values, next to published ones or coloured by value.

use crate::data::{CurvePoint, Data, FamilyData, sample};
use crate::graph::Graph;
use crate::measure::Measure;
use crate::output_file::OutputFile;
use crate::overlay::Overlay;
use core::fmt::Write as _;
use maud::{Markup, html};

/// A table on a paper's page, after its figures.
#[derive(Debug)]
pub(crate) struct Exhibit {
    /// The anchor on the page, and the name of the data's file.
    pub(crate) id: &'static str,
    pub(crate) title: &'static str,
    /// The content, in a few sentences.
    pub(crate) intro: &'static str,
    pub(crate) cells: Cells,
}

/// The content of an exhibit's cells.
#[derive(Debug)]
pub(crate) enum Cells {
    /// Our values beside published ones: a row for each value of the family's parameter.
    Beside {
        family: &'static str,
        line: &'static str,
        columns: &'static [Beside],
    },
    /// Our values beside published ones, of many families: a row for each of a family's values.
    Rows {
        /// The families, each with the name of its rows.
        families: &'static [(&'static str, &'static str)],
        /// The columns; the published ones are rows of a table, by family.
        columns: &'static [ExhibitColumn],
    },
    /// Curves, drawn.
    Curves(Graph),
    /// One measure of many families and lines, by colour too: a row for each value of the
    /// families' parameter.
    Heat {
        /// The families, each with the name of its columns.
        families: &'static [(&'static str, &'static str)],
        measure: Measure,
    },
}

/// A line's measure, and the published values beside it: rows of one table, by the family's name.
#[derive(Debug)]
pub(crate) struct ExhibitColumn {
    pub(crate) caption: &'static str,
    pub(crate) line: &'static str,
    pub(crate) measure: Measure,
    pub(crate) published: &'static [(&'static str, Overlay)],
}

/// A measure and its published values.
#[derive(Debug)]
pub(crate) struct Beside {
    pub(crate) measure: Measure,
    pub(crate) published: &'static Overlay,
}

impl Exhibit {
    /// The table and a link to its data; nothing if it is a picture.
    pub(crate) fn markup(&self, data: &Data) -> Markup {
        if self.graph().is_some() {
            return html! {};
        }
        html! {
            h3 id=(self.id) { (self.title) }
            p { (self.intro) " " a href=(format!("{}.csv", self.id)) { "Data" } "." }
            div.wide {
                @match &self.cells {
                    Cells::Beside { family, line, columns } => (beside(data, family, line, columns)),
                    Cells::Rows { families, columns } => (rows(data, families, columns)),
                    Cells::Curves(_) => {},
                    Cells::Heat { families, measure } => (heat(data, families, measure)),
                }
            }
        }
    }

    /// The drawing, if it is a picture.
    pub(crate) const fn graph(&self) -> Option<&Graph> {
        match &self.cells {
            Cells::Curves(graph) => Some(graph),
            Cells::Beside { .. } | Cells::Rows { .. } | Cells::Heat { .. } => None,
        }
    }

    /// The table as comma-separated values; `None` if it is a picture.
    pub(crate) fn table_file(&self, data: &Data) -> Option<OutputFile> {
        let text = match &self.cells {
            Cells::Beside {
                family,
                line,
                columns,
            } => beside_csv(data, family, line, columns),
            Cells::Rows { families, columns } => rows_csv(data, families, columns),
            Cells::Curves(_) => return None,
            Cells::Heat { families, measure } => heat_csv(data, families, measure),
        };
        Some(OutputFile {
            name: format!("{}.csv", self.id),
            text,
        })
    }
}

/// A line of a family: the place of each value of the parameter, and the measure there.
fn along(data: &FamilyData, line: usize, measure: &Measure) -> Vec<(f64, Option<CurvePoint>)> {
    let points = data.lines.get(line).into_iter().flatten();
    let places = data.family.x.places().into_iter();
    places
        .zip(points)
        .map(|(x, point)| (x, sample(x, point, measure)))
        .collect()
}

/// The value of a line at a place.
fn at(along: &[(f64, Option<CurvePoint>)], x: f64) -> Option<CurvePoint> {
    let mut along = along.iter();
    let (_, sample) = along.find(|(place, _)| (place - x).abs() <= 1e-9 * x.abs())?;
    *sample
}

fn line_of(data: &FamilyData, label: &str) -> Option<usize> {
    let mut lines = data.family.lines.iter();
    lines.position(|line| line.label == label)
}

/// A value and half its interval, in few digits.
fn shown(sample: Option<CurvePoint>) -> String {
    let Some(sample) = sample else {
        return "none".to_owned();
    };
    let digits = if sample.value.abs() < 10.0 { 2 } else { 1 };
    let half = sample.high.map(|high| high - sample.value);
    half.map_or_else(
        || format!("{:.digits$}", sample.value),
        |half| format!("{:.digits$} ± {half:.digits$}", sample.value),
    )
}

/// The published value at the place of ours.
fn published(column: &Beside, x: f64) -> Option<CurvePoint> {
    column.published.point(x, &column.measure)
}

fn beside(data: &Data, family: &str, line: &str, columns: &[Beside]) -> Markup {
    let Some(family) = data.family(family) else {
        return html! {};
    };
    let line = line_of(family, line).unwrap_or(usize::MAX);
    let x_caption = family.family.x.axis.caption();
    let ours: Vec<_> = columns
        .iter()
        .map(|column| along(family, line, &column.measure))
        .collect();
    html! {
        table {
            thead { tr {
                th { (x_caption) }
                @for column in columns {
                    th { (column.measure.caption()) }
                    th { "published" }
                }
            } }
            tbody {
                @for x in family.family.x.places() {
                    tr {
                        td data-label=(x_caption) { (family.family.x.value_at(x)) }
                        @for (column, ours) in columns.iter().zip(&ours) {
                            td data-label=(column.measure.caption()) { (shown(at(ours, x))) }
                            td data-label="published" { (shown(published(column, x))) }
                        }
                    }
                }
            }
        }
    }
}

fn beside_csv(data: &Data, family: &str, line: &str, columns: &[Beside]) -> String {
    let Some(family) = data.family(family) else {
        return String::new();
    };
    let x_column = family.family.x.column();
    let mut text = format!("{x_column},measure,mean,ci95_low,ci95_high,n,published\r\n");
    let line = line_of(family, line).unwrap_or(usize::MAX);
    for column in columns {
        for (x, sample) in along(family, line, &column.measure) {
            let there = published(column, x).map(|sample| sample.value);
            let name = column.measure.caption();
            let (x, values) = (family.family.x.value_at(x), values(sample));
            let _ = write!(text, "{x},{name},{values},{}\r\n", number(there));
        }
    }
    text
}

/// The published value for a family's row.
fn published_in(column: &ExhibitColumn, family: &str, x: f64) -> Option<f64> {
    let mut tables = column.published.iter();
    let (_, overlay) = tables.find(|(name, _)| *name == family)?;
    Some(overlay.at(x)? / column.measure.unit)
}

/// Each row of an exhibit of many families: its family, the family's name, and the value's place.
fn all_rows<'a>(
    data: &'a Data,
    families: &'a [(&'static str, &'static str)],
) -> impl Iterator<Item = (&'a FamilyData, &'static str, f64)> {
    families.iter().flat_map(|&(id, name)| {
        let family = data.family(id);
        family.into_iter().flat_map(move |family| {
            let places = family.family.x.places().into_iter();
            places.map(move |x| (family, name, x))
        })
    })
}

fn cell(family: &FamilyData, column: &ExhibitColumn, x: f64) -> Option<CurvePoint> {
    let line = line_of(family, column.line)?;
    at(&along(family, line, &column.measure), x)
}

fn rows(
    data: &Data,
    families: &'static [(&'static str, &'static str)],
    columns: &[ExhibitColumn],
) -> Markup {
    let x_caption = families
        .first()
        .and_then(|(id, _)| data.family(id))
        .map_or_else(String::new, |family| family.family.x.axis.caption());
    html! {
        table {
            thead { tr {
                th { "channel" }
                th { (x_caption) }
                @for column in columns {
                    th { (column.caption) }
                    @if !column.published.is_empty() { th { "published" } }
                }
            } }
            tbody {
                @for (family, name, x) in all_rows(data, families) {
                    tr {
                        td data-label="channel" { (name) }
                        td data-label=(x_caption) { (x) }
                        @for column in columns {
                            td data-label=(column.caption) { (fine(cell(family, column, x))) }
                            @if !column.published.is_empty() {
                                td data-label="published" {
                                    @match published_in(column, family.family.id, x) {
                                        Some(value) => (format!("{value:.4}")),
                                        None => "none",
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// A share and half its interval, as the published tables write them.
fn fine(sample: Option<CurvePoint>) -> String {
    let Some(sample) = sample else {
        return "none".to_owned();
    };
    let half = sample.high.map(|high| high - sample.value);
    half.map_or_else(
        || format!("{:.4}", sample.value),
        |half| format!("{:.4} ± {half:.4}", sample.value),
    )
}

fn rows_csv(
    data: &Data,
    families: &'static [(&'static str, &'static str)],
    columns: &[ExhibitColumn],
) -> String {
    let mut families_there = families.iter().filter_map(|(id, _)| data.family(id));
    let x_column = families_there
        .next()
        .map_or_else(String::new, |family| family.family.x.column());
    let mut text = format!("channel,{x_column},measure,mean,ci95_low,ci95_high,n,published\r\n");
    for (family, name, x) in all_rows(data, families) {
        for column in columns {
            let ours = values(cell(family, column, x));
            let there = number(published_in(column, family.family.id, x));
            let caption = column.caption.replace(',', ";");
            let _ = write!(text, "{name},{x},{caption},{ours},{there}\r\n");
        }
    }
    text
}

fn heat(data: &Data, families: &[(&str, &str)], measure: &Measure) -> Markup {
    let blocks: Vec<(&str, &FamilyData)> = families
        .iter()
        .filter_map(|(id, name)| Some((*name, data.family(id)?)))
        .collect();
    let Some((_, first)) = blocks.first() else {
        return html! {};
    };
    let first = first.family;
    html! {
        table {
            thead {
                tr {
                    th rowspan="2" { "link layer" }
                    @for (name, family) in &blocks { th colspan=(family.family.lines.len()) { (name) } }
                }
                tr {
                    @for (_, family) in &blocks {
                        @for line in family.family.lines { th { (line.label) } }
                    }
                }
            }
            tbody {
                @for x in first.x.places() {
                    tr {
                        td data-label="link layer" { (first.x.value_at(x)) }
                        @for (name, family) in &blocks {
                            // Colour compares the values that meet the same channel.
                            @let most = highest(family, measure);
                            @for (index, line) in family.family.lines.iter().enumerate() {
                                @let sample = at(&along(family, index, measure), x);
                                td style=(tint(sample, most)) data-label=(format!("{name}, {}", line.label)) { (shown(sample)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn highest(family: &FamilyData, measure: &Measure) -> f64 {
    let lines = 0..family.lines.len();
    let samples = lines.flat_map(|line| along(family, line, measure));
    samples
        .filter_map(|(_, sample)| Some(sample?.value))
        .fold(0.0, f64::max)
}

/// The share of the highest value, as a share of colour.
fn tint(sample: Option<CurvePoint>, most: f64) -> String {
    let share = sample.map_or(0.0, |sample| sample.value / most.max(f64::MIN_POSITIVE));
    let percent = 60.0 * share.clamp(0.0, 1.0);
    format!("background:color-mix(in srgb,var(--yes) {percent:.0}%,transparent)")
}

fn heat_csv(data: &Data, families: &[(&str, &str)], measure: &Measure) -> String {
    let unit = measure.unit_name.column;
    let mut text =
        format!("channel,transport,link_layer,mean_{unit},ci95_low_{unit},ci95_high_{unit},n\r\n");
    for (id, name) in families {
        let Some(family) = data.family(id) else {
            continue;
        };
        for (index, line) in family.family.lines.iter().enumerate() {
            for (x, sample) in along(family, index, measure) {
                let (x, values) = (family.family.x.value_at(x), values(sample));
                let _ = write!(text, "{name},{},{x},{values}\r\n", line.label);
            }
        }
    }
    text
}

/// Mean, both ends of the interval, and runs.
fn values(sample: Option<CurvePoint>) -> String {
    let (low, high) = (
        sample.and_then(|sample| sample.low),
        sample.and_then(|sample| sample.high),
    );
    let n = sample.map_or(0, |sample| sample.n);
    let mean = sample.map(|sample| sample.value);
    format!("{},{},{},{n}", number(mean), number(low), number(high))
}

fn number(value: Option<f64>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Statistic;
    use crate::parameter::AxisUnit;

    const MEASURE: Measure = Measure {
        name: "goodput_bps",
        unit: 1e6,
        unit_name: AxisUnit::MBIT_PER_S,
        label: "goodput",
        statistic: Statistic::Mean,
    };

    /// The rows of a table stand in any order, and some may be missing.
    const SHUFFLED: Overlay = Overlay {
        label: "published",
        like: None,
        table: ("", "per,bps,half\n30,3000000,0\n10,9000000,100000\n"),
        rows: &[],
        x: ("per", 1.0),
        y: "bps",
        half: Some("half"),
        n: None,
        statistic: Statistic::Mean,
        joined: false,
    };

    #[test]
    fn what_was_published_stands_beside_the_same_value_of_the_parameter() {
        let column = Beside {
            measure: MEASURE,
            published: &SHUFFLED,
        };
        assert_eq!(shown(published(&column, 10.0)), "9.00 ± 0.10");
        assert_eq!(shown(published(&column, 30.0)), "3.00 ± 0.00");
        assert_eq!(shown(published(&column, 20.0)), "none");
    }
}
