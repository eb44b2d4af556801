//! Both ends of a tunnel say when it is there, and what is wrong with the other end.
//!
//! Method: two gateways with a tunnel in namespaces (see `gateway_tunnel`), and their logs. Needs root.

use crate::gateway_tunnel::{Pair, text};
use crate::processes::{Running, until};
use crate::rig::{Namespace, Rig, ready};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;

const CALM: &str = "--rate 10mbit --delay 5ms";

/// The lines of an ended gateway's log.
fn log(mut gateway: Running) -> Vec<Value> {
    gateway.signal(Signal::INT);
    let (_, said) = gateway.end();
    let lines = said
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok());
    lines.collect()
}

/// The only line of an event.
#[track_caller]
fn only<'a>(lines: &'a [Value], event: &str) -> &'a Value {
    let found: Vec<&Value> = lines.iter().filter(|line| line["event"] == event).collect();
    let [line] = found[..] else {
        panic!("{event}: {found:?} of {lines:#?}");
    };
    line
}

/// Gateways that are not asked to carry anything, with each end's configuration changed; it waits until both are told. Their traces
/// say it as well.
fn ends(change: impl Fn(u8, String) -> String, told: &str) -> [Vec<Value>; 2] {
    let rig = Rig::start(CALM);
    let place = tempfile::tempdir().expect("a directory");
    let start = |namespace: &Namespace, name: &str, host| {
        let trace = place.path().join(format!("{name}.jsonl"));
        let text = change(host, text(&place, host, ""))
            + "[metrics]\nlisten = \"127.0.0.1:9490\"\n[trace]\n"
            + &format!("file = \"{}\"\n", trace.display());
        namespace.gateway(place.path(), name, &text)
    };
    let running = [start(&rig.ground, "ground", 1), start(&rig.air, "air", 2)];
    for namespace in [&rig.ground, &rig.air] {
        until("both ends to be told", || {
            let output = namespace.run("curl -s http://127.0.0.1:9490/status");
            let status: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
            status["tunnels"][0]["far_end"] == told
        });
    }
    let logs = running.map(log);
    let event = match told {
        "agrees" => "tunnel_up",
        "differs" => "tunnel_networks_differ",
        _ => "tunnel_missing_there",
    };
    for name in ["ground", "air"] {
        let trace = fs::read_to_string(place.path().join(format!("{name}.jsonl")));
        let trace = trace.expect("it was asked for");
        let lines = trace.matches(&format!("\"event\":\"{event}\"")).count();
        assert_eq!(lines, 1, "{trace}");
    }
    logs
}

#[test]
fn a_tunnel_is_said_to_be_up_at_both_ends_and_its_end_waits_for_nobody() {
    if !ready(&["curl"]) {
        return;
    }
    let [ground, air] = ends(|_, text| text, "agrees");
    let up = only(&ground, "tunnel_up");
    assert_eq!(up["there"], "10.90.0.2/24 fd90::2/64");
    assert_eq!(only(&air, "tunnel_up")["there"], "10.90.0.1/24 fd90::1/64");
    assert_eq!(
        only(&ground, "tunnel_device")["address"],
        "10.90.0.1/24 fd90::1/64"
    );
    for lines in [&ground, &air] {
        // Packets are on their way all the time: none is a client that is cut off.
        assert_eq!(only(lines, "stopped")["flows_cut"], 0);
        assert!(
            !lines
                .iter()
                .any(|line| line["event"] == "tunnel_networks_differ")
        );
    }
}

#[test]
fn ends_of_different_networks_are_told_in_a_line_at_both_ends() {
    if !ready(&["curl"]) {
        return;
    }
    let other = |host, text: String| match host {
        1 => text,
        _ => text.replace("10.90.0.2/24", "10.91.0.2/24"),
    };
    let [ground, air] = ends(other, "differs");
    let differ = only(&ground, "tunnel_networks_differ");
    assert_eq!(differ["dropped_here"], "10.91.0.2/24");
    assert_eq!(differ["dropped_there"], "10.90.0.1/24");
    let differ = only(&air, "tunnel_networks_differ");
    assert_eq!(differ["dropped_here"], "10.90.0.1/24");
    assert_eq!(differ["dropped_there"], "10.91.0.2/24");
    assert!(
        differ["cure"]
            .as_str()
            .is_some_and(|cure| cure.contains("same networks"))
    );
}

#[test]
fn ends_of_different_names_are_told_in_a_line_at_both_ends() {
    if !ready(&["curl"]) {
        return;
    }
    let named = |host, text: String| match host {
        1 => text,
        _ => text.replace("[[tunnel]]\n", "[[tunnel]]\nname = \"cable\"\n"),
    };
    let [ground, air] = ends(named, "missing");
    for (lines, here, there) in [(&ground, "tunnel", "cable"), (&air, "cable", "tunnel")] {
        let missing = only(lines, "tunnel_missing_there");
        assert_eq!(missing["tunnel"], here);
        assert!(
            missing["cure"]
                .as_str()
                .is_some_and(|cure| cure.contains("same name"))
        );
        assert_eq!(only(lines, "tunnel_missing_here")["tunnel"], there);
        for doubled in ["exit_refused", "flow_refused"] {
            assert!(
                !lines.iter().any(|line| line["event"] == doubled),
                "{lines:#?}"
            );
        }
    }
}

#[test]
fn a_device_that_went_down_and_up_says_how_what_it_lost_comes_back() {
    if !ready(&["ping", "curl"]) {
        return;
    }
    let routed = |host: u8, text: String| {
        let routes = if host == 1 {
            "routes = \"10.79.0.0/24\"\n"
        } else {
            ""
        };
        format!("{text}{routes}[metrics]\nlisten = \"127.0.0.1:9490\"\n")
    };
    let pair = Pair::start_with(CALM, routed);
    let ground = &pair.rig.ground;
    let lost = || {
        let output = ground.run("curl -s http://127.0.0.1:9490/status");
        let status: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        status["tunnels"][0]["lost"].clone()
    };
    assert_eq!(lost(), "");
    ground.must("ip link set dev tunnel0 down");
    until("it to be told that it is down", || {
        lost() == "the device is down"
    });
    ground.must("ip link set dev tunnel0 up");
    until("the losses to be told", || {
        lost() == "addresses fd90::1/64, routes 10.79.0.0/24"
    });
    ground.must("ip address add fd90::1/64 dev tunnel0 nodad");
    ground.must("ip route add 10.79.0.0/24 dev tunnel0");
    until("everything to be back", || lost() == "");
    let [ground, _] = pair.running;
    let lines = log(ground);
    let lacks = lines
        .iter()
        .filter(|it| it["event"] == "tunnel_device_lacks");
    let cures: Vec<&Value> = lacks.map(|it| &it["cure"]).collect();
    assert_eq!(
        cures,
        [
            "ip link set dev tunnel0 up",
            "ip address add fd90::1/64 dev tunnel0 nodad; ip route add 10.79.0.0/24 dev tunnel0; \
             or restart the gateway"
        ]
    );
    only(&lines, "tunnel_device_whole");
}

#[test]
fn doctor_knows_what_a_tunnel_needs() {
    if !ready(&[]) {
        return;
    }
    let place = tempfile::tempdir().expect("a directory");
    let station = Namespace::new("station");
    station.must("ip tuntap add dev tunnel9 mode tun");
    station.must("ip address add 10.93.0.9/24 dev tunnel9");
    station.must("ip link set tunnel9 up");
    let file = place.path().join("gateway.toml");
    let finding = |host: u8, further: &str, wrapper: &str| {
        fs::write(&file, text(&place, host, further)).expect("room");
        let binary = assert_cmd::cargo::cargo_bin!("fulmar").display();
        let output = station.run(&format!(
            "{wrapper} {binary} doctor --json -c {}",
            file.display()
        ));
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut found = printed
            .lines()
            .map(|line| serde_json::from_str(line).expect("JSON"));
        let is_ours = |one: &Value| {
            one["check"]
                .as_str()
                .is_some_and(|it| it.starts_with("[[tunnel]]"))
        };
        found
            .find(is_ours)
            .unwrap_or_else(|| panic!("nothing about the tunnel: {printed}"))
    };
    let without = "setpriv --bounding-set -net_admin --inh-caps -net_admin";
    for (host, further, wrapper, verdict, remedy) in [
        (1, "", "", "good", ""),
        (1, "", without, "bad", "run it as root"),
        (
            1,
            "device = \"tunnel9\"\n",
            "",
            "poor",
            "write another device",
        ),
        (1, "routes = \"10.93.0.0/24\"\n", "", "bad", "out of routes"),
    ] {
        let one = finding(host, further, wrapper);
        assert_eq!(one["verdict"], verdict, "{one}");
        assert!(
            one["remedy"].as_str().unwrap_or_default().contains(remedy),
            "{one}"
        );
    }
}

#[test]
fn up_takes_the_file_and_the_flags_that_gateway_takes() {
    if !ready(&[]) {
        return;
    }
    let place = tempfile::tempdir().expect("a directory");
    let file = place.path().join("ground.toml");
    fs::write(&file, text(&place, 1, "")).expect("room");
    let binary = assert_cmd::cargo::cargo_bin!("fulmar").display();
    let station = Namespace::new("station");
    let file = file.display();
    let said = [
        "up --check",
        "up --check -c",
        "gateway --check",
        "gateway --check -c",
    ]
    .map(|start| station.must(&format!("{binary} {start} {file}")));
    assert!(
        said[0].contains("any IP packet sent into the device tunnel0"),
        "{}",
        said[0]
    );
    assert!(said.iter().all(|one| *one == said[0]), "{said:?}");
    let trace = place.path().join("up.jsonl");
    let trace = trace.display();
    let mut up = station.start(&format!(
        "{binary} up {file} --json --log-format text --trace {trace}"
    ));
    assert_eq!(up.record()["kind"], "start");
    up.signal(Signal::INT);
    let (_, log) = up.end();
    assert!(log.contains("event=\"tunnel_device\""), "{log}");
    assert!(fs::metadata(trace.to_string()).is_ok_and(|it| it.len() > 0));
}

#[test]
fn a_second_pair_of_files_is_a_second_tunnel() {
    if !ready(&["ping"]) {
        return;
    }
    // Beside the first, with another name and device, over the same session.
    let second = |host: u8, text: String| {
        format!(
            "{text}[[tunnel]]\nname = \"second\"\ndevice = \"tunnel1\"\naddress = \"10.91.0.{host}/24\"\n"
        )
    };
    let pair = Pair::start_with(CALM, second);
    (pair.rig.ground).must("ping -c 3 -i 0.1 -W 20 -q 10.91.0.2");
    let [ground, _] = pair.running;
    let lines = log(ground);
    let up = lines.iter().filter(|line| line["event"] == "tunnel_up");
    assert_eq!(up.count(), 2, "{lines:#?}");
}
