//! Radios that tell what their hops are: a sender that finds its rate and is told does as well as one that knows everything.
//!
//! Method: two passes of a satellite that no transfer outlasts, so that what is delivered by their end counts: one whose rate
//! rises and falls (`scenarios/satellite-pass.toml`), and one whose received power does, and with it the wrong bits
//! (`scenarios/optical-pass.toml`). Perfect knowledge is the same sender with the rate told to it and never searched, in the
//! instant of each change. Every figure is the mean of [`SEEDS`] runs with its interval of 95 %; where two are compared, seed by
//! seed, since runs of one seed draw the same losses.

use crate::fixture;
use fulmar_sim::report::record::RunRecord;
use fulmar_sim::scenario::{PointPlan, TransportPlan};

const RATE_PASS: &str = include_str!("../../../scenarios/satellite-pass.toml");
const POWER_PASS: &str = include_str!("../../../scenarios/optical-pass.toml");

/// A sender to which the rate is told, with what is told of the hop besides.
const KNOWN: &str = "flow.send_rate=10mbit";
/// Octets of a packet.
const PACKET: u32 = 1_500;
const SEEDS: usize = 16;
/// Student's quantile of two-sided 95 % for the mean of [`SEEDS`] runs.
const QUANTILE: f64 = 2.131;

/// A pass of which the radios say nothing.
fn untold(text: &str) -> String {
    let silent = text.replace("told_after = \"0s\"\n", "");
    assert_ne!(silent, text, "the pass is told");
    silent
}

fn runs(text: &str, settings: &[&str]) -> Vec<RunRecord> {
    let runs = format!("run.runs={SEEDS}");
    let settings = [&[runs.as_str()], settings].concat();
    let runs = fixture::run(text, &settings).remove(0).runs;
    assert_eq!(runs.len(), SEEDS);
    runs
}

/// Octets that each seed delivers.
fn delivered(text: &str, settings: &[&str]) -> Vec<f64> {
    let runs = runs(text, settings);
    runs.iter()
        .map(|run| run.metrics.flow.delivered_bytes as f64)
        .collect()
}

fn plan(text: &str) -> PointPlan {
    fixture::experiment(text, &[]).points.remove(0).plan
}

/// Octets of each packet of the flow that are no data.
fn headers(text: &str) -> u32 {
    let TransportPlan::Aerotp(own) = &plan(text).flows[0].transport else {
        panic!("the pass has one flow of AeroTP");
    };
    let payload = u32::try_from(own.payload().0).expect("it fits a packet");
    PACKET - payload
}

/// Octets behind `headers` of each packet that the hop passes in the whole pass, in packets of the length that is best in each
/// instant: the sum of rate, time, what is not lost, and what no wrong bit hits.
fn passed(text: &str, headers: u32) -> f64 {
    let plan = plan(text);
    let hop = &plan.hops[0];
    let first = core::iter::once((0.0, &hop.forward));
    let later = hop.changes.iter();
    let steps: Vec<_> = first
        .chain(later.map(|change| (change.at.as_secs_f64(), &change.forward)))
        .collect();
    let ends = steps.iter().skip(1).map(|(at, _)| *at);
    let ends = ends.chain([plan.run.duration.as_secs_f64()]);
    let octets = steps.iter().zip(ends).map(|((begins, config), ends)| {
        let rate = config.rate.expect("it has one").as_bits_per_second() as f64 / 8.0;
        let whole = 1.0 - config.bits.rate().value();
        let share = |octets: u32| {
            let data = f64::from(octets - headers) / f64::from(octets);
            data * whole.powi(8 * octets.cast_signed())
        };
        let best = (headers + 1..=PACKET).map(share).fold(0.0, f64::max);
        (ends - begins) * rate * (1.0 - config.loss.mean_loss().value()) * best
    });
    octets.sum()
}

/// The mean, and half of its interval of 95 %.
fn mean(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (mean, QUANTILE * (squares / (count - 1.0) / count).sqrt())
}

/// The same of what two series make of each other, seed by seed.
fn mean_of(left: &[f64], right: &[f64], join: fn(f64, f64) -> f64) -> (f64, f64) {
    let joined = left
        .iter()
        .zip(right)
        .map(|(left, right)| join(*left, *right));
    mean(&joined.collect::<Vec<_>>())
}

/// Asserts that a pass that is told brings .97 of what perfect knowledge brings; returns what being told is worth: the gain over
/// the same seeds without a word.
fn assert_as_good_as_knowing(text: &str, headers: u32) -> (f64, f64) {
    let told = delivered(text, &[]);
    let known = delivered(text, &[KNOWN]);
    let alone = delivered(&untold(text), &[]);
    let passed = passed(text, headers);
    for (name, octets) in [("told", &told), ("known", &known), ("alone", &alone)] {
        let (mean, half) = mean(octets);
        let (share, half) = (mean / passed, half / passed);
        println!("{name}: {mean:.0} octets, {share:.4} +- {half:.4} of what passes; {octets:?}");
    }
    let (share, half) = mean_of(&told, &known, |told, known| told / known);
    println!("told, of what is known: {share:.4} +- {half:.4}");
    assert!(share - half >= 0.97, "{share} +- {half}");
    let (gain, half) = mean_of(&told, &alone, |told, alone| told / alone - 1.0);
    println!("worth: {gain:+.4} +- {half:.4}");
    (gain, half)
}

#[test]
fn a_pass_that_is_told_brings_as_much_as_perfect_knowledge_of_it() {
    let (gain, half) = assert_as_good_as_knowing(RATE_PASS, 0);
    assert!(gain - half > 0.0, "{gain} +- {half}");
}

#[test]
fn a_pass_whose_received_power_is_told_brings_as_much_as_perfect_knowledge_of_it() {
    let (gain, half) = assert_as_good_as_knowing(POWER_PASS, headers(POWER_PASS));
    assert!(gain - half > 0.0, "{gain} +- {half}");
}

/// The wrong bits are worth something by themselves: a radio that tells all but them brings less.
#[test]
fn told_wrong_bits_are_worth_something_beside_a_told_rate() {
    let told = delivered(POWER_PASS, &[KNOWN]);
    let alone = delivered(&untold(POWER_PASS), &[KNOWN]);
    let (gain, half) = mean_of(&told, &alone, |told, alone| told / alone - 1.0);
    println!("worth: {gain:+.4} +- {half:.4}");
    assert!(gain - half > 0.0, "{gain} +- {half}");
}

/// A told rate is a bound, so news that is late keeps a link that has become faster slow: from some age on none is better. The
/// guide has this table (`docs/guide/links.md`).
#[test]
fn news_is_worth_something_while_it_is_young_and_none_is_better_once_it_is_old() {
    let passed = passed(RATE_PASS, 0);
    let shares = |text: &str, settings: &[&str]| {
        let octets = delivered(text, settings);
        octets
            .iter()
            .map(|octets| octets / passed)
            .collect::<Vec<_>>()
    };
    let alone = shares(&untold(RATE_PASS), &[]);
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
        let told = shares(RATE_PASS, &[&format!("hop.told_after={age}")]);
        let (share, spread) = mean(&told);
        let (gain, half) = mean_of(&told, &alone, |told, alone| told - alone);
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

/// In the five seconds of nothing what leaves is lost, beside the one to five in a hundred of the rest.
#[test]
fn a_hop_that_is_told_to_pass_nothing_is_not_sent_to() {
    let lost = |text: &str| {
        let runs = runs(text, &[]);
        let lost = runs.iter().map(|run| run.metrics.wire_loss.loss as f64);
        lost.collect::<Vec<_>>()
    };
    let (told, silent) = (lost(RATE_PASS), lost(&untold(RATE_PASS)));
    let (fewer, half) = mean_of(&silent, &told, |silent, told| silent - told);
    let ((told, _), (silent, _)) = (mean(&told), mean(&silent));
    println!("{told:.0} lost, {silent:.0} where nobody tells, {fewer:.0} +- {half:.0} fewer");
    assert!(fewer - half > 0.0, "{fewer} +- {half}");
}
