//! Settings of a link layer, transport or traffic that the scenario does not have: they are accepted
//! without effect, so that one file can compare several, but their values must be valid.

use super::{BASE, each_is_one_line_with_file_line_field_and_remedy};
use crate::processes::{Place, run, said};
use std::fs;

const QUEUE: &str = r#"queue = "100 packets""#;
const UDP: &str = r#"transport = "udp""#;

const BULK: &str = "bytes = \"20kB\"";

/// Lines of link layers, each with its key and a part of the remedy.
const LAYERS: [(&str, &str, &str); 15] = [
    ("window = 1025", "window", "from 1 to 1024"),
    ("retries = 101", "retries", "from 0 to 100"),
    ("in_order = \"no\"", "in_order", "true"),
    (
        "retransmit_after = \"0s\"",
        "retransmit_after",
        "longer than 0",
    ),
    ("fragments = \"many\"", "fragments", "from 1 to"),
    ("units = 0", "units", "from 1 to"),
    ("failure = 2", "failure", "between 0 and 1"),
    ("repair_failure = 7", "repair_failure", "between 0 and 1"),
    ("memory = 0", "memory", "from 1 to 1000000"),
    ("lanes = 8", "lanes", "from 1 to 7"),
    ("persistence = 5", "persistence", "from 0 to 4"),
    ("arq = 1", "arq", "true"),
    ("urgent = { fec = 2 }", "urgent.fec", "true"),
    ("redundancy = 2", "redundancy", "between 0 and 1"),
    ("ack_delay = 5", "ack_delay", "has no unit"),
];

/// Lines of transports, each with its key and a part of the remedy.
const TRANSPORTS: [(&str, &str, &str); 27] = [
    ("mode = \"fast\"", "mode", "known are auto, datagram"),
    ("fec_words = 257", "fec_words", "from 0 to 256"),
    ("fec_block = \"20\"", "fec_block", "write sources+repairs"),
    ("fec_block_close = 20", "fec_block_close", "has no unit"),
    ("adapt = \"often\"", "adapt", "coherence time, such as 4ms"),
    ("adapt_power = 1", "adapt_power", "true"),
    ("follow_length = 1", "follow_length", "true"),
    ("mack = 0", "mack", "from 1 to 365"),
    ("mack_flush = 1", "mack_flush", "has no unit"),
    ("mack_repeats = -1", "mack_repeats", "from 0 to 65535"),
    (
        "mack_style = \"long\"",
        "mack_style",
        "known are cumulative",
    ),
    ("window = 1", "window", "from 2 to 32768"),
    ("send_buffer = 1", "send_buffer", "has no unit"),
    ("payload_crc = 1", "payload_crc", "true"),
    ("deliver_damaged = 1", "deliver_damaged", "true"),
    ("rto_initial = 1", "rto_initial", "has no unit"),
    ("wait_lost = \"-1s\"", "wait_lost", "is negative"),
    ("tail_repeats = 1001", "tail_repeats", "from 0 to 1000"),
    ("give_up_after = 1", "give_up_after", "has no unit"),
    ("priority = 64", "priority", "from 0 to 63"),
    ("ecn = 1", "ecn", "true"),
    ("burst = 1", "burst", "has no unit"),
    ("credit = \"0B\"", "credit", "1B to 4294967295B"),
    ("read_rate = \"0bit\"", "read_rate", "at least 1bit"),
    ("copies = 101", "copies", "from 1 to 100"),
    ("tcp = { mss = \"9000B\" }", "tcp.mss", "at most 1460B"),
    (
        "lt_tcp = { granularity = 0 }",
        "lt_tcp.granularity",
        "from 1 to 255",
    ),
];

#[test]
fn values_that_nobody_would_take_are_mistakes() {
    for layer in ["none", "plain"] {
        let cases = LAYERS.map(|(line, key, remedy)| {
            let table = format!("{QUEUE}\n[hop.link]\nlayer = \"{layer}\"\n{line}\n[[hop]]\nrate = \"5mbit\"\ndelay = \"10ms\"");
            (table, format!("hop.0.link.{key}"), remedy)
        });
        let cases = cases
            .each_ref()
            .map(|(table, field, remedy)| (QUEUE, table.as_str(), 15, field.as_str(), *remedy));
        each_is_one_line_with_file_line_field_and_remedy(&cases);
    }
    let cases = TRANSPORTS
        .map(|(line, key, remedy)| (format!("{UDP}\n{line}"), format!("flow.1.{key}"), remedy));
    let cases = cases
        .each_ref()
        .map(|(flow, field, remedy)| (UDP, flow.as_str(), 29, field.as_str(), *remedy));
    each_is_one_line_with_file_line_field_and_remedy(&cases);
    // A key of constant rate, beside bulk traffic.
    each_is_one_line_with_file_line_field_and_remedy(&[
        (
            BULK,
            "bytes = \"20kB\"\nwrite = \"0B\"",
            26,
            "flow.0.write",
            "at least 1B",
        ),
        (
            BULK,
            "bytes = \"20kB\"\nrate = \"0bit\"",
            26,
            "flow.0.rate",
            "at least 1bit",
        ),
        (
            BULK,
            "bytes = \"20kB\"\nfirst = \"never\"",
            26,
            "flow.0.first",
            "known are at-once",
        ),
    ]);
}

#[test]
fn copies_are_refused_for_transports_that_have_none() {
    let cases = ["tcp", "lt-tcp"].map(|name| format!("transport = \"{name}\"\ncopies = 2"));
    let remedy = "is for aerotp, gateway and udp: another transport sends again what it chooses; leave it out or write 1";
    let cases = cases
        .each_ref()
        .map(|flow| (UDP, flow.as_str(), 29, "flow.1.copies", remedy));
    each_is_one_line_with_file_line_field_and_remedy(&cases);
}

#[test]
fn values_that_somebody_takes_are_let_stand() {
    let place = Place::with(1);
    let file = place.path("scenario.toml");
    let link = format!("{QUEUE}\nlink = \"plain\"");
    let flow = "transport = \"tcp\"\ncopies = 1\nmode = \"unreliable\"\nadapt = \"4ms\"\nfec_block = \"20+4\"\ncredit = \"1MB\"";
    let text = BASE.replacen(QUEUE, &link, 1).replacen(UDP, flow, 1);
    fs::write(&file, text).expect("room");
    for window in ["1", "1024"] {
        let output = run(&format!(
            "sim {} --set hop.link.window={window} --set hop.link.lanes=3",
            file.display()
        ));
        assert!(output.status.success(), "{}", said(&output));
    }
}
