//! Every preset of TCP in the simulator: complete and exact under faults, and the same twice.

use crate::fixture::run;

const SCENARIO: &str = "\
[run]
runs = 5
duration = \"36000s\"
[hop]
rate = \"2mbit\"
delay = \"30ms\"
[flow]
transport = \"tcp\"
bytes = \"200kB\"
";
const PRESETS: [&str; 5] = [
    "reference",
    "enhanced",
    "newreno-2005",
    "linux-like",
    "rfc793-no-cc",
];

#[test]
fn every_preset_delivers_everything_under_loss_bursts_outages_copies_and_reordering() {
    for preset in PRESETS {
        for fault in [
            "hop.loss=0%",
            "hop.loss=5%",
            "hop.loss=5% burst 5",
            "hop.ber=1e-5",
            "hop.outages=1s+10s",
            "hop.duplicate=10%",
            "hop.reorder=5% by 100ms",
            "hop.queue=5 packets",
        ] {
            let preset = format!("tcp.preset={preset}");
            // A burst counts packets, and timeouts send one at a time: many retries are needed.
            let sets = [
                &preset,
                fault,
                "tcp.data_retries=100",
                "tcp.syn_retries=100",
            ];
            for run in run(SCENARIO, &sets).remove(0).runs {
                let (seed, metrics) = (run.seed, &run.metrics);
                assert_eq!(run.error, None, "{preset} {fault} seed {seed}");
                // Two wrong bits may cancel in the checksum, as with UDP: then octets are wrong.
                let octets = metrics.flow.delivered_bytes + metrics.flow.corrupt_bytes;
                assert_eq!(octets, 200_000, "{preset} {fault} seed {seed}");
                assert!(fault.contains("ber") || metrics.completed);
                assert!(!metrics.gave_up);
            }
        }
    }
}

#[test]
fn the_flow_s_own_table_goes_before_the_common_one() {
    let retransmitted = |sets: &[&str]| {
        let runs = run(SCENARIO, sets).remove(0).runs;
        runs.iter().map(|run| run.metrics.timeouts).sum::<u64>()
    };
    let loss = "hop.loss=5%";
    let common = retransmitted(&[loss, "tcp.preset=rfc793-no-cc"]);
    let own = retransmitted(&[
        loss,
        "tcp.preset=rfc793-no-cc",
        "flow.tcp.preset=linux-like",
    ]);
    let alone = retransmitted(&[loss, "flow.tcp.preset=linux-like"]);
    assert!(own < common, "{own}, {common}");
    assert_eq!(own, alone);
}

#[test]
fn a_run_gives_the_same_record_twice() {
    let sets = ["hop.loss=10%", "tcp.preset=linux-like"];
    let [first, second] = [0, 1].map(|_| run(SCENARIO, &sets).remove(0).runs);
    assert_eq!(first, second);
}

#[test]
fn a_peer_beyond_reach_is_given_up_and_said_so() {
    let sets = ["hop.loss=100%", "tcp.syn_retries=3"];
    for run in run(SCENARIO, &sets).remove(0).runs {
        assert!(run.metrics.gave_up && !run.metrics.completed);
        assert_eq!(run.metrics.flow.delivered_bytes, 0);
    }
}
