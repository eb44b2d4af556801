//! Event traces of gateways: every line is as the guide says, and their sums are the counters.
//!
//! Method: gateways as processes over an emulated lossy link; their traces read line by line and held
//! against the table of docs/guide/captures.md and against `/status`.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use crate::gateways::{Pair, client, echo, exchange, server, status_at};
use crate::processes::{Running, fulmar, octets, run, said, until};
use fulmar_net::clock::Clock;
use fulmar_proto::units::Duration;
use rustix::process::Signal;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

const GUIDE: &str = include_str!("../../../docs/guide/captures.md");
/// The time in which the peer tells what arrived: it does so once a second.
const TOLD_WITHIN: Duration = Duration::from_millis(1_500);
const LINK: &str = "--rate 50mbit --delay 5ms --loss 5% --seed 3";

/// The fields that each event has, and those that it may have besides, as the guide has them: before and behind a semicolon.
fn schema() -> BTreeMap<&'static str, [BTreeSet<&'static str>; 2]> {
    let table = GUIDE.split("<!-- events -->").nth(1).unwrap();
    let rows = table.lines().filter(|row| row.starts_with("| `"));
    let row = |row: &'static str| {
        let mut cells = row.trim_start_matches('|').split('|');
        let names = |cell: &'static str| cell.split('`').skip(1).step_by(2);
        let events = names(cells.next().unwrap());
        let fields = cells.next().unwrap();
        let (always, besides) = fields.split_once(';').unwrap_or((fields, ""));
        let fields = [always, besides].map(|cell| names(cell).collect::<BTreeSet<_>>());
        events.map(move |event| (event, fields.clone()))
    };
    rows.flat_map(row).collect()
}

/// The fields that lines may have beside those of their events.
const PLACE: [&str; 4] = ["peer", "class", "flow", "connection"];

/// Reads a trace, every line of which must be whole and as the guide says.
fn trace(text: &str) -> Vec<Value> {
    let schema = schema();
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect();
    for (number, line) in lines.iter().enumerate() {
        let event = line["event"].as_str().unwrap();
        assert_eq!(line["v"], 1, "{line}");
        assert_eq!(line["time_s"].is_f64(), number > 0, "{line}");
        let [always, besides] = &schema[event];
        let keys = line.as_object().unwrap().keys().map(String::as_str);
        let own =
            keys.filter(|key| !["v", "time_s", "event"].contains(key) && !PLACE.contains(key));
        let own: BTreeSet<_> = own.collect();
        assert!(own.is_superset(always), "{always:?}: {line}");
        let more: Vec<_> = own.difference(always).collect();
        assert!(
            more.iter().all(|key| besides.contains(*key)),
            "{more:?}: {line}"
        );
    }
    assert_eq!(lines[0]["event"], "started");
    let times = lines[1..]
        .iter()
        .map(|line| line["time_s"].as_f64().unwrap());
    assert!(
        times.is_sorted(),
        "the lines are in the order of their times"
    );
    lines
}

fn count(lines: &[Value], event: &str, also: impl Fn(&Value) -> bool) -> u64 {
    let is_it = |line: &&Value| line["event"] == event && also(line);
    lines.iter().filter(is_it).count() as u64
}

fn any(_: &Value) -> bool {
    true
}

fn forward(to: SocketAddr, trace: &str) -> String {
    format!("[[forward]]\nlisten = \"127.0.0.1:0\"\nto = \"{to}\"\n{trace}")
}

fn table(file: &Path) -> String {
    format!("[trace]\nfile = \"{}\"\n", file.display())
}

/// Asks again until nothing of AeroTP was counted, and the peer told of no more losses, for so long as it may take to tell.
fn settled(server: SocketAddr) -> Value {
    let mut last = Value::Null;
    let clock = Clock::start();
    let mut since = clock.now();
    until("the transport and its losses to come to rest", || {
        let status = status_at(server);
        let of = |status: &Value, what: &str| status["peers"][0][what].clone();
        let is_same = ["transport", "losses"].map(|what| of(&status, what) == of(&last, what));
        if is_same != [true; 2] {
            since = clock.now();
        }
        let rests = status["flows"] == 0
            && status["peers"][0]["losses"].is_object()
            && clock.now() > since + TOLD_WITHIN;
        last = status;
        rests
    });
    last
}

/// Checks that the sums over the lines until an answer are the answer's counters.
fn sums_are_counters(all: &[Value], status: &Value) {
    let name = &status["name"];
    let asked = status["uptime_seconds"].as_f64().unwrap();
    let had = |line: &Value| line["time_s"].as_f64().is_none_or(|at| at <= asked);
    let lines: Vec<Value> = all.iter().filter(|line| had(line)).cloned().collect();
    let transport = &status["peers"][0]["transport"];
    let again = |line: &Value| line["again"] == true;
    let by = |sign: &'static str| move |line: &Value| line["sign"] == sign;
    let corrected = |line: &Value| line["corrected_symbols"] != 0;
    let sums = [
        (
            count(&lines, "sent", again),
            &transport["sent_tpdus"]["retransmission"],
        ),
        (
            count(&lines, "sent", |line| !again(line)),
            &transport["sent_tpdus"]["source"],
        ),
        (
            count(&lines, "repair_sent", any),
            &transport["sent_tpdus"]["repair"],
        ),
        (
            count(&lines, "held_lost", by("overtaken")),
            &transport["held_lost_tpdus"]["overtaken"],
        ),
        (
            count(&lines, "held_lost", by("nack")),
            &transport["held_lost_tpdus"]["asked_for"],
        ),
        (
            count(&lines, "held_lost", by("timeout")),
            &transport["held_lost_tpdus"]["timeout"],
        ),
        (
            count(&lines, "accepted", any) + count(&lines, "rebuilt", any),
            &transport["accepted_tpdus"],
        ),
        (
            count(&lines, "accepted", corrected),
            &transport["recovered_tpdus"]["fec_words"],
        ),
        (
            count(&lines, "rebuilt", any),
            &transport["recovered_tpdus"]["fec_block"],
        ),
        (
            count(&lines, "damaged", any),
            &transport["wire_damaged_tpdus"],
        ),
        (count(&lines, "stalled", any), &transport["stalls"]),
    ];
    for (n, (counted, told)) in sums.iter().enumerate() {
        assert_eq!(
            Some(*counted),
            told.as_u64(),
            "sum {n} of {name}: {transport}"
        );
    }
    assert!(sums[0].0 > 0 && sums[1].0 > 400, "{transport}");
}

/// Checks that the last losses by cause in the trace are those of an answer after which nothing was sent.
fn losses_are_those_of_the_status(all: &[Value], status: &Value) {
    let told = &status["peers"][0]["losses"];
    let is_it = |line: &&Value| line["event"] == "loss_causes";
    let last = all.iter().rev().find(is_it).expect("something was lost");
    for count in ["sent_packets", "lost_packets", "mended_packets"] {
        assert_eq!(last[count], told[count], "{last} {told}");
    }
    let causes = last["causes"].as_array().unwrap();
    assert_eq!(causes.len(), told["causes"].as_object().unwrap().len());
    for cause in causes {
        let same = &told["causes"][cause["cause"].as_str().unwrap()];
        for figure in ["ratio", "low_ratio", "high_ratio"] {
            assert_eq!(cause[figure], same[figure], "{cause} {same}");
        }
    }
}

/// Checks that there is one flow, of 600 kB to and fro, and that all events of connections belong to it.
fn one_flow(all: &[Value], name: &str, to: SocketAddr) {
    let opened: Vec<_> = all
        .iter()
        .filter(|line| line["event"] == "flow_opened")
        .collect();
    let [opened] = opened[..] else {
        panic!("{opened:?}")
    };
    let way = if name == "air" { "in" } else { "out" };
    assert_eq!(
        (&opened["direction"], &opened["protocol"]),
        (&way.into(), &"tcp".into())
    );
    assert_eq!(opened["destination"], to.to_string());
    let ended = all
        .iter()
        .find(|line| line["event"] == "flow_ended")
        .unwrap();
    assert_eq!(
        (&ended["flow"], &ended["reason"]),
        (&opened["flow"], &"finished".into())
    );
    assert_eq!(ended["from_client_bytes"], 600_000);
    assert_eq!(ended["to_client_bytes"], 600_000);
    for line in all.iter().filter(|line| line["connection"].is_u64()) {
        assert_eq!(
            (&line["class"], &line["flow"]),
            (&"default".into(), &opened["flow"]),
            "{line}"
        );
    }
}

#[test]
fn the_lines_of_both_ends_are_the_guides_and_their_sums_the_counters() {
    let directory = tempfile::tempdir().unwrap();
    let files = ["air", "ground"].map(|name| directory.path().join(format!("{name}.jsonl")));
    let to = server(echo);
    let [air, ground] = [&files[0], &files[1]].map(|file| table(file));
    let pair = Pair::start_both(LINK, &forward(to, &air), &ground);
    let sent = octets(1, 600_000);
    assert!(exchange(client(pair.entries[0]), sent.clone()) == sent);
    let statuses = [pair.metrics, pair.ground_metrics].map(settled);
    pair.interrupt();

    for (file, status) in files.iter().zip(statuses) {
        let mode = fs::metadata(file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let text = fs::read_to_string(file).unwrap();
        assert!(text.ends_with('\n'), "the last line is whole");
        let all = trace(&text);
        let name = status["name"].as_str().unwrap();
        assert_eq!(
            (&all[0]["role"], &all[0]["name"]),
            (&"gateway".into(), &name.into())
        );
        assert_eq!(all.last().unwrap()["how"], "stopped");
        assert_eq!(status["carrier"]["trace_missed_events"], 0);
        assert_eq!(count(&all, "missed", any), 0);

        sums_are_counters(&all, &status);
        losses_are_those_of_the_status(&all, &status);
        one_flow(&all, name, to);
        for wanted in ["peer_up", "path_mtu", "stopping"] {
            assert!(count(&all, wanted, any) > 0, "{wanted} of {name}");
        }
    }
}

#[test]
fn an_outage_is_in_the_trace_with_its_length() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("air.jsonl");
    let to = server(echo);
    let pair = Pair::start(
        "--rate 50mbit --delay 5ms --outage 1s+2s",
        &forward(to, &table(&file)),
    );
    until("an outage to be over", || {
        // Nothing is missed where nothing is sent.
        let sent = octets(5, 10_000);
        assert!(exchange(client(pair.entries[0]), sent.clone()) == sent);
        let status = pair.status();
        status["peers"][0]["outages"]["seconds"].as_f64() > Some(0.0)
    });
    let outages = pair.status()["peers"][0]["outages"].clone();
    pair.interrupt();
    let all = trace(&fs::read_to_string(&file).unwrap());
    let ups: Vec<_> = all
        .iter()
        .filter(|line| line["event"] == "link_up")
        .collect();
    assert_eq!(ups[0]["peer"], "ground");
    let told = ups[0]["outage_seconds"].as_f64().unwrap();
    let longest = outages["longest_seconds"].as_f64().unwrap();
    assert!(told > 0.0 && told <= longest + 1e-9, "{told} {outages}");
    let down = all
        .iter()
        .find(|line| line["event"] == "link_down")
        .unwrap();
    assert!(down["silent_seconds"].as_f64() > Some(0.0), "{down}");
    assert!(
        down["why"].as_str().unwrap().contains("sending is held"),
        "{down}"
    );
}

#[test]
fn rates_are_in_the_order_of_the_other_lines() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("air.jsonl");
    let to = server(echo);
    // A tenth of what is configured.
    let link = "--rate 5mbit --delay 5ms --queue 50 --seed 3";
    let pair = Pair::start(link, &forward(to, &table(&file)));
    let sent = octets(6, 1_500_000);
    assert!(exchange(client(pair.entries[0]), sent.clone()) == sent);
    pair.interrupt();
    let all = trace(&fs::read_to_string(&file).unwrap());
    let found = |line: &Value| line["reason"] == "link" && line["peer"] == "ground";
    assert!(count(&all, "rate", found) > 0, "the rate followed the link");
}

#[test]
fn a_start_that_fails_leaves_the_recordings_of_before() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    let taken = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let text = format!(
        "[gateway]\nlisten = \"127.0.0.1:0\"\nstate_dir = \"{0}\"\n[security]\nkind = \"none\"\n\
         [[peer]]\nname = \"b\"\nrate = \"1mbit\"\n\
         [[forward]]\nlisten = \"{1}\"\nto = \"127.0.0.1:1\"\n\
         [capture]\nfile = \"{0}/a.pcapng\"\n[trace]\nfile = \"{0}/a.jsonl\"\n",
        place.display(),
        taken.local_addr().unwrap()
    );
    fs::write(place.join("a.toml"), text).unwrap();
    let files = ["a.pcapng", "a.jsonl"].map(|name| place.join(name));
    for file in &files {
        fs::write(file, "of a crash").unwrap();
    }
    let output = run(&format!("gateway -c {}/a.toml", place.display()));
    assert_eq!(output.status.code(), Some(5), "{}", said(&output));
    for file in &files {
        assert_eq!(fs::read(file).unwrap(), b"of a crash", "{}", file.display());
    }
}

#[test]
fn a_killed_gateway_leaves_whole_lines_and_the_next_one_does_not_take_them() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("air.jsonl");
    let former = directory.path().join("air.jsonl.1");
    let to = server(echo);
    let mut pair = Pair::start(LINK, &forward(to, &table(&file)));
    let sent = octets(2, 400_000);
    assert!(exchange(client(pair.entries[0]), sent.clone()) == sent);
    until("the trace to be written", || {
        fs::metadata(&file).unwrap().len() > 100_000
    });
    let mut left = String::new();
    pair.restart_air(|| left = fs::read_to_string(&file).unwrap());
    // The last line may be cut, no other is.
    let whole = left.rfind('\n').unwrap() + 1;
    let all = trace(&left[..whole]);
    assert_eq!(count(&all, "end", any), 0);
    assert!(count(&all, "sent", any) > 200);
    assert!(fs::read_to_string(&former).unwrap() == left);
    let again = fs::read_to_string(&file).unwrap();
    assert!(again.len() < left.len() && !again.contains("flow_opened"));
}

#[test]
fn a_full_disk_ends_the_trace_whole_and_with_one_line_and_not_the_traffic() {
    if !crate::captures::works("unshare", &["--mount", "true"]) {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let at = place.path().display().to_string();
    let to = server(echo);
    let script = format!("mount -t tmpfs -o size=300k tmpfs {at} && exec \"$0\" \"$@\"");
    let wrapper = ["unshare", "--mount", "sh", "-c", &script];
    let entries = forward(to, &table(&place.path().join("air.jsonl")));
    let mut pair = Pair::start_wrapped("--rate 50mbit --delay 1ms", &entries, &wrapper);
    let sent = octets(3, 1_500_000);
    assert!(exchange(client(pair.entries[0]), sent.clone()) == sent);
    let carrier = || pair.status()["carrier"].clone();
    until("the trace to end", || {
        carrier()["trace_missed_events"].as_u64() > Some(0)
    });
    // As the gateway sees it, in its mount namespace.
    let written = fs::read_to_string(format!("/proc/{}/root{at}/air.jsonl", pair.air.id()));
    let written = written.unwrap();
    assert!(
        written.len() > 100_000 && written.ends_with('\n'),
        "{}",
        written.len()
    );
    let lines = trace(&written).len() as u64;
    assert_eq!(carrier()["traced_events"].as_u64(), Some(lines));
    pair.air.signal(Signal::INT);
    let (_, told) = pair.air.end();
    assert_eq!(told.matches("trace_ended").count(), 1, "{told}");
}

#[test]
fn a_trace_that_cannot_be_written_is_told_of_and_the_traffic_goes_on() {
    let to = server(echo);
    let sent = octets(4, 300_000);
    for file in ["/dev/full", "/nowhere/air.jsonl"] {
        let mut pair = Pair::start(
            "--rate 50mbit --delay 1ms",
            &forward(to, &table(Path::new(file))),
        );
        assert!(exchange(client(pair.entries[0]), sent.clone()) == sent);
        assert_eq!(pair.status()["carrier"]["traced_events"], 0, "{file}");
        pair.air.signal(Signal::INT);
        let (_, told) = pair.air.end();
        assert_eq!(told.matches("trace_ended").count(), 1, "{told}");
        assert!(told.contains(file), "{told}");
    }
}

#[test]
fn a_trace_of_the_command_line_that_cannot_be_made_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().display();
    assert!(run(&format!("keygen {place}/air.key")).status.success());
    let text = format!(
        "[gateway]\nlisten = \"127.0.0.1:0\"\nstate_dir = \"{place}\"\n[security]\nkind = \"none\"\n\
         [[peer]]\nname = \"b\"\nrate = \"1mbit\"\n[egress]\nallow = [\"127.0.0.1:1-2\"]\n"
    );
    fs::write(directory.path().join("a.toml"), text).unwrap();
    let same = format!("--trace {place}/a --capture {place}/a");
    let former = format!("--trace {place}/a --capture {place}/a.1");
    for (flags, code, told) in [
        (
            "--trace /nowhere/a.jsonl",
            5,
            "cannot write the trace /nowhere/a.jsonl",
        ),
        (same.as_str(), 2, "name another"),
        (former.as_str(), 2, "differ by .1"),
    ] {
        let command = fulmar(&format!("gateway -c {place}/a.toml {flags}"));
        let (status, said) = Running::start(command).end();
        assert!(said.contains(told), "{flags}: {said}");
        assert_eq!(status.code(), Some(code), "{flags}: {said}");
    }
}
