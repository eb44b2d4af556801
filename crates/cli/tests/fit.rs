//! `fulmar fit` from outside, and the use of recorded losses in scenarios and in the emulator.

use crate::processes;
use crate::processes::{Place, run, said};
use fulmar_proto::rng::Rng;
use std::fs;

/// 20,000 packets in bursts: 5 % lost, 4 in a row on average.
fn bursts() -> String {
    let mut rng = Rng::from_seed(7);
    let mut lost = false;
    let mut text = String::from("lost\n");
    for _ in 0..20_000 {
        let change = if lost { 0.25 } else { 0.25 * 0.05 / 0.95 };
        lost ^= rng.chance(change);
        text += if lost { "1\n" } else { "0\n" };
    }
    text
}

fn place_with(table: &str) -> (Place, String) {
    let place = Place::with(1);
    let path = place.path("losses.csv");
    fs::write(&path, table).expect("room");
    (place, path.display().to_string())
}

#[test]
fn a_table_is_printed_with_the_lines_to_paste() {
    let (_place, path) = place_with(&bursts());
    let output = run(&format!("fit {path}"));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{}", said(&output));
    for expected in [
        "losses.csv: 20000 packets, ",
        "mean_burst_packets",
        "intervals is left out: it is not known when the packets were on their way",
        "gilbert against bernoulli: likelihood ratio ",
        "lowest BIC: gilbert\n",
        "\n[hop]\nloss = \"",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    // The lines that it prints are valid in a scenario.
    let (_, snippet) = text.split_once("\n[hop]\n").expect("the lines");
    let flow = "[flow]\ntransport = \"udp\"\nbytes = \"50kB\"\n";
    let scenario = format!("[hop]\nrate = \"5mbit\"\n{snippet}{flow}");
    let (_place, path) = place_with(&scenario);
    let simulated = run(&format!("sim {path}"));
    assert!(simulated.status.success(), "{}", said(&simulated));
}

#[test]
fn json_has_every_model_with_intervals_and_nothing_that_is_no_number() {
    let (_place, path) = place_with(&bursts());
    let output = run(&format!("fit {path} --json"));
    let record: serde_json::Value = serde_json::from_slice(&output.stdout).expect("one object");
    assert_eq!(
        (&record["record"], &record["schema"]),
        (&"fit".into(), &1.into())
    );
    assert_eq!(record["chosen"], "gilbert");
    assert_eq!(record["believable"], true);
    assert_eq!(record["packets"], 20_000);
    assert!(record["loss"].as_str().expect("text").contains("% burst "));
    let gilbert = &record["models"][1];
    let burst = &gilbert["parameters"][1];
    assert_eq!(burst["name"], "mean_burst_packets");
    let number = |key: &str| burst[key].as_f64().expect("a number");
    assert!(number("low") < 4.0 && 4.0 < number("high"), "{burst}");
    assert!(gilbert["goodness"]["p"].as_f64() > Some(0.01), "{gilbert}");
    assert_eq!(record["skipped"][0][0], "intervals");
}

#[test]
fn losses_that_come_like_clockwork_are_no_chance_and_said_to_be_none() {
    for (period, lost, believable) in [
        (10, 1, false.into()),
        (20, 5, false.into()),
        (2, 1, serde_json::Value::Null),
    ] {
        let fate = |index: u32| if index % period < lost { "1\n" } else { "0\n" };
        let table: String = core::iter::once("lost\n")
            .chain((0..4000).map(fate))
            .collect();
        let (_place, path) = place_with(&table);
        let output = run(&format!("fit {path} --json"));
        let record: serde_json::Value = serde_json::from_slice(&output.stdout).expect("one object");
        assert_eq!(record["believable"], believable, "{period}");
        for model in record["models"].as_array().expect("a list") {
            assert!(model["log_likelihood"].is_number(), "{period}: {model}");
            assert!(model["bic"].is_number(), "{period}: {model}");
        }
        let output = run(&format!("fit {path}"));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(!text.contains("inf") && !text.contains("NaN"), "{text}");
        assert!(text.contains("replay it instead, --trace FILE"), "{text}");
    }
}

#[test]
fn a_capture_that_was_cut_off_is_said_to_be_with_its_place() {
    let place = Place::with(1);
    let path = place.path("cut.pcap");
    let mut file = Vec::new();
    // The head of a pcap file of bare IP packets, and UDP with RTP in it, by their formats.
    file.extend(0xA1B2_C3D4_u32.to_le_bytes());
    file.extend([2, 0, 4, 0]);
    for word in [0, 0, 65_535, 101_u32] {
        file.extend(word.to_le_bytes());
    }
    for number in [1_u8, 2, 4, 5] {
        let mut packet = vec![
            0x45, 0, 0, 40, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
        ];
        packet.extend([0x9C, 0x40, 0x13, 0x8C, 0, 20, 0, 0]);
        packet.extend([0x80, 96, 0, number, 0, 0, 0, 0, 0, 0, 0, 9]);
        for word in [u32::from(number), 0, 40, 40] {
            file.extend(word.to_le_bytes());
        }
        file.extend(packet);
    }
    fs::write(&path, &file).expect("room");
    let command = format!("fit {} --port 5004", path.display());
    let whole = run(&command);
    assert!(
        whole.status.success() && said(&whole).is_empty(),
        "{}",
        said(&whole)
    );
    fs::write(&path, &file[..file.len() - 7]).expect("room");
    let output = run(&command);
    let told = said(&output);
    assert!(output.status.success(), "{told}");
    let place = format!(
        "{}: ends in the midst of a packet, at octet 192; the 3 packets",
        path.display()
    );
    assert!(
        told.contains("warning: ") && told.contains(&place),
        "{told}"
    );
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("4 packets, 1 lost"), "{text}");
}

#[test]
fn a_trace_is_replayed_by_the_simulator_packet_by_packet() {
    let (place, path) = place_with("sequence\n1\n2\n4\n5\n8\n9\n10\n");
    let trace = place.path("replay.csv");
    let output = run(&format!("fit {path} --trace {}", trace.display()));
    assert!(output.status.success(), "{}", said(&output));
    assert!(
        said(&output).contains("10 packets written to"),
        "{}",
        said(&output)
    );
    assert_eq!(
        fs::read_to_string(&trace).expect("it is there"),
        "lost\n0\n0\n1\n0\n0\n1\n1\n0\n0\n0\n"
    );
    let scenario = place.path("replay.toml");
    let text = "[hop]\nrate = \"5mbit\"\n[hop.forward]\nloss = \"trace replay.csv\"\n\
                [flow]\ntransport = \"udp\"\nbytes = \"14720B\"\n";
    fs::write(&scenario, text).expect("room");
    let output = run(&format!("sim {} --json", scenario.display()));
    let first = output
        .stdout
        .split(|&octet| octet == b'\n')
        .next()
        .expect("a line");
    let record: serde_json::Value = serde_json::from_slice(first).expect("a record");
    assert_eq!(record["wire_loss"]["loss"], 3, "{}", said(&output));
    assert_eq!(record["delivered_bytes"], 7 * 1472);
    // Sequences are read directly as well, and one packet more is one too many.
    let text = text.replace("replay.csv", "losses.csv");
    fs::write(&scenario, text.replace("14720B", "14721B")).expect("room");
    let output = run(&format!("sim {}", scenario.display()));
    assert_eq!(output.status.code(), Some(1));
    let told = said(&output);
    assert!(
        told.contains(
            "the trace losses.csv (10 packets) is used up; write `trace losses.csv loop`"
        ),
        "{told}"
    );
    fs::write(&scenario, text.replace("losses.csv", "losses.csv loop")).expect("room");
    assert!(run(&format!("sim {}", scenario.display())).status.success());
}

#[test]
fn a_sweep_notices_that_a_trace_has_changed() {
    let (place, _) = place_with("0\n1\n0\n");
    let scenario = place.path("s.toml");
    let text = "[hop]\nrate = \"5mbit\"\nloss = \"trace losses.csv loop shifted\"\n\
                [flow]\ntransport = \"aerotp\"\nbytes = \"5kB\"\n";
    fs::write(&scenario, text).expect("room");
    let command = format!(
        "sim {} --runs 3 --out {}",
        scenario.display(),
        place.path("out").display()
    );
    assert!(run(&command).status.success());
    fs::write(place.path("losses.csv"), "0\n0\n1\n").expect("room");
    let output = run(&command);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        said(&output).contains("a --set or a trace is another"),
        "{}",
        said(&output)
    );
}

#[test]
fn recordings_that_cannot_be_used_are_one_line_and_code_2() {
    let (place, path) = place_with("lost\n0\n7\n");
    let capture = place.path("a.pcap");
    fs::write(&capture, [0xD4, 0xC3, 0xB2, 0xA1, 2, 0, 4, 0]).expect("room");
    let capture = capture.display().to_string();
    let by_time = place.path("t.csv");
    fs::write(&by_time, "duration_s,loss\n1,0\n1,1\n").expect("room");
    for (arguments, expected) in [
        (
            path.clone(),
            "losses.csv:3: `lost`: `7` is not 0 (came) or 1 (lost)",
        ),
        (
            format!("{path} --port 5004"),
            "is no capture, pcap or pcapng; leave --port out",
        ),
        (capture.clone(), "is a capture; say which flow: --port"),
        (format!("{capture} --port 5004"), "packet 0: is"),
        (
            by_time.display().to_string(),
            "is a loss by time and not of packets",
        ),
        (
            "/no/such/file".to_owned(),
            "cannot read /no/such/file: No such file",
        ),
        (
            "/dev/zero".to_owned(),
            "the line is longer than 4096 octets",
        ),
        ("/dev/null".to_owned(), "there is nothing in it"),
    ] {
        let output = run(&format!("fit {arguments}"));
        let told = said(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments}: {told}");
        assert!(
            told.contains(expected) && told.lines().count() == 1,
            "{arguments}: {told}"
        );
    }
    let emulated = "emulate --listen 127.0.0.1:0 --to 127.0.0.1:9 --loss";
    let mut emulate = processes::fulmar(emulated);
    let output = emulate
        .arg(format!("trace {path} loop"))
        .output()
        .expect("it starts");
    assert_eq!(output.status.code(), Some(2));
    let expected = format!("the up link's loss: {path}:3: `lost`: `7` is not");
    assert!(said(&output).contains(&expected), "{}", said(&output));
}

#[test]
fn the_emulator_replays_a_trace_and_ends_with_it() {
    let (_place, path) = place_with("0\n1\n1\n0\n");
    let mut command = processes::fulmar("emulate --listen 127.0.0.1:0 --to 127.0.0.1:9 --up-loss");
    command.arg(format!("trace {path}"));
    let mut emulator = processes::Running::start(command);
    let to = emulator.address();
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port");
    for _ in 0..5 {
        socket.send_to(b"a datagram", &to).expect("room");
    }
    let records = emulator.records();
    let up = &records.last().expect("the end")["up"];
    assert_eq!(up["offered_packets"], 5, "{records:?}");
    // Two by the trace, and one behind it.
    assert_eq!(up["dropped_packets"]["loss"], 3);
    let (status, said) = emulator.end();
    assert_eq!(status.code(), Some(1), "{said}");
    assert!(
        said.contains("the up link's loss: the trace ") && said.contains("(4 packets) is used up"),
        "{said}"
    );
}

#[test]
fn a_model_of_three_packets_is_not_called_believable() {
    let (_place, path) = place_with("lost\n0\n1\n0\n");
    let output = run(&format!("fit {path} --json"));
    let record: serde_json::Value = serde_json::from_slice(&output.stdout).expect("one object");
    assert!(record["believable"].is_null(), "{record}");
    let output = run(&format!("fit {path}"));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("cannot be tested"), "{text}");
}

#[test]
fn columns_divided_by_semicolons_are_told_apart_from_unknown_ones() {
    let (_place, path) = place_with("sequence;arrival_s\n1;0.1\n");
    let output = run(&format!("fit {path}"));
    assert_eq!(output.status.code(), Some(2));
    assert!(
        said(&output).contains("divided by commas"),
        "{}",
        said(&output)
    );
}
