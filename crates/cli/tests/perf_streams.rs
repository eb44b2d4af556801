//! `fulmar perf -P N`: N streams at once, each with figures of its own, and all of them together.
//!
//! Method as in `perf`: processes, and the emulator between them where there is loss.

use crate::perf::{link, measure, number, port, server};
use crate::processes::{Running, fulmar, moment, run, said};
use rustix::process::Signal;
use serde_json::Value;

fn list<'a>(record: &'a Value, key: &str) -> &'a Vec<Value> {
    record[key]
        .as_array()
        .unwrap_or_else(|| panic!("{key} in {record}"))
}

fn sum_of(all: &[Value], key: &str) -> f64 {
    all.iter().map(|one| number(one, key)).sum()
}

/// Asserts the common properties of every record of a test of `count` streams.
fn assert_adds_up(record: &Value, count: usize) {
    assert_eq!(record["parallel"], count, "{record}");
    let streams = list(record, "streams");
    assert_eq!(streams.len(), count, "{record}");
    for (place, stream) in streams.iter().enumerate() {
        assert_eq!(stream["stream"], place + 1);
    }
    let sum = record["sum"].as_object().expect("an object");
    for (key, value) in sum {
        // The test's own figures are those of all its streams.
        assert_eq!(&record[key], value, "{key}");
        let is_count = ["_messages", "_bytes", "_tpdus"];
        if is_count.iter().any(|end| key.ends_with(end)) && value.is_number() {
            let value = value.as_f64().expect("a number");
            assert!(
                (sum_of(streams, key) - value).abs() < 0.5,
                "{key}: {record}"
            );
        }
    }
    let delays: f64 = streams
        .iter()
        .map(|stream| &stream["delay"])
        .filter(|delay| !delay.is_null())
        .map(|delay| number(delay, "count"))
        .sum();
    assert!((delays - number(record, "received_messages")).abs() < 0.5);
    let share = 1.0 / f64::from(u32::try_from(count).expect("few"));
    let index = number(record, "fairness");
    assert!((share - 1e-9..=1.0 + 1e-9).contains(&index), "{index}");
}

#[test]
fn all_streams_end_over_a_lossy_link_and_their_figures_add_up() {
    let (mut server, address) = server("--rate 20mbit");
    let (_link, port) = link(&address, "--rate 20mbit --delay 5ms --queue 500 --loss 10%");
    for (count, flags) in [
        (4, ""),
        (4, "-R"),
        (3, "--mode nack-mack --fec-words 8"),
        (3, "--mode near-reliable -R"),
        (128, ""),
        (128, "-R"),
    ] {
        let mut client = Running::start(fulmar(&format!(
            "perf -c 127.0.0.1 -p {port} --json -P {count} -n 1MB --rate 20mbit {flags}"
        )));
        // The lines of many streams are longer than a pipe holds: they are read as they come.
        assert_eq!(server.record()["parallel"], count);
        let theirs = server.record();
        let record = client.record();
        assert_eq!(client.code(), Some(0));
        assert_adds_up(&record, count);
        if theirs["kind"] == "test" {
            assert_eq!(theirs["streams"], record["streams"]);
        } else {
            assert_eq!(theirs["sent_messages"], record["sent_messages"]);
        }
        assert_eq!(record["loss_after_repair"], 0.0, "{flags}: {record}");
        for stream in list(&record, "streams") {
            assert_eq!(stream["loss_after_repair"], 0.0, "{flags}: {stream}");
        }
        // -n is of all streams together, in whole messages.
        let (bytes, one) = (
            number(&record, "sent_bytes"),
            number(&record, "message_bytes"),
        );
        assert!((1e6..1e6 + one).contains(&bytes), "{flags}: {bytes}");
        assert!(
            number(&record, "wire_retransmission_bytes") > 0.0,
            "{record}"
        );
        // Whoever is served in turn has the same; one message more or less of each may differ.
        assert!(number(&record, "fairness") > 0.9, "{flags}: {record}");
    }
    for mode in ["unreliable", "quasi-reliable", "nack"] {
        let flags = format!("-P 3 --mode {mode} -b 4M -l 500 -n 500kB --rate 20mbit -R");
        let record = measure(&port, &flags);
        assert_eq!(
            [server.record(), server.record()].map(|line| line["kind"].clone()),
            ["began", "sent"]
        );
        assert_adds_up(&record, 3);
        assert_eq!(record["sent_messages"], 1_000, "{record}");
        // Five standard deviations of a share of 10 % in 1,000 messages.
        let before = number(&record, "loss_before_repair");
        assert!((before - 0.1).abs() < 0.048, "{mode}: {record}");
    }
}

#[test]
fn the_rate_told_is_that_of_the_whole_test() {
    let (_server, address) = server("");
    let flags = "-P 5 -u -b 2M -l 1000 -t 2 -i 0.5 --rate 20mbit";
    let record = measure(&port(&address), flags);
    assert_adds_up(&record, 5);
    // One message each 4 ms from 0 to 2 s, whosever turn it is; the clock may only let the last ones out.
    assert!(number(&record, "sent_messages") <= 505.0, "{record}");
    for stream in list(&record, "streams") {
        assert!(number(stream, "sent_messages") <= 101.0, "{record}");
    }
    let intervals = list(&record, "intervals");
    for interval in intervals {
        let streams = list(interval, "streams");
        assert_eq!(streams.len(), 5, "{interval}");
        let messages = number(interval, "messages");
        assert!(
            (sum_of(streams, "messages") - messages).abs() < 0.5,
            "{interval}"
        );
    }
    let arrived = sum_of(intervals, "messages");
    assert!((arrived - number(&record, "received_messages")).abs() < 0.5);
}

#[test]
fn text_has_a_line_for_each_stream_and_one_for_all() {
    let (mut server, address) = server("");
    let port = port(&address);
    let output = run(&format!(
        "perf -c 127.0.0.1 -p {port} -P 3 -R -u -b 1M -t 1 -i 0.4 --rate 20mbit"
    ));
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines = |label: &str| text.lines().filter(|line| line.starts_with(label)).count();
    let each = lines("[  1]");
    // Two intervals and the table at least.
    assert!(each >= 3, "{text}");
    assert_eq!(
        ["[  2]", "[  3]", "[SUM]", "[  4]"].map(lines),
        [each, each, each, 0],
        "{text}"
    );
    assert!(
        text.contains("Jain's index over the octets of 3 streams"),
        "{text}"
    );
    let began = server.record();
    assert_eq!(
        (&began["kind"], &began["parallel"]),
        (&"began".into(), &3.into())
    );
    let sent = server.record();
    assert_eq!(sent["kind"], "sent", "{sent}");
    let streams = list(&sent, "streams");
    assert_eq!(streams.len(), 3, "{sent}");
    for key in ["sent_messages", "sent_bytes", "wire_bytes"] {
        assert!(
            (sum_of(streams, key) - number(&sent, key)).abs() < 0.5,
            "{sent}"
        );
    }
    // One stream is as it was: without labels.
    let output = run(&format!(
        "perf -c 127.0.0.1 -p {port} -u -t 0.5 --rate 20mbit"
    ));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        text.starts_with("goodput") && !text.contains("[SUM]"),
        "{text}"
    );
}

#[test]
fn a_test_that_is_interrupted_is_one_object_with_all_its_streams() {
    for flags in ["", "-R"] {
        let (mut server, address) = server("");
        let port = port(&address);
        let mut client = Running::start(fulmar(&format!(
            "perf -c 127.0.0.1 -p {port} -P 3 {flags} --json -u -b 1M -t 30 --rate 20mbit -i 0.1"
        )));
        assert_eq!(server.record()["kind"], "began");
        for _ in 0..100 {
            moment();
        }
        client.signal(Signal::INT);
        let records = client.records();
        let [record] = records.as_slice() else {
            panic!("{records:?}")
        };
        assert_adds_up(record, 3);
        assert_eq!(
            (&record["stopped"], &record["exit_code"]),
            (&true.into(), &130.into())
        );
        assert_eq!(client.code(), Some(130));
    }
}

#[test]
fn a_test_whose_server_is_killed_is_one_object_that_says_so() {
    for flags in ["", "-R"] {
        let (mut server, address) = server("");
        let port = port(&address);
        let mut client = Running::start(fulmar(&format!(
            "perf -c 127.0.0.1 -p {port} -P 3 {flags} --json -b 1M -t 60 --rate 20mbit --give-up 1s"
        )));
        assert_eq!(server.record()["kind"], "began");
        drop(server);
        let records = client.records();
        let [record] = records.as_slice() else {
            panic!("{records:?}")
        };
        assert_eq!(record["exit_code"], 4, "{record}");
        let error = record["error"].as_str().expect("a text");
        assert!(error.contains("was not heard"), "{error}");
        assert_eq!(client.code(), Some(4));
    }
}
