//! Flags and `--set` together: values that contradict each other or would be ignored are refused, and short
//! forms can be refined.

use crate::processes::{run, said};

/// `fulmar sim` on a scenario of this repository, with further arguments.
fn sim(scenario: &str, flags: &str) -> std::process::Output {
    let scenarios = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios");
    run(&format!("sim {scenarios}/{scenario} {flags}"))
}

#[test]
fn what_would_be_ignored_is_refused() {
    for (flags, told) in [
        (
            "--set hop.ber=0 --set hop.ber=1e-4",
            "gives `hop.ber` already",
        ),
        (
            "--runs 2 --set run.runs=3",
            "--runs gives `run.runs` already",
        ),
        (
            "--seed 2 --set run.seed=3",
            "--seed gives `run.seed` already",
        ),
        ("--links", "cannot be used with"),
        ("--set sweep.hop.ber=[0", "half a list"),
        ("--set sweep.hop.loss=[1%,0.01]", "several notations"),
        ("--set hop.rate=1e400bit", "out of range"),
        (
            "--set flow.transport=tcp --set flow.mode=relyable",
            "`relyable` is not known",
        ),
    ] {
        let output = sim("airborne.toml", flags);
        assert_eq!(output.status.code(), Some(2), "{flags}: {}", said(&output));
        assert!(said(&output).contains(told), "{flags}: {}", said(&output));
    }
}

#[test]
fn a_link_layers_settings_can_be_set_where_the_file_has_its_name() {
    let output = sim(
        "slacp.toml",
        "--runs 1 --set flow.bytes=10kB --set hop.link.persistence=9",
    );
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(said(&output).contains("from 0 to 4"), "{}", said(&output));
    let output = sim(
        "slacp.toml",
        "--runs 1 --set flow.bytes=10kB --set hop.link.persistence=2",
    );
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
}

#[test]
fn no_link_layer_can_be_one_value_of_a_sweep() {
    let flags = "--json --runs 1 --set sweep.hop.link=[none,plain] --set flow.bytes=10kB";
    let output = sim("airborne.toml", flags);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let text = String::from_utf8(output.stdout).expect("text");
    let records = text
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).expect("a record"));
    let runs: Vec<_> = records.filter(|record| record["record"] == "run").collect();
    assert_eq!(runs.len(), 2);
    assert!(runs[0].get("link").is_none_or(serde_json::Value::is_null));
    assert!(runs[1]["link"].is_object(), "{}", runs[1]);
}
