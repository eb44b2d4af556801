//! The tables of which a paper's reproduction consists.

use crate::PAPERS;
use crate::claims::PaperClaim;
use crate::exhibit::Exhibit;
use crate::family::Family;
use crate::figure::{Figure, FigureSection};
use crate::graph::Graph;

/// The source of a page's claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClaimSource {
    /// A paper states them as results. One that comes out otherwise is a finding.
    Paper,
    /// They are Fulmar's own goals. One that comes out otherwise is missed.
    OwnGoals,
}

/// A paper: its runs, its figures, and its claims.
#[derive(Debug)]
pub struct Paper {
    /// The name that the command line takes.
    pub name: &'static str,
    /// The page's heading.
    pub title: &'static str,
    pub(crate) source: ClaimSource,
    pub(crate) families: &'static [Family],
    pub(crate) sections: &'static [FigureSection],
    /// The tables, which stand after the figures.
    pub(crate) exhibits: &'static [Exhibit],
    /// The claims in the order of the page, a slice for each of the paper's topics.
    pub(crate) claims: &'static [&'static [PaperClaim]],
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
    /// Whether its claims are goals of Fulmar's own, so that one that is not reproduced is missed.
    pub fn states_goals(&self) -> bool {
        self.source == ClaimSource::OwnGoals
    }

    /// The things that the paper describes and this version does not have or show.
    pub const fn absent(&self) -> &'static [Absent] {
        self.absent
    }
}

/// The sentence under a figure of which some curves get damaged frames and others do not.
pub(crate) const DAMAGED: &str = "AeroTP gets damaged frames; the others do not.";

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

    /// The name of the files of a figure that is made alone: the figure's, behind the paper's if that is another
    /// figure in another paper, so that both have room in one directory.
    pub(crate) fn lone_name(&self, figure: &str) -> String {
        let title_in = |paper: &Self| {
            let named = paper.figure_titles().find(|(name, _)| *name == figure);
            named.map(|(_, title)| title)
        };
        let ours = title_in(self);
        let mut theirs = PAPERS.into_iter().filter_map(title_in);
        if theirs.any(|title| Some(title) != ours) {
            format!("{}-{figure}", self.name)
        } else {
            figure.to_owned()
        }
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
