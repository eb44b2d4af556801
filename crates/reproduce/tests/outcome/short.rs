//! The papers with few and short runs, made once for all tests.

use fulmar_reproduce::{FSO, LT_TCP, MULTI_MODE, PAPERS, Paper, PaperOutcome, Reproduction};
use fulmar_sim::experiment::{Experiment, ExperimentProgress, PointResult};
use std::sync::OnceLock;
use std::time::Duration;

/// A paper's runs, those of long duration cut off.
pub(crate) struct Short {
    pub(crate) made: Reproduction,
    pub(crate) experiment: Experiment,
    pub(crate) results: Vec<PointResult>,
}

/// Runs of each point.
pub(crate) fn runs(paper: &Paper) -> usize {
    if paper.name == MULTI_MODE.name { 2 } else { 1 }
}

/// The duration of a run at most; the other papers' runs end by themselves.
fn longest(paper: &Paper) -> Duration {
    match paper.name {
        name if name == LT_TCP.name => Duration::from_secs(3),
        name if name == FSO.name => Duration::from_millis(200),
        _ => Duration::MAX,
    }
}

impl Short {
    fn run(paper: &'static Paper) -> Self {
        let made = Reproduction::new(paper, Some(runs(paper)));
        let made = made.expect("the tables are valid scenarios");
        let mut experiment = made.experiment().clone();
        for point in &mut experiment.points {
            point.plan.run.duration = point.plan.run.duration.min(longest(paper));
        }
        let results = experiment.run(2, &ExperimentProgress::default());
        let results = results.expect("threads start");
        Self {
            made,
            experiment,
            results,
        }
    }

    /// The outcome of these results, or of others of the same runs.
    pub(crate) fn outcome(&self, results: Vec<PointResult>, command: &str) -> PaperOutcome {
        let outcome = self.made.outcome(results, command);
        outcome.expect("every figure can be drawn")
    }
}

/// A paper's runs; the first who asks waits for them.
pub(crate) fn short(paper: &'static Paper) -> &'static Short {
    static MADE: [OnceLock<Short>; PAPERS.len()] = [const { OnceLock::new() }; PAPERS.len()];
    let place = PAPERS.iter().position(|known| known.name == paper.name);
    MADE[place.expect("a paper of ours")].get_or_init(|| Short::run(paper))
}
