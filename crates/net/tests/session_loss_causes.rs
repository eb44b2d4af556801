//! Loss by cause, as the sender knows it, beside the link's own counts.
//!
//! Method: two sessions with AeroTP inside, in virtual time, over channels of the simulator: 5 mbit, 10 ms, and a queue of 33
//! packets that other traffic shares at times. What is damaged is dropped. Streams alone are judged; all datagrams forward count as truth.

use super::session_pair::{
    Medium, PEER, Pair, Way, connection_config, endpoint_config, noise, octets, secret, speaking,
};
use fulmar_channel::{Channel, ChannelConfig, ChannelDropReason, ChannelVerdict, QueueLimit};
use fulmar_net::session::{Security, SessionConfig, Wire, arrival_maps, path_acks};
use fulmar_proto::damage::{CAUSES, LossByCause, LossCause};
use fulmar_proto::machine::PathId;
use fulmar_proto::rng::Rng;
use fulmar_proto::transport::aerotp::{ConnectionConfig, EndpointConfig, RateSource};
use fulmar_proto::units::{Bitrate, ByteCount, Duration, Instant};
use std::cell::Cell;
use std::rc::Rc;

const LINK: Bitrate = Bitrate::from_bits_per_second(5_000_000);
const DELAY: Duration = Duration::from_millis(10);
const QUEUE: u32 = 33;
/// Octets of a packet before its session datagram.
// The harness has no addresses, so sessions count the headers of IPv6.
const IP_AND_UDP: usize = 48;
/// The traffic beside ours: the time from one beginning to the next, how long it lasts, and the time between its packets, which
/// takes six tenths of the link.
const BESIDE_EVERY: Duration = Duration::from_secs(5);
const BESIDE_LASTS: Duration = Duration::from_millis(400);
const BESIDE_PAUSE: Duration = Duration::from_millis(4);

/// Transfers over each link.
const TRANSFERS: usize = 5;

type Counts = [Cell<u32>; CAUSES];

/// The faults of a link, in the words of scenarios; empty for none.
#[derive(Clone, Copy, Default)]
struct Faults {
    bits: &'static str,
    random: &'static str,
    bursts: &'static str,
    outages: &'static str,
    is_shared: bool,
    /// Whether the way back is as bad.
    is_both_ways: bool,
}

fn count(counts: &Counts, cause: LossCause) {
    let of = &counts[cause as usize];
    of.set(of.get() + 1);
}

fn link(faults: Faults, seed: u64, truth: Rc<Counts>) -> Medium {
    let rng = Rng::from_seed(seed);
    let clean = ChannelConfig {
        rate: Some(LINK),
        delay: DELAY,
        ..ChannelConfig::default()
    };
    let mut config = ChannelConfig {
        queue: QueueLimit::packets(QUEUE),
        ..clean.clone()
    };
    if !faults.bits.is_empty() {
        config.bits = faults.bits.parse().expect("a rate");
    }
    if !faults.bursts.is_empty() {
        config.loss = faults.bursts.parse().expect("bursts");
    }
    if !faults.outages.is_empty() {
        config.outages = faults.outages.parse().expect("outages");
    }
    let back = if faults.is_both_ways {
        config.clone()
    } else {
        clean
    };
    let mut forward = Channel::new(config, &rng.child("forward")).expect("a channel");
    let mut back = Channel::new(back, &rng.child("back")).expect("a channel");
    let random: f64 = match faults.random {
        "" => 0.0,
        share => share.parse().expect("a share"),
    };
    let mut drops = rng.child("random");
    let mut drops_back = rng.child("random back");
    let mut beside_began = Instant::START + BESIDE_EVERY;
    let mut beside_at = beside_began;
    let full = ByteCount::from_usize(1_500);
    Box::new(move |way, now, path, octets| {
        let packet = ByteCount::from_usize(octets.len() + IP_AND_UDP);
        if way == Way::Back {
            let ChannelVerdict::Deliver(arrival) = back.admit(now, packet) else {
                return Vec::new();
            };
            let is_lost = faults.is_both_ways && drops_back.chance(random);
            if is_lost || !arrival.flips.is_empty() {
                return Vec::new();
            }
            return vec![(arrival.at.saturating_since(now), path, octets.to_vec())];
        }
        while faults.is_shared && beside_at <= now {
            forward.admit(beside_at, full);
            beside_at += BESIDE_PAUSE;
            if beside_at.saturating_since(beside_began) > BESIDE_LASTS {
                beside_began += BESIDE_EVERY;
                beside_at = beside_began;
            }
        }
        let arrival = match forward.admit(now, packet) {
            ChannelVerdict::Deliver(arrival) => arrival,
            ChannelVerdict::Drop(why) => {
                let cause = match why {
                    ChannelDropReason::Queue => LossCause::Queue,
                    ChannelDropReason::Outage => LossCause::Outage,
                    _ => LossCause::Burst,
                };
                count(&truth, cause);
                return Vec::new();
            }
            ChannelVerdict::Waits => unreachable!("capacity is there"),
        };
        if drops.chance(random) {
            count(&truth, LossCause::Random);
            return Vec::new();
        }
        if !arrival.flips.is_empty() {
            count(&truth, LossCause::BitErrors);
            return Vec::new();
        }
        vec![(arrival.at.saturating_since(now), path, octets.to_vec())]
    })
}

fn ends() -> [SessionConfig; 2] {
    noise().map(|config| {
        let mut config = speaking(config, Wire::Two);
        config.capabilities.extend([path_acks(), arrival_maps()]);
        config
    })
}

/// Sends as many transfers of 20 MB; returns the sender's view and what was truly lost.
fn seen(faults: Faults, transfers: usize, seed: u64) -> (LossByCause, [u32; CAUSES]) {
    let inner = EndpointConfig {
        rate: RateSource::Told(LINK),
        follows_length: true,
        ..endpoint_config()
    };
    let connection = ConnectionConfig {
        window_tpdus: 4_096,
        ..connection_config()
    };
    let truth = Rc::new(Counts::default());
    let medium = link(faults, seed, Rc::clone(&truth));
    let mut pair = Pair::with_connections(ends(), (inner, connection), medium);
    pair.run(Duration::from_secs(2));
    truth.iter().for_each(|count| count.set(0));
    let sent = octets(20_000_000);
    for _ in 0..transfers {
        pair.begin_again();
        pair.send(&sent);
        pair.run_to_end(Duration::from_secs(900));
        assert!(pair.app(Way::Back).received == sent, "at {}", pair.now);
    }
    let endpoint = pair.session(Way::Forward).inner();
    let found = endpoint.path_losses(PEER.inner_path());
    (
        found.expect("there were losses"),
        [0, 1, 2, 3, 4].map(|cause| truth[cause].get()),
    )
}

/// Ten links, each with several faults.
fn mixed() -> [Faults; 10] {
    let none = Faults::default();
    [
        Faults {
            bits: "1e-5",
            random: "0.03",
            ..none
        },
        Faults {
            bits: "2e-5",
            bursts: "2% burst 8",
            ..none
        },
        Faults {
            random: "0.03",
            bursts: "3% burst 10",
            ..none
        },
        Faults {
            random: "0.02",
            outages: "every 20s for 1s",
            ..none
        },
        Faults {
            random: "0.02",
            is_shared: true,
            ..none
        },
        Faults {
            bits: "1e-5",
            random: "0.05",
            bursts: "3% burst 6",
            ..none
        },
        Faults {
            bits: "5e-6",
            is_shared: true,
            ..none
        },
        Faults {
            bursts: "2% burst 6",
            outages: "every 30s for 2s",
            ..none
        },
        Faults {
            bits: "5e-5",
            random: "0.1",
            ..none
        },
        Faults {
            bits: "1e-5",
            random: "0.02",
            bursts: "2% burst 8",
            outages: "every 20s for 1s",
            is_shared: true,
            ..none
        },
    ]
}

/// Shares above 5 %: all, those found within five points, and those that their intervals hold.
#[derive(Debug, Default)]
struct Judged {
    shares: u32,
    near: u32,
    covered: u32,
}

/// Judges what is found on the ten links with ten seeds from this one on.
fn judge(first_seed: u64, is_both_ways: bool) -> Judged {
    judge_some(first_seed, is_both_ways, &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
}

/// The same on some of the links.
fn judge_some(first_seed: u64, is_both_ways: bool, links: &[u64]) -> Judged {
    let mut judged = Judged::default();
    let chosen = (0..).zip(mixed());
    for (place, faults) in chosen.filter(|(place, _)| links.contains(place)) {
        let faults = Faults {
            is_both_ways,
            ..faults
        };
        let (found, truth) = seen(faults, TRANSFERS, first_seed + place);
        let lost = f64::from(truth.iter().sum::<u32>());
        println!(
            "link {place}: {lost} lost, {:.0} found of {:.0}",
            found.lost, found.sent
        );
        // What the session itself asks in an outage is no stream's.
        assert!(found.lost > 0.95 * lost, "{found:?} of {lost}");
        for (share, truth) in found.shares.into_iter().zip(truth) {
            let truth = f64::from(truth) / lost;
            let holds = (share.low..=share.high).contains(&truth);
            let is_near = (share.share - truth).abs() <= 0.05;
            if truth > 0.05 {
                judged.shares += 1;
                judged.covered += u32::from(holds);
                judged.near += u32::from(is_near);
            }
            println!(
                "  {:>10} {truth:.3}: {:.3} ({:.3} to {:.3}){}{}",
                share.cause.name(),
                share.share,
                share.low,
                share.high,
                if holds { "" } else { " not covered" },
                if is_near { "" } else { " far" }
            );
        }
    }
    println!("from seed {first_seed} on: {judged:?}");
    judged
}

/// Holds what is asked: each share above 5 % within five points, and nine intervals of ten.
fn hold(judged: &Judged) {
    assert_eq!(judged.near, judged.shares, "{judged:?}");
    assert!(judged.covered * 10 >= judged.shares * 9, "{judged:?}");
}

#[test]
fn on_ten_mixed_links_each_large_share_is_found_within_five_points_and_nine_intervals_of_ten_hold()
{
    hold(&judge(40, false));
}

#[test]
fn bursts_and_outages_that_hit_the_answers_as_well_are_told_apart_from_losses() {
    hold(&judge_some(40, true, &[2, 7]));
}

#[test]
#[ignore = "ten links with faults both ways take a minute"]
fn answers_that_fail_as_often() {
    hold(&judge(40, true));
}

#[test]
#[ignore = "prints what other seeds give"]
fn other_seeds() {
    for first in [740, 840, 940] {
        judge(first, false);
        judge(first, true);
    }
}

#[test]
fn what_is_under_way_while_keys_change_is_not_held_for_lost() {
    // The long way holds some sixty datagrams, which maps that left before the peer saw the new keys do not know.
    const DELAY: Duration = Duration::from_millis(150);
    let lost = Rc::new(Cell::new(0_u32));
    let counts = Rc::clone(&lost);
    let mut drops = Rng::from_seed(21).child("random");
    let medium: Medium = Box::new(move |way, _, path, octets| {
        // Full data alone, so that what is lost is what the endpoint numbered.
        if way == Way::Forward && octets.len() > 1_000 && drops.chance(0.01) {
            counts.set(counts.get() + 1);
            return Vec::new();
        }
        vec![(DELAY, path, octets.to_vec())]
    });
    let inner = EndpointConfig {
        rate: RateSource::Told(LINK),
        ..endpoint_config()
    };
    let connection = ConnectionConfig {
        window_tpdus: 4_096,
        ..connection_config()
    };
    let mut pair = Pair::with_connections(ends(), (inner, connection), medium);
    pair.run(Duration::from_secs(2));
    pair.call(Way::Back, |session, now| {
        let peer = secret(1).public();
        let known = Security::Noise { peer, preset: None };
        assert!(!session.set_security(now, PEER, known, Some(secret(9).public())));
    });
    let sent = octets(10_000_000);
    pair.send(&sent);
    for change in 0..3 {
        pair.run(Duration::from_millis(4_600));
        pair.call(Way::Forward, |session, now| {
            let key = secret(if change % 2 == 0 { 9 } else { 1 });
            assert!(session.set_identity(now, Some(key), None));
        });
    }
    pair.run_to_end(Duration::from_secs(60));
    assert!(pair.app(Way::Back).received == sent);
    let rekeys = pair.session(Way::Forward).counters().rekeys;
    let endpoint = pair.session(Way::Forward).inner();
    let found = endpoint.path_losses(PEER.inner_path());
    let found = found.expect("there were losses").lost_packets();
    println!(
        "{rekeys} times new keys; {} lost, {found} found",
        lost.get()
    );
    assert!(rekeys >= 2, "{rekeys}");
    // What left last has no map.
    assert!((lost.get() - 8..=lost.get()).contains(&found.try_into().expect("few")));
}

#[test]
fn a_peer_that_moved_to_a_longer_link_has_no_full_queue() {
    let elsewhere = PathId(9);
    // Few packets are counted before: as many losses as there are on the link before are no sign of a queue.
    let moves = Instant::START + Duration::from_millis(2_100);
    let mut drops = Rng::from_seed(61).child("random");
    let medium: Medium = Box::new(move |way, now, path, octets| {
        let path = if way == Way::Back && now >= moves {
            elsewhere
        } else {
            path
        };
        if way == Way::Forward && drops.chance(0.03) {
            return Vec::new();
        }
        let is_long = way == Way::Forward && path == elsewhere;
        let delay = Duration::from_millis(if is_long { 290 } else { 10 });
        vec![(delay, path, octets.to_vec())]
    });
    let inner = EndpointConfig {
        rate: RateSource::Told(Bitrate::from_bits_per_second(10_000_000)),
        follows_length: true,
        ..endpoint_config()
    };
    // Without maps counting begins with the first loss, and not a second later.
    let ends = noise().map(|config| speaking(config, Wire::Two));
    let mut pair = Pair::with_endpoints(ends, inner, medium);
    pair.run(Duration::from_secs(2));
    let sent = octets(8_000_000);
    pair.send(&sent);
    pair.run_to_end(Duration::from_secs(60));
    assert!(pair.app(Way::Back).received == sent, "at {}", pair.now);
    let session = pair.session(Way::Forward);
    assert_eq!(session.counters().moves, 1);
    let losses = session.inner().path_losses(PEER.inner_path());
    let found = losses.expect("there were losses");
    println!("{found:?}");
    let of = |cause: LossCause| found.shares[cause as usize].share;
    assert!(of(LossCause::Queue) < 0.1, "{found:?}");
}
