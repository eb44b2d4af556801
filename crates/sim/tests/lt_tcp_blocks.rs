//! LT-TCP with many small blocks in flight: a block that is lost whole is repaired as soon as one that left
//! after it is reported, not when a timer notices.

use crate::fixture::run;

const SCENARIO: &str = "\
[run]
runs = 20
duration = \"120s\"
[hop]
rate = \"10mbit\"
delay = \"20ms\"
[flow]
transport = \"lt-tcp\"
traffic = \"constant-rate\"
";

/// The most time that repair may add to that of the source: ten round trips of 40 ms, and as much again for
/// the timer that guards the last block.
const REPAIR_MAX_S: f64 = 0.8;

#[test]
fn small_writes_are_delivered_at_the_pace_of_the_source_whatever_block_is_lost() {
    // More blocks in a round trip than a segment's feedback can list (15).
    for (write, rate, bytes, loss, source_s) in [
        ("105B", "2mbit", "500kB", "0.5%", 2.0),
        ("105B", "2mbit", "500kB", "5%", 2.0),
        ("1000B", "5mbit", "1MB", "5%", 1.6),
    ] {
        let sets = [
            &format!("flow.write={write}"),
            &format!("flow.rate={rate}"),
            &format!("flow.bytes={bytes}"),
            &format!("hop.loss={loss}"),
        ];
        for run in run(SCENARIO, &sets.map(String::as_str)).remove(0).runs {
            let elapsed = run.metrics.elapsed_s.expect("something is delivered");
            // A handshake may lose its segments too; only a timer can notice that.
            let begun = run.metrics.flow.first_delivery_s.expect("delivered");
            assert!(run.metrics.completed, "{write} {loss} seed {}", run.seed);
            assert!(
                elapsed < begun + source_s + REPAIR_MAX_S,
                "{write} {loss} seed {}: {elapsed} s",
                run.seed
            );
        }
    }
}
