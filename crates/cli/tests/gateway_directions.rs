//! Figures that a sender cannot see by itself: the loss on the way there, the fate of its messages, and a
//! link that carries less than was configured. Two gateways with a lossy link between them, as processes on
//! the loopback.

use crate::gateways::{LOSSY, Pair, client, server, status_at};
use crate::processes::{moment, until};
use rustix::process::Signal;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::UdpSocket;

fn metric(status: &Value, series: &str) -> Option<f64> {
    status["metrics"][series].as_f64()
}

/// Datagrams of one direction: sent and arrived.
fn passage(status: &Value, peer: &str, direction: &str) -> (f64, f64) {
    let read = |what: &str| {
        let series = format!(
            "fulmar_link_{what}_packets_total{{peer=\"{peer}\",direction=\"{direction}\"}}"
        );
        metric(status, &series).expect("it is counted")
    };
    (read("sent"), read("arrived"))
}

#[test]
fn both_ends_show_the_loss_of_both_directions_while_one_sends() {
    let to = server(|mut stream| {
        let mut scratch = vec![0; 1 << 16];
        while stream.read(&mut scratch).is_ok_and(|len| len > 0) {}
    });
    let unequal = "--rate 50mbit --delay 5ms --queue 200 --up-loss 25% --down-loss 10%";
    let pair = Pair::start(
        unequal,
        &format!("[[forward]]\nlisten = \"127.0.0.1:0\"\nto = \"{to}\"\n"),
    );
    let mut sender = client(pair.entries[0]);
    let piece = vec![7; 64 << 10];
    // Of 3,000 datagrams the share is within 0.05 of the link's but for once in 10^9.
    until("3,000 datagrams each way", || {
        sender.write_all(&piece).expect("it is taken");
        let status = pair.status();
        let enough = |direction| passage(&status, "ground", direction).0 > 3_000.0;
        enough("out") && enough("in")
    });
    let (air, ground) = (pair.status(), status_at(pair.ground_metrics));
    let (to_ground, to_air) = (0.25, 0.1);
    for (status, peer, direction, share) in [
        (&air, "ground", "out", to_ground),
        (&ground, "air", "in", to_ground),
        (&air, "ground", "in", to_air),
        (&ground, "air", "out", to_air),
    ] {
        let (sent, arrived) = passage(status, peer, direction);
        let lost = 1.0 - arrived / sent;
        assert!((lost - share).abs() < 0.05, "{peer} {direction}: {lost}");
    }
    // The same figure under both names: it may have grown since, and is never less.
    let (here, there) = (
        passage(&air, "ground", "out"),
        passage(&ground, "air", "in"),
    );
    assert!(there.0 >= here.0 && there.1 >= here.1, "{here:?} {there:?}");
}

#[test]
#[expect(
    clippy::float_cmp,
    reason = "counts, which are exact in the floats that metrics are"
)]
fn a_sender_of_messages_is_told_which_of_them_arrived() {
    let receiver = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let to = receiver.local_addr().expect("it is bound");
    let known = "[class.video]\nmode = \"unreliable\"\n";
    let entries = format!(
        "{known}[[forward]]\nprotocol = \"udp\"\nlisten = \"127.0.0.1:0\"\nto = \"{to}\"\nclass = \"video\"\n"
    );
    let pair = Pair::start_both(LOSSY, &entries, known);
    until("keys", || pair.status()["peers"][0]["link"] == "up");
    let sender = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let mut message = vec![0; 1_000];
    for n in 0..1_000_u32 {
        message[..4].copy_from_slice(&n.to_be_bytes());
        sender
            .send_to(&message, pair.entries[0])
            .expect("it leaves");
        if n % 10 == 9 {
            moment();
        }
    }
    let class = |status: &Value, name: &str| {
        let series = format!("fulmar_{name}{{class=\"video\"}}");
        metric(status, &series).unwrap_or_default()
    };
    // Every message that the far gateway delivered to its host is reported, by reports that are lost like
    // everything else.
    let mut seen = (0.0, 0.0);
    until("what arrived to be told", || {
        let ground = status_at(pair.ground_metrics);
        let (there, here) = (
            class(&ground, "messages_received_total"),
            class(&pair.status(), "messages_delivered_total"),
        );
        let is_quiet = seen == (there, here);
        seen = (there, here);
        is_quiet && there > 100.0 && there == here
    });
    let status = pair.status();
    let delivered = class(&status, "messages_delivered_total");
    assert!(delivered < 1_000.0, "a fifth is lost");
    assert_eq!(class(&status, "delivered_bytes_total"), delivered * 1_000.0);
    let missing = class(&status, "messages_undelivered");
    let taken = class(&status, "messages_accepted_total");
    // The last ones may be lost without any after them.
    assert!(
        delivered + missing <= taken && delivered + missing > taken - 40.0,
        "{status}"
    );
}

#[test]
fn a_rate_that_the_link_does_not_carry_is_in_the_log_without_anybody_asking() {
    // 50 Mbit/s are configured.
    let to = server(|mut stream| {
        let mut scratch = vec![0; 1 << 16];
        while stream.read(&mut scratch).is_ok_and(|len| len > 0) {}
    });
    let mut pair = Pair::start(
        "--rate 5Mbit/s --delay 5ms --queue 50",
        &format!("[[forward]]\nlisten = \"127.0.0.1:0\"\nto = \"{to}\"\n"),
    );
    let mut sender = client(pair.entries[0]);
    let piece = vec![7; 64 << 10];
    // Far longer than the ten seconds that the rate takes to be found wrong.
    for _ in 0..(20 * 5_000_000 / 8 / piece.len()) {
        sender.write_all(&piece).expect("it is taken");
    }
    pair.air.signal(Signal::TERM);
    let (_, log) = pair.air.end();
    let lines: Vec<&str> = log
        .lines()
        .filter(|line| line.contains("rate_declared_wrong"))
        .collect();
    assert_eq!(lines.len(), 1, "{log}");
    assert!(
        lines[0].contains("ground") && lines[0].contains("lower `rate`"),
        "{log}"
    );
}
