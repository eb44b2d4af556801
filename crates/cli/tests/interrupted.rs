//! A long computation that is interrupted reports what was finished until then.
//!
//! Method: the binary from outside, with far more work than it can do before the signal comes.

use crate::processes::{Place, Running, fulmar, read, until};
use rustix::process::Signal;

/// A scenario whose runs take well under a millisecond of processor time each.
const SHORT: &str = "\
[hop]
rate = \"5mbit\"
[flow]
transport = \"aerotp\"
bytes = \"5kB\"
";

/// `fulmar sim` with a million runs, after it had the processor for long enough to finish some.
fn long_simulation(place: &Place, flags: &str) -> Running {
    std::fs::write(place.path("short.toml"), SHORT).expect("room");
    let scenario = place.path("short.toml").display().to_string();
    let running = Running::start(fulmar(&format!("sim {scenario} --runs 1000000 {flags}")));
    until("half a second of processor time", || {
        running.processor_ticks() >= 50
    });
    running
}

#[test]
fn an_interrupted_simulation_prints_its_finished_runs_and_an_incomplete_aggregate() {
    let place = Place::with(1);
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let mut simulation = long_simulation(&place, "--json");
        simulation.signal(signal);
        let records = simulation.records();
        let (aggregate, runs) = records.split_last().expect("runs were finished");
        assert!(runs.iter().all(|run| run["end_reason"] == "completed"));
        assert_eq!(aggregate["n"], runs.len());
        assert_eq!(aggregate["incomplete"], true);
        let (status, said) = simulation.end();
        assert_eq!(status.code(), Some(code), "{said}");
        let told = format!("interrupted; {} of 1000000 runs were over", runs.len());
        assert!(said.contains(&told), "{said}");
    }
}

#[test]
fn an_interrupted_simulation_prints_the_table_of_its_finished_runs() {
    let place = Place::with(1);
    let mut simulation = long_simulation(&place, "");
    simulation.signal(Signal::INT);
    let (status, said) = simulation.end();
    assert_eq!(status.code(), Some(130), "{said}");
    let (_, told) = said.split_once("interrupted; ").expect("what was over");
    let (over, _) = told.split_once(" of 1000000 runs were over").expect(told);
    let table = simulation.rest();
    let n = format!("{over} of 1000000");
    assert!(over != "0" && table.contains(&n), "{n}: {table}");
    assert!(table.contains("means with 95 %"), "{table}");
}

#[test]
fn a_simulation_that_is_interrupted_in_its_only_run_says_that_nothing_was_over() {
    let place = Place::with(1);
    let scenario = place.path("long.toml");
    let long = SHORT
        .replace("5kB", "100000MB")
        .replace("[hop]", "[run]\nduration = \"10000000s\"\n[hop]");
    std::fs::write(&scenario, long).expect("room");
    let command = format!("sim {} --runs 1", scenario.display());
    let mut simulation = Running::start(fulmar(&command));
    until("some processor time", || simulation.processor_ticks() >= 20);
    simulation.signal(Signal::INT);
    let (status, said) = simulation.end();
    assert_eq!(status.code(), Some(130), "{said}");
    assert!(
        said.contains("interrupted; none of 1 runs was over"),
        "{said}"
    );
    assert_eq!(simulation.rest(), "", "a table of nothing");
}

#[test]
fn an_interrupted_simulation_writes_the_finished_rows_to_its_csv_file() {
    let place = Place::with(1);
    let file = place.path("runs.csv");
    let mut simulation = long_simulation(&place, &format!("--csv {}", file.display()));
    simulation.signal(Signal::INT);
    assert_eq!(simulation.code(), Some(130));
    let text = String::from_utf8(read(&file)).expect("text");
    let rows: Vec<&str> = text.lines().collect();
    assert!(rows.len() > 2, "{text}");
    let last: Vec<&str> = rows[rows.len() - 1].split(',').collect();
    assert_eq!((last[0], last[6]), ("aggregate", "incomplete"));
    assert_eq!(last[5], (rows.len() - 2).to_string());
}

const FINISHED: [&str; 4] = ["plain-udp", "datagram", "unreliable", "quasi-reliable"];

#[test]
fn an_interrupted_demonstration_keeps_the_rows_that_were_finished() {
    // 1.6 s at 5 mbit: the fifth mode is under way for that long, when four are finished.
    let place = Place::with(1_000_000);
    let (file, out) = (place.file(), place.path("out"));
    let flags = format!(
        "--modes {},reliable --at-once {} --file {file} --out {}",
        FINISHED.join(","),
        FINISHED.len(),
        out.display()
    );
    let mut demo = Running::start(fulmar(&format!("demo {flags} --json")));
    until("the fifth mode", || out.join("reliable-clean").exists());
    demo.signal(Signal::INT);
    let rows = demo.records();
    let names: Vec<(&str, &str)> = rows
        .iter()
        .filter_map(|row| row["mode"].as_str().zip(row["link"].as_str()))
        .collect();
    let expected = ["clean", "lossy"].map(|link| FINISHED.map(|mode| (mode, link)));
    assert_eq!(names, expected.concat());
    let (status, said) = demo.end();
    assert_eq!(status.code(), Some(130), "{said}");
    let written: Vec<serde_json::Value> =
        serde_json::from_slice(&read(&out.join("result.json"))).expect("JSON");
    assert_eq!(written, rows);
}

#[test]
fn a_demonstration_that_finished_nothing_prints_no_table_and_leaves_an_earlier_result() {
    let place = Place::with(1_000_000);
    let (file, out) = (place.file(), place.path("out"));
    std::fs::create_dir(&out).expect("room");
    std::fs::write(out.join("result.json"), "earlier").expect("room");
    let flags = format!("--modes reliable --file {file} --out {}", out.display());
    let mut demo = Running::start(fulmar(&format!("demo {flags}")));
    until("the mode", || out.join("reliable-clean").exists());
    demo.signal(Signal::INT);
    let (status, said) = demo.end();
    assert_eq!(status.code(), Some(130), "{said}");
    assert!(said.contains("interrupted; no row was finished"), "{said}");
    assert!(!said.contains("written to"), "{said}");
    assert_eq!(demo.rest(), "", "a table of nothing");
    assert_eq!(read(&out.join("result.json")), b"earlier");
}

#[test]
fn two_demonstrations_in_one_directory_do_not_break_each_other() {
    let place = Place::with(1_000_000);
    let (file, out) = (place.file(), place.path("out"));
    let flags = format!("--modes reliable --file {file} --out {}", out.display());
    let mut first = Running::start(fulmar(&format!("demo {flags} --json")));
    until("the first", || out.join("reliable-clean").exists());
    let mut second = Running::start(fulmar(&format!("demo {flags} --json")));
    let (status, said) = second.end();
    assert_eq!(status.code(), Some(5), "{said}");
    assert!(
        said.contains("another `fulmar demo`") && said.contains("--out"),
        "{said}"
    );
    assert_eq!(first.code(), Some(0));
}

#[test]
fn an_interrupted_swarm_says_how_many_sessions_of_how_many_were_over() {
    let mut swarm = Running::start(fulmar("sim --swarm 1000000"));
    until("some processor time", || swarm.processor_ticks() >= 50);
    swarm.signal(Signal::INT);
    let (status, said) = swarm.end();
    assert_eq!(status.code(), Some(130), "{said}");
    assert!(said.contains("of 1000000 sessions were over"), "{said}");
}
