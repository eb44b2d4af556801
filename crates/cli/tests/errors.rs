//! What goes wrong is said in one clear line, with the documented exit code.
//!
//! Method: the binary from outside. Every case names the code it expects and a word that the line
//! must contain: the flag, the file or the remedy.

use crate::processes;
use crate::processes::{Place, Running, fulmar, receiver, run, said, until};
use rustix::process::Signal;
use std::process::{Command, Stdio};

#[track_caller]
fn fails(arguments: &str, code: i32, words: &[&str]) {
    let output = run(arguments);
    let said = said(&output);
    assert_eq!(output.status.code(), Some(code), "{arguments}: {said}");
    for word in words {
        assert!(said.contains(word), "{arguments}: no {word:?} in {said:?}");
    }
    assert!(
        output.stdout.is_empty(),
        "{arguments}: talk belongs on stderr"
    );
}

#[test]
fn a_wrong_flag_is_a_usage_error_that_names_it() {
    fails(
        "send x 127.0.0.1:9 --rate 5",
        2,
        &["--rate", "no unit", "5mbit"],
    );
    fails(
        "send x 127.0.0.1:9 --rate 5Mbps",
        2,
        &["--rate", "bytes per second"],
    );
    fails(
        "send x 127.0.0.1:9 --mode best",
        2,
        &["--mode", "nack-mack"],
    );
    fails(
        "send x 127.0.0.1:9 --fec-words 257",
        2,
        &["--fec-words", "0 to 256"],
    );
    fails("send x 127.0.0.1:9 --block 250,10", 2, &["--block", "256"]);
    fails("send x 127.0.0.1:9 --mack 366", 2, &["--mack", "365"]);
    fails("recv --lisen :1 .", 2, &["--lisen", "--listen"]);
    fails(
        "emulate --listen :0 --to 127.0.0.1:9 --loss 120%",
        2,
        &["--loss", "120%"],
    );
    fails(
        "emulate --listen :0 --to 127.0.0.1:9 --jitter 2ms",
        2,
        &["jitter", "delay"],
    );
    fails(
        "emulate --listen :0 --to 127.0.0.1:9 --preset moon",
        2,
        &["moon", "airborne"],
    );
    fails("demo --modes tcp", 2, &["--modes", "plain-udp"]);
    fails("sim --swarm 0", 2, &["--swarm", "1.."]);
}

#[test]
fn a_value_that_would_do_nothing_is_a_usage_error_that_names_its_flag() {
    let place = Place::with(10);
    let send = format!("send {} 127.0.0.1:9", place.file());
    let relay = "emulate --listen :0 --to 127.0.0.1:9";
    fails(&format!("{send} --burst 0"), 2, &["--burst", "1.."]);
    fails(&format!("{send} --give-up 500ms"), 2, &["--give-up", "1s"]);
    fails(&format!("{send} --mtu 65535"), 2, &["--mtu", "65000"]);
    fails(
        &format!("{send} --connect-timeout 0s"),
        2,
        &["--connect-timeout", "0"],
    );
    fails(
        "recv in --checkpoint 0s",
        2,
        &["--checkpoint", "longer than 0"],
    );
    fails("recv in --give-up 500ms", 2, &["--give-up", "1s"]);
    fails(
        &format!("{relay} --stats 0s"),
        2,
        &["--stats", "longer than 0"],
    );
    fails(&format!("{relay} --flows 0"), 2, &["--flows", "1.."]);
    fails(&format!("{relay} --mtu 1000"), 2, &["--mtu"]);
    fails(
        "emulate --listen :0 --to 127.0.0.1:0",
        2,
        &["--to", "port 0"],
    );
    let to_nobody = format!("send {} 127.0.0.1:0", place.file());
    fails(&to_nobody, 2, &["127.0.0.1:0", "port 0"]);
    fails("sim x.toml --show", 2, &["--show"]);
    fails("sim x.toml --runs 0", 2, &["--runs", "1..=1000000"]);
    fails("sim x.toml --jobs 100000", 2, &["--jobs", "0..=1024"]);
    fails("sim --swarm 2 --show", 2, &["--show", "--swarm 1"]);
}

#[test]
fn a_negative_value_is_told_as_such() {
    for arguments in [
        "sim x.toml --runs -5",
        "sim x.toml --seed -1",
        "emulate --listen :0 --to 127.0.0.1:9 --delay -10ms",
        "emulate --listen :0 --to 127.0.0.1:9 --loss -2%",
        "send x 127.0.0.1:9 --rate -5mbit",
    ] {
        let value = arguments.rsplit("--").next().unwrap_or_default();
        fails(arguments, 2, &[value, "must not be negative"]);
    }
}

#[test]
fn an_emulator_whose_target_is_itself_is_refused() {
    let free = || {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.local_addr().unwrap().port()
    };
    for listen in ["", "127.0.0.1", "0.0.0.0"] {
        let port = free();
        let arguments = format!("emulate --listen {listen}:{port} --to 127.0.0.1:{port}");
        fails(&arguments, 2, &["--to", "--listen", "feed itself"]);
    }
}

#[test]
fn a_negative_number_is_refused_for_what_it_is() {
    let flags = [
        ("--mack", "-5"),
        ("--rate", "-5mbit"),
        ("--block", "-1,2"),
        ("--give-up", "-1s"),
    ];
    for (flag, value) in flags {
        let output = run(&format!("send x 127.0.0.1:9 {flag} {value}"));
        let said = said(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(flag) && said.contains(value), "{said}");
        assert!(!said.contains("to pass"), "the wrong hint: {said}");
    }
    fails(
        "emulate --listen :0 --to 127.0.0.1:9 --loss -5%",
        2,
        &["--loss", "-5%"],
    );
}

#[test]
fn a_flag_that_would_do_nothing_is_a_usage_error_that_says_where_it_belongs() {
    let place = Place::with(10);
    for mode in ["reliable", "nack-mack", "nack", "unreliable", "datagram"] {
        fails(
            &format!(
                "send {} 127.0.0.1:9 --mode {mode} --block 8,2",
                place.file()
            ),
            2,
            &["--block", "--mode quasi-reliable", mode],
        );
    }
    fails(
        &format!("send {} 127.0.0.1:9 --rate 0mbit", place.file()),
        2,
        &["--rate", "0"],
    );
}

#[test]
fn a_missing_directory_is_made_and_that_is_said() {
    let place = Place::with(10);
    let inbox = place.path("new");
    // The port is taken, so that the command ends by itself.
    let taken = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    fails(
        &format!("recv {} --listen {address}", inbox.display()),
        5,
        &["created the directory", "in use"],
    );
    assert!(inbox.is_dir());
}

#[test]
fn json_tells_of_a_failure_too() {
    let place = Place::with(10);
    let closed = std::net::UdpSocket::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let output = run(&format!("send {} {closed} --json", place.file()));
    let record: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(record["exit_code"], 3, "{record}");
    assert_eq!(record["name"], "file");
    let error = record["error"].as_str().unwrap();
    assert!(error.contains("port is closed"), "{record}");

    let output = run("send /no/such/file 127.0.0.1:9 --json");
    assert_eq!(said(&output), "", "stdout has said it");
    let record: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(record["exit_code"], 2, "{record}");

    let output = run("recv /no/such/dir --json");
    assert_eq!(said(&output), "", "stdout has said it");
    let record: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&record["kind"], &record["exit_code"]),
        (&"end".into(), &2.into())
    );
    assert!(record["error"].is_string(), "{record}");
}

#[test]
fn json_claims_nothing_that_its_end_cannot_know() {
    let place = Place::with(1_000_000);
    let mut receiver = receiver(&place, "");
    let to = receiver.address();
    let output = run(&format!("send {} {to} --rate 50mbit --json", place.file()));
    let sent: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(sent["error"].is_null() && sent["exit_code"] == 0, "{sent}");
    for field in [
        "wire_lost_tpdus",
        "residual_lost_tpdus",
        "recovered_fec_words_tpdus",
    ] {
        assert!(sent["wire"][field].is_null(), "{field}: {sent}");
    }
    let got = receiver.record();
    assert_eq!(got["wire"]["residual_lost_tpdus"], 0, "{got}");
    assert!(got["wire"]["recovered_arq_tpdus"].is_null(), "{got}");

    let arguments = format!("send {} {to} --rate 2mbit --name cut", place.file());
    let mut sender = Running::start(fulmar(&format!("{arguments} --json")));
    until("the transfer to begin", || {
        place.path("in/cut.fulmar-state").exists()
    });
    sender.signal(Signal::INT);
    let sent = sender.record();
    assert_eq!(sent["exit_code"], 130, "{sent}");
    assert_eq!(
        (&sent["size_bytes"], &sent["resumed_at_bytes"]),
        (&1_000_000.into(), &0.into())
    );
    assert!(sent["submitted_bytes"].as_u64().unwrap() > 0, "{sent}");
    assert!(
        sent["wire"]["sent_source_bytes"].as_u64().unwrap() > 0,
        "{sent}"
    );
    assert!(
        sent["delivered_bytes"].is_null(),
        "only the receiver knows: {sent}"
    );
    let got = receiver.record();
    assert_eq!(got["verdict"], "abandoned", "{got}");
    for counted in ["sent_control_bytes", "wire_lost_tpdus"] {
        assert!(got["wire"][counted].is_u64(), "{counted}: {got}");
    }
    assert!(
        got["wire"]["sent_control_bytes"].as_u64().unwrap() > 0,
        "it acknowledged: {got}"
    );
    for unknown in ["missing_range_count", "missing_ranges"] {
        assert!(got[unknown].is_null(), "{unknown}: {got}");
    }
    let missing = 1_000_000 - got["delivered_bytes"].as_u64().unwrap();
    assert_eq!(got["missing_bytes"].as_u64(), Some(missing), "{got}");
    assert!(missing > 0 && got["residual_loss"].is_null(), "{got}");
    assert!(
        got["error"]
            .as_str()
            .unwrap()
            .contains("ended the transfer"),
        "{got}"
    );
}

#[test]
fn a_datagram_receiver_claims_no_counters() {
    let place = Place::with(100_000);
    let mut receiver = receiver(&place, "");
    let to = receiver.address();
    run(&format!(
        "send {} {to} --rate 50mbit --mode datagram",
        place.file()
    ));
    let got = receiver.record();
    assert!(
        got["verdict"] == "complete" || got["verdict"] == "incomplete",
        "{got}"
    );
    for unknown in [
        "wire_lost_tpdus",
        "residual_lost_tpdus",
        "sent_source_bytes",
    ] {
        assert!(got["wire"][unknown].is_null(), "{unknown}: {got}");
    }
    assert!(got["missing_range_count"].is_u64(), "{got}");
}

#[test]
fn a_file_that_is_written_to_while_it_is_sent_fails_both_ends() {
    let change: [fn(&std::path::Path); 2] = [
        |path| {
            let mut file = std::fs::File::options().append(true).open(path).unwrap();
            std::io::Write::write_all(&mut file, b"more").unwrap();
        },
        |path| {
            let file = std::fs::File::options().write(true).open(path).unwrap();
            file.set_len(2_900_000).unwrap();
        },
    ];
    for change in change {
        // More than the send buffer of four seconds: the rest is still to be read.
        let place = Place::with(3_000_000);
        let mut receiver = receiver(&place, "--once --checkpoint 100ms");
        let to = receiver.address();
        let arguments = format!("send {} {to} --rate 4mbit", place.file());
        let mut sender = Running::start(fulmar(&arguments));
        until("the transfer to begin", || {
            place.path("in/file.fulmar-state").exists()
        });
        change(&place.path("file"));
        let (status, said) = sender.end();
        assert_eq!(status.code(), Some(1), "{said}");
        assert!(said.contains("was changed while it was sent"), "{said}");
        assert_eq!(receiver.record()["verdict"], "abandoned");
        assert_eq!(receiver.code(), Some(1));
        assert!(!place.path("in/file").exists());
    }
}

#[test]
fn a_symbolic_link_in_a_working_files_place_is_refused_and_not_followed() {
    let place = Place::with(1_000);
    std::fs::write(place.path("victim"), "precious").unwrap();
    std::os::unix::fs::symlink(place.path("victim"), place.path("in/file.fulmar-part")).unwrap();
    let mut receiver = receiver(&place, "--once");
    let arguments = format!("send {} {}", place.file(), receiver.address());
    fails(&arguments, 1, &["the receiver refuses", "symbolic link"]);
    let told = receiver.record();
    assert!(
        told["error"].as_str().unwrap().contains("file.fulmar-part"),
        "{told}"
    );
    assert_eq!(receiver.code(), Some(5));
    assert_eq!(processes::read(&place.path("victim")), b"precious");
}

#[test]
fn a_refusal_does_not_tell_the_sender_where_the_receiver_keeps_its_files() {
    let place = Place::with(1_000);
    std::fs::write(place.path("in/file"), "precious").unwrap();
    let mut receiver = receiver(&place, "");
    let output = run(&format!(
        "send {} {} --name file",
        place.file(),
        receiver.address()
    ));
    let said = said(&output);
    assert!(said.contains("file exists there"), "{said}");
    assert!(!said.contains(&place.inbox()), "{said}");
}

#[test]
fn an_emulator_whose_records_nobody_reads_any_more_ends() {
    let mut command = fulmar("emulate --listen 127.0.0.1:0 --to 127.0.0.1:9 --stats 10ms --json");
    let mut link = command.stdout(Stdio::piped()).spawn().unwrap();
    drop(link.stdout.take());
    let mut status = None;
    until("the link to end", || {
        status = link.try_wait().unwrap();
        status.is_some()
    });
    assert_eq!(status.unwrap().code(), Some(0));
}

#[test]
fn a_wrong_end_of_a_tun_link_is_a_usage_error() {
    fails("emulate --tun c=x", 2, &["--tun", "a=NAMESPACE"]);
    fails("emulate --tun a=x:10.1", 2, &["--tun", "10.77.0.1/24"]);
    fails("emulate --tun a=x b=x", 2, &["--tun", "one namespace"]);
    fails("emulate --tun a=x a=y", 2, &["--tun", "twice"]);
    fails("emulate --tun --mtu 1000", 2, &["--mtu 1280", "IPv4"]);
    fails("emulate --tun --listen :1", 2, &["--tun", "--listen"]);
    fails(
        "emulate --tun a=x/name-of-16-chars",
        2,
        &["name-of-16-chars", "15"],
    );
    fails("emulate --to :1", 2, &["--listen"]);
}

#[test]
fn an_address_that_is_none_is_a_usage_error() {
    let place = Place::with(10);
    fails(
        &format!("send {} nowhere", place.file()),
        2,
        &["nowhere", "HOST:PORT"],
    );
    for text in ["127.0.0.1:99999", "127.0.0.1", ":x"] {
        fails(
            &format!("send {} {text}", place.file()),
            2,
            &[text, "HOST:PORT"],
        );
    }
    fails(
        &format!("send {} nosuch.invalid:4914", place.file()),
        2,
        &["no address is known for the host nosuch.invalid"],
    );
    fails(
        "emulate --listen 1.2.3 --to 127.0.0.1:9",
        2,
        &["--listen", "1.2.3"],
    );
}

#[test]
fn a_file_that_cannot_be_read_is_a_usage_error_that_names_it() {
    fails(
        "send /no/such/file 127.0.0.1:9",
        2,
        &["/no/such/file", "No such file"],
    );
    fails(
        "send /tmp 127.0.0.1:9",
        2,
        &[
            "directory",
            "tar c /tmp | fulmar send - 127.0.0.1:9 --name tmp.tar",
        ],
    );
    fails(
        "send . 127.0.0.1:9",
        2,
        &["tar c . | fulmar send -", "--name cli.tar"],
    );
    fails("recv /no/such/dir", 2, &["/no/such/dir", "mkdir -p"]);
    fails(
        "demo --file /no/such/file --out /tmp/fulmar-test-none",
        2,
        &["/no/such/file"],
    );
}

#[test]
fn a_name_that_would_leave_the_directory_is_refused_before_anything_is_sent() {
    let place = Place::with(10);
    fails(
        &format!("send {} 127.0.0.1:9 --name ../evil", place.file()),
        2,
        &["../evil", "separator"],
    );
}

#[test]
fn a_port_in_use_is_a_device_error() {
    let place = Place::with(10);
    let taken = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let words = [address.to_string(), "in use".to_owned()];
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    fails(
        &format!("recv {} --listen {address}", place.inbox()),
        5,
        &words,
    );
    fails(
        &format!("emulate --listen {address} --to 127.0.0.1:9"),
        5,
        &words,
    );
}

#[test]
fn nobody_listening_is_unreachable() {
    let place = Place::with(10);
    let closed = std::net::UdpSocket::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    fails(
        &format!("send {} {closed}", place.file()),
        3,
        &["nobody answers", "the port is closed", "fulmar recv"],
    );
}

#[test]
fn a_peer_that_listens_and_never_answers_is_unreachable() {
    let place = Place::with(10);
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let to = silent.local_addr().unwrap();
    let arguments = format!("send {} {to} --connect-timeout 500ms", place.file());
    fails(&arguments, 3, &["nobody answers", "silence for 500ms"]);
}

#[test]
fn a_receiver_that_vanishes_is_a_lost_link() {
    let place = Place::with(1_000_000);
    let mut receiver = receiver(&place, "");
    let to = receiver.address();
    let arguments = format!("send {} {to} --rate 2mbit --give-up 1s", place.file());
    let mut sender = Running::start(fulmar(&arguments));
    until("the transfer to begin", || {
        place.path("in/file.fulmar-state").exists()
    });
    // Stopped rather than killed: its port stays open, and nothing answers.
    receiver.signal(Signal::STOP);
    let (status, said) = sender.end();
    assert_eq!(status.code(), Some(4), "{said}");
    assert!(said.contains("not heard for 1s"), "{said}");
}

#[test]
fn a_sender_that_vanishes_is_a_lost_link() {
    let place = Place::with(1_000_000);
    let mut receiver = receiver(&place, "--once --give-up 1s");
    let to = receiver.address();
    let sender = Running::start(fulmar(&format!("send {} {to} --rate 2mbit", place.file())));
    until("the transfer to begin", || {
        place.path("in/file.fulmar-state").exists()
    });
    sender.signal(Signal::KILL);
    assert_eq!(receiver.record()["verdict"], "vanished");
    assert_eq!(receiver.code(), Some(4));
}

#[test]
fn a_full_disk_fails_both_ends_in_one_line() {
    let place = Place::with(500_000);
    // The limit on file sizes stands in for the disk: it needs no privilege.
    let shell = format!(
        "trap '' XFSZ; ulimit -f 200; exec {} recv {} --listen 127.0.0.1:0 --json --once",
        assert_cmd::cargo::cargo_bin!("fulmar").display(),
        place.inbox()
    );
    let mut command = Command::new("sh");
    command.args(["-c", &shell]).stdin(Stdio::null());
    let mut receiver = Running::start(command);
    let to = receiver.address();
    let arguments = format!("send {} {to} --rate 100mbit", place.file());
    fails(
        &arguments,
        1,
        &["the receiver refuses", "writing", "File too large"],
    );
    let told = receiver.record();
    let error = told["error"].as_str().unwrap();
    assert!(
        error.contains("file.fulmar-part") && error.contains("too large"),
        "{told}"
    );
    assert_eq!(receiver.code(), Some(5));
    let left: Vec<_> = std::fs::read_dir(place.path("in")).unwrap().collect();
    assert!(
        left.is_empty(),
        "what no state vouches for fills the disk: {left:?}"
    );
}

#[test]
fn a_full_disk_behind_stdout_fails_both_ends() {
    let place = Place::with(500_000);
    let port = std::net::UdpSocket::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let mut command = fulmar(&format!("recv - --listen {port}"));
    command
        .stdout(std::fs::File::create("/dev/full").unwrap())
        .stderr(Stdio::piped());
    let receiver = command.spawn().unwrap();
    let arguments = format!("send {} {port} --rate 100mbit", place.file());
    fails(&arguments, 1, &["the receiver refuses", "No space left"]);
    let output = receiver.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(5), "{}", said(&output));
}

#[test]
fn an_existing_file_is_refused_unless_forced() {
    let place = Place::with(1_000);
    std::fs::write(place.path("in/file"), "precious").unwrap();
    let mut careful = receiver(&place, "");
    let arguments = format!("send {} {}", place.file(), careful.address());
    fails(&arguments, 1, &["the receiver refuses", "--force"]);
    assert_eq!(place.arrived(), b"precious");
    let mut forced = receiver(&place, "--once --force");
    let output = run(&format!("send {} {}", place.file(), forced.address()));
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert_eq!(forced.code(), Some(0));
    assert_eq!(place.arrived(), place.octets);
}

#[test]
fn signals_end_every_command_with_their_code() {
    let place = Place::with(1_000_000);
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let mut link = Running::start(fulmar("emulate --listen 127.0.0.1:0 --to 127.0.0.1:9"));
        link.address();
        link.signal(signal);
        let last = link.record();
        assert_eq!(last["kind"], "end", "{last}");
        assert!(
            last["lateness_mean_s"].is_null(),
            "nothing has no mean: {last}"
        );
        assert_eq!(link.code(), Some(code));

        let mut receiver = receiver(&place, "");
        let to = receiver.address();
        let mut sender =
            Running::start(fulmar(&format!("send {} {to} --rate 1mbit", place.file())));
        until("the transfer to begin", || {
            place.path("in/file.fulmar-part").exists()
        });
        sender.signal(signal);
        assert_eq!(sender.code(), Some(code));
        assert_eq!(receiver.record()["verdict"], "abandoned");
        receiver.signal(signal);
        assert_eq!(receiver.code(), Some(code));
        std::fs::remove_file(place.path("in/file.fulmar-part")).unwrap();
        // There is none if nothing had arrived.
        drop(std::fs::remove_file(place.path("in/file.fulmar-state")));
    }
}

#[test]
fn the_help_of_every_command_has_exit_codes_and_examples() {
    for command in ["", "demo ", "emulate ", "recv ", "send ", "sim "] {
        for flag in ["-h", "--help"] {
            let output = run(&format!("{command}{flag}"));
            assert_eq!(output.status.code(), Some(0));
            let help = String::from_utf8(output.stdout).unwrap();
            let words = [
                "0 done",
                "1 the run",
                "2 usage",
                "3 peer",
                "4 link",
                "5 perm",
                "130",
                "143",
            ];
            for word in words {
                assert!(help.contains(word), "no {word:?} in {help}");
            }
            assert!(command.is_empty() || help.contains("Examples:"), "{help}");
        }
    }
}
