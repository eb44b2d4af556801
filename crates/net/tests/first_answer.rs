//! The first answer of a session, when nothing is known of the link's rate.
//!
//! Method: two sessions with keys, in wire 2, with AeroTP inside, in virtual time. Answers of 100 kB, each on a connection of its
//! own, cross a link of 10 mbit that loses nothing. What gateways add on either side of it is not counted.

use super::session_pair::{
    Copies, Medium, Pair, Way, connection_config, endpoint_config, noise, octets, speaking,
};
use super::thin_flows::{HEADERS, RATE};
use fulmar_net::session::{Wire, window_repair};
use fulmar_proto::rate::RateSharing;
use fulmar_proto::transport::aerotp::{
    AckPolicy, ConnectionConfig, EndpointConfig, RateSource, ThinRepair,
};
use fulmar_proto::units::{ByteCount, Duration, Instant};
use std::cell::RefCell;

const ANSWER: usize = 100_000;

const FOUND: RateSource = RateSource::Found {
    bound: None,
    first: None,
    sharing: RateSharing::Fair,
};

/// A link with a queue without end.
fn link(one_way: Duration) -> Medium {
    let free = RefCell::new([Instant::START; 2]);
    Box::new(move |way, now, path, octets| -> Copies {
        let free = &mut free.borrow_mut()[way as usize];
        let wire = ByteCount::from_usize(octets.len() + HEADERS);
        *free = (*free).max(now) + RATE.time_to_send(wire);
        let delay = free.saturating_since(now) + one_way;
        vec![(delay, path, octets.to_vec())]
    })
}

fn pair(rate: RateSource, one_way: Duration) -> Pair {
    let endpoint = EndpointConfig {
        rate,
        ..endpoint_config()
    };
    // As gateways have it.
    let connection = ConnectionConfig {
        thin: Some(ThinRepair::default()),
        ack: AckPolicy {
            every: 32,
            ..AckPolicy::default()
        },
        ..connection_config()
    };
    let configs = noise().map(|config| {
        let mut config = speaking(config, Wire::Two);
        config.capabilities.push(window_repair());
        config
    });
    let mut pair = Pair::with_connections(configs, (endpoint, connection), link(one_way));
    // Keys and packet lengths are agreed on.
    pair.run(Duration::from_secs(10));
    pair
}

/// The milliseconds that each of `count` answers takes, so long after the one before.
fn answers(rate: RateSource, one_way: Duration, count: usize) -> Vec<f64> {
    let mut pair = pair(rate, one_way);
    let octets = octets(ANSWER);
    (0..count)
        .map(|_| {
            let begin = pair.now;
            pair.begin_again();
            pair.send(&octets);
            pair.run_to_end(Duration::from_secs(60));
            let app = pair.app(Way::Back);
            assert!(app.received == octets, "as it was sent");
            let took = app.finished.expect("it ends").saturating_since(begin);
            // A request comes.
            pair.run(2 * one_way);
            1e3 * took.as_secs_f64()
        })
        .collect()
}

#[test]
fn the_first_answer_waits_little_for_the_rate_to_be_found() {
    // quinn with BBR takes 287, its request not counted; growth fourfold a round trip took 311.
    for (one_way, most) in [(50, 270.0)] {
        let one_way = Duration::from_millis(one_way);
        let [found] = answers(FOUND, one_way, 1)[..] else {
            panic!("one answer");
        };
        let [told] = answers(RateSource::Told(RATE), one_way, 1)[..] else {
            panic!("one answer");
        };
        println!("{one_way:?}: {found:.1} ms found, {told:.1} ms told");
        assert!(found <= most, "{found} ms");
    }
}
