//! Aliases: further addresses of a node, which tell the paths to it apart.
//!
//! A node forwards by the destination alone, as routers do. So a node that is reached over several paths has an address for
//! each, as a host has one for each of its interfaces. Alias 0 is the node's first address. A path gets the first alias
//! under which its hops contradict no path before it, at no node and in neither direction: paths that agree share alias 0.

use super::TopologyPlan;
use super::paths::{FlowEnds, HopStep};
use std::collections::BTreeMap;

/// The number of aliases.
const ALIASES: u16 = 256;

/// The aliases of flows, and the routes that they make.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct AliasPlan {
    /// The aliases of each flow's paths.
    pub(crate) of_flow: Vec<Vec<u8>>,
    /// The step that leads from a node towards an alias of another one.
    pub(crate) routes: BTreeMap<AliasRoute, HopStep>,
}

/// A node, the one to be reached, and the alias.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct AliasRoute {
    pub(crate) at: usize,
    pub(crate) to: usize,
    pub(crate) alias: u8,
}

impl AliasPlan {
    /// The aliases of the paths of these flows; `None` if there are not enough.
    pub(crate) fn of<'a>(
        graph: &TopologyPlan,
        flows: impl Iterator<Item = &'a FlowEnds>,
    ) -> Option<Self> {
        let mut plan = Self::default();
        let mut known: BTreeMap<(usize, &[HopStep]), u8> = BTreeMap::new();
        for flow in flows {
            let mut aliases = Vec::new();
            for path in &flow.paths {
                let key = (flow.nodes[0], path.steps.as_slice());
                let alias = match known.get(&key) {
                    Some(alias) => *alias,
                    None => plan.place(graph, flow.nodes, &path.steps)?,
                };
                known.insert(key, alias);
                aliases.push(alias);
            }
            plan.of_flow.push(aliases);
        }
        Some(plan)
    }

    /// Gives a path the first alias that is free for it.
    fn place(&mut self, graph: &TopologyPlan, nodes: [usize; 2], steps: &[HopStep]) -> Option<u8> {
        let [from, to] = nodes;
        let routes = |alias| {
            steps.iter().flat_map(move |&step| {
                let there = AliasRoute {
                    at: graph.begin_of(step),
                    to,
                    alias,
                };
                let back = AliasRoute {
                    at: graph.end_of(step),
                    to: from,
                    alias,
                };
                [(there, step), (back, step.back())]
            })
        };
        let aliases = (0..ALIASES).filter_map(|alias| u8::try_from(alias).ok());
        let agrees = |(route, step): (AliasRoute, HopStep)| {
            let known = self.routes.get(&route);
            known.is_none_or(|known| *known == step)
        };
        let alias = { aliases }.find(|alias| routes(*alias).all(agrees))?;
        self.routes.extend(routes(alias));
        Some(alias)
    }
}

#[cfg(test)]
mod tests {
    use crate::scenario::{Document, PointPlan};

    const RING: &str = "[[hop]]\nfrom = 'a'\nto = 'b'\nrate = '1mbit'\n\
        [[hop]]\nfrom = 'b'\nto = 'c'\nrate = '1mbit'\n\
        [[hop]]\nfrom = 'a'\nto = 'c'\nrate = '1mbit'\ncost = 3\n";

    fn aliases(flows: &[(&str, &str, &str)]) -> Vec<u8> {
        let flow = |(from, to, via): &(&str, &str, &str)| {
            format!(
                "[[flow]]\nfrom = '{from}'\nto = '{to}'\n{via}\ntransport = 'udp'\nbytes = '1kB'\n"
            )
        };
        let flows: String = flows.iter().map(flow).collect();
        let document = Document::parse("ring.toml", &format!("{RING}{flows}")).expect("TOML");
        let plan = PointPlan::read(&document).expect("a scenario");
        let aliases = plan.aliases().expect("few").of_flow;
        aliases.into_iter().map(|of_flow| of_flow[0]).collect()
    }

    #[test]
    fn paths_that_agree_share_an_alias_and_others_have_their_own() {
        let direct = "via = ['hop-2']";
        assert_eq!(
            aliases(&[("a", "c", ""), ("c", "a", ""), ("b", "c", "")]),
            [0, 0, 0]
        );
        assert_eq!(
            aliases(&[("a", "c", ""), ("a", "c", direct), ("a", "c", "")]),
            [0, 1, 0]
        );
        // The way back is the same path.
        assert_eq!(aliases(&[("a", "c", direct), ("c", "a", direct)]), [0, 0]);
        assert_eq!(aliases(&[("a", "c", direct), ("c", "a", "")]), [0, 1]);
    }
}
