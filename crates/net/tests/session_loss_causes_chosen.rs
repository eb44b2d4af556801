//! Loss by cause where data begins with a checksum and leaves without one once bits prove wrong.
//!
//! Method: two sessions with AeroTP inside, in virtual time, over a link of 10 mbit, 5 ms and a queue of 100 packets whose bits
//! alone are wrong. It drops what has a checksum and is damaged, and delivers the rest, but for wrong bits in UDP's own header.

use super::session_pair::{
    Medium, PEER, Pair, Way, connection_config, endpoint_config, noise, octets, speaking,
};
use crate::bit_errors::flip;
use fulmar_channel::{Channel, ChannelConfig, ChannelVerdict, QueueLimit};
use fulmar_net::session::{Armour, SessionConfig, Wire, damaged, path_acks, reports, unchecked};
use fulmar_proto::damage::{CAUSES, LossByCause, LossCause};
use fulmar_proto::rate::RateSharing;
use fulmar_proto::rng::Rng;
use fulmar_proto::transport::aerotp::{ConnectionConfig, EndpointConfig, RateSource};
use fulmar_proto::units::{Bitrate, ByteCount, Duration};
use std::cell::Cell;
use std::rc::Rc;

const LINK: Bitrate = Bitrate::from_bits_per_second(10_000_000);
const DELAY: Duration = Duration::from_millis(5);
const QUEUE: u32 = 100;
/// Octets of a packet before its session datagram.
const IP_AND_UDP: usize = 48;
/// Bits of UDP's header that are lost with the datagram.
const BARE_BITS: i32 = 48;

type Counts = [Cell<u32>; CAUSES];

fn link(ber: f64, seed: u64, truth: Rc<Counts>) -> Medium {
    let rng = Rng::from_seed(seed);
    let config = ChannelConfig {
        rate: Some(LINK),
        delay: DELAY,
        queue: QueueLimit::packets(QUEUE),
        ..ChannelConfig::default()
    };
    let mut ways = ["forward", "back"].map(|name| {
        let channel = Channel::new(config.clone(), &rng.child(name)).expect("a channel");
        (channel, rng.child(name).child("bits"))
    });
    Box::new(move |way, now, path, octets| {
        let (is_unchecked, id) = path.split_checksum();
        let (channel, rng) = &mut ways[usize::from(way == Way::Back)];
        let lost = |cause: LossCause| {
            if way == Way::Forward {
                let of = &truth[cause as usize];
                of.set(of.get() + 1);
            }
            Vec::new()
        };
        let packet = ByteCount::from_usize(octets.len() + IP_AND_UDP);
        let ChannelVerdict::Deliver(arrival) = channel.admit(now, packet) else {
            return lost(LossCause::Queue);
        };
        let mut arrived = octets.to_vec();
        flip(rng, ber, &mut arrived);
        let is_bare_hit = rng.chance(1.0 - (1.0 - ber).powi(BARE_BITS));
        if is_bare_hit || (!is_unchecked && arrived != octets) {
            return lost(LossCause::BitErrors);
        }
        vec![(arrival.at.saturating_since(now), id, arrived)]
    })
}

fn ends() -> [SessionConfig; 2] {
    noise().map(|config| {
        let mut config = speaking(config, Wire::Two);
        let further = [unchecked(), damaged(), path_acks(), reports()];
        config.capabilities.extend(further);
        config
    })
}

/// Sends so many octets over a link with this share of wrong bits; returns the sender's view, and the true numbers of packets lost.
fn seen(ber: f64, bytes: usize, seed: u64) -> (LossByCause, [f64; CAUSES]) {
    let inner = EndpointConfig {
        rate: RateSource::Found {
            bound: None,
            first: None,
            sharing: RateSharing::default(),
        },
        follows_length: true,
        ..endpoint_config()
    };
    let connection = ConnectionConfig {
        window_tpdus: 4_096,
        ..connection_config()
    };
    let truth = Rc::new(Counts::default());
    let mut pair = Pair::with_connections(
        ends(),
        (inner, connection),
        link(ber, seed, Rc::clone(&truth)),
    );
    for way in [Way::Forward, Way::Back] {
        pair.call(way, |session, _| {
            session.set_armour(PEER, Some(Armour::Follows));
            session.choose_checksum(PEER);
        });
    }
    pair.run(Duration::from_secs(3));
    truth.iter().for_each(|count| count.set(0));
    let sent = octets(bytes);
    for _ in 0..2 {
        pair.begin_again();
        pair.send(&sent);
        pair.run_to_end(Duration::from_secs(900));
        assert!(pair.app(Way::Back).received == sent, "at {}", pair.now);
    }
    let endpoint = pair.session(Way::Forward).inner();
    let found = endpoint.path_losses(PEER.inner_path());
    println!("{ber} {seed}: until {}", pair.now);
    (
        found.expect("there were losses"),
        [0, 1, 2, 3, 4].map(|cause| f64::from(truth[cause].get())),
    )
}

#[test]
#[ignore = "prints what is found where data leaves unchecked later"]
fn wrong_bits_alone() {
    for (ber, seed) in [1e-5, 1e-4, 1e-3].into_iter().zip([910, 920, 930]) {
        for seed in seed..seed + 4 {
            let (found, truth) = seen(ber, 5_000_000, seed);
            println!(
                "{ber} {seed}: {:.0} of {:.0} lost, in truth {truth:?}: {found:?}",
                found.lost, found.sent
            );
        }
    }
}
