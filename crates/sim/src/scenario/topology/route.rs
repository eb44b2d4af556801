//! Paths through the graph: the one that costs least, and those that are told.

use super::TopologyPlan;
use super::paths::{AppDirection, HopStep};
use fulmar_settings::suggestion;
use std::collections::BTreeSet;

/// A node or a hop that a path passes.
#[derive(Clone, Copy, Debug)]
enum Waypoint {
    Node(usize),
    Hop(usize),
}

impl TopologyPlan {
    /// The path from one node to another that passes these nodes and hops in their order.
    ///
    /// # Errors
    /// A name is unknown, or there is no such path, in words.
    pub(super) fn route(
        &self,
        [from, to]: [usize; 2],
        via: &[&str],
    ) -> Result<Vec<HopStep>, String> {
        let waypoints: Vec<Waypoint> = via
            .iter()
            .map(|name| self.waypoint(name))
            .collect::<Result<_, _>>()?;
        let mut walk = Walk {
            graph: self,
            at: from,
            passed: BTreeSet::from([from]),
            steps: Vec::new(),
        };
        for (waypoint, name) in waypoints.into_iter().zip(via) {
            let reached = match waypoint {
                Waypoint::Node(node) => walk.go_to(node, to),
                Waypoint::Hop(hop) => walk.go_across(hop, to),
            };
            if !reached {
                return Err(self.no_way(from, to, Some(name)));
            }
        }
        if walk.at != to && !walk.go_to(to, from) {
            let last = via.last().copied();
            return Err(self.no_way(from, to, last));
        }
        Ok(walk.steps)
    }

    fn waypoint(&self, name: &str) -> Result<Waypoint, String> {
        let node = self.node(name).map(Waypoint::Node);
        let hop = || self.hop(name).map(Waypoint::Hop);
        node.or_else(hop).ok_or_else(|| {
            let hops = self.hops.iter().map(|hop| hop.name.as_str());
            let names = self.nodes.iter().map(String::as_str).chain(hops);
            format!(
                "`{name}` is no node and no hop; {}",
                suggestion(name, names)
            )
        })
    }

    /// The node of this name.
    pub(super) fn named_node(&self, name: &str) -> Result<usize, String> {
        self.node(name).ok_or_else(|| {
            let names = self.nodes.iter().map(String::as_str);
            format!("`{name}` is no node; {}", suggestion(name, names))
        })
    }

    fn no_way(&self, from: usize, to: usize, via: Option<&str>) -> String {
        let (from, to) = (&self.nodes[from], &self.nodes[to]);
        via.map_or_else(
            || format!("no hops lead from `{from}` to `{to}`; write a [[hop]] that joins them"),
            |via| {
                format!(
                    "no path from `{from}` to `{to}` passes `{via}` there without passing a node twice; \
                     name other nodes or hops, in the order of the path"
                )
            },
        )
    }
}

/// The cost and the number of hops by which a node is reached, and the last of them.
type Reached = ((u64, usize), Option<HopStep>);

/// A path under way.
struct Walk<'a> {
    graph: &'a TopologyPlan,
    at: usize,
    passed: BTreeSet<usize>,
    steps: Vec<HopStep>,
}

impl Walk<'_> {
    /// Goes on to `node` by the hops that cost least, without passing a node twice, nor `avoided` before it. Returns whether
    /// it can.
    fn go_to(&mut self, node: usize, avoided: usize) -> bool {
        let Some((_, steps)) = self.least(node, avoided) else {
            return false;
        };
        for step in steps {
            self.step(step);
        }
        true
    }

    /// Goes on to the nearer end of `hop`, and over it.
    fn go_across(&mut self, hop: usize, avoided: usize) -> bool {
        let [begin, end] = self.graph.ends_of(hop);
        let ways = [
            (begin, end, AppDirection::Forward),
            (end, begin, AppDirection::Reverse),
        ];
        let ways = ways.into_iter().filter_map(|(near, far, direction)| {
            let is_free = near != avoided && !self.passed.contains(&far);
            let (cost, steps) = self.least(near, avoided).filter(|_| is_free)?;
            let passes = |step: &HopStep| self.graph.end_of(*step) == far;
            (!steps.iter().any(passes)).then_some((cost, steps, direction))
        });
        let Some((_, steps, direction)) = ways.min_by_key(|(cost, ..)| *cost) else {
            return false;
        };
        let crossing = HopStep { hop, direction };
        for step in steps.into_iter().chain([crossing]) {
            self.step(step);
        }
        true
    }

    fn step(&mut self, step: HopStep) {
        self.at = self.graph.end_of(step);
        self.passed.insert(self.at);
        self.steps.push(step);
    }

    /// The cost and the hops of the best way on to `goal` (Dijkstra).
    fn least(&self, goal: usize, avoided: usize) -> Option<((u64, usize), Vec<HopStep>)> {
        let graph = self.graph;
        if goal == self.at {
            return Some(((0, 0), Vec::new()));
        }
        if self.passed.contains(&goal) {
            return None;
        }
        let mut best: Vec<Option<Reached>> = vec![None; graph.nodes.len()];
        let mut open: BTreeSet<((u64, usize), usize)> = BTreeSet::new();
        best[self.at] = Some(((0, 0), None));
        open.insert(((0, 0), self.at));
        while let Some(((cost, hops), node)) = open.pop_first() {
            if node == goal {
                break;
            }
            for (hop, edge) in graph.hops.iter().enumerate() {
                let [begin, end] = edge.ends;
                let (next, direction) = if node == begin {
                    (end, AppDirection::Forward)
                } else if node == end {
                    (begin, AppDirection::Reverse)
                } else {
                    continue;
                };
                let is_barred = self.passed.contains(&next) || (next == avoided && next != goal);
                let total = (cost + edge.cost, hops + 1);
                if is_barred || best[next].is_some_and(|(known, _)| known <= total) {
                    continue;
                }
                if let Some((known, _)) = best[next] {
                    open.remove(&(known, next));
                }
                best[next] = Some((total, Some(HopStep { hop, direction })));
                open.insert((total, next));
            }
        }
        let (total, _) = best[goal]?;
        let mut steps = Vec::new();
        let mut node = goal;
        while let Some((_, Some(step))) = best[node] {
            steps.push(step);
            node = graph.begin_of(step);
        }
        steps.reverse();
        Some((total, steps))
    }
}
