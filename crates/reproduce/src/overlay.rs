//! Points of another source, drawn over a figure's curves: other simulators' runs, computed bounds.
//!
//! They come from the tables in `reference/`, whose README names the source of each.

use crate::data::CurvePoint;
use crate::measure::{Measure, Statistic};

/// Some rows of a table of `reference/`.
#[derive(Debug)]
pub(crate) struct Overlay {
    /// The label in the legend, with the source.
    pub(crate) label: &'static str,
    /// The line whose colour it takes.
    pub(crate) like: Option<&'static str>,
    /// The table's file name, and its text.
    pub(crate) table: (&'static str, &'static str),
    /// The filter of rows: columns and the values that they must have.
    pub(crate) rows: &'static [(&'static str, &'static str)],
    /// The column of the figure's x, and the divisor of its numbers.
    pub(crate) x: (&'static str, f64),
    /// The column of the measure, in the records' unit.
    pub(crate) y: &'static str,
    /// The column of half the 95 % interval.
    pub(crate) half: Option<&'static str>,
    /// The column of the number of runs; a table without one is computed.
    pub(crate) n: Option<&'static str>,
    /// The statistic of its values.
    pub(crate) statistic: Statistic,
    /// Whether a line joins the points; else there are markers alone.
    pub(crate) joined: bool,
}

impl Overlay {
    /// The table's value at `x`, in the table's unit.
    pub(crate) fn at(&self, x: f64) -> Option<f64> {
        Some(self.scaled_at(x, 1.0)?.value)
    }

    /// The point at `x`, in the unit of `measure`.
    pub(crate) fn point(&self, x: f64, measure: &Measure) -> Option<CurvePoint> {
        self.scaled_at(x, measure.unit)
    }

    fn scaled_at(&self, x: f64, unit: f64) -> Option<CurvePoint> {
        let mut points = self.scaled(unit).into_iter();
        points.find(|point| (point.x - x).abs() <= 1e-9 * x.abs())
    }

    /// The points, in the unit of `measure`.
    pub(crate) fn points(&self, measure: &Measure) -> Vec<CurvePoint> {
        self.scaled(measure.unit)
    }

    fn scaled(&self, unit: f64) -> Vec<CurvePoint> {
        let mut rows = self.table.1.lines().map(|row| row.split(','));
        let header: Vec<&str> = rows.next().into_iter().flatten().collect();
        let column = |name: &str| header.iter().position(|known| *known == name);
        rows.filter_map(|row| {
            let row: Vec<&str> = row.collect();
            let text = |name: &str| row.get(column(name)?).copied();
            let number = |name: &str| text(name)?.parse::<f64>().ok();
            let wanted = |(name, value): &(&str, &str)| text(name) == Some(value);
            if !self.rows.iter().all(wanted) {
                return None;
            }
            let value = number(self.y)?;
            let half = self.half.and_then(number);
            let end = |sign: f64| Some((value + sign * half?) / unit);
            Some(CurvePoint {
                x: number(self.x.0)? / self.x.1,
                value: value / unit,
                low: end(-1.0),
                high: end(1.0),
                n: self.n.and_then(text).map_or(Some(1), |n| n.parse().ok())?,
            })
        })
        .collect()
    }
}
