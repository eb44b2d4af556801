//! TCP's set-up against ns-3 and a closed form.
//!
//! Method: `scenarios/ns3-setup.toml`, 4000 runs a point against ns-3's 2000, loss in both directions.

use crate::fixture::run;
use crate::ns3::{Comparison, half_width, means};
use fulmar_sim::experiment::PointResult;

const SCENARIO: &str = include_str!("../../../scenarios/ns3-setup.toml");
const TABLE: &str = include_str!("../../../reference/ns3/s2_setup.csv");
const LOSSES: [(&str, &str); 7] = [
    ("0%", "0"),
    ("1%", "0.01"),
    ("2%", "0.02"),
    ("5%", "0.05"),
    ("10%", "0.1"),
    ("15%", "0.15"),
    ("20%", "0.2"),
];

/// Mean and half width of ns-3's time to the first data; two columns have the name `ci95`.
fn reference(variant: &str, loss: &str) -> (f64, f64) {
    let wanted = ["S2", variant, "tcp", "onoff", "both", loss];
    let row = TABLE
        .lines()
        .map(|line| line.split(',').collect::<Vec<_>>())
        .find(|row| row.starts_with(&wanted))
        .unwrap_or_else(|| panic!("no row {wanted:?}"));
    let number = |index: usize| row[index].parse().expect("a number");
    (number(9), number(10))
}

fn first_data(result: &PointResult) -> Vec<f64> {
    let runs = result.runs.iter();
    runs.filter_map(|run| run.metrics.flow.first_delivery_s)
        .collect()
}

fn at(loss: &str, sets: &[&str]) -> Vec<f64> {
    let sweep = format!("sweep.hop.loss=[{loss}]");
    let sets: Vec<&str> = ["run.runs=4000", &sweep]
        .into_iter()
        .chain(sets.iter().copied())
        .collect();
    first_data(&run(SCENARIO, &sets)[0])
}

#[test]
fn the_time_to_the_first_data_agrees_in_every_variant_at_every_loss() {
    let variants: [(&str, &[&str]); 6] = [
        (
            "ns3-default-conn3s",
            &["tcp.initial_window=10", "tcp.rto_min=1s"],
        ),
        ("conn3s-minrto3s", &["tcp.initial_window=10"]),
        ("conn3s-iw1-minrto200ms", &["tcp.rto_min=200ms"]),
        ("conn3s-iw1-minrto3s", &[]),
        (
            "conn1s",
            &[
                "tcp.initial_window=10",
                "tcp.rto_initial=1s",
                "tcp.rto_min=1s",
            ],
        ),
        ("conn1s-iw1", &["tcp.rto_initial=1s", "tcp.rto_min=1s"]),
    ];
    let mut bad: Vec<Comparison> = Vec::new();
    for (variant, sets) in variants {
        for (loss, name) in LOSSES {
            let (theirs, ci) = reference(variant, name);
            let times = at(loss, sets);
            // A run that never gets its first data through is rare: 1 of 2000 in ns-3 at 20 %.
            assert!(times.len() >= 3990, "{variant}, {loss}: {}", times.len());
            let compared = means(&format!("{variant}, {loss}"), &times, theirs, ci);
            bad.extend(Some(compared).filter(|c| !c.agrees()));
        }
    }
    assert!(bad.is_empty(), "{bad:#?}");
}

#[test]
fn without_loss_the_first_data_come_after_two_trips_an_interval_and_their_own() {
    let times = at("0%", &["run.runs=1"]);
    // SYNs of 62 octets with framing (ns-3's, which tell no MSS, have 58), an interval of the
    // source, a segment of 1502 octets; each trip takes 5 ms.
    let octets = |count: f64| count * 8.0 / 10e6;
    let expected = 2.0 * (octets(62.0) + 5e-3) + 1472.0 * 8.0 / 4.416e6 + octets(1502.0) + 5e-3;
    assert!(
        (times[0] - expected).abs() < 5e-9,
        "{} {expected}",
        times[0]
    );
    assert!((times[0] - 18.961e-3).abs() < 8e-6);
}

#[test]
fn with_forward_loss_alone_the_mean_is_the_closed_form() {
    for (loss, p) in [("10%", 0.1_f64), ("20%", 0.2)] {
        let forward = format!("hop.forward.loss={loss}");
        let times = at("0%", &[&forward]);
        // SYN and first segment each wait 3 s, 6 s, ... for the one before: the sum of
        // p^k 3 x 2^(k-1), 5 and 6 times at most.
        let wait = |tries: i32| {
            (1..=tries)
                .map(|k| p.powi(k) * 3.0 * 2_f64.powi(k - 1))
                .sum::<f64>()
        };
        let expected = 18.967e-3 + wait(5) + wait(6);
        let mean = times.iter().sum::<f64>() / times.len() as f64;
        let half = half_width(&times);
        // Two means, each within its 95 % interval.
        assert!(
            (mean - expected).abs() <= half,
            "{loss}: {mean} ± {half}, {expected}"
        );
    }
}

/// The reference's section 5.4, its bulk source: 16.3376 ms. ns-3 acknowledges the SYN by a packet
/// of its own, 54 octets with its framing and time stamps, before the data; ours leave with them.
/// And ns-3's two SYNs lack the 4 octets that tell the MSS.
#[test]
fn without_loss_a_bulk_source_differs_from_ns3_by_its_acknowledgement_and_options_alone() {
    const OCTET_S: f64 = 8.0 / 10e6;
    let sets = [
        "tcp.initial_window=10",
        "flow.traffic=bulk",
        "run.runs=1",
        "sweep.hop.loss=[0%]",
    ];
    let first = first_data(&run(SCENARIO, &sets)[0])[0];
    let expected = 0.016_337_6 + (2.0 * 4.0 - 54.0) * OCTET_S;
    // ns-3's time is printed with six digits.
    assert!((first - expected).abs() < 1e-7, "{first}, {expected}");
}
