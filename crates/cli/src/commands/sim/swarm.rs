//! `fulmar sim --swarm N`: random sessions under random faults.

use super::SimArgs;
use crate::commands::watch::{Total, stoppable, watch};
use crate::exit::{Exit, Failure, OrExit};
use crate::output;
use crate::signals::Signals;
use fulmar_sim::report::record::SCHEMA;
use fulmar_sim::swarm::{LinkSwarmTotals, SwarmTotals, link_sessions, scenario, sessions};
use serde::Serialize;

#[derive(Serialize)]
struct SwarmRecord<'a> {
    record: &'static str,
    schema: u32,
    version: &'static str,
    seed: u64,
    incomplete: bool,
    #[serde(flatten)]
    totals: &'a SwarmTotals,
}

#[derive(Serialize)]
struct LinkSwarmRecord<'a> {
    record: &'static str,
    schema: u32,
    version: &'static str,
    seed: u64,
    #[serde(flatten)]
    totals: &'a LinkSwarmTotals,
}

/// Runs `count` sessions and reports those that broke a promise.
pub(super) fn run(count: u64, args: &SimArgs) -> Result<Exit, Failure> {
    let seed = args.seed.unwrap_or(1);
    if args.show {
        if count != 1 {
            let problem = format!("--show prints one scenario: --swarm 1 --seed {seed} --show");
            return Err(anyhow::anyhow!(problem)).or_exit(Exit::Usage);
        }
        output::line(&format!(
            "# fulmar sim --swarm 1 --seed {seed}\n{}",
            scenario(seed)
        ))?;
        return Ok(Exit::Done);
    }
    if args.links {
        return run_links(seed, count, args);
    }
    let signals = Signals::catch(&[])?;
    let progress = stoppable(&signals);
    let work = || {
        sessions(
            seed..seed.saturating_add(count),
            args.workers.jobs,
            &progress,
        )
    };
    let all = Total::of("sessions", count, count);
    let totals = watch(&all, &progress, work)?.or_exit(Exit::Device)?;
    if args.json {
        output::record(&SwarmRecord {
            record: "swarm",
            schema: SCHEMA,
            version: env!("CARGO_PKG_VERSION"),
            seed,
            incomplete: totals.sessions < count,
            totals: &totals,
        })?;
    } else {
        tell(&totals)?;
    }
    if totals.sessions < count {
        let over = totals.sessions;
        eprintln!("fulmar: interrupted; {over} of {count} sessions were over and are reported");
    }
    let verdict = if totals.failures.is_empty() {
        Exit::Done
    } else {
        Exit::Failed
    };
    Ok(signals.exit().unwrap_or(verdict))
}

/// Runs `count` sessions of link layers alone, and reports those that broke a promise.
fn run_links(seed: u64, count: u64, args: &SimArgs) -> Result<Exit, Failure> {
    let signals = Signals::catch(&[])?;
    let progress = stoppable(&signals);
    let seeds = seed..seed.saturating_add(count);
    let work = || link_sessions(seeds, args.workers.jobs, &progress);
    let all = Total::of("sessions", count, count);
    let totals = watch(&all, &progress, work)?.or_exit(Exit::Device)?;
    if args.json {
        output::record(&LinkSwarmRecord {
            record: "link-swarm",
            schema: SCHEMA,
            version: env!("CARGO_PKG_VERSION"),
            seed,
            totals: &totals,
        })?;
    } else {
        for layer in &totals.layers {
            output::line(&format!(
                "{}: {} sessions, {} frames, {} lost, {} damaged, {} restarts, {} octets delivered \
                 and compared, {} sessions broke a promise",
                layer.layer,
                layer.sessions,
                layer.frames,
                layer.frames_lost,
                layer.frames_damaged,
                layer.restarts,
                layer.delivered_bytes,
                layer.broken
            ))?;
        }
        for failure in &totals.failures {
            let (seed, broken) = (failure.seed, failure.broken.join("; "));
            output::line(&format!(
                "fulmar sim --swarm 1 --links --seed {seed}: {broken}"
            ))?;
        }
    }
    let verdict = if totals.failures.is_empty() {
        Exit::Done
    } else {
        Exit::Failed
    };
    Ok(signals.exit().unwrap_or(verdict))
}

fn tell(totals: &SwarmTotals) -> Result<(), Failure> {
    let SwarmTotals {
        sessions,
        delivered_bytes,
        packet_hops,
        link_frames,
        link_frames_lost,
        link_restarts,
        packets_lost,
        packets_damaged,
        flows_finished,
        flows_resumed,
        gateway_restarts,
        links_held,
        hosts_lost,
        messages_judged,
        paths_found,
        packets_on_further_paths,
        failures,
    } = totals;
    output::line(&format!(
        "{sessions} sessions, each of AeroTP, LT-TCP, every link layer and gateways, {delivered_bytes} octets delivered \
         and compared, {packet_hops} packet hops, {packets_lost} packets lost, {packets_damaged} \
         damaged, {link_frames} frames of link layers, {link_frames_lost} of them lost, \
         {link_restarts} restarts of their ends, {gateway_restarts} restarts of gateways, {links_held} links held for down, \
         {hosts_lost} hosts lost, {flows_finished} ends of flows finished, {flows_resumed} went on, \
         {messages_judged} messages held to a deadline, {paths_found} further paths found, which carried \
         {packets_on_further_paths} packets, \
         {} sessions broke a promise",
        failures.len()
    ))?;
    for failure in failures {
        let (seed, broken) = (failure.seed, failure.broken.join("; "));
        output::line(&format!("fulmar sim --swarm 1 --seed {seed}: {broken}"))?;
    }
    Ok(())
}
