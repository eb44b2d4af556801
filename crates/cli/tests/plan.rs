//! `fulmar plan` from outside: the published figures, and errors that say what to type.

use crate::processes::{run, said};
use serde_json::Value;

fn json(arguments: &str) -> Value {
    let output = run(&format!("plan {arguments} --json"));
    assert!(output.status.success(), "{}", said(&output));
    serde_json::from_slice(&output.stdout).expect("one object")
}

fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("{value} is no number"))
}

/// The figures of the paper's Figure 4: equation 11 with 20 octets of header.
#[test]
fn the_best_length_for_selective_repeat_is_that_of_equation_11() {
    for (ber, octets) in [("1e-6", 1571), ("1e-5", 490), ("1e-4", 148)] {
        let plan = json(&format!(
            "--rate 622mbit --distance 61km --ber {ber} --longest 65535B"
        ));
        let kinds = plan["kinds"].as_array().expect("three classes");
        let names: Vec<_> = kinds.iter().map(|kind| kind["arq"].as_str()).collect();
        assert_eq!(
            names,
            [
                Some("stop-and-wait"),
                Some("go-back-n"),
                Some("selective-repeat")
            ]
        );
        assert_eq!(kinds[2]["best_data_bytes"], octets, "{ber}");
        let shares: Vec<f64> = kinds.iter().map(|k| number(&k["goodput_share"])).collect();
        assert!(shares.is_sorted(), "each class beats the simpler one");
    }
}

#[test]
fn the_satellite_of_table_1_needs_a_long_window_and_many_blocks() {
    let plan = json(
        "--rate 622mbit --distance 2500km --ber 1e-6 --selective-header 60B --data 500B --ack 28B",
    );
    assert!((number(&plan["rtt_s"]) - 16.678e-3).abs() < 1e-6);
    let selective = &plan["kinds"][2];
    // Table 1 gives 0.8893 with loss over the data alone; 60 octets more cost 0.05 %.
    assert!((number(&selective["goodput_share"]) - 0.8893).abs() < 1e-3);
    assert!((number(&plan["kinds"][1]["goodput_share"]) - 0.0874).abs() < 5e-3);
    assert!((number(&selective["back_channel_share"]) - 0.05).abs() < 1e-12);
    assert!(number(&selective["window_bytes"]) > 16.678e-3 * 622e6 / 8.0);
    let blocks = &plan["blocks"];
    assert!(number(&blocks["mean"]) > 4.0);
    assert!(number(&blocks["quantile"]) > number(&blocks["mean"]));
}

#[test]
fn received_power_says_as_much_as_the_bit_error_rate_it_means() {
    let by_power = json("--rate 622mbit --distance 500m --power 37.2nW");
    // 37.2 nW are 1e-6 at Epple's reference receiver, to half of the last digit.
    assert!((number(&by_power["ber"]) / 1e-6 - 1.0).abs() < 0.05);
    let dark = json("--rate 622mbit --distance 500m --power 0W");
    assert!((number(&dark["ber"]) - 0.5).abs() < 1e-12);
    let decibels = json("--rate 622mbit --distance 500m --power -44.3dBm");
    assert!(number(&decibels["ber"]) < 2e-6);
}

#[test]
fn without_bit_errors_the_longest_packet_is_the_best_and_the_table_says_so() {
    let output = run("plan --rate 5mbit --rtt 20ms --loss 10% --longest 1500B");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{}", said(&output));
    for expected in [
        "5Mbit/s, round trip 20ms, 10 % of packets lost",
        "1480B (longest)",
        // 0.9 x 1480 / 1500 of 5 mbit.
        "4.44Mbit/s",
        "selective-repeat",
        "blocks to tell apart",
    ] {
        assert!(text.contains(expected), "no {expected:?} in {text}");
    }
    assert!(json("--rate 5mbit --rtt 20ms --loss 10%")["ber"].is_null());
    assert!(json("--rate 5mbit --rtt 20ms --loss 100%")["blocks"].is_null());
}

#[test]
fn no_packet_is_advised_that_is_longer_than_usual_unless_that_is_told() {
    let best = |arguments: &str| {
        let plan = json(&format!("--rate 5mbit --rtt 20ms {arguments}"));
        let kinds = plan["kinds"].as_array().expect("three classes").iter();
        let best = kinds.map(|kind| kind["best_data_bytes"].as_u64().expect("a number"));
        best.collect::<Vec<_>>()
    };
    assert_eq!(best("--loss 20%"), [1_480; 3]);
    assert_eq!(best("--ber 1e-9"), [1_480; 3]);
    assert_eq!(best("--loss 20% --longest 9000B"), [8_980; 3]);
    assert_eq!(best("--loss 20% --data 4000B"), [4_000; 3]);
}

#[test]
fn acknowledgements_that_get_lost_count_as_lost_packets() {
    let goodput = |more: &str| {
        let plan = json(&format!("--rate 5mbit --rtt 20ms --loss 10% {more}"));
        number(&plan["kinds"][2]["packet_loss"])
    };
    assert!((goodput("") - 0.1).abs() < 1e-12);
    // An acknowledgement of 40 octets at 1e-4 is lost with 3.1 %.
    assert!((goodput("--back-ber 1e-4") - 0.131).abs() < 1e-3);
}

#[test]
fn what_is_wrong_is_said_with_the_flag_and_the_remedy() {
    for (arguments, words) in [
        ("--rtt 10ms --ber 1e-6", ["--rate", "required"]),
        ("--rate 5mbit --ber 1e-6", ["--distance", "--rtt"]),
        ("--rate 5mbit --rtt 10ms", ["--ber", "--power"]),
        ("--rate 5 --rtt 10ms --ber 1e-6", ["no unit", "5mbit"]),
        ("--rate 5mbit --rtt 10 --ber 1e-6", ["no unit", "10ms"]),
        ("--rate 5mbit --distance 61 --ber 1e-6", ["no unit", "61km"]),
        (
            "--rate 5mbit --distance -1km --ber 1e-6",
            ["--distance", "negative"],
        ),
        (
            "--rate 5mbit --rtt 10ms --ber 2",
            ["--ber", "between 0 and 1"],
        ),
        (
            "--rate 5mbit --rtt 10ms --ber 1e-6 --loss 1%",
            ["--ber", "--loss"],
        ),
        (
            "--rate 5mbit --rtt 10ms --power -44dBm",
            ["--rate 622Mbit/s", "--ber"],
        ),
        ("--rate 622mbit --rtt 10ms --power 3", ["no unit", "dBm"]),
        ("--rate 0bit --rtt 10ms --ber 0", ["--rate", "1bit"]),
        ("--rate 5mbit --rtt 1s --ber 0 --data 0B", ["--data", "1B"]),
        (
            "--rate 5mbit --rtt 1s --ber 0 --longest 20B",
            ["--longest", "no octet"],
        ),
        (
            "--rate 5mbit --rtt 1s --ber 0 --longest 1MB",
            ["--longest", "65535B"],
        ),
        (
            "--rate 5mbit --rtt 1s --ber 0 --confidence 100%",
            ["--confidence", "99%"],
        ),
        ("--rate 5mbit --rtt 1s --ber 0 --ack 0B", ["--ack", "1B"]),
    ] {
        let output = run(&format!("plan {arguments}"));
        let said = said(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments}: {said}");
        for word in words {
            assert!(said.contains(word), "{arguments}: no {word:?} in {said:?}");
        }
        assert!(output.stdout.is_empty(), "{arguments}");
    }
}

#[test]
fn what_a_sender_finds_untold_is_simulated_and_explained() {
    let plan = json("--rate 5mbit --rtt 20ms --loss 10%");
    let found = &plan["found"];
    assert!((0.95..1.02).contains(&number(&found["share"])), "{found}");
    assert!((number(&found["arrives_bps"]) / 4.5e6 - number(&found["share"])).abs() < 1e-3);
    assert!(number(&found["reached_after_s"]) < 2.0, "{found}");
    assert_eq!(found["cause"], "queue");
    let output = run("plan --rate 5mbit --rtt 20ms --loss 10%");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        text.contains("not more because more builds a queue"),
        "{text}"
    );
    let too_long = json("--rate 10gbit --rtt 600ms --loss 0%");
    assert_eq!(too_long["found"], Value::Null);
}
