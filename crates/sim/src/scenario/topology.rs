//! The nodes of a scenario, the hops between them, and the paths of flows.
//!
//! Hops without `from` and `to` are a chain, and flows go from its first node to its last. Hops with them are a graph:
//! their names are its nodes, and each flow says between which of them it goes. Its path is the one whose hops cost least,
//! of equal ones that with fewer hops, or it is told by `via`.

pub(crate) mod aliases;
mod paths;
mod route;

pub use paths::{AppDirection, FlowEnds, FlowPath, HopStep};
pub(super) use paths::{FLOW_KEYS, PATH_KEYS};

use super::SettingsError;
use fulmar_settings::TableReader;
use std::collections::BTreeSet;

/// The keys of `[[hop]]` that belong to a graph.
pub(super) const HOP_KEYS: [&str; 4] = ["name", "from", "to", "cost"];

/// The most that a hop may cost.
const COST_MAX: u64 = 1_000_000;

/// The nodes and the hops between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopologyPlan {
    nodes: Vec<String>,
    hops: Vec<HopEnds>,
    is_chain: bool,
}

/// A hop as the graph has it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct HopEnds {
    name: String,
    /// The nodes where it begins and ends.
    ends: [usize; 2],
    cost: u64,
}

impl TopologyPlan {
    /// A chain of so many hops.
    fn chain(hops: usize) -> Self {
        let node = |place: usize| match place {
            0 => "source".to_owned(),
            last if last == hops => "sink".to_owned(),
            place => format!("node-{place}"),
        };
        let hop = |place: usize| HopEnds {
            name: hop_name(place),
            ends: [place, place + 1],
            cost: 1,
        };
        Self {
            nodes: (0..=hops).map(node).collect(),
            hops: (0..hops).map(hop).collect(),
            is_chain: true,
        }
    }

    /// Reads the graph that the tables of hops make.
    pub(super) fn read(readers: &[TableReader<'_>]) -> Result<Self, SettingsError> {
        let is_told = |reader: &TableReader<'_>| reader.has("from") || reader.has("to");
        if !readers.iter().any(is_told) {
            for reader in readers {
                for key in ["name", "cost"] {
                    if reader.has(key) {
                        let problem =
                            "is for hops of a graph; write from and to, too, or leave it out";
                        return Err(reader.wrong(key, problem));
                    }
                }
            }
            return Ok(Self::chain(readers.len()));
        }
        let mut graph = Self {
            nodes: Vec::new(),
            hops: Vec::new(),
            is_chain: false,
        };
        for (place, reader) in readers.iter().enumerate() {
            let mut ends = [0; 2];
            for (end, key) in ends.iter_mut().zip(["from", "to"]) {
                let name = reader.text(key)?.ok_or_else(|| {
                    let problem =
                        "is missing; write from and to for every hop, or for none of a chain";
                    reader.wrong(key, problem)
                })?;
                *end = graph
                    .place_of(name)
                    .map_err(|problem| reader.wrong(key, problem))?;
            }
            let [from, to] = ends;
            if from == to {
                let problem = "is the node where the hop begins; a hop joins two nodes";
                return Err(reader.wrong("to", problem));
            }
            graph.hops.push(HopEnds {
                name: reader
                    .text("name")?
                    .map_or_else(|| hop_name(place), str::to_owned),
                ends,
                cost: reader.whole("cost", 1..=COST_MAX)?.unwrap_or(1),
            });
        }
        graph.refuse_names(readers)?;
        Ok(graph)
    }

    /// The node of this name, a new one if there is none yet.
    fn place_of(&mut self, name: &str) -> Result<usize, &'static str> {
        if name.trim().is_empty() {
            return Err("must name a node, such as \"ground\"");
        }
        if let Some(place) = self.node(name) {
            return Ok(place);
        }
        self.nodes.push(name.to_owned());
        Ok(self.nodes.len() - 1)
    }

    /// Refuses hops that cannot be told apart from other hops and from nodes.
    fn refuse_names(&self, readers: &[TableReader<'_>]) -> Result<(), SettingsError> {
        let mut known: BTreeSet<&str> = self.nodes.iter().map(String::as_str).collect();
        for (hop, reader) in self.hops.iter().zip(readers) {
            if hop.name.trim().is_empty() || !known.insert(&hop.name) {
                let problem = format!(
                    "`{}` is the name of another hop or of a node; write one of its own",
                    hop.name
                );
                return Err(reader.wrong("name", problem));
            }
        }
        Ok(())
    }

    /// Whether it is a chain that needs no names.
    pub const fn is_chain(&self) -> bool {
        self.is_chain
    }

    /// The names of the nodes; those of a chain from its source on.
    pub fn nodes(&self) -> &[String] {
        &self.nodes
    }

    /// The number of hops.
    pub const fn hop_count(&self) -> usize {
        self.hops.len()
    }

    /// The name of a hop.
    pub fn hop_name(&self, hop: usize) -> &str {
        &self.hops[hop].name
    }

    /// The nodes where a hop begins and ends.
    pub fn ends_of(&self, hop: usize) -> [usize; 2] {
        self.hops[hop].ends
    }

    fn node(&self, name: &str) -> Option<usize> {
        self.nodes.iter().position(|known| known == name)
    }

    /// The hop of this name.
    pub(super) fn hop(&self, name: &str) -> Option<usize> {
        self.hops.iter().position(|hop| hop.name == name)
    }
}

fn hop_name(place: usize) -> String {
    format!("hop-{place}")
}
