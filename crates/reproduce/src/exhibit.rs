//! What a figure cannot show: tables of values, beside published ones or as heat.

use crate::data::{Data, FamilyData, Sample, sample};
use crate::overlay::Overlay;
use crate::paper::Measure;
use crate::reproduction::OutputFile;
use core::fmt::Write as _;
use maud::{Markup, html};

/// A table on a paper's page, after its figures.
#[derive(Debug)]
pub(crate) struct Exhibit {
    /// Of the place on the page, and of the data's file.
    pub(crate) id: &'static str,
    pub(crate) title: &'static str,
    /// What it shows, in a few sentences.
    pub(crate) intro: &'static str,
    pub(crate) cells: Cells,
}

/// What stands in an exhibit's cells.
#[derive(Debug)]
pub(crate) enum Cells {
    /// Ours beside published values: a row for each value of the family's parameter.
    Beside {
        family: &'static str,
        line: &'static str,
        columns: &'static [Beside],
    },
    /// One measure of many families and lines, by colour too: a row for each value of the
    /// families' parameter.
    Heat {
        /// Each with the name of its columns.
        families: &'static [(&'static str, &'static str)],
        measure: Measure,
    },
}

/// A measure and what was published of it.
#[derive(Debug)]
pub(crate) struct Beside {
    pub(crate) measure: Measure,
    pub(crate) published: &'static Overlay,
}

impl Exhibit {
    /// The table and a link to its data.
    pub(crate) fn markup(&self, data: &Data) -> Markup {
        html! {
            h3 id=(self.id) { (self.title) }
            p { (self.intro) " " a href=(format!("{}.csv", self.id)) { "Data" } "." }
            div.wide {
                @match &self.cells {
                    Cells::Beside { family, line, columns } => (beside(data, family, line, columns)),
                    Cells::Heat { families, measure } => (heat(data, families, measure)),
                }
            }
        }
    }

    /// The same as comma-separated values.
    pub(crate) fn file(&self, data: &Data) -> OutputFile {
        let text = match &self.cells {
            Cells::Beside {
                family,
                line,
                columns,
            } => beside_csv(data, family, line, columns),
            Cells::Heat { families, measure } => heat_csv(data, families, measure),
        };
        OutputFile {
            name: format!("{}.csv", self.id),
            text,
        }
    }
}

/// A line of a family: each value of the parameter as written, and the measure there.
fn along(data: &FamilyData, line: usize, measure: &Measure) -> Vec<(&'static str, Option<Sample>)> {
    let points = data.lines.get(line).into_iter().flatten();
    let values = data.family.x_values.iter().copied();
    values
        .zip(points)
        .map(|(x, point)| (x, sample(0.0, point, measure)))
        .collect()
}

fn line_of(data: &FamilyData, label: &str) -> Option<usize> {
    let mut lines = data.family.lines.iter();
    lines.position(|line| line.label == label)
}

/// A value and half its interval, in few digits.
fn shown(sample: Option<Sample>) -> String {
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

/// Of the rows of published values the one that stands where ours does.
fn published(column: &Beside, row: usize) -> Option<Sample> {
    column.published.points(&column.measure).get(row).copied()
}

fn beside(data: &Data, family: &str, line: &str, columns: &[Beside]) -> Markup {
    let Some(family) = data.family(family) else {
        return html! {};
    };
    let line = line_of(family, line).unwrap_or(usize::MAX);
    let ours: Vec<_> = columns
        .iter()
        .map(|column| along(family, line, &column.measure))
        .collect();
    html! {
        table {
            thead { tr {
                th { (family.family.x_label) }
                @for column in columns {
                    th { (column.measure.caption()) }
                    th { "published" }
                }
            } }
            tbody {
                @for (row, x) in family.family.x_values.iter().enumerate() {
                    tr {
                        td data-label=(family.family.x_label) { (crate::data::short(x)) }
                        @for (column, ours) in columns.iter().zip(&ours) {
                            td data-label=(column.measure.caption()) {
                                (shown(ours.get(row).and_then(|(_, sample)| *sample)))
                            }
                            td data-label="published" { (shown(published(column, row))) }
                        }
                    }
                }
            }
        }
    }
}

fn beside_csv(data: &Data, family: &str, line: &str, columns: &[Beside]) -> String {
    let mut text = "x,measure,mean,ci95_low,ci95_high,n,published\r\n".to_owned();
    let Some(family) = data.family(family) else {
        return text;
    };
    let line = line_of(family, line).unwrap_or(usize::MAX);
    for column in columns {
        for (row, (x, sample)) in along(family, line, &column.measure).into_iter().enumerate() {
            let there = published(column, row).map(|sample| sample.value);
            let name = column.measure.caption();
            let values = values(sample);
            let _ = write!(text, "{x},{name},{values},{}\r\n", number(there));
        }
    }
    text
}

fn heat(data: &Data, families: &[(&str, &str)], measure: &Measure) -> Markup {
    let blocks: Vec<(&str, &FamilyData)> = families
        .iter()
        .filter_map(|(id, name)| Some((*name, data.family(id)?)))
        .collect();
    let Some(rows) = blocks.first().map(|(_, family)| family.family.x_values) else {
        return html! {};
    };
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
                @for (row, x) in rows.iter().enumerate() {
                    tr {
                        td data-label="link layer" { (x) }
                        @for (name, family) in &blocks {
                            // Colour compares what meets the same channel.
                            @let most = highest(family, measure);
                            @for (index, line) in family.family.lines.iter().enumerate() {
                                @let sample = along(family, index, measure).get(row).and_then(|(_, sample)| *sample);
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

/// The share of the highest as a share of colour.
fn tint(sample: Option<Sample>, most: f64) -> String {
    let share = sample.map_or(0.0, |sample| sample.value / most.max(f64::MIN_POSITIVE));
    let percent = 60.0 * share.clamp(0.0, 1.0);
    format!("background:color-mix(in srgb,var(--yes) {percent:.0}%,transparent)")
}

fn heat_csv(data: &Data, families: &[(&str, &str)], measure: &Measure) -> String {
    let mut text = "channel,transport,link_layer,mean,ci95_low,ci95_high,n\r\n".to_owned();
    for (id, name) in families {
        let Some(family) = data.family(id) else {
            continue;
        };
        for (index, line) in family.family.lines.iter().enumerate() {
            for (x, sample) in along(family, index, measure) {
                let _ = write!(text, "{name},{},{x},{}\r\n", line.label, values(sample));
            }
        }
    }
    text
}

/// Mean, both ends of the interval, and runs.
fn values(sample: Option<Sample>) -> String {
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
