//! The plan that a scenario means: checked settings for one point of an experiment.

use super::SettingsError;
use super::flow::{self, FlowPlan, TransportPlan};
use super::hop::{self, HopPlan, LanPlan};
use super::own::OwnParts;
use super::recordings::{NoRecordings, Recordings};
use super::topology::TopologyPlan;
use super::topology::aliases::AliasPlan;
use super::{lt_tcp, tcp};
use fulmar_proto::units::{ByteCount, Duration, Instant};
use fulmar_settings::Document;
use fulmar_settings::{Keys, TableReader};

/// The runs of a point: their number, their longest duration and their seeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunPlan {
    /// The first run's seed; the others follow by one.
    pub seed: u64,
    /// The number of runs of a point.
    pub runs: usize,
    /// The longest duration of a run, which is cut off there.
    pub duration: Duration,
    /// The most by which wake-ups come late, at random, as those of a loaded real machine do.
    pub lateness: Duration,
}

/// One point of an experiment, ready to run.
#[derive(Clone, Debug, PartialEq)]
pub struct PointPlan {
    /// The number of runs, their duration and their seeds.
    pub run: RunPlan,
    /// The access links, if the ends have any.
    pub lan: Option<LanPlan>,
    /// The measured hops; those of a chain from source to sink.
    pub hops: Vec<HopPlan>,
    /// The nodes that they join.
    pub topology: TopologyPlan,
    /// The flows.
    pub flows: Vec<FlowPlan>,
}

/// The keys at the top. `sweep` is read by [`super::sweep`]; the last two are for people.
pub(super) const KEYS: Keys = &[&[
    "run", "lan", "hop", "change", "flow", "tcp", "lt_tcp", "sweep", "title", "about",
]];
pub(super) const RUN_KEYS: Keys = &[&["seed", "runs", "duration", "lateness"]];

/// The stop time of the ns-3 reference runs.
const DURATION: Duration = Duration::from_secs(300);
/// The most runs of a point.
pub const RUNS_MAX: u64 = 1_000_000;
pub(crate) const HOPS_MAX: usize = 250;
const FLOWS_MAX: usize = 10_000;

impl PointPlan {
    /// Reads a document that names no traces.
    ///
    /// # Errors
    /// As [`PointPlan::read_with`].
    pub fn read(document: &Document) -> Result<Self, SettingsError> {
        Self::read_with(document, &NoRecordings)
    }

    /// Reads a document, and the traces it names out of `recordings`.
    ///
    /// # Errors
    /// The first key that is unknown, missing or out of range, with its place and the remedy; or a
    /// trace that cannot be read.
    pub fn read_with(
        document: &Document,
        recordings: &dyn Recordings,
    ) -> Result<Self, SettingsError> {
        let root = TableReader::root(&document.name, &document.root, KEYS)?;
        let run = Self::read_run(&root)?;
        // They are for people, but must be texts: a list would be a mistake.
        root.text("title")?;
        root.text("about")?;
        let lan = match root.table("lan", hop::LAN_KEYS)? {
            Some(lan) => Some(LanPlan::read(&lan)?),
            None => None,
        };
        let hop_tables = root.tables("hop", hop::KEYS)?;
        if hop_tables.is_empty() || hop_tables.len() > HOPS_MAX {
            let problem = format!("there must be 1 to {HOPS_MAX}, each a table [[hop]]");
            return Err(root.wrong("hop", problem));
        }
        let topology = TopologyPlan::read(&hop_tables)?;
        if lan.is_some() && !topology.is_chain() {
            let problem = "is for a chain; write a [[hop]] for each access link";
            return Err(root.wrong("lan", problem));
        }
        let mut hops: Vec<HopPlan> = hop_tables
            .iter()
            .map(|hop| HopPlan::read(hop, recordings))
            .collect::<Result<_, _>>()?;
        let changes = root.tables("change", hop::CHANGE_KEYS)?;
        HopPlan::read_changes(&mut hops, &changes, &topology, recordings)?;
        let flows = root.tables("flow", flow::KEYS)?;
        if flows.is_empty() || flows.len() > FLOWS_MAX {
            let problem = format!("there must be 1 to {FLOWS_MAX}, each a table [[flow]]");
            return Err(root.wrong("flow", problem));
        }
        let slots: Vec<_> = hops.iter().map(HopPlan::slot).collect();
        let tcp = root.table("tcp", tcp::KEYS)?;
        let lt_tcp = root.table("lt_tcp", lt_tcp::KEYS)?;
        let flows = Self::read_flows(
            &root,
            &flows,
            (tcp.as_ref(), lt_tcp.as_ref()),
            (recordings.own(), &topology, &slots),
        )?;
        let longest = flows.iter().map(|flow| flow.mtu).max().unwrap_or_default();
        for (index, (hop, reader)) in hops.iter().zip(&hop_tables).enumerate() {
            hop.check_queue_above(longest, reader)?;
            let crossing = flows.iter().filter(|flow| flow.ends.crosses(index));
            let longest = crossing.map(|flow| flow.mtu).max().unwrap_or_default();
            hop.check_slots(longest, reader)?;
        }
        if !flows.iter().any(|flow| flow.measured) {
            return Err(root.wrong("flow", "cannot all have measured = false"));
        }
        // Both speak AeroTP, and a node has one endpoint for it.
        let bare = |flow: &FlowPlan| matches!(flow.transport, TransportPlan::Aerotp(_));
        let spliced = |flow: &FlowPlan| matches!(flow.transport, TransportPlan::Gateway(_));
        if flows.iter().any(bare) && flows.iter().any(spliced) {
            let problem = "cannot have transport \"aerotp\" beside \"gateway\" in one scenario";
            return Err(root.wrong("flow", problem));
        }
        let plan = Self {
            run,
            lan,
            hops,
            topology,
            flows,
        };
        plan.check_paths(&root)?;
        Ok(plan)
    }

    /// Checks what flows between the same nodes must have in common.
    fn check_paths(&self, root: &TableReader<'_>) -> Result<(), SettingsError> {
        if self.aliases().is_none() {
            let problem = "there are too many paths that contradict each other; use the same ones for more of the flows";
            return Err(root.wrong("flow", problem));
        }
        let same_nodes = |one: &FlowPlan, other: &FlowPlan| {
            let [from, to] = one.ends.nodes;
            other.ends.nodes == [from, to] || other.ends.nodes == [to, from]
        };
        let bonded = |flow: &&FlowPlan| flow.is_bonded();
        for flow in self.flows.iter().filter(bonded) {
            let spliced = |other: &&FlowPlan| {
                matches!(other.transport, TransportPlan::Gateway(_)) && same_nodes(flow, other)
            };
            let mut others = self.flows.iter().filter(spliced);
            if others.any(|other| !other.ends.has_paths_of(&flow.ends)) {
                let problem = "cannot have different paths between the same two gateways; write the same [[flow.path]] for all \
                               flows between them";
                return Err(root.wrong("flow", problem));
            }
        }
        let sealed = self.flows.iter().filter_map(|flow| match &flow.transport {
            TransportPlan::Aerotp(own) => Some(own.is_sealed()),
            _ => None,
        });
        let mut sealed: Vec<bool> = sealed.collect();
        sealed.dedup();
        if sealed.len() > 1 && !self.topology.is_chain() {
            let problem = "cannot be sealed and not sealed in one graph; write sealed = true or false for all aerotp flows";
            return Err(root.wrong("flow", problem));
        }
        Ok(())
    }

    /// The aliases of the flows' paths; `None` if there are not enough.
    pub(crate) fn aliases(&self) -> Option<AliasPlan> {
        AliasPlan::of(&self.topology, self.flows.iter().map(|flow| &flow.ends))
    }

    /// Reads the flows, each as many times as its `count` says.
    fn read_flows(
        root: &TableReader<'_>,
        readers: &[TableReader<'_>],
        (tcp, lt_tcp): (Option<&TableReader<'_>>, Option<&TableReader<'_>>),
        (own, topology, slots): (&OwnParts, &TopologyPlan, &[Option<ByteCount>]),
    ) -> Result<Vec<FlowPlan>, SettingsError> {
        let mut flows: Vec<FlowPlan> = Vec::new();
        for reader in readers {
            let first = FlowPlan::read(reader, (tcp, lt_tcp), (own, topology, slots))?;
            let count = reader.whole("count", 1..=FLOWS_MAX as u64)?.unwrap_or(1);
            let spacing = reader.duration("spacing")?.unwrap_or_default();
            let count = u32::try_from(count).unwrap_or(u32::MAX);
            flows.extend((0..count).map(|index| FlowPlan {
                start: first.start.saturating_add(spacing.saturating_mul(index)),
                ..first.clone()
            }));
            if flows.len() > FLOWS_MAX {
                let problem = format!("there must be 1 to {FLOWS_MAX}, these are {}", flows.len());
                return Err(root.wrong("flow", problem));
            }
        }
        Ok(flows)
    }

    fn read_run(root: &TableReader<'_>) -> Result<RunPlan, SettingsError> {
        let mut plan = RunPlan {
            seed: 1,
            runs: 1,
            duration: DURATION,
            lateness: Duration::ZERO,
        };
        let Some(run) = root.table("run", RUN_KEYS)? else {
            return Ok(plan);
        };
        if let Some(seed) = run.whole("seed", 0..=u64::MAX)? {
            plan.seed = seed;
        }
        if let Some(runs) = run.whole("runs", 1..=RUNS_MAX)? {
            plan.runs = usize::try_from(runs).unwrap_or(usize::MAX);
        }
        if let Some(duration) = run.duration("duration")? {
            if duration.is_zero() {
                return Err(run.wrong("duration", "must be longer than 0"));
            }
            plan.duration = duration;
        }
        plan.lateness = run.duration("lateness")?.unwrap_or_default();
        Ok(plan)
    }

    /// The time at which a run is cut off.
    pub fn ends_at(&self) -> Instant {
        Instant::START + self.run.duration
    }
}
