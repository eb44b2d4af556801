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

/// Student's quantile of two-sided 95 % for the mean of [`SEEDS`] pairs.
const QUANTILE: f64 = 2.131;
const SEEDS: usize = 16;

/// The share of what passes that each seed brings.
fn shares(text: &str, settings: &[&str]) -> Vec<f64> {
    let runs = format!("run.runs={SEEDS}");
    let settings = [&[runs.as_str()], settings].concat();
    let runs = fixture::run(text, &settings).remove(0).runs;
    assert_eq!(runs.len(), SEEDS);
    let octets = |run: &RunRecord| run.metrics.flow.delivered_bytes as f64;
    runs.iter().map(|run| octets(run) / passed()).collect()
}

/// The mean, and half of its interval of 95 %.
fn mean(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (mean, QUANTILE * (squares / (count - 1.0) / count).sqrt())
}

/// A told rate is a bound, so news that is late keeps a link that has become faster slow: from some age on none is better. The
/// seeds are paired: each draws the same losses with and without news. The guide has this table (`docs/guide/links.md`).
#[test]
fn news_is_worth_something_while_it_is_young_and_none_is_better_once_it_is_old() {
    let alone = shares(&PASS.replace("told_after = \"0s\"\n", ""), &[]);
    let mut last = f64::INFINITY;
    let (share, half) = mean(&alone);
    println!("nothing: {share:.3} +- {half:.3}");
    for (age, is_better) in [
        ("0s", Some(true)),
        ("200ms", Some(true)),
        ("500ms", None),
        ("1s", Some(false)),
        ("2s", Some(false)),
        ("5s", Some(false)),
    ] {
        let told = shares(PASS, &[&format!("hop.told_after={age}")]);
        let gains: Vec<f64> = told
            .iter()
            .zip(&alone)
            .map(|(one, other)| one - other)
            .collect();
        let ((share, spread), (gain, half)) = (mean(&told), mean(&gains));
        println!("{age}: {share:.3} +- {spread:.3}, worth {gain:+.3} +- {half:.3}");
        assert!(share < last, "older news brings less: {age}");
        last = share;
        match is_better {
            Some(true) => assert!(gain - half > 0.0, "{age}: {gain} +- {half}"),
            Some(false) => assert!(gain + half < 0.0, "{age}: {gain} +- {half}"),
            None => {}
        }
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
