//! Random sessions of LT-TCP.
//!
//! The faults are those of AeroTP's sessions, with two limits that the transport has: damaged
//! frames are dropped by the link's check, for TCP's checksum lets one of 65536 through; and queues
//! mark before they drop, for loss is no signal to it.

use super::{Draw, broken};
use crate::report::record::Metrics;
use crate::scenario::{Document, Plan, ScenarioError};
use crate::world::{World, WorldOptions};
use core::sync::atomic::AtomicBool;
use fulmar_proto::rng::Rng;

/// What a session did.
pub(super) struct Session {
    pub(super) broken: Vec<String>,
    pub(super) delivered_bytes: u64,
    pub(super) packet_hops: u64,
    pub(super) packets_lost: u64,
}

/// Draws, runs and checks the session of `seed`.
pub(super) fn session(seed: u64, cancel: &AtomicBool) -> Result<Session, ScenarioError> {
    let document = Document::parse(&format!("lt-tcp swarm seed {seed}"), &scenario(seed))?;
    let plan = Plan::read(&document)?;
    let mut world = World::new(&plan, seed, &WorldOptions::default())
        .expect("reading a plan checks every channel's settings");
    let end = world.run(cancel);
    let metrics = Metrics::of(&world, end, plan.hops.len(), None);
    Ok(Session {
        broken: broken(&world, end),
        delivered_bytes: metrics.flow.delivered_bytes,
        packet_hops: world.wire().packet_hops,
        packets_lost: metrics.wire_loss.total(),
    })
}

/// Draws the scenario of `seed` as TOML.
fn scenario(seed: u64) -> String {
    let mut draw = Draw {
        rng: Rng::from_seed(seed).child("swarm-lt-tcp"),
        text: String::new(),
    };
    draw.line(format_args!("[run]"));
    draw.line(format_args!("seed = {seed}"));
    draw.line(format_args!("duration = \"{}\"", super::DURATION));
    if draw.rng.chance(0.5) {
        let late = draw.between(1, 50);
        draw.line(format_args!("lateness = \"{late}ms\""));
    }
    let hops = 1 + draw.rng.below(3);
    for index in 0..hops {
        let delay = draw.hop_head();
        let packets = draw.between(20, 200);
        let mark = draw.between(5, packets / 2);
        draw.line(format_args!("frame_check = true"));
        draw.line(format_args!("queue = \"{packets} packets\""));
        draw.line(format_args!("ecn_threshold = \"{mark} packets\""));
        draw.directions(index, hops, delay);
    }
    for _ in 0..=draw.rng.below(3) {
        flow(&mut draw);
    }
    draw.text
}

fn flow(draw: &mut Draw) {
    draw.line(format_args!("[[flow]]"));
    draw.line(format_args!("transport = \"lt-tcp\""));
    draw.traffic();
    if draw.rng.chance(0.2) {
        let mtu = draw.between(300, 3_000);
        draw.line(format_args!("mtu = \"{mtu}B\""));
    }
    draw.line(format_args!("[flow.lt_tcp]"));
    // Outages of a minute, and losses while they are waited for.
    draw.line(format_args!("data_retries = 60"));
    draw.line(format_args!("syn_retries = 20"));
    for chance in ["pfec", "rfec"] {
        if draw.rng.chance(0.5) {
            let percent = 99.0 * draw.rng.unit_f64();
            draw.line(format_args!("{chance} = \"{percent:.2}%\""));
        }
    }
    if draw.rng.chance(0.3) {
        let units = draw.between(1, 40);
        draw.line(format_args!("granularity = {units}"));
    }
    for buffer in ["send_buffer", "receive_buffer"] {
        if draw.rng.chance(0.2) {
            let bytes = draw.between(3_000, 64_000);
            draw.line(format_args!("{buffer} = \"{bytes}B\""));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_drawn_scenario_can_be_read() {
        for seed in 0..1_000 {
            let document = Document::parse("swarm", &scenario(seed)).expect("TOML");
            let plan = Plan::read(&document);
            assert!(plan.is_ok(), "seed {seed}: {plan:?}\n{}", scenario(seed));
        }
    }
}
