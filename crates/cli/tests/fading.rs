//! Recorded power from outside: files, good and broken, in scenarios and in the emulator.

use crate::processes;
use crate::processes::{Place, run, said};
use std::fs;

/// A second of power, 1 kHz: light, a fade to a hundredth from 0.4 s on, light again from 0.5 s on.
fn power() -> String {
    let row = |sample: i32| {
        let power = if (400..500).contains(&sample) {
            1.0
        } else {
            100.0
        };
        format!("{:.3},{power}\n", f64::from(sample) * 1e-3)
    };
    let rows: String = (0..1000).map(row).collect();
    format!("time_s,power_nw\n{rows}")
}

const SCENARIO: &str = "[run]\nduration = \"3s\"\n[hop]\nrate = \"622mbit\"\n[hop.forward]\n\
    fading = \"FADING\"\n[flow]\ntransport = \"udp\"\nbytes = \"1MB\"\nwrite = \"1000B\"\n\
    traffic = \"constant-rate\"\nrate = \"10mbit\"\n";

fn simulate(place: &Place, fading: &str) -> std::process::Output {
    let scenario = place.path("scenario.toml");
    fs::write(&scenario, SCENARIO.replace("FADING", fading)).expect("room");
    run(&format!("sim {} --json", scenario.display()))
}

#[test]
fn a_recording_is_scaled_and_replayed_by_the_simulator() {
    let place = Place::with(1);
    fs::write(place.path("power.csv"), power()).expect("room");
    let record = |fading: &str| -> serde_json::Value {
        let output = simulate(&place, fading);
        assert!(output.status.success(), "{fading}: {}", said(&output));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let first = text.lines().next().expect("a record");
        serde_json::from_str(first).expect("JSON")
    };
    // 1000 writes in 0.8 s, of which the fade takes 0.1 s. A mean of 1e-2 over the second is 0.1 in the
    // fade, which no packet survives; outside the fade there is a hundred times the power and no error.
    let faded = record("trace power.csv loop ber 1e-2");
    let delivered = faded["delivered_bytes"].as_u64().expect("a number");
    assert!((873_000..=877_000).contains(&delivered), "{faded}");
    // Cut out as an obstruction, it is no part of the scaling and is there all the same.
    let cut = record("trace power.csv loop ber 1e-12 cut 10dB for 20ms");
    assert_eq!(cut["delivered_bytes"], faded["delivered_bytes"]);
    // Only light.
    let part = record("trace power.csv loop ber 1e-12 part 0s+300ms");
    assert_eq!(part["delivered_bytes"], 1_000_000);
    assert_eq!(
        record("trace power.csv loop ber 1e-2"),
        faded,
        "one seed, one result"
    );
}

#[test]
fn broken_and_used_up_recordings_are_one_line_and_an_exit_code() {
    let place = Place::with(1);
    fs::write(
        place.path("power.csv"),
        power().replace("0.600,100", "0.600,-1"),
    )
    .expect("room");
    fs::write(place.path("short.csv"), "power\n1\n1\n").expect("room");
    for (fading, code, expected) in [
        (
            "trace power.csv",
            2,
            "power.csv:602: `power_nw`: -0.000000001 is negative; subtract",
        ),
        (
            "trace short.csv",
            2,
            "short.csv:1: `columns`: there is no `time_s`",
        ),
        (
            "trace short.csv spacing 1ms",
            1,
            "the trace short.csv (2ms) is used up",
        ),
        ("trace nowhere.csv", 2, "nowhere.csv: No such file"),
    ] {
        let output = simulate(&place, fading);
        let told = said(&output);
        assert_eq!(output.status.code(), Some(code), "{fading}: {told}");
        assert!(told.contains(expected), "{fading}: {told}");
    }
}

/// 10 GB that take no room on the disk: octets of zero, after the written ones.
fn ten_gigabytes(place: &Place, name: &str, begin: &str) {
    fs::write(place.path(name), begin).expect("room");
    let file = fs::OpenOptions::new().write(true).open(place.path(name));
    let file = file.expect("it is there");
    file.set_len(10_000_000_000).expect("a file may have holes");
}

/// Reading any of it into memory, or all of it in a minute, would fail the test.
#[test]
fn ten_gigabytes_are_refused_where_they_are_wrong_and_read_no_further_than_their_part() {
    let place = Place::with(1);
    ten_gigabytes(&place, "zeros.csv", "power\n1\n");
    ten_gigabytes(&place, "head.csv", &power());
    ten_gigabytes(&place, "zeros.mat", "MATLAB 5.0 MAT-file");
    for (fading, expected) in [
        (
            "trace zeros.csv spacing 1ms",
            "zeros.csv:3: `line`: the line is longer than 4096 octets",
        ),
        (
            "trace head.csv",
            "head.csv:1002: `line`: the line is longer than 4096 octets",
        ),
        ("trace zeros.mat spacing 1ms", "zeros.mat: "),
    ] {
        let output = simulate(&place, fading);
        let told = said(&output);
        assert_eq!(output.status.code(), Some(2), "{fading}: {told}");
        assert!(told.contains(expected), "{fading}: {told}");
        assert_eq!(told.lines().count(), 1, "{fading}: {told}");
    }
    let part = simulate(&place, "trace head.csv part 0s+300ms loop ber 1e-12");
    assert!(part.status.success(), "{}", said(&part));
}

#[test]
fn samples_of_power_far_below_a_bit_are_refused_with_file_field_and_remedy() {
    let place = Place::with(1);
    fs::write(place.path("power.csv"), power()).expect("room");
    let scenario = place.path("scenario.toml");
    let text = SCENARIO.replace("FADING", "trace power.csv loop spacing 1ns");
    fs::write(&scenario, text.replace("622mbit", "10mbit")).expect("room");
    let output = run(&format!("sim {} --json", scenario.display()));
    let told = said(&output);
    assert_eq!(output.status.code(), Some(2), "{told}");
    for word in [
        "scenario.toml:6: ",
        "fading",
        "fading.spacing is 1ns",
        "7ns",
    ] {
        assert!(told.contains(word), "{word}: {told}");
    }
    assert_eq!(told.lines().count(), 1, "{told}");

    let path = place.path("power.csv").display().to_string();
    let mut emulate = processes::fulmar("emulate --listen 127.0.0.1:0 --to 127.0.0.1:9");
    let fading = format!("trace {path} loop spacing 1ns");
    emulate.arg("--down-fading").arg(fading);
    let output = emulate.arg("--rate").arg("10mbit").output();
    let output = output.expect("it starts");
    let told = said(&output);
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(told.contains("fading.spacing is 1ns"), "{told}");
}

#[test]
fn the_emulator_takes_presets_and_recordings_and_refuses_what_is_none() {
    let place = Place::with(1);
    fs::write(place.path("dark.csv"), "power\n0\n1\n").expect("room");
    let path = place.path("dark.csv").display().to_string();
    let refuse = |fading: &str| {
        let mut emulate = processes::fulmar("emulate --listen 127.0.0.1:0 --to 127.0.0.1:9");
        let output = emulate
            .arg("--down-fading")
            .arg(fading)
            .output()
            .expect("it starts");
        assert_eq!(output.status.code(), Some(2), "{fading}");
        said(&output)
    };
    assert!(refuse("faslt").contains("does not describe fading"));
    let told = refuse(&format!("trace {path}"));
    assert!(
        told.contains("the down link's fading: ") && told.contains("spacing 100us"),
        "{told}"
    );

    // Dark for 10 ms, light for 10 ms, and then nothing is known.
    let mut command = processes::fulmar("emulate --listen 127.0.0.1:0 --to 127.0.0.1:9");
    let fading = format!("trace {path} spacing 10ms");
    command.arg("--up-fading").arg(fading);
    command.arg("--down-fading").arg("testbed over 1s");
    let mut emulator = processes::Running::start(command);
    let to = emulator.address();
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port");
    for _ in 0..30 {
        socket.send_to(b"a datagram", &to).expect("room");
        processes::moment();
    }
    let (status, said) = emulator.end();
    assert_eq!(status.code(), Some(1), "{said}");
    let (link, used_up) = ("the up link's fading: the trace ", "(20ms) is used up");
    assert!(said.contains(link) && said.contains(used_up), "{said}");
}
