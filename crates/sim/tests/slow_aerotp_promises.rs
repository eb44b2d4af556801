//! The promises of AeroTP's modes at the papers' error rates and far beyond, 25 seeds each: what is
//! complete, what is lost, and how close to the channel a long transfer runs.
//!
//! Method: the papers' link as shipped in `scenarios/`, real flips and losses. The bounds are
//! closed forms: the payload share of a packet and the selective-repeat bound (1 - p).

use crate::fixture::{AIRBORNE, SETUP, run};
use fulmar_sim::experiment::PointResult;

const BULK: &str = include_str!("../../../scenarios/airborne-bulk.toml");
const BIT_ERROR_RATES: [&str; 6] = ["0", "1e-6", "1e-5", "2.5e-5", "5e-5", "1e-4"];
const LOSSES: [&str; 7] = ["0%", "5%", "10%", "20%", "30%", "40%", "50%"];

/// Runs a scenario with settings; no run may have an error such as a wrong octet.
fn point(text: &str, sets: &[&str]) -> PointResult {
    let result = run(text, sets).remove(0);
    for run in &result.runs {
        assert_eq!(run.error, None, "{sets:?}, seed {}", run.seed);
    }
    result
}

fn delivered(result: &PointResult) -> f64 {
    let total: u64 = result
        .runs
        .iter()
        .map(|run| run.metrics.flow.delivered_bytes)
        .sum();
    total as f64 / result.runs.len() as f64
}

fn goodput_bps(result: &PointResult) -> f64 {
    let each = result
        .runs
        .iter()
        .map(|run| run.metrics.flow.goodput_bps.expect("it delivered"));
    each.sum::<f64>() / result.runs.len() as f64
}

#[test]
fn reliable_and_nack_mack_deliver_every_octet_at_every_bit_error_rate_and_loss() {
    for mode in [
        "flow.mode=reliable",
        "flow.mode=nack-mack",
        "flow.mode=near-reliable",
    ] {
        let errors = BIT_ERROR_RATES.map(|ber| format!("hop.ber={ber}"));
        let losses = LOSSES.map(|loss| format!("hop.loss={loss}"));
        for fault in errors.iter().chain(&losses) {
            let result = point(AIRBORNE, &[mode, fault, "run.runs=25"]);
            assert_eq!(result.runs.len(), 25);
            for run in &result.runs {
                assert!(run.metrics.completed, "{mode} {fault} seed {}", run.seed);
            }
        }
    }
}

/// Hybrid-ARQ paper, Section IV-F: NACK-only starts to lose above 2.5e-5, and quasi-reliable loses
/// more than NACK-only.
#[test]
fn nack_only_loses_little_at_first_and_less_than_fec_only() {
    let mean = |mode: &str, ber: &str| {
        delivered(&point(
            AIRBORNE,
            &[mode, ber, "flow.fec_words=6", "run.runs=25"],
        ))
    };
    let offered = 1_000_960.0;
    let gentle = mean("flow.mode=nack", "hop.ber=1e-6");
    assert!(gentle > 0.999 * offered, "{gentle}");
    for ber in ["hop.ber=5e-5", "hop.ber=1e-4"] {
        let (nack, fec) = (
            mean("flow.mode=nack", ber),
            mean("flow.mode=quasi-reliable", ber),
        );
        assert!(nack < 0.999 * offered, "{ber}: {nack}");
        assert!(fec < nack, "{ber}: FEC only {fec}, NACK only {nack}");
    }
}

/// At BER 1e-4 with 6 words: 0.95 of (1460 - 24) / 1500, and 0.92 of the link rate.
#[test]
fn nack_mack_with_parity_runs_close_to_the_link_rate_at_1e_4() {
    let sets = ["hop.ber=1e-4", "flow.fec_words=6", "run.runs=5"];
    let rate = 5e6;
    let share = (1460.0 - 24.0) / 1500.0;
    let mut short = 0.0;
    for delay in ["hop.delay=10us", "hop.delay=10ms"] {
        let goodput = goodput_bps(&point(BULK, &[&sets[..], &[delay]].concat()));
        assert!(goodput >= 0.95 * rate * share, "{delay}: {goodput}");
        assert!(goodput >= 0.92 * rate, "{delay}: {goodput}");
        short = goodput;
    }
    let long = goodput_bps(&point(BULK, &[&sets[..], &["hop.delay=300ms"]].concat()));
    assert!(long >= 0.95 * short, "300 ms: {long} against {short}");
}

#[test]
fn reliable_runs_within_three_per_cent_of_the_selective_repeat_bound() {
    let share = 1460.0 / 1500.0;
    let per_1e_5 = 1.0 - (1.0_f64 - 1e-5).powi(8 * 1500);
    for (fault, delay, loss) in [
        ("hop.ber=1e-5", "hop.delay=10us", per_1e_5),
        ("hop.ber=1e-5", "hop.delay=10ms", per_1e_5),
        ("hop.loss=30%", "hop.delay=10ms", 0.3),
    ] {
        let sets = ["flow.mode=reliable", fault, delay, "run.runs=5"];
        let goodput = goodput_bps(&point(BULK, &sets));
        let bound = 5e6 * share * (1.0 - loss);
        assert!(
            goodput >= 0.97 * bound,
            "{fault} {delay}: {goodput} of {bound}"
        );
        // Five runs of 13,699 TPDUs: the losses drawn stay within 1 % of their mean.
        assert!(
            goodput <= 1.01 * bound,
            "{fault} {delay}: {goodput} beats {bound}"
        );
    }
}

/// Every loss after the last new data costs a round trip of 600 ms unless the idle link repeats it.
#[test]
fn a_long_path_costs_a_long_reliable_transfer_at_30_per_cent_loss_no_more_than_five_per_cent() {
    let sets = ["flow.mode=reliable", "hop.loss=30%", "run.runs=20"];
    let at = |delay| goodput_bps(&point(BULK, &[&sets[..], &[delay]].concat()));
    let (short, long) = (at("hop.delay=10ms"), at("hop.delay=300ms"));
    assert!(long >= 0.95 * short, "{long} against {short}");
}

/// Multi-mode paper, Section IV-A and Figure 12: 9.2 ms at no loss, 10.1 ms at 20 %.
#[test]
fn first_data_reaches_the_sink_after_about_nine_milliseconds_and_under_eleven_at_20_per_cent() {
    let points = run(SETUP, &["run.runs=200"]);
    let mean_ms = |result: &PointResult| {
        let arrivals = result
            .runs
            .iter()
            .filter_map(|run| run.metrics.flow.first_arrival_s);
        let arrivals: Vec<f64> = arrivals.collect();
        assert_eq!(arrivals.len(), 200, "every session sets up");
        1e3 * arrivals.iter().sum::<f64>() / arrivals.len() as f64
    };
    let first = mean_ms(points.first().expect("0 %"));
    let last = mean_ms(points.last().expect("20 %"));
    assert!((8.5..9.5).contains(&first), "{first} ms at no loss");
    assert!(last > first && last < 11.0, "{last} ms at 20 %");
}
