//! The keys of `[flow]` that say where it goes, and `[[flow.path]]`.

use super::TopologyPlan;
use crate::scenario::SettingsError;
use fulmar_proto::units::Bitrate;
use fulmar_settings::{Keys, TableReader};

/// The keys of `[flow]` that are read here.
pub(in crate::scenario) const FLOW_KEYS: [&str; 4] = ["from", "to", "via", "path"];
/// The keys of `[[flow.path]]`.
pub(in crate::scenario) const PATH_KEYS: Keys = &[&["via", "cost", "rate"]];

/// The paths that a session between gateways has, at most.
const PATHS_MAX: usize = 8;

/// The end that has the sending application.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AppDirection {
    /// The source end, the first node; of a hop, the node where it begins.
    Forward,
    /// The sink end, the last node; of a hop, the node to which it leads.
    Reverse,
}

/// A hop in one of its directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HopStep {
    /// The hop, from 0.
    pub hop: usize,
    /// Its direction.
    pub direction: AppDirection,
}

impl HopStep {
    /// The same hop, the other way.
    #[must_use]
    pub const fn back(self) -> Self {
        let direction = match self.direction {
            AppDirection::Forward => AppDirection::Reverse,
            AppDirection::Reverse => AppDirection::Forward,
        };
        Self { direction, ..self }
    }
}

/// One of the paths of a flow.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowPath {
    /// The hops, from the sender on.
    pub steps: Vec<HopStep>,
    /// Its cost: while another one that costs less is up, gateways send no data there. The first costs nothing.
    pub cost: u8,
    /// The rate that gateways are told that it carries.
    pub rate: Option<Bitrate>,
}

impl FlowPath {
    fn over(steps: Vec<HopStep>) -> Self {
        Self {
            steps,
            cost: 0,
            rate: None,
        }
    }

    /// Its hops as the receiver takes them.
    pub(crate) fn back(&self) -> Vec<HopStep> {
        let steps = self.steps.iter().rev();
        steps.map(|step| step.back()).collect()
    }
}

/// The ends of a flow, and its paths.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowEnds {
    /// The node that sends, and the one that receives.
    pub nodes: [usize; 2],
    /// The paths, the first of which is used by transports that have one. Gateways use all of them.
    pub paths: Vec<FlowPath>,
}

impl FlowEnds {
    /// Whether a path leads over this hop, either way.
    pub(in crate::scenario) fn crosses(&self, hop: usize) -> bool {
        let mut steps = self.paths.iter().flat_map(|path| &path.steps);
        steps.any(|step| step.hop == hop)
    }

    /// From end to end of the chain, or as the flow says it.
    pub(in crate::scenario) fn read(
        reader: &TableReader<'_>,
        direction: Option<AppDirection>,
        graph: &TopologyPlan,
    ) -> Result<Self, SettingsError> {
        if graph.is_chain() {
            for key in FLOW_KEYS {
                if reader.has(key) {
                    let problem = "is for hops that have from and to; in a chain, flows go from its first node to its last, \
                                   or back with direction = \"reverse\"";
                    return Err(reader.wrong(key, problem));
                }
            }
            let direction = direction.unwrap_or(AppDirection::Forward);
            return Ok(Self::of_chain(graph.hop_count(), direction));
        }
        if direction.is_some() {
            let problem =
                "is for a chain; here the flow goes from its node `from` to its node `to`";
            return Err(reader.wrong("direction", problem));
        }
        let node = |key| {
            let name = reader.text(key)?.ok_or_else(|| {
                let nodes = graph.nodes().join(", ");
                reader.wrong(key, format!("is missing; write one of the nodes: {nodes}"))
            })?;
            let found = graph.named_node(name);
            found.map_err(|problem| reader.wrong(key, problem))
        };
        let nodes = [node("from")?, node("to")?];
        if nodes[0] == nodes[1] {
            let problem = "is the node that sends; a flow goes to another one";
            return Err(reader.wrong("to", problem));
        }
        let paths = read_paths(reader, nodes, graph)?;
        Ok(Self { nodes, paths })
    }

    fn of_chain(hops: usize, direction: AppDirection) -> Self {
        let step = |hop| HopStep { hop, direction };
        let (nodes, steps) = match direction {
            AppDirection::Forward => ([0, hops], (0..hops).map(step).collect()),
            AppDirection::Reverse => ([hops, 0], (0..hops).rev().map(step).collect()),
        };
        Self {
            nodes,
            paths: vec![FlowPath::over(steps)],
        }
    }

    /// The hops of the first path.
    pub fn first_steps(&self) -> &[HopStep] {
        self.paths.first().map_or(&[], |path| &path.steps)
    }

    /// Whether the other flow goes by the same paths, there or back.
    pub(in crate::scenario) fn has_paths_of(&self, other: &Self) -> bool {
        let [from, to] = other.nodes;
        if self.nodes == [from, to] {
            return self.paths == other.paths;
        }
        let pairs = self.paths.iter().zip(&other.paths);
        let mut pairs = pairs.map(|(own, path)| {
            own.steps == path.back() && own.cost == path.cost && own.rate == path.rate
        });
        self.paths.len() == other.paths.len() && pairs.all(|is_same| is_same)
    }
}

fn read_paths(
    reader: &TableReader<'_>,
    nodes: [usize; 2],
    graph: &TopologyPlan,
) -> Result<Vec<FlowPath>, SettingsError> {
    let steps = |reader: &TableReader<'_>| {
        let via = reader.list("via", Ok::<_, String>)?.unwrap_or_default();
        let route = graph.route(nodes, &via);
        route.map_err(|problem| {
            let key = if via.is_empty() && reader.has("to") {
                "to"
            } else {
                "via"
            };
            reader.wrong(key, problem)
        })
    };
    let readers = reader.tables("path", PATH_KEYS)?;
    if readers.is_empty() {
        return Ok(vec![FlowPath::over(steps(reader)?)]);
    }
    if reader.has("via") {
        let problem = "stands beside [[flow.path]]; write it in each path";
        return Err(reader.wrong("via", problem));
    }
    if readers.len() > PATHS_MAX {
        let problem = format!(
            "there must be 1 to {PATHS_MAX}, these are {}",
            readers.len()
        );
        return Err(reader.wrong("path", problem));
    }
    let mut paths: Vec<FlowPath> = Vec::new();
    for reader in &readers {
        let path = FlowPath {
            steps: steps(reader)?,
            cost: (reader.whole("cost", 0..=255)?)
                .and_then(|cost| u8::try_from(cost).ok())
                .unwrap_or_default(),
            rate: reader.value("rate")?,
        };
        if paths.is_empty() && path.cost > 0 {
            let problem =
                "must be 0 for the first path, which costs nothing; put a costly one behind it";
            return Err(reader.wrong("cost", problem));
        }
        if path.rate == Some(Bitrate::ZERO) {
            return Err(reader.wrong("rate", "must be at least 1bit"));
        }
        if paths.iter().any(|known| known.steps == path.steps) {
            let problem = "gives the same hops as a path before; name what this one passes, such as via = [\"satellite\"]";
            return Err(reader.wrong("via", problem));
        }
        paths.push(path);
    }
    Ok(paths)
}

impl TopologyPlan {
    /// The node at which a step begins.
    pub(crate) fn begin_of(&self, step: HopStep) -> usize {
        self.end_of(step.back())
    }

    /// The node to which a step leads.
    pub(crate) fn end_of(&self, step: HopStep) -> usize {
        let [begin, end] = self.ends_of(step.hop);
        match step.direction {
            AppDirection::Forward => end,
            AppDirection::Reverse => begin,
        }
    }
}
