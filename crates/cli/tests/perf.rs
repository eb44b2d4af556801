//! `fulmar perf` measures the path rightly: rates, losses before and after repair, delays.
//!
//! Method: client and server as processes, with the emulator between them. The emulator's faults are known,
//! and the figures must agree with them. Bounds on losses are of binomial laws and stated; delays are
//! bounded from below by the link's own, which no scheduling can undercut.

use crate::processes::{Running, fulmar, run, said};
use rustix::process::Signal;
use serde_json::Value;

pub(crate) fn server(flags: &str) -> (Running, String) {
    let arguments = format!("perf -s -B 127.0.0.1 -p 0 --json {flags}");
    let mut server = Running::start(fulmar(&arguments));
    let address = server.address();
    (server, address)
}

/// A link to `target`, and its port.
pub(crate) fn link(target: &str, flags: &str) -> (Running, String) {
    let arguments = format!("emulate --listen 127.0.0.1:0 --to {target} {flags}");
    let mut link = Running::start(fulmar(&arguments));
    let port = port(&link.address());
    (link, port)
}

pub(crate) fn port(address: &str) -> String {
    let (_, port) = address.rsplit_once(':').expect("a port");
    port.to_owned()
}

pub(crate) fn measure(port: &str, flags: &str) -> Value {
    let output = run(&format!("perf -c 127.0.0.1 -p {port} --json {flags}"));
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    serde_json::from_slice(&output.stdout).expect("one JSON object")
}

pub(crate) fn number(record: &Value, key: &str) -> f64 {
    record[key]
        .as_f64()
        .unwrap_or_else(|| panic!("{key} in {record}"))
}

#[test]
fn without_repair_the_links_own_loss_is_measured_in_both_directions() {
    let (_server, address) = server("--rate 20mbit");
    let (_link, port) = link(
        &address,
        "--rate 20mbit --delay 10ms --queue 200 --up-loss 20% --down-loss 5%",
    );
    for (flags, loss) in [("", 0.2), ("-R", 0.05)] {
        let flags = format!("-u -b 4mbit -l 500 -n 1MB --rate 20mbit {flags}");
        let record = measure(&port, &flags);
        let sent = number(&record, "sent_messages");
        assert!((sent - 2_000.0).abs() < 0.5, "{record}");
        // Five standard deviations of a binomial share: fails by chance once in a million.
        let bound = 5.0 * (loss * (1.0 - loss) / sent).sqrt();
        let after = number(&record, "loss_after_repair");
        assert!((after - loss).abs() < bound, "{after} of {loss}: {record}");
        let before = number(&record, "loss_before_repair");
        assert!(
            (before - loss).abs() < bound,
            "{before} of {loss}: {record}"
        );
        assert_eq!(record["delay"]["count"], record["received_messages"]);
    }
}

#[test]
fn with_repair_nothing_is_missing_and_the_repair_is_counted() {
    let (_server, address) = server("--rate 20mbit");
    let (_link, port) = link(&address, "--rate 20mbit --delay 5ms --queue 200 --loss 10%");
    for flags in ["", "-R", "--mode nack-mack --fec-words 8"] {
        let record = measure(&port, &format!("-n 1MB --rate 20mbit {flags}"));
        assert_eq!(record["loss_after_repair"], 0.0, "{flags}: {record}");
        assert!(number(&record, "received_bytes") >= 1e6, "{record}");
        let again = number(&record, "wire_retransmission_bytes");
        let lost = number(&record, "wire_lost_tpdus");
        // Of some 700 packets 10 %: fewer than 29 is below five standard deviations.
        assert!(lost > 29.0 && again > 0.0, "{flags}: {record}");
        assert!(number(&record, "goodput_bps") < 20e6, "{record}");
        // The server is the sender of `-R`, and does not tell.
        let losses = &record["losses"];
        assert_eq!(losses.is_null(), flags == "-R", "{flags}: {record}");
        if flags.is_empty() {
            assert!(number(losses, "lost_packets") > 29.0, "{record}");
            let causes = losses["causes"].as_object().expect("by their names");
            let shares = causes.values().map(|cause| number(cause, "ratio"));
            assert!((shares.sum::<f64>() - 1.0).abs() < 1e-6, "{record}");
            for (name, cause) in causes {
                let [low, ratio, high] =
                    ["low_ratio", "ratio", "high_ratio"].map(|key| number(cause, key));
                assert!(low <= ratio && ratio <= high, "{name}: {record}");
            }
            // Few short packets are among so few, and chance makes the interval narrow or wide. To
            // exclude what is true, not one of some hundred short packets may be lost.
            assert!(number(&causes["random"], "high_ratio") > 0.0, "{record}");
        }
    }
}

#[test]
fn a_deadline_brings_the_slow_messages_of_a_thin_test_sooner_and_costs_no_more_than_it_may() {
    let (_server, address) = server("--rate 10mbit");
    let (_link, port) = link(
        &address,
        "--rate 10mbit --delay 20ms --queue 200 --loss 30%",
    );
    // A message every 20 ms, 500 of them.
    let flags = "-b 480k -l 1200 -n 600kB --rate 10mbit";
    let plain = measure(&port, flags);
    let output = run(&format!(
        "perf -c 127.0.0.1 -p {port} --json {flags} --deadline 90ms"
    ));
    let goal: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
    for record in [&plain, &goal] {
        assert_eq!(record["loss_after_repair"], 0.0, "{record}");
        assert!((number(record, "sent_messages") - 500.0).abs() < 0.5);
    }
    let p99 = |record: &Value| number(&record["delay"], "p99_s");
    assert_eq!(goal["goal"]["met"], p99(&goal) <= 0.09, "{goal}");
    assert_eq!(goal["exit_code"], u64::from(p99(&goal) > 0.09), "{goal}");
    assert!(plain["goal"].is_null(), "{plain}");
    // In virtual time 420 and 90 ms. Whatever a busy machine adds, it adds to both.
    assert!(p99(&goal) < 0.7 * p99(&plain), "{goal} {plain}");
    let again = |record: &Value| {
        let of = |kind: &str| number(record, &format!("wire_{kind}_bytes"));
        of("retransmission") + of("repair")
    };
    // 90 % beyond one repetition of each loss, headers included, and what the first losses cost.
    assert!(again(&goal) > again(&plain), "{goal} {plain}");
    assert!(again(&goal) < 1.6 * 600e3, "{goal}");
}

#[test]
fn a_goal_that_is_missed_and_a_rate_that_does_not_pass_are_told() {
    let (_server, address) = server("--rate 2mbit");
    let (_link, port) = link(&address, "--rate 2mbit --delay 20ms --queue 200");
    // No message arrives before the link's own delay is over.
    let flags = "-b 100k -l 1000 -n 50kB --rate 2mbit --deadline 10ms";
    for (json, told) in [
        ("--json", "\"met\":false"),
        ("", "MISSED: of the messages 100.00 % took"),
    ] {
        let output = run(&format!("perf -c 127.0.0.1 -p {port} {json} {flags}"));
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
        let stdout = String::from_utf8_lossy(&output.stdout);
        assert!(stdout.contains(told), "{stdout}");
    }
    let output = run(&format!(
        "perf -c 127.0.0.1 -p {port} -b 4mbit -t 2 --rate 2mbit"
    ));
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(stdout.contains("rate not reached"), "{stdout}");
    assert!(stdout.contains("of 4.000 Mbit/s"), "{stdout}");
}

#[test]
fn one_way_delays_hold_the_links_and_its_unequal_ways_stay_within_the_stated_bound() {
    let (_server, address) = server("--rate 20mbit");
    let (_link, port) = link(
        &address,
        "--rate 20mbit --up-delay 40ms --down-delay 10ms --queue 200",
    );
    let record = measure(&port, "-u -b 1mbit -l 500 -t 1 --rate 20mbit");
    let round_trip = number(&record["clocks"], "round_trip_s");
    assert!(round_trip >= 0.05, "{record}");
    let uncertainty = number(&record["clocks"], "uncertainty_s");
    let fastest = number(&record["delay"], "min_s");
    // 40 ms is right; the clocks cannot know it. Scheduling may only add.
    assert!(fastest + uncertainty >= 0.04, "{record}");
    let order = ["min_s", "p50_s", "p90_s", "p99_s", "p999_s", "max_s"];
    let delays: Vec<f64> = order
        .iter()
        .map(|key| number(&record["delay"], key))
        .collect();
    assert!(delays.is_sorted(), "{record}");
}

#[test]
fn an_outage_delays_every_message_that_fell_due_in_it() {
    let (_server, address) = server("--rate 5mbit");
    let (_link, port) = link(&address, "--rate 5mbit --delay 5ms --outage 1500ms+1s");
    let record = measure(&port, "--rate 5mbit -b 1mbit -l 500 -t 4s");
    // A tenth of the messages fell due in the first 400 ms of the outage, and had 600 ms of it before them.
    let slow = number(&record["delay"], "p90_s");
    assert!(slow > 0.55, "{record}");
}

#[test]
fn a_rate_is_kept_and_intervals_add_up() {
    let (_server, address) = server("");
    let record = measure(
        &port(&address),
        "-u -b 2M -l 1000 -t 2 -i 0.5 --rate 20mbit",
    );
    // One message each 4 ms from 0 to 2 s; the clock may only let the last one out.
    let sent = number(&record, "sent_messages");
    assert!(sent <= 501.0, "{record}");
    let intervals = record["intervals"].as_array().expect("a list");
    let sum: f64 = intervals
        .iter()
        .map(|interval| number(interval, "messages"))
        .sum();
    assert!(
        (sum - number(&record, "received_messages")).abs() < 0.5,
        "{record}"
    );
    assert!(intervals.len() >= 3, "{record}");
}

#[test]
fn a_second_client_is_told_that_a_test_is_running() {
    let (mut server, address) = server("");
    let port = port(&address);
    let mut first = Running::start(fulmar(&format!(
        "perf -c 127.0.0.1 -p {port} --json -u -b 1M -t 30 --rate 20mbit"
    )));
    assert_eq!(server.record()["kind"], "began");
    let second = run(&format!("perf -c 127.0.0.1 -p {port} -u -t 1"));
    assert_eq!(second.status.code(), Some(3), "{}", said(&second));
    let told = said(&second);
    assert!(told.contains("another test is running"), "{told}");
    first.signal(Signal::INT);
    let record = first.record();
    assert_eq!(
        (&record["stopped"], &record["exit_code"]),
        (&true.into(), &130.into())
    );
    assert!(number(&record, "received_messages") > 0.0, "{record}");
    assert_eq!(first.code(), Some(130));
}

#[test]
fn a_server_ends_after_one_test_if_asked_and_survives_a_killed_client_if_not() {
    let (mut server, address) = server("--give-up 1s -1");
    let port = port(&address);
    let client = Running::start(fulmar(&format!(
        "perf -c 127.0.0.1 -p {port} --json -b 1M -t 60 --rate 20mbit"
    )));
    assert_eq!(server.record()["kind"], "began");
    drop(client);
    let (status, said) = server.end();
    assert_eq!(status.code(), Some(0), "{said}");
    let cut = server.record();
    assert_eq!(cut["kind"], "test");
    assert!(cut["error"].as_str().is_some(), "{cut}");
}

#[test]
fn a_server_on_every_address_sends_what_fits_it_and_says_what_does_not() {
    let mut server = Running::start(fulmar("perf -s -p 0 --json --give-up 1s"));
    let port = port(&server.address());
    // Longer than `--give-up`: the client's signs of life keep it.
    let record = measure(&port, "-u -R -b 1M -t 5 --rate 20mbit");
    assert!(number(&record, "received_messages") > 100.0, "{record}");
    let output = run(&format!(
        "perf -c 127.0.0.1 -p {port} -u -R -l 1472 --mtu 1520 -t 1"
    ));
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    assert!(said(&output).contains("--length"), "{}", said(&output));
}

#[test]
fn a_test_of_the_servers_messages_that_is_stopped_has_no_figures_of_the_sender() {
    let (mut server, address) = server("");
    let port = port(&address);
    let mut client = Running::start(fulmar(&format!(
        "perf -c 127.0.0.1 -p {port} -R --json -u -b 1M -t 30 --rate 20mbit -i 0.2"
    )));
    assert_eq!(server.record()["kind"], "began");
    // Some of the data has come for certain once an interval of the next test could not begin.
    let second = run(&format!("perf -c 127.0.0.1 -p {port} -u -t 1"));
    assert_eq!(second.status.code(), Some(3), "{}", said(&second));
    client.signal(Signal::INT);
    let record = client.record();
    assert_eq!(record["stopped"], true, "{record}");
    for key in [
        "sent_messages",
        "overhead",
        "loss_after_repair",
        "wire_source_bytes",
    ] {
        assert!(record[key].is_null(), "{key}: {record}");
    }
    assert_eq!(client.code(), Some(130));
}

#[test]
fn whatever_happens_json_is_one_object() {
    let nobody = run("perf -c 127.0.0.1 -p 9 --json --connect-timeout 1s");
    assert_eq!(nobody.status.code(), Some(3));
    let record: Value = serde_json::from_slice(&nobody.stdout).expect("one JSON object");
    assert_eq!(record["exit_code"], 3);
    let error = record["error"].as_str().expect("a text");
    assert!(error.contains("fulmar perf -s"), "{error}");
}

#[test]
fn what_cannot_be_measured_is_refused_with_the_reason() {
    for (flags, told) in [
        ("--mode datagram", "no connection"),
        ("-u -l 9000", "one packet"),
        ("-t 0.01", "0.1s to 24h"),
        ("-i 0.01", "0.1s to 1h"),
        ("-b 5bps", "bps"),
        ("-t 5 -n 1MB", "cannot be used with"),
        ("-P 0", "1 to 128"),
        ("-P 129", "1 to 128"),
        ("--deadline 90ms", "give their rate too"),
        ("-u -b 480k --deadline 90ms", "give --mode reliable"),
        ("-b 480k --deadline 90ms --residual 60%", "50% at most"),
        ("-R -b 480k --deadline 90ms", "cannot be used with"),
    ] {
        let output = run(&format!("perf -c 127.0.0.1 {flags}"));
        assert_eq!(output.status.code(), Some(2), "{flags}: {}", said(&output));
        assert!(said(&output).contains(told), "{flags}: {}", said(&output));
    }
}
