//! UDP over the papers' link against closed forms and against ns-3.
//!
//! Method: the shipped scenarios with `flow.transport=udp`. A damaged packet is dropped by the
//! link's frame check, as in ns-3, so that delivery follows PER = 1 - (1 - BER)^(8 x 1500) exactly.
//! ns-3's frames have two octets more (PPP), which the expectations account for. Its values are
//! those of 100 runs with ns-3.37, file `s1_udp_newreno.csv`, README section 5 of the reference.

use crate::fixture::{AIRBORNE, SETUP, run};

/// Writes of one run.
const WRITES: f64 = 680.0;
const WRITE_BYTES: f64 = 1472.0;
const PACKET_BITS: f64 = 12_000.0;
const RATE_BPS: f64 = 5e6;
const LAN_BPS: f64 = 10e9;
const UDP: [&str; 3] = ["flow.transport=udp", "hop.frame_check=true", "run.runs=100"];

fn udp(more: &[&str]) -> fulmar_sim::report::aggregate::AggregateRecord {
    let sets: Vec<&str> = UDP.iter().chain(more).copied().collect();
    run(AIRBORNE, &sets).remove(0).aggregate
}

fn mean(point: &fulmar_sim::report::aggregate::AggregateRecord, name: &str) -> f64 {
    point.summary(name).and_then(|s| s.mean).expect(name)
}

#[test]
fn delivery_follows_the_exact_law_of_independent_bit_errors() {
    for ber in ["1e-6", "1e-5", "2.5e-5", "5e-5", "1e-4"] {
        let point = udp(&[&format!("hop.ber={ber}")]);
        let intact = (PACKET_BITS * (-ber.parse::<f64>().unwrap()).ln_1p()).exp();
        let packets = 100.0 * WRITES;
        let arrived = mean(&point, "delivered_bytes") * 100.0 / WRITE_BYTES;
        // Five standard deviations of a binomial count: one false alarm in a million.
        let tolerance = 5.0 * (packets * intact * (1.0 - intact)).sqrt();
        let expected = packets * intact;
        assert!(
            (arrived - expected).abs() < tolerance,
            "BER {ber}: {arrived} arrived, {expected} ± {tolerance} expected"
        );
    }
}

#[test]
fn delivery_agrees_with_ns3_within_the_joint_interval() {
    // Mean and 95 % half width of ns-3's delivered octets, for frames of 1502 octets.
    for (ber, ns3, ns3_ci) in [
        ("1e-5", 887_881.0, 2_613.0),
        ("2.5e-5", 739_841.9, 3_764.0),
        ("1e-4", 299_000.0, 3_900.0),
    ] {
        let point = udp(&[&format!("hop.ber={ber}")]);
        let summary = point.summary("delivered_bytes").unwrap();
        let two_octets = (16.0 * (-ber.parse::<f64>().unwrap()).ln_1p()).exp();
        let difference = summary.mean.unwrap() * two_octets - ns3;
        let joint = summary.ci95.unwrap().hypot(ns3_ci);
        // Three comparisons at once: 1.5 times the 95 % half width keeps the whole at 99 %.
        assert!(
            difference.abs() < 1.5 * joint,
            "BER {ber}: {difference} beyond {joint}"
        );
    }
}

#[test]
fn delay_without_queueing_is_serialisation_plus_propagation_at_every_error_rate() {
    let serialisation = PACKET_BITS / RATE_BPS + 2.0 * PACKET_BITS / LAN_BPS;
    for (delay, propagation, ns3) in [("10us", 10e-6, 2.415_604e-3), ("10ms", 10e-3, 12.4056e-3)] {
        for ber in ["0", "1e-4"] {
            let point = udp(&[&format!("hop.delay={delay}"), &format!("hop.ber={ber}")]);
            let expected = serialisation + propagation;
            let found = mean(&point, "delay_mean_s");
            // Each transmission is rounded to whole nanoseconds.
            assert!((found - expected).abs() < 5e-9, "{delay}, {ber}: {found}");
            let with_ppp = expected + 16.0 / RATE_BPS + 2.0 * 16.0 / LAN_BPS;
            // The reference is printed with six digits.
            assert!((with_ppp / ns3 - 1.0).abs() < 2e-6, "{with_ppp} and {ns3}");
        }
    }
}

#[test]
fn goodput_and_overhead_without_errors_are_exact() {
    let point = udp(&["hop.ber=0"]);
    let bytes = WRITES * WRITE_BYTES;
    assert!((mean(&point, "delivered_bytes") - bytes).abs() < 0.5);
    // 28 octets of headers on each packet; ns-3 has two octets of PPP more, 20,400 in all.
    assert!((mean(&point, "overhead_bytes") - WRITES * 28.0).abs() < 0.5);
    let span = 679.0 * WRITE_BYTES * 8.0 / 4.416e6 + 2.4124e-3;
    let expected = bytes * 8.0 / span;
    assert!((mean(&point, "goodput_bps") / expected - 1.0).abs() < 1e-6);
}

#[test]
fn damage_that_udp_overlooks_is_counted_as_corrupt_and_the_rest_is_lost() {
    let point = run(
        AIRBORNE,
        &["flow.transport=udp", "run.runs=100", "hop.ber=1e-4"],
    )
    .remove(0);
    let corrupt = mean(&point.aggregate, "corrupt_bytes");
    // Two inverted bits cancel in a checksum of 16 bits when they meet in one column, 1 / 16, with
    // opposite values, 1 / 2; with Poisson mean 1.184 over 11,840 bits that is 6.7e-3 of the
    // packets with two wrong octets each, 9 octets a run; three and more bits add up to a fifth.
    assert!((6.0..16.0).contains(&corrupt), "{corrupt}");
    let lost = mean(&point.aggregate, "residual_loss.damaged");
    assert!(lost > 0.0);
    for run in &point.runs {
        assert_eq!(run.error, None);
    }
}

#[test]
fn set_up_delay_grows_with_loss_as_the_first_packets_are_lost() {
    for (loss, p) in [("0%", 0.0_f64), ("20%", 0.2)] {
        let sets = [
            "flow.transport=udp",
            "run.runs=2000",
            &format!("sweep.hop.loss=[{loss}]"),
        ];
        let point = run(SETUP, &sets).remove(0).aggregate;
        let interval = 1472.0 * 8.0 / 4.416e6;
        // One interval, 1500 octets at 10 Mbit/s, 5 ms; then a geometric number of intervals.
        let expected = interval + 1.2e-3 + 5e-3 + p / (1.0 - p) * interval;
        let deviation = interval * p.sqrt() / (1.0 - p) / 2000_f64.sqrt();
        let found = mean(&point, "first_arrival_s");
        assert!(
            (found - expected).abs() < 5.0 * deviation + 2e-9,
            "{loss}: {found}, {expected} expected"
        );
    }
}
