//! `fulmar reproduce PAPER`, `fulmar reproduce all`: the papers' figures and claims, run again.

use super::watch::{Total, stoppable, watch};
use super::writable::writable;
use crate::exit::{Exit, Failure, OrExit};
use crate::output;
use crate::signals::Signals;
use crate::workers::Workers;
use anyhow::Context;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use core::sync::atomic::Ordering;
use fulmar_reproduce::{
    Attempt, ClaimVerdict, OutputFile, PAPERS, Paper, PaperOutcome, Reproduction, few_runs,
    overview,
};
use fulmar_settings::suggestion;
use fulmar_sim::experiment::ExperimentProgress;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// A paper's page, and the files over all papers.
const PAGE: &str = "index.html";
const CLAIMS: &str = "claims.json";
const OVERVIEW: [&str; 2] = [PAGE, CLAIMS];

const EXAMPLES: &str = "\
Examples:
  fulmar reproduce all --out pages/
      pages/index.html over all papers, pages/claims.json, and a directory for each paper
  fulmar reproduce aerotp-multi-mode --out page/
      page/index.html, claims.json, and a CSV and an SVG of each figure
  fulmar reproduce aerotp-hybrid --out quick/ --runs 5
      the same with fewer runs for each point, for a quick look: verdicts are not to be relied on
  fulmar reproduce aerotp-hybrid --figure modes-goodput --out figure/
      figure/modes-goodput.svg and .csv, from the runs of that figure alone; where another paper has
      another figure of that name, the paper's name comes before it
  fulmar reproduce --list
      the names of the papers and of their figures
  fulmar reproduce --list --find delay
      those figures that have this word in their name, title or paper's name

What a paper describes and Fulmar has not is listed on its page (\"Not here\"). An interrupt leaves
the papers that are finished, and no overview over half of them.

The exit code is 1 if a goal is missed: the claims of `auto` are Fulmar's own goals. A paper's claim
that comes out otherwise is a finding, and no failure.
";

/// The arguments of `fulmar reproduce`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES, after_long_help = EXAMPLES)]
pub(crate) struct ReproduceArgs {
    /// The paper, or all of them; --list needs none.
    #[arg(value_parser = choices(), required_unless_present = "list")]
    paper: Option<Choice>,
    /// The directory for the pages; it is made. Files of the same names are replaced.
    #[arg(long, value_name = "DIR", required_unless_present = "list")]
    out: Option<PathBuf>,
    /// Only this figure, as the page names its data: a picture (SVG) and a CSV, from the runs it needs.
    #[arg(long, value_name = "NAME")]
    figure: Option<String>,
    /// Name the figures with their titles, those of all papers if none is named, and run nothing.
    #[arg(long, conflicts_with_all = ["out", "figure"])]
    list: bool,
    /// With --list: only the figures with this word in their name, their title or their paper's name, in whichever case.
    #[arg(long, value_name = "WORD", requires = "list")]
    find: Option<String>,
    /// Runs for each point, instead of each figure's own number. With fewer, page, claims.json and
    /// terminal say that verdicts are not to be relied on.
    #[arg(long, value_name = "N")]
    runs: Option<usize>,
    #[command(flatten)]
    workers: Workers,
}

impl ReproduceArgs {
    fn paper(&self) -> Choice {
        self.paper.unwrap_or(Choice::All)
    }

    fn out(&self) -> &Path {
        let out = self.out.as_deref();
        out.expect("the arguments' parser asks for it unless figures are listed")
    }
}

/// The papers to make.
#[derive(Clone, Copy, Debug)]
enum Choice {
    One(&'static Paper),
    All,
}

impl Choice {
    const fn name(self) -> &'static str {
        match self {
            Self::One(paper) => paper.name,
            Self::All => "all",
        }
    }
}

/// Every paper by its name, and `all`.
fn choices() -> impl TypedValueParser<Value = Choice> {
    let names = PAPERS.iter().map(|paper| paper.name);
    let names = PossibleValuesParser::new(names.chain([Choice::All.name()]));
    names.map(|name| {
        let known = PAPERS.into_iter().find(|paper| paper.name == name);
        known.map_or(Choice::All, Choice::One)
    })
}

/// Makes the runs and writes the pages.
///
/// # Errors
/// The number of runs is out of range, or the files cannot be written.
pub(crate) fn run(args: &ReproduceArgs) -> Result<Exit, Failure> {
    // Planning the runs of all papers takes a moment, too.
    let signals = Signals::catch(&[])?;
    let papers: Vec<&'static Paper> = match args.paper() {
        Choice::One(paper) => vec![paper],
        Choice::All if args.figure.is_some() => {
            let problem =
                anyhow::anyhow!("--figure names a figure of one paper; name the paper, not `all`");
            return Err(problem).or_exit(Exit::Usage);
        }
        Choice::All => PAPERS.to_vec(),
    };
    if args.list {
        return list(&papers, args.find.as_deref());
    }
    let places: Vec<Place> = papers
        .into_iter()
        .map(|paper| Place::new(paper, args))
        .collect::<Result<_, _>>()?;
    let progress = stoppable(&signals);
    let experiments = places.iter().map(|place| place.reproduction.experiment());
    let made: Vec<Made> = watch(&Total::runs(experiments), &progress, || {
        let mut made = Vec::new();
        for place in &places {
            let Some(one) = place.make(args, &progress) else {
                break;
            };
            made.push(one);
        }
        made
    })?;
    if let Some(exit) = signals.exit() {
        let (finished, all) = (made.len(), places.len());
        eprintln!("fulmar: interrupted; {finished} of {all} papers were written");
        return Ok(exit);
    }
    finish(args, &places, made)
}

/// Prints a line for each figure in which the word is, if there is one: the paper's name if there are several papers, the
/// figure's name, its title.
///
/// # Errors
/// The word is in none of them.
fn list(papers: &[&'static Paper], word: Option<&str>) -> Result<Exit, Failure> {
    let wanted = word.map(str::to_lowercase);
    let has = |text: &str| {
        let wanted = wanted.as_deref();
        wanted.is_none_or(|word| text.to_lowercase().contains(word))
    };
    let mut count = 0;
    for paper in papers {
        let of = if papers.len() > 1 { paper.name } else { "" };
        for (name, title) in paper.figure_titles() {
            if [paper.name, name, title].into_iter().any(has) {
                output::line(format!("{of:<18}{name:<26} {title}").trim_start())?;
                count += 1;
            }
        }
    }
    match word {
        Some(word) if count == 0 => {
            let problem = anyhow::anyhow!(
                "--find: no figure has `{word}` in its name, its title or its paper's name; --list alone names all"
            );
            Err(problem).or_exit(Exit::Usage)
        }
        _ => Ok(Exit::Done),
    }
}

/// A paper, and the directory of its files.
struct Place {
    reproduction: Reproduction,
    directory: PathBuf,
    /// Whether the directory was made for this.
    is_new: bool,
}

impl Drop for Place {
    /// Removes the directory if nothing was written: one that is not empty stays.
    fn drop(&mut self) {
        if self.is_new {
            drop(std::fs::remove_dir(&self.directory));
        }
    }
}

/// The outcome of a paper.
struct Made {
    outcome: anyhow::Result<PaperOutcome>,
    /// The exit that it asks for, if it did not go well.
    exit: Exit,
    /// Runs that broke a promise.
    broken: usize,
    /// Goals that were missed, by the id of the claim.
    missed: Vec<String>,
}

/// The goals that the runs do not show to be met, if the paper's claims are goals.
fn missed_goals(paper: &Paper, outcome: &PaperOutcome) -> Vec<String> {
    let claims = outcome.claims.iter().filter(|_| paper.states_goals());
    claims
        .filter(|claim| claim.verdict != ClaimVerdict::Reproduced)
        .map(|claim| claim.id.clone())
        .collect()
}

impl Place {
    /// # Errors
    /// The number of runs is out of range, or the directory cannot be made or written to: before the
    /// runs, since nobody wants to wait for an error that was there from the start.
    fn new(paper: &'static Paper, args: &ReproduceArgs) -> Result<Self, Failure> {
        let reproduction = match &args.figure {
            None => Reproduction::new(paper, args.runs),
            Some(name) => Reproduction::figure(paper, name, args.runs)
                .with_context(|| {
                    let stem = Path::new(name).file_stem().and_then(|stem| stem.to_str());
                    let known = |stem: &&str| paper.figure_names().any(|figure| figure == *stem);
                    if let Some(stem) = stem.filter(known) {
                        return format!(
                            "--figure: a figure is written as SVG and its data as CSV, and in no other \
                             format; write --figure {stem}, and convert the picture from there"
                        );
                    }
                    let hint = suggestion(name, paper.figure_names());
                    format!("--figure: {} has no figure `{name}`; {hint}", paper.name)
                })
                .or_exit(Exit::Usage)?,
        };
        let reproduction = reproduction.or_exit(Exit::Usage)?;
        let directory = match args.paper() {
            Choice::One(_) => args.out().to_path_buf(),
            Choice::All => args.out().join(paper.name),
        };
        if args.figure.is_some() && directory.join(PAGE).exists() {
            let problem = anyhow::anyhow!(
                "--out: {0} has a page, whose figures are all of the same runs; name another directory, or \
                 remove {0}/{PAGE}",
                directory.display()
            );
            return Err(problem).or_exit(Exit::Usage);
        }
        let is_new = !directory.exists();
        std::fs::create_dir_all(&directory)
            .with_context(|| format!("--out: making the directory {}", directory.display()))
            .or_exit(Exit::Device)?;
        writable(&directory, "the pages")
            .context("--out")
            .or_exit(Exit::Device)?;
        Ok(Self {
            reproduction,
            directory,
            is_new,
        })
    }

    /// Makes the runs, and writes the files as soon as they are over; nothing if an interrupt cut them off.
    fn make(&self, args: &ReproduceArgs, progress: &ExperimentProgress) -> Option<Made> {
        let failed = |problem, exit| {
            Some(Made {
                outcome: Err(problem),
                exit,
                broken: 0,
                missed: Vec::new(),
            })
        };
        let results = match self
            .reproduction
            .experiment()
            .run(args.workers.jobs, progress)
        {
            Ok(results) => results,
            Err(error) => return failed(error.into(), Exit::Device),
        };
        if progress.cancel.load(Ordering::Relaxed) {
            return None;
        }
        let broken = results.iter().map(|point| point.aggregate.failed).sum();
        let name = self.reproduction.paper().name;
        let outcome = match self
            .reproduction
            .outcome(results, &command(name, args.runs))
        {
            Ok(outcome) => outcome,
            Err(error) => return failed(error.into(), Exit::Failed),
        };
        let missed = missed_goals(self.reproduction.paper(), &outcome);
        match self.write(args, &outcome.files) {
            Ok(()) => Some(Made {
                exit: if broken > 0 || !missed.is_empty() {
                    Exit::Failed
                } else {
                    Exit::Done
                },
                outcome: Ok(outcome),
                broken,
                missed,
            }),
            Err(error) => failed(error, Exit::Device),
        }
    }
}

impl Place {
    /// Writes the files, the page last. Earlier pages are removed first, the overview too: after an
    /// interrupt, all that is there is whole.
    fn write(&self, args: &ReproduceArgs, files: &[OutputFile]) -> anyhow::Result<()> {
        if matches!(args.paper(), Choice::All) {
            OVERVIEW
                .iter()
                .try_for_each(|name| remove(&args.out().join(name)))?;
        }
        let (pages, others): (Vec<_>, Vec<_>) = files.iter().partition(|file| file.name == PAGE);
        if !pages.is_empty() {
            remove(&self.directory.join(PAGE))?;
            remove(&self.directory.join(CLAIMS))?;
        }
        let mut files = others.into_iter().chain(pages);
        files.try_for_each(|file| write(&self.directory, file))
    }
}

/// Writes the overview, and reports the files and the failures.
fn finish(args: &ReproduceArgs, places: &[Place], made: Vec<Made>) -> Result<Exit, Failure> {
    let mut worst = Exit::Done;
    let mut attempts = Vec::new();
    for (place, made) in places.iter().zip(made) {
        let paper = place.reproduction.paper();
        if made.broken > 0 {
            eprintln!(
                "fulmar: {}: {} of the runs broke a promise",
                paper.name, made.broken
            );
        }
        match &made.outcome {
            Err(error) => eprintln!("fulmar: {}: {error:#}", paper.name),
            Ok(outcome) if !made.missed.is_empty() => {
                let (missed, goals) = (made.missed.len(), outcome.claims.len());
                let missed_goals = made.missed.join(", ");
                eprintln!(
                    "fulmar: {}: {missed} of {goals} goals are missed: {missed_goals}",
                    paper.name
                );
            }
            Ok(_) => {}
        }
        if made.exit != Exit::Done {
            worst = made.exit;
        }
        attempts.push(Attempt {
            paper,
            outcome: made.outcome.map_err(|error| format!("{error:#}")),
        });
    }
    if let Some(few) = few_runs(&attempts) {
        let what = match args.figure {
            None => "verdicts are not to be relied on",
            Some(_) => "the intervals are wider than the paper's figure needs",
        };
        eprintln!("fulmar: warning: {few}: {what}; leave out --runs");
    }
    let whole = attempts.iter().any(|attempt| attempt.outcome.is_ok());
    if matches!(args.paper(), Choice::All) && whole {
        let files = overview(&attempts, &command(args.paper().name(), args.runs));
        for file in files.or_exit(Exit::Failed)? {
            write(args.out(), &file).or_exit(Exit::Device)?;
        }
    }
    if whole {
        let written = match &args.figure {
            None => vec![PAGE.to_owned()],
            // The picture, and its data.
            Some(_) => attempts.iter().flat_map(files_of).rev().collect(),
        };
        for file in written {
            output::line(&args.out().join(file).display().to_string())?;
        }
    }
    Ok(worst)
}

/// The names of the files of a paper that went well.
fn files_of(attempt: &Attempt) -> Vec<String> {
    let files = attempt.outcome.iter().flat_map(|outcome| &outcome.files);
    files.map(|file| file.name.clone()).collect()
}

/// The command as the page gives it: without arguments on which its content does not depend.
fn command(name: &str, runs: Option<usize>) -> String {
    let runs = runs.map(|runs| format!(" --runs {runs}"));
    format!(
        "fulmar reproduce {name} --out DIR{}",
        runs.unwrap_or_default()
    )
}

/// The suffix of a file while it is written.
const PART: &str = ".part";

/// The whole file or none of it, whenever the command is ended.
fn write(directory: &Path, file: &OutputFile) -> anyhow::Result<()> {
    let path = directory.join(&file.name);
    let part = directory.join(format!("{}{PART}", file.name));
    std::fs::write(&part, &file.text)
        .and_then(|()| std::fs::rename(&part, &path))
        .inspect_err(|_| {
            // The part that could be written is of no use.
            drop(std::fs::remove_file(&part));
        })
        .with_context(|| format!("writing {}", path.display()))
}

/// Removes a file of an earlier run, if it is there.
fn remove(path: &Path) -> anyhow::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("removing {}", path.display()))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fulmar_reproduce::{AUTO, Checked};

    fn file(name: &str) -> OutputFile {
        OutputFile {
            name: name.to_owned(),
            text: "new".to_owned(),
        }
    }

    #[test]
    fn a_goal_that_is_not_met_is_missed_and_a_claim_of_a_paper_is_a_finding() {
        let claim = |id: &str, verdict| Checked {
            id: id.to_owned(),
            place: String::new(),
            claim: String::new(),
            verdict,
            figure: String::new(),
            comment: String::new(),
            open: false,
            changes: None,
        };
        let outcome = PaperOutcome {
            claims: vec![
                claim("met", ClaimVerdict::Reproduced),
                claim("near", ClaimVerdict::Partly),
                claim("far", ClaimVerdict::Not),
            ],
            figures: 0,
            files: Vec::new(),
            few: None,
        };
        assert_eq!(missed_goals(&AUTO, &outcome), ["near", "far"]);
        assert!(missed_goals(PAPERS[0], &outcome).is_empty());
    }

    #[test]
    fn when_writing_fails_no_page_of_an_earlier_time_stands_beside_the_new_data() {
        let directory = tempfile::tempdir().expect("a directory");
        let args = ReproduceArgs {
            paper: Some(Choice::All),
            out: Some(directory.path().to_owned()),
            figure: None,
            list: false,
            find: None,
            runs: Some(1),
            workers: Workers { jobs: 1 },
        };
        let place = Place::new(PAPERS[0], &args).expect("room");
        let there = |path: &str| directory.path().join(path).exists();
        let page = format!("{}/{PAGE}", PAPERS[0].name);
        for name in [page.as_str(), OVERVIEW[0], OVERVIEW[1]] {
            std::fs::write(directory.path().join(name), "old").expect("room");
        }
        let files = [file("a.csv"), file("none/b.csv"), file(PAGE)];
        place
            .write(&args, &files)
            .expect_err("there is no place for b");
        let left = [page.as_str(), OVERVIEW[0], OVERVIEW[1]].map(there);
        assert_eq!(left, [false; 3]);
        place
            .write(&args, &[file(PAGE), file("a.csv")])
            .expect("room");
        assert!(there(&page));
        let count = std::fs::read_dir(&place.directory).expect("it").count();
        assert_eq!(count, 2, "no part is left");
    }
}
