//! The first octets: how many ways they take.

use crate::link::{ANY, Link, PATIENCE, RATE, lossy};
use fulmar::{Config, EarlyData, Endpoint, PresetKey};
use fulmar_net::clock::Clock;
use fulmar_proto::units::{Duration, Instant};
use std::io::{Read, Write};

const ONE_WAY: Duration = Duration::from_millis(300);

fn shared_key() -> PresetKey {
    let key = fulmar::new_secret_key().expect("the ends are there");
    key.to_text().parse().expect("the ends are there")
}

fn ends(key: &PresetKey, early: [EarlyData; 2]) -> [Endpoint; 2] {
    early.map(|early| {
        let config = Config::with_shared_key(key.clone())
            .rate(RATE)
            .early_data(early);
        Endpoint::bind(ANY, config).expect("the ends are there")
    })
}

/// The first octets of a stream over 600 ms of round trip, and after how long they were there.
fn first_octets(server: &Endpoint, client: &Endpoint, down: f64) -> Duration {
    let link = Link::to(
        server.local_addr(),
        lossy(0.0, ONE_WAY),
        lossy(down, ONE_WAY),
    );
    let listener = server.listen().expect("the ends are there");
    let clock = Clock::start();
    let mut stream = client
        .connect(link.address, None)
        .expect("the ends are there");
    stream.write_all(b"first").expect("the ends are there");
    let mut other = listener.accept(Some(PATIENCE)).expect("the ends are there");
    let mut octets = [0; 5];
    other.read_exact(&mut octets).expect("the ends are there");
    assert_eq!(&octets, b"first");
    clock.now().saturating_since(Instant::START)
}

#[test]
fn early_data_needs_no_answer() {
    let key = shared_key();
    let [client, server] = ends(&key, [EarlyData::Send, EarlyData::Take]);
    // Nothing comes back at all, so what arrived waited for nothing.
    let took = first_octets(&server, &client, 1.0);
    println!("first octets after {took:?}, with early data");
    assert!(took >= ONE_WAY, "the link is slower than that");
    assert!(server.epoch_seen() > 0);
}

#[test]
fn a_caller_that_starts_anew_sends_early_again_and_goes_on() {
    let key = shared_key();
    let [first, server] = ends(&key, [EarlyData::Send, EarlyData::Take]);
    let listener = server.listen().unwrap();
    let [second, _] = ends(&key, [EarlyData::Send, EarlyData::Off]);
    for client in [first, second] {
        let mut stream = client.connect(server.local_addr(), None).unwrap();
        stream.write_all(b"hello").unwrap();
        stream.finish().unwrap();
        let mut other = listener.accept(Some(PATIENCE)).unwrap();
        let mut came = Vec::new();
        other.read_to_end(&mut came).unwrap();
        assert_eq!(came, b"hello");
    }
}

#[test]
fn without_early_data_the_first_octets_take_three_ways() {
    let key = shared_key();
    let [client, server] = ends(&key, [EarlyData::Off, EarlyData::Off]);
    let took = first_octets(&server, &client, 0.0);
    println!("first octets after {took:?}, without early data");
    assert!(took >= ONE_WAY * 3, "handshake, answer, data: {took:?}");
}
