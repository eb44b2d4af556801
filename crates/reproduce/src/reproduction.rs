//! The step from a paper's tables to one experiment, and from its results to files.

use crate::claims::Checked;
use crate::data::{Data, FamilyData};
use crate::exhibit::Exhibit;
use crate::family::Family;
use crate::few_runs::FewRuns;
use crate::figure::Figure;
use crate::graph::Graph;
use crate::output_file::OutputFile;
use crate::page::Drawings;
use crate::paper::Paper;
use crate::plot::DrawError;
use crate::scenario::{document, own_runs};
use crate::{csv, page, plot};
use fulmar_sim::experiment::{Experiment, PointResult};
use fulmar_sim::scenario::{SettingsError, SweepPoint, points};
use fulmar_sim::world::WorldOptions;
use std::collections::BTreeMap;
use std::rc::Rc;

/// A paper ready to run.
#[derive(Debug)]
pub struct Reproduction {
    paper: &'static Paper,
    /// The only figure that is asked for, without page and claims.
    only: Option<Only>,
    families: Vec<&'static Family>,
    experiment: Experiment,
    /// The experiment's point for each point of each family, by line and value. Points that families share
    /// are run once.
    places: Vec<usize>,
    few: Option<FewRuns>,
}

/// One figure of a paper.
#[derive(Clone, Copy, Debug)]
enum Only {
    /// A figure of runs.
    OfRuns(&'static Figure),
    /// A figure of computed curves.
    Computed(&'static Exhibit, &'static Graph),
}

impl Only {
    fn named(paper: &'static Paper, name: &str) -> Option<Self> {
        let figure = paper.figures().find(|figure| figure.id == name);
        let computed = || paper.computed().find(|(exhibit, _)| exhibit.id == name);
        let computed = || computed().map(|(exhibit, graph)| Self::Computed(exhibit, graph));
        figure.map(Self::OfRuns).or_else(computed)
    }

    const fn id(self) -> &'static str {
        match self {
            Self::OfRuns(figure) => figure.id,
            Self::Computed(exhibit, _) => exhibit.id,
        }
    }

    fn shows(self, family: &Family) -> bool {
        match self {
            Self::OfRuns(figure) => figure.family == family.id,
            Self::Computed(_, graph) => graph.families.contains(&family.id),
        }
    }
}

/// The outcome of a paper's reproduction.
#[derive(Clone, Debug)]
pub struct PaperOutcome {
    /// The claims in the order of the page.
    pub claims: Vec<Checked>,
    /// The number of figures.
    pub figures: usize,
    /// The page, `claims.json`, and for each figure its data and a picture; only these two if one figure
    /// was asked for.
    pub files: Vec<OutputFile>,
    /// A warning, if the runs are too few for the verdicts.
    pub few: Option<FewRuns>,
}

/// The reason why there is no outcome.
#[derive(Debug, thiserror::Error)]
pub enum ReproductionError {
    /// A point has no runs: the experiment was cut off.
    #[error("{there} of {planned} points have runs; a page needs all")]
    Incomplete {
        /// Points with runs.
        there: usize,
        /// All points.
        planned: usize,
    },
    /// A figure names a family of runs that does not exist.
    #[error("the figure {0} names a family of runs that there is not")]
    NoFamily(&'static str),
    /// A figure cannot be drawn.
    #[error(transparent)]
    Draw(#[from] DrawError),
    /// The claims cannot be written as JSON.
    #[error("writing the claims as JSON: {0}")]
    Json(#[from] serde_json::Error),
}

impl Reproduction {
    /// Prepares a paper, with `runs` for each point instead of the number in its scenarios.
    ///
    /// # Errors
    /// `runs` is out of range.
    pub fn new(paper: &'static Paper, runs: Option<usize>) -> Result<Self, SettingsError> {
        Self::of(paper, None, runs)
    }

    /// Prepares one figure of a paper, with the runs that it needs; `None` if the paper has no
    /// figure of that name.
    ///
    /// # Errors
    /// `runs` is out of range.
    pub fn figure(
        paper: &'static Paper,
        name: &str,
        runs: Option<usize>,
    ) -> Option<Result<Self, SettingsError>> {
        let only = Only::named(paper, name)?;
        Some(Self::of(paper, Some(only), runs))
    }

    fn of(
        paper: &'static Paper,
        only: Option<Only>,
        runs: Option<usize>,
    ) -> Result<Self, SettingsError> {
        let wanted = |family: &&Family| only.is_none_or(|only| only.shows(family));
        let families: Vec<_> = paper.families.iter().filter(wanted).collect();
        let mut all: Vec<SweepPoint> = Vec::new();
        let mut known = BTreeMap::new();
        let mut places = Vec::new();
        let mut own = Vec::new();
        for family in &families {
            for line in family.lines {
                own.push(own_runs(family, line)?);
                for point in points(&document(family, line, runs)?)? {
                    let next = all.len();
                    let place = *known.entry(point.parameters.clone()).or_insert(next);
                    if place == next {
                        all.push(point);
                    }
                    places.push(place);
                }
            }
        }
        let experiment = Experiment {
            scenario: paper.name.to_owned(),
            points: mixed(all, &mut places),
            options: WorldOptions::default(),
        };
        Ok(Self {
            paper,
            only,
            families,
            experiment,
            places,
            few: FewRuns::of(runs, &own),
        })
    }

    /// The paper.
    pub const fn paper(&self) -> &'static Paper {
        self.paper
    }

    /// All runs of all figures.
    pub const fn experiment(&self) -> &Experiment {
        &self.experiment
    }

    /// The outcome of the runs; `command` is the command that the page names for making them again.
    ///
    /// # Errors
    /// Some results are missing, or cannot be drawn.
    pub fn outcome(
        &self,
        results: Vec<PointResult>,
        command: &str,
    ) -> Result<PaperOutcome, ReproductionError> {
        let data = self.data(results)?;
        let mut files = Vec::new();
        let mut drawings = Drawings::default();
        let wanted = |id: &str| self.only.is_none_or(|only| only.id() == id);
        let named = |id: &str| match self.only {
            Some(_) => self.paper.lone_name(id),
            None => id.to_owned(),
        };
        for figure in self.paper.figures().filter(|figure| wanted(figure.id)) {
            let family = data
                .family(figure.family)
                .ok_or(ReproductionError::NoFamily(figure.id))?;
            let svg = plot::draw(figure, family)?;
            both(
                &mut files,
                &named(figure.id),
                csv::table(figure, family),
                &svg,
            );
            drawings.of_runs.push((figure, svg));
        }
        for (exhibit, graph) in self.paper.computed().filter(|(of, _)| wanted(of.id)) {
            let svg = plot::draw_computed(exhibit.id, graph, &data)?;
            both(&mut files, &named(exhibit.id), graph.csv(&data), &svg);
            drawings.computed.push((exhibit, svg));
        }
        let figures = drawings.of_runs.len() + drawings.computed.len();
        if self.only.is_some() {
            return Ok(PaperOutcome {
                claims: Vec::new(),
                figures,
                files,
                few: self.few,
            });
        }
        let exhibits = self.paper.exhibits.iter();
        files.extend(exhibits.filter_map(|exhibit| exhibit.table_file(&data)));
        let claims = self.paper.claims.iter().copied().flatten();
        let claims = claims.map(|claim| claim.judge(&data));
        let claims: Vec<Checked> = match self.few {
            Some(few) => claims.map(|claim| few.told(claim)).collect(),
            None => claims.collect(),
        };
        files.push(OutputFile {
            name: "claims.json".to_owned(),
            text: claims_json(&claims)?,
        });
        files.push(OutputFile {
            name: "index.html".to_owned(),
            text: page::page(self.paper, &data, &drawings, &claims, (command, self.few)),
        });
        Ok(PaperOutcome {
            claims,
            figures,
            files,
            few: self.few,
        })
    }

    fn data(&self, results: Vec<PointResult>) -> Result<Data, ReproductionError> {
        let (there, planned) = (results.len(), self.experiment.points.len());
        if there != planned {
            return Err(ReproductionError::Incomplete { there, planned });
        }
        let results: Vec<Rc<PointResult>> = results.into_iter().map(Rc::new).collect();
        let mut places = self.places.iter();
        let mut line = |family: &Family| {
            let places = places.by_ref().take(family.x.places().len());
            places.map(|place| Rc::clone(&results[*place])).collect()
        };
        let families = self.families.iter().copied().map(|family| FamilyData {
            family,
            lines: family.lines.iter().map(|_| line(family)).collect(),
        });
        Ok(Data {
            families: families.collect(),
        })
    }
}

/// Adds a figure's data and its picture to the files.
fn both(files: &mut Vec<OutputFile>, id: &str, csv: String, svg: &str) {
    files.push(OutputFile {
        name: format!("{id}.csv"),
        text: csv,
    });
    files.push(OutputFile {
        name: format!("{id}.svg"),
        text: svg.to_owned(),
    });
}

/// The points in an order in which those of one family lie far apart, and `places` in it. The part of such
/// an experiment that is done at any time then tells how long the rest takes.
fn mixed(points: Vec<SweepPoint>, places: &mut [usize]) -> Vec<SweepPoint> {
    let count = points.len();
    let coprime = |stride: &usize| divisor(*stride, count) == 1;
    // Near the golden section, whose multiples lie most evenly.
    let stride = (count * 618 / 1000..count).find(coprime).unwrap_or(1);
    let mut position = vec![0; count];
    for next in 0..count {
        position[next * stride % count] = next;
    }
    for place in places {
        *place = position[*place];
    }
    let mut numbered: Vec<(usize, SweepPoint)> = position.into_iter().zip(points).collect();
    numbered.sort_unstable_by_key(|(position, _)| *position);
    numbered.into_iter().map(|(_, point)| point).collect()
}

/// The greatest common divisor.
fn divisor(a: usize, b: usize) -> usize {
    if a == 0 { b } else { divisor(b % a, a) }
}

/// A list of claims as `claims.json` has it.
pub(crate) fn claims_json(claims: &[Checked]) -> Result<String, serde_json::Error> {
    Ok(serde_json::to_string_pretty(claims)? + "\n")
}

#[cfg(test)]
mod tests;
