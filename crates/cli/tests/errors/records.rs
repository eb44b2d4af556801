//! The records of `--json` when a command fails.

use crate::processes::{Place, Running, free_port, fulmar, receiver, run, said, until};
use rustix::process::Signal;
use std::process::Stdio;

#[test]
fn json_tells_of_a_failure_too() {
    let place = Place::with(10);
    let closed = format!("127.0.0.1:{}", free_port());
    let output = run(&format!("send {} {closed} --json", place.file()));
    let record: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(record["exit_code"], 3, "{record}");
    assert_eq!(record["name"], "file");
    let error = record["error"].as_str().unwrap();
    assert!(error.contains("port is closed"), "{record}");

    let output = run("send /no/such/file 127.0.0.1:9 --json");
    assert_eq!(said(&output), "", "stdout has said it");
    let record: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(record["exit_code"], 2, "{record}");

    let output = run("recv /no/such/dir --json");
    assert_eq!(said(&output), "", "stdout has said it");
    let record: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&record["kind"], &record["exit_code"]),
        (&"end".into(), &2.into())
    );
    assert!(record["error"].is_string(), "{record}");
}

#[test]
fn json_claims_nothing_that_its_end_cannot_know() {
    let place = Place::with(1_000_000);
    let mut receiver = receiver(&place, "");
    let to = receiver.address();
    let output = run(&format!("send {} {to} --rate 50mbit --json", place.file()));
    let sent: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(sent["error"].is_null() && sent["exit_code"] == 0, "{sent}");
    for field in [
        "wire_lost_tpdus",
        "residual_lost_tpdus",
        "recovered_fec_words_tpdus",
    ] {
        assert!(sent["wire"][field].is_null(), "{field}: {sent}");
    }
    let got = receiver.record();
    assert_eq!(got["wire"]["residual_lost_tpdus"], 0, "{got}");
    assert!(got["wire"]["recovered_arq_tpdus"].is_null(), "{got}");

    let arguments = format!("send {} {to} --rate 2mbit --name cut", place.file());
    let mut sender = Running::start(fulmar(&format!("{arguments} --json")));
    until("the transfer to begin", || {
        place.path("in/cut.fulmar-state").exists()
    });
    sender.signal(Signal::INT);
    let sent = sender.record();
    assert_eq!(sent["exit_code"], 130, "{sent}");
    assert_eq!(
        (&sent["size_bytes"], &sent["resumed_at_bytes"]),
        (&1_000_000.into(), &0.into())
    );
    assert!(sent["submitted_bytes"].as_u64().unwrap() > 0, "{sent}");
    assert!(
        sent["wire"]["sent_source_bytes"].as_u64().unwrap() > 0,
        "{sent}"
    );
    assert!(
        sent["delivered_bytes"].is_null(),
        "only the receiver knows: {sent}"
    );
    let got = receiver.record();
    assert_eq!(got["verdict"], "abandoned", "{got}");
    for counted in ["sent_control_bytes", "wire_lost_tpdus"] {
        assert!(got["wire"][counted].is_u64(), "{counted}: {got}");
    }
    assert!(
        got["wire"]["sent_control_bytes"].as_u64().unwrap() > 0,
        "it acknowledged: {got}"
    );
    for unknown in ["missing_range_count", "missing_ranges"] {
        assert!(got[unknown].is_null(), "{unknown}: {got}");
    }
    let missing = 1_000_000 - got["delivered_bytes"].as_u64().unwrap();
    assert_eq!(got["missing_bytes"].as_u64(), Some(missing), "{got}");
    assert!(missing > 0 && got["residual_loss"].is_null(), "{got}");
    assert!(
        got["error"]
            .as_str()
            .unwrap()
            .contains("ended the transfer"),
        "{got}"
    );
}

#[test]
fn a_datagram_receiver_claims_no_counters() {
    let place = Place::with(100_000);
    let mut receiver = receiver(&place, "");
    let to = receiver.address();
    run(&format!(
        "send {} {to} --rate 50mbit --mode datagram",
        place.file()
    ));
    let got = receiver.record();
    assert!(
        got["verdict"] == "complete" || got["verdict"] == "incomplete",
        "{got}"
    );
    for unknown in [
        "wire_lost_tpdus",
        "residual_lost_tpdus",
        "sent_source_bytes",
    ] {
        assert!(got["wire"][unknown].is_null(), "{unknown}: {got}");
    }
    assert!(got["missing_range_count"].is_u64(), "{got}");
}

#[test]
fn an_emulator_whose_records_nobody_reads_any_more_ends() {
    let mut command = fulmar("emulate --listen 127.0.0.1:0 --to 127.0.0.1:9 --stats 10ms --json");
    let mut link = command.stdout(Stdio::piped()).spawn().unwrap();
    drop(link.stdout.take());
    let mut status = None;
    until("the link to end", || {
        status = link.try_wait().unwrap();
        status.is_some()
    });
    assert_eq!(status.unwrap().code(), Some(0));
}
