//! AeroTP in the simulator: every mode keeps its promise, verified octet by octet.

mod fixture;

use fixture::{AIRBORNE, run};
use fulmar_sim::experiment::PointResult;

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
        // What is left is what no parity of the transport can reach: the network header. A TPDU
        // may hold the end of one write and the beginning of the next.
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
