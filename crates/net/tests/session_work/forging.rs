//! Datagrams that strangers can make: of nothing, of our public key, or of what they saw.

use crate::session_pair::by_hand::{Place, sent, session};
use crate::session_pair::{PATH, secret};
use chacha20poly1305::aead::AeadInPlace;
use chacha20poly1305::{KeyInit, Tag, XChaCha20Poly1305, XNonce};
use fulmar_net::session::{MtuConfig, PeerConfig, PublicKey, Security, SessionConfig};
use fulmar_proto::machine::PathId;
use fulmar_proto::rng::Rng;
use fulmar_proto::units::Instant;
use fulmar_proto::wire::checksum::hec;
use std::net::Ipv4Addr;

pub(crate) const HEADER: usize = 12;
pub(crate) const CHECK: usize = 16;
/// An initiation of kind Noise, without its two checks.
pub(crate) const COVERED: usize = HEADER + 352;

pub(crate) fn at(address: [u8; 4], port: u16) -> Place {
    // One path for each address and port, none of them the peer's.
    let low = u32::from_be_bytes(address).wrapping_mul(0x9E37_79B1) ^ u32::from(port) << 12;
    (
        PathId(low | 1 << 31),
        (Ipv4Addr::from(address), port).into(),
    )
}

pub(crate) fn a_stranger() -> Place {
    at([203, 0, 113, 9], 1_000)
}

pub(crate) fn with_header(mut octets: Vec<u8>, kind: u8, receiver: [u8; 4]) -> Vec<u8> {
    octets[0] = 0x10 | kind;
    octets[1] = 0;
    octets[4..8].copy_from_slice(&receiver);
    with_hec(octets)
}

pub(crate) fn with_hec(mut octets: Vec<u8>) -> Vec<u8> {
    let check = hec(&octets[..2], &octets[4..HEADER]);
    octets[2..4].copy_from_slice(&check.to_be_bytes());
    octets
}

pub(crate) fn derived(context: &str, key: &PublicKey) -> [u8; 32] {
    blake3::derive_key(context, &[b"noise", &key.octets()[..]].concat())
}

pub(crate) fn short_hash(key: &[u8; 32], octets: &[u8]) -> [u8; CHECK] {
    let mut hash = [0; CHECK];
    let mut hasher = blake3::Hasher::new_keyed(key);
    hasher.update(octets).finalize_xof().fill(&mut hash);
    hash
}

/// Appends the first check, as whoever knows that public key can make it.
pub(crate) fn with_first_check(mut octets: Vec<u8>, key: &PublicKey) -> Vec<u8> {
    let derived = derived("fulmar 2026-11-21 session first check", key);
    let first = short_hash(&derived, &octets[..COVERED]);
    octets[COVERED..COVERED + CHECK].copy_from_slice(&first);
    octets
}

/// The initiation with the second check that its cookie, which came in `answer`, asks for.
pub(crate) fn with_second_check(mut octets: Vec<u8>, key: &PublicKey, answer: &[u8]) -> Vec<u8> {
    let derived = derived("fulmar 2026-11-21 session cookie", key);
    let body = &answer[HEADER..];
    let (nonce, wrapped, tag) = (&body[..24], &body[24..40], &body[40..56]);
    let mut cookie: [u8; CHECK] = wrapped.try_into().expect("16 octets");
    XChaCha20Poly1305::new(&derived.into())
        .decrypt_in_place_detached(
            XNonce::from_slice(nonce),
            &octets[COVERED..COVERED + CHECK],
            &mut cookie,
            Tag::from_slice(tag),
        )
        .expect("a cookie for this initiation");
    let covered = [&cookie[..], &octets[COVERED..COVERED + CHECK]].concat();
    let second = short_hash(b"fulmar 20261122 second check key", &covered);
    octets[COVERED + CHECK..].copy_from_slice(&second);
    octets
}

/// Genuine initiations for `key` from a caller that is not known there.
pub(crate) fn strange_calls(key: PublicKey, count: u8) -> Vec<Vec<u8>> {
    let peer = PeerConfig {
        name: "victim".to_owned(),
        security: Security::Noise {
            peer: key,
            preset: None,
        },
        endpoints: vec![PATH],
        mtu: MtuConfig::default(),
    };
    let config = SessionConfig::new(Some(secret(66)), vec![peer], 1);
    let calls = (0..count).map(|seed| {
        let mut caller = session(config.clone(), seed);
        let (_, octets) = sent(&mut caller, Instant::START)
            .pop()
            .expect("an initiation");
        octets
    });
    calls.collect()
}

pub(crate) fn random(rng: &mut Rng, len: usize) -> Vec<u8> {
    let mut octets = vec![0; len];
    rng.fill(&mut octets);
    octets
}
