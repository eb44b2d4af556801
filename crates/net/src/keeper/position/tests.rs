//! The positions that the kernel's counters give, in every state that a connection can be found in.

use super::*;
use fulmar_proto::splice::Role;
use fulmar_proto::units::Instant;
use socket2::SockRef;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::time::Duration;

/// A connection: the side that connected, the side that accepted, and the baselines of both.
struct Pair {
    opener: TcpStream,
    acceptor: TcpStream,
    opener_base: Baseline,
    acceptor_base: Baseline,
}

fn pair(address: &str) -> Pair {
    let listener = TcpListener::bind((address, 0)).unwrap();
    let opener = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let acceptor = listener.accept().unwrap().0;
    Pair {
        opener_base: Baseline::of(&opener, Role::Acceptor).unwrap(),
        acceptor_base: Baseline::of(&acceptor, Role::Opener).unwrap(),
        opener,
        acceptor,
    }
}

impl Pair {
    fn opener(&self) -> Position {
        self.opener_base.position(&self.opener).unwrap()
    }

    fn acceptor(&self) -> Position {
        self.acceptor_base.position(&self.acceptor).unwrap()
    }
}

/// Waits until the kernel has carried everything: the condition is the test's, not a time.
fn until(mut condition: impl FnMut() -> bool) {
    let clock = crate::clock::Clock::start();
    while !condition() {
        assert!(
            clock.now() < Instant::START + Duration::from_secs(60),
            "it never came"
        );
        std::thread::yield_now();
    }
}

#[test]
fn octets_are_counted_from_both_sides_and_a_syn_is_none() {
    for address in ["127.0.0.1", "::1"] {
        let mut pair = pair(address);
        assert_eq!(pair.opener_base, Baseline::fresh(Role::Acceptor));
        assert_eq!(pair.acceptor_base, Baseline::fresh(Role::Opener));
        pair.opener.write_all(&[1; 1000]).unwrap();
        pair.acceptor.write_all(&[2; 77]).unwrap();
        pair.acceptor.read_exact(&mut [0; 300]).unwrap();
        until(|| pair.opener().acknowledged == 1000 && pair.acceptor().acknowledged == 77);
        let (opener, acceptor) = (pair.opener(), pair.acceptor());
        assert_eq!((opener.given, opener.taken, opener.unread), (1000, 0, 77));
        assert_eq!(
            (acceptor.given, acceptor.taken, acceptor.unread),
            (77, 300, 700)
        );
        assert!(!opener.end_sent && !opener.end_received && !opener.closed);
    }
}

#[test]
fn what_the_flow_begins_behind_is_told_apart_from_its_own_octets() {
    let mut pair = pair("127.0.0.1");
    pair.opener.write_all(b"greeting, request, own").unwrap();
    until(|| pair.acceptor().unread == 22);
    pair.acceptor.read_exact(&mut [0; 10]).unwrap();
    pair.acceptor_base.taken = 19;
    for (read, taken, ahead) in [(0, 0, 9), (6, 0, 3), (3, 0, 0), (1, 1, 0)] {
        pair.acceptor.read_exact(&mut vec![0; read]).unwrap();
        let acceptor = pair.acceptor();
        assert_eq!((acceptor.taken, acceptor.ahead), (taken, ahead));
    }
}

#[test]
fn what_was_said_before_the_flow_began_does_not_count() {
    let mut pair = pair("127.0.0.1");
    pair.opener.write_all(b"connect me, please").unwrap();
    pair.acceptor.read_exact(&mut [0; 11]).unwrap();
    pair.acceptor.write_all(b"well").unwrap();
    pair.acceptor_base = Baseline::of(&pair.acceptor, Role::Opener).unwrap();
    pair.acceptor.write_all(b"granted").unwrap();
    until(|| pair.acceptor().acknowledged == 7);
    let acceptor = pair.acceptor();
    assert_eq!((acceptor.taken, acceptor.unread, acceptor.given), (0, 7, 7));
    pair.acceptor.read_exact(&mut [0; 7]).unwrap();
    pair.acceptor.shutdown(Shutdown::Write).unwrap();
    pair.opener.shutdown(Shutdown::Write).unwrap();
    until(|| pair.acceptor().closed);
    let acceptor = pair.acceptor();
    assert_eq!(
        (acceptor.taken, acceptor.given, acceptor.acknowledged),
        (7, 7, 7)
    );
}

#[test]
fn octets_that_the_windows_hold_back_are_given_and_not_acknowledged() {
    let mut pair = pair("127.0.0.1");
    pair.opener.set_nonblocking(true).unwrap();
    let octets = vec![3; 100_000];
    let mut written = 0;
    while let Ok(len) = pair.opener.write(&octets) {
        written += len as u64;
    }
    until(|| pair.acceptor().unread == pair.opener().acknowledged);
    let opener = pair.opener();
    assert_eq!(opener.given, written);
    assert!(
        opener.acknowledged < written,
        "nobody reads, so something waits here"
    );
    pair.acceptor.read_exact(&mut vec![0; 12_345]).unwrap();
    assert_eq!(pair.acceptor().taken, 12_345);
    // Its end queues behind, and is no octet.
    pair.opener.shutdown(Shutdown::Write).unwrap();
    let opener = pair.opener();
    assert_eq!((opener.given, opener.end_sent), (written, true));
    pair.acceptor.read_to_end(&mut Vec::new()).unwrap();
    until(|| pair.opener().acknowledged == written);
    assert_eq!(pair.opener().given, written);
    assert_eq!(
        (pair.acceptor().taken, pair.acceptor().end_received),
        (written, true)
    );
}

#[test]
fn an_end_is_no_octet_whether_unread_half_read_or_read() {
    let mut pair = pair("127.0.0.1");
    pair.opener.write_all(&[4; 10]).unwrap();
    pair.opener.shutdown(Shutdown::Write).unwrap();
    until(|| pair.acceptor().end_received && pair.opener().acknowledged == 10);
    let acceptor = pair.acceptor();
    assert_eq!((acceptor.taken, acceptor.unread), (0, 10));
    // The kernel takes the end together with the octet before it.
    for (len, taken) in [(4, 4), (6, 10), (1, 10)] {
        let mut octets = [0; 10];
        let read = pair.acceptor.read(&mut octets[..len]).unwrap();
        let acceptor = pair.acceptor();
        assert_eq!(
            (acceptor.taken, acceptor.unread),
            (taken, 10 - taken),
            "{read}"
        );
    }
    assert_eq!(pair.opener().given, 10);
    assert!(pair.opener().end_sent);
}

#[test]
fn a_bare_end_is_no_octet() {
    let mut pair = pair("127.0.0.1");
    pair.opener.shutdown(Shutdown::Write).unwrap();
    until(|| pair.acceptor().end_received);
    assert_eq!((pair.acceptor().taken, pair.acceptor().unread), (0, 0));
    assert_eq!(pair.acceptor.read(&mut [0; 1]).unwrap(), 0);
    assert_eq!((pair.acceptor().taken, pair.opener().given), (0, 0));
    assert_eq!(pair.opener().acknowledged, 0);
}

#[test]
fn a_connection_that_ended_well_keeps_its_counts_and_its_unread_octets() {
    // Each order of the two ends leaves another way through the states.
    for opener_first in [true, false] {
        let mut pair = pair("127.0.0.1");
        pair.opener.write_all(&[5; 500]).unwrap();
        pair.acceptor.write_all(&[6; 300]).unwrap();
        pair.opener.read_exact(&mut [0; 100]).unwrap();
        let (first, second) = if opener_first {
            (&pair.opener, &pair.acceptor)
        } else {
            (&pair.acceptor, &pair.opener)
        };
        first.shutdown(Shutdown::Write).unwrap();
        second.shutdown(Shutdown::Write).unwrap();
        until(|| pair.opener().closed && pair.acceptor().closed);
        let expected = Position {
            taken: 100,
            ahead: 0,
            unread: 200,
            given: 500,
            acknowledged: 500,
            end_sent: true,
            end_received: true,
            closed: true,
        };
        assert_eq!(pair.opener(), expected);
        assert_eq!((pair.acceptor().given, pair.acceptor().taken), (300, 0));
        let mut rest = Vec::new();
        pair.opener.read_to_end(&mut rest).unwrap();
        assert_eq!(rest, [6; 200]);
        assert_eq!(
            pair.opener(),
            Position {
                taken: 300,
                unread: 0,
                ..expected
            }
        );
    }
}

#[test]
fn both_ends_at_once_are_counted_too() {
    let pair = pair("127.0.0.1");
    // If the scheduler is kind, neither end has been acknowledged when the other one is sent. Either way the
    // counts are the same.
    pair.opener.shutdown(Shutdown::Write).unwrap();
    pair.acceptor.shutdown(Shutdown::Write).unwrap();
    until(|| pair.opener().closed || pair.acceptor().closed);
    for position in [pair.opener(), pair.acceptor()] {
        assert_eq!(
            (position.given, position.taken, position.acknowledged),
            (0, 0, 0)
        );
    }
}

#[test]
fn a_reset_connection_says_that_it_is_closed() {
    let mut pair = pair("127.0.0.1");
    pair.opener.write_all(&[7; 40]).unwrap();
    until(|| pair.opener().acknowledged == 40);
    SockRef::from(&pair.acceptor)
        .set_linger(Some(Duration::ZERO))
        .unwrap();
    drop(pair.acceptor);
    until(|| pair.opener_base.position(&pair.opener).unwrap().closed);
    let opener = pair.opener_base.position(&pair.opener).unwrap();
    assert_eq!((opener.given, opener.end_sent), (40, false));
}

#[test]
fn counts_are_exact_while_both_sides_are_busy() {
    let mut pair = pair("127.0.0.1");
    let mut far = pair.acceptor.try_clone().unwrap();
    let reader = std::thread::spawn(move || {
        let mut octets = vec![0; 7001];
        while far.read(&mut octets).unwrap() > 0 {}
    });
    for round in 1..=2000_u64 {
        pair.opener.write_all(&[8; 3001]).unwrap();
        assert_eq!(pair.opener().given, round * 3001);
    }
    pair.opener.shutdown(Shutdown::Write).unwrap();
    reader.join().unwrap();
    assert_eq!(pair.acceptor().taken, 2000 * 3001);
}
