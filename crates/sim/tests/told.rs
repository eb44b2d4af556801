//! Radios that tell what their hops are: a sender that finds its rate and is told does as well as one that knows everything.
//!
//! Method: the satellite's pass of `scenarios/satellite-pass.toml`, which no transfer outlasts, so that what is delivered by its end
//! counts. Perfect knowledge is the same sender with the rate told to it and never searched, in the instant of each change.

use crate::fixture;
use fulmar_sim::report::record::RunRecord;

const PASS: &str = include_str!("../../../scenarios/satellite-pass.toml");

fn pass(settings: &[(&str, &str)]) -> RunRecord {
    let settings: Vec<String> = settings
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
    let mut results = fixture::run(PASS, &settings);
    results.remove(0).runs.remove(0)
}

/// Octets of data that the hop could pass, of packets of 1,500 octets: the sum over the pass of rate, time and what is not lost.
fn passed() -> f64 {
    let steps = [
        (10.0, 1.0, 0.05),
        (10.0, 2.0, 0.02),
        (10.0, 4.0, 0.01),
        (10.0, 8.0, 0.005),
        (20.0, 10.0, 0.0),
        (10.0, 8.0, 0.005),
        (5.0, 8.0, 1.0),
        (10.0, 4.0, 0.01),
        (8.0, 2.0, 0.02),
        (7.0, 1.0, 0.05),
    ];
    let bits: f64 = steps
        .iter()
        .map(|(seconds, mbit, lost)| seconds * mbit * 1e6 * (1.0 - lost))
        .sum();
    bits / 8.0
}

#[test]
fn a_pass_that_is_told_brings_as_much_as_perfect_knowledge_of_it() {
    let told = pass(&[]);
    let known = pass(&[("flow.send_rate", "10mbit")]);
    let alone = fixture::run(&PASS.replace("told_after = \"0s\"\n", ""), &[])
        .remove(0)
        .runs
        .remove(0);
    let octets = |run: &RunRecord| run.metrics.flow.delivered_bytes as f64;
    let queue = |run: &RunRecord| run.metrics.wire_loss.queue;
    for (name, run) in [("told", &told), ("known", &known), ("alone", &alone)] {
        println!(
            "{name}: {:.0} octets, {:.3} of what passes, {} lost in the queue",
            octets(run),
            octets(run) / passed(),
            queue(run)
        );
    }
    let share = octets(&told) / octets(&known);
    assert!(share >= 0.97, "{share}");
    assert!(
        octets(&told) > octets(&alone),
        "being told is worth something"
    );
}

/// A told rate is a bound, so news that is late keeps a link that has become faster slow: from some age on none is better.
#[test]
fn news_is_worth_less_the_older_it_is() {
    let ages = ["0s", "200ms", "1s", "2s", "5s"];
    let runs = ages.map(|age| pass(&[("hop.told_after", age)]));
    let octets = |run: &RunRecord| run.metrics.flow.delivered_bytes;
    for (age, run) in ages.iter().zip(&runs) {
        println!(
            "{age}: {} octets, {:.3} of what passes",
            octets(run),
            octets(run) as f64 / passed()
        );
    }
    for pair in runs.windows(2) {
        assert!(
            octets(&pair[0]) > octets(&pair[1]),
            "{} {}",
            octets(&pair[0]),
            octets(&pair[1])
        );
    }
}

#[test]
fn a_hop_that_is_told_to_pass_nothing_is_not_sent_to() {
    let lost = |run: &RunRecord| run.metrics.wire_loss.loss;
    let told = pass(&[]);
    let untold = fixture::run(&PASS.replace("told_after = \"0s\"\n", ""), &[])
        .remove(0)
        .runs
        .remove(0);
    // Five seconds of nothing at 8 mbit: what leaves meanwhile is lost, beside the one to five in a hundred of the rest.
    println!("{} lost, {} where nobody tells", lost(&told), lost(&untold));
    assert!(lost(&told) < lost(&untold), "{}", lost(&told));
}
