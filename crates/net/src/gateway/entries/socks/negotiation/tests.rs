//! A negotiation that is broken off after any of its steps, and resumed from the kernel's counters.

use super::*;
use crate::clock::Clock;
use crate::keeper::Baseline;
use fulmar_proto::units::Instant;
use std::net::{Shutdown, TcpListener};
use std::time::Duration;

const GREETING: [u8; 4] = [5, 2, 0, 2];
const LOGIN: [u8; 9] = [1, 2, b'm', b'e', 4, b'p', b'a', b's', b's'];
const REQUEST: [u8; 10] = [5, 1, 0, 1, 127, 0, 0, 1, 0, 80];
const BEHIND: &[u8] = b"behind";

fn credentials() -> Credentials {
    Credentials {
        user: b"me".to_vec(),
        password: b"pass".to_vec(),
    }
}

/// A client, and its connection as a keeper has it.
fn connection() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (socket, _) = listener.accept().unwrap();
    socket.set_nonblocking(true).unwrap();
    (client, socket)
}

fn until(mut condition: impl FnMut() -> bool) {
    let clock = Clock::start();
    while !condition() {
        let patience = Instant::START + Duration::from_secs(60);
        assert!(clock.now() < patience, "it never came");
        std::thread::yield_now();
    }
}

fn unread(socket: &TcpStream) -> u64 {
    Baseline::default().position(socket).unwrap().unread
}

/// Sends octets, and waits until they have arrived.
fn send(client: &mut TcpStream, octets: &[u8], socket: &TcpStream) {
    let before = unread(socket);
    client.write_all(octets).unwrap();
    until(|| unread(socket) == before + octets.len() as u64);
}

/// A gateway after a kill: it has the connection, and the kernel's counters.
fn taken_up(socket: &TcpStream, credentials: Option<Credentials>) -> Option<Negotiation> {
    let stands = Baseline::default().position(socket).unwrap();
    let moved = Moved {
        taken: stands.taken,
        given: stands.given,
    };
    Negotiation::resumed(socket.try_clone().unwrap(), credentials, moved).ok()
}

/// Everything that was said to the client.
fn heard(mut client: TcpStream, socket: &TcpStream) -> Vec<u8> {
    kernel::finish(socket);
    let mut all = Vec::new();
    client.read_to_end(&mut all).unwrap();
    all
}

#[test]
fn a_client_is_served_though_each_of_its_octets_meets_another_gateway() {
    for login in [None, Some(credentials())] {
        let messages: &[&[u8]] = match login {
            None => &[&GREETING, &REQUEST, BEHIND],
            Some(_) => &[&GREETING, &LOGIN, &REQUEST, BEHIND],
        };
        let answers: &[u8] = match login {
            None => &[5, 0],
            Some(_) => &[5, 2, 1, 0],
        };
        let all = messages.concat();
        let asks_at = all.len() - BEHIND.len();
        let (mut client, socket) = connection();
        for (sent, octet) in (1..).zip(&all) {
            send(&mut client, &[*octet], &socket);
            let mut negotiation = taken_up(&socket, login.clone()).unwrap();
            match negotiation.advance() {
                Step::Wait => assert!(sent < asks_at, "{sent}"),
                Step::Asked(request, len) => {
                    assert!(sent >= asks_at, "{sent}");
                    assert_eq!(request.destination.port, 80);
                    assert_eq!(len, REQUEST.len());
                }
                Step::Failed(why) => panic!("{sent}: {why}"),
            }
        }
        // No octet behind the request, and not the request itself, has left the socket.
        assert_eq!(unread(&socket), (REQUEST.len() + BEHIND.len()) as u64);
        take_out(&socket, REQUEST.len()).unwrap();
        let mut behind = [0; 100];
        let len = (&socket).read(&mut behind).unwrap();
        assert_eq!(&behind[..len], BEHIND);
        assert_eq!(heard(client, &socket), answers);
    }
}

#[test]
fn an_answer_is_said_once_though_the_gateway_died_before_it_took_the_message() {
    for login in [None, Some(credentials())] {
        let wants_login = login.is_some();
        let (mut client, mut socket) = connection();
        send(&mut client, &GREETING, &socket);
        socket
            .write_all(&[5, if wants_login { 2 } else { 0 }])
            .unwrap();
        let mut negotiation = taken_up(&socket, login.clone()).unwrap();
        assert!(matches!(negotiation.advance(), Step::Wait));
        assert_eq!(unread(&socket), 0);
        if wants_login {
            send(&mut client, &LOGIN, &socket);
            socket.write_all(&[1, 0]).unwrap();
            let mut negotiation = taken_up(&socket, login.clone()).unwrap();
            assert!(matches!(negotiation.advance(), Step::Wait));
            assert_eq!(unread(&socket), 0);
        }
        send(&mut client, &REQUEST, &socket);
        let mut negotiation = taken_up(&socket, login).unwrap();
        assert!(matches!(negotiation.advance(), Step::Asked(..)));
        let said: &[u8] = if wants_login { &[5, 2, 1, 0] } else { &[5, 0] };
        assert_eq!(heard(client, &socket), said);
    }
}

#[test]
fn nobody_is_let_in_by_a_kill() {
    // The login was refused, and the gateway died before it ended the connection.
    let (mut client, socket) = connection();
    send(&mut client, &GREETING, &socket);
    let mut negotiation = taken_up(&socket, Some(credentials())).unwrap();
    assert!(matches!(negotiation.advance(), Step::Wait));
    send(&mut client, &[1, 1, b'x', 1, b'y'], &socket);
    send(&mut client, &REQUEST, &socket);
    let wrong = Step::Failed("wrong user or password");
    for _ in 0..2 {
        let mut negotiation = taken_up(&socket, Some(credentials())).unwrap();
        assert_eq!(format!("{:?}", negotiation.advance()), format!("{wrong:?}"));
    }
    assert_eq!(heard(client, &socket), [5, 2, 1, 1]);
    // The methods were refused likewise; with the request behind them.
    let (mut client, socket) = connection();
    send(&mut client, &[5, 1, 0], &socket);
    send(&mut client, &REQUEST, &socket);
    for _ in 0..2 {
        let mut negotiation = taken_up(&socket, Some(credentials())).unwrap();
        assert!(matches!(negotiation.advance(), Step::Failed(_)));
    }
    assert_eq!(heard(client, &socket), [5, 0xFF]);
    // The client was greeted by a gateway that wanted no login.
    let (mut client, socket) = connection();
    send(&mut client, &GREETING, &socket);
    let mut negotiation = taken_up(&socket, None).unwrap();
    assert!(matches!(negotiation.advance(), Step::Wait));
    send(&mut client, &REQUEST, &socket);
    let mut negotiation = taken_up(&socket, Some(credentials())).unwrap();
    assert!(matches!(negotiation.advance(), Step::Failed(_)));
}

#[test]
fn octets_that_no_negotiation_moves_are_given_back() {
    for (taken, given) in [(1, 0), (0, 1), (0, 4), (3, 1), (3, 3), (3, 12), (13, 22)] {
        for login in [None, Some(credentials())] {
            let (_client, socket) = connection();
            let moved = Moved { taken, given };
            let resumed = Negotiation::resumed(socket, login, moved);
            assert!(resumed.is_err(), "{moved:?}");
        }
    }
}

#[test]
fn a_client_that_ends_with_half_a_message_in_its_socket_has_left() {
    for (said, left) in [
        (&GREETING[..3], true),
        (&[5, 1, 0, 5, 1][..], true),
        (&[&GREETING[..], &REQUEST[..]].concat()[..], false),
    ] {
        let (mut client, socket) = connection();
        client.write_all(said).unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        until(|| kernel::has_ended(&socket));
        let mut negotiation = taken_up(&socket, None).unwrap();
        match negotiation.advance() {
            Step::Failed(why) => assert!(left && why == "the client left", "{said:?}: {why}"),
            Step::Asked(..) => assert!(!left, "{said:?}"),
            Step::Wait => panic!("{said:?} waits for nothing"),
        }
    }
}
