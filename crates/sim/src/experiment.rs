//! Sweeps and seeds spread over the processor's cores, with results that do not depend on the number of
//! cores.
//!
//! Run `i` of every point has seed `first + i`: points are compared under the same draws. Records
//! come out in order of point and run, whatever order they were computed in.

use crate::measure::capacity::{HopLaw, Yardsticks, yardsticks};
use crate::recording::RunRecording;
use crate::report::aggregate::AggregateRecord;
use crate::report::link::HopMetrics;
use crate::report::record::{Metrics, RunRecord, SCHEMA};
use crate::scenario::{AppDirection, FlowPath, FlowPlan, HopPlan, PointPlan, SweepPoint};
use crate::tap::{Observed, Observers};
use crate::world::{EndReason, World, WorldOptions};
use core::ops::Range;
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use fulmar_channel::ChannelConfig;
use fulmar_proto::units::{BitErrorRate, ByteCount, PacketErrorRate, Probability};
use rayon::prelude::*;
use std::borrow::Cow;
use std::io;
use std::sync::Arc;

/// An experiment ready to run.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// The name of the scenario's file, as records give it.
    pub scenario: String,
    /// The points.
    pub points: Vec<SweepPoint>,
    /// The properties of the drivers.
    pub options: WorldOptions,
}

/// The runs of one point, and their summary.
#[derive(Clone, Debug)]
pub struct PointResult {
    /// The runs in the order of seeds; after a cancellation, those that had ended by then.
    pub runs: Vec<RunRecord>,
    /// The summary over `runs`.
    pub aggregate: AggregateRecord,
}

/// One run of an experiment: its point and its number within the point, both from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RunIndex {
    /// The point.
    pub point: usize,
    /// The number of the run within the point; its seed is the first run's seed plus this number.
    pub run: usize,
}

/// The progress of an experiment, and the request to stop it.
#[derive(Debug, Default)]
pub struct ExperimentProgress {
    /// Set it to stop.
    pub cancel: Arc<AtomicBool>,
    /// Runs that are done, or were dropped after the request to stop.
    pub done: AtomicUsize,
    /// The expected cost of those runs, summed ([`Experiment::cost`]).
    pub cost: AtomicU64,
}

impl ExperimentProgress {
    /// Counts one more finished run, whose expected cost was `cost`.
    pub(crate) fn advance(&self, cost: u64) {
        self.cost.fetch_add(cost, Ordering::Relaxed);
        self.done.fetch_add(1, Ordering::Relaxed);
    }
}

/// The most that one run is taken to cost, so that the sum over a million runs does not overflow.
const COST_MAX: u64 = 1 << 40;

/// The reason why an experiment gave no results.
#[derive(Debug, thiserror::Error)]
pub enum ExperimentError {
    /// The worker threads could not be started.
    #[error("cannot start {jobs} worker threads: {cause}")]
    Threads {
        /// The number of threads asked for.
        jobs: usize,
        /// The cause.
        cause: rayon::ThreadPoolBuildError,
    },
}

impl Experiment {
    /// The number of runs in all.
    pub fn run_count(&self) -> usize {
        self.points.iter().map(|point| point.plan.run.runs).sum()
    }

    /// The expected cost of a run of a point, relative to those of other points: the octets that its
    /// applications send, or that its narrowest hop carries until the run ends if that is less.
    pub fn cost(&self, point: usize) -> u64 {
        let plan = &self.points[point].plan;
        let octets = plan.flows.iter().map(|flow| flow.traffic.total().0);
        let octets = octets.fold(0, u64::saturating_add);
        let rates = plan.hops.iter().filter_map(|hop| hop.forward.mean_rate());
        let carried = rates.map(|rate| rate.bytes_in(plan.run.duration).0).min();
        octets.min(carried.unwrap_or(COST_MAX)).clamp(1, COST_MAX)
    }

    /// The expected cost of all runs.
    pub fn total_cost(&self) -> u64 {
        let points = self.points.iter().enumerate();
        let costs = points.map(|(index, point)| {
            let runs = u64::try_from(point.plan.run.runs).unwrap_or(u64::MAX);
            self.cost(index).saturating_mul(runs)
        });
        costs.fold(0, u64::saturating_add)
    }

    /// Runs everything on `jobs` threads (0: one for each core). Cancelling ends early with the runs that
    /// had ended by then; a point without such a run is left out.
    ///
    /// # Errors
    /// Threads could not be started.
    pub fn run(
        &self,
        jobs: usize,
        progress: &ExperimentProgress,
    ) -> Result<Vec<PointResult>, ExperimentError> {
        let pool = pool(jobs)?;
        let tasks: Vec<RunIndex> = self.indices().collect();
        let records: Vec<Option<RunRecord>> = pool.install(|| {
            tasks
                .par_iter()
                .with_max_len(1)
                .map(|&index| self.counted(index, progress))
                .collect()
        });
        let mut records = records.into_iter();
        Ok(self
            .points
            .iter()
            .filter_map(|point| {
                let planned = point.plan.run.runs;
                let runs: Vec<RunRecord> = records.by_ref().take(planned).flatten().collect();
                let aggregate = AggregateRecord::of(&runs, planned)?;
                Some(PointResult { runs, aggregate })
            })
            .collect())
    }

    /// Makes the runs for which `wanted` holds on `jobs` threads (0: one for each core), and hands each
    /// record to `keep` as soon as it is there, in any order. The first error of `keep` ends the
    /// experiment, and so does cancelling; runs that have not ended by then are dropped.
    ///
    /// # Errors
    /// Threads could not be started; or the error of `keep`.
    pub fn run_wanted<E: Send>(
        &self,
        jobs: usize,
        progress: &ExperimentProgress,
        wanted: impl Fn(RunIndex) -> bool,
        keep: impl Fn(&RunRecord) -> Result<(), E> + Sync,
    ) -> Result<Result<(), E>, ExperimentError> {
        let tasks: Vec<RunIndex> = self.indices().filter(|&index| wanted(index)).collect();
        Ok(pool(jobs)?.install(|| {
            tasks
                .par_iter()
                .with_max_len(1)
                .try_for_each(|&RunIndex { point, run }| {
                    if !progress.cancel.load(Ordering::Relaxed)
                        && let Some(record) = self.one(point, run, &progress.cancel)
                    {
                        keep(&record)?;
                    }
                    progress.advance(self.cost(point));
                    Ok(())
                })
        }))
    }

    /// Makes the runs from number `first` on, `count` of them in the order of [`Self::indices`], on `jobs`
    /// threads (0: one for each core). Cancelled, it gives those before the first that did not end.
    ///
    /// # Errors
    /// Threads could not be started.
    pub fn run_span(
        &self,
        first: usize,
        count: usize,
        jobs: usize,
        progress: &ExperimentProgress,
    ) -> Result<Vec<RunRecord>, ExperimentError> {
        let tasks: Vec<RunIndex> = self.span(first..first.saturating_add(count)).collect();
        let records: Vec<Option<RunRecord>> = pool(jobs)?.install(|| {
            let made = tasks
                .par_iter()
                .with_max_len(1)
                .map(|&index| self.counted(index, progress));
            made.collect()
        });
        Ok(records.into_iter().map_while(|record| record).collect())
    }

    /// Every run, in the order of points and seeds.
    pub fn indices(&self) -> impl Iterator<Item = RunIndex> {
        let runs = |point: &SweepPoint| point.plan.run.runs;
        self.points
            .iter()
            .enumerate()
            .flat_map(move |(point, plan)| (0..runs(plan)).map(move |run| RunIndex { point, run }))
    }

    /// The runs with these numbers in the order of [`Self::indices`], found without passing over those before them.
    pub fn span(&self, runs: Range<usize>) -> impl Iterator<Item = RunIndex> {
        let mut next = 0;
        self.points
            .iter()
            .enumerate()
            .flat_map(move |(point, plan)| {
                let first = next;
                next += plan.plan.run.runs;
                let within = |number: usize| number.clamp(first, next) - first;
                (within(runs.start)..within(runs.end)).map(move |run| RunIndex { point, run })
            })
    }

    /// Runs the first run of the first point, shown to the observers. Their report is returned in any case,
    /// after a cancellation too.
    pub fn run_observed(
        &self,
        observers: Observers,
        progress: &ExperimentProgress,
    ) -> (Option<PointResult>, io::Result<Observed>) {
        let mut world = self.world(0, 0, observers);
        let end = world.run(&progress.cancel);
        let observed = world.finish_observers(end);
        progress.advance(self.cost(0));
        let result = self.record(0, 0, &world, end).and_then(|record| {
            let runs = vec![record];
            let aggregate = AggregateRecord::of(&runs, 1)?;
            Some(PointResult { runs, aggregate })
        });
        (result, observed)
    }

    /// Makes the first run of the first point and keeps its single events; `None` after a cancellation.
    pub fn run_recorded(&self, progress: &ExperimentProgress) -> Option<(RunRecord, RunRecording)> {
        let mut world = self.world(0, 0, Observers::recording());
        let end = world.run(&progress.cancel);
        progress.advance(self.cost(0));
        let is_wanted = !progress.cancel.load(Ordering::Relaxed);
        let record = self.record(0, 0, &world, end).filter(|_| is_wanted)?;
        Some((record, world.take_recording()?))
    }

    fn world(&self, index: usize, run: usize, observers: Observers) -> World {
        let point = &self.points[index];
        let seed = point.plan.run.seed.wrapping_add(run as u64);
        let mut about = format!("scenario {}, point {index}", self.scenario);
        for (path, value) in &point.varied {
            about = format!("{about}, {path} {value}");
        }
        about = format!("{about}, seed {seed}");
        let observers = Observers {
            scenario: self.scenario.clone(),
            point: index,
            about,
            ..observers
        };
        World::observed_by(&point.plan, seed, &self.options, observers)
            .expect("reading a plan checks every channel's settings")
    }

    /// One run, counted in the progress; `None` if it was cut off.
    fn counted(&self, index: RunIndex, progress: &ExperimentProgress) -> Option<RunRecord> {
        let RunIndex { point, run } = index;
        let is_wanted = !progress.cancel.load(Ordering::Relaxed);
        let record = is_wanted.then(|| self.one(point, run, &progress.cancel));
        progress.advance(self.cost(point));
        record.flatten()
    }

    /// One run; `None` if it was cut off.
    fn one(&self, index: usize, run: usize, cancel: &AtomicBool) -> Option<RunRecord> {
        let mut world = self.world(index, run, Observers::default());
        let end = world.run(cancel);
        let is_wanted = !cancel.load(Ordering::Relaxed);
        is_wanted
            .then(|| self.record(index, run, &world, end))
            .flatten()
    }

    fn record(&self, index: usize, run: usize, world: &World, end: EndReason) -> Option<RunRecord> {
        let point = &self.points[index];
        let plan = &point.plan;
        let seed = plan.run.seed.wrapping_add(run as u64);
        (end != EndReason::Cancelled).then(|| RunRecord {
            record: Cow::Borrowed("run"),
            schema: SCHEMA,
            version: Cow::Borrowed(env!("CARGO_PKG_VERSION")),
            scenario: self.scenario.clone(),
            point: index,
            run,
            seed,
            parameters: point.parameters.clone(),
            metrics: Metrics::of(world, end, yardsticks_of(plan)),
            error: world.error(),
            flows: Metrics::flows_of(world),
            hops: HopMetrics::of(world),
        })
    }
}

/// A pool of `jobs` worker threads, or of one for each core if that is 0.
pub(crate) fn pool(jobs: usize) -> Result<rayon::ThreadPool, ExperimentError> {
    rayon::ThreadPoolBuilder::new()
        .num_threads(jobs)
        .build()
        .map_err(|cause| ExperimentError::Threads { jobs, cause })
}

/// The yardsticks of the paths that the first flow takes; in a graph only if all measured flows take them.
pub fn yardsticks_of(plan: &PointPlan) -> Option<Yardsticks> {
    let flow = plan.flows.first()?;
    let is_own = |hop: &HopPlan| hop.forward.own.is_some() || hop.reverse.own.is_some();
    let has_no_law = |hop: &HopPlan| !hop.changes.is_empty() || is_own(hop);
    let goes_elsewhere = |other: &FlowPlan| other.measured && other.ends != flow.ends;
    if plan.hops.iter().any(has_no_law)
        || !plan.topology.is_chain() && plan.flows.iter().any(goes_elsewhere)
    {
        // There is no one law, or none that is known.
        return None;
    }
    let paths = &flow.ends.paths;
    let used = if flow.is_bonded() { paths.len() } else { 1 };
    let used = paths.iter().take(used).filter(|path| path.cost == 0);
    let mut sum: Option<Yardsticks> = None;
    for path in used.clone() {
        let others = used.clone().filter(|other| !core::ptr::eq(*other, path));
        let is_shared = |other: &FlowPath| other.steps.iter().any(|step| path.steps.contains(step));
        if { others }.any(is_shared) {
            return None;
        }
        let own = yardsticks_on(plan, flow, path)?;
        sum = Some(sum.map_or(own, |sum| Yardsticks {
            capacity_bps: sum.capacity_bps + own.capacity_bps,
            arq_bound_bps: sum.arq_bound_bps + own.arq_bound_bps,
        }));
    }
    sum
}

fn yardsticks_on(plan: &PointPlan, flow: &FlowPlan, path: &FlowPath) -> Option<Yardsticks> {
    // The order of products is that of hops, whichever way they are taken.
    let mut steps = path.steps.clone();
    steps.sort_unstable();
    let hops = steps.iter().map(|step| match step.direction {
        AppDirection::Forward => &plan.hops[step.hop].forward,
        AppDirection::Reverse => &plan.hops[step.hop].reverse,
    });
    let lan = plan.lan.iter().map(|lan| &lan.config);
    yardsticks(hops.chain(lan).map(|config| law(config, flow.mtu)))
}

/// The long-run law of a channel, outside of outages, for packets of this length.
fn law(config: &ChannelConfig, packet: ByteCount) -> HopLaw {
    let ber = config.bits.rate();
    let law = HopLaw::steady(config.mean_rate(), config.loss.mean_loss(), ber, packet);
    let Some(fading) = &config.fading else {
        return law;
    };
    let arrives = (1.0 - law.loss.value()) * (1.0 - fading.dark_share());
    let hit = fading.packet_error_rate(packet).value();
    // Two symmetric channels in series: 1 - 2B multiplies.
    let unbiased = (1.0 - 2.0 * ber.value()) * (1.0 - 2.0 * fading.equivalent_rate().value());
    HopLaw {
        rate: config.mean_rate(),
        loss: PacketErrorRate::new(1.0 - arrives).unwrap_or_default(),
        ber: BitErrorRate::new((1.0 - unbiased) / 2.0).unwrap_or_default(),
        intact: Probability::new(law.intact.value() * (1.0 - hit)).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Document, points};

    #[test]
    fn a_source_without_end_costs_what_the_link_carries() {
        let cost = |bytes: &str| {
            let text = format!(
                "[run]\nduration = \"10s\"\n[[hop]]\nrate = \"8mbit\"\n[flow]\ntransport = \"udp\"\n\
                 traffic = \"bulk\"\nbytes = \"{bytes}\"\n"
            );
            let document = Document::parse("my.toml", &text).expect("sound");
            let points = points(&document).expect("sound");
            let experiment = Experiment {
                scenario: String::new(),
                points,
                options: WorldOptions::default(),
            };
            experiment.cost(0)
        };
        assert_eq!(cost("10GB"), 10_000_000);
        assert_eq!(cost("1MB"), 1_000_000);
    }
}
