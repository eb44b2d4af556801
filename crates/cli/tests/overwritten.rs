//! No command takes its own input, or a file that is not its own, for its output.

use crate::processes::{Place, run, said};
use std::fs;
use std::os::unix::fs::symlink;

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
    let output = run(command);
    let told = said(&output);
    assert_eq!(output.status.code(), Some(2), "{command}: {told}");
    assert!(
        told.contains(expected) && told.lines().count() == 1,
        "{command}: {told}"
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
