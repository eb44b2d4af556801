//! `fulmar top` against running gateways: it shows what `/status` and `/metrics` say of the same instant,
//! and it ends cleanly. `scripts/tests/test_live.py` compares the page too.

use crate::gateways::{LOSSY, Pair, client, echo, exchange, nobody, server};
use crate::processes::{Running, fulmar, octets, run, said, until};
use rustix::process::Signal;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::channel;

/// A link on which nothing is lost.
const CALM: &str = "--rate 50mbit --delay 1ms";

fn forward(to: std::net::SocketAddr) -> String {
    format!("[[forward]]\nlisten = \"127.0.0.1:0\"\nto = \"{to}\"\n")
}

fn body(page: &str) -> &str {
    page.split("\r\n\r\n").nth(1).expect("a body")
}

/// The figures of a view: by series, value and words.
fn figures(view: &Value) -> BTreeMap<String, (Option<f64>, String)> {
    let list = |of: &Value, key: &str| of[key].as_array().expect("a list").clone();
    let mut groups = list(view, "groups");
    for peer in list(view, "peers") {
        groups.extend(list(&peer, "groups"));
    }
    groups.extend(list(view, "classes"));
    let all = groups.iter().flat_map(|group| list(group, "figures"));
    all.map(|figure| {
        let text = |key: &str| figure[key].as_str().expect("text").to_owned();
        (text("series"), (figure["value"].as_f64(), text("text")))
    })
    .collect()
}

/// A series' name and labels.
fn split(series: &str) -> (&str, Vec<&str>) {
    let (name, labels) = series.split_once('{').unwrap_or((series, ""));
    let labels = labels.trim_end_matches('}');
    (
        name,
        labels
            .split(',')
            .filter(|label| !label.is_empty())
            .collect(),
    )
}

#[test]
fn top_status_and_metrics_agree_on_an_instant_while_traffic_flows() {
    let to = server(echo);
    let pair = Pair::start(LOSSY, &forward(to));
    let sent = octets(7, 400_000);
    assert_eq!(exchange(client(pair.entries[0]), sent.clone()), sent);
    // Another keeps everything moving while it is looked at.
    let entry = pair.entries[0];
    let busy = std::thread::spawn(move || exchange(client(entry), octets(8, 2_000_000)).len());
    until("loss and repair", || {
        let status = pair.status();
        let transport = &status["peers"][0]["transport"];
        let repaired = transport["recovered_tpdus"]["arq_1"].as_u64() > Some(0);
        repaired && transport["wire_lost_tpdus"].as_u64() > Some(0)
    });
    let status = pair.status();
    let sequence = status["sequence"].as_u64().expect("a number");
    let text = pair.page(&format!("/metrics?sequence={sequence}"));
    let metrics: BTreeMap<&str, f64> = body(&text)
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.rsplit_once(' '))
        .map(|(series, value)| (series, value.parse().expect("a number")))
        .collect();
    let object = status["metrics"].as_object().expect("an object");
    let of_status: BTreeMap<&str, f64> = object
        .iter()
        .map(|(series, value)| (series.as_str(), value.as_f64().expect("a number")))
        .collect();
    assert_eq!(of_status, metrics);
    let top = |flags: &str| {
        let command = format!(
            "top http://{} --once --sequence {sequence} {flags}",
            pair.metrics
        );
        let output = run(&command);
        assert!(output.status.success(), "{}", said(&output));
        String::from_utf8(output.stdout).expect("text")
    };
    let view: Value = serde_json::from_str(&top("--json")).expect("one record");
    assert_eq!(view["sequence"], sequence);
    let figures = figures(&view);
    assert!(figures.len() > 30, "{figures:?}");
    let picture = top("");
    for (series, (value, words)) in &figures {
        let (name, labels) = split(series);
        let is_meant = |other: &str| {
            let (other, all) = split(other);
            other == name && labels.iter().all(|label| all.contains(label))
        };
        let meant: Vec<f64> = metrics
            .iter()
            .filter(|(other, _)| is_meant(other))
            .map(|(_, value)| *value)
            .collect();
        let sum = (!meant.is_empty()).then(|| meant.iter().sum::<f64>());
        assert_eq!(*value, sum, "{series}");
        assert!(
            picture.contains(words.as_str()),
            "{series} is {words}:\n{picture}"
        );
    }
    let lost = &status["peers"][0]["transport"]["wire_lost_tpdus"];
    let shown = &figures["fulmar_wire_lost_packets_total{peer=\"ground\"}"];
    assert_eq!(shown.0, lost.as_f64());
    assert_eq!(busy.join().expect("the echo"), 2_000_000);
}

#[test]
fn top_prints_a_record_a_look_until_it_is_interrupted() {
    let pair = Pair::start(CALM, &forward(nobody()));
    let command = format!("top {} --json --interval 20ms", pair.metrics);
    let mut top = Running::start(fulmar(&command));
    let first = top.record();
    let second = top.record();
    assert_eq!(first["schema"], "fulmar.gateway.view.v1");
    assert!(first["sequence"].as_u64() < second["sequence"].as_u64());
    top.signal(Signal::INT);
    let (status, said) = top.end();
    assert_eq!(status.code(), Some(130), "{said}");
    assert_eq!(said, "");
}

/// `fulmar top` in a terminal of 80 columns and 24 lines, with these keys pressed once its screen is there; what it showed
/// and its exit code.
fn pressed(url: &str, keys: &[&str]) -> (String, Option<i32>) {
    let binary = assert_cmd::cargo::cargo_bin!("fulmar").display();
    // script(1) gives it a terminal, and ends as it ends.
    let line = format!("stty rows 24 columns 80; exec {binary} top {url} --interval 50ms");
    let (mut script, mut keyboard, mut screen) = in_terminal(&line);
    let mut shown = String::new();
    let mut wait_for = |words: &str, shown: &mut String| {
        let mut buffer = [0; 8_192];
        while !shown.contains(words) {
            let len = screen.read(&mut buffer).expect("it is open");
            assert!(len > 0, "{words}: {shown}");
            shown.push_str(&String::from_utf8_lossy(&buffer[..len]));
        }
    };
    wait_for("[1 links]", &mut shown);
    for key in keys {
        shown.clear();
        keyboard.write_all(key.as_bytes()).expect("it reads");
        match *key {
            "2" => wait_for("No flows now.", &mut shown),
            "3" | "g" => wait_for("lines 1 to", &mut shown),
            "\x1b[B" => wait_for("lines 2 to", &mut shown),
            "?" => wait_for("sort by the next column", &mut shown),
            _ => {}
        }
    }
    drop(keyboard);
    let mut rest = String::new();
    screen.read_to_string(&mut rest).expect("text");
    shown.push_str(&rest);
    (shown, script.wait().expect("it ends").code())
}

#[test]
fn top_has_tables_that_keys_lead_to_scrolls_helps_ends_with_q_and_puts_the_screen_back() {
    let pair = Pair::start(CALM, &forward(nobody()));
    let keys = ["2", "3", "\x1b[B", "g", "?", "q"];
    let (shown, code) = pressed(&pair.metrics.to_string(), &keys);
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("\x1b[?1049l"), "{shown:?}");
}

#[test]
fn top_in_the_background_goes_on_and_leaves_the_terminal_alone() {
    let pair = Pair::start(CALM, &forward(nobody()));
    // Somebody who answers as the gateway does, and counts.
    let view = pair.page("/view");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = listener.local_addr().expect("it is bound");
    let (asked, looks) = channel();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                let mut octet = [0];
                stream.read_exact(&mut octet).expect("a request");
                request.push(octet[0]);
            }
            stream.write_all(view.as_bytes()).expect("it reads");
            // The test may have ended.
            let _sent = asked.send(());
        }
    });
    let binary = assert_cmd::cargo::cargo_bin!("fulmar").display();
    let line =
        format!("set -m; {binary} top {url} --interval 20ms & echo pid=$!=; read key; kill -9 $!");
    let (mut script, mut keyboard, mut screen) = in_terminal(&line);
    let mut shown = String::new();
    while shown.matches('=').count() < 2 {
        let mut buffer = [0; 8_192];
        let len = screen.read(&mut buffer).expect("it is open");
        assert!(len > 0, "{shown}");
        shown.push_str(&String::from_utf8_lossy(&buffer[..len]));
    }
    let pid = shown.split('=').nth(1).expect("a number").to_owned();
    let is_stopped = || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it runs");
        stat.contains(") T ")
    };
    let mut count = 0;
    until("three looks", || {
        count += looks.try_iter().count();
        assert!(!is_stopped(), "after {count} looks");
        count > 3
    });
    keyboard.write_all(b"\n").expect("it reads");
    screen.read_to_string(&mut shown).expect("text");
    script.wait().expect("it ends");
    assert!(!shown.contains('\x1b'), "{shown:?}");
}

#[test]
fn top_into_a_pipe_has_no_control_sequences() {
    let pair = Pair::start(CALM, &forward(nobody()));
    let output = run(&format!("top {} --once", pair.metrics));
    let text = String::from_utf8(output.stdout.clone()).expect("text");
    assert!(output.status.success(), "{}", said(&output));
    assert!(
        text.contains("ground up") || text.contains("ground connecting"),
        "{text}"
    );
    assert!(!text.contains('\x1b'), "{text:?}");
}

#[test]
fn top_says_in_a_line_what_is_wrong() {
    let cases = [
        (
            format!("top {} --once", nobody()),
            3,
            "nothing answers at http://127.0.0.1:",
        ),
        ("top https://127.0.0.1".to_owned(), 2, "plain HTTP"),
        ("top 127.0.0.1:x".to_owned(), 2, "not an address"),
        ("top --interval 5 --once".to_owned(), 2, "interval"),
        ("top --sequence 3".to_owned(), 2, "--once"),
    ];
    for (command, code, line) in cases {
        let output = run(&command);
        assert_eq!(
            output.status.code(),
            Some(code),
            "{command}: {}",
            said(&output)
        );
        assert!(said(&output).contains(line), "{command}: {}", said(&output));
    }
    let pair = Pair::start(CALM, &forward(nobody()));
    let output = run(&format!("top {} --once --sequence 99", pair.metrics));
    assert_eq!(output.status.code(), Some(1));
    assert!(
        said(&output).contains("no such snapshot"),
        "{}",
        said(&output)
    );
    assert_eq!(said(&output).lines().count(), 1);
}

#[test]
fn status_says_in_a_sentence_whether_a_gateway_is_fine_and_ends_with_1_if_not() {
    let pair = Pair::start(CALM, &forward(nobody()));
    until("the link to be up", || {
        pair.status()["peers"][0]["link"] == "up"
    });
    let command = format!("status {}", pair.metrics);
    let words = |octets: &[u8]| {
        let text = str::from_utf8(octets).expect("text");
        assert!(text.lines().count() <= 23, "{text}");
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let output = run(&command);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let text = words(&output.stdout);
    assert!(
        text.starts_with("air is good") && text.contains("good ground") && text.ends_with("Fine."),
        "{text}"
    );
    // Silence is only noticed by who has something to say.
    pair.ground.signal(Signal::KILL);
    let mut client = client(pair.entries[0]);
    client.write_all(b"is anybody there?").expect("it reads");
    until("the outage", || pair.status()["peers"][0]["link"] == "down");
    let output = run(&command);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let text = words(&output.stdout);
    assert!(text.starts_with("air is BAD"), "{text}");
    assert!(
        text.contains("sending is held, flows wait; wait for the link"),
        "{text}"
    );
    assert!(
        text.contains("ground, outage nothing has come back"),
        "{text}"
    );
    let status = pair.status();
    assert_eq!(status["peers"][0]["verdict"]["state"], "outage");
    let alarm = &status["metrics"]["fulmar_alarm{peer=\"ground\",rule=\"outage\"}"];
    assert_eq!(*alarm, 1, "{status}");
    let output = run(&format!("{command} --json"));
    assert_eq!(output.status.code(), Some(1));
    let record: Value = serde_json::from_slice(&output.stdout).expect("one record");
    assert_eq!(
        (&record["grade"], &record["alarms"][0]["rule"]),
        (&"bad".into(), &"outage".into())
    );
    let output = run(&format!("status {}", nobody()));
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
}

#[test]
fn what_is_not_reading_is_refused_and_what_is_not_there_is_said() {
    let pair = Pair::start(CALM, &forward(nobody()));
    for (path, status) in [
        ("/", "200 OK"),
        ("/?sequence=0", "200 OK"),
        ("/view", "200 OK"),
        ("/history", "200 OK"),
        ("/history?peer=1", "404 Not Found"),
        ("/history?peer=x", "400 Bad Request"),
        ("/status?sequence=1000", "404 Not Found"),
        ("/status?sequence=-1", "400 Bad Request"),
        ("//", "404 Not Found"),
    ] {
        let page = pair.page(path);
        let line = page.lines().next().unwrap_or_default();
        assert_eq!(line, format!("HTTP/1.0 {status}"), "{path}");
        assert!(
            page.contains("X-Content-Type-Options: nosniff\r\n"),
            "{path}"
        );
    }
    let mut rebound = client(pair.metrics);
    rebound
        .write_all(b"GET /status HTTP/1.1\r\nHost: evil.example:9490\r\n\r\n")
        .unwrap();
    let mut answer = String::new();
    rebound.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.0 403 "), "{answer}");
    let page = pair.page("/");
    assert!(page.contains("Content-Security-Policy: default-src 'none';"));
}

/// Runs a line of the shell in a terminal of script(1), which ends as the line does. Returns it, its keyboard and its screen.
fn in_terminal(line: &str) -> (Child, ChildStdin, ChildStdout) {
    let mut script = Command::new("script")
        .args(["-q", "-e", "-c", line, "/dev/null"])
        .env("TERM", "xterm")
        .env("SHELL", "/bin/sh")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("script(1) is part of every Debian");
    let keyboard = script.stdin.take().expect("it is piped");
    let screen = script.stdout.take().expect("it is piped");
    (script, keyboard, screen)
}
