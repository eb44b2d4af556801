//! Random sessions under random faults: everything sent is delivered exactly once, and every session ends.
//!
//! A seed draws a scenario (written as TOML, so that it can be looked at, kept and run by hand): one to
//! three hops with loss, bursts, bit errors, duplicates, reordering, jitter, short queues and outages of up
//! to a minute; one to three flows in either direction in the modes that promise everything; wake-ups that
//! come late. The checks: the octets delivered are those sent, none comes twice, and every session ends.
//!
//! The same seed draws a session of flows with goals, one over a graph of nodes, one of LT-TCP, one of TCP, one of each link layer, and one of
//! gateways, whose flows survive restarts of either side.
//!
//! # Sources
//! The shape, a seed that draws a world and checkers that know only promises, is the one that
//! `TigerBeetle` and `FoundationDB` made known.

mod goals;
mod graphs;
mod links;
mod splice;
mod streams;

pub use links::{LinkFailure, LinkLayerTotals, LinkSwarmTotals, link_sessions};

use crate::experiment::{ExperimentError, ExperimentProgress, pool};
use crate::report::record::Metrics;
use crate::scenario::{Document, PointPlan, SettingsError};
use crate::world::{EndReason, World, WorldOptions};
use core::fmt::Write as _;
use core::ops::Range;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use fulmar_proto::rng::Rng;
use rayon::prelude::*;
use serde::Serialize;

/// The report of one session.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SessionReport {
    /// The seed that draws and runs it.
    pub seed: u64,
    /// The broken promises; empty when all is well.
    pub broken: Vec<String>,
    /// Octets that the applications received.
    pub delivered_bytes: u64,
    /// Packets that crossed a hop.
    pub packet_hops: u64,
    /// Frames that link layers sent.
    pub link_frames: u64,
    /// Link frames that their media lost.
    pub link_frames_lost: u64,
    /// Restarts of link layers' ends.
    pub link_restarts: u64,
    /// Packets lost on the way.
    pub packets_lost: u64,
    /// Packets that went on with inverted bits.
    pub packets_damaged: u64,
    /// Gateways' flows that ended with everything delivered both ways, counted at either side.
    pub flows_finished: u64,
    /// Times that a gateway's flow went on after its connection was lost.
    pub flows_resumed: u64,
    /// Restarts of gateways.
    pub gateway_restarts: u64,
    /// Times that a gateway's link was held for down.
    pub links_held: u64,
    /// Hosts that were lost while octets they had sent were on their way.
    pub hosts_lost: u64,
    /// Messages through gateways that were held to their deadline.
    pub messages_judged: u64,
    /// Times that a gateway found a further path to another one.
    pub paths_found: u64,
    /// Packets between gateways that left on further paths.
    pub packets_on_further_paths: u64,
}

/// Draws, runs and checks the sessions of `seed`: one of AeroTP, one of flows with goals, one over a graph, one of LT-TCP, one of TCP, one of
/// each link layer, one of gateways.
///
/// # Errors
/// The drawn scenario cannot be read, which is a fault of the drawing.
///
/// # Panics
/// A machine or its driver broke the contract, in builds that check it.
pub fn session(seed: u64, cancel: &AtomicBool) -> Result<SessionReport, SettingsError> {
    let document = Document::parse(&format!("swarm seed {seed}"), &scenario(seed))?;
    let plan = PointPlan::read(&document)?;
    let mut world = World::new(&plan, seed, &WorldOptions::default())
        .expect("reading a plan checks every channel's settings");
    let end = world.run(cancel);
    let metrics = Metrics::of(&world, end, None);
    let gateways = splice::session(seed, cancel);
    let mut streams = streams::session(seed, cancel)?;
    streams.add("goals", &goals::session(seed, cancel)?);
    streams.add("graphs", &graphs::session(seed, cancel)?);
    let links = links::session(seed, cancel);
    let mut broken = broken(&world, end);
    broken.extend(streams.broken);
    broken.extend(links.broken.iter().cloned());
    broken.extend(
        gateways
            .broken
            .iter()
            .map(|what| format!("gateways: {what}")),
    );
    Ok(SessionReport {
        seed,
        broken,
        delivered_bytes: metrics.flow.delivered_bytes
            + streams.delivered_bytes
            + links.sum(|layer| layer.delivered_bytes)
            + gateways.delivered_bytes,
        packet_hops: world.wire().packet_hops + streams.packet_hops + gateways.packets,
        link_frames: links.sum(|layer| layer.frames),
        link_frames_lost: links.sum(|layer| layer.frames_lost),
        link_restarts: links.sum(|layer| layer.restarts),
        packets_lost: metrics.wire_loss.total() + streams.packets_lost + gateways.packets_lost,
        packets_damaged: metrics.wire_damaged + gateways.packets_damaged,
        flows_finished: gateways.flows_finished,
        flows_resumed: gateways.flows_resumed,
        gateway_restarts: gateways.restarts,
        links_held: gateways.links_held,
        hosts_lost: gateways.hosts_lost,
        messages_judged: gateways.messages_judged,
        paths_found: gateways.paths_found,
        packets_on_further_paths: gateways.packets_on_further_paths,
    })
}

/// The totals of many sessions.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SwarmTotals {
    /// Seeds whose sessions ran to their end.
    pub sessions: u64,
    /// Octets that the applications received.
    pub delivered_bytes: u64,
    /// Packets that crossed a hop.
    pub packet_hops: u64,
    /// Frames that link layers sent.
    pub link_frames: u64,
    /// Link frames that their media lost.
    pub link_frames_lost: u64,
    /// Restarts of link layers' ends.
    pub link_restarts: u64,
    /// Packets lost on the way.
    pub packets_lost: u64,
    /// Packets that went on with inverted bits.
    pub packets_damaged: u64,
    /// Gateways' flows that ended with everything delivered both ways, counted at either side.
    pub flows_finished: u64,
    /// Times that a gateway's flow went on after its connection was lost.
    pub flows_resumed: u64,
    /// Restarts of gateways.
    pub gateway_restarts: u64,
    /// Times that a gateway's link was held for down.
    pub links_held: u64,
    /// Hosts that were lost while octets they had sent were on their way.
    pub hosts_lost: u64,
    /// Messages through gateways that were held to their deadline.
    pub messages_judged: u64,
    /// Times that a gateway found a further path to another one.
    pub paths_found: u64,
    /// Packets between gateways that left on further paths.
    pub packets_on_further_paths: u64,
    /// The sessions that broke a promise, in the order of seeds.
    pub failures: Vec<SessionReport>,
}

/// Runs the sessions of `seeds` on `jobs` threads (0: one for each core). A panic in a session counts as a
/// broken promise. Cancelling ends early with the sessions done until then.
///
/// # Errors
/// The threads could not be started.
pub fn sessions(
    seeds: Range<u64>,
    jobs: usize,
    progress: &ExperimentProgress,
) -> Result<SwarmTotals, ExperimentError> {
    let reports: Vec<Option<SessionReport>> = pool(jobs)?.install(|| {
        seeds
            .into_par_iter()
            .map(|seed| {
                let report = (!progress.cancel.load(Relaxed)).then(|| checked(seed, progress));
                progress.advance(1);
                report.filter(|_| !progress.cancel.load(Relaxed))
            })
            .collect()
    });
    let mut totals = SwarmTotals::default();
    for report in reports.into_iter().flatten() {
        totals.sessions += 1;
        totals.delivered_bytes += report.delivered_bytes;
        totals.packet_hops += report.packet_hops;
        totals.link_frames += report.link_frames;
        totals.link_frames_lost += report.link_frames_lost;
        totals.link_restarts += report.link_restarts;
        totals.packets_lost += report.packets_lost;
        totals.packets_damaged += report.packets_damaged;
        totals.flows_finished += report.flows_finished;
        totals.flows_resumed += report.flows_resumed;
        totals.gateway_restarts += report.gateway_restarts;
        totals.links_held += report.links_held;
        totals.hosts_lost += report.hosts_lost;
        totals.messages_judged += report.messages_judged;
        totals.paths_found += report.paths_found;
        totals.packets_on_further_paths += report.packets_on_further_paths;
        if !report.broken.is_empty() {
            totals.failures.push(report);
        }
    }
    Ok(totals)
}

/// A session that reports even a panic.
fn checked(seed: u64, progress: &ExperimentProgress) -> SessionReport {
    let outcome = std::panic::catch_unwind(|| session(seed, &progress.cancel));
    let broken = match outcome {
        Ok(Ok(report)) => return report,
        Ok(Err(error)) => error.to_string(),
        Err(panic) => {
            let text = panic
                .downcast_ref::<String>()
                .map(String::as_str)
                .or_else(|| panic.downcast_ref::<&str>().copied());
            format!("panicked: {}", text.unwrap_or("without a text"))
        }
    };
    SessionReport {
        seed,
        broken: vec![broken],
        delivered_bytes: 0,
        packet_hops: 0,
        link_frames: 0,
        link_frames_lost: 0,
        link_restarts: 0,
        packets_lost: 0,
        packets_damaged: 0,
        flows_finished: 0,
        flows_resumed: 0,
        gateway_restarts: 0,
        links_held: 0,
        hosts_lost: 0,
        messages_judged: 0,
        paths_found: 0,
        packets_on_further_paths: 0,
    }
}

/// Every promise that was not kept.
fn broken(world: &World, end: EndReason) -> Vec<String> {
    broken_but(world, end, |_| false)
}

/// Every promise that was not kept, where flows that are `excused` need neither deliver everything nor end.
fn broken_but(world: &World, end: EndReason, excused: impl Fn(usize) -> bool) -> Vec<String> {
    broken_for(world, end, &excused, &excused)
}

/// Every promise that was not kept, where some flows need not deliver everything, and some need not end.
fn broken_for(
    world: &World,
    end: EndReason,
    may_miss: &dyn Fn(usize) -> bool,
    may_stay: &dyn Fn(usize) -> bool,
) -> Vec<String> {
    let mut broken = Vec::new();
    if end == EndReason::Cancelled {
        return broken;
    }
    for (index, meter) in world.meters().enumerate() {
        if let Some(violation) = meter.violation() {
            broken.push(format!("flow {index}: {violation}"));
        } else if meter.delivered() != meter.total() && !may_miss(index) {
            let (got, all) = (meter.delivered(), meter.total());
            broken.push(format!("flow {index}: {got} of {all} delivered"));
        }
    }
    for (index, ends) in world.closings().enumerate().filter(|(i, _)| !may_stay(*i)) {
        for (side, closed) in ["sender", "receiver"].into_iter().zip(ends) {
            // The last packet of a conversation can always be lost, in an outage that outlasts the other
            // side's wait for late copies (TIME-WAIT): then this side finds the peer gone.
            if !matches!(closed, Some("finished" | "peer_vanished")) {
                let how = closed.unwrap_or("open");
                broken.push(format!("flow {index}: the {side} ends {how}"));
            }
        }
    }
    if end == EndReason::TimeLimit {
        broken.push(format!("not over at {}", world.now()));
    } else if world.packets_in_flight() > 0 {
        let count = world.packets_in_flight();
        broken.push(format!("{count} packets neither arrived nor were lost"));
    }
    broken
}

/// The longest a drawn session may take: outages, the slowest link and the highest loss together
/// need minutes; a session that is still running after this is stuck.
const DURATION: &str = "4h";

/// Draws the scenario of `seed` as TOML.
pub fn scenario(seed: u64) -> String {
    let mut draw = Draw::new(seed, "swarm");
    draw.line(format_args!("[run]"));
    draw.line(format_args!("seed = {seed}"));
    draw.line(format_args!("duration = \"{DURATION}\""));
    if draw.rng.chance(0.5) {
        let late = draw.between(1, 50);
        draw.line(format_args!("lateness = \"{late}ms\""));
    }
    let hops = 1 + draw.rng.below(3);
    for index in 0..hops {
        draw.hop(index, hops);
    }
    for _ in 0..=draw.rng.below(3) {
        draw.flow(hops);
    }
    draw.text
}

struct Draw {
    rng: Rng,
    /// A stream of its own, so that the seeds' other draws stay as they were without copies.
    copies: Rng,
    text: String,
}

impl Draw {
    fn new(seed: u64, stream: &str) -> Self {
        let rng = Rng::from_seed(seed).child(stream);
        Self {
            copies: rng.child("copies"),
            rng,
            text: String::new(),
        }
    }

    /// Draws the run: its seed, its longest duration, and whether wake-ups come late.
    fn run(&mut self, seed: u64) {
        self.line(format_args!("[run]"));
        self.line(format_args!("seed = {seed}"));
        self.line(format_args!("duration = \"{DURATION}\""));
        if self.rng.chance(0.5) {
            let late = self.between(1, 50);
            self.line(format_args!("lateness = \"{late}ms\""));
        }
    }

    fn line(&mut self, line: core::fmt::Arguments<'_>) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.text, "{line}");
    }

    /// Uniform in `low..=high`.
    fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.rng.below(high - low + 1)
    }

    fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        let index = self.rng.below(choices.len() as u64);
        choices[usize::try_from(index).expect("below a slice's length")]
    }

    /// Uniform over the orders of magnitude between `low` and `high`.
    fn scale(&mut self, low: f64, high: f64) -> f64 {
        low * (high / low).powf(self.rng.unit_f64())
    }

    fn hop(&mut self, index: u64, hops: u64) {
        let delay = self.hop_head();
        if self.rng.chance(0.3) {
            let packets = self.between(2, 200);
            self.line(format_args!("queue = \"{packets} packets\""));
        }
        self.directions(index, hops, delay);
    }

    /// Rate and delay, and the delay in milliseconds.
    fn hop_head(&mut self) -> f64 {
        let rate = self.scale(200.0, 100_000.0);
        self.line(format_args!("[[hop]]"));
        self.line(format_args!("rate = \"{rate:.0}kbit\""));
        let delay = self.scale(0.01, 300.0);
        self.line(format_args!("delay = \"{delay:.3}ms\""));
        delay
    }

    /// The faults of each direction.
    fn directions(&mut self, index: u64, hops: u64, delay: f64) {
        for direction in ["forward", "reverse"] {
            self.line(format_args!("[hop.{direction}]"));
            self.errors(hops);
            // One direction of one hop is out at a time, so that outages do not add up to more than the
            // timeout of a connection.
            if index == 0 && self.rng.chance(0.3) {
                self.outages(direction);
            }
            if self.rng.chance(0.3) {
                let share = self.scale(0.1, 20.0);
                self.line(format_args!("duplicate = \"{share:.3}%\""));
            }
            if self.rng.chance(0.3) {
                let (share, by) = (self.scale(0.1, 20.0), self.scale(0.1, 100.0));
                self.line(format_args!("reorder = \"{share:.3}% by {by:.3}ms\""));
            }
            if self.rng.chance(0.2) {
                let spread = delay * self.rng.unit_f64();
                self.line(format_args!("jitter = \"{spread:.3}ms reordering\""));
            }
        }
    }

    /// Draws loss up to 50 % and bit errors up to 3e-5 on a path of one hop, and less on a path of more
    /// hops.
    fn errors(&mut self, hops: u64) {
        let share = hops as f64;
        match self.rng.below(4) {
            0 => {}
            1 => {
                let loss = self.rng.unit_f64() * 50.0 / share;
                self.line(format_args!("loss = \"{loss:.3}%\""));
            }
            2 => {
                // Bursts count packets, and a stalled sender probes once a second: longer bursts would be
                // outages beyond the connections' timeout of 120 s.
                let (loss, burst) = (self.scale(0.1, 20.0 / share), self.between(2, 8));
                self.line(format_args!("loss = \"{loss:.3}% burst {burst}\""));
            }
            _ => {
                let loss = self.rng.unit_f64() * 30.0 / share;
                let period = self.between(10, 500);
                self.line(format_args!(
                    "loss = \"on-off {loss:.3}% period {period}ms\""
                ));
            }
        }
        if self.rng.chance(0.5) {
            let ber = self.scale(1e-8, 3e-5 / share);
            self.line(format_args!("ber = \"{ber:.3e}\""));
        }
    }

    /// Draws one or two outages of up to a minute, with a pause between them.
    fn outages(&mut self, direction: &str) {
        let offset = if direction == "forward" { 0 } else { 200 };
        let (first, long) = (offset + self.between(0, 30), self.scale(0.01, 60.0));
        let mut plan = format!("{first}s+{long:.3}s");
        if self.rng.chance(0.3) {
            let (second, long) = (offset + self.between(100, 130), self.scale(0.01, 60.0));
            let _ = write!(plan, ", {second}s+{long:.3}s");
        }
        self.line(format_args!("outages = \"{plan}\""));
    }

    fn flow(&mut self, hops: u64) {
        self.line(format_args!("[[flow]]"));
        self.line(format_args!("transport = \"aerotp\""));
        let modes = ["reliable", "near-reliable", "nack-mack"];
        let mode = self.one_of(&modes);
        self.line(format_args!("mode = \"{mode}\""));
        self.traffic();
        // Damage within 3e-5 per bit leaves most packets whole; parity is an option, not a need.
        let words = self.one_of(&[0, 0, 4, 9, 24, 64]);
        self.line(format_args!("fec_words = {words}"));
        if self.rng.chance(0.5) {
            let every = self.between(1, 365);
            self.line(format_args!("mack = {every}"));
        }
        if self.rng.chance(0.3) {
            self.line(format_args!("mack_style = \"listed\""));
        }
        if self.rng.chance(0.3) {
            let window = self.between(2, 64);
            self.line(format_args!("window = {window}"));
        }
        if self.rng.chance(0.2) {
            let mtu = self.between(600, 9_000 / hops);
            self.line(format_args!("mtu = \"{mtu}B\""));
        }
        if self.rng.chance(0.2) {
            let buffer = self.between(2_000, 64_000);
            self.line(format_args!("send_buffer = \"{buffer}B\""));
        }
        if self.copies.chance(0.25) {
            let copies = 2 + self.copies.below(3);
            self.line(format_args!("copies = {copies}"));
        }
    }

    /// Draws the traffic: its amount, its direction and its start.
    fn traffic(&mut self) {
        self.amount();
        if self.rng.chance(0.3) {
            self.line(format_args!("direction = \"reverse\""));
        }
        self.start();
    }

    fn start(&mut self) {
        let start = self.scale(0.001, 60.0);
        self.line(format_args!("start = \"{start:.3}s\""));
    }

    /// Draws the amount of traffic, and its rate if it has one.
    fn amount(&mut self) {
        let bytes = if self.rng.chance(0.2) {
            self.scale(1.0, 2_000.0)
        } else {
            self.scale(2_000.0, 500_000.0)
        };
        self.line(format_args!("bytes = \"{bytes:.0}B\""));
        if self.rng.chance(0.4) {
            let (rate, write) = (self.scale(50.0, 5_000.0), self.between(1, 4_000));
            self.line(format_args!("traffic = \"constant-rate\""));
            self.line(format_args!("rate = \"{rate:.0}kbit\""));
            self.line(format_args!("write = \"{write}B\""));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_drawn_scenario_can_be_read() {
        for seed in 0..2_000 {
            let document = Document::parse("swarm", &scenario(seed)).expect("TOML");
            let plan = PointPlan::read(&document);
            assert!(plan.is_ok(), "seed {seed}: {plan:?}\n{}", scenario(seed));
        }
    }
}
