//! What goes wrong is said in one clear line, with the documented exit code.
//!
//! Method: the binary from outside. Every case names the code it expects and a word that the line
//! must contain: the flag, the file or the remedy.

mod processes;

use processes::{Place, Running, fulmar, receiver, run, said, until};
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
fn an_address_that_is_none_is_a_usage_error() {
    let place = Place::with(10);
    fails(
        &format!("send {} nowhere", place.file()),
        2,
        &["nowhere", "HOST:PORT"],
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
    fails("send /tmp 127.0.0.1:9", 2, &["/tmp", "directory"]);
    fails("recv /no/such/dir", 2, &["/no/such/dir"]);
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
        &["nobody answers"],
    );
}

#[test]
fn a_peer_that_listens_and_never_answers_is_unreachable() {
    let place = Place::with(10);
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let to = silent.local_addr().unwrap();
    let arguments = format!("send {} {to} --connect-timeout 500ms", place.file());
    fails(&arguments, 3, &["nobody answers"]);
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
    let (status, said) = receiver.end();
    assert_eq!(status.code(), Some(5), "{said}");
    assert!(
        said.contains("file.fulmar-part") && said.contains("too large"),
        "{said}"
    );
    assert!(!place.path("in/file").exists());
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
