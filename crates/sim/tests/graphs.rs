//! Graphs of nodes: shared links, two ways round, and gateways over several paths, held against what can be reckoned.

use crate::fixture::{experiment, run};
use fulmar_sim::ExperimentProgress;
use fulmar_sim::report::graph::{GraphFlow, GraphMetrics, WayMetrics};
use fulmar_sim::report::record::RunRecord;

const SHARED_LINK: &str = include_str!("../../../scenarios/shared-link.toml");
const TWO_WAYS: &str = include_str!("../../../scenarios/two-ways-round.toml");
const TWO_PATHS: &str = include_str!("../../../scenarios/two-paths.toml");

fn graph(run: &RunRecord) -> &GraphMetrics {
    run.metrics.graph.as_ref().expect("a graph")
}

fn flow(run: &RunRecord, index: usize) -> GraphFlow {
    graph(run).by_flow[&index.to_string()]
}

fn way(run: &RunRecord, name: &str) -> WayMetrics {
    graph(run).by_way[name]
}

fn goodput(run: &RunRecord, index: usize) -> f64 {
    flow(run, index).goodput_bps.unwrap_or_default()
}

#[test]
fn flows_of_two_senders_share_what_cross_traffic_leaves_of_a_link() {
    let points = run(SHARED_LINK, &["run.duration=30s"]);
    let run = &points[0].runs[0];
    // 1,472 octets of UDP's are 1,500 on the link, and 1,448 of TCP's with timestamps are 1,500.
    let cross = goodput(run, 2) * 1500.0 / 1472.0;
    let left = (10e6 - cross) * 1448.0 / 1500.0;
    let (one, other) = (goodput(run, 0), goodput(run, 1));
    let share = (one + other) / left;
    println!("{one:.0} {other:.0}: {share:.3} of {left:.0}, {cross:.0} across");
    assert!((0.98..=1.0).contains(&share), "{share}");
    assert!(cross > 0.9 * 4.076e6 && cross < 4.08e6, "{cross}");
    assert!(one.min(other) / one.max(other) > 0.5, "{one} {other}");
    let down = way(run, "down/forward");
    assert!(
        down.rate_bps
            .is_some_and(|bps| (9.8e6..=10.01e6).contains(&bps)),
        "{down:?}"
    );
    assert!(down.lost_queue > 0 && down.lost == 0, "{down:?}");
    // Nothing but the link is full.
    assert_eq!(way(run, "cabin-lan/forward").lost_queue, 0);
    let into: u64 = ["cabin-lan", "cockpit-lan"]
        .map(|lan| way(run, &format!("{lan}/forward")).packets)
        .iter()
        .sum();
    assert!(into >= down.packets + down.lost_queue);
    assert!(into - down.packets - down.lost_queue < 60, "under way");
}

#[test]
fn a_flow_takes_the_hops_that_cost_least_or_those_that_it_is_told() {
    let delay = |run: &RunRecord, index| flow(run, index).delay_p50_s.expect("delivered");
    let points = run(TWO_WAYS, &[]);
    let run_near = &points[0].runs[0];
    assert!((delay(run_near, 0) - 2.0 * (0.0024 + 0.010)).abs() < 1e-9);
    assert!((delay(run_near, 1) - 2.0 * (0.006 + 0.040)).abs() < 1e-9);
    let packets = |name| way(run_near, name).packets;
    assert_eq!(packets("hop-0/forward"), packets("hop-1/forward"));
    assert_eq!(packets("hop-2/forward"), packets("hop-3/forward"));
    assert_eq!(packets("hop-0/forward"), packets("hop-2/forward"));
    assert_eq!(packets("hop-0/reverse"), 0);
    // Two hops for each octet that was delivered.
    assert_eq!(run_near.metrics.wire_packets, 4 * packets("hop-0/forward"));
    let points = run(TWO_WAYS, &["hop.0.cost=5"]);
    let run_far = &points[0].runs[0];
    assert_eq!(way(run_far, "hop-0/forward").packets, 0);
    assert!(delay(run_far, 0) > 0.09);
}

/// The share of the ideal sum of both paths that a transfer gets.
fn of_sum(sets: &[&str]) -> f64 {
    let points = run(TWO_PATHS, sets);
    let run = &points[0].runs[0];
    assert_eq!(run.metrics.flow.delivered_bytes, 30_000_000);
    let ideal = (10e6 * 0.98 + 5e6 * 0.99) * 1440.0 / 1500.0;
    goodput(run, 0) / ideal
}

#[test]
fn gateways_over_two_paths_carry_the_sum() {
    let told = of_sum(&["run.runs=1"]);
    let found = of_sum(&["run.runs=1", "flow.send_rate=found"]);
    println!("told {told:.3}, found {found:.3}");
    assert!(told > 0.93 && told < 1.01, "{told}");
    assert!(found > 0.85 && found < 1.01, "{found}");
}

#[test]
fn a_costly_path_stands_by_until_the_other_is_down() {
    let sets = ["run.runs=1", "flow.path.1.cost=1"];
    let alone = of_sum(&sets);
    // The first path's share of the sum.
    let first = 10.0 * 0.98 / (10.0 * 0.98 + 5.0 * 0.99);
    println!("{alone:.3} of {first:.3}");
    assert!(alone > 0.93 * first && alone < 1.01 * first, "{alone}");
    let points = run(TWO_PATHS, &[sets[0], sets[1], "hop.0.outages=10s+5s"]);
    let run = &points[0].runs[0];
    assert_eq!(run.metrics.flow.delivered_bytes, 30_000_000);
    // 5 mbit for most of 5 s.
    let carried = way(run, "satellite/forward").bytes;
    println!("{carried} octets on the path that stands by");
    assert!((2_400_000..3_300_000).contains(&carried), "{carried}");
}

#[test]
fn nobody_speaks_between_gateways_without_flows() {
    let points = run(TWO_PATHS, &["run.runs=1", "flow.bytes=100kB"]);
    let run = &points[0].runs[0];
    assert_eq!(run.metrics.end_reason, "completed");
}

#[test]
fn the_order_in_which_the_nodes_of_a_graph_are_created_does_not_matter() {
    let text = |order: Vec<usize>| {
        let mut experiment = experiment(SHARED_LINK, &["run.duration=2s"]);
        experiment.options.creation_order = order;
        let results = experiment.run(1, &ExperimentProgress::default());
        serde_json::to_string(&results.expect("threads")[0].runs[0]).expect("keys are texts")
    };
    let first = text(Vec::new());
    assert_eq!(text(vec![3, 1, 0, 2]), first);
}

#[test]
fn any_number_of_threads_gives_the_same_records_of_graphs() {
    let sets = ["run.runs=3", "flow.bytes=300kB", "flow.send_rate=found"];
    let experiment = experiment(TWO_PATHS, &sets);
    let text = |jobs| {
        let results = experiment.run(jobs, &ExperimentProgress::default());
        let runs = &results.expect("threads")[0].runs;
        serde_json::to_string(runs).expect("keys are texts")
    };
    assert_eq!(text(1), text(3));
}

#[test]
fn a_record_of_a_graph_reads_back() {
    let points = run(TWO_WAYS, &["flow.bytes=20kB"]);
    let run = &points[0].runs[0];
    let text = serde_json::to_string(run).expect("keys are texts");
    let read: RunRecord = serde_json::from_str(&text).expect("a record");
    assert_eq!(&read, run);
}
