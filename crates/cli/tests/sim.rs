//! `fulmar sim` from outside: its output, and its exit.

use assert_cmd::Command;
use std::path::PathBuf;

fn scenario(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../scenarios")
        .join(name)
}

fn sim(arguments: &[&str]) -> Command {
    let mut command = Command::cargo_bin("fulmar").expect("the binary of this package");
    command.arg("sim").args(arguments);
    command
}

fn json(arguments: &[&str]) -> Vec<serde_json::Value> {
    let output = sim(arguments)
        .arg("--json")
        .arg(scenario("airborne.toml"))
        .assert()
        .success()
        .get_output()
        .stdout
        .clone();
    String::from_utf8(output)
        .expect("text")
        .lines()
        .map(|line| serde_json::from_str(line).expect("one JSON object a line"))
        .collect()
}

#[test]
fn json_is_one_object_per_run_and_one_aggregate() {
    let flags = "--set hop.ber=1e-4 --set flow.mode=nack-mack --runs 25 --seed 1";
    let records = json(&flags.split(' ').collect::<Vec<_>>());
    assert_eq!(records.len(), 26);
    for (seed, run) in (1..).zip(&records[..25]) {
        assert_eq!(run["record"], "run");
        assert_eq!(run["seed"], seed);
        assert_eq!(run["delivered_bytes"], 1_000_960);
        assert_eq!(run["completed"], true);
        assert_eq!(run["parameters"]["hop.ber"], "1e-4");
    }
    let aggregate = &records[25];
    assert_eq!(aggregate["record"], "aggregate");
    for metric in [
        "goodput_bps",
        "delay_mean_s",
        "delay_p99_s",
        "overhead_bytes",
        "efficiency",
    ] {
        assert_eq!(aggregate[metric]["n"], 25, "{metric}");
        assert!(aggregate[metric]["ci95"].is_number(), "{metric}");
    }
    assert!(aggregate["wire_bytes"]["retransmission"]["mean"].is_number());
    assert!(aggregate["wire_loss"]["network_header"]["mean"].is_number());
}

#[test]
fn a_wrong_scenario_is_one_line_and_code_2() {
    for (set, expected) in [
        ("hop.bre=1e-4", "did you mean `ber`?"),
        ("hop.rate=5", "has no unit"),
        ("nonsense", "write it as path=value"),
    ] {
        let assert = sim(&["--set", set])
            .arg(scenario("airborne.toml"))
            .assert()
            .code(2);
        let told = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
        assert!(
            told.contains(expected) && told.lines().count() == 1,
            "{told}"
        );
    }
    sim(&["/no/such/file.toml"]).assert().code(2);
}

#[test]
fn csv_has_a_header_a_row_for_each_run_and_one_for_the_point() {
    let flags = "--csv - --runs 3 --set sweep.hop.ber=[0,1e-5]";
    let output = sim(&flags.split(' ').collect::<Vec<_>>())
        .arg(scenario("airborne.toml"))
        .assert()
        .success()
        .get_output()
        .stdout
        .clone();
    let text = String::from_utf8(output).expect("text");
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(rows.len(), 1 + 2 * (3 + 1));
    assert!(rows.iter().all(|row| row.len() == rows[0].len()), "{text}");
    assert_eq!(rows[0][8], "hop.ber");
    assert_eq!(rows[8][0], "aggregate");
}

#[test]
fn rows_in_a_file_are_announced_on_stderr() {
    let folder = tempfile::tempdir().expect("a directory");
    let file = folder.path().join("rows.csv");
    let file = file.to_str().expect("text");
    let assert = sim(&["--runs", "2", "--csv", file])
        .arg(scenario("airborne.toml"))
        .assert()
        .success();
    let told = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
    assert_eq!(told, format!("fulmar: 3 rows written to {file}\n"));
    assert_eq!(
        std::fs::read_to_string(file)
            .expect("it is there")
            .lines()
            .count(),
        4
    );
}

#[test]
fn a_swarm_is_one_json_object_on_request() {
    let assert = sim(&["--swarm", "20", "--seed", "5", "--json"])
        .assert()
        .success();
    let record: serde_json::Value =
        serde_json::from_slice(&assert.get_output().stdout).expect("one object");
    assert_eq!(record["record"], "swarm");
    assert_eq!(
        (&record["sessions"], &record["seed"]),
        (&20.into(), &5.into())
    );
    assert_eq!(record["incomplete"], false);
    assert_eq!(record["failures"], serde_json::json!([]));
    assert!(record["delivered_bytes"].as_u64() > Some(0));
}

#[test]
fn a_swarm_says_what_it_did() {
    let assert = sim(&["--swarm", "20", "--seed", "1"]).assert().success();
    let told = String::from_utf8_lossy(&assert.get_output().stdout).into_owned();
    assert!(told.starts_with("20 sessions, "), "{told}");
    assert!(told.contains(" 0 sessions broke a promise"), "{told}");
}

#[test]
fn a_graph_has_a_table_of_flows_and_one_of_hops_and_a_picture() {
    let graph = scenario("two-ways-round.toml");
    let output = sim(&["--set", "flow.bytes=20kB"]).arg(&graph).assert();
    let output = output.success().get_output().stdout.clone();
    let table = String::from_utf8(output).expect("text");
    let rows = |from: &str, to: &str| {
        let ends = |line: &&str| {
            let cells: Vec<&str> = line.split(['│', '┆']).map(str::trim).collect();
            cells.get(2) == Some(&from) && cells.get(3) == Some(&to)
        };
        table.lines().filter(ends).count()
    };
    assert_eq!(rows("aircraft", "ground"), 2, "two flows\n{table}");
    // Nothing came back on any hop.
    let ways = [
        ("aircraft", "near"),
        ("near", "ground"),
        ("aircraft", "far"),
        ("far", "ground"),
    ];
    for (from, to) in ways {
        assert_eq!(rows(from, to), 1, "{from} {to}\n{table}");
        assert_eq!(rows(to, from), 0, "{to} {from}\n{table}");
    }
    let directory = tempfile::tempdir().expect("a directory");
    let picture = directory.path().join("graph.svg");
    let assert = sim(&["--draw"]).arg(&picture).arg(&graph).assert();
    assert!(
        assert.success().get_output().stdout.is_empty(),
        "nothing was run"
    );
    let picture = std::fs::read_to_string(picture).expect("drawn");
    for text in [
        "aircraft",
        "hop-2",
        "2Mbit/s 40ms",
        "flow 1: aircraft → ground, udp, by hop-2, hop-3",
    ] {
        assert!(picture.contains(text), "{text}\n{picture}");
    }
    assert_eq!(picture.matches("<path").count(), 4);
    assert_eq!(picture.matches("<rect").count(), 4);
}

#[test]
fn a_flow_s_packets_are_drawn_with_their_numbers_and_fates() {
    let directory = tempfile::tempdir().expect("a directory");
    let figure = directory.path().join("flow.svg");
    let airborne = scenario("airborne.toml");
    let lossy = [
        "--runs",
        "1",
        "--set",
        "hop.loss=10%",
        "--set",
        "hop.ber=2e-5",
    ];
    let assert = sim(&lossy)
        .arg(&airborne)
        .arg("--flow-figure")
        .arg(&figure)
        .assert();
    let output = assert.success().get_output().clone();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(told.contains("100 packets are drawn in"), "{told}");
    assert!(
        told.contains("--flow-from and --flow-for choose others"),
        "{told}"
    );
    let picture = std::fs::read_to_string(&figure).expect("drawn");
    for text in [
        ">data 2 <tspan",
        ">again 1 <tspan",
        ">NACK 1 <tspan",
        ">ASYNACK <tspan",
        "lost (loss)",
        "bits inverted",
        "class=\"damaged\"",
        "packets more</text>",
    ] {
        assert!(picture.contains(text), "{text}\n{picture}");
    }
    assert_eq!(picture.matches("<g><title>").count(), 100);

    let part = ["--flow-from", "1s", "--flow-for", "50ms"];
    let assert = sim(&lossy)
        .args(part)
        .arg(&airborne)
        .arg("--flow-figure")
        .arg(&figure)
        .assert();
    assert.success();
    let part = std::fs::read_to_string(&figure).expect("drawn");
    let drawn = part.matches("<g><title>").count();
    assert!(
        (20..60).contains(&drawn),
        "19 writes and their answers: {drawn}"
    );
    assert!(!part.contains("more</text>"));

    for (wrong, reason) in [
        (
            &["--flow", "1"][..],
            "--flow 1: there is no such flow; the last is 0",
        ),
        (&["--runs", "2"], "--flow-figure show one run"),
    ] {
        let run = if wrong[0] == "--runs" {
            &[][..]
        } else {
            &["--runs", "1"]
        };
        let assert = sim(run)
            .args(wrong)
            .arg(&airborne)
            .arg("--flow-figure")
            .arg(&figure)
            .assert();
        let output = assert.code(2).get_output().clone();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(told.contains(reason), "{told}");
    }
}
