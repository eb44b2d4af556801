//! Gateways that nobody told a rate find it, over an emulated link between processes on the loopback.

use crate::gateways::{Pair, client, server};
use crate::processes::until;
use rustix::process::Signal;
use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Octets that take the link some seconds.
const OCTETS: u64 = 6_000_000;

/// A pair over a link of 10 Mbit/s with these further properties, and these lines about the rate, after [`OCTETS`] went through it to the end.
fn used(link: &str, rates: [&str; 2]) -> Pair {
    let counted = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&counted);
    let to = server(move |mut stream| {
        let mut scratch = vec![0; 1 << 16];
        while let Ok(len @ 1..) = stream.read(&mut scratch) {
            count.fetch_add(len as u64, Ordering::SeqCst);
        }
    });
    let entries = format!("[[forward]]\nlisten = \"127.0.0.1:0\"\nto = \"{to}\"\n");
    let link = format!("--rate 10mbit --delay 5ms --queue 100 {link}");
    let pair = Pair::start_told(&link, &entries, rates);
    let mut sender = client(pair.entries[0]);
    let piece = vec![7; 100_000];
    for _ in 0..OCTETS / 100_000 {
        sender.write_all(&piece).expect("it is taken");
    }
    until("everything", || counted.load(Ordering::SeqCst) == OCTETS);
    pair
}

#[test]
fn the_rate_that_is_found_is_the_links_whatever_it_loses() {
    for (loss, share) in [("0%", 0.0), ("10%", 0.1), ("30%", 0.3)] {
        let pair = used(&format!("--loss {loss}"), [""; 2]);
        let status = pair.status();
        let peer = &status["peers"][0];
        assert!(peer["rate_bits_per_second"].is_null(), "{loss}: {peer}");
        let found = peer["rate"]["link_bits_per_second"].as_f64();
        let megabits = found.expect("it was found") / 1e6;
        // The machine may be busy, so that less was sent than the link takes.
        assert!((4.0..15.0).contains(&megabits), "{loss}: {peer}");
        // What is believed of the path is told, with the reason for the rate.
        let rate = &peer["rate"];
        assert_eq!(rate["share"], "fair");
        let lost = rate["random_loss_ratio"].as_f64().expect("it is found");
        assert!((lost - share).abs() < 0.15, "{loss}: {peer}");
        assert!(rate["bottleneck"].is_string() && rate["why"].is_string());
        assert!(rate["queue_seconds"].is_f64(), "{loss}: {peer}");
    }
}

#[test]
fn a_rate_that_is_named_for_a_shared_link_is_a_bound() {
    let pair = used("", ["rate = \"2mbit\"\nshare = \"fair\"\n", ""]);
    let status = pair.status();
    let peer = &status["peers"][0];
    assert_eq!(peer["rate_bits_per_second"], 2_000_000);
    let used = peer["rate"]["current_bits_per_second"].as_f64();
    let used = used.expect("it is in use");
    assert!((0.5e6..=2e6).contains(&used), "{peer}");
}

#[test]
fn a_peer_that_is_told_its_own_rate_tells_what_arrives_all_the_same() {
    let told = "rate = \"10mbit\"\n";
    let pair = used("--loss 10%", ["share = \"own\"\n", told]);
    let peer = pair.status()["peers"][0].clone();
    let found = peer["rate"]["link_bits_per_second"].as_f64();
    let megabits = found.expect("it was found") / 1e6;
    assert!((4.0..15.0).contains(&megabits), "{peer}");
}

#[test]
fn what_was_found_is_tried_first_after_a_restart() {
    let mut pair = used("", [""; 2]);
    pair.start_air_again();
    pair.air.signal(Signal::TERM);
    let (_, log) = pair.air.end();
    let lines: Vec<&str> = log
        .lines()
        .filter(|line| line.contains("rate_tried_first"))
        .collect();
    assert_eq!(lines.len(), 1, "{log}");
    assert!(
        lines[0].contains("ground") && lines[0].contains("age_seconds"),
        "{log}"
    );
}
