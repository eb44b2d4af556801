//! `fulmar sim --swarm N`: random sessions under random faults.

use super::{stoppable, watch};
use crate::exit::{Exit, Failure, OrExit};
use crate::signals::Signals;
use fulmar_sim::swarm::{SwarmTotals, scenario, sessions};

/// Runs `count` sessions from `seed` on and reports those that broke a promise.
pub(super) fn run(count: u64, seed: u64, jobs: usize, show: bool) -> Result<Exit, Failure> {
    if show {
        for seed in seed..seed.saturating_add(count) {
            println!("# fulmar sim --swarm 1 --seed {seed}\n{}", scenario(seed));
        }
        return Ok(Exit::Done);
    }
    let signals = Signals::catch(&[])?;
    let progress = stoppable(&signals);
    let work = || sessions(seed..seed.saturating_add(count), jobs, &progress);
    let totals = watch(count, "sessions", &progress, work)?.or_exit(Exit::Device)?;
    let SwarmTotals {
        sessions,
        delivered_bytes,
        packet_hops,
        packets_lost,
        packets_damaged,
        failures,
    } = totals;
    println!(
        "{sessions} sessions, {delivered_bytes} octets delivered and compared, {packet_hops} \
         packet hops, {packets_lost} packets lost, {packets_damaged} damaged, {} sessions broke \
         a promise",
        failures.len()
    );
    for failure in &failures {
        let seed = failure.seed;
        println!(
            "fulmar sim --swarm 1 --seed {seed}: {}",
            failure.broken.join("; ")
        );
    }
    let verdict = if failures.is_empty() {
        Exit::Done
    } else {
        Exit::Failed
    };
    Ok(signals.exit().unwrap_or(verdict))
}
