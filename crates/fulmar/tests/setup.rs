//! The first octets: how many ways they take.

use crate::link::{ANY, Link, PATIENCE, RATE, keys, lossy};
use fulmar::{Config, EarlyData, Endpoint, PresetKey, PublicKey};
use fulmar_net::clock::Clock;
use fulmar_proto::units::{Duration, Instant};
use std::io::{Read, Write};
use std::sync::mpsc::channel;

const ONE_WAY: Duration = Duration::from_millis(300);

fn shared_key() -> PresetKey {
    let key = fulmar::new_secret_key().expect("the ends are there");
    key.to_text().parse().expect("the ends are there")
}

/// The called end and one that calls, with one key for both.
fn ends(key: &PresetKey, early: [EarlyData; 2]) -> [Endpoint; 2] {
    early.map(|early| bind(Config::with_shared_key(key.clone()), early))
}

fn bind(config: Config, early: EarlyData) -> Endpoint {
    Endpoint::bind(ANY, config.rate(RATE).early_data(early)).expect("a free port")
}

/// The first octets of a stream over 600 ms of round trip, and after how long they were there.
fn first_octets(
    (server, client): (&Endpoint, &Endpoint),
    key: Option<&PublicKey>,
    down: f64,
) -> Duration {
    let link = Link::to(
        server.local_addr(),
        lossy(0.0, ONE_WAY),
        lossy(down, ONE_WAY),
    );
    let listener = server.listen().expect("the ends are there");
    let clock = Clock::start();
    let mut stream = client
        .connect(link.address, key)
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
    let [server, client] = ends(&key, [EarlyData::Take, EarlyData::Send]);
    // Nothing comes back at all, so what arrived waited for nothing.
    let took = first_octets((&server, &client), None, 1.0);
    println!("first octets after {took:?}, with early data");
    assert!(took >= ONE_WAY, "the link is slower than that");
    assert!(server.epoch_seen() > 0);
}

#[test]
fn early_data_to_a_known_public_key_needs_no_answer() {
    let [called, calling] = keys();
    let config = Config::new(called.clone()).peer(calling.public());
    let server = bind(config, EarlyData::Take);
    let client = bind(Config::new(calling), EarlyData::Send);
    // Nothing comes back at all, so what arrived waited for nothing.
    let took = first_octets((&server, &client), Some(&called.public()), 1.0);
    println!("first octets after {took:?}, with early data and public keys");
    assert!(took >= ONE_WAY, "the link is slower than that");
}

#[test]
fn a_called_end_takes_early_data_of_callers_that_began_after_its_floor() {
    let [called, calling] = keys();
    let far_ahead = u64::MAX >> 1;
    // Each caller is there before the called end starts, which by itself refuses it.
    for (told, early) in [(None, false), (Some(0), true), (Some(far_ahead), false)] {
        let client = bind(Config::new(calling.clone()), EarlyData::Send);
        let config = Config::new(called.clone()).peer(calling.public());
        let config = match told {
            Some(epoch) => config.epoch_seen(epoch),
            None => config,
        };
        let server = bind(config, EarlyData::Take);
        // Where nothing comes back, it can only have been taken early; what is refused comes after the handshake.
        let down = if early { 1.0 } else { 0.0 };
        let took = first_octets((&server, &client), Some(&called.public()), down);
        assert!(early || took >= ONE_WAY * 3, "{told:?}: {took:?}");
    }
}

#[test]
fn a_caller_that_lost_everything_ends_the_streams_that_it_opened_early() {
    let [called, calling] = keys();
    let config = Config::new(called.clone()).peer(calling.public());
    let server = bind(config, EarlyData::Take);
    let listener = server.listen().unwrap();
    let config = || {
        let config = Config::new(calling.clone()).peer(called.public());
        config.rate(RATE).early_data(EarlyData::Send)
    };
    let (first, mut driver) = Endpoint::without_thread(ANY, config()).unwrap();
    let address = first.local_addr();
    let (crash, crashed) = channel();
    let crashing = std::thread::spawn(move || {
        while crashed.try_recv().is_err() {
            driver.step(Some(Duration::from_millis(5))).unwrap();
        }
        // Dropped without a word to anybody.
    });
    let stream = first.connect(server.local_addr(), &called.public());
    let mut stream = stream.unwrap();
    stream.set_nonblocking(false);
    stream.write_all(b"hello").unwrap();
    let mut other = listener.accept(Some(PATIENCE)).unwrap();
    other.read_exact(&mut [0; 5]).unwrap();
    other.write_all(b"hello").unwrap();
    stream.read_exact(&mut [0; 5]).unwrap();
    crash.send(()).unwrap();
    crashing.join().unwrap();
    // The new start says nothing until it is asked.
    let second = Endpoint::bind(address, config()).unwrap();
    other.write_all(b"are you still there?").unwrap();
    other.set_read_timeout(Some(PATIENCE));
    let error = other.read(&mut [0; 8]).unwrap_err();
    assert_eq!(error.to_string(), "the peer has restarted");
    drop(second);
}

#[test]
fn a_caller_that_starts_anew_sends_early_again_and_goes_on() {
    let key = shared_key();
    let [server, first] = ends(&key, [EarlyData::Take, EarlyData::Send]);
    let listener = server.listen().unwrap();
    let [second, _] = ends(&key, [EarlyData::Send, EarlyData::Off]);
    for (number, client) in [first, second].into_iter().enumerate() {
        let mut stream = client.connect(server.local_addr(), None).unwrap();
        stream.write_all(b"hello").unwrap();
        let finished = stream.finish();
        finished.unwrap_or_else(|error| panic!("client {number}: {error}"));
        let mut other = listener.accept(Some(PATIENCE)).unwrap();
        let mut came = Vec::new();
        let ended = other.read_to_end(&mut came);
        ended.unwrap_or_else(|error| panic!("client {number}, after {came:?}: {error}"));
        assert_eq!(came, b"hello");
    }
}

#[test]
fn without_early_data_the_first_octets_take_three_ways() {
    let key = shared_key();
    let [server, client] = ends(&key, [EarlyData::Off, EarlyData::Off]);
    let took = first_octets((&server, &client), None, 0.0);
    println!("first octets after {took:?}, without early data");
    assert!(took >= ONE_WAY * 3, "handshake, answer, data: {took:?}");
}
