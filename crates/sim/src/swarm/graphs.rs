//! Random sessions over graphs of nodes: flows between any two of them over shared hops, and gateways over several paths.
//!
//! A seed draws two nodes that are joined two or three ways round, by a hop or by a relay, and up to three more nodes behind
//! them. AeroTP's flows, or gateways with one to three paths, go between nodes at random. The faults are those of the other
//! sessions of AeroTP; one direction of one hop has outages. Everything arrives once and unaltered, and every connection ends.

use super::streams::{self, Session};
use super::{Draw, broken};
use crate::scenario::SettingsError;
use core::sync::atomic::AtomicBool;

/// The hops that errors are spread over: a path has up to four.
const HOPS: u64 = 4;

/// Draws, runs and checks the session of `seed`.
pub(super) fn session(seed: u64, cancel: &AtomicBool) -> Result<Session, SettingsError> {
    streams::run(&scenario(seed), seed, cancel, |_, world, end| {
        broken(world, end)
    })
}

/// Draws the scenario of `seed` as TOML.
fn scenario(seed: u64) -> String {
    let mut draw = Draw::new(seed, "swarm-graphs");
    draw.run(seed);
    // The names by which the ways round are told.
    let mut ways = Vec::new();
    let mut hops = 0;
    for way in 0..draw.between(2, 3) {
        if draw.rng.chance(0.5) {
            let relay = format!("relay-{way}");
            hop(&mut draw, &mut hops, "west", &relay);
            hop(&mut draw, &mut hops, &relay, "east");
            ways.push(relay);
        } else {
            ways.push(format!("hop-{hops}"));
            hop(&mut draw, &mut hops, "west", "east");
        }
    }
    let mut nodes = vec!["west".to_owned(), "east".to_owned()];
    for place in 0..draw.rng.below(4) {
        let host = format!("host-{place}");
        let at = draw.one_of(&["west", "east"]);
        hop(&mut draw, &mut hops, &host, at);
        nodes.push(host);
    }
    let spliced = draw.rng.chance(0.5);
    // Gateways with the same ends have the same paths.
    let count = ways.len() as u64;
    let used = usize::try_from(draw.between(1, count)).unwrap_or(1);
    let cost = draw.one_of(&[0, 0, 1]);
    for _ in 0..=draw.rng.below(4) {
        let has_ways = flow(&mut draw, &nodes, spliced);
        let bonded = spliced && has_ways;
        for (place, way) in ways.iter().enumerate().take(used).filter(|_| bonded) {
            draw.line(format_args!("[[flow.path]]"));
            draw.line(format_args!("via = [\"{way}\"]"));
            if place > 0 {
                draw.line(format_args!("cost = {cost}"));
            }
        }
        if has_ways && !spliced && draw.rng.chance(0.3) {
            let way = draw.rng.below(count);
            let way = &ways[usize::try_from(way).unwrap_or_default()];
            draw.line(format_args!("via = [\"{way}\"]"));
        }
    }
    draw.text
}

fn hop(draw: &mut Draw, hops: &mut u64, from: &str, to: &str) {
    let delay = draw.hop_head();
    draw.line(format_args!("from = \"{from}\""));
    draw.line(format_args!("to = \"{to}\""));
    if draw.rng.chance(0.3) {
        let cost = draw.between(1, 5);
        draw.line(format_args!("cost = {cost}"));
    }
    if draw.rng.chance(0.3) {
        let packets = draw.between(2, 200);
        draw.line(format_args!("queue = \"{packets} packets\""));
    }
    draw.directions(*hops, HOPS, delay);
    *hops += 1;
}

/// Draws a flow. Returns whether there are several ways round between its ends, one of which it may be told.
fn flow(draw: &mut Draw, nodes: &[String], spliced: bool) -> bool {
    let count = nodes.len() as u64;
    let from = draw.rng.below(count);
    let to = (from + 1 + draw.rng.below(count - 1)) % count;
    let name = |node: u64| &nodes[usize::try_from(node).unwrap_or_default()];
    let (from, to) = (name(from), name(to));
    let transport = if spliced { "gateway" } else { "aerotp" };
    let mode = draw.one_of(&["reliable", "near-reliable", "nack-mack"]);
    draw.line(format_args!("[[flow]]"));
    draw.line(format_args!("transport = \"{transport}\""));
    draw.line(format_args!("mode = \"{mode}\""));
    draw.line(format_args!("from = \"{from}\""));
    draw.line(format_args!("to = \"{to}\""));
    draw.amount();
    draw.start();
    if spliced {
        draw.line(format_args!("give_up_after = \"3600s\""));
    }
    let ends = [from.as_str(), to.as_str()];
    ends.iter().all(|end| ["west", "east"].contains(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_drawn_scenario_can_be_read() {
        streams::assert_readable(scenario);
    }

    #[test]
    fn flows_over_graphs_lose_nothing_and_bring_nothing_twice() {
        for seed in 0..100 {
            let session = session(seed, &AtomicBool::new(false)).expect("it can be read");
            assert_eq!(session.broken, [""; 0], "seed {seed}");
        }
    }
}
