//! Random sessions of the transports of octet streams, LT-TCP and TCP.
//!
//! The faults are those of AeroTP's sessions, with a limit that both have: damaged frames are
//! dropped by the link's check, for TCP's checksum lets one of 65536 through.

mod lt_tcp;
mod tcp;

use super::Draw;
use crate::report::record::Metrics;
use crate::scenario::{Document, PointPlan, SettingsError};
use crate::world::{EndReason, World, WorldOptions};
use core::sync::atomic::AtomicBool;

/// More timeouts in a row than any drawn outage and loss make likely. Bursts of eight packets in the mean
/// count packets, also those that a stalled sender repeats; they last for 60 of them in 3 of 10,000 cases.
const PATIENT: u64 = 250;
const SYN_RETRIES_MAX: u64 = 100;

/// The report of a session.
#[derive(Default)]
pub(super) struct Session {
    pub(super) broken: Vec<String>,
    pub(super) delivered_bytes: u64,
    pub(super) packet_hops: u64,
    pub(super) packets_lost: u64,
}

impl Session {
    pub(super) fn add(&mut self, name: &str, other: &Self) {
        let named = other.broken.iter().map(|what| format!("{name}: {what}"));
        self.broken.extend(named);
        self.delivered_bytes += other.delivered_bytes;
        self.packet_hops += other.packet_hops;
        self.packets_lost += other.packets_lost;
    }
}

/// Draws, runs and checks the sessions of `seed`.
pub(super) fn session(seed: u64, cancel: &AtomicBool) -> Result<Session, SettingsError> {
    let mut both = Session::default();
    both.add("lt-tcp", &lt_tcp::session(seed, cancel)?);
    both.add("tcp", &tcp::session(seed, cancel)?);
    Ok(both)
}

/// Runs a drawn scenario, and reports the promises that `check` finds broken.
pub(super) fn run(
    text: &str,
    seed: u64,
    cancel: &AtomicBool,
    check: impl FnOnce(&PointPlan, &World, EndReason) -> Vec<String>,
) -> Result<Session, SettingsError> {
    let document = Document::parse(&format!("swarm seed {seed}"), text)?;
    let plan = PointPlan::read(&document)?;
    let options = WorldOptions {
        watch_memory: true,
        ..WorldOptions::default()
    };
    let mut world =
        World::new(&plan, seed, &options).expect("reading a plan checks every channel's settings");
    let end = world.run(cancel);
    let metrics = Metrics::of(&world, end, None);
    let mut broken = check(&plan, &world, end);
    broken.extend(world.memory_excess());
    Ok(Session {
        broken,
        delivered_bytes: metrics.flow.delivered_bytes,
        packet_hops: world.wire().packet_hops,
        packets_lost: metrics.wire_loss.total(),
    })
}

/// Draws the run and its hops, each behind a queue that `queue` draws.
fn draw_path(draw: &mut Draw, seed: u64, queue: impl Fn(&mut Draw)) {
    draw.run(seed);
    let hops = 1 + draw.rng.below(3);
    for index in 0..hops {
        let delay = draw.hop_head();
        draw.line(format_args!("frame_check = true"));
        queue(draw);
        draw.directions(index, hops, delay);
    }
}

/// Draws the head of a flow over `transport`, up to the `table` of its settings.
fn draw_flow_head(draw: &mut Draw, transport: &str, table: &str) {
    draw.line(format_args!("[[flow]]"));
    draw.line(format_args!("transport = \"{transport}\""));
    draw.traffic();
    if draw.rng.chance(0.2) {
        let mtu = draw.between(300, 3_000);
        draw.line(format_args!("mtu = \"{mtu}B\""));
    }
    draw.line(format_args!("[flow.{table}]"));
}

/// Draws small buffers in some of the sessions.
fn draw_buffers(draw: &mut Draw) {
    for buffer in ["send_buffer", "receive_buffer"] {
        if draw.rng.chance(0.2) {
            let bytes = draw.between(3_000, 64_000);
            draw.line(format_args!("{buffer} = \"{bytes}B\""));
        }
    }
}

#[cfg(test)]
pub(super) fn assert_readable(scenario: fn(u64) -> String) {
    for seed in 0..1_000 {
        let document = Document::parse("swarm", &scenario(seed)).expect("TOML");
        let plan = PointPlan::read(&document);
        assert!(plan.is_ok(), "seed {seed}: {plan:?}\n{}", scenario(seed));
    }
}
