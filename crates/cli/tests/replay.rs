//! `fulmar replay` from outside: the link of a capture, and other modes over it.

use crate::perf::{measure, port, server};
use crate::processes::{Place, Running, fulmar, run, said};
use fulmar_channel::LossModel;
use serde_json::Value;
use std::fs;

/// A link whose rate halves, with an outage and loss.
const LINK: &str = "[run]\nduration = \"60s\"\n\
    [hop]\nrate = \"8mbit\"\ndelay = \"20ms\"\nloss = \"5%\"\noutages = \"2s+500ms\"\n\
    [[change]]\nat = \"4s\"\nrate = \"4mbit\"\n";
const FLOW: &str =
    "[flow]\ntransport = \"aerotp\"\nmode = \"reliable\"\ntraffic = \"bulk\"\nbytes = \"4MB\"\n";

fn records(output: &std::process::Output) -> Vec<Value> {
    assert!(output.status.success(), "{}", said(output));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let record = |line: &str| serde_json::from_str(line).expect("a record");
    text.lines().map(record).collect()
}

fn aggregates(output: &std::process::Output) -> Vec<Value> {
    let mut records = records(output);
    records.retain(|record| record["record"] == "aggregate");
    records
}

#[test]
fn the_link_of_a_capture_is_a_scenario_and_other_modes_run_over_it_as_over_the_link() {
    let place = Place::with(1);
    let (scenario, capture) = (place.path("link.toml"), place.path("link.pcapng"));
    fs::write(&scenario, format!("{LINK}{FLOW}")).expect("room");
    let (scenario, capture) = (scenario.display(), capture.display());
    let recorded = run(&format!(
        "sim {scenario} --runs 1 --seed 3 --capture {capture}"
    ));
    assert!(recorded.status.success(), "{}", said(&recorded));

    let told = run(&format!("replay {capture}"));
    assert!(told.status.success(), "{}", said(&told));
    let text = String::from_utf8_lossy(&told.stdout).into_owned();
    for expected in ["[[hop]]", "outages = \"", "[[change]]", "mode = \"auto\""] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    let as_perf = run(&format!("replay {capture} --as-perf=8mbit"));
    let as_perf = String::from_utf8_lossy(&as_perf.stdout).into_owned();
    let sends = "send_rate = \"7957333bit\"";
    for expected in [
        "mode = \"reliable\"",
        "mtu = \"1492B\"",
        sends,
        "[[hop]]\nframing = \"8B\"",
    ] {
        assert!(as_perf.contains(expected), "{expected}: {as_perf}");
    }
    let replayed = place.path("replayed.toml");
    fs::write(&replayed, &text).expect("room");

    let words = "--runs 4 --seed 50 --json";
    let thought = aggregates(&run(&format!(
        "replay {capture} --mode nack-mack,reliable {words}"
    )));
    let happened = aggregates(&run(&format!(
        "sim {scenario} --set sweep.flow.mode=[nack-mack,reliable] {words}"
    )));
    assert_eq!((thought.len(), happened.len()), (2, 2));
    for (thought, happened) in thought.iter().zip(&happened) {
        let [thought, happened] =
            [thought, happened].map(|record| record["goodput_bps"]["mean"].as_f64());
        let (thought, happened) = (thought.expect("a mean"), happened.expect("a mean"));
        assert!(
            (thought / happened - 1.0).abs() < 0.05,
            "{thought} for {happened}"
        );
    }
    // The scenario that is printed is the one that is run.
    let by_hand = aggregates(&run(&format!(
        "sim {} --set flow.mode=nack-mack {words}",
        replayed.display()
    )));
    assert_eq!(by_hand[0]["goodput_bps"], thought[0]["goodput_bps"]);
}

#[test]
fn auto_stands_beside_the_fixed_settings_over_a_recorded_link() {
    let place = Place::with(1);
    let (scenario, capture) = (place.path("link.toml"), place.path("link.pcapng"));
    let flow = FLOW.replace("4MB", "300kB");
    fs::write(
        &scenario,
        format!("[hop]\nrate = \"2mbit\"\ndelay = \"10ms\"\nloss = \"10%\"\n{flow}"),
    )
    .expect("room");
    let (scenario, capture) = (scenario.display(), capture.display());
    assert!(
        run(&format!("sim {scenario} --runs 1 --capture {capture}"))
            .status
            .success()
    );
    let messages = "--set flow.traffic=messages --set flow.size=200B --set flow.interval=20ms \
                    --set flow.deadline=150ms --set flow.bytes=20kB";
    let compared = records(&run(&format!(
        "replay {capture} --auto-vs-fixed {messages} --json"
    )));
    assert_eq!(compared[0]["record"], "auto-vs-fixed");
    assert!(
        compared[0]["of_best"].as_f64().expect("a share") > 0.5,
        "{}",
        compared[0]
    );
}

#[test]
fn each_row_names_the_mode_and_the_seeds_that_it_was_run_with() {
    let place = Place::with(1);
    let (scenario, capture) = (place.path("link.toml"), place.path("link.pcapng"));
    fs::write(
        &scenario,
        format!("[hop]\nrate = \"2mbit\"\n{}", FLOW.replace("4MB", "30kB")),
    )
    .expect("room");
    let (scenario, capture) = (scenario.display(), capture.display());
    let recorded = run(&format!("sim {scenario} --runs 1 --capture {capture}"));
    assert!(recorded.status.success(), "{}", said(&recorded));
    let table = |flags: &str| {
        let output = run(&format!("replay {capture} {flags}"));
        assert!(output.status.success(), "{}", said(&output));
        String::from_utf8(output.stdout).expect("text")
    };
    for (flags, rows) in [
        ("--mode reliable --runs 1 --seed 7", vec![("reliable", "7")]),
        (
            "--mode reliable,nack-mack --runs 3 --seed 50",
            vec![("reliable", "50 to 52"), ("nack-mack", "50 to 52")],
        ),
    ] {
        let text = table(flags);
        for (mode, seeds) in rows {
            let cells = |line: &str| {
                let cells = line.split(['│', '┆']).map(str::trim).map(str::to_owned);
                cells.collect::<Vec<_>>()
            };
            let mut rows = text.lines().map(cells);
            let is_there =
                rows.any(|row| row.contains(&mode.to_owned()) && row.contains(&seeds.to_owned()));
            assert!(is_there, "{mode}, {seeds}: {text}");
        }
    }
    let beside = table("--auto-vs-fixed --runs 2 --seed 9 --set flow.bytes=10kB");
    assert!(
        beside.contains("each setting with seeds 9 to 10"),
        "{beside}"
    );
}

#[test]
fn what_cannot_be_replayed_says_what_to_do() {
    let place = Place::with(1);
    let table = place.path("losses.csv");
    fs::write(&table, "lost\n0\n").expect("room");
    for (arguments, expected) in [
        (
            format!("replay {}", table.display()),
            "is no capture, pcap or pcapng",
        ),
        (
            "replay absent.pcapng".to_owned(),
            "cannot read absent.pcapng",
        ),
    ] {
        let output = run(&arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments}");
        assert!(said(&output).contains(expected), "{}", said(&output));
    }
    let (scenario, capture) = (place.path("link.toml"), place.path("link.pcapng"));
    fs::write(
        &scenario,
        format!("[hop]\nrate = \"2mbit\"\n{}", FLOW.replace("4MB", "30kB")),
    )
    .expect("room");
    let (scenario, capture) = (scenario.display(), capture.display());
    assert!(
        run(&format!("sim {scenario} --runs 1 --capture {capture}"))
            .status
            .success()
    );
    for (flags, expected) in [
        ("--as-perf --auto-vs-fixed", "cannot be used with"),
        (
            "--runs 3",
            "--runs: nothing is run; say which modes by --mode, or --auto-vs-fixed",
        ),
        ("--hop 1", "has no hop 1"),
        ("--mode relaible", "`relaible` is not known"),
    ] {
        let output = run(&format!("replay {capture} {flags}"));
        assert_eq!(output.status.code(), Some(2), "{flags}");
        assert!(
            said(&output).contains(expected),
            "{flags}: {}",
            said(&output)
        );
    }
}

/// Delay in milliseconds and loss in hundredths of the way there, for each time from which they hold.
fn ways_there(text: &str) -> Vec<(f64, f64)> {
    let lines = text.lines().filter(|line| line.starts_with("forward = "));
    let mut now = (0.0, 0.0);
    let way = |line: &str| {
        let value = |key: &str| {
            let (_, rest) = line.split_once(&format!("{key} = \""))?;
            rest.split('"').next()
        };
        if let Some(delay) = value("delay").and_then(|text| text.strip_suffix("us")) {
            now.0 = delay.parse::<f64>().expect("a number") / 1e3;
        }
        if let Some(loss) = value("loss") {
            let model: LossModel = loss.parse().expect("a loss");
            now.1 = 100.0 * model.mean_loss().value();
        }
        now
    };
    lines.map(way).collect()
}

#[test]
fn the_captures_of_a_test_of_perf_show_the_path_between_its_ends() {
    let place = Place::with(1);
    let (here, there) = (place.path("here.pcapng"), place.path("there.pcapng"));
    let (mut server, address) = server(&format!("-1 --capture {}", there.display()));
    let flags = "--rate 8mbit --delay 10ms --loss 10% --seed 1";
    let mut command = fulmar(&format!(
        "emulate --listen 127.0.0.1:0 --to {address} {flags}"
    ));
    command.args(["--change", "1500ms loss=none delay=40ms"]);
    let mut link = Running::start(command);
    let port = port(&link.address());
    let test = "-u -b 2mbit -l 500 -t 3s --rate 8mbit";
    measure(&port, &format!("{test} --capture {}", here.display()));
    server.records();
    let told = run(&format!("replay {} {}", here.display(), there.display()));
    assert!(told.status.success(), "{}", said(&told));
    let text = String::from_utf8_lossy(&told.stdout).into_owned();
    let ways = ways_there(&text);
    let ((delay, loss), (delay_after, loss_after)) = (ways[0], ways[ways.len() - 1]);
    // Each capture reads the time of day for itself, at its start, and a busy machine may tell it some milliseconds apart: that is in
    // both delays. It may also pass a packet on 20 ms late.
    assert!((15.0..60.0).contains(&(delay_after - delay)), "{text}");
    assert!((25.0..65.0).contains(&delay_after), "{text}");
    // Of some 600 packets: 5 standard errors of 10 % are 6.
    assert!((4.0..16.0).contains(&loss) && loss_after < 1.0, "{text}");
}
