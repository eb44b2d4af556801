//! Flows of several kinds over one queue, in the shipped scenario: what each gets.

use crate::fixture;
use fulmar_sim::experiment::PointResult;

const SHARED: &str = include_str!("../../../scenarios/shared-queue.toml");

/// The points with queues of one and four bandwidth-delay products.
const WHOLE: [usize; 2] = [1, 2];
/// The point with a policer of 15 mbit.
const POLICED: usize = 5;

/// The share of the found AeroTP flow and of CUBIC, in fair shares, and the goodput of both in bits a second.
fn shares(point: &PointResult) -> (f64, f64, f64) {
    let metrics = &point.runs[0].metrics;
    let shares = metrics.shares.as_ref().expect("two flows");
    let both = metrics.flow.goodput_bps.expect("something arrived");
    (shares.of_flow["0"], shares.of_flow["1"], both)
}

#[test]
fn found_aerotp_and_cubic_share_each_kind_of_queue_and_the_same_way_each_time() {
    let sets = ["run.duration=30s"];
    let results = fixture::run(SHARED, &sets);
    assert_eq!(results.len(), 6);
    for point in &results {
        let (ours, cubic, both) = shares(point);
        let place = point.aggregate.point;
        println!("{place}: {ours:.2} {cubic:.2} of {:.2} mbit", both * 1e-6);
        if place < POLICED {
            // In shorter queues, and in those that signal early, shares vary more (docs/models/found-rate.md).
            let least = if WHOLE.contains(&place) { 0.5 } else { 0.25 };
            assert!(ours > least && cubic > least, "{place}: {ours} {cubic}");
            assert!(both > 0.85 * 20e6, "{place}: {both}");
        } else {
            // A policer shows no queue, and CUBIC halves itself at each of its drops (docs/models/found-rate.md).
            assert!(both > 0.85 * 15e6, "{place}: {both}");
        }
    }
    let again = fixture::run(SHARED, &sets);
    for (one, other) in results.iter().zip(&again) {
        assert_eq!(one.runs[0].metrics, other.runs[0].metrics);
    }
}

#[test]
fn behind_cubic_the_background_takes_what_is_left() {
    let results = fixture::run(SHARED, &["run.duration=30s", "flow.0.share=background"]);
    // Queues of half a bandwidth-delay product, one, and four.
    for point in &results[..3] {
        let (ours, cubic, _) = shares(point);
        println!("{ours:.2} {cubic:.2}");
        assert!(cubic > 1.8, "{ours} {cubic}");
    }
}
