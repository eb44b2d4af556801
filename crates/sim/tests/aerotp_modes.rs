//! AeroTP in the simulator: every mode keeps its promise, verified octet by octet.

use crate::fixture::{AIRBORNE, run};
use fulmar_sim::experiment::PointResult;

/// One transfer as fast as the link takes it.
const AIRBORNE_BULK: &str = include_str!("../../../scenarios/airborne-bulk.toml");

fn airborne(mode: &str, more: &[&str]) -> PointResult {
    let mode = format!("flow.mode={mode}");
    let sets: Vec<&str> = [mode.as_str(), "run.runs=5"]
        .into_iter()
        .chain(more.iter().copied())
        .collect();
    let result = run(AIRBORNE, &sets).remove(0);
    for run in &result.runs {
        assert_eq!(run.error, None, "{mode}, seed {}", run.seed);
    }
    result
}

#[test]
fn modes_that_promise_everything_deliver_everything_under_bit_errors_and_loss() {
    for mode in ["reliable", "near-reliable", "nack-mack"] {
        for fault in ["hop.ber=0", "hop.ber=1e-5", "hop.ber=1e-4", "hop.loss=30%"] {
            for run in airborne(mode, &[fault]).runs {
                assert!(run.metrics.completed, "{mode} {fault} seed {}", run.seed);
                assert_eq!(run.metrics.end_reason, "completed");
                assert_eq!(run.metrics.residual_loss.unfinished, 0);
            }
        }
    }
}

#[test]
fn modes_that_may_lose_data_say_what_they_lost() {
    for mode in ["datagram", "unreliable", "quasi-reliable", "nack"] {
        for run in airborne(mode, &["hop.loss=10%"]).runs {
            let metrics = &run.metrics;
            assert!(!metrics.completed, "{mode} seed {}", run.seed);
            let residual = metrics.residual_loss;
            assert!(
                residual.lost > 0 && residual.unfinished == 0,
                "{residual:?}"
            );
            // 10 % of the packets are lost; a write of 1472 octets takes two TPDUs of each mode, so
            // at most twice the share of writes is incomplete.
            let share = (metrics.offered_bytes - metrics.flow.delivered_bytes) as f64
                / metrics.offered_bytes as f64;
            assert!((0.05..0.2).contains(&share), "{mode}: {share}");
        }
    }
}

#[test]
fn parity_words_correct_bit_errors_and_say_so() {
    for run in airborne("quasi-reliable", &["hop.ber=1e-4", "flow.fec_words=24"]).runs {
        let metrics = &run.metrics;
        assert!(metrics.recovered.fec_words > 300, "{:?}", metrics.recovered);
        // Only parts that no parity of the transport can reach are left: the network header. A TPDU may
        // hold the end of one write and the beginning of the next.
        let headers = metrics.wire_loss.network_header + metrics.wire_loss.address;
        let residual = metrics.residual_loss;
        assert_eq!(residual.damaged, 0);
        assert!(
            residual.lost <= 2 * headers,
            "{residual:?}, {headers} headers"
        );
    }
}

#[test]
fn without_a_payload_check_damage_reaches_the_application_and_is_counted() {
    let sets = ["hop.ber=1e-5", "flow.payload_crc=false"];
    let corrupt: u64 = airborne("unreliable", &sets)
        .runs
        .iter()
        .map(|run| run.metrics.flow.corrupt_bytes)
        .sum();
    // 5 runs of 8e6 bits at 1e-5: 400 wrong octets, less those in headers.
    assert!((250..450).contains(&corrupt), "{corrupt}");
}

#[test]
fn losses_and_octets_balance() {
    for run in airborne("nack-mack", &["hop.loss=10%"]).runs {
        let metrics = &run.metrics;
        let wire = metrics.wire_bytes;
        let total = wire.source + wire.repair + wire.retransmission + wire.control;
        assert_eq!(
            metrics.overhead_bytes,
            total.cast_signed() - metrics.flow.delivered_bytes.cast_signed()
        );
        assert!(wire.retransmission > 0 && wire.control > 0);
        assert!(metrics.wire_loss.loss > 0);
        assert_eq!(metrics.wire_loss.queue, 0);
    }
}

/// The share of 20,000 TPDUs, each sent `copies` times, that an unreliable flow loses.
fn residual_share(loss: &str, copies: i32) -> f64 {
    let (loss, copies) = (format!("hop.loss={loss}"), format!("flow.copies={copies}"));
    let sets = [
        &loss,
        &copies,
        "flow.bytes=29.2MB",
        "run.runs=1",
        "flow.mode=unreliable",
    ];
    let run = run(AIRBORNE_BULK, &sets).remove(0).runs.remove(0);
    assert_eq!(run.error, None, "seed {}", run.seed);
    run.metrics.residual_loss.lost as f64 / 20_000.0
}

#[test]
fn without_retransmission_residual_loss_falls_with_the_power_of_the_copies_unless_in_bursts() {
    for (copies, expected) in [(1, 0.3), (2, 0.09), (3, 0.027)] {
        let share = residual_share("30%", copies);
        // Four standard deviations of 20,000 independent losses.
        let allowed = 4.0 * f64::sqrt(expected * (1.0 - expected) / 20_000.0);
        println!("{copies} copies: {share:.4}, expected {expected} +- {allowed:.4}");
        assert!(
            (share - expected).abs() < allowed,
            "{copies} copies: {share}"
        );
        if copies > 1 {
            // Of bursts of 8 packets on average, the next packet is lost with 7/8: (7/8)^(n-1) of p.
            let expected = 0.3 * f64::powi(7.0 / 8.0, copies - 1);
            let share = residual_share("30% burst 8", copies);
            // Bursts, not packets, are what is independent: about 750 of them times the copies.
            let allowed = 4.0 * expected * f64::sqrt(2.0 / (750.0 * f64::from(copies)));
            println!(
                "{copies} copies, bursts of 8: {share:.4}, expected {expected:.4} +- {allowed:.4}"
            );
            assert!(
                (share - expected).abs() < allowed,
                "{copies} copies in bursts: {share}"
            );
        }
    }
}

#[test]
fn copies_are_octets_on_the_wire_and_nothing_else() {
    let metrics = |copies: &str| {
        let copies = format!("flow.copies={copies}");
        // Over a round trip shorter than a packet, answers would save copies.
        let sets = [
            &copies,
            "flow.mode=near-reliable",
            "run.runs=1",
            "flow.bytes=3MB",
            "hop.delay=10ms",
        ];
        run(AIRBORNE_BULK, &sets).remove(0).runs.remove(0).metrics
    };
    let (once, thrice) = (metrics("1"), metrics("3"));
    for metrics in [&once, &thrice] {
        assert!(metrics.completed);
        let total = metrics.wire_bytes.total();
        let overhead = total - metrics.flow.delivered_bytes;
        assert_eq!(metrics.overhead_bytes, overhead.cast_signed());
        assert_eq!(metrics.flow.repeated_pieces, 0);
        assert_eq!(metrics.recovered.arq_first, 0);
    }
    assert_eq!(thrice.wire_bytes.source, once.wire_bytes.source);
    assert_eq!(once.wire_bytes.retransmission, 0);
    assert_eq!(thrice.wire_bytes.retransmission, 2 * once.wire_bytes.source);
    assert_eq!(thrice.capacity_bps, once.capacity_bps);
}
