//! A killed gateway resets nobody that it can still serve, and what it cannot go on with ends at the far
//! gateway, too.
//!
//! Method: two gateways as processes, as in `gateway_killed`.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use crate::gateway_killed::{AIR, GROUND, KEPT, PATIENCE, Pair, sockets};
use crate::gateways::{client, exchange, server};
use crate::processes::{octets, until};
use rustix::process::Signal;
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

fn is_reset(mut stream: &TcpStream) -> bool {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut rest = Vec::new();
    matches!(stream.read_to_end(&mut rest), Err(error) if error.kind() == ErrorKind::ConnectionReset)
}

/// The segment files that a gateway's custody has on the disk.
fn segments(pair: &Pair, gateway: &str) -> Vec<PathBuf> {
    let files = fs::read_dir(pair.directory.path().join(gateway)).unwrap();
    let paths = files.map(|file| file.unwrap().path());
    let is_segment = |path: &PathBuf| path.extension().is_some_and(|name| name == "segment");
    paths.filter(is_segment).collect()
}

#[test]
fn clients_that_come_while_a_gateway_is_killed_and_started_wait_and_are_served() {
    const KILLS: usize = 8;
    const CLIENTS: usize = 3;
    let to = server(|mut stream| {
        let mut all = Vec::new();
        // A gateway that was killed between accepting and the first octet resets.
        if stream.read_to_end(&mut all).is_ok() {
            let _ = stream.write_all(&all);
        }
    });
    let mut pair = Pair::start(to, KEPT);
    let (entry, done) = (pair.entry, Arc::new(AtomicUsize::new(0)));
    let stop = Arc::new(AtomicUsize::new(0));
    let clients: Vec<_> = (0..CLIENTS as u64)
        .map(|number| {
            let (done, stop) = (Arc::clone(&done), Arc::clone(&stop));
            thread::spawn(move || {
                while stop.load(Ordering::Relaxed) == 0 {
                    let asking = client(entry);
                    asking.set_read_timeout(Some(PATIENCE)).unwrap();
                    let sent = octets(number, 4_000);
                    assert!(exchange(asking, sent.clone()) == sent);
                    done.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    for kill in 1..=KILLS {
        until("exchanges", || {
            done.load(Ordering::Relaxed) >= kill * CLIENTS
        });
        pair.kill(AIR);
        // Nobody is there, and the port is open.
        let early = client(entry);
        pair.start_again(AIR);
        early.set_read_timeout(Some(PATIENCE)).unwrap();
        assert!(
            exchange(early, b"early".to_vec()) == b"early",
            "kill {kill}"
        );
    }
    stop.store(1, Ordering::Relaxed);
    for client in clients {
        client.join().expect("neither refused nor reset");
    }
}

#[test]
fn a_killed_gateway_s_port_can_be_opened_at_a_wider_address() {
    let to = server(|mut stream| {
        let mut all = Vec::new();
        if stream.read_to_end(&mut all).is_ok() {
            let _ = stream.write_all(&all);
        }
    });
    let mut pair = Pair::start(to, KEPT);
    pair.kill(AIR);
    let file = pair.directory.path().join("air.toml");
    let text = fs::read_to_string(&file).unwrap();
    let wider = format!("[[forward]]\nlisten = \"0.0.0.0:{}\"", pair.entry.port());
    // Another entry at "any port" would be given the one that is kept.
    let (text, _) = text.split_once("[[socks]]").unwrap();
    let text = text.replacen("[[forward]]\nlisten = \"127.0.0.1:0\"", &wider, 1);
    assert!(text.contains(&wider));
    fs::write(&file, text).unwrap();
    pair.start_again(AIR);
    let asking = client(pair.entry);
    asking.set_read_timeout(Some(PATIENCE)).unwrap();
    assert!(exchange(asking, b"asked".to_vec()) == b"asked");
}

#[test]
fn a_proxy_s_client_that_waits_for_the_reply_outlives_a_kill() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let to = listener.local_addr().unwrap();
    let mut pair = Pair::start(to, KEPT);
    // Nobody connects to the destination, so that no reply can come yet.
    pair.kill(GROUND);
    let air = pair.gateways[AIR].as_ref().unwrap();
    let mut keeper = None;
    until("a keeper", || {
        keeper = air.children("gateway-keeper").first().copied();
        keeper.is_some()
    });
    let keeper = keeper.expect("it was seen");
    let held = sockets(keeper);
    let mut asking = client(pair.socks);
    asking.set_read_timeout(Some(PATIENCE)).unwrap();
    asking.write_all(&[5, 1, 0]).unwrap();
    asking.read_exact(&mut [0; 2]).unwrap();
    let [high, low] = to.port().to_be_bytes();
    asking
        .write_all(&[5, 1, 0, 1, 127, 0, 0, 1, high, low])
        .unwrap();
    until("the keeper to have the client", || sockets(keeper) > held);
    pair.kill(AIR);
    pair.start_again(AIR);
    pair.start_again(GROUND);
    let mut reply = [0; 10];
    asking.read_exact(&mut reply).unwrap();
    assert_eq!(reply[..4], [5, 0, 0, 1]);
    let mut server = listener.accept().unwrap().0;
    asking.write_all(b"there").unwrap();
    let mut there = [0; 5];
    server.read_exact(&mut there).unwrap();
    assert_eq!(&there, b"there");
}

#[test]
fn what_a_killed_gateway_knows_nothing_of_ends_at_the_destination() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let to = listener.local_addr().unwrap();
    let mut pair = Pair::start(to, "keep_connections = \"none\"\n");
    // A client that says nothing has nothing in custody.
    let client = client(pair.entry);
    let server = listener.accept().unwrap().0;
    pair.kill(AIR);
    pair.start_again(AIR);
    assert!(is_reset(&client));
    assert!(is_reset(&server), "the far gateway waits for the opener");
}

#[test]
fn a_request_that_a_killed_gateway_gave_to_the_destination_is_not_given_to_it_again() {
    for acceptor in ["disk", "memory"] {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let to = listener.local_addr().unwrap();
        let mut pair = Pair::start(to, "keep_connections = \"none\"\n");
        if acceptor == "memory" {
            pair.kill(GROUND);
            let file = pair.directory.path().join("ground.toml");
            let text = fs::read_to_string(&file).unwrap();
            fs::write(&file, text.replacen("custody = \"disk\"\n", "", 1)).unwrap();
            pair.start_again(GROUND);
        }
        let mut client = client(pair.entry);
        client.write_all(b"once").unwrap();
        let mut server = listener.accept().unwrap().0;
        server.read_exact(&mut [0; 4]).unwrap();
        // What the destination has is reported 50 ms later.
        pair.kill(GROUND);
        pair.start_again(GROUND);
        assert!(is_reset(&client), "{acceptor}");
        assert!(is_reset(&server), "{acceptor}");
        listener.set_nonblocking(true).unwrap();
        let second = listener.accept();
        assert!(
            second.is_err(),
            "{acceptor}: the destination was asked twice"
        );
    }
}

#[test]
fn a_flow_that_the_server_s_gateway_cannot_write_down_is_refused_before_its_first_octet() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let to = listener.local_addr().unwrap();
    let mut pair = Pair::start(to, "keep_connections = \"none\"\n");
    // Nothing can be made in a directory that is gone.
    fs::remove_dir_all(pair.directory.path().join("ground")).unwrap();
    let mut client = client(pair.entry);
    client.write_all(b"once").unwrap();
    assert!(is_reset(&client));
    let mut server = listener.accept().unwrap().0;
    let mut given = Vec::new();
    server.set_read_timeout(Some(PATIENCE)).unwrap();
    // An end or a reset.
    drop(server.read_to_end(&mut given));
    assert!(given.is_empty(), "{given:?}");
    let mut ground = pair.gateways[GROUND].take().unwrap();
    ground.signal(Signal::TERM);
    let (_, said) = ground.end();
    for event in ["exit_not_noted", "exit_refused"] {
        let line = said.lines().find(|line| line.contains(event));
        let line = line.unwrap_or_else(|| panic!("no {event}: {said}"));
        assert!(line.contains("not_kept"), "{line}");
    }
}

#[test]
fn a_flow_whose_custody_has_a_damaged_header_is_reset_at_both_ends() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let mut pair = Pair::start(listener.local_addr().unwrap(), KEPT);
    let mut client = client(pair.entry);
    client.write_all(b"first").unwrap();
    let mut server = listener.accept().unwrap().0;
    server.read_exact(&mut [0; 5]).unwrap();
    pair.kill(GROUND);
    client.write_all(&octets(1, 100_000)).unwrap();
    let sizes = |pair: &Pair| {
        let of = |path: &PathBuf| fs::metadata(path).map_or(0, |file| file.len());
        segments(pair, "air").iter().map(of).sum::<u64>()
    };
    until("custody", || sizes(&pair) >= 100_000);
    pair.kill(AIR);
    for path in segments(&pair, "air") {
        let mut all = fs::read(&path).unwrap();
        all[40] ^= 1;
        fs::write(&path, all).unwrap();
    }
    pair.start_again(AIR);
    pair.start_again(GROUND);
    assert!(is_reset(&client));
    assert!(is_reset(&server));
}
