//! Random sessions of flows with goals: `mode = "auto"` with deadlines, late messages that are given up, overheads, any order,
//! and bulk beside them.
//!
//! The faults are those of the other sessions of AeroTP. What is kept in order or wanted whole arrives whole. Nothing comes twice
//! or altered, and every connection ends. That nothing is read after its deadline is for gateways to hold (`splice`).

use super::streams::{self, Session};
use super::{Draw, broken_for};
use crate::scenario::{FlowPlan, PointPlan, SettingsError, TransportPlan};
use crate::world::{EndReason, World};
use core::sync::atomic::AtomicBool;
use fulmar_proto::repair::DeliveryGoal;

/// Draws, runs and checks the session of `seed`.
pub(super) fn session(seed: u64, cancel: &AtomicBool) -> Result<Session, SettingsError> {
    streams::run(&scenario(seed), seed, cancel, check)
}

fn check(plan: &PointPlan, world: &World, end: EndReason) -> Vec<String> {
    let goals: Vec<Option<DeliveryGoal>> = plan.flows.iter().map(goal).collect();
    let may_miss = |index: usize| goals[index].is_some_and(|goal| goal.takes_back());
    let mut broken = broken_for(world, end, &may_miss, &|_| false);
    for (index, meter) in world.meters().enumerate() {
        let count = meter.repeated_pieces();
        if count > 0 {
            broken.push(format!("flow {index}: {count} messages came twice"));
        }
    }
    broken
}

/// The goal of a flow.
fn goal(flow: &FlowPlan) -> Option<DeliveryGoal> {
    match &flow.transport {
        TransportPlan::Aerotp(own) => own.goal(),
        _ => None,
    }
}

/// Draws the scenario of `seed` as TOML.
fn scenario(seed: u64) -> String {
    let mut draw = Draw::new(seed, "swarm-goals");
    draw.run(seed);
    let hops = 1 + draw.rng.below(3);
    for index in 0..hops {
        let delay = draw.hop_head();
        let packets = draw.between(2, 100);
        draw.line(format_args!("queue = \"{packets} packets\""));
        draw.directions(index, hops, delay);
    }
    for _ in 0..=draw.rng.below(3) {
        flow(&mut draw);
    }
    draw.text
}

fn flow(draw: &mut Draw) {
    draw.line(format_args!("[[flow]]"));
    draw.line(format_args!("transport = \"aerotp\""));
    draw.line(format_args!("mode = \"auto\""));
    let start = draw.scale(0.001, 30.0);
    draw.line(format_args!("start = \"{start:.3}s\""));
    if draw.rng.chance(0.3) {
        draw.line(format_args!("direction = \"reverse\""));
    }
    if draw.rng.chance(0.5) {
        let overhead = draw.one_of(&[0, 20, 40, 90, 100]);
        draw.line(format_args!("overhead = \"{overhead}%\""));
    }
    if draw.rng.chance(0.2) {
        let bytes = draw.scale(2_000.0, 300_000.0);
        draw.line(format_args!("bytes = \"{bytes:.0}B\""));
        return;
    }
    let (size, interval) = (draw.between(20, 1_200), draw.scale(0.2, 200.0));
    let bytes = size * draw.between(1, 400);
    draw.line(format_args!("traffic = \"messages\""));
    draw.line(format_args!("size = \"{size}B\""));
    draw.line(format_args!("interval = \"{interval:.3}ms\""));
    draw.line(format_args!("bytes = \"{bytes}B\""));
    if draw.rng.chance(0.1) {
        return;
    }
    let deadline = draw.scale(2.0, 3_000.0);
    let order = draw.one_of(&["kept", "any", "any"]);
    let deliver = draw.one_of(&["all", "by deadline", "by deadline"]);
    draw.line(format_args!("deadline = \"{deadline:.3}ms\""));
    draw.line(format_args!("order = \"{order}\""));
    draw.line(format_args!("deliver = \"{deliver}\""));
    if draw.rng.chance(0.3) {
        let residual = draw.one_of(&[0.001, 1.0, 5.0, 50.0]);
        draw.line(format_args!("residual = \"{residual}%\""));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_drawn_scenario_can_be_read() {
        streams::assert_readable(scenario);
    }

    #[test]
    fn flows_with_goals_lose_nothing_that_they_promise_and_bring_nothing_twice() {
        for seed in 0..200 {
            let session = session(seed, &AtomicBool::new(false)).expect("it can be read");
            assert_eq!(session.broken, [""; 0], "seed {seed}");
        }
    }
}
