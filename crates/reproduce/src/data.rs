//! The means of all runs, by family, line and value of the swept parameter.

use crate::paper::{Family, Measure};
use fulmar_sim::measure::statistics::Summary;
use fulmar_sim::report::aggregate::AggregateRecord;

/// The results of a paper's runs.
#[derive(Debug)]
pub(crate) struct Data {
    pub(crate) families: Vec<FamilyData>,
}

/// The results of a family: a row for each line, with a record for each value.
#[derive(Debug)]
pub(crate) struct FamilyData {
    pub(crate) family: &'static Family,
    pub(crate) lines: Vec<Vec<AggregateRecord>>,
}

/// The number of a swept value, without its per cent sign.
pub(crate) fn x_number(text: &str) -> f64 {
    let digits = text.trim_end_matches('%');
    digits.parse().expect("the tables' values are numbers")
}

impl FamilyData {
    /// A measure over a line, in its unit: x and summary, where there is a mean.
    pub(crate) fn curve(&self, line: usize, measure: &Measure) -> Vec<(f64, Summary)> {
        let records = self.lines.get(line).into_iter().flatten();
        let values = self.family.x_values.iter().map(|text| x_number(text));
        values
            .zip(records)
            .filter_map(|(x, record)| {
                let summary = scaled(record.summary(measure.name)?, measure.unit);
                summary.mean.map(|_| (x, summary))
            })
            .collect()
    }
}

impl Data {
    pub(crate) fn family(&self, id: &str) -> Option<&FamilyData> {
        self.families.iter().find(|data| data.family.id == id)
    }

    /// A measure of a line at a value, as the tables write them.
    pub(crate) fn at(&self, family: &str, line: &str, x: &str, name: &str) -> Option<Summary> {
        let data = self.family(family)?;
        let mut lines = data.family.lines.iter();
        let line = lines.position(|known| known.label == line)?;
        let column = data.family.x_values.iter().position(|known| *known == x)?;
        data.lines.get(line)?.get(column)?.summary(name).copied()
    }

    /// Its mean.
    pub(crate) fn mean(&self, family: &str, line: &str, x: &str, name: &str) -> Option<f64> {
        self.at(family, line, x, name)?.mean
    }
}

fn scaled(summary: &Summary, unit: f64) -> Summary {
    Summary {
        mean: summary.mean.map(|mean| mean / unit),
        ci95: summary.ci95.map(|half| half / unit),
        n: summary.n,
    }
}
