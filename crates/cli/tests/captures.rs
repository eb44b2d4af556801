//! Captures of the simulator, the emulator and the gateway, as commands write them.
//!
//! Method: run the commands, read their files with another reader than ours, and compare with what they
//! counted. Wireshark's reading of each layer is tested by `scripts/tests/test_captures.py`.

use crate::gateways::{Pair, client, echo, exchange, server, status_at};
use crate::processes::{octets, run, said, until};
use crate::reader;
use rustix::process::Signal;
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

const SCENARIOS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios");

/// Whether a program that a test needs works. Says once if it does not, and fails instead where tests must
/// not be skipped (`CI=true`).
pub(crate) fn works(program: &str, arguments: &[&str]) -> bool {
    let tried = Command::new(program).args(arguments).output();
    let works = tried.is_ok_and(|output| output.status.success());
    let ci = std::env::var_os("CI").is_some_and(|value| value == "true");
    assert!(works || !ci, "needs {program}, and CI=true forbids to skip");
    if !works {
        // Not eprintln!, which the test harness keeps to itself.
        drop(writeln!(std::io::stderr(), "skipped: needs {program}"));
    }
    works
}

#[test]
fn a_run_is_shown_in_two_files_that_are_the_same_each_time() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().display();
    let shown = |name: &str| {
        let arguments = format!(
            "sim {SCENARIOS}/airborne.toml --runs 1 --set hop.loss=5% --set flow.bytes=200kB \
             --json --capture {place}/{name}.pcapng --trace {place}/{name}.jsonl"
        );
        let output = run(&arguments);
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        let record = output.stdout.split(|&octet| octet == b'\n').next().unwrap();
        let record: serde_json::Value = serde_json::from_slice(record).unwrap();
        let read = |kind: &str| fs::read(directory.path().join(format!("{name}.{kind}"))).unwrap();
        (record, read("pcapng"), read("jsonl"))
    };
    let (record, capture, events) = shown("a");
    assert_eq!(
        shown("b"),
        (record.clone(), capture.clone(), events.clone())
    );
    let capture = reader::read(&capture);
    let lost = record["wire_loss"]["loss"].as_u64();
    assert_eq!(Some(capture.count("dropped: loss")), lost, "{record}");
    let events = String::from_utf8(events).unwrap();
    assert!(events.lines().last().unwrap().contains("\"event\":\"end\""));
}

#[test]
fn more_than_one_run_is_refused_with_the_way_to_choose_one() {
    for (flags, told) in [
        ("airborne.toml --runs 3 --capture x", "--runs 1"),
        (
            "airborne.toml --runs 1 --set sweep.hop.loss=[0%,5%] --capture x",
            "--set 'sweep.hop.loss=[0%]'",
        ),
        ("airborne.toml --runs 1 --capture -", "name a file"),
        (
            "airborne.toml --runs 1 --capture x --trace x",
            "name another",
        ),
        ("airborne.toml --out y --trace x", "cannot be used with"),
    ] {
        let output = run(&format!("sim {SCENARIOS}/{flags}"));
        assert_eq!(output.status.code(), Some(2), "{flags}: {}", said(&output));
        assert!(said(&output).contains(told), "{flags}: {}", said(&output));
    }
}

#[test]
fn a_full_disk_is_told_and_the_results_are_not_lost() {
    let output = run(&format!(
        "sim {SCENARIOS}/airborne.toml --runs 1 --set flow.bytes=200kB --capture /dev/full"
    ));
    assert_eq!(output.status.code(), Some(5), "{}", said(&output));
    assert!(
        said(&output).contains("writing /dev/full"),
        "{}",
        said(&output)
    );
    assert!(!output.stdout.is_empty(), "the table is there");
}

#[test]
fn a_capture_of_ours_is_no_recording_to_fit_and_it_is_said_why() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("run.pcapng");
    let output = run(&format!(
        "sim {SCENARIOS}/airborne.toml --runs 1 --set flow.bytes=20kB --capture {}",
        file.display()
    ));
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let output = run(&format!("fit {} --port 20000", file.display()));
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(said(&output).contains("exported PDUs"), "{}", said(&output));
}

#[test]
fn a_gateway_captures_what_it_sends_receives_refuses_and_opens() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().display();
    let to = server(echo);
    let entries = format!(
        "[[forward]]\nlisten = \"127.0.0.1:0\"\nto = \"{to}\"\n\
         [capture]\nfile = \"{place}/air.pcapng\"\n"
    );
    let link = format!("--rate 50mbit --delay 2ms --loss 5% --capture {place}/link.pcapng");
    let pair = Pair::start(&link, &entries);
    let sent = octets(1, 300_000);
    assert!(exchange(client(pair.entries[0]), sent.clone()) == sent);
    until("the flow to end", || pair.status()["flows"] == 0);
    // Noise from a stranger.
    let stranger = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let carrier = pair.carrier;
    stranger.send_to(&[0xEE; 64], carrier).unwrap();
    until("the noise to be refused", || {
        pair.status()["carrier"]["dropped"]["header_check"] == 1
    });
    let counted = status_at(pair.metrics);
    assert_eq!(counted["carrier"]["capture_missed_packets"], 0);
    pair.interrupt();

    let file = directory.path().join("air.pcapng");
    let mode = fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let capture = reader::read(&fs::read(&file).unwrap());
    assert_eq!(capture.interfaces, ["udp", "inner"]);
    assert_eq!(capture.count("refused: header_check"), 1);
    let refused: Vec<_> = capture
        .of("udp", false)
        .filter(|packet| !packet.comment.is_empty())
        .collect();
    assert!(refused.iter().any(|packet| packet.octets() == [0xEE; 64]));
    // Data datagrams in wire 2: they begin with 0x28 and the place of the path.
    let data = |is_outbound| {
        let packets = capture.of("udp", is_outbound);
        let accepted = packets.filter(|packet| packet.comment.is_empty());
        let data = accepted.filter(|packet| packet.octets()[0] & 0xF8 == 0x28);
        data.count()
    };
    let inner = |is_outbound| capture.of("inner", is_outbound).count();
    assert!(data(true) > 200 && data(false) > 200);
    assert_eq!((data(true), data(false)), (inner(true), inner(false)));
    for packet in capture.of("inner", true) {
        assert_eq!(packet.dissector(), "fulmar.inner");
        assert_eq!(packet.comment, "peer ground");
    }
    // Sealed datagrams are not in clear, opened ones are.
    let clear = &sent[1_000..1_032];
    let has = |name: &str, is_outbound| {
        let mut packets = capture.of(name, is_outbound);
        packets.any(|packet| {
            packet
                .octets()
                .windows(clear.len())
                .any(|part| part == clear)
        })
    };
    assert!(has("inner", true) && !has("udp", true));

    // The link stood between the gateways: what it delivered upwards is what the other end received.
    let link = reader::read(&fs::read(directory.path().join("link.pcapng")).unwrap());
    let entered = link.of("up/in", false).count() as u64;
    let lost = link.of("up/in", false);
    let lost = lost
        .filter(|packet| packet.comment == "dropped: loss")
        .count();
    assert!(lost > 0);
    assert_eq!(
        link.of("up/out", true).count() as u64,
        entered - lost as u64
    );
}

#[test]
fn a_gateway_whose_capture_cannot_be_written_carries_its_traffic() {
    let to = server(echo);
    let entries = format!(
        "[[forward]]\nlisten = \"127.0.0.1:0\"\nto = \"{to}\"\n[capture]\nfile = \"/dev/full\"\n"
    );
    let pair = Pair::start("--rate 50mbit --delay 1ms", &entries);
    let sent = octets(2, 500_000);
    assert!(exchange(client(pair.entries[0]), sent.clone()) == sent);
    let status = pair.status();
    assert_eq!(status["carrier"]["captured_packets"], 0, "{status}");
    let missed = status["carrier"]["capture_missed_packets"].as_u64();
    assert!(missed > Some(500), "{status}");
}

#[test]
fn a_capture_stops_at_its_largest_size_while_the_traffic_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("air.pcapng");
    let to = server(echo);
    let entries = format!(
        "[[forward]]\nlisten = \"127.0.0.1:0\"\nto = \"{to}\"\n\
         [capture]\nfile = \"{}\"\nmax_size = \"1MB\"\n",
        file.display()
    );
    let pair = Pair::start("--rate 50mbit --delay 1ms", &entries);
    let sent = octets(3, 1_500_000);
    assert!(exchange(client(pair.entries[0]), sent.clone()) == sent);
    let counted = pair.status();
    pair.interrupt();
    let written = fs::read(&file).unwrap();
    assert!(
        (900_000..=1_000_000).contains(&written.len()),
        "{}",
        written.len()
    );
    let capture = reader::read(&written);
    let packets = counted["carrier"]["captured_packets"].as_u64();
    assert_eq!(Some(capture.packets.len() as u64), packets);
}

#[test]
fn a_full_disk_ends_the_capture_whole_and_with_one_line_and_not_the_traffic() {
    if !works("unshare", &["--mount", "true"]) {
        return;
    }
    let to = server(echo);
    let place = tempfile::tempdir().unwrap();
    let at = place.path().display().to_string();
    let entries = format!(
        "[[forward]]\nlisten = \"127.0.0.1:0\"\nto = \"{to}\"\n\
         [capture]\nfile = \"{at}/air.pcapng\"\n"
    );
    let script = format!("mount -t tmpfs -o size=1m tmpfs {at} && exec \"$0\" \"$@\"");
    let wrapper = ["unshare", "--mount", "sh", "-c", &script];
    let mut pair = Pair::start_wrapped("--rate 50mbit --delay 1ms", &entries, &wrapper);
    let sent = octets(4, 1_500_000);
    assert!(exchange(client(pair.entries[0]), sent.clone()) == sent);
    let carrier = || pair.status()["carrier"].clone();
    until("the capture to end", || {
        carrier()["capture_missed_packets"].as_u64() > Some(0)
    });
    // As the gateway sees it, in its mount namespace.
    let written = fs::read(format!("/proc/{}/root{at}/air.pcapng", pair.air.id())).unwrap();
    let capture = reader::read(&written);
    assert!(written.len() > 500_000, "{}", written.len());
    let packets = capture.packets.len() as u64;
    assert_eq!(carrier()["captured_packets"].as_u64(), Some(packets));
    pair.air.signal(Signal::INT);
    let (_, told) = pair.air.end();
    assert_eq!(told.matches("capture_ended").count(), 1, "{told}");
}
