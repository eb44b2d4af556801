//! A link that flaps does not fill the log.
//!
//! Method: two gateways as processes on the loopback, with a relay between them that sends the datagrams of
//! one of them from another port each time, so that its peer sees it move with every datagram.

use crate::gateways::{Pair, client, echo, exchange, server, status_at};
use crate::processes::{Running, fulmar, octets, said};
use rustix::process::Signal;
use std::fs;
use std::net::{SocketAddr, UdpSocket};
use std::sync::{Arc, OnceLock};
use std::thread;

/// The ports by which the peer is seen in turn.
const PORTS: usize = 8;
/// The size of a buffer for any UDP payload.
const DATAGRAM_BYTES: usize = 65_536;

fn bound() -> UdpSocket {
    UdpSocket::bind("127.0.0.1:0").expect("a port")
}

/// Relays datagrams that come to a new port to `to`, from each of several ports in turn, and back.
fn flapping(to: SocketAddr) -> SocketAddr {
    let front = Arc::new(bound());
    let at = front.local_addr().expect("it is bound");
    let caller = Arc::new(OnceLock::new());
    let outer: Vec<Arc<UdpSocket>> = (0..PORTS).map(|_| Arc::new(bound())).collect();
    // The threads end with the program; a relay that broke would be noticed by the exchange.
    for socket in outer.clone() {
        let (front, caller) = (Arc::clone(&front), Arc::clone(&caller));
        thread::spawn(move || {
            let mut octets = vec![0; DATAGRAM_BYTES];
            while let Ok(len) = socket.recv(&mut octets) {
                if let Some(caller) = caller.get() {
                    drop(front.send_to(&octets[..len], caller));
                }
            }
        });
    }
    thread::spawn(move || {
        let mut octets = vec![0; DATAGRAM_BYTES];
        let mut turns = outer.iter().cycle();
        while let Ok((len, from)) = front.recv_from(&mut octets) {
            caller.get_or_init(|| from);
            if let Some(socket) = turns.next() {
                drop(socket.send_to(&octets[..len], to));
            }
        }
    });
    at
}

#[test]
fn a_peer_that_moves_with_every_datagram_has_some_lines_and_a_number() {
    let to = server(echo);
    let entry = format!("[[forward]]\nlisten = \"127.0.0.1:0\"\nto = \"{to}\"\n");
    let mut pair = Pair::start_over(|ground| (flapping(ground), None), &entry);
    let sent = octets(1, 10_000_000);
    let back = exchange(client(pair.entries[0]), sent.clone());
    assert!(back == sent, "{} of {} octets", back.len(), sent.len());
    let status = status_at(pair.ground_metrics);
    let moves = status["carrier"]["moves"].as_u64().expect("a count");
    assert!(moves > 1_000, "{moves} moves: the relay does not flap");

    pair.ground.signal(Signal::TERM);
    let (_, said) = pair.ground.end();
    let lines: Vec<&str> = said
        .lines()
        .filter(|line| line.contains("peer_moved"))
        .collect();
    // Ten, one more in each minute that this machine takes, and as many summaries.
    assert!(lines.len() < 30, "{} lines for {moves} moves", lines.len());
    let left_out = lines.iter().filter(|line| line.contains("lines_left_out"));
    let number = |line: &&str| -> u64 {
        let (_, rest) = line.split_once(" lines=").expect("a number");
        let (number, _) = rest.split_once(' ').unwrap_or((rest, ""));
        number.parse().expect("a number")
    };
    let told: u64 = left_out.clone().map(number).sum();
    let written = lines.len() - left_out.count();
    // It may have moved on after it was asked.
    assert!(
        told + written as u64 >= moves,
        "{told} + {written} of {moves}"
    );
}

#[test]
fn a_gateway_that_fails_says_how_many_lines_it_left_out() {
    const DAMAGED: u64 = 25;
    let place = tempfile::tempdir().expect("room");
    let at = place.path().display();
    let text = format!(
        "[gateway]\nname = \"here\"\nlisten = \"127.0.0.1:0\"\nstate_dir = \"{at}/state\"\n\
         [security]\nkind = \"none\"\n[[peer]]\nname = \"other\"\nrate = \"10Mbit/s\"\n\
         [egress]\nallow = [\"127.0.0.0/8:1-65535\"]\n\
         [[forward]]\nlisten = \"127.0.0.1:0\"\nto = \"127.0.0.1:9\"\nclass = \"bulk\"\n\
         [class.bulk]\nmode = \"near-reliable\"\ncustody = \"disk\"\n\
         [custody]\ndirectory = \"{at}/custody\"\nkeep_connections = \"none\"\n"
    );
    let file = place.path().join("here.toml");
    fs::write(&file, text).expect("room");
    let start = || {
        fulmar(&format!(
            "gateway --json --log-format json -c {}",
            file.display()
        ))
    };
    // It makes its directory.
    let mut first = Running::start(start());
    first.address();
    first.signal(Signal::TERM);
    first.end();
    for flow in 0..DAMAGED {
        let name = format!("{flow:032x}-{:016x}.segment", 0);
        fs::write(place.path().join("custody").join(name), [7; 5_000]).expect("room");
    }
    // Its record of the start cannot be written: it ends there, right after it told of the damage.
    let full = fs::OpenOptions::new().write(true).open("/dev/full");
    let output = start().stdout(full.expect("it is there")).output();
    let output = output.expect("it ends");
    let log = said(&output);
    assert!(!output.status.success(), "{log}");
    let lines: Vec<serde_json::Value> = log
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    let is_damage = |line: &&serde_json::Value| line["event"] == "custody_damaged";
    let written = lines.iter().filter(is_damage).count() as u64;
    let left_out: u64 = lines
        .iter()
        .filter(|line| line["event"] == "lines_left_out" && line["of"] == "custody_damaged")
        .filter_map(|line| line["lines"].as_u64())
        .sum();
    assert!(written < DAMAGED, "{log}");
    assert_eq!(written + left_out, DAMAGED, "{log}");
}
