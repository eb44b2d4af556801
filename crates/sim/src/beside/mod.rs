//! `auto` beside every fixed setting: the same scenario and seeds with each setting of a grid in its place, and how far `auto`
//! is from the best of them in hindsight.
//!
//! [`AutoScenario`] takes a scenario in which one flow has `mode = "auto"`. [`FixedSetting::grid`] lists the settings, [`score`] says
//! by what they are compared, and [`AutoComparison`] has the result. [`random`] draws scenarios, and [`summary`] puts many
//! comparisons in a few figures.

pub mod comparison;
mod hindsight;
pub mod random;
pub mod score;
mod setting;
pub mod summary;

pub use comparison::{AutoComparison, SettingScore, Unfit};
pub use setting::FixedSetting;

use crate::app::Traffic;
use crate::experiment::{ExperimentError, ExperimentProgress, pool};
use crate::measure::flow::{FlowMeter, FlowPunctuality};
use crate::scenario::{AppDirection, FlowPlan, HopPlan, PointPlan, TransportPlan};
use crate::world::{EndReason, World, WorldOptions};
use core::sync::atomic::{AtomicBool, Ordering};
use fulmar_proto::repair::Deliver;
use fulmar_proto::units::{Duration, Instant};
use hindsight::{LEARNED_FROM, LinkPart};
use rayon::prelude::*;
use score::{Achieved, ScoredGoal};

/// A scenario that is run with `auto` and with every fixed setting.
#[derive(Clone, Debug)]
pub struct AutoScenario {
    /// The name of the scenario.
    pub name: String,
    /// The plan with `auto`, then those with the settings of the grid, by their place in it; `None` where a setting does not
    /// fit the flow.
    plans: Vec<Option<PointPlan>>,
    goal: ScoredGoal,
    /// Whether a setting that loses something misses the goal.
    wants_all: bool,
    /// The octets for each octet of message that the goal allows beyond those of this setting of the grid.
    overhead: Option<(usize, f64)>,
    /// The times at which each part's change can be known, the first part's being the start.
    known_at: Vec<Instant>,
}

/// A scenario that cannot be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotComparable {
    /// Not exactly one flow has the mode `auto`.
    #[error("{0} flows of transport \"aerotp\" have mode = \"auto\"; one must, with count 1")]
    Flows(usize),
    /// The flow is not measured.
    #[error("the flow with mode = \"auto\" has measured = false; remove that")]
    Unmeasured,
    /// Nothing says what late messages are worth.
    #[error(
        "the flow with mode = \"auto\" has neither a deadline nor bulk traffic, so nothing says what is better; \
         write deadline = \"150ms\""
    )]
    NoGoal,
}

/// One run of one setting: all of it, and the parts between changes of hops.
#[derive(Clone, Debug)]
struct RunAchieved {
    all: Achieved,
    parts: Vec<LinkPart>,
    /// A broken promise.
    error: Option<String>,
}

/// The share of a run that one setting's run is.
#[derive(Clone, Copy, Debug)]
struct Task {
    scenario: usize,
    setting: usize,
    run: usize,
}

impl AutoScenario {
    /// The scenario with the grid of fixed settings.
    ///
    /// # Errors
    /// [`NotComparable`].
    pub fn of(name: String, plan: &PointPlan) -> Result<Self, NotComparable> {
        let is_auto = |flow: &FlowPlan| matches!(&flow.transport, TransportPlan::Aerotp(own) if own.is_auto());
        let autos: Vec<usize> = (0..plan.flows.len())
            .filter(|index| is_auto(&plan.flows[*index]))
            .collect();
        let &[index] = autos.as_slice() else {
            return Err(NotComparable::Flows(autos.len()));
        };
        let flow = &plan.flows[index];
        if !flow.measured {
            return Err(NotComparable::Unmeasured);
        }
        let TransportPlan::Aerotp(own) = &flow.transport else {
            return Err(NotComparable::Flows(0));
        };
        let bulk = matches!(flow.traffic, Traffic::Bulk { .. });
        let goal = match (own.goal(), bulk) {
            (Some(goal), false) => ScoredGoal::Messages {
                may_miss: f64::from(goal.missed_millionths) / 1e6,
            },
            (_, true) => ScoredGoal::Bulk {
                rate: slowest(plan, flow),
            },
            (None, false) => return Err(NotComparable::NoGoal),
        };
        let grid = FixedSetting::grid();
        let mut plans = vec![Some(plan.clone())];
        plans.extend(grid.iter().map(|setting| {
            let mut plan = plan.clone();
            plan.flows[index] = setting.of_flow(flow)?;
            Some(plan)
        }));
        let takes_back = own.goal().is_some_and(|goal| goal.takes_back());
        let percent = own.connection.thin.map(|thin| thin.overhead_percent);
        Ok(Self {
            name,
            plans,
            goal,
            wants_all: own.goal().is_none_or(|goal| goal.deliver == Deliver::All),
            overhead: percent
                .filter(|_| !bulk)
                .map(|percent| (usize::from(takes_back), f64::from(percent) / 100.0)),
            known_at: known_at(plan, flow),
        })
    }

    /// The same with no more than every `nth` setting, and those that an overhead is counted from: for a first impression.
    #[must_use]
    pub fn with_every(mut self, nth: usize) -> Self {
        for (place, plan) in self.plans.iter_mut().enumerate().skip(3) {
            if place % nth.max(1) != 0 {
                *plan = None;
            }
        }
        self
    }

    /// The number of runs, of all settings that fit.
    pub fn run_count(&self) -> usize {
        self.plans.iter().flatten().map(|plan| plan.run.runs).sum()
    }

    fn tasks(&self, scenario: usize) -> impl Iterator<Item = Task> {
        self.plans
            .iter()
            .enumerate()
            .filter_map(|(setting, plan)| Some((setting, plan.as_ref()?.run.runs)))
            .flat_map(move |(setting, runs)| {
                (0..runs).map(move |run| Task {
                    scenario,
                    setting,
                    run,
                })
            })
    }

    fn achieved(&self, task: Task, cancel: &AtomicBool) -> Option<RunAchieved> {
        let plan = self.plans[task.setting].as_ref()?;
        let seed = plan.run.seed.wrapping_add(task.run as u64);
        let mut world = World::new(plan, seed, &WorldOptions::default())
            .expect("reading a plan checks every channel's settings");
        self.known_at.iter().for_each(|at| world.mark_at(*at));
        let end = world.run(cancel);
        (end != EndReason::Cancelled).then(|| RunAchieved::of(&world, &self.known_at))
    }
}

/// Runs every scenario with every setting on `jobs` threads (0: one for each core). After a cancellation the scenarios of which
/// every run was over are left.
///
/// # Errors
/// Threads could not be started.
pub fn compare(
    scenarios: &[AutoScenario],
    jobs: usize,
    progress: &ExperimentProgress,
) -> Result<Vec<AutoComparison>, ExperimentError> {
    let tasks: Vec<Task> = scenarios
        .iter()
        .enumerate()
        .flat_map(|(index, scenario)| scenario.tasks(index))
        .collect();
    let achieved: Vec<(Task, Option<RunAchieved>)> = pool(jobs)?.install(|| {
        tasks
            .par_iter()
            .with_max_len(1)
            .map(|&task| {
                let cancelled = progress.cancel.load(Ordering::Relaxed);
                let achieved = (!cancelled)
                    .then(|| scenarios[task.scenario].achieved(task, &progress.cancel))
                    .flatten();
                progress.advance(1);
                (task, achieved)
            })
            .collect()
    });
    let of_scenario = |index: usize| {
        let own = achieved
            .iter()
            .filter(move |(task, _)| task.scenario == index);
        own.map(|(task, achieved)| Some((task.setting, achieved.as_ref()?)))
            .collect::<Option<Vec<_>>>()
    };
    let numbered = scenarios.iter().enumerate();
    Ok(numbered
        .filter_map(|(index, scenario)| AutoComparison::of(scenario, &of_scenario(index)?))
        .collect())
}

/// The lowest rate on the way there, at the beginning, in bits per second.
fn slowest(plan: &PointPlan, flow: &FlowPlan) -> f64 {
    let steps = flow.ends.first_steps().iter();
    let rates = steps.filter_map(|step| match step.direction {
        AppDirection::Forward => plan.hops[step.hop].forward.mean_rate(),
        AppDirection::Reverse => plan.hops[step.hop].reverse.mean_rate(),
    });
    rates
        .map(|rate| rate.as_bits_per_second() as f64)
        .fold(f64::INFINITY, f64::min)
}

/// The time from each change on, the start being the first, after which it can be known, but not later than the next change.
fn known_at(plan: &PointPlan, flow: &FlowPlan) -> Vec<Instant> {
    let mut changes: Vec<Instant> = (plan.hops.iter().flat_map(|hop| &hop.changes))
        .map(|change| Instant::START + change.at)
        .collect();
    changes.sort_unstable();
    changes.dedup();
    let learned = flow.traffic.elapsed(LEARNED_FROM);
    // The round trip at that time, as far as delay makes it.
    let round_trip = |at: Instant| -> Duration {
        let hop = |hop: &HopPlan| {
            let now = hop
                .changes
                .iter()
                .rfind(|one| Instant::START + one.at <= at);
            let (there, back) = now.map_or((&hop.forward, &hop.reverse), |one| {
                (&one.forward, &one.reverse)
            });
            there.delay + back.delay
        };
        let steps = flow.ends.first_steps().iter();
        steps
            .map(|step| hop(&plan.hops[step.hop]))
            .fold(Duration::ZERO, |sum, one| sum + one)
    };
    let begins = [Instant::START].into_iter().chain(changes.iter().copied());
    let ends = changes.iter().copied().chain([Instant::FAR_FUTURE]);
    let known = |(from, to): (Instant, Instant)| {
        let before_next = to - Duration::from_nanos(1);
        (from + round_trip(from) + learned).clamp(from + Duration::from_nanos(1), before_next)
    };
    begins.zip(ends).map(known).collect()
}

impl RunAchieved {
    fn of(world: &World, known_at: &[Instant]) -> Self {
        let meters: Vec<&FlowMeter> = world.measured().collect();
        let marks = world.marks();
        let begin = (Instant::START, 0, 0);
        let end = (Instant::FAR_FUTURE, world.octets_sent(), delivered(&meters));
        let ends: Vec<_> = marks.iter().copied().chain([end]).collect();
        let begins = [begin].into_iter().chain(marks.iter().copied());
        let over = world.now();
        let begins_at: Vec<Instant> = begins.clone().map(|(at, _, _)| at).collect();
        let parts: Vec<Achieved> = begins
            .zip(&ends)
            .map(|((from, sent, came), &(to, sent_by, came_by))| {
                let mut fates = FlowPunctuality::default();
                let own = |meter: &&FlowMeter| meter.punctuality(from, to);
                meters.iter().filter_map(own).for_each(|own| fates += own);
                let until = to.min(over);
                Achieved {
                    fates,
                    sent: sent_by.saturating_sub(sent),
                    written: fates.total() * piece(&meters),
                    delivered: came_by.saturating_sub(came),
                    seconds: until.saturating_since(from).as_secs_f64(),
                }
            })
            .collect();
        let mut all = Achieved::default();
        for part in &parts {
            all += *part;
        }
        let parts = by_change(begins_at, &parts, known_at);
        let spans = meters.iter().filter_map(|meter| meter.lifetime());
        let longest = spans.map(|(from, to)| to.saturating_since(from)).max();
        all.seconds = longest.unwrap_or_default().as_secs_f64();
        all.written = meters.iter().map(|meter| meter.submitted().0).sum();
        Self {
            all,
            parts,
            error: world.error(),
        }
    }
}

/// The pieces of a run, each with the time at which it begins, by part.
fn by_change(begins: Vec<Instant>, pieces: &[Achieved], known_at: &[Instant]) -> Vec<LinkPart> {
    let mut parts: Vec<LinkPart> = Vec::new();
    for (at, piece) in begins.into_iter().zip(pieces) {
        if known_at.contains(&at) {
            if let Some(part) = parts.last_mut() {
                part.known += *piece;
            }
        } else {
            parts.push(LinkPart {
                unknown: *piece,
                ..LinkPart::default()
            });
        }
    }
    parts
}

fn delivered(meters: &[&FlowMeter]) -> u64 {
    meters.iter().map(|meter| meter.delivered().0).sum()
}

fn piece(meters: &[&FlowMeter]) -> u64 {
    meters.first().map_or(0, |meter| meter.piece().0)
}
