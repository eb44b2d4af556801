//! No command takes its own input, or a file that is not its own, for its output.

use crate::gateways::nobody;
use crate::processes::{Place, fulmar, run, said};
use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

const SCENARIO: &str = "\
[hop]
rate = \"5mbit\"
delay = \"1ms\"
[flow]
transport = \"udp\"
bytes = \"10kB\"
";

fn place_with(name: &str, text: &str) -> (Place, String) {
    let place = Place::with(0);
    let path = place.path(name);
    fs::write(&path, text).expect("room");
    let path = path.display().to_string();
    (place, path)
}

fn refused(command: &str, expected: &str) {
    refused_of(fulmar(command), expected);
}

fn refused_of(mut command: Command, expected: &str) {
    let output = command.output().expect("the binary starts");
    let told = said(&output);
    assert_eq!(output.status.code(), Some(2), "{command:?}: {told}");
    assert!(
        told.contains(expected) && told.lines().count() == 1,
        "{command:?}: {told}"
    );
}

#[test]
fn a_recording_is_not_replaced_by_the_trace_made_of_it() {
    let table = "lost\n0\n1\n0\n0\n";
    let (place, path) = place_with("losses.csv", table);
    let other = place.path("other.csv");
    symlink(&path, &other).expect("room");
    for trace in [path.clone(), other.display().to_string()] {
        refused(&format!("fit {path} --trace {trace}"), "is the input");
    }
    assert_eq!(fs::read_to_string(&path).expect("it is there"), table);
    // What is not there yet, or is another file, is written.
    let new = place.path("new.csv").display().to_string();
    for _ in 0..2 {
        assert!(run(&format!("fit {path} --trace {new}")).status.success());
    }
    assert_eq!(fs::read_to_string(&new).expect("it is there"), table);
}

#[test]
fn a_former_trace_is_not_kept_in_the_place_of_what_is_sent() {
    let (place, file) = place_with("a.jsonl.1", "mine");
    let trace = place.path("a.jsonl");
    let command = format!("send {file} 127.0.0.1:1 --trace {}", trace.display());
    for former in ["of before", ""] {
        fs::write(&trace, former).expect("room");
        refused(&command, "name another file");
        assert_eq!(fs::read_to_string(&file).expect("it is there"), "mine");
    }
}

#[test]
fn a_trace_that_is_replayed_is_not_replaced_by_a_capture() {
    let (place, file) = place_with("a.1", "lost\n0\n1\n");
    // Refused in any case, since it would overwrite its own input.
    let at = nobody();
    for capture in [&file, &place.path("a").display().to_string()] {
        let mut command = fulmar(&format!(
            "emulate --listen {at} --to {at} --capture {capture} --loss"
        ));
        command.arg(format!("trace {file} loop"));
        refused_of(command, "is the input");
    }
}

#[test]
fn a_configuration_is_not_replaced_by_a_recording() {
    let text = "[gateway]\n[security]\nkind = \"none\"\n[[peer]]\nname = \"b\"\nrate = \"1mbit\"\n\
                [egress]\nallow = [\"127.0.0.1:1\"]\n";
    let (place, file) = place_with("a.toml.1", text);
    let former = place.path("a.toml").display().to_string();
    for flag in ["--capture", "--trace"] {
        for recording in [&file, &former] {
            let command = format!("gateway -c {file} --check {flag} {recording}");
            refused(&command, "name another file");
        }
    }
    assert_eq!(fs::read_to_string(&file).expect("it is there"), text);
}

#[test]
fn a_key_is_not_replaced_by_a_recording_of_its_gateway() {
    let place = Place::with(0);
    let key = place.path("own.key.1").display().to_string();
    let made = run(&format!("keygen {key}"));
    assert!(made.status.success());
    // Whose public key it is does not matter here.
    let public = String::from_utf8(made.stdout).expect("base64");
    let public = public.trim();
    let password = place.path("password").display().to_string();
    fs::write(&password, "secret").expect("room");
    let config = place.path("a.toml").display().to_string();
    let text = format!(
        "[gateway]\n[security]\nkind = \"noise\"\nprivate_key_file = \"{key}\"\n[[peer]]\nname = \"b\"\n\
         rate = \"1mbit\"\npublic_key = \"{public}\"\n[[socks]]\nlisten = \"127.0.0.1:0\"\nuser = \"u\"\n\
         password_file = \"{password}\"\n"
    );
    fs::write(&config, text).expect("room");
    let before = fs::read(&key).expect("it is there");
    let former = place.path("own.key").display().to_string();
    for flag in ["--capture", "--trace"] {
        for recording in [&key, &former, &password] {
            let command = format!("gateway -c {config} --check {flag} {recording}");
            refused(&command, "name another file");
        }
    }
    assert_eq!(fs::read(&key).expect("it is there"), before);
    assert_eq!(fs::read(&password).expect("it is there"), b"secret");
}

#[test]
fn a_trace_that_a_scenario_replays_is_not_replaced() {
    let (place, path) = place_with("mine.toml", &format!("{SCENARIO}[hop.forward]\n"));
    let losses = place.path("losses.csv");
    fs::write(&losses, "lost\n0\n1\n").expect("room");
    let text = SCENARIO.replace("[flow]", "loss = \"trace losses.csv loop\"\n[flow]");
    fs::write(&path, text).expect("room");
    for flag in ["--csv", "--capture", "--trace"] {
        let command = format!("sim {path} {flag} {}", losses.display());
        refused(&command, "is the input");
    }
    assert_eq!(
        fs::read_to_string(&losses).expect("it is there"),
        "lost\n0\n1\n"
    );
}

#[test]
fn a_scenario_is_not_replaced_by_its_table() {
    let (_place, path) = place_with("mine.toml", SCENARIO);
    refused(&format!("sim {path} --csv {path}"), "is the input");
    assert_eq!(fs::read_to_string(&path).expect("it is there"), SCENARIO);
}

#[test]
fn a_directory_with_a_table_of_somebody_else_is_no_place_for_a_sweep() {
    let (place, path) = place_with("mine.toml", SCENARIO);
    let out = place.path("out");
    fs::create_dir(&out).expect("room");
    fs::write(out.join("runs.csv"), "mine").expect("room");
    let command = format!("sim {path} --out {}", out.display());
    refused(&command, "name another directory");
    assert_eq!(
        fs::read_to_string(out.join("runs.csv")).expect("it is there"),
        "mine"
    );
    fs::remove_file(out.join("runs.csv")).expect("it is there");
    assert!(run(&command).status.success());
}

#[test]
fn records_that_are_no_regular_file_are_not_read() {
    let (place, path) = place_with("mine.toml", SCENARIO);
    let out = place.path("out");
    fs::create_dir(&out).expect("room");
    // It never ends, and has no line feed.
    symlink("/dev/zero", out.join("runs.ndjson")).expect("room");
    refused(
        &format!("sim {path} --out {}", out.display()),
        "is not a regular file",
    );
}
