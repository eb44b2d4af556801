//! Parity that follows, beside the best fixed parity and packet size that anybody could have chosen knowing the whole run, on
//! links whose rate of wrong bits changes.
//!
//! Method: two sessions with AeroTP inside, in virtual time, over a channel of the simulator: 5 mbit, 10 ms, and a queue of 33
//! packets. Bits are inverted in all but the IP header, and a datagram with a wrong bit in UDP's port, length or checksum is lost.
//! Either the rate of wrong bits steps, or it is that of one of the four optical demonstrations. A stream has data to send all the
//! time. What counts is how much of it arrives in order within the time, as a share of the link's rate. All settings meet the
//! same link, by the same seed.

use super::session_pair::{
    Medium, PEER, Pair, Way, connection_config, endpoint_config, noise, octets, speaking,
};
use crate::bit_errors::flip;
use fulmar_channel::fading::{Demonstration, Fading};
use fulmar_channel::{Channel, ChannelConfig, ChannelVerdict, QueueLimit};
use fulmar_net::session::{Armour, MtuConfig, SessionConfig, Wire, damaged, path_acks, unchecked};
use fulmar_proto::rng::Rng;
use fulmar_proto::transport::aerotp::{ConnectionConfig, EndpointConfig, RateSource};
use fulmar_proto::units::{BitErrorRate, Bitrate, ByteCount, Duration, FecStrength, Instant};

const LINK: Bitrate = Bitrate::from_bits_per_second(5_000_000);
const DELAY: Duration = Duration::from_millis(10);
const QUEUE: u32 = 33;
/// Octets of a packet before its session datagram, and those of them that no wrong bit hits.
// The harness has no addresses, so sessions count the headers of IPv6.
const IP_AND_UDP: usize = 48;
const IP: usize = 40;
/// The octets of UDP's header whose wrong bits lose a datagram: all but the source port.
const BARE: core::ops::Range<usize> = IP + 2..IP_AND_UDP;
/// The time at each rate of [`STEPS`], in turn.
const STEP: Duration = Duration::from_secs(2);
const STEPS: [f64; 3] = [0.0, 1e-5, 1e-3];

/// The link's wrong bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bits {
    Steps,
    Of(Demonstration),
}

/// The sender's setting.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Setting {
    armour: Armour,
    /// The largest packet.
    packet: u64,
}

fn fixed(words: u16, packet: u64) -> Setting {
    let words = FecStrength::from_words(words).expect("a few words");
    Setting {
        armour: Armour::Fixed(words),
        packet,
    }
}

const FOLLOWS: Setting = Setting {
    armour: Armour::Follows,
    packet: 1_500,
};

fn link(bits: Bits, scale: Option<f64>, seed: u64) -> Medium {
    let rng = Rng::from_seed(seed);
    let mut config = ChannelConfig {
        rate: Some(LINK),
        delay: DELAY,
        queue: QueueLimit::packets(QUEUE),
        ..ChannelConfig::default()
    };
    let back = Channel::new(config.clone(), &rng.child("back"));
    let mut back = back.expect("a channel");
    if let Bits::Of(demonstration) = bits {
        let mut model = demonstration.model();
        if let Some(rate) = scale {
            model.long_term = BitErrorRate::new(rate).expect("a share");
        }
        config.fading = Some(Fading::new(model).expect("a demonstration"));
    }
    let forward = Channel::new(config, &rng.child("forward"));
    let mut forward = forward.expect("a channel");
    let mut steps = rng.child("steps");
    Box::new(move |way, now, path, octets| {
        let channel = if way == Way::Forward {
            &mut forward
        } else {
            &mut back
        };
        let packet = ByteCount::from_usize(octets.len() + IP_AND_UDP);
        let ChannelVerdict::Deliver(arrival) = channel.admit(now, packet) else {
            return Vec::new();
        };
        let mut whole = vec![0; IP_AND_UDP];
        whole.extend_from_slice(octets);
        for &position in arrival.flips.as_slice() {
            let position = position as usize;
            whole[position / 8] ^= 0x80 >> (position % 8);
        }
        if bits == Bits::Steps && way == Way::Forward {
            let place = now.saturating_since(Instant::START).as_nanos() / STEP.as_nanos();
            let rate = STEPS[usize::try_from(place).expect("few") % STEPS.len()];
            if rate > 0.0 {
                flip(&mut steps, rate, &mut whole[IP..]);
            }
        }
        if whole[BARE].iter().any(|octet| *octet != 0) {
            return Vec::new();
        }
        let octets = whole.split_off(IP_AND_UDP);
        vec![(arrival.at.saturating_since(now), path, octets)]
    })
}

fn ends(setting: Setting) -> [SessionConfig; 2] {
    noise().map(|config| {
        let mut config = speaking(config, Wire::Two);
        config
            .capabilities
            .extend([unchecked(), damaged(), path_acks()]);
        for peer in &mut config.peers {
            peer.mtu = MtuConfig::fixed(ByteCount(setting.packet));
        }
        config
    })
}

/// The share of the link's rate that arrives in so many seconds.
fn share(bits: Bits, scale: Option<f64>, setting: Setting, (seconds, seed): (u64, u64)) -> f64 {
    let inner = EndpointConfig {
        rate: RateSource::Told(LINK),
        follows_length: true,
        ..endpoint_config()
    };
    let connection = ConnectionConfig {
        window_tpdus: 4_096,
        ..connection_config()
    };
    let medium = link(bits, scale, seed);
    let mut pair = Pair::with_connections(ends(setting), (inner, connection), medium);
    for way in [Way::Forward, Way::Back] {
        pair.call(way, |session, _| {
            session.set_armour(PEER, Some(setting.armour));
        });
    }
    pair.run(Duration::from_secs(2));
    let span = Duration::from_secs(seconds);
    pair.send(&octets(LINK.bytes_in(span).as_usize()));
    pair.run(span);
    let arrived = pair.app(Way::Back).received.len() as f64;
    arrived / LINK.bytes_in(span).0 as f64
}

/// Prints the share of what follows, and those of fixed settings; returns the first, and the best of the others.
fn beside((bits, scale): (Bits, Option<f64>), settings: &[Setting], run: (u64, u64)) -> (f64, f64) {
    let follows = share(bits, scale, FOLLOWS, run);
    let mut best = 0.0_f64;
    let mut parts = Vec::new();
    for &setting in settings {
        let share = share(bits, scale, setting, run);
        let Armour::Fixed(words) = setting.armour else {
            continue;
        };
        best = best.max(share);
        let (words, packet) = (words.words(), setting.packet);
        parts.push(format!("{words}/{packet}: {share:.4}"));
    }
    println!(
        "{bits:?} {scale:?}: follows {follows:.4}, {:.4} of the best fixed; words/packet: {}",
        follows / best,
        parts.join(" ")
    );
    (follows, best)
}

fn grid() -> Vec<Setting> {
    let of_size = |packet: u64, words: &[u16]| {
        let words = words.iter().copied();
        words
            .map(|words| fixed(words, packet))
            .collect::<Vec<Setting>>()
    };
    let mut all = of_size(1_500, &[0, 3, 6, 9, 12, 15, 18, 21, 24, 27, 33]);
    all.extend(of_size(1_000, &[0, 2, 4, 8, 12, 16]));
    all.extend(of_size(1_280, &[0, 3, 6, 12, 18]));
    all
}

/// The fixed settings that were the best in the whole grid on one link or the other, and their neighbours.
fn good() -> Vec<Setting> {
    [0, 3, 15, 18, 21].map(|words| fixed(words, 1_500)).to_vec()
}

#[test]
fn parity_that_follows_carries_nearly_what_the_best_fixed_parity_and_size_do_and_more_where_the_rate_steps()
 {
    let (follows, best) = beside((Bits::Steps, None), &good(), (36, 31));
    assert!(follows > best, "{follows} beside {best}");
    for demonstration in Demonstration::ALL {
        let (follows, best) = beside((Bits::Of(demonstration), None), &good(), (30, 31));
        assert!(
            follows > 0.93 * best,
            "{demonstration:?}: {follows} beside {best}"
        );
    }
}

#[test]
#[ignore = "prints the whole table"]
fn the_whole_grid() {
    let run = (60, 7);
    beside((Bits::Steps, None), &grid(), run);
    for demonstration in Demonstration::ALL {
        for scale in [None, Some(1e-4)] {
            beside((Bits::Of(demonstration), scale), &grid(), run);
        }
    }
}
