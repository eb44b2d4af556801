//! Messages: in time or not at all, urgent ones first.

use crate::link::{PATIENCE, octets, pair};
use fulmar::{Config, Endpoint, Priority};
use fulmar_net::clock::Clock;
use fulmar_proto::units::{Duration, Instant};
use std::io::ErrorKind;
use std::net::UdpSocket;

#[test]
fn messages_of_all_lengths_arrive_whole_and_in_order_over_loss_and_are_answered() {
    let (link, server, client, key) = pair(0.2);
    let listener = server.listen().unwrap();
    let messages = client.messages(link.address, &key.public()).unwrap();
    let lens = [0, 1, 100, 1_200, 5_000, 65_536];
    for len in lens {
        messages.send(&octets(len), PATIENCE, Priority(0)).unwrap();
    }
    let other = listener.accept_messages(Some(PATIENCE)).unwrap();
    assert!(other.peer().is_some());
    for len in lens {
        let message = other.receive(Some(PATIENCE)).unwrap();
        assert!(message == Some(octets(len)), "{len}");
    }
    // With a priority that the caller has not used.
    other.send(b"thanks", PATIENCE, Priority(5)).unwrap();
    assert_eq!(
        messages.receive(Some(PATIENCE)).unwrap(),
        Some(b"thanks".to_vec())
    );
    messages.finish().unwrap();
    assert_eq!(
        other.receive(Some(PATIENCE)).unwrap(),
        None,
        "the peer has finished"
    );
    let error = messages.send(b"more", PATIENCE, Priority(0)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::BrokenPipe, "{error}");
}

#[test]
fn what_is_over_before_there_is_a_session_is_never_delivered() {
    let (link, server, client, key) = pair(0.0);
    let listener = server.listen().unwrap();
    let messages = client.messages(link.address, &key.public()).unwrap();
    messages
        .send(b"too late", Duration::from_micros(1), Priority(0))
        .unwrap();
    messages.send(b"in time", PATIENCE, Priority(0)).unwrap();
    let other = listener.accept_messages(Some(PATIENCE)).unwrap();
    assert_eq!(
        other.receive(Some(PATIENCE)).unwrap(),
        Some(b"in time".to_vec())
    );
    messages.finish().unwrap();
    assert_eq!(other.receive(Some(PATIENCE)).unwrap(), None);
    assert_eq!(
        (messages.expired().here, other.expired().arrived_late),
        (1, 0)
    );
}

#[test]
fn what_was_not_taken_in_time_is_not_delivered() {
    let (link, server, client, key) = pair(0.0);
    let listener = server.listen().unwrap();
    let messages = client.messages(link.address, &key.public()).unwrap();
    let short = Duration::from_millis(200);
    messages.send(b"anybody?", PATIENCE, Priority(0)).unwrap();
    let other = listener.accept_messages(Some(PATIENCE)).unwrap();
    assert!(other.receive(Some(PATIENCE)).unwrap().is_some());
    let clock = Clock::start();
    messages.send(b"short", short, Priority(0)).unwrap();
    messages.send(b"long", PATIENCE, Priority(0)).unwrap();
    // Its deadline passes, wherever it is, while nobody receives: the link takes 5 ms for each of these. By two clocks that nobody has set
    // a message is late by what it takes above the quickest one, so the way itself comes on top.
    let way = Duration::from_millis(5);
    while clock.now() <= Instant::START + short + way + way {
        other.send(b"wait", PATIENCE, Priority(0)).unwrap();
        assert!(messages.receive(Some(PATIENCE)).unwrap().is_some());
    }
    assert_eq!(
        other.receive(Some(PATIENCE)).unwrap(),
        Some(b"long".to_vec())
    );
    let (here, there) = (messages.expired().here, other.expired().arrived_late);
    assert_eq!(here + there, 1);
}

#[test]
fn messages_for_a_handle_that_was_dropped_are_refused_whatever_their_priority() {
    for later in [0, 5] {
        let (link, server, client, key) = pair(0.0);
        let listener = server.listen().unwrap();
        let messages = client.messages(link.address, &key.public()).unwrap();
        messages.send(b"hello", PATIENCE, Priority(0)).unwrap();
        let other = listener.accept_messages(Some(PATIENCE)).unwrap();
        assert!(other.receive(Some(PATIENCE)).unwrap().is_some());
        drop(other);
        let more = octets(65_536);
        let mut refused =
            (0..1_000).filter_map(|_| messages.send(&more, PATIENCE, Priority(later)).err());
        let error = refused.next().expect("nobody wants them");
        assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}");
        let nobody = listener.accept_messages(Some(Duration::ZERO));
        assert_eq!(nobody.unwrap_err().kind(), ErrorKind::TimedOut);
    }
}

#[test]
fn a_further_priority_of_accepted_messages_needs_no_listener_and_other_messages_do() {
    let (link, server, client, key) = pair(0.0);
    let listener = server.listen().unwrap();
    let messages = client.messages(link.address, &key.public()).unwrap();
    messages.send(b"first", PATIENCE, Priority(1)).unwrap();
    let other = listener.accept_messages(Some(PATIENCE)).unwrap();
    drop(listener);
    assert_eq!(other.receive(Some(PATIENCE)).unwrap().unwrap(), b"first");
    messages.send(b"second", PATIENCE, Priority(5)).unwrap();
    assert_eq!(other.receive(Some(PATIENCE)).unwrap().unwrap(), b"second");

    let nobody_s = client.messages(link.address, &key.public()).unwrap();
    let mut refused =
        (0..1_000).filter_map(|_| nobody_s.send(&octets(65_536), PATIENCE, Priority(0)).err());
    assert_eq!(
        refused.next().expect("nobody listens").kind(),
        ErrorKind::ConnectionReset
    );
    messages.send(b"third", PATIENCE, Priority(5)).unwrap();
    assert_eq!(other.receive(Some(PATIENCE)).unwrap().unwrap(), b"third");
}

#[test]
fn the_end_waits_for_the_messages_of_each_priority() {
    let (link, server, client, key) = pair(0.2);
    let listener = server.listen().unwrap();
    let messages = client.messages(link.address, &key.public()).unwrap();
    for priority in 0..8 {
        let content = octets(3_000);
        messages
            .send(&content, PATIENCE, Priority(priority))
            .unwrap();
    }
    drop(messages);
    let other = listener.accept_messages(Some(PATIENCE)).unwrap();
    let mut came = 0;
    while other.receive(Some(PATIENCE)).unwrap().is_some() {
        came += 1;
    }
    assert_eq!(came, 8);
}

#[test]
fn an_urgent_message_overtakes_those_that_wait() {
    let (link, server, client, key) = pair(0.0);
    let listener = server.listen().unwrap();
    let messages = client.messages(link.address, &key.public()).unwrap();
    // More than the transport takes at once: 0.1 s of the link.
    for _ in 0..10 {
        messages
            .send(&octets(65_536), PATIENCE, Priority(1))
            .unwrap();
    }
    messages.send(b"urgent", PATIENCE, Priority(7)).unwrap();
    let other = listener.accept_messages(Some(PATIENCE)).unwrap();
    let came = (0..11).map(|_| other.receive(Some(PATIENCE)).unwrap().unwrap());
    let place = came.map(|message| message.len()).position(|len| len == 6);
    assert!(place.is_some_and(|place| place < 10), "{place:?}");
}

#[test]
fn limits_are_said() {
    let (link, _server, client, key) = pair(0.0);
    let messages = client.messages(link.address, &key.public()).unwrap();
    let send = |len, deadline, priority| messages.send(&octets(len), deadline, Priority(priority));
    for refused in [
        send(65_537, PATIENCE, 0),
        send(1, Duration::from_secs(1_801), 0),
    ] {
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::InvalidInput);
    }
    for priority in 1..8 {
        send(1, PATIENCE, priority).unwrap();
    }
    assert_eq!(
        send(1, PATIENCE, 8).unwrap_err().kind(),
        ErrorKind::InvalidInput
    );
}

#[test]
fn messages_that_end_before_they_can_leave_make_room_for_one_that_waits() {
    // Hears everything and answers nothing.
    let nobody = UdpSocket::bind("127.0.0.1:0").unwrap();
    let config = Config::insecure_for_tests().connect_timeout(10 * PATIENCE);
    let end = Endpoint::bind("127.0.0.1:0", config).unwrap();
    let messages = end.messages(nobody.local_addr().unwrap(), None).unwrap();
    messages.set_nonblocking(true);
    let send = |lifetime| messages.send(&octets(65_536), lifetime, Priority(0));
    while send(Duration::from_millis(500)).is_ok() {}
    messages.set_nonblocking(false);
    // One at most has left the queue meanwhile, for a connection that takes nothing.
    for _ in 0..3 {
        send(PATIENCE).expect("the first of them are over");
    }
    assert!(messages.expired().here > 0);
}
