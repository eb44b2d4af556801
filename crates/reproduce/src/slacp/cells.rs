//! The cells of the slides' charts, an error model under an assignment of capacity, and comparisons
//! of runs that met the same series of errors.

use super::tables::{ENHANCED, ENHANCED_SLACP, MODELS, REFERENCE, REFERENCE_SLACP};
use crate::claims::{ClaimFinding, ClaimVerdict};
use crate::data::Data;
use fulmar_sim::measure::statistics::{Summary, summarise};

/// A chart of the slides: the family of its runs, and its name in a sentence.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chart {
    pub(super) family: &'static str,
    pub(super) name: &'static str,
}

const fn chart(family: &'static str, name: &'static str) -> Chart {
    Chart { family, name }
}

/// The charts of one transfer by assignment, and those of four.
pub(super) const ONE: [Chart; 3] = [
    chart("cra", "CRA"),
    chart("rbdc", "RBDC"),
    chart("vbdc", "VBDC"),
];
pub(super) const FOUR: [Chart; 3] = [
    chart("cra-4", "CRA 4 flows"),
    chart("rbdc-4", "RBDC 4 flows"),
    chart("vbdc-4", "VBDC 4 flows"),
];

/// The same TCP without SLACP and with it.
pub(super) const BY_LINK: [(&str, &str); 2] =
    [(REFERENCE, REFERENCE_SLACP), (ENHANCED, ENHANCED_SLACP)];
/// Both TCPs without SLACP, and both with it.
pub(super) const BY_TCP: [(&str, &str); 2] =
    [(REFERENCE, ENHANCED), (REFERENCE_SLACP, ENHANCED_SLACP)];
pub(super) const LINES: [&str; 4] = [REFERENCE, ENHANCED, REFERENCE_SLACP, ENHANCED_SLACP];

/// The charts of one flow and of four: the conclusions are about both.
pub(super) const ALL_CHARTS: &[&str] = &[
    "cra-elapsed",
    "rbdc-elapsed",
    "vbdc-elapsed",
    "cra-4-elapsed",
    "rbdc-4-elapsed",
    "vbdc-4-elapsed",
];

pub(super) const NONE: &str = "none";
pub(super) const CALIBRATED: &str = "huge-calibrated";
/// The models with errors, by what they lose.
pub(super) const LOSSY: &[&str] = MODELS.split_at(1).1;
/// The models that the slides call high, and those above.
pub(super) const HIGH: &[&str] = MODELS.split_at(3).1;

/// A curve of a chart at a model.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cell<'a> {
    pub(super) family: &'a str,
    pub(super) line: &'a str,
    pub(super) x: &'a str,
}

pub(super) const fn cell<'a>(family: &'a str, line: &'a str, x: &'a str) -> Cell<'a> {
    Cell { family, line, x }
}

impl Chart {
    /// A curve of the chart at a model.
    pub(super) const fn cell<'a>(self, line: &'a str, model: &'a str) -> Cell<'a> {
        cell(self.family, line, model)
    }
}

impl Cell<'_> {
    /// Its mean elapsed time in seconds.
    pub(super) fn elapsed(self, data: &Data) -> Option<f64> {
        data.mean(self.family, self.line, self.x, "elapsed_s")
    }

    fn each(self, data: &Data) -> Option<Vec<f64>> {
        data.every_complete(self.family, self.line, self.x, "elapsed_s")
    }
}

/// The difference between the transfers' times in one cell and in another, run by run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Difference {
    pub(super) mean: f64,
    half: f64,
}

impl Difference {
    /// Whether the first is longer by more than the interval.
    pub(super) fn is_longer(self) -> bool {
        self.mean - self.half > 0.0
    }

    /// Whether the first is shorter by more than the interval.
    pub(super) fn is_shorter(self) -> bool {
        self.mean + self.half < 0.0
    }

    /// `-1.20 ± 0.31 s`, `+125 ± 14 s`.
    pub(super) fn text(self) -> String {
        let digits = if self.half < 10.0 { 2 } else { 0 };
        format!("{:+.digits$} ± {:.digits$} s", self.mean, self.half)
    }
}

/// The difference of some pairs of cells, all together. `None` if some run did not deliver
/// everything.
pub(super) fn difference(data: &Data, pairs: &[(Cell<'_>, Cell<'_>)]) -> Option<Difference> {
    let mut differences = Vec::new();
    for (longer, shorter) in pairs {
        let (longer, shorter) = (longer.each(data)?, shorter.each(data)?);
        if longer.len() != shorter.len() {
            return None;
        }
        differences.extend(longer.iter().zip(&shorter).map(|(a, b)| a - b));
    }
    let Summary { mean, ci95, .. } = summarise(differences.into_iter().map(Some));
    // A difference that is the same in every run has no interval, and needs none; a single run has none
    // either.
    Some(Difference {
        mean: mean?,
        half: ci95.unwrap_or(f64::INFINITY),
    })
}

/// The criterion for a conclusion over many cells. Of comparisons that have intervals a few come out too
/// close to tell, and where no packet is lost all runs are the same to a fraction of a second.
pub(super) const RULE: &str = "Reproduced if that is so in nine of ten cells, by more than their intervals, and in none the other way \
    round by more than its interval and 1 %; partly if in most.";

/// The comparisons that come out one way, the other way, and too close to tell.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    pub(super) longer: Vec<String>,
    pub(super) shorter: Vec<String>,
    pub(super) open: Vec<String>,
    /// The number of open comparisons in which the first may be shorter by 1 %, as far as the runs tell.
    pub(super) may_be_shorter: usize,
}

impl Tally {
    /// Adds the comparison of `pair`'s first cell with its second.
    pub(super) fn add(
        &mut self,
        data: &Data,
        name: &str,
        pair: (Cell<'_>, Cell<'_>),
    ) -> Option<()> {
        let found = difference(data, &[pair])?;
        let base = pair.1.elapsed(data)?;
        let list = if found.is_longer() {
            &mut self.longer
        } else if found.is_shorter() && found.mean < -0.01 * base {
            &mut self.shorter
        } else {
            self.may_be_shorter += usize::from(found.mean - found.half < -0.01 * base);
            &mut self.open
        };
        list.push(format!("{name} {}", found.text()));
        Some(())
    }

    /// The finding by [`RULE`]. It is open where the comparisons that are too close to tell could make it
    /// so in most.
    pub(super) fn finding(&self, figure: String, comment: String) -> ClaimFinding {
        let (all, longer) = (self.all(), self.longer.len());
        let verdict = ClaimVerdict::of(
            10 * longer >= 9 * all && self.shorter.is_empty(),
            2 * longer > all,
        );
        let found = ClaimFinding::new(verdict, figure, comment);
        found.open_if(self.is_open(), &self.why_open())
    }

    /// Whether it may be so in most cells, as far as the runs tell.
    pub(super) fn is_open(&self) -> bool {
        2 * (self.longer.len() + self.open.len()) > self.all()
    }

    /// The reason why the finding is open.
    pub(super) fn why_open(&self) -> String {
        let (open, all) = (self.open.len(), self.all());
        format!(
            "in {open} of {all} cells the interval of the difference has both signs, or it is within 1 %."
        )
    }

    /// The number of cells in which the first is longer, and the number in which it is shorter, as text.
    pub(super) fn figure(&self, word: &str) -> String {
        let (longer, all) = (self.longer.len(), self.all());
        format!(
            "{word} in {longer} of {all} cells, the other way round in {}",
            self.shorter.len()
        )
    }

    pub(super) fn all(&self) -> usize {
        self.longer.len() + self.shorter.len() + self.open.len()
    }

    /// The exceptions in words: where the first is not the longer one.
    pub(super) fn exceptions(&self) -> String {
        let list = |lead: &str, names: &[String]| {
            if names.is_empty() {
                String::new()
            } else {
                format!(" {lead}: {}.", names.join("; "))
            }
        };
        list("Otherwise", &self.shorter) + &list("Too close to tell", &self.open)
    }
}

/// A cell in words: `RBDC, enhanced TCP, high`.
pub(super) fn name(chart: Chart, line: &str, model: &str) -> String {
    format!("{}, {line}, {model}", chart.name)
}

/// `66.9 s`.
pub(super) fn seconds(value: f64) -> String {
    format!("{value:.1} s")
}
