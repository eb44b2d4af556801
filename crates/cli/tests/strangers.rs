//! The answers that strangers get from a `perf -s` and a `recv` that anyone can reach, and the service that they
//! take from others; and the two commands secured by keys.
//!
//! Method: real sockets on many addresses of the loopback network, which send what a forger would and
//! answer nothing, as real owners of forged addresses would.

use crate::perf::{measure, number, port, server};
use crate::processes::{Place, Running, free_port, fulmar, is_open, receiver, run, said, until};
use crate::transfers::{FAST_LINK, a_killed_receiver_is_continued};
use fulmar_net::wait::wait;
use fulmar_proto::units::FecStrength;
use fulmar_proto::wire::TpduSeq;
use fulmar_proto::wire::aerotp::{EcnField, Flags, Header, Outgoing, TpduKind, encode, parse};
use fulmar_proto::wire::{Mode, Port};
use rustix::process::Signal;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

const PERF: Port = Port(4_915);
const FILES: Port = Port(4_914);
/// Addresses of the forger.
const SOURCES: u8 = 100;

/// The TPDU that opens a connection to `destination`.
fn opening(source: u16, destination: Port, body: &[u8]) -> Vec<u8> {
    let mut octets = Vec::new();
    let header = Header {
        source: Port(source),
        destination,
        seq: TpduSeq(0),
        timestamp: 1,
        mode: Mode::Reliable,
        ecn: EcnField::NONE,
        flags: Flags::ASYN,
    };
    let outgoing = Outgoing {
        header,
        crc: true,
        fec_words: FecStrength::NONE,
        block: None,
        body,
    };
    encode(&outgoing, &mut octets);
    octets
}

fn bound(address: Ipv4Addr) -> UdpSocket {
    let socket = UdpSocket::bind((address, 0)).expect("a port");
    socket.set_nonblocking(true).expect("it can");
    socket
}

/// The datagrams that come within `span`.
fn drawn(socket: &UdpSocket, span: Duration) -> Vec<Vec<u8>> {
    wait(&[], Some(span), &mut Vec::new()).expect("poll works");
    let mut all = Vec::new();
    let mut buffer = [0; 2_048];
    while let Ok(len) = socket.recv(&mut buffer) {
        all.push(buffer[..len].to_vec());
    }
    all
}

#[test]
fn a_forged_datagram_draws_one_answer_that_is_no_larger() {
    let place = Place::with(10);
    let mut files = receiver(&place, "");
    let (_perf, perf) = server("");
    for (address, port) in [(perf, PERF), (files.address(), FILES)] {
        let to: SocketAddr = address.parse().expect("an address");
        let socket = bound(Ipv4Addr::LOCALHOST);
        // As long as what drew 31 answers in 30 s.
        let sent = opening(50_000, port, &[7; 25]);
        socket.send_to(&sent, to).expect("it is sent");
        // A repetition would come within a second: the timeout for unknown paths.
        let answers = drawn(&socket, Duration::from_millis(3_500));
        assert_eq!(answers.len(), 1, "{port}");
        assert!(answers[0].len() <= sent.len());
        let kind = parse(&answers[0]).expect("it is a TPDU").kind();
        assert_eq!(kind, TpduKind::Challenge);
    }
}

/// A sender of datagrams that open connections, from many addresses and ports, until it is dropped.
struct Flood {
    ends: Arc<AtomicBool>,
    sent: Arc<AtomicU64>,
}

impl Flood {
    fn to(address: &str, port: Port, body: usize) -> Self {
        let to: SocketAddr = address.parse().expect("an address");
        let (ends, sent) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicU64::new(0)),
        );
        let (over, count) = (Arc::clone(&ends), Arc::clone(&sent));
        thread::spawn(move || {
            let address = |n| Ipv4Addr::new(127, 7, 7, n);
            let sockets: Vec<UdpSocket> = (1..=SOURCES).map(|n| bound(address(n))).collect();
            let mut source = 0;
            while !over.load(Ordering::Relaxed) {
                for socket in &sockets {
                    source = source % 60_000 + 1;
                    let datagram = opening(source, port, &vec![7; body]);
                    // ICMP errors, or a full queue.
                    drop(socket.send_to(&datagram, to));
                    count.fetch_add(1, Ordering::Relaxed);
                }
                wait(&[], Some(Duration::from_millis(40)), &mut Vec::new()).expect("poll works");
            }
        });
        Self { ends, sent }
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
    }
}

#[test]
fn strangers_keep_nobody_from_measuring_or_sending() {
    let (_perf, perf) = server("--rate 20mbit");
    let flood = Flood::to(&perf, PERF, 25);
    until("the flood", || flood.sent.load(Ordering::Relaxed) > 5_000);
    let record = measure(&port(&perf), "-n 200kB --rate 20mbit");
    assert!(number(&record, "received_messages") > 0.0, "{record}");
    drop(flood);

    let place = Place::with(100_000);
    let mut files = receiver(&place, "--once");
    let to = files.address();
    let flood = Flood::to(&to, FILES, 1_300);
    until("the flood", || flood.sent.load(Ordering::Relaxed) > 5_000);
    let output = run(&format!("send {} {to} --rate 20mbit", place.file()));
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert_eq!(files.record()["verified"], true);
    assert_eq!(files.code(), Some(0));
    assert!(place.arrived() == place.octets);
}

/// A key in a file of `place`, and its public half.
fn key(place: &Place, name: &str) -> (String, String) {
    let file = place.path(name).display().to_string();
    let output = run(&format!("keygen {file}"));
    assert!(output.status.success(), "{}", said(&output));
    let public = String::from_utf8(output.stdout).expect("base64");
    (file, public.trim().to_owned())
}

#[test]
fn with_keys_a_file_arrives_from_the_named_sender_and_from_nobody_else() {
    let place = Place::with(200_000);
    let ((ours, public), (theirs, their_public)) = (key(&place, "a.key"), key(&place, "b.key"));
    let (stranger, stranger_public) = key(&place, "c.key");
    let flags = format!("--once --key {theirs} --peer {public}");
    let mut files = receiver(&place, &flags);
    let to = files.address();
    let send = |flags: &str| run(&format!("send {} {to} --rate 20mbit {flags}", place.file()));
    let turned_away = format!("--key {stranger} --peer {their_public} --connect-timeout 2s");
    let output = send(&turned_away);
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    assert!(
        said(&output).contains(&stranger_public),
        "which key: {}",
        said(&output)
    );
    let output = send("--connect-timeout 2s");
    assert_eq!(
        output.status.code(),
        Some(3),
        "without keys: {}",
        said(&output)
    );
    assert!(said(&output).contains("not secured"), "{}", said(&output));
    let output = send(&format!("--key {ours} --peer {their_public}"));
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(!said(&output).contains("not secured"), "{}", said(&output));
    assert_eq!(files.record()["verified"], true);
    assert_eq!(files.code(), Some(0));
    assert!(place.arrived() == place.octets);
}

/// An address at which nobody listens.
fn free() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, free_port()).into()
}

/// The words of an end that waits at `at`, while `calls` runs and fails; and those of that.
fn told(at: SocketAddr, waits: &str, calls: &str) -> (String, String) {
    let mut waiting = Running::start(fulmar(waits));
    until("it to listen", || is_open(at.port()));
    let output = run(calls);
    assert_eq!(output.status.code(), Some(3), "{calls}: {}", said(&output));
    waiting.signal(Signal::INT);
    (waiting.end().1, said(&output))
}

#[test]
fn a_reason_that_was_heard_is_the_last_word_and_no_guess_stands_beside_it() {
    let place = Place::with(10);
    let preset = |name: &str| {
        let file = place.path(name).display().to_string();
        assert!(run(&format!("keygen --preset {file}")).status.success());
        file
    };
    let (one, other) = (preset("one.preset"), preset("other.preset"));
    let to = free();
    let (_, gave_up) = told(
        to,
        &format!("recv {} --listen {to} --preset {one}", place.inbox()),
        &format!(
            "send {} {to} --connect-timeout 2s --preset {other}",
            place.file()
        ),
    );
    let last = gave_up.lines().last().unwrap_or_default();
    assert!(last.contains("its --preset is another"), "{gave_up}");
    assert!(!gave_up.contains("likely causes"), "{gave_up}");
}

#[test]
fn keys_at_one_end_alone_are_told_of_at_the_end_that_sees_it_and_guessed_at_the_other() {
    let place = Place::with(10);
    let ((ours, public), (theirs, their_public)) = (key(&place, "a.key"), key(&place, "b.key"));
    let preset = place.path("link.preset").display().to_string();
    assert!(run(&format!("keygen --preset {preset}")).status.success());
    let with = format!("--key {ours} --peer {their_public}");
    let there = format!("--key {theirs} --peer {public}");
    let presets = format!("--preset {preset}");
    for (waits, calls, expected) in [
        (
            "",
            with.as_str(),
            "calls with --key and --peer, and this end has no keys",
        ),
        (
            "",
            &presets,
            "calls with --preset alone, and this end has no keys",
        ),
        (&there, "", "calls without keys, and this end has some"),
        (&presets, "", "calls without keys, and this end has some"),
    ] {
        let to = free();
        let files = (
            format!("recv {} --listen {to} {waits}", place.inbox()),
            format!("send {} {to} --connect-timeout 2s {calls}", place.file()),
        );
        let tests = (
            format!("perf -s -B {to} {waits}"),
            format!("perf -c {to} -t 1 --connect-timeout 2s {calls}"),
        );
        for (waits, calls) in [files, tests] {
            let (heard, gave_up) = told(to, &waits, &calls);
            until("the port to be free again", || !is_open(to.port()));
            let lines = heard.lines().filter(|line| line.contains(expected));
            assert_eq!(lines.count(), 1, "{waits}: {heard}");
            assert!(gave_up.contains("nobody answers"), "{calls}: {gave_up}");
            assert!(
                gave_up.contains("keys (--key, --preset) at one end only"),
                "{gave_up}"
            );
        }
    }
}

#[test]
fn a_key_that_the_other_end_does_not_have_is_told_of_in_the_words_of_the_options() {
    let place = Place::with(10);
    let ((ours, public), (theirs, their_public)) = (key(&place, "a.key"), key(&place, "b.key"));
    let (stranger, stranger_public) = key(&place, "c.key");
    for (calls, heard_word, said_word) in [
        (
            format!("--key {stranger} --peer {their_public}"),
            format!("add --peer {stranger_public}"),
            format!("there, add --peer {stranger_public}"),
        ),
        (
            format!("--key {ours} --peer {stranger_public}"),
            format!("give it --peer {their_public}"),
            "give --peer what `fulmar keygen --public FILE` prints there".to_owned(),
        ),
    ] {
        let to = free();
        let (heard, gave_up) = told(
            to,
            &format!(
                "recv {} --listen {to} --key {theirs} --peer {public}",
                place.inbox()
            ),
            &format!("send {} {to} --connect-timeout 3s {calls}", place.file()),
        );
        assert!(heard.contains(&heard_word), "{heard}");
        assert!(gave_up.contains(&said_word), "{gave_up}");
        for words in [heard, gave_up] {
            assert!(!words.contains("[[peer]]"), "{words}");
            assert!(!words.contains("public_key"), "{words}");
        }
    }
}

#[test]
fn our_own_key_as_the_peers_is_refused_with_the_option_and_the_file() {
    let place = Place::with(10);
    let (ours, public) = key(&place, "a.key");
    for command in [
        format!("send {} 127.0.0.1:9", place.file()),
        format!("recv {} --listen 127.0.0.1:0", place.inbox()),
        "perf -c 127.0.0.1:9".to_owned(),
    ] {
        let output = run(&format!("{command} --key {ours} --peer {public}"));
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
        for word in ["--peer", ours.as_str(), "keygen --public"] {
            assert!(said(&output).contains(word), "{command}: {}", said(&output));
        }
    }
}

#[test]
fn with_keys_a_killed_receiver_is_continued_by_its_successor_and_the_running_sender() {
    let place = Place::with(1_500_000);
    let ((ours, public), (theirs, their_public)) = (key(&place, "a.key"), key(&place, "b.key"));
    let sends = format!("--key {ours} --peer {their_public}");
    let receives = format!("--key {theirs} --peer {public}");
    a_killed_receiver_is_continued(&place, (&sends, &receives), Some(FAST_LINK));
}

#[test]
fn with_a_preset_key_a_cut_off_transfer_is_continued_and_a_path_is_measured() {
    let place = Place::with(1_500_000);
    let preset = place.path("link.preset").display().to_string();
    assert!(run(&format!("keygen --preset {preset}")).status.success());
    let flags = format!("--once --checkpoint 100ms --preset {preset}");
    let mut files = receiver(&place, &flags);
    let to = files.address();
    let send = format!("send {} {to} --rate 4mbit --preset {preset}", place.file());
    let sender = Running::start(fulmar(&send));
    until("a checkpoint", || {
        place.path("in/file.fulmar-state").exists()
    });
    drop(sender);
    let output = run(&format!("{send} --json"));
    let record: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(output.status.code(), Some(0), "{record}");
    assert!(record["resumed_at_bytes"].as_u64() > Some(0), "{record}");
    assert_eq!(files.code(), Some(0));
    assert!(place.arrived() == place.octets);

    let (_perf, perf) = server(&format!("--rate 20mbit --preset {preset}"));
    for way in ["", "-R"] {
        let flags = format!("-n 200kB --rate 20mbit --preset {preset} {way}");
        let record = measure(&port(&perf), &flags);
        assert!(number(&record, "received_messages") > 0.0, "{record}");
    }
}

#[test]
fn a_recording_is_not_made_in_the_place_of_a_key() {
    let place = Place::with(10);
    let (ours, public) = key(&place, "a.key");
    let before = std::fs::read(&ours).expect("it is there");
    for command in [
        format!("send {} 127.0.0.1:1", place.file()),
        format!("recv {} --listen 127.0.0.1:0", place.inbox()),
    ] {
        let command = format!("{command} --key {ours} --peer {public} --trace {ours}");
        let output = run(&command);
        assert_eq!(
            output.status.code(),
            Some(2),
            "{command}: {}",
            said(&output)
        );
        assert!(said(&output).contains("is the input"), "{}", said(&output));
    }
    assert_eq!(std::fs::read(&ours).expect("it is there"), before);
}
