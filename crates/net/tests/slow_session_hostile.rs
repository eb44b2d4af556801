//! Whatever strangers send, none of it reaches the inner machine, memory does not grow, and a transfer
//! that runs at the same time is not harmed.
//!
//! Method: two sessions in virtual time; beside every true datagram the medium delivers forged ones,
//! from other addresses: noise, cuts, replays, flipped bits, sound headers over garbage, and genuine
//! initiations of an unknown key. The attacker sees everything and knows the public keys.

mod session_pair;

/// The wire of the data in these tests, unless they say another one.
const WIRE: Wire = Wire::One;

use fulmar_net::session::{
    DropReason, Entropy, LinkState, MtuConfig, PeerConfig, Security, Session, SessionConfig, Wire,
};
use fulmar_proto::machine::{Machine, PathId};
use fulmar_proto::rng::Rng;
use fulmar_proto::transport::aerotp::{AerotpEndpoint, EndpointConfig};
use fulmar_proto::units::{Duration, Instant};
use fulmar_proto::wire::checksum::hec;
use session_pair::sight::data;
use session_pair::{
    Copies, Medium, PATH, PEER, Pair, Way, noise, octets, preset_pair, secret, speaking,
};
use std::sync::{Mutex, MutexGuard, PoisonError};

const DELAY: Duration = Duration::from_millis(2);
/// Paths from here on are the attacker's.
const ATTACKER: u32 = 1_000;
const RECORDED: usize = 500;

/// The octets that the process holds in memory.
fn resident_bytes() -> usize {
    const PAGE: usize = 4_096;
    let statm = std::fs::read_to_string("/proc/self/statm").expect("Linux");
    let pages = statm.split_whitespace().nth(1).expect("resident pages");
    pages.parse::<usize>().expect("a number") * PAGE
}

/// Far above what a million stored datagrams would take if one in fifty were kept.
const GROWTH_MAX: usize = 16 << 20;

/// The tests measure the process's memory, so they run one at a time.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn index(rng: &mut Rng, bound: usize) -> usize {
    usize::try_from(rng.below(bound as u64)).expect("in range")
}

/// Initiations made for `listener` by somebody whom it does not know.
fn strange_initiations(count: usize) -> Vec<Vec<u8>> {
    let peer = PeerConfig {
        name: "victim".to_owned(),
        security: Security::Noise {
            peer: secret(2).public(),
            preset: None,
        },
        endpoints: vec![PATH],
        mtu: MtuConfig::default(),
    };
    let config = SessionConfig::new(Some(secret(66)), vec![peer], 1);
    let made = (0..count).map(|n| {
        let inner = AerotpEndpoint::new(EndpointConfig::default(), Rng::from_seed(0));
        let mut seed = [0; 32];
        seed[..8].copy_from_slice(&(n as u64).to_le_bytes());
        let entropy = Entropy::from_seed(seed);
        let mut caller = Session::new(config.clone(), inner, entropy).expect("sound");
        let mut octets = Vec::new();
        caller
            .poll_transmit(Instant::START, &mut octets)
            .expect("an initiation");
        octets
    });
    made.collect()
}

fn forged(rng: &mut Rng, recorded: &[Vec<u8>], strange: &[Vec<u8>]) -> Vec<u8> {
    let pick = |rng: &mut Rng| recorded[index(rng, recorded.len())].clone();
    let with_hec = |mut octets: Vec<u8>| {
        if octets.len() >= 12 {
            let hec = hec(&octets[..2], &octets[4..12]);
            octets[2..4].copy_from_slice(&hec.to_be_bytes());
        }
        octets
    };
    match rng.below(8) {
        0 => {
            let mut noise = vec![0; index(rng, 1_500)];
            rng.fill(&mut noise);
            noise
        }
        1 => {
            let mut cut = pick(rng);
            cut.truncate(index(rng, cut.len() + 1));
            cut
        }
        2 | 3 => pick(rng),
        4 | 5 => {
            let mut flipped = pick(rng);
            for _ in 0..=rng.below(4) {
                let bit = index(rng, flipped.len() * 8);
                flipped[bit / 8] ^= 1 << (bit % 8);
            }
            // Half of the datagrams get a header whose check is right again.
            if rng.chance(0.5) {
                with_hec(flipped)
            } else {
                flipped
            }
        }
        6 => {
            // The right index, any counter, any type, garbage inside.
            let mut octets = pick(rng);
            let end = octets.len();
            if let Some(Wire::Two) = data(&octets).map(|data| data.wire) {
                octets[0] = 0x28 | (rng.next_u64() & 0x07) as u8;
                let from = if rng.chance(0.5) { 5 } else { 8 };
                rng.fill(&mut octets[from.min(end)..]);
                return octets;
            }
            let kind = 0x10 | (rng.next_u64() & 0x07) as u8;
            octets[0] = kind;
            let from = if rng.chance(0.5) { 8 } else { 12 };
            rng.fill(&mut octets[from.min(end)..]);
            with_hec(octets)
        }
        _ => strange[index(rng, strange.len())].clone(),
    }
}

fn attacked(seed: u64, limit: u64, each: u64) -> Medium {
    let mut rng = Rng::from_seed(seed).child("attacker");
    let mut recorded: [Vec<Vec<u8>>; 2] = [Vec::new(), Vec::new()];
    let strange = strange_initiations(50);
    let mut made = 0;
    Box::new(move |way, _, path, octets| {
        if path.0 >= ATTACKER {
            return Vec::new();
        }
        let seen = &mut recorded[way as usize];
        if seen.len() < RECORDED {
            seen.push(octets.to_vec());
        }
        let mut copies: Copies = vec![(DELAY, path, octets.to_vec())];
        for _ in 0..each.min(limit - made) {
            made += 1;
            let from = PathId(ATTACKER + u32::try_from(rng.below(100_000)).expect("small"));
            copies.push((DELAY, from, forged(&mut rng, seen, &strange)));
        }
        copies
    })
}

#[test]
fn a_million_forged_datagrams_do_not_touch_a_transfer() {
    let _alone = alone();
    let in_two = |configs: [SessionConfig; 2]| configs.map(|config| speaking(config, Wire::Two));
    for (configs, seed) in [(noise(), 1), (preset_pair(), 2), (in_two(noise()), 3)] {
        const FORGED: u64 = 500_000;
        let mut pair = Pair::new(configs, attacked(seed, FORGED, 100));
        let sent = octets(6_500_000);
        pair.send(&sent);
        // Buffers have their size, and half the forgeries are yet to come.
        pair.run(Duration::from_secs(2));
        let before = resident_bytes();
        pair.run_to_end(Duration::from_secs(20));
        let received = &pair.app(Way::Back).received;
        assert!(
            *received == sent,
            "{} octets at {}",
            received.len(),
            pair.now
        );
        let growth = resident_bytes().saturating_sub(before);
        // The octets received, and the test's own log of datagrams.
        let own = 2 * sent.len() + (4 << 20);

        assert!(growth < own + GROWTH_MAX, "{growth} octets more");
        for (from, to) in [(Way::Forward, Way::Back), (Way::Back, Way::Forward)] {
            let sent = pair.session(from).counters().sent;
            let received = pair.session(to).counters().received;
            // Nothing is lost here; the last few are still on their way.
            assert!(
                (sent - 20..=sent).contains(&received),
                "{received} of {sent}"
            );
        }
        let mut dropped = 0;
        for way in [Way::Forward, Way::Back] {
            let session = pair.session(way);
            let inner = session.inner().endpoint_counters();
            assert_eq!((inner.rejected, inner.strangers), (0, 0), "{way:?}");
            assert_eq!(session.counters().moves, 0, "{way:?}");
            assert_eq!(session.counters().outages, 0, "{way:?}");
            let counters = DropReason::ALL.map(|reason| session.counters().dropped(reason));
            dropped += counters.iter().sum::<u64>();
            let status = session.status(PEER).expect("a peer");
            assert_eq!((status.link, status.path), (LinkState::Up, Some(PATH)));
        }
        assert!(dropped >= FORGED * 9 / 10, "{dropped} of {FORGED} seen");
    }
}

#[test]
fn a_hundred_thousand_handshakes_of_strangers_leave_memory_flat_and_traffic_running() {
    let _alone = alone();
    let strange = strange_initiations(200);
    let medium: Medium = Box::new(|_, _, path, octets| {
        let of_attacker = path.0 >= ATTACKER;
        if of_attacker {
            Vec::new()
        } else {
            vec![(DELAY, path, octets.to_vec())]
        }
    });
    let mut pair = Pair::new(noise(), medium);
    pair.send(&octets(4_000_000));
    pair.run(Duration::from_millis(200));
    let before = resident_bytes();
    // Ten thousand a second, while the transfer runs at its full rate for four.
    for n in 0..100_000_u32 {
        if n < 40_000 {
            pair.run(Duration::from_micros(100));
        }
        let octets = &strange[n as usize % strange.len()];
        pair.inject(1, PathId(ATTACKER + n), octets);
    }
    pair.run_to_end(Duration::from_secs(1));
    let finished = pair.app(Way::Back).finished.expect("the transfer ended");
    // 4 MB and their headers at 10 mbit take 3.4 s.
    assert!(
        finished < Instant::START + Duration::from_secs(4),
        "{finished}"
    );
    let growth = resident_bytes().saturating_sub(before);
    assert!(
        growth < 2 * 4_000_000 + (4 << 20) + GROWTH_MAX,
        "{growth} octets more"
    );
    let counters = pair.session(Way::Back).counters();
    let asked = counters.dropped(DropReason::CookieAsked);
    let unheard = counters.dropped(DropReason::Flood);
    let read = counters.dropped(DropReason::UnknownPeer);
    assert!(
        asked + unheard > 99_000,
        "{asked} asked, {unheard} not heard"
    );
    // One of ten, and a hundred a second over the four seconds and a bit.
    assert!(
        (9_900..=10_700).contains(&asked),
        "{asked} asked to prove their address"
    );
    // Half of a hundred are read before it is a flood, and none after.
    assert!(read <= 60, "{read} initiations read");
    assert_eq!(counters.responses_sent, 1);
}

#[test]
fn a_peer_that_proves_its_address_gets_in_during_a_flood() {
    let _alone = alone();
    let strange = strange_initiations(50);
    let medium: Medium = Box::new(|_, _, path, octets| {
        let of_attacker = path.0 >= ATTACKER;
        if of_attacker {
            Vec::new()
        } else {
            vec![(DELAY, path, octets.to_vec())]
        }
    });
    let mut configs = noise();
    configs[0].peers[0].endpoints.clear();
    let mut pair = Pair::new(configs, medium);
    // One call in ten is asked for a proof: a caller that repeats its call is soon asked.
    for n in 0..12_000_u32 {
        if n == 1_000 {
            pair.call(Way::Forward, |session, _| {
                session.set_endpoints(PEER, vec![PATH]);
            });
        }
        pair.inject(
            1,
            PathId(ATTACKER + n),
            &strange[n as usize % strange.len()],
        );
        pair.run(Duration::from_micros(500));
    }
    let counters = pair.session(Way::Back).counters();
    assert!(counters.cookies_sent > 0);
    let status = pair.session(Way::Forward).status(PEER).expect("a peer");
    assert_eq!(status.link, LinkState::Up, "{counters:?}");
}

#[test]
fn no_answer_to_a_stranger_is_larger_than_its_question() {
    // Every octet string that a listener answers at all: initiations, whole or not.
    let mut largest: i64 = i64::MIN;
    for configs in [noise(), preset_pair(), session_pair::unprotected()] {
        let mut asked = 0;
        let medium: Medium = Box::new(|_, _, path, octets| vec![(DELAY, path, octets.to_vec())]);
        let mut pair = Pair::new(configs, medium);
        pair.run(Duration::from_secs(1));
        let question = pair.app(Way::Forward).sent[0].1;
        for (_, len) in &pair.app(Way::Back).sent[..1] {
            asked += 1;
            largest = largest
                .max(i64::try_from(*len).expect("small") - i64::try_from(question).expect("small"));
        }
        assert_eq!(asked, 1);
    }
    assert!(
        largest < 0,
        "an answer has {largest} octets more than its question"
    );
}
