//! `[[hop]]`.

use super::{BASE, Mistake, each_is_one_line_with_file_line_field_and_remedy};
use crate::processes::{Place, run, said};
use std::fs;

const MISTAKES: &[Mistake<'_>] = &[
    (
        r#"rate = "5mbit""#,
        r#"rate = "5mbps""#,
        10,
        "hop.0.rate",
        "write 5Mbit/s, or 40Mbit/s for bytes",
    ),
    (
        r#"rate = "5mbit""#,
        r#"rate = "-5mbit""#,
        10,
        "hop.0.rate",
        "is out of range: write a rate",
    ),
    (
        r#"rate = "5mbit""#,
        "rate = 5",
        10,
        "hop.0.rate",
        "has no unit: write a rate",
    ),
    (
        r#"rate = "5mbit""#,
        r#"rate = "0mbit""#,
        10,
        "hop.0.rate",
        "at least 1bit",
    ),
    (
        r#"rate = "5mbit""#,
        r#"rate = ["5mbit"]"#,
        10,
        "hop.0.rate",
        "must be a single value",
    ),
    (
        "[[hop]]\nrate = \"5mbit\"",
        "[[hop]]",
        9,
        "hop.0.rate",
        r#"is missing; write rate = "5Mbit/s""#,
    ),
    (
        r#"delay = "10ms""#,
        r#"delay = "10 parsec""#,
        11,
        "hop.0.delay",
        "is not a unit here: write a time",
    ),
    (
        r#"delay = "10ms""#,
        r#"delay = "100000h""#,
        11,
        "hop.0.delay",
        "0s to 8760h",
    ),
    (
        r#"queue = "100 packets""#,
        "queue = 100",
        12,
        "hop.0.queue",
        "write `100 packets`",
    ),
    (
        r#"loss = "2% burst 4""#,
        r#"loss = "102%""#,
        13,
        "hop.0.loss",
        "between 0 and 1",
    ),
    (
        r#"loss = "2% burst 4""#,
        r#"loss = "-2%""#,
        13,
        "hop.0.loss",
        "between 0 and 1",
    ),
    (
        r#"loss = "2% burst 4""#,
        r#"loss = "2% burst 0.5""#,
        13,
        "hop.0.loss",
        "at least 1 packets",
    ),
    (
        r#"loss = "2% burst 4""#,
        r#"loss = "on-off 80% period 50ms""#,
        13,
        "hop.0.loss",
        "0 to 2/3",
    ),
    (
        r#"loss = "2% burst 4""#,
        r#"loss = "sometimes""#,
        13,
        "hop.0.loss",
        "write `none`, `2%`",
    ),
    (
        r#"outages = "1s+1s""#,
        r#"outages = "every 1s for 2s""#,
        15,
        "hop.0.outages",
        "below the cycle of 1s",
    ),
    (
        r#"jitter = "2ms""#,
        r#"jitter = "20ms""#,
        16,
        "hop.0.jitter",
        "at most the delay, 10ms",
    ),
    (
        r#"reorder = "1% by 5ms""#,
        r#"reorder = "1%""#,
        17,
        "hop.0.reorder",
        "write `1% by 5ms`",
    ),
    (
        r#"duplicate = "1%""#,
        r#"duplicate = "7""#,
        18,
        "hop.0.duplicate",
        "between 0 and 1",
    ),
    (
        "[hop.forward]",
        "[hop.foward]",
        19,
        "hop.0.foward",
        "did you mean `forward`",
    ),
    (
        "[hop.forward]",
        "[hop.forward.forward]",
        19,
        "hop.0.forward.forward",
        "known are rate",
    ),
    (
        r#"loss = "2% burst 4""#,
        r#"loss = "good 10s..5s bad 1s""#,
        13,
        "hop.0.loss",
        "the shorter length first",
    ),
    (
        r#"loss = "2% burst 4""#,
        r#"loss = "slacp mild""#,
        13,
        "hop.0.loss",
        "write low, medium, high",
    ),
    (
        r#"loss = "2% burst 4""#,
        r#"loss = "gilbert-elliott 1% 0 50% 3""#,
        13,
        "hop.0.loss",
        "at least 1 packet",
    ),
    (
        r#"loss = "2% burst 4""#,
        r#"loss = "trace nowhere.csv""#,
        13,
        "hop.0.loss",
        "nowhere.csv: No such file or directory (os error 2); write `trace FILE`",
    ),
    (
        r#"loss = "2% burst 4""#,
        r#"loss = "trace scenario.toml loop""#,
        13,
        "hop.0.loss",
        "scenario.toml:1: `columns`: ",
    ),
    (
        r#"ber = "1e-5""#,
        r#"fading = "faslt""#,
        14,
        "hop.0.fading",
        "`faslt` does not describe fading: write `fasolt`, `kiodo`",
    ),
    (
        r#"ber = "1e-5""#,
        r#"fading = "log-normal 0.1 time 2""#,
        14,
        "hop.0.fading",
        "no unit",
    ),
    (
        r#"ber = "1e-5""#,
        r#"fading = "trace scenario.toml""#,
        14,
        "hop.0.fading",
        "scenario.toml:1: `columns`: ",
    ),
    (
        r#"ber = "1e-5""#,
        r#"ber = "-1e-5""#,
        14,
        "hop.0.ber",
        "between 0 and 1",
    ),
    (
        r#"queue = "100 packets""#,
        "queue = \"0 packets\"\nlink = \"ll-arq\"",
        12,
        "hop.0.queue",
        "lets no packet through to the link layer; write \"1 packets\" or more",
    ),
    (
        r#"queue = "100 packets""#,
        "ip_queue = \"1400B\"\nlink = \"ll-arq\"",
        12,
        "hop.0.ip_queue",
        "`1400B` lets no packet of 1500B, the flows' mtu",
    ),
    (
        r#"delay = "10ms""#,
        r#"delay = "-10ms""#,
        11,
        "hop.0.delay",
        "`-10ms` is negative; a time is 0s or longer, such as 10ms",
    ),
];

#[test]
fn mistakes_of_hops() {
    each_is_one_line_with_file_line_field_and_remedy(MISTAKES);
}

#[test]
fn a_queue_that_holds_a_packet_is_enough_below_a_link_layer_and_none_without_one() {
    let place = Place::with(1);
    let file = place.path("scenario.toml");
    let queue = r#"queue = "100 packets""#;
    for line in [
        "queue = \"1 packets\"\nlink = \"ll-arq\"",
        "queue = \"1500B\"\nlink = \"plain\"",
        "queue = \"0 packets\"\nip_queue = \"1 packets\"\nlink = \"plain\"",
        "queue = \"0 packets\"",
    ] {
        fs::write(&file, BASE.replacen(queue, line, 1)).expect("room");
        let output = run(&format!("sim {} --json", file.display()));
        assert!(output.status.success(), "{line}: {}", said(&output));
        let records = String::from_utf8(output.stdout).expect("text");
        let delivered = |record: &str| {
            let record: serde_json::Value = serde_json::from_str(record).expect("a record");
            record["delivered_bytes"]
                .as_u64()
                .is_none_or(|octets| octets > 0)
        };
        assert!(records.lines().all(delivered), "{line}");
    }
}
