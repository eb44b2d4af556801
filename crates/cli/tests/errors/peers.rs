//! The other end, and the way to it.

use super::fails;
use crate::processes::{Place, Running, fulmar, receiver, until};
use rustix::process::Signal;

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
