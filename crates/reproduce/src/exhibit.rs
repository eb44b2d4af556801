//! Exhibits beside the figures: tables of values, next to published ones or coloured by value.

use crate::data::{CurvePoint, Data, FamilyData, sample};
use crate::facts::FactTable;
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
    /// Features in words.
    Facts(FactTable),
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
                @if let Cells::Heat { families, measure } = &self.cells {
                    (heat(data, families, measure))
                }
                @if let Cells::Facts(table) = &self.cells { (table.markup()) }
                @if let Some(table) = self.table(data) { (table.markup()) }
            }
        }
    }

    /// The drawing, if it is a picture.
    pub(crate) const fn graph(&self) -> Option<&Graph> {
        match &self.cells {
            Cells::Curves(graph) => Some(graph),
            Cells::Facts(_) | Cells::Beside { .. } | Cells::Rows { .. } | Cells::Heat { .. } => {
                None
            }
        }
    }

    /// The table as comma-separated values; `None` if it is a picture.
    pub(crate) fn table_file(&self, data: &Data) -> Option<OutputFile> {
        let text = match &self.cells {
            Cells::Curves(_) => return None,
            Cells::Facts(table) => table.csv(),
            Cells::Heat { families, measure } => heat_csv(data, families, measure),
            Cells::Beside { .. } | Cells::Rows { .. } => {
                let table = self.table(data);
                table.map_or_else(String::new, |table| table.csv())
            }
        };
        Some(OutputFile {
            name: format!("{}.csv", self.id),
            text,
        })
    }

    /// Our values beside published ones, if it has such.
    fn table(&self, data: &Data) -> Option<Table> {
        match &self.cells {
            Cells::Beside {
                family,
                line,
                columns,
            } => Some(beside(data.family(family)?, line, columns)),
            Cells::Rows { families, columns } => rows(data, families, columns),
            Cells::Facts(_) | Cells::Curves(_) | Cells::Heat { .. } => None,
        }
    }
}

/// Our values, and those that were published.
struct Table {
    /// The captions of what names a row, and the columns of the same in the data.
    names: Vec<(String, String)>,
    /// The captions of the values, each with whether published ones stand beside them.
    columns: Vec<(String, bool)>,
    rows: Vec<TableRow>,
    /// The decimals of the values; by their size if there is none.
    digits: Option<usize>,
    /// Whether the data have column after column, instead of row after row.
    by_column: bool,
}

struct TableRow {
    names: Vec<String>,
    /// For each column our value, and the published one.
    values: Vec<[Option<CurvePoint>; 2]>,
}

impl Table {
    fn markup(&self) -> Markup {
        html! {
            table {
                thead { tr {
                    @for (caption, _) in &self.names { th { (caption) } }
                    @for (caption, is_beside) in &self.columns {
                        th { (caption) }
                        @if *is_beside { th { "published" } }
                    }
                } }
                tbody {
                    @for row in &self.rows {
                        tr {
                            @for ((caption, _), name) in self.names.iter().zip(&row.names) {
                                td data-label=(caption) { (name) }
                            }
                            @for ((caption, is_beside), [ours, there]) in self.columns.iter().zip(&row.values) {
                                td data-label=(caption) { (shown(*ours, self.digits)) }
                                @if *is_beside { td data-label="published" { (shown(*there, self.digits)) } }
                            }
                        }
                    }
                }
            }
        }
    }

    fn csv(&self) -> String {
        let names = self.names.iter().map(|(_, column)| format!("{column},"));
        let mut text: String = names.collect();
        text += "measure,mean,ci95_low,ci95_high,n,published\r\n";
        let lines = self.rows.iter().flat_map(|row| {
            let name = row.names.join(",");
            let columns = self.columns.iter().zip(&row.values).enumerate();
            columns.map(move |(column, ((caption, _), [ours, there]))| {
                let (caption, ours) = (caption.replace(',', ";"), values(*ours));
                let there = number(there.map(|sample| sample.value));
                (column, format!("{name},{caption},{ours},{there}\r\n"))
            })
        });
        let mut lines: Vec<(usize, String)> = lines.collect();
        if self.by_column {
            lines.sort_by_key(|(column, _)| *column);
        }
        text.extend(lines.into_iter().map(|(_, line)| line));
        text
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

/// A value and half its interval, in few digits.
fn shown(sample: Option<CurvePoint>, digits: Option<usize>) -> String {
    let Some(sample) = sample else {
        return "none".to_owned();
    };
    let digits = digits.unwrap_or(if sample.value.abs() < 10.0 { 2 } else { 1 });
    let half = sample.high.map(|high| high - sample.value);
    half.map_or_else(
        || format!("{:.digits$}", sample.value),
        |half| format!("{:.digits$} ± {half:.digits$}", sample.value),
    )
}

/// The value of a family's line at a place.
fn cell(family: &FamilyData, line: &str, measure: &Measure, x: f64) -> Option<CurvePoint> {
    let mut lines = family.family.lines.iter();
    let line = lines.position(|known| known.label == line)?;
    at(&along(family, line, measure), x)
}

/// The table of one family's line.
fn beside(family: &FamilyData, line: &str, columns: &[Beside]) -> Table {
    let parameter = &family.family.x;
    let row = |x| TableRow {
        names: vec![parameter.value_at(x)],
        values: columns
            .iter()
            .map(|Beside { measure, published }| {
                [cell(family, line, measure, x), published.point(x, measure)]
            })
            .collect(),
    };
    let captions = columns.iter().map(|column| column.measure.caption());
    Table {
        names: vec![(parameter.axis.caption(), parameter.column())],
        columns: captions.map(|caption| (caption, true)).collect(),
        rows: parameter.places().into_iter().map(row).collect(),
        digits: None,
        by_column: true,
    }
}

/// The table of many families' lines, in as many digits as the papers have.
fn rows(
    data: &Data,
    families: &[(&'static str, &str)],
    columns: &[ExhibitColumn],
) -> Option<Table> {
    let there = |&(id, name): &(&'static str, &str)| Some((data.family(id)?, name.to_owned()));
    let families: Vec<(&FamilyData, String)> = families.iter().filter_map(there).collect();
    let (first, _) = families.first()?;
    let (caption, column) = (first.family.x.axis.caption(), first.family.x.column());
    let values = |family: &FamilyData, x| {
        let value = |column: &ExhibitColumn| {
            let mut tables = column.published.iter();
            let table = tables.find(|(name, _)| *name == family.family.id);
            let published = table.and_then(|(_, overlay)| overlay.point(x, &column.measure));
            [cell(family, column.line, &column.measure, x), published]
        };
        columns.iter().map(value).collect()
    };
    let row = |(family, name): &(&FamilyData, String)| {
        let row = |x: f64| TableRow {
            names: vec![name.clone(), x.to_string()],
            values: values(family, x),
        };
        let rows: Vec<TableRow> = family.family.x.places().into_iter().map(row).collect();
        rows
    };
    let beside = |column: &ExhibitColumn| (column.caption.to_owned(), !column.published.is_empty());
    Some(Table {
        names: vec![
            ("channel".to_owned(), "channel".to_owned()),
            (caption, column),
        ],
        columns: columns.iter().map(beside).collect(),
        rows: families.iter().flat_map(row).collect(),
        digits: Some(4),
        by_column: false,
    })
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
                                td style=(tint(sample, most)) data-label=(format!("{name}, {}", line.label)) { (shown(sample, None)) }
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
    use crate::measure::{Quantity, Statistic};
    use crate::parameter::AxisUnit;

    const MEASURE: Measure = Measure {
        name: "goodput_bps",
        unit: 1e6,
        unit_name: AxisUnit::MBIT_PER_S,
        label: "goodput",
        statistic: Statistic::Mean,
        quantity: Quantity::Goodput,
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
        let published = |x| shown(SHUFFLED.point(x, &MEASURE), None);
        assert_eq!(published(10.0), "9.00 ± 0.10");
        assert_eq!(published(30.0), "3.00 ± 0.00");
        assert_eq!(published(20.0), "none");
    }
}
