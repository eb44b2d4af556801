//! The other end, and the way to it.

use super::fails;
use crate::processes::{Place, Running, free_port, fulmar, receiver, until};
use rustix::process::Signal;
use std::fs::File;

#[test]
fn a_port_in_use_is_a_device_error() {
    let place = Place::with(10);
    let taken = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let cure = "ss -ulpn names it".to_owned();
    let words = [address.to_string(), "in use".to_owned(), cure];
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
    let closed = format!("127.0.0.1:{}", free_port());
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

/// The output of `send` when its receiver falls silent in the middle of the file.
fn said_of_a_silent_receiver(flags: &str, from_pipe: bool) -> String {
    let place = Place::with(1_000_000);
    let mut receiver = receiver(&place, "--checkpoint 100ms");
    let to = receiver.address();
    let file = place.file();
    let what = if from_pipe { "- --name file" } else { &file };
    let mut command = fulmar(&format!(
        "send {what} {to} --rate 2mbit --give-up 1s {flags}"
    ));
    if from_pipe {
        command.stdin(File::open(&file).expect("the file was written"));
    }
    let mut sender = Running::start(command);
    until("the transfer to begin", || {
        let part = std::fs::metadata(place.path("in/file.fulmar-part"));
        part.is_ok_and(|part| part.len() > 0)
    });
    // Stopped rather than killed: its port stays open, and nothing answers.
    receiver.signal(Signal::STOP);
    let (status, said) = sender.end();
    assert_eq!(status.code(), Some(4), "{said}");
    assert!(said.contains("not heard for 1s"), "{said}");
    said
}

#[test]
fn a_receiver_that_vanishes_is_a_lost_link_and_the_sender_says_how_to_go_on() {
    for (flags, from_pipe, advice) in [
        (
            "",
            false,
            "send it again to continue where it was cut off, or with --wait",
        ),
        ("--mode unreliable", false, "in this mode it begins anew"),
        ("", true, "a pipe cannot be continued"),
    ] {
        let said = said_of_a_silent_receiver(flags, from_pipe);
        assert!(said.contains(advice), "{flags}: {said}");
    }
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
    let record = receiver.record();
    assert_eq!(record["verdict"], "vanished");
    let error = record["error"].as_str().expect("text");
    assert!(
        error.contains("one that starts again continues there"),
        "{error}"
    );
    assert_eq!(receiver.code(), Some(4));
}
