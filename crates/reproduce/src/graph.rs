//! Curves that are not a family of runs over its parameter: closed forms, courses of a channel, and runs
//! set beside them.

use crate::data::{Data, Sample};
use core::fmt::Write as _;

/// Curves over common axes.
#[derive(Debug)]
pub(crate) struct Graph {
    pub(crate) x_label: &'static str,
    pub(crate) y_label: &'static str,
    pub(crate) x_logarithmic: bool,
    pub(crate) y_logarithmic: bool,
    /// The curves; those that are of runs come out of the data.
    pub(crate) traces: fn(&Data) -> Vec<Trace>,
}

/// One of them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Trace {
    pub(crate) label: &'static str,
    /// Of the scheme, if it shares another's.
    pub(crate) colour: Option<usize>,
    pub(crate) points: Vec<(f64, f64)>,
    /// A line, or markers alone.
    pub(crate) joined: bool,
}

impl Trace {
    /// The points without intervals.
    pub(crate) fn samples(&self) -> Vec<Sample> {
        let points = self.points.iter();
        let sample = |&(x, value): &(f64, f64)| Sample {
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
    /// As comma-separated values.
    pub(crate) fn csv(&self, data: &Data) -> String {
        let mut text = "line,x,y\r\n".to_owned();
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
