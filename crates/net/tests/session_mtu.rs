//! The largest packets of a path: found out, given back when the path shrinks, and followed by AeroTP.
//!
//! Method: two sessions with AeroTP inside, in virtual time, on a medium that carries packets up to a
//! limit and says nothing of longer ones.

use super::session_pair;
use super::session_pair::{Medium, PEER, Pair, Way, lossy, noise, octets};
use fulmar_net::session::{MtuConfig, SessionConfig, SessionEvent};
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{Bitrate, ByteCount, Duration, Instant};

const DELAY: Duration = Duration::from_millis(5);
const LEN: usize = 8_000_000;
/// The headers of IPv6 and UDP: the pair's paths have no addresses, so the larger headers count.
const HEADERS: usize = 48;

fn at(millis: u64) -> Instant {
    Instant::START + Duration::from_millis(millis)
}

/// Packets of up to `max` octets over links of 10 mbit.
fn configs(max: u64) -> [SessionConfig; 2] {
    noise().map(|mut config| {
        for peer in &mut config.peers {
            peer.mtu = MtuConfig {
                max: ByteCount(max),
                rate: Some(Bitrate::from_bits_per_second(10_000_000)),
                ..MtuConfig::default()
            };
        }
        config
    })
}

/// A medium that loses packets with probability `loss`, and all packets longer than `limit(now)`.
fn limited(loss: f64, seed: u64, limit: impl Fn(Instant) -> usize + 'static) -> Medium {
    let mut rng = Rng::from_seed(seed).child("loss");
    Box::new(move |_, now, path, octets| {
        if octets.len() + HEADERS > limit(now) || rng.chance(loss) {
            Vec::new()
        } else {
            vec![(DELAY, path, octets.to_vec())]
        }
    })
}

/// The sizes of packets that were known to pass, each with its time in milliseconds.
fn changes(pair: &Pair, way: Way) -> Vec<(u64, u64)> {
    let events = pair.app(way).events.iter();
    let sizes = events.filter_map(|(when, event)| match event {
        SessionEvent::MtuChanged { sizes, .. } => {
            Some((when.as_nanos() / 1_000_000, sizes.packet.0))
        }
        _ => None,
    });
    sizes.collect()
}

fn sizes(pair: &Pair, way: Way) -> Vec<u64> {
    let changes = changes(pair, way).into_iter();
    changes.map(|(_, packet)| packet).collect()
}

fn largest_sent(pair: &Pair, way: Way) -> usize {
    let sent = pair.app(way).sent.iter();
    sent.map(|(_, len)| len + HEADERS).max().unwrap_or(0)
}

fn complete(pair: &Pair, sent: &[u8]) {
    let app = pair.app(Way::Back);
    assert!(app.finished.is_some(), "unfinished at {}", pair.now);
    assert!(app.received == sent, "other octets");
}

#[test]
fn packets_grow_from_what_every_path_carries_to_what_this_one_does_within_a_few_round_trips() {
    for max in [1_500, 9_000] {
        let mut pair = Pair::new(configs(max), lossy(DELAY, 0.0, 1));
        let sent = octets(LEN);
        pair.send(&sent);
        pair.run_to_end(Duration::from_secs(20));
        complete(&pair, &sent);
        assert_eq!(sizes(&pair, Way::Forward), [1_280, max]);
        let found = changes(&pair, Way::Forward)[1].0;
        assert!(found <= 100, "10 round trips: {found} ms");
        assert_eq!(largest_sent(&pair, Way::Forward) as u64, max);
        // Who only answers has no use for larger ones yet, and leaves the way back to the answers.
        assert_eq!(sizes(&pair, Way::Back), [1_280]);
        let largest = largest_sent(&pair, Way::Back);
        assert!(largest < 1_280, "{largest}");
        pair.run(Duration::from_millis(1_100));
        assert_eq!(sizes(&pair, Way::Back), [1_280, max]);
        assert_eq!(pair.session(Way::Forward).counters().fragmented, 0);
    }
}

#[test]
fn at_forty_percent_loss_it_takes_a_few_round_trips_more_and_nothing_shrinks_after() {
    // Each try succeeds with probability 0.36 and 25 ms pass between two: 40 tries all fail with
    // probability 2e-8.
    for seed in 1..=10 {
        let mut pair = Pair::new(configs(1_500), lossy(DELAY, 0.4, seed));
        let sent = octets(LEN);
        pair.send(&sent);
        pair.run_to_end(Duration::from_secs(40));
        complete(&pair, &sent);
        // The path: 5e-6 for each of 7 confirmations.
        assert_eq!(sizes(&pair, Way::Forward), [1_280, 1_500], "seed {seed}");
        let changes = changes(&pair, Way::Forward);
        let found = changes[1].0 - changes[0].0;
        assert!(found <= 1_000, "seed {seed}: {found} ms");
    }
}

#[test]
fn a_path_below_the_usual_size_is_found_to_four_octets() {
    for limit in [1_280, 1_400, 1_492] {
        let mut pair = Pair::new(configs(1_500), limited(0.0, 1, move |_| limit));
        let sent = octets(LEN);
        pair.send(&sent);
        pair.run_to_end(Duration::from_secs(20));
        complete(&pair, &sent);
        let found = *sizes(&pair, Way::Forward).last().unwrap();
        let limit = limit as u64;
        assert!((limit - 4..=limit).contains(&found), "{limit}: {found}");
    }
}

#[test]
fn a_transfer_survives_a_path_that_shrinks_under_it_and_says_nothing() {
    // 8 MB at 10 mbit take 6.9 s on a clean link.
    for (loss, seed, seconds) in [(0.0, 1, 8), (0.1, 2, 9), (0.3, 3, 12)] {
        let limit = |now| if now < at(3_000) { 1_500 } else { 1_300 };
        let mut pair = Pair::new(configs(1_500), limited(loss, seed, limit));
        let sent = octets(LEN);
        pair.send(&sent);
        pair.run_to_end(Duration::from_secs(30));
        complete(&pair, &sent);
        let history = changes(&pair, Way::Forward);
        assert_eq!(history[1].1, 1_500, "{history:?}");
        assert_eq!(history[2].1, 1_280, "{history:?}");
        let noticed = history[2].0 - 3_000;
        assert!(noticed <= 2_500, "{noticed} ms after");
        let found = *sizes(&pair, Way::Forward).last().unwrap();
        assert!((1_296..=1_300).contains(&found), "{history:?}");
        // TPDUs of the larger size that were under way left again in pieces.
        let pieces = pair.session(Way::Forward).counters().fragmented;
        assert!(pieces > 0);
        assert!(pair.session(Way::Back).counters().reassembled > 0);
        let whole = Duration::from_millis(2_500) + Duration::from_secs(seconds);
        assert!(pair.now < at(0) + whole, "{}", pair.now);
    }
}

#[test]
fn a_small_flow_that_still_passes_does_not_hide_a_black_hole() {
    // Datagrams on the way back are small and always pass, so the link does not fall silent.
    let limit = |now| if now < at(2_000) { 1_500 } else { 1_300 };
    let medium = limited(0.0, 1, limit);
    let mut pair = Pair::new(configs(1_500), medium);
    let sent = octets(LEN);
    pair.send(&sent);
    pair.run_until(at(2_000));
    while pair.now < at(5_000) {
        pair.call(Way::Back, |session, now| {
            let id = session
                .inner_mut()
                .connect(
                    now,
                    PEER.inner_path(),
                    session_pair::PORT,
                    session_pair::connection_config(),
                )
                .expect("connects");
            session.inner_mut().write(now, id, b"small").expect("open");
        });
        pair.run(Duration::from_millis(30));
    }
    assert!(sizes(&pair, Way::Forward).contains(&1_280));
}

#[test]
fn a_path_that_grows_again_is_used_after_the_next_outage() {
    let limit = |now| match now {
        _ if now < at(2_000) => 1_300,
        _ if now < at(4_000) => 0,
        _ => 1_500,
    };
    let mut pair = Pair::new(configs(1_500), limited(0.0, 1, limit));
    let sent = octets(LEN);
    pair.send(&sent);
    pair.run_to_end(Duration::from_secs(30));
    complete(&pair, &sent);
    assert_eq!(sizes(&pair, Way::Forward).last(), Some(&1_500));
}

#[test]
fn a_fixed_size_is_used_from_the_start_and_never_left() {
    let fixed = noise().map(|mut config| {
        config.peers[0].mtu = MtuConfig::fixed(ByteCount(1_400));
        config
    });
    let mut pair = Pair::new(fixed, lossy(DELAY, 0.1, 1));
    let sent = octets(LEN);
    pair.send(&sent);
    pair.run_to_end(Duration::from_secs(30));
    complete(&pair, &sent);
    assert_eq!(sizes(&pair, Way::Forward), [1_400]);
    assert_eq!(largest_sent(&pair, Way::Forward), 1_400);
}
