//! The tables of which a paper's reproduction consists.

use crate::claims::Claim;
use crate::exhibit::Exhibit;
use crate::graph::Graph;
use crate::overlay::Overlay;

/// A paper: its runs, its figures, and its claims.
#[derive(Debug)]
pub struct Paper {
    /// The name that the command line takes.
    pub name: &'static str,
    /// The page's heading.
    pub title: &'static str,
    pub(crate) families: &'static [Family],
    pub(crate) sections: &'static [Section],
    /// The tables, which stand after the figures.
    pub(crate) exhibits: &'static [Exhibit],
    /// The claims in the order of the page, a slice for each of the paper's topics.
    pub(crate) claims: &'static [&'static [Claim]],
    /// Things that the page does not have, in the order of the paper.
    pub(crate) absent: &'static [Absent],
    /// Sentences on how to read the page.
    pub(crate) notes: &'static [&'static str],
}

/// A thing that the paper describes and that is not here: Fulmar does not have it, or the page does not
/// show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Absent {
    /// The place in the paper.
    pub place: &'static str,
    /// The thing.
    pub what: &'static str,
    /// The substitute for the thing, in sentences.
    pub instead: &'static str,
}

impl Paper {
    /// The things that the paper describes and this version does not have or show.
    pub const fn absent(&self) -> &'static [Absent] {
        self.absent
    }
}

/// The sentence under a figure of which some curves get damaged frames and others do not.
pub(crate) const DAMAGED: &str = "AeroTP gets damaged frames; the others do not.";

impl Family {
    /// Whether some of its lines get damaged frames and others do not.
    pub(crate) fn gives_some_damaged(&self) -> bool {
        let gets = |sets: &[&str]| sets.contains(&"hop.frame_check=false");
        let all = gets(self.sets);
        let lines = || self.lines.iter();
        !all && lines().any(|line| gets(line.sets)) && !lines().all(|line| gets(line.sets))
    }
}

impl Paper {
    /// Whether the paper compares transports of which some get damaged frames and others do not.
    pub(crate) fn gives_some_damaged(&self) -> bool {
        self.families.iter().any(Family::gives_some_damaged)
    }

    /// Whether one of the paper's figures compares such transports.
    pub(crate) fn gives_some_damaged_in(&self, figure: &Figure) -> bool {
        let mut families = self.families.iter();
        let family = families.find(|family| family.id == figure.family);
        family.is_some_and(Family::gives_some_damaged)
    }
}

/// Figures that belong together.
#[derive(Debug)]
pub(crate) struct Section {
    pub(crate) title: &'static str,
    /// The content of the figures, in a few sentences.
    pub(crate) intro: &'static str,
    pub(crate) figures: &'static [Figure],
}

impl Paper {
    /// The names that [`Reproduction::figure`](crate::Reproduction::figure) takes.
    pub fn figure_names(&self) -> impl Iterator<Item = &'static str> {
        let computed = self.computed().map(|(exhibit, _)| exhibit.id);
        self.figures().map(|figure| figure.id).chain(computed)
    }

    /// The same names in the same order, each with the figure's title on the page.
    pub fn figure_titles(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let computed = self.computed();
        let computed = computed.map(|(exhibit, _)| (exhibit.id, exhibit.title));
        let figures = self.figures();
        figures
            .map(|figure| (figure.id, figure.title))
            .chain(computed)
    }

    /// Every drawing of computed curves, in the order of the page.
    pub(crate) fn computed(&self) -> impl Iterator<Item = (&'static Exhibit, &'static Graph)> {
        let exhibits = self.exhibits.iter();
        exhibits.filter_map(|exhibit| Some((exhibit, exhibit.graph()?)))
    }

    /// Every figure, in the order of the page.
    pub(crate) fn figures(&self) -> impl Iterator<Item = &'static Figure> {
        self.sections.iter().flat_map(|section| section.figures)
    }
}

/// Runs of several lines over the same values of one parameter.
#[derive(Debug)]
pub(crate) struct Family {
    pub(crate) id: &'static str,
    /// The scenario's file name, and its text.
    pub(crate) scenario: (&'static str, &'static str),
    /// Settings in which every line differs from it.
    pub(crate) sets: &'static [&'static str],
    /// The swept path, its values as written, and the axis' caption.
    pub(crate) x_path: &'static str,
    pub(crate) x_values: &'static [&'static str],
    pub(crate) x_label: &'static str,
    pub(crate) x_logarithmic: bool,
    pub(crate) lines: &'static [Line],
    /// The conditions in words.
    pub(crate) conditions: &'static str,
}

/// One curve.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) label: &'static str,
    /// Settings in which it differs from the family's scenario.
    pub(crate) sets: &'static [&'static str],
}

/// One measure of a family against its parameter.
#[derive(Debug)]
pub(crate) struct Figure {
    pub(crate) id: &'static str,
    /// The place in the paper.
    pub(crate) place: &'static str,
    pub(crate) title: &'static str,
    pub(crate) family: &'static str,
    pub(crate) measure: Measure,
    /// Bounds that no scheme can exceed: for each the measure that has its values, and its label.
    pub(crate) bounds: &'static [(&'static str, &'static str)],
    /// Points of other sources.
    pub(crate) overlays: &'static [Overlay],
    pub(crate) logarithmic: bool,
}

/// A measure of the runs' records, in the unit it is shown in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Measure {
    /// The flat name in the records.
    pub(crate) name: &'static str,
    /// The divisor that brings a value into the unit.
    pub(crate) unit: f64,
    pub(crate) unit_name: &'static str,
    /// The axis' caption without the unit.
    pub(crate) label: &'static str,
    pub(crate) statistic: Statistic,
}

/// The statistic by which a figure's point stands for its runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Statistic {
    /// The mean, with the interval of Student's t.
    Mean,
    /// The median, with the interval of order statistics: for values spread over orders of magnitude.
    Median,
}

impl Statistic {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Mean => "mean",
            Self::Median => "median",
        }
    }
}

impl Measure {
    /// Caption and unit.
    pub(crate) fn caption(&self) -> String {
        let of = match self.statistic {
            Statistic::Mean => "",
            Statistic::Median => " (median of runs)",
        };
        format!("{}{of} / {}", self.label, self.unit_name)
    }
}
