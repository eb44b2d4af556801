//! Curves that are not a family of runs over its parameter: closed forms, courses of a channel, and runs
//! set beside them.

use crate::data::{CurvePoint, Data};
use crate::parameter::Axis;
use core::fmt::Write as _;

/// Curves over common axes.
#[derive(Debug)]
pub(crate) struct Graph {
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    /// The families whose runs it shows.
    pub(crate) families: &'static [&'static str],
    /// The curves; curves of runs come from the data.
    pub(crate) traces: fn(&Data) -> Vec<GraphCurve>,
}

/// One curve.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct GraphCurve {
    pub(crate) label: &'static str,
    /// The number of its colour, if it shares another curve's.
    pub(crate) colour: Option<usize>,
    pub(crate) points: Vec<(f64, f64)>,
    /// Whether a line joins the points; else there are markers alone.
    pub(crate) joined: bool,
}

impl GraphCurve {
    /// The points without intervals.
    pub(crate) fn samples(&self) -> Vec<CurvePoint> {
        let points = self.points.iter();
        let sample = |&(x, value): &(f64, f64)| CurvePoint {
            x,
            value,
            low: None,
            high: None,
            n: 1,
        };
        points.map(sample).collect()
    }
}

impl Graph {
    /// The curves as comma-separated values.
    pub(crate) fn csv(&self, data: &Data) -> String {
        let mut text = format!("line,{},{}\r\n", self.x.column(), self.y.column());
        for trace in (self.traces)(data) {
            let label = if trace.label.contains(',') {
                format!("\"{}\"", trace.label)
            } else {
                trace.label.to_owned()
            };
            for (x, y) in trace.points {
                let _ = write!(text, "{label},{x},{y}\r\n");
            }
        }
        text
    }
}
