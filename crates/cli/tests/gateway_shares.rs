//! Two hundred TCP connections of one class get the same share of the gateways' goodput.
//!
//! Method: every connection has more to send than passes. The octets that arrived of each are read when all
//! together have [`SKIPPED_OCTETS`], and again when they have [`COUNTED_OCTETS`] more, so that no clock is
//! asked.

use crate::gateways::{Pair, client, server};
use crate::processes::until;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::thread;

const FLOWS: usize = 200;
/// The octets before the count begins, 10 kB of each: every connection has begun by then.
const SKIPPED_OCTETS: u64 = 2_000_000;
/// The octets that are counted, 40 kB of each, some 28 TPDUs: one more or less of each connection costs the
/// index 0.0013.
const COUNTED_OCTETS: u64 = 8_000_000;
/// The least index that counts as fair within a class.
const JAIN_MIN: f64 = 0.98;

/// The octets that arrived, by the number of the connection.
type Arrived = Arc<Mutex<BTreeMap<usize, u64>>>;

/// Jain's index of fairness: 1 if all are equal, 1/n if one has everything (Jain, Chiu, Hawe 1984).
fn jain(shares: &[f64]) -> f64 {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    sum * sum / (shares.len() as f64 * squares)
}

fn octets(arrived: &Arrived) -> BTreeMap<usize, u64> {
    arrived.lock().expect("nobody panicked").clone()
}

/// A server that counts what comes; connections begin with their number.
fn counting() -> (SocketAddr, Arrived) {
    let arrived = Arrived::default();
    let shared = Arc::clone(&arrived);
    let to = server(move |mut stream| {
        let mut number = [0; 8];
        if stream.read_exact(&mut number).is_err() {
            return;
        }
        let number = usize::from_be_bytes(number);
        let mut buffer = vec![0; 65_536];
        while let Ok(len @ 1..) = stream.read(&mut buffer) {
            let mut all = shared.lock().expect("nobody panicked");
            *all.entry(number).or_default() += len as u64;
        }
    });
    (to, arrived)
}

#[test]
fn flows_of_one_class_share_alike() {
    let (to, arrived) = counting();
    let forward = format!("[[forward]]\nlisten = \"127.0.0.1:0\"\nto = \"{to}\"\n");
    let pair = Pair::start("--rate 1gbit --delay 5ms --queue 10000", &forward);
    let entry = pair.entries[0];
    let senders: Vec<_> = (0..FLOWS)
        .map(|number| {
            let mut stream = client(entry);
            thread::spawn(move || {
                let block = [7; 16_384];
                let begun = stream.write_all(&number.to_be_bytes());
                // Until the gateways are stopped.
                if begun.is_ok() {
                    while stream.write_all(&block).is_ok() {}
                }
            })
        })
        .collect();
    let total = |arrived: &Arrived| octets(arrived).values().sum::<u64>();
    until("all to have begun", || total(&arrived) >= SKIPPED_OCTETS);
    let before = octets(&arrived);
    until("the rest", || {
        total(&arrived) >= SKIPPED_OCTETS + COUNTED_OCTETS
    });
    let after = octets(&arrived);
    drop(pair);
    for sender in senders {
        sender.join().expect("it only writes");
    }
    let shares: Vec<f64> = (0..FLOWS)
        .map(|number| {
            let of = |counts: &BTreeMap<usize, u64>| counts.get(&number).copied().unwrap_or(0);
            (of(&after) - of(&before)) as f64
        })
        .collect();
    let index = jain(&shares);
    eprintln!("Jain's index of {FLOWS} flows: {index:.4}");
    assert!(index >= JAIN_MIN, "{index:.4}: {shares:?}");
}

#[test]
fn the_index_tells_fair_from_unfair() {
    assert!((jain(&[3.0; 7]) - 1.0).abs() < 1e-12);
    assert!((jain(&[1.0, 0.0, 0.0, 0.0]) - 0.25).abs() < 1e-12);
    // Half of the flows with twice as much as the others.
    assert!(jain(&[1.0, 2.0]) < 0.91);
}
