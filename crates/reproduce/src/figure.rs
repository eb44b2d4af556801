//! Figures over families of runs, and the sections in which a page has them.

use crate::measure::Measure;
use crate::overlay::Overlay;

/// Figures that belong together.
#[derive(Debug)]
pub(crate) struct FigureSection {
    pub(crate) title: &'static str,
    /// The content of the figures, in a few sentences.
    pub(crate) intro: &'static str,
    pub(crate) figures: &'static [Figure],
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
