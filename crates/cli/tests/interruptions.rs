//! An end that is interrupted tells the other end, and nobody waits for data that will not come.
//!
//! Method: sender and receiver as processes on the loopback; signals and second senders while a
//! transfer is in its middle.

use crate::processes::{Place, Running, free_port, fulmar, receiver, run, said, until};
use rustix::process::Signal;

/// A rate slow enough that every event finds the transfer in its middle.
const SLOW: &str = "--rate 6mbit";

fn until_something_is_durable(place: &Place) {
    until("a checkpoint", || {
        place.path("in/file.fulmar-state").exists()
    });
}

#[test]
fn a_second_sender_of_the_same_name_is_refused_while_the_first_lives() {
    let place = Place::with(1_500_000);
    let mut receiver = receiver(&place, "--once --checkpoint 100ms");
    let to = receiver.address();
    let mut first = Running::start(fulmar(&format!("send {} {to} {SLOW}", place.file())));
    until_something_is_durable(&place);
    let other = Place::with(1_000);
    let second = run(&format!("send {} {to} {SLOW} --name file", other.file()));
    let said = said(&second);
    assert_eq!(second.status.code(), Some(1), "{said}");
    assert!(
        said.contains("another sender is sending \"file\""),
        "{said}"
    );
    // The first line says that the transfer is not secured.
    assert_eq!(said.lines().count(), 2, "{said}");
    assert_eq!(first.code(), Some(0));
    assert_eq!(receiver.code(), Some(0), "it waited for the first");
    assert!(place.arrived() == place.octets);
}

#[test]
fn a_receiver_that_is_stopped_tells_its_sender_which_ends_at_once() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let place = Place::with(1_500_000);
        let mut receiver = receiver(&place, "--checkpoint 100ms");
        let to = receiver.address();
        // `--give-up` is longer than the test: only a sender that is told ends in time.
        let arguments = format!("send {} {to} {SLOW} --give-up 300s", place.file());
        let mut sender = Running::start(fulmar(&arguments));
        until_something_is_durable(&place);
        receiver.signal(signal);
        assert_eq!(receiver.record()["verdict"], "stopped");
        assert_eq!(receiver.code(), Some(code));
        let (status, said) = sender.end();
        assert_eq!(status.code(), Some(1), "{said}");
        assert!(said.contains("the receiver was stopped"), "{said}");
        // The first line says that the transfer is not secured.
        assert_eq!(said.lines().count(), 2, "{said}");
        assert!(
            place.path("in/file.fulmar-part").exists(),
            "what arrived is kept"
        );
    }
}

#[test]
fn a_report_survives_a_signal_right_after_the_transfer() {
    for (mode, complaint) in [("unreliable", "missing"), ("reliable", "verified")] {
        let place = Place::with(300_000);
        let inbox = place.inbox();
        let at = format!("127.0.0.1:{}", free_port());
        let mut receiver = Running::start(fulmar(&format!("recv {inbox} --listen {at}")));
        let link = format!("emulate --listen 127.0.0.1:0 --to {at}");
        let mut link = Running::start(fulmar(&format!("{link} --rate 20mbit --up-loss 10%")));
        let to = link.address();
        run(&format!(
            "send {} {to} --rate 15mbit --mode {mode}",
            place.file()
        ));
        receiver.signal(Signal::TERM);
        let (status, said) = receiver.end();
        assert_eq!(status.code(), Some(143), "{said}");
        assert!(said.contains(complaint), "{mode}: {said:?}");
    }
}
