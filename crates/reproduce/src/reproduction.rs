//! From a paper's tables to one experiment, and from its results to files.

use crate::claims::Checked;
use crate::data::{Data, FamilyData};
use crate::exhibit::Exhibit;
use crate::graph::Graph;
use crate::paper::{Family, Figure, Line, Paper};
use crate::plot::DrawError;
use crate::{csv, page, plot};
use core::fmt::{self, Write as _};
use fulmar_sim::experiment::{Experiment, PointResult};
use fulmar_sim::scenario::{Document, Point, ScenarioError, points};
use fulmar_sim::world::WorldOptions;
use std::collections::BTreeMap;
use std::rc::Rc;

/// A paper ready to run.
#[derive(Debug)]
pub struct Reproduction {
    paper: &'static Paper,
    /// Only this figure, without page and claims.
    only: Option<Only>,
    families: Vec<&'static Family>,
    experiment: Experiment,
    /// Which of its points each family's are, by line and value. Points that families share are
    /// run once.
    places: Vec<usize>,
    few: Option<FewRuns>,
}

/// One figure of a paper.
#[derive(Clone, Copy, Debug)]
enum Only {
    /// Of runs.
    OfRuns(&'static Figure),
    /// Of computed curves.
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

/// Fewer runs for each point than the figures' own: verdicts are not to be relied on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FewRuns {
    /// So many.
    asked: usize,
    /// The least and the most that the figures have by themselves.
    own: (usize, usize),
}

impl fmt::Display for FewRuns {
    /// `3 runs a point instead of 10 to 100`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (asked, (least, most)) = (self.asked, self.own);
        let noun = if asked == 1 { "run" } else { "runs" };
        write!(f, "{asked} {noun} a point instead of {least}")?;
        if most > least {
            write!(f, " to {most}")?;
        }
        Ok(())
    }
}

impl FewRuns {
    /// Of families of which each has its `own` number of runs, when `asked` are made instead.
    fn of(asked: Option<usize>, own: &[usize]) -> Option<Self> {
        let own = (*own.iter().min()?, *own.iter().max()?);
        asked
            .filter(|asked| *asked < own.1)
            .map(|asked| Self { asked, own })
    }

    /// Of both papers.
    pub(crate) fn and(self, other: Self) -> Self {
        let ((least, most), (low, high)) = (self.own, other.own);
        Self {
            own: (least.min(low), most.max(high)),
            ..self
        }
    }

    /// The claim, saying so.
    fn told(self, claim: Checked) -> Checked {
        let comment = format!(
            "Few runs ({self}): the verdict is not to be relied on.\n{}",
            claim.comment
        );
        Checked { comment, ..claim }
    }
}

/// What became of a paper.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// In the order of the page.
    pub claims: Vec<Checked>,
    /// How many figures there are.
    pub figures: usize,
    /// The page, `claims.json`, and of each figure a picture and its data; the latter two alone if
    /// only a figure was asked for.
    pub files: Vec<OutputFile>,
    /// If the runs are too few for the verdicts.
    pub few: Option<FewRuns>,
}

/// A file of the outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputFile {
    /// Its name in the output directory.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// Why there is no outcome.
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
    /// The tables have a figure of runs that there are not.
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
    /// Prepares a paper, with `runs` for each point instead of as many as its scenarios say.
    ///
    /// # Errors
    /// `runs` is out of range.
    pub fn new(paper: &'static Paper, runs: Option<usize>) -> Result<Self, ScenarioError> {
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
    ) -> Option<Result<Self, ScenarioError>> {
        let only = Only::named(paper, name)?;
        Some(Self::of(paper, Some(only), runs))
    }

    fn of(
        paper: &'static Paper,
        only: Option<Only>,
        runs: Option<usize>,
    ) -> Result<Self, ScenarioError> {
        let wanted = |family: &&Family| only.is_none_or(|only| only.shows(family));
        let families: Vec<_> = paper.families.iter().filter(wanted).collect();
        let mut all: Vec<Point> = Vec::new();
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

    /// What the runs come to; `command` is what the reader can type to have them again.
    ///
    /// # Errors
    /// The results are not all there, or cannot be drawn.
    pub fn outcome(
        &self,
        results: Vec<PointResult>,
        command: &str,
    ) -> Result<Outcome, ReproductionError> {
        let data = self.data(results)?;
        let mut files = Vec::new();
        let mut drawings = Drawings::default();
        let wanted = |id: &str| self.only.is_none_or(|only| only.id() == id);
        for figure in self.paper.figures().filter(|figure| wanted(figure.id)) {
            let family = data
                .family(figure.family)
                .ok_or(ReproductionError::NoFamily(figure.id))?;
            let svg = plot::draw(figure, family)?;
            both(&mut files, figure.id, csv::table(figure, family), &svg);
            drawings.of_runs.push((figure, svg));
        }
        for (exhibit, graph) in self.paper.computed().filter(|(of, _)| wanted(of.id)) {
            let svg = plot::draw_computed(exhibit.id, graph, &data)?;
            both(&mut files, exhibit.id, graph.csv(&data), &svg);
            drawings.computed.push((exhibit, svg));
        }
        let figures = drawings.of_runs.len() + drawings.computed.len();
        if self.only.is_some() {
            return Ok(Outcome {
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
        Ok(Outcome {
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
            let places = places.by_ref().take(family.x_values.len());
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

/// A figure's data and its picture.
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

/// What was drawn.
#[derive(Debug, Default)]
pub(crate) struct Drawings {
    /// Figures of runs.
    pub(crate) of_runs: Vec<(&'static Figure, String)>,
    /// Figures of computed curves.
    pub(crate) computed: Vec<(&'static Exhibit, String)>,
}

/// The points in an order in which those of one family lie far apart, and `places` in it: what is
/// done of such an experiment at any time says how long the rest takes.
fn mixed(points: Vec<Point>, places: &mut [usize]) -> Vec<Point> {
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
    let mut numbered: Vec<(usize, Point)> = position.into_iter().zip(points).collect();
    numbered.sort_unstable_by_key(|(position, _)| *position);
    numbered.into_iter().map(|(_, point)| point).collect()
}

/// The greatest that divides both.
fn divisor(a: usize, b: usize) -> usize {
    if a == 0 { b } else { divisor(b % a, a) }
}

/// A list of claims as `claims.json` has it.
pub(crate) fn claims_json(claims: &[Checked]) -> Result<String, serde_json::Error> {
    Ok(serde_json::to_string_pretty(claims)? + "\n")
}

/// How many runs a line has unless it is told otherwise.
fn own_runs(family: &Family, line: &Line) -> Result<usize, ScenarioError> {
    let points = points(&document(family, line, None)?)?;
    Ok(points.first().map_or(0, |point| point.plan.run.runs))
}

fn document(family: &Family, line: &Line, runs: Option<usize>) -> Result<Document, ScenarioError> {
    let (name, text) = family.scenario;
    let mut document = Document::parse(name, text)?;
    for set in sets(family, line) {
        document.set(set)?;
    }
    document.set(&sweep(family))?;
    if let Some(runs) = runs {
        document.set(&format!("run.runs={runs}"))?;
    }
    Ok(document)
}

/// What differs from the scenario, but for what the sweep gives: families share theirs.
fn sets(family: &Family, line: &Line) -> impl Iterator<Item = &'static str> {
    let path = family.x_path;
    let sets = family.sets.iter().chain(line.sets).copied();
    sets.filter(move |set| set.split('=').next() != Some(path))
}

/// A line of a family as a command that makes its runs, so many a point.
pub(crate) fn line_command(family: &Family, line: &Line, runs: usize) -> String {
    let (scenario, _) = family.scenario;
    let sets = sets(family, line);
    // They are told once, and rightly whatever number was asked for.
    let sets = sets.filter(|set| !set.starts_with("run.runs="));
    let mut command = format!("fulmar sim {scenario} --runs {runs}");
    for set in sets.map(str::to_owned).chain([sweep(family)]) {
        let _ = write!(command, " --set '{set}'");
    }
    command
}

/// The family's sweep as `--set` takes it.
fn sweep(family: &Family) -> String {
    format!("sweep.{}=[{}]", family.x_path, family.x_values.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PAPERS;

    #[test]
    fn points_that_are_mixed_are_those_of_their_places() {
        for paper in PAPERS {
            let made = Reproduction::new(paper, Some(1)).expect("the tables are valid");
            let points = &made.experiment.points;
            let mut places = made.places.iter();
            for family in &made.families {
                for line in family.lines {
                    let own = points_of(family, line);
                    for (own, place) in own.iter().zip(places.by_ref()) {
                        assert_eq!(own.parameters, points[*place].parameters, "{}", family.id);
                    }
                }
            }
            assert_eq!(places.next(), None);
            // The 20 MB of a family do not lie together.
            let costs: Vec<u64> = (0..points.len()).map(|p| made.experiment.cost(p)).collect();
            let quarter: u64 = costs[..costs.len() / 4].iter().sum();
            let share = quarter as f64 / costs.iter().sum::<u64>() as f64;
            assert!((share - 0.25).abs() < 0.05, "{}: {share}", paper.name);
        }
    }

    #[test]
    fn drawing_the_strengths_by_strength_too_costs_no_run() {
        let made = Reproduction::new(&crate::MULTI_MODE, Some(1)).expect("the tables are valid");
        let mut places = made.places.iter().copied();
        let mut of: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for family in &made.families {
            let count = family.lines.len() * family.x_values.len();
            of.insert(family.id, places.by_ref().take(count).collect());
        }
        for (by_rate, by_strength) in [
            ("strength-by-rate", "rate-by-strength"),
            ("strength-10ms", "rate-by-strength-10ms"),
            ("strength-octet", "rate-by-strength-octet"),
            ("strength-20mb", "rate-by-strength-20mb"),
        ] {
            let shared = |place: &usize| of[by_rate].contains(place);
            assert!(of[by_strength].iter().all(shared), "{by_strength}");
        }
    }

    #[test]
    fn each_command_on_a_page_makes_the_runs_it_stands_under() {
        for paper in PAPERS {
            for (family, line) in paper
                .families
                .iter()
                .flat_map(|family| family.lines.iter().map(move |line| (family, line)))
            {
                for runs in [None, Some(3)] {
                    let ours = document(family, line, runs).expect("the tables are valid");
                    let ours = points(&ours).expect("they are");
                    let command = line_command(family, line, ours[0].plan.run.runs);
                    let told = told(&command, family.scenario.1);
                    assert_eq!(told.len(), ours.len(), "{command}");
                    for (told, ours) in told.iter().zip(&ours) {
                        assert_eq!(told.plan, ours.plan, "{command}");
                        assert_eq!(told.varied, ours.varied, "{command}");
                    }
                    let numbers =
                        command.matches("runs ").count() + command.matches("run.runs").count();
                    assert_eq!(numbers, 1, "{command}");
                }
            }
        }
    }

    /// The points of a command, as `fulmar sim` takes its arguments.
    fn told(command: &str, scenario: &str) -> Vec<Point> {
        let (head, sets) = command.split_once(" --set ").expect("a sweep at least");
        let words: Vec<&str> = head.split(' ').collect();
        assert_eq!(words[..2], ["fulmar", "sim"]);
        assert_eq!(words[3], "--runs");
        let mut document = Document::parse(words[2], scenario).expect("it is valid");
        for set in sets.split(" --set ") {
            let set = set
                .strip_prefix('\'')
                .and_then(|set| set.strip_suffix('\''));
            document.set(set.expect("in quotes")).expect("it is valid");
        }
        let runs = format!("run.runs={}", words[4]);
        document.set(&runs).expect("it is valid");
        points(&document).expect("they are valid")
    }

    #[test]
    fn a_figure_of_computed_curves_alone_makes_the_runs_it_shows_and_no_others() {
        let made = |name| {
            let made = Reproduction::figure(&crate::FSO, name, None);
            made.expect("it is one").expect("the tables are valid")
        };
        let points = |name| made(name).experiment.points.len();
        // Three layers, three lengths, three rates.
        assert_eq!(points("simulated-fasolt"), 27);
        assert_eq!(points("fig-4-length"), 0);
        let outcome = made("fig-4-length").outcome(Vec::new(), "");
        let outcome = outcome.expect("it can be drawn");
        let names: Vec<&str> = outcome
            .files
            .iter()
            .map(|file| file.name.as_str())
            .collect();
        assert_eq!(names, ["fig-4-length.csv", "fig-4-length.svg"]);
        assert_eq!((outcome.figures, outcome.claims.len()), (1, 0));
        let csv = &outcome.files[0].text;
        assert!(csv.starts_with("line,packet_length"), "{csv}");
        assert!(csv.contains("\r\n1e-7,70,"), "{csv}");
        // Tables of runs are no figures.
        assert!(Reproduction::figure(&crate::FSO, "table-1", None).is_none());
    }

    #[test]
    fn fewer_runs_than_a_figure_has_are_told() {
        assert_eq!(FewRuns::of(None, &[25, 100]), None);
        assert_eq!(FewRuns::of(Some(100), &[25, 100]), None);
        let few = |asked, own: &[usize]| {
            FewRuns::of(Some(asked), own)
                .expect("fewer than some")
                .to_string()
        };
        assert_eq!(few(99, &[100, 25]), "99 runs a point instead of 25 to 100");
        assert_eq!(few(1, &[25, 25]), "1 run a point instead of 25");
        assert_eq!(FewRuns::of(Some(1), &[]), None);
    }

    fn points_of(family: &Family, line: &Line) -> Vec<Point> {
        let document = document(family, line, Some(1)).expect("it is valid");
        let points = points(&document).expect("it is valid");
        assert_eq!(points.len(), family.x_values.len());
        points
    }
}
