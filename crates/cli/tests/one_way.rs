//! Files over links without a way back, or with a thin one: whole at the far end, and no datagram goes back over the first, whatever is
//! killed or full.
//!
//! Method: sender, emulator and receiver as processes on the loopback. The emulator counts what the receiver sends into it.

use crate::gateway_disk_full::can_mount;
use crate::processes::{Place, Running, fulmar, read, run, said, until};
use rustix::process::Signal;
use serde_json::Value;
use std::path::PathBuf;

/// A key in the place, as an option.
fn preset(place: &Place) -> String {
    let key = place.path("link.preset").display().to_string();
    let made = run(&format!("keygen --preset {key}"));
    assert_eq!(made.status.code(), Some(0), "{}", said(&made));
    format!("--return none --preset {key}")
}

fn receiver(place: &Place, preset: &str, flags: &str) -> Running {
    let inbox = place.inbox();
    Running::start(fulmar(&format!(
        "recv {inbox} --listen 127.0.0.1:0 --json {preset} {flags}"
    )))
}

fn link(target: &str, loss: &str) -> (Running, String) {
    let flags = "--rate 20mbit --delay 5ms --queue 200";
    let arguments =
        format!("emulate --listen 127.0.0.1:0 --to {target} {flags} --up-loss {loss} --seed 7");
    let mut link = Running::start(fulmar(&arguments));
    let address = link.address();
    (link, address)
}

/// The options of a sender with its numbers in the place.
fn sending(place: &Place, to: &str, preset: &str, flags: &str) -> String {
    let (file, state) = (place.file(), place.path("state").display().to_string());
    format!("send {file} {to} --rate 20mbit --state {state} {preset} {flags}")
}

fn send(place: &Place, to: &str, preset: &str, flags: &str) -> Value {
    let output = run(&sending(place, to, preset, &format!("{flags} --json")));
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    serde_json::from_slice(&output.stdout).expect("one record")
}

/// The datagrams that the link carried towards the sender.
fn went_back(mut link: Running) -> Value {
    link.signal(Signal::INT);
    let records = link.records();
    let end = records.last().expect("it has an end");
    assert_eq!(end["kind"], "end");
    end["down"]["offered_packets"].clone()
}

/// The next record of this kind.
fn next(receiver: &mut Running, kind: &str) -> Value {
    loop {
        let record = receiver.record();
        if record["kind"] == kind {
            return record;
        }
    }
}

fn logged(place: &Place) -> Option<(PathBuf, u64)> {
    let entries = std::fs::read_dir(place.path("in/.fulmar-one-way")).ok()?;
    let log = entries.filter_map(Result::ok).map(|entry| entry.path());
    let log = log
        .into_iter()
        .find(|path| path.extension().is_some_and(|end| end == "symbols"))?;
    let len = std::fs::metadata(&log).ok()?.len();
    Some((log, len))
}

fn whole_after_a_kill(place: &Place) {
    assert!(place.arrived() == place.octets, "other octets");
    assert_eq!(logged(place), None, "symbols of a whole file are not kept");
}

#[test]
fn a_file_comes_whole_over_a_link_that_loses_a_fifth_and_nothing_goes_back() {
    let place = Place::with(300_000);
    let preset = preset(&place);
    let mut receiver = receiver(&place, &preset, "--once");
    let (link, to) = link(&receiver.address(), "20%");
    let sent = send(&place, &to, &preset, "");
    assert_eq!(sent["symbols"], 210, "{sent}");
    let record = next(&mut receiver, "file");
    assert_eq!(record["verdict"], "whole", "{record}");
    let end = next(&mut receiver, "end");
    assert_eq!(end["datagrams_sent"], 0, "{end}");
    assert_eq!(receiver.code(), Some(0));
    assert!(place.arrived() == place.octets, "other octets");
    let report = std::fs::read_to_string(place.path("in/file.fulmar-report")).expect("a report");
    let report: Value = serde_json::from_str(&report).expect("JSON");
    assert_eq!(
        (&report["is_whole"], &report["missing_symbols"]),
        (&Value::Bool(true), &0.into()),
        "{report}"
    );
    assert_eq!(went_back(link), 0);
}

#[test]
fn what_a_lossy_link_took_is_asked_for_over_a_thin_way_back_that_loses_too() {
    let place = Place::with(300_000);
    let preset = preset(&place).replace("none", "thin");
    let numbers = place.path("numbers").display().to_string();
    let mut receiver = receiver(&place, &preset, &format!("--once --state {numbers}"));
    let target = receiver.address();
    let arguments = format!(
        "emulate --listen 127.0.0.1:0 --to {target} --rate 20mbit --delay 5ms --queue 200 --loss 20% --seed 7"
    );
    let mut link = Running::start(fulmar(&arguments));
    let to = link.address();
    // Repair ahead is less than the link loses: without a request the file would stay short.
    let sent = send(&place, &to, &preset, "--overhead 5% --spread 100ms");
    assert!(sent["requests"].as_u64() >= Some(1), "{sent}");
    assert_eq!(next(&mut receiver, "file")["verdict"], "whole");
    let end = next(&mut receiver, "end");
    assert!(end["datagrams_sent"].as_u64() >= Some(1), "{end}");
    assert_eq!(receiver.code(), Some(0));
    assert!(place.arrived() == place.octets, "other octets");
    assert_eq!(went_back(link), end["datagrams_sent"]);
}

#[test]
fn a_killed_receiver_goes_on_with_what_it_had_and_a_report_brings_the_rest() {
    let place = Place::with(2_000_000);
    let preset = preset(&place);
    let mut first = receiver(&place, &preset, "--checkpoint 50ms");
    let (_link, to) = link(&first.address(), "20%");
    let mut sender = Running::start(fulmar(&sending(&place, &to, &preset, "--json")));
    until("some symbols on the disk", || {
        logged(&place).is_some_and(|(_, len)| len > 500_000)
    });
    first.signal(Signal::KILL);
    first.end();
    assert_eq!(sender.code(), Some(0));
    // What came while nobody listened is missing.
    let mut second = receiver(&place, &preset, "--once");
    let resumed = next(&mut second, "resumed");
    let missing = resumed["missing_symbols"].as_u64().expect("a number");
    assert!((1..1_050).contains(&missing), "{resumed}");
    second.signal(Signal::TERM);
    let stopped = next(&mut second, "file");
    assert_eq!(stopped["verdict"], "stopped", "{stopped}");
    let report = stopped["report_path"]
        .as_str()
        .expect("a report")
        .to_owned();
    assert_eq!(second.code(), Some(143));
    let mut third = receiver(&place, &preset, "--once");
    let (link, to) = link(&third.address(), "20%");
    let sent = send(&place, &to, &preset, &format!("--report {report}"));
    let units = sent["round_symbols"].as_f64().expect("a number");
    assert!(
        units < missing as f64 / 0.8 * 1.2,
        "{missing} are missing: {sent}"
    );
    assert_eq!(next(&mut third, "file")["verdict"], "whole");
    assert_eq!(third.code(), Some(0));
    whole_after_a_kill(&place);
    assert_eq!(went_back(link), 0);
    // The whole receiver's report asks for nothing.
    let report = place.path("in/file.fulmar-report").display().to_string();
    let output = run(&sending(
        &place,
        "127.0.0.1:9",
        &preset,
        &format!("--report {report}"),
    ));
    assert_eq!(output.status.code(), Some(0));
    assert!(said(&output).contains("miss nothing"), "{}", said(&output));
    let sent = send(
        &place,
        "127.0.0.1:9",
        &preset,
        &format!("--report {report}"),
    );
    assert_eq!(sent["sent_datagrams"], 0, "{sent}");
}

/// A receiver whose directory is a disk of its own of one megabyte; `None` where nothing may be mounted.
fn receiver_on_a_small_disk(place: &Place, preset: &str) -> Option<Running> {
    if !can_mount() {
        return None;
    }
    let (inbox, binary) = (place.inbox(), fulmar(""));
    let script = format!("mount -t tmpfs -o size=1m tmpfs {inbox} && exec \"$0\" \"$@\"");
    let mut command = std::process::Command::new("unshare");
    command
        .args(["--mount", "sh", "-c", &script])
        .arg(binary.get_program());
    let arguments = format!("recv {inbox} --listen 127.0.0.1:0 --json {preset}");
    command.args(arguments.split_whitespace());
    Some(Running::start(command))
}

#[test]
fn a_full_disk_costs_what_comes_meanwhile_and_no_more() {
    let place = Place::with(2_000_000);
    let preset = preset(&place);
    let Some(mut receiver) = receiver_on_a_small_disk(&place, &preset) else {
        return;
    };
    let to = receiver.address();
    send(&place, &to, &preset, "--loss 0%");
    let full = next(&mut receiver, "storage");
    assert!(
        full["error"]
            .as_str()
            .is_some_and(|error| error.contains("space")),
        "{full}"
    );
    let short = next(&mut receiver, "file");
    assert_eq!(short["verdict"], "missing", "{short}");
    let missing = short["report"]["missing_symbols"]
        .as_u64()
        .expect("a number");
    assert!((500..1_397).contains(&missing), "{missing} of 1397");
    let (id, inbox) = (receiver.id().to_string(), place.inbox());
    let words = [
        "--target",
        &id,
        "--mount",
        "mount",
        "-o",
        "remount,size=9m",
        &inbox,
    ];
    let grown = std::process::Command::new("nsenter").args(words).status();
    assert!(grown.expect("it starts").success());
    send(&place, &to, &preset, "--loss 0%");
    let whole = next(&mut receiver, "file");
    assert_eq!(whole["verdict"], "whole", "{whole}");
    let arrived = std::fs::read(format!("/proc/{id}/root{inbox}/file")).expect("it is there");
    assert!(arrived == place.octets, "other octets");
}

#[test]
fn what_cannot_be_is_said_before_anything_is_sent() {
    let place = Place::with(1_000);
    let preset = preset(&place);
    let file = place.file();
    let inbox = place.inbox();
    let (thin, long) = (preset.replace("none", "thin"), "n".repeat(242));
    for (arguments, part) in [
        (
            format!("send {file} 127.0.0.1:9 --return none --rate 5mbit"),
            "--preset",
        ),
        (format!("send {file} 127.0.0.1:9 {preset}"), "--rate"),
        (
            format!("send - 127.0.0.1:9 {preset} --rate 5mbit"),
            "a pipe cannot be sent",
        ),
        (
            format!("send {file} 127.0.0.1:9 {preset} --rate 5mbit --mode nack"),
            "--mode",
        ),
        (
            format!("send {file} 127.0.0.1:9 {preset} --rate 5mbit --loss 99%"),
            "--loss and --residual",
        ),
        (
            format!("send {file} 127.0.0.1:9 {preset} --rate 5mbit --residual 0%"),
            "--residual",
        ),
        (
            format!("send {file} 127.0.0.1:9 {preset} --rate 5mbit --residual 1e-10"),
            "--residual",
        ),
        (format!("recv - {preset} --json"), "\"exit_code\":2"),
        (
            format!("send {file} 127.0.0.1:9 {preset} --rate 5mbit --report {file}"),
            "no report",
        ),
        (format!("send {file} 127.0.0.1:9 --loss 2%"), "--return"),
        (
            format!("send {file} 127.0.0.1:9 {preset} --rate 5mbit --spread 1s"),
            "--return thin",
        ),
        (
            format!("send {file} 127.0.0.1:9 {thin} --rate 5mbit --carousel"),
            "write --rounds COUNT",
        ),
        (
            format!("send {file} 127.0.0.1:9 {preset} --rate 5mbit --name {long}"),
            "longer than 241 octets",
        ),
        (
            format!("recv {inbox} {preset} --ask 127.255.255.255:9"),
            "--return thin",
        ),
        (format!("recv - {preset}"), "a directory"),
        (format!("recv {inbox} --return none"), "--preset"),
        (
            format!("recv {inbox} {preset} --group 10.0.0.1 --listen 127.0.0.1:0"),
            "--group",
        ),
    ] {
        let output = run(&arguments);
        assert_eq!(
            output.status.code(),
            Some(2),
            "{arguments}: {}",
            said(&output)
        );
        let told = format!(
            "{}{}",
            said(&output),
            String::from_utf8_lossy(&output.stdout)
        );
        assert!(told.contains(part), "{arguments}: {told}");
    }
}

#[test]
fn a_sender_that_is_stopped_does_not_say_that_nobody_asked() {
    let place = Place::with(1_000);
    let thin = preset(&place).replace("none", "thin");
    let log = place.path("said");
    let mut command = fulmar(&sending(&place, "127.0.0.1:9", &thin, ""));
    command.stderr(std::fs::File::create(&log).expect("room"));
    let mut sender = Running::start_with_its_stderr(command);
    let told = || String::from_utf8_lossy(&read(&log)).into_owned();
    // Nobody answers its invitations, which take ten seconds.
    until("its start", || told().contains("are sent in one round"));
    sender.signal(Signal::INT);
    assert_eq!(sender.code(), Some(130), "{}", told());
    assert!(told().contains("and then it was stopped"), "{}", told());
}

#[test]
fn a_receiver_says_that_a_sender_has_another_key() {
    let place = Place::with(30_000);
    let ours = preset(&place);
    let mut receiver = receiver(&place, &ours, "");
    let to = receiver.address();
    let theirs = place.path("other.preset").display().to_string();
    let made = run(&format!("keygen --preset {theirs}"));
    assert_eq!(made.status.code(), Some(0), "{}", said(&made));
    send(&place, &to, &format!("--return none --preset {theirs}"), "");
    let told = next(&mut receiver, "other_key");
    assert!(told["datagrams"].as_u64() >= Some(10), "{told}");
}
