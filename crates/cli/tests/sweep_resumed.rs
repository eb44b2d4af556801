//! A sweep that is killed goes on where it was, and ends in the same bytes as one that is not.
//!
//! Method: the binary from outside, killed (SIGKILL) at moments drawn from a fixed seed, its file
//! cut off at places drawn from it as well, started again with the same command until it is
//! through. The directory is compared, octet by octet, with that of a sweep that nobody disturbed.

use crate::processes::{Place, Running, fulmar, moment, read, run, said, until};
use fulmar_proto::rng::Rng;
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Six points; a run takes a fraction of a millisecond.
const SCENARIO: &str = "\
[run]
runs = 300
[hop]
rate = \"5mbit\"
delay = \"10ms\"
[[flow]]
transport = \"aerotp\"
bytes = \"100kB\"
[[flow]]
transport = \"aerotp\"
bytes = \"50kB\"
start = \"3ms\"
[sweep]
\"hop.loss\" = [\"none\", \"10% burst 3\", \"on-off 30% period 50ms\"]
\"flow.mode, flow.fec_words\" = [[\"reliable\", 0], [\"nack-mack\", 9]]
";
const RUNS: usize = 1800;

fn contents(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(directory).expect("a directory");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    paths
        .map(|path| {
            let name = path.file_name().expect("a name").to_string_lossy();
            (name.into_owned(), read(&path))
        })
        .collect()
}

/// The first line, and the others.
fn lines_of(octets: &[u8]) -> (&[u8], &[u8]) {
    let end = octets.iter().position(|&octet| octet == b'\n');
    octets.split_at(end.expect("a line") + 1)
}

fn place_with(scenario: &str) -> (Place, String) {
    let place = Place::with(1);
    let path = place.path("sweep.toml");
    fs::write(&path, scenario).expect("room");
    let path = path.display().to_string();
    (place, path)
}

#[test]
fn a_sweep_killed_at_random_moments_ends_in_the_same_bytes() {
    const SEED: u64 = 4;
    let (place, scenario) = place_with(SCENARIO);
    let whole = place.path("whole");
    let undisturbed = run(&format!(
        "sim {scenario} --jobs 1 --out {}",
        whole.display()
    ));
    assert!(undisturbed.status.success(), "{}", said(&undisturbed));
    let expected = contents(&whole);
    let names: Vec<&str> = expected.keys().map(String::as_str).collect();
    assert_eq!(names, ["runs.csv", "runs.ndjson"]);
    let lines = |octets: &[u8]| String::from_utf8_lossy(octets).lines().count();
    assert_eq!(lines(&expected["runs.ndjson"]), 1 + RUNS + 6);
    assert_eq!(lines(&expected["runs.csv"]), 1 + RUNS + 6);

    let records = run(&format!("sim {scenario} --json")).stdout;
    let (_, behind_the_head) = lines_of(&expected["runs.ndjson"]);
    assert!(behind_the_head == records, "--json prints the same records");

    let mut rng = Rng::from_seed(SEED).child("kills");
    let (mut in_the_middle, mut cut) = (0, 0);
    for round in 0..3 {
        let out = place.path(&format!("killed-{round}"));
        let records = out.join("runs.ndjson");
        let command = format!("sim {scenario} --jobs 2 --out {}", out.display());
        loop {
            let mut sweep = Running::start(fulmar(&command));
            let length = || fs::metadata(&records).map_or(0, |file| file.len());
            if rng.chance(0.2) {
                // Before it has opened its file, or while it reads it.
                for _ in 0..rng.below(10) {
                    moment();
                }
            } else {
                // Anywhere within the next quarter, however slow the machine is.
                let whole = expected["runs.ndjson"].len() as u64;
                let end = whole.min(length() + rng.below(whole / 4));
                until("records", || length() >= end);
            }
            sweep.signal(Signal::KILL);
            let (status, said) = sweep.end();
            if status.success() {
                break;
            }
            assert_eq!(status.code(), None, "seed {SEED}, round {round}: {said}");
            let length = length();
            in_the_middle += u32::from(length > 0);
            if length > 0 && rng.chance(0.5) {
                // A failing system forgets some of the last octets, mostly half a line.
                let file = fs::OpenOptions::new().write(true).open(&records);
                let kept = length - rng.below(length.min(3000));
                file.and_then(|file| file.set_len(kept)).expect("a file");
                cut += 1;
            }
        }
        let found = contents(&out);
        for (name, octets) in &expected {
            assert!(
                found.get(name) == Some(octets),
                "seed {SEED}, round {round}: {name}"
            );
        }
        assert_eq!(found.len(), expected.len());
    }
    assert!(
        in_the_middle >= 6 && cut >= 3,
        "{in_the_middle} kills, {cut} cuts: raise the work"
    );
}

#[test]
fn a_finished_sweep_is_told_again_and_not_made_again() {
    let (place, scenario) = place_with(&SCENARIO.replace("300", "2"));
    let out = place.path("out");
    let command = format!("sim {scenario} --out {}", out.display());
    let first = run(&command);
    let before = contents(&out);
    let second = run(&command);
    assert_eq!(first.stdout, second.stdout);
    assert!(
        said(&second).contains("12 of 12 runs are in"),
        "{}",
        said(&second)
    );
    assert_eq!(contents(&out), before);
}

#[test]
fn an_interrupted_sweep_keeps_its_runs_and_says_how_to_go_on() {
    let (place, scenario) = place_with(&SCENARIO.replace("300", "100000"));
    let out = place.path("out");
    let mut sweep = Running::start(fulmar(&format!("sim {scenario} --out {}", out.display())));
    let records = out.join("runs.ndjson");
    let length = || fs::metadata(&records).map_or(0, |file| file.len());
    until("some runs", || length() > 20_000);
    sweep.signal(Signal::INT);
    let (status, said) = sweep.end();
    assert_eq!(status.code(), Some(130), "{said}");
    assert!(
        said.contains("of 600000 runs are in") && said.contains("the same command"),
        "{said}"
    );
    assert!(read(&records).ends_with(b"}\n"));
}

#[test]
fn what_belongs_to_another_sweep_is_refused_with_the_field_that_differs() {
    let (place, scenario) = place_with(&SCENARIO.replace("300", "2"));
    let out = place.path("out");
    let records = out.join("runs.ndjson");
    let command = format!("sim {scenario} --out {}", out.display());
    assert!(run(&command).status.success());
    let whole = String::from_utf8(read(&records)).expect("text");
    let refused = |flags: &str, expected: &str| {
        let before = contents(&out);
        let output = run(&format!("{command} {flags}"));
        let told = said(&output);
        assert_eq!(output.status.code(), Some(2), "{told}");
        let one = told.lines().count() == 1 && told.contains("runs.ndjson:");
        assert!(one && told.contains(expected), "{told}");
        assert_eq!(contents(&out), before, "nothing is touched");
    };
    refused("--set hop.delay=20ms", "`digest`: the scenario, a --set");
    refused("--seed 2", "`digest`");
    refused("--runs 3", "`digest`");
    for (from, to, expected) in [
        (
            "\"version\":\"",
            "\"version\":\"0.0.",
            "`version`: these runs are of fulmar 0.0.",
        ),
        (
            "\"build\":\"",
            "\"build\":\"0",
            "`build`: another build of fulmar ",
        ),
        (
            // As a program wrote it that kept no build digest.
            "\"build\":",
            "\"built\":",
            "go on with that program, name another --out, or remove this file",
        ),
        (
            "\"schema\":",
            "\"schema\":9",
            "`version`: these runs are of fulmar",
        ),
        (
            "\"record\":\"sweep\"",
            "\"record\":7",
            "1: `record`: this is not the head of a sweep",
        ),
        (
            "{",
            "my notes\n{",
            "1: `record`: this is not the head of a sweep",
        ),
        (
            "\n",
            "\nnonsense\n",
            "2: `record`: the line is no record of a run; remove it",
        ),
        (
            "\"point\":0,\"run\":0",
            "\"point\":7,\"run\":0",
            "2: `run`: the sweep has no such run",
        ),
        (
            "\"point\":0,\"run\":0",
            "\"point\":0,\"run\":2",
            "2: `run`: the sweep has no such run",
        ),
    ] {
        assert!(whole.contains(from), "{from}");
        fs::write(&records, whole.replacen(from, to, 1)).expect("room");
        refused("", expected);
    }
    fs::write(&records, "a letter without a line feed").expect("room");
    refused("", "1: is not the record of a sweep");
    fs::write(&records, &whole[..40]).expect("room");
    assert!(run(&command).status.success(), "half a head is half a line");
    assert_eq!(String::from_utf8(read(&records)).expect("text"), whole);
}

#[test]
fn a_second_sweep_in_the_same_directory_is_refused_while_the_first_runs() {
    let (place, scenario) = place_with(&SCENARIO.replace("300", "100000"));
    let out = place.path("out");
    let command = format!("sim {scenario} --out {}", out.display());
    let mut first = Running::start(fulmar(&command));
    until("the first", || out.join("runs.ndjson").exists());
    let second = run(&command);
    assert_eq!(second.status.code(), Some(5), "{}", said(&second));
    assert!(
        said(&second).contains("another `fulmar sim` writes to"),
        "{}",
        said(&second)
    );
    first.signal(Signal::KILL);
    assert_eq!(first.code(), None);
}

#[test]
fn a_directory_that_cannot_be_written_is_said_at_once() {
    let (place, scenario) = place_with(SCENARIO);
    let file = place.path("a-file");
    fs::write(&file, "x").expect("room");
    let output = run(&format!("sim {scenario} --out {}/below", file.display()));
    assert_eq!(output.status.code(), Some(5));
    assert!(
        said(&output).contains("--out: cannot make the directory"),
        "{}",
        said(&output)
    );
}

#[test]
fn a_table_goes_on_from_parts_that_were_cut_otherwise_and_leaves_none_behind() {
    let (place, scenario) = place_with(&SCENARIO.replace("300", "5"));
    let undisturbed = place.path("undisturbed.parquet");
    let whole = run(&format!(
        "sim {scenario} --jobs 1 --out {}",
        undisturbed.display()
    ));
    assert!(whole.status.success(), "{}", said(&whole));
    let out = place.path("stopped.parquet");
    let parts = place.path("stopped.parquet.parts");
    fs::create_dir(&parts).expect("room");
    // A shard is a part; the sweep itself cuts into others. The third has runs of the first.
    for (shard, name) in [("2/3", "one"), ("7/8", "other"), ("3/6", "doubled")] {
        let part = parts.join(format!("{name}.parquet"));
        let made = run(&format!(
            "sim {scenario} --shard {shard} --out {}",
            part.display()
        ));
        assert!(made.status.success(), "{}", said(&made));
    }
    fs::write(parts.join("half.parquet.new"), "PAR1").expect("room");
    let resumed = run(&format!("sim {scenario} --jobs 2 --out {}", out.display()));
    assert!(resumed.status.success(), "{}", said(&resumed));
    let told = said(&resumed);
    assert!(told.contains("14 of 30 runs are in"), "{told}");
    assert!(read(&out) == read(&undisturbed), "the same octets");
    assert!(!parts.exists(), "no part is left");
}
