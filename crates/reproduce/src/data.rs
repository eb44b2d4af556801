//! The results of all runs, by family, line and value of the swept parameter.

use crate::family::Family;
use crate::measure::{Measure, Statistic};
use fulmar_sim::experiment::PointResult;
use fulmar_sim::measure::statistics::Summary;
use fulmar_sim::report::record::RunRecord;
use std::rc::Rc;

/// The results of a paper's runs.
#[derive(Debug)]
pub(crate) struct Data {
    pub(crate) families: Vec<FamilyData>,
}

/// The results of a family: a row for each line, with the runs at each value.
#[derive(Debug)]
pub(crate) struct FamilyData {
    pub(crate) family: &'static Family,
    pub(crate) lines: Vec<Vec<Rc<PointResult>>>,
}

/// A point of a curve, in the unit of its measure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct CurvePoint {
    pub(crate) x: f64,
    pub(crate) value: f64,
    /// The ends of the 95 % interval, if there is one.
    pub(crate) low: Option<f64>,
    pub(crate) high: Option<f64>,
    /// The number of runs that had a value.
    pub(crate) n: usize,
}

impl FamilyData {
    /// A measure over a line, in its unit, where there is one.
    pub(crate) fn curve(&self, line: usize, measure: &Measure) -> Vec<CurvePoint> {
        let points = self.lines.get(line).into_iter().flatten();
        let values = self.family.x.places().into_iter();
        values
            .zip(points)
            .filter_map(|(x, point)| sample(x, point, measure))
            .collect()
    }
}

/// A measure at one value, in its unit.
pub(crate) fn sample(x: f64, point: &PointResult, measure: &Measure) -> Option<CurvePoint> {
    let (value, ends, n) = match measure.statistic {
        Statistic::Mean => {
            let summary = point.aggregate.summary(measure.name)?;
            let mean = summary.mean?;
            let ends = summary.ci95.map(|half| (mean - half, mean + half));
            (mean, ends, summary.n)
        }
        Statistic::Median => {
            let mut values = runs(point, measure.name);
            values.sort_unstable_by(f64::total_cmp);
            let ends = median_interval(values.len());
            let ends = ends.and_then(|(low, high)| Some((*values.get(low)?, *values.get(high)?)));
            (median(&values)?, ends, values.len())
        }
    };
    Some(CurvePoint {
        x,
        value: value / measure.unit,
        low: ends.map(|(low, _)| low / measure.unit),
        high: ends.map(|(_, high)| high / measure.unit),
        n,
    })
}

/// A measure of a run.
fn number(run: &RunRecord, name: &str) -> Option<f64> {
    let mut numbers = run.numbers().into_iter();
    let value = numbers.find(|(known, _)| known == name)?.1?;
    value.is_finite().then_some(value)
}

/// A measure in each run that has it.
fn runs(point: &PointResult, name: &str) -> Vec<f64> {
    let runs = point.runs.iter();
    runs.filter_map(|run| number(run, name)).collect()
}

/// The median of sorted values.
fn median(sorted: &[f64]) -> Option<f64> {
    let upper = *sorted.get(sorted.len() / 2)?;
    Some(if sorted.len() % 2 == 1 {
        upper
    } else {
        f64::midpoint(*sorted.get(sorted.len() / 2 - 1)?, upper)
    })
}

/// The standard deviation over the mean.
fn relative_deviation(values: &[f64]) -> Option<f64> {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let squares = values.iter().map(|value| (value - mean).powi(2));
    let freedom = values.len().checked_sub(1).filter(|freedom| *freedom > 0)?;
    Some((squares.sum::<f64>() / freedom as f64).sqrt() / mean)
}

/// The two of `n` sorted values that hold the median between them in at least 95 of 100 cases, by position.
/// Each value is below the median with probability 1/2. `None` below six values.
fn median_interval(n: usize) -> Option<(usize, usize)> {
    // The probability that exactly `below` values are, from 0 up.
    let mut exactly = 0.5_f64.powi(i32::try_from(n).ok()?);
    let mut at_most = exactly;
    let mut below = 0;
    if at_most > 0.025 || exactly <= 0.0 {
        return None;
    }
    loop {
        exactly *= (n - below) as f64 / (below + 1) as f64;
        if at_most + exactly > 0.025 {
            return Some((below, n - 1 - below));
        }
        at_most += exactly;
        below += 1;
    }
}

impl Data {
    pub(crate) fn family(&self, id: &str) -> Option<&FamilyData> {
        self.families.iter().find(|data| data.family.id == id)
    }

    fn point(&self, family: &str, line: &str, x: &str) -> Option<&PointResult> {
        let data = self.family(family)?;
        let mut lines = data.family.lines.iter();
        let line = lines.position(|known| known.label == line)?;
        let column = data
            .family
            .x
            .ids()
            .into_iter()
            .position(|known| known == x)?;
        data.lines.get(line)?.get(column).map(Rc::as_ref)
    }

    /// A measure of a line at a value of the parameter, by its id.
    pub(crate) fn at(&self, family: &str, line: &str, x: &str, name: &str) -> Option<Summary> {
        let point = self.point(family, line, x)?;
        point.aggregate.summary(name).copied()
    }

    /// Each run's value by itself, in the order of seeds.
    pub(crate) fn singles(
        &self,
        family: &str,
        line: &str,
        x: &str,
        name: &str,
    ) -> Option<Vec<f64>> {
        Some(runs(self.point(family, line, x)?, name))
    }

    /// The mean of a measure of a line at a value.
    pub(crate) fn mean(&self, family: &str, line: &str, x: &str, name: &str) -> Option<f64> {
        self.at(family, line, x, name)?.mean
    }

    /// Each run's value, where it has one.
    pub(crate) fn each(&self, family: &str, line: &str, x: &str, name: &str) -> Option<Vec<f64>> {
        Some(runs(self.point(family, line, x)?, name))
    }

    /// Every run's value, in the order of the runs; `None` if one did not deliver everything, or has no
    /// value. Two points whose runs met the same errors can so be compared run by run.
    pub(crate) fn every_complete(
        &self,
        family: &str,
        line: &str,
        x: &str,
        name: &str,
    ) -> Option<Vec<f64>> {
        let runs = &self.point(family, line, x)?.runs;
        let value = |run: &RunRecord| number(run, name).filter(|_| run.metrics.completed);
        runs.iter().map(value).collect()
    }

    /// The standard deviation of single runs over their mean: unlike an interval it does not shrink
    /// with the number of runs. `None` below two runs.
    pub(crate) fn spread(&self, family: &str, line: &str, x: &str, name: &str) -> Option<f64> {
        relative_deviation(&self.each(family, line, x, name)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spread_of_single_runs_does_not_depend_on_their_number() {
        assert_eq!(relative_deviation(&[4.0]), None);
        let few = relative_deviation(&[3.0, 5.0]).expect("two runs");
        assert!((few - 2.0_f64.sqrt() / 4.0).abs() < 1e-12, "{few}");
        // Of values that are repeated often the spread stays, and half an interval falls with the root of
        // their number.
        let many: Vec<f64> = core::iter::repeat_n([3.0, 5.0], 50).flatten().collect();
        let many = relative_deviation(&many).expect("100 runs");
        assert!(
            (many - (100.0_f64 / 99.0).sqrt() / 4.0).abs() < 1e-12,
            "{many}"
        );
    }

    #[test]
    fn a_median_lies_in_its_interval_at_the_ranks_of_the_tables() {
        // The ranks of the sign test's interval, counted from 1: 6 of 6; 8 and 18 of 25; 40 and 61
        // of 100 (Conover, Practical Nonparametric Statistics, table A3).
        assert_eq!(median_interval(5), None);
        assert_eq!(median_interval(6), Some((0, 5)));
        assert_eq!(median_interval(25), Some((7, 17)));
        assert_eq!(median_interval(100), Some((39, 60)));
        assert_eq!(median(&[1.0, 2.0, 4.0, 8.0]), Some(3.0));
        assert_eq!(median(&[]), None);
    }
}
