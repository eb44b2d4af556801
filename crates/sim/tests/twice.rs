//! The same scenario and seed give the same octets of output, whatever runs beside.
//!
//! Method: serialise every record and compare texts, for a scenario that draws from every model.

use crate::fixture;
use crate::fixture::experiment;
use core::sync::atomic::Ordering::Relaxed;
use fulmar_sim::experiment::{Experiment, ExperimentProgress};
use fulmar_sim::swarm;
use fulmar_sim::world::WorldOptions;

const BUSY: &str = r#"
[run]
runs = 4
lateness = "3ms"
[lan]
rate = "10gbit"
[[hop]]
rate = "5mbit"
delay = "10ms"
loss = "5% burst 3"
ber = "1e-5"
reorder = "5% by 8ms"
duplicate = "5%"
[[hop]]
rate = "8mbit"
delay = "3ms"
jitter = "2ms reordering"
loss = "on-off 5% period 50ms"
fading = "gamma-gamma 0.6 time 1ms ber 1e-5 over 1s blocked 1ms..5ms every 50ms..100ms"
outages = "100ms+200ms"
[[flow]]
transport = "aerotp"
mode = "reliable"
bytes = "100kB"
[[flow]]
transport = "aerotp"
mode = "quasi-reliable"
fec_block = "20+4"
fec_words = 8
bytes = "50kB"
direction = "reverse"
[[flow]]
transport = "udp"
traffic = "constant-rate"
bytes = "50kB"
write = "500B"
rate = "400kbit"
[sweep]
"hop.0.ber" = ["0", "1e-5"]
"#;

fn output(experiment: &Experiment, jobs: usize) -> String {
    let results = experiment
        .run(jobs, &ExperimentProgress::default())
        .expect("nobody cancels");
    let mut text = String::new();
    for point in results {
        for run in &point.runs {
            text += &serde_json::to_string(run).expect("keys are texts");
            text.push('\n');
        }
        text += &serde_json::to_string(&point.aggregate).expect("keys are texts");
        text.push('\n');
    }
    text
}

#[test]
fn a_second_run_and_any_number_of_threads_give_the_same_output() {
    let experiment = experiment(BUSY, &[]);
    let first = output(&experiment, 1);
    assert_eq!(first.lines().count(), 2 * (4 + 1));
    assert!(!first.contains("NaN"));
    for jobs in [1, 2, 3] {
        assert_eq!(output(&experiment, jobs), first, "{jobs} jobs");
    }
}

#[test]
fn the_order_in_which_nodes_are_created_does_not_matter() {
    let mut experiment = experiment(BUSY, &[]);
    let first = output(&experiment, 0);
    for creation_order in [vec![4, 3, 2, 1, 0], vec![2, 0, 4, 1, 3]] {
        experiment.options = WorldOptions {
            creation_order,
            ..WorldOptions::default()
        };
        assert_eq!(output(&experiment, 0), first);
    }
}

#[test]
fn another_seed_gives_another_output() {
    let first = output(&experiment(BUSY, &[]), 0);
    assert_ne!(output(&experiment(BUSY, &["run.seed=2"]), 0), first);
}

#[test]
fn a_cancelled_experiment_keeps_the_runs_that_were_over() {
    const RUNS: usize = 5_000;
    let progress = ExperimentProgress::default();
    let experiment = experiment(BUSY, &[&format!("run.runs={RUNS}")]);
    let results = std::thread::scope(|scope| {
        let work = scope.spawn(|| experiment.run(2, &progress));
        while progress.done.load(Relaxed) < 3 {
            std::thread::yield_now();
        }
        progress.cancel.store(true, Relaxed);
        work.join().expect("no panic").expect("threads")
    });
    let kept: usize = results.iter().map(|point| point.runs.len()).sum();
    assert!((3..2 * RUNS).contains(&kept), "{kept} runs");
    for point in &results {
        assert_eq!(point.aggregate.n, point.runs.len());
        assert!(point.aggregate.incomplete);
    }
    let kept = &results[0].runs[0];
    let alone = fixture::run(BUSY, &[&format!("run.seed={}", kept.seed), "run.runs=1"]);
    assert_eq!(kept.metrics, alone[kept.point].runs[0].metrics);
    assert!(!alone[kept.point].aggregate.incomplete);
}

#[test]
fn the_swarm_counts_the_same_for_any_number_of_threads() {
    let totals =
        |jobs| swarm::sessions(1..60, jobs, &ExperimentProgress::default()).expect("threads");
    assert_eq!(totals(1), totals(2));
}
