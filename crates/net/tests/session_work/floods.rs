//! Peers that come in while strangers flood.

use super::forging::{
    CHECK, COVERED, HEADER, at, derived, random, strange_calls, with_first_check, with_header,
};
use super::rows::{key, start};
use crate::session_pair::by_hand::{Place, sent, session, take, the_peer};
use crate::session_pair::{PEER, configs, noise, secret};
use chacha20poly1305::aead::AeadInPlace;
use chacha20poly1305::{KeyInit, XChaCha20Poly1305, XNonce};
use fulmar_net::session::{LinkState, Security};
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{Duration, Instant};

/// Datagrams a second.
const FLOOD: u32 = 30_000;

/// The time that a peer takes to come up while `flood` arrives; with `is_known`, its address is configured.
fn joins_after(
    mut flood: impl FnMut(u32, &mut Rng) -> (Place, Vec<u8>),
    is_known: bool,
) -> Duration {
    let place = the_peer();
    let [mut a, mut b] = noise();
    a.peers[0].endpoints.clear();
    if is_known {
        b.peers[0].endpoints = vec![place.0];
    }
    // An end that knows the caller's address calls it, too: those calls are lost.
    let (mut caller, mut called) = (session(a, 1), session(b, 2));
    let mut rng = Rng::from_seed(23);
    let begins = start() + Duration::from_secs(2);
    let mut now = start();
    let mut has_begun = false;
    let step = Duration::from_secs(1) / FLOOD;
    let delay = Duration::from_millis(10);
    let mut flying: Vec<(Instant, bool, Vec<u8>)> = Vec::new();
    for n in 0..20 * FLOOD {
        now += step;
        let (from, octets) = flood(n, &mut rng);
        take(&mut called, now, from, &octets);
        if !has_begun && now >= begins {
            has_begun = true;
            caller.set_endpoints(PEER, vec![place.0]);
        }
        for (path, octets) in sent(&mut called, now) {
            let is_call = octets[0] == 0x11;
            if path == place.0 && has_begun && !is_call {
                flying.push((now + delay, true, octets));
            }
        }
        if has_begun {
            for (_, octets) in sent(&mut caller, now) {
                flying.push((now + delay, false, octets));
            }
        }
        let (due, later) = flying.into_iter().partition(|(at, ..)| *at <= now);
        flying = later;
        for (_, to_caller, octets) in due {
            let end = if to_caller { &mut caller } else { &mut called };
            take(end, now, place, &octets);
        }
        if has_begun && called.status(PEER).is_some_and(|s| s.link == LinkState::Up) {
            return now.saturating_since(begins);
        }
    }
    Duration::from_secs(20)
}

#[test]
fn twelve_thousand_ports_delay_a_new_peer_by_less_than_a_second() {
    let calls = strange_calls(key(), 50);
    let took = joins_after(
        move |n, _| {
            let port = 1 + u16::try_from(n % 12_000).expect("small");
            let call = calls[n as usize % calls.len()].clone();
            (at([203, 0, 113, 9], port), call)
        },
        false,
    );
    assert!(took < Duration::from_secs(1), "{took:?}");
}

/// Calls from anywhere.
fn forged_addresses() -> impl FnMut(u32, &mut Rng) -> (Place, Vec<u8>) {
    let calls = strange_calls(key(), 50);
    move |n, rng| {
        let mut address = [0; 4];
        rng.fill(&mut address);
        (at(address, 4_914), calls[n as usize % calls.len()].clone())
    }
}

#[test]
fn forged_addresses_do_not_delay_a_peer_that_is_where_the_configuration_says() {
    let took = joins_after(forged_addresses(), true);
    assert!(took < Duration::from_secs(1), "{took:?}");
}

#[test]
fn forged_addresses_delay_a_peer_that_nobody_has_heard_of_by_seconds_only() {
    // One call in ten is heard, and it calls four times a second.
    let took = joins_after(forged_addresses(), false);
    assert!(took < Duration::from_secs(10), "{took:?}");
}

#[test]
fn forged_cookies_do_not_make_a_caller_repeat_itself_without_end() {
    let to = |key: u8| Security::Noise {
        peer: secret(key).public(),
        preset: None,
    };
    let [config, _] = configs([to(2), to(1)], [Some(secret(1)), Some(secret(2))]);
    let mut victim = session(config, 1);
    let call = sent(&mut victim, start()).remove(0).1;
    let before = victim.counters().initiations_sent;
    let wrapping = derived("fulmar 2026-11-21 session cookie", &key());
    let mut rng = Rng::from_seed(5);
    for n in 0..10_000_u64 {
        let now = start() + Duration::from_micros(100 * n);
        let (nonce, mut cookie) = (random(&mut rng, 24), random(&mut rng, 16));
        let tag = XChaCha20Poly1305::new(&wrapping.into())
            .encrypt_in_place_detached(
                XNonce::from_slice(&nonce),
                &call[COVERED..COVERED + CHECK],
                &mut cookie,
            )
            .expect("short");
        let octets = [&[0; HEADER][..], &nonce, &cookie, &tag].concat();
        let index = call[8..12].try_into().expect("4 octets");
        let octets = with_header(octets, 3, index);
        take(&mut victim, now, the_peer(), &octets);
        drop(sent(&mut victim, now));
    }
    let repeated = victim.counters().initiations_sent - before;
    assert!((1..=15).contains(&repeated), "{repeated} in a second");
}

#[test]
fn a_first_check_of_whoever_knows_the_key_is_right() {
    // The tests above make their own: this is one that a session made.
    let call = strange_calls(key(), 1).remove(0);
    assert_eq!(with_first_check(call.clone(), &key()), call);
}
