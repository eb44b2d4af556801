//! The limit on the work that a stranger can make us do: a few hashes, rarely a small answer, and no stored state.
//!
//! The scheme is that of `WireGuard` (Donenfeld 2017, section 5.3 and 5.4.4) with BLAKE3 for its hashes: the
//! first check shows that the sender knows whom it talks to; under load, a second one shows that it
//! receives at the address it claims. Both come before any operation with keys, and so do the limits of
//! sources ([`SourceLimits`]). Work that costs more than hashes has a rate, and so have answers: ADR 0022 derives them.

use super::config::Security;
use super::entropy::Entropy;
use super::keys::PublicKey;
use super::primitives;
pub(super) use super::primitives::MAC_BYTES;
use super::sources::{Bucket, Rate, SourceLimits};
use super::work::Work;
use chacha20poly1305::aead::AeadInPlace;
use chacha20poly1305::{KeyInit, Tag, XChaCha20Poly1305, XNonce};
use fulmar_proto::units::{Duration, Instant};

const NONCE_BYTES: usize = 24;
const TAG_BYTES: usize = 16;
/// Octets behind the header in a cookie datagram.
pub(super) const COOKIE_BODY_BYTES: usize = NONCE_BYTES + MAC_BYTES + TAG_BYTES;

/// The time for which a cookie is good; it is good for as long again under the secret before.
pub(super) const COOKIE_LIFE: Duration = Duration::from_secs(120);

/// A 16-octet check or cookie.
pub(super) type Mac = [u8; MAC_BYTES];

/// A keyed hash.
fn hash(work: &mut Work, key: &[u8; 32], octets: &[u8]) -> Mac {
    work.hashes += 1;
    let mut mac = [0; MAC_BYTES];
    let hash = primitives::keyed_hash(key, octets);
    mac.copy_from_slice(&hash[..MAC_BYTES]);
    mac
}

/// Compares in constant time.
fn same(a: &Mac, b: &Mac) -> bool {
    a.iter().zip(b).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
}

/// The keys of an addressee's checks and cookies. Whoever knows its public (or preset) key has them.
#[derive(Clone)]
pub(super) struct GuardKeys {
    first: [u8; 32],
    cookie: [u8; 32],
}

impl GuardKeys {
    fn derive(material: &[u8]) -> Self {
        Self {
            first: primitives::derive_key("fulmar 2026-11-21 session first check", material),
            cookie: primitives::derive_key("fulmar 2026-11-21 session cookie", material),
        }
    }

    /// The keys of the end that has this public key.
    pub(super) fn of_public(key: &PublicKey) -> Self {
        Self::derive(&[b"noise", &key.octets()[..]].concat())
    }

    /// The keys of the end that we reach under `security`.
    pub(super) fn of(security: &Security) -> Self {
        match security {
            Security::Noise { peer, .. } => Self::of_public(peer),
            Security::Preset { key } => Self::derive(&[b"preset", &key.octets()[..]].concat()),
            Security::Nobody => Self::derive(b"nobody"),
            Security::None { label } => Self::derive(&[b"none", &label.to_be_bytes()[..]].concat()),
        }
    }

    /// The first check of a message.
    pub(super) fn first(&self, work: &mut Work, message: &[u8]) -> Mac {
        hash(work, &self.first, message)
    }

    /// Whether `first` is the first check of `message`.
    pub(super) fn verifies(&self, work: &mut Work, message: &[u8], first: &Mac) -> bool {
        same(&self.first(work, message), first)
    }

    /// Whether checks under `other` are checks under these.
    pub(super) fn is(&self, other: &Self) -> bool {
        self.first == other.first
    }

    /// Wraps a cookie for the sender of the initiation with this first check.
    pub(super) fn wrap(
        &self,
        cookie: &Mac,
        first: &Mac,
        nonce: [u8; NONCE_BYTES],
    ) -> Option<[u8; COOKIE_BODY_BYTES]> {
        let mut wrapped = *cookie;
        let tag = XChaCha20Poly1305::new(&self.cookie.into())
            .encrypt_in_place_detached(&XNonce::from(nonce), first, &mut wrapped)
            .ok()?;
        let mut body = [0; COOKIE_BODY_BYTES];
        body[..NONCE_BYTES].copy_from_slice(&nonce);
        body[NONCE_BYTES..NONCE_BYTES + MAC_BYTES].copy_from_slice(&wrapped);
        body[NONCE_BYTES + MAC_BYTES..].copy_from_slice(&tag);
        Some(body)
    }

    /// Unwraps a cookie that answers our initiation with this first check.
    pub(super) fn unwrap(&self, work: &mut Work, body: &[u8], first: &Mac) -> Option<Mac> {
        let body: &[u8; COOKIE_BODY_BYTES] = body.try_into().ok()?;
        work.openings += 1;
        let (nonce, rest) = body.split_first_chunk::<NONCE_BYTES>()?;
        let (wrapped, tag) = rest.split_first_chunk::<MAC_BYTES>()?;
        let mut cookie = *wrapped;
        XChaCha20Poly1305::new(&self.cookie.into())
            .decrypt_in_place_detached(
                &XNonce::from(*nonce),
                first,
                &mut cookie,
                Tag::from_slice(tag),
            )
            .ok()?;
        Some(cookie)
    }
}

/// The key of second checks. It is no secret: the cookie is one, and is part of the hashed octets.
const SECOND_KEY: [u8; 32] = *b"fulmar 20261122 second check key";

/// The second check of a message with this first check, under a cookie. The first check stands for the message, so that
/// this costs one block of the hash: whoever invents a second check makes us compute the right one.
pub(super) fn second(work: &mut Work, cookie: &Mac, first: &Mac) -> Mac {
    let mut octets = [0; 2 * MAC_BYTES];
    let (of_cookie, of_message) = octets.split_at_mut(MAC_BYTES);
    of_cookie.copy_from_slice(cookie);
    of_message.copy_from_slice(first);
    hash(work, &SECOND_KEY, &octets)
}

/// The verdict on an initiation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admission {
    /// It may be read.
    Granted,
    /// It gets this cookie first.
    Prove(Mac),
    /// It is dropped.
    Refused,
}

/// An initiation whose first check is right.
#[derive(Clone, Copy)]
pub(super) struct Call<'a> {
    /// The octets of the address that it came from.
    pub(super) source: &'a [u8],
    /// Whether a peer is, or may be found, at that address.
    pub(super) is_known: bool,
    /// Its first check.
    pub(super) first: &'a Mac,
    /// The second check.
    pub(super) proof: &'a Mac,
}

/// The second check of a caller that has no cookie.
pub(super) const NO_PROOF: Mac = [0; MAC_BYTES];

/// The time that load lasts after the last initiation that came too soon.
const LOAD_LASTS: Duration = Duration::from_secs(1);
/// Initiations read of one proven host, and of one network, while under load.
const HOST_RATE: Rate = Rate::per_second(8, 16);
const NETWORK_RATE: Rate = Rate::per_second(16, 32);
/// Initiations read of each address where a peer is known to be, whatever others send.
const KNOWN_RATE: Rate = Rate::per_second(50, 50);
/// The calls without proof for one cookie. Sending a cookie takes as long as reading several calls, so
/// this bounds the mean cost of a call, however many come.
const CALLS_A_COOKIE: u32 = 10;
/// The most cookies for which calls are remembered.
const COOKIES_SAVED_MAX: u32 = 50;
/// Cookies besides those, so that a few calls get theirs at once; and the shares of one host, of one network, and of
/// the addresses where peers are known to be.
const COOKIE_RATE: Rate = Rate::per_second(100, 100);
const COOKIE_HOST_RATE: Rate = Rate::per_second(50, 50);
const COOKIE_NETWORK_RATE: Rate = Rate::per_second(100, 100);
const COOKIE_KNOWN_RATE: Rate = Rate::per_second(100, 50);
/// Notices of one kind to ends that nobody vouches for.
const NOTICE_RATE: Rate = Rate::per_second(10, 10);
/// Second checks that are tried under the secret before.
const BEFORE_RATE: Rate = Rate::per_second(100, 100);
/// First checks under further keys, where peers are told apart by preset keys or labels.
const FURTHER_RATE: Rate = Rate::per_second(2_000, 2_000);

/// The judge of which initiations are read. Of constant size.
pub(super) struct Guard {
    rate: Rate,
    arrivals: Bucket,
    loaded_until: Instant,
    read: Bucket,
    read_of_known: Bucket,
    read_of: SourceLimits,
    /// The calls that no cookie was sent for.
    calls: u32,
    cookies: Bucket,
    cookies_of_known: Bucket,
    cookies_of: SourceLimits,
    proofs_of_before: Bucket,
    further: Bucket,
    refusals: Bucket,
    denials: Bucket,
    entropy: Entropy,
    secret: [u8; 32],
    secret_before: [u8; 32],
    secret_since: Instant,
}

impl Guard {
    pub(super) fn new(handshakes_per_second: u32, mut entropy: Entropy) -> Self {
        let burst = handshakes_per_second.max(2);
        Self {
            rate: Rate::per_second(burst, burst),
            arrivals: Bucket::FULL,
            loaded_until: Instant::START,
            read: Bucket::FULL,
            read_of_known: Bucket::FULL,
            read_of: SourceLimits::new(entropy.array(), HOST_RATE, NETWORK_RATE),
            calls: 0,
            cookies: Bucket::FULL,
            cookies_of_known: Bucket::FULL,
            cookies_of: SourceLimits::new(entropy.array(), COOKIE_HOST_RATE, COOKIE_NETWORK_RATE),
            proofs_of_before: Bucket::FULL,
            further: Bucket::FULL,
            refusals: Bucket::FULL,
            denials: Bucket::FULL,
            secret: entropy.array(),
            secret_before: entropy.array(),
            secret_since: Instant::START,
            entropy,
        }
    }

    fn turn_secrets(&mut self, now: Instant) {
        if now.saturating_since(self.secret_since) >= COOKIE_LIFE {
            self.secret_before = core::mem::replace(&mut self.secret, self.entropy.array());
            self.secret_since = now;
        }
    }

    /// Notes an arrival, and returns whether there is load. While more than half of the readable rate arrives, a
    /// caller must prove its address. Arrivals are counted, not the initiations read: otherwise a flood would be
    /// read at that rate.
    fn is_loaded(&mut self, now: Instant) -> bool {
        if self.arrivals.is_past_half(now, self.rate) {
            self.loaded_until = now + LOAD_LASTS;
        }
        self.arrivals.take(now, self.rate);
        now < self.loaded_until
    }

    /// Judges an initiation.
    pub(super) fn admit(&mut self, now: Instant, work: &mut Work, call: Call<'_>) -> Admission {
        self.turn_secrets(now);
        let is_granted = if !self.is_loaded(now) {
            self.read.take(now, self.rate)
        } else if self.is_proven(now, work, call) {
            let reserved = call.is_known && self.read_of_known.take(now, KNOWN_RATE);
            reserved
                || self.read.has(now, self.rate)
                    && self.read_of.take(now, call.source)
                    && self.read.take(now, self.rate)
        } else {
            return self.ask_for_proof(now, work, call);
        };
        if is_granted {
            Admission::Granted
        } else {
            Admission::Refused
        }
    }

    /// Whether the second check is right. Cookies from before the last change of secrets are tried at a limited
    /// rate: most wrong second checks were never right.
    fn is_proven(&mut self, now: Instant, work: &mut Work, call: Call<'_>) -> bool {
        let mut proves = |secret| {
            let cookie = hash(work, secret, call.source);
            same(&second(work, &cookie, call.first), call.proof)
        };
        *call.proof != NO_PROOF
            && (proves(&self.secret)
                || self.proofs_of_before.take(now, BEFORE_RATE) && proves(&self.secret_before))
    }

    fn ask_for_proof(&mut self, now: Instant, work: &mut Work, call: Call<'_>) -> Admission {
        self.calls = (self.calls + 1).min(CALLS_A_COOKIE * COOKIES_SAVED_MAX);
        let reserved = call.is_known && self.cookies_of_known.take(now, COOKIE_KNOWN_RATE);
        let is_asked = reserved
            || (self.calls >= CALLS_A_COOKIE || self.cookies.has(now, COOKIE_RATE))
                && self.cookies_of.take(now, call.source)
                && self.takes_cookie(now);
        if is_asked {
            Admission::Prove(hash(work, &self.secret, call.source))
        } else {
            Admission::Refused
        }
    }

    fn takes_cookie(&mut self, now: Instant) -> bool {
        if let Some(left) = self.calls.checked_sub(CALLS_A_COOKIE) {
            self.calls = left;
            return true;
        }
        self.cookies.take(now, COOKIE_RATE)
    }

    /// Whether a first check may be tried under one more key, after the first.
    pub(super) fn may_try_further(&mut self, now: Instant) -> bool {
        self.further.take(now, FURTHER_RATE)
    }

    /// Whether one more initiation may be told why it is refused.
    pub(super) fn may_refuse(&mut self, now: Instant) -> bool {
        self.refusals.take(now, NOTICE_RATE)
    }

    /// Whether one more sender of data may be told that there are no keys for it.
    pub(super) fn may_deny(&mut self, now: Instant) -> bool {
        self.denials.take(now, NOTICE_RATE)
    }

    /// A nonce for a cookie.
    pub(super) fn nonce(&mut self) -> [u8; NONCE_BYTES] {
        self.entropy.array()
    }
}

#[cfg(test)]
mod tests {
    use super::super::source_octets;
    use super::*;

    const RATE: u32 = 100;
    const FIRST: Mac = *b"a call's 1st mac";

    fn guard() -> Guard {
        Guard::new(RATE, Entropy::from_seed([3; 32]))
    }

    fn at(millis: u64) -> Instant {
        Instant::START + Duration::from_millis(millis)
    }

    fn ask(guard: &mut Guard, millis: u64, source: &[u8], proof: &Mac) -> Admission {
        let call = Call {
            source,
            is_known: source == b"known",
            first: &FIRST,
            proof,
        };
        guard.admit(at(millis), &mut Work::default(), call)
    }

    fn proof_of(cookie: &Mac) -> Mac {
        second(&mut Work::default(), cookie, &FIRST)
    }

    /// The right second check for `source`.
    fn proof_for(guard: &mut Guard, millis: u64, source: &[u8]) -> Mac {
        match ask(guard, millis, source, &NO_PROOF) {
            Admission::Prove(cookie) => proof_of(&cookie),
            other => panic!("{other:?}"),
        }
    }

    fn put_under_load(guard: &mut Guard, millis: u64) {
        while ask(guard, millis, b"crowd", &NO_PROOF) == Admission::Granted {}
    }

    #[test]
    fn half_the_rate_passes_unasked_then_an_address_must_be_proven() {
        let mut guard = guard();
        for n in 0..RATE / 2 {
            assert_eq!(
                ask(&mut guard, 0, b"a", &NO_PROOF),
                Admission::Granted,
                "{n}"
            );
        }
        let proof = proof_for(&mut guard, 0, b"a");
        assert_eq!(ask(&mut guard, 0, b"a", &proof), Admission::Granted);
        assert!(matches!(
            ask(&mut guard, 0, b"b", &proof),
            Admission::Prove(_)
        ));
    }

    #[test]
    fn a_flood_without_proof_is_not_read_at_all_and_its_end_is_noticed() {
        let mut guard = guard();
        put_under_load(&mut guard, 0);
        for millis in 0..5_000 {
            let verdict = ask(&mut guard, millis, b"a", &NO_PROOF);
            assert_ne!(verdict, Admission::Granted, "{millis}");
        }
        assert_eq!(ask(&mut guard, 7_000, b"a", &NO_PROOF), Admission::Granted);
    }

    #[test]
    fn one_proven_host_cannot_take_everything_whatever_its_port() {
        let mut guard = guard();
        put_under_load(&mut guard, 0);
        let from = |port: u16| source_octets(([192, 0, 2, 1], port).into());
        let mut granted = 0;
        for port in 1..=12_000 {
            let Admission::Prove(cookie) = ask(&mut guard, 0, &from(port), &NO_PROOF) else {
                continue;
            };
            let proof = proof_of(&cookie);
            granted += u32::from(ask(&mut guard, 0, &from(port), &proof) == Admission::Granted);
        }
        assert_eq!(granted, 16);
        let modest = source_octets(([198, 51, 100, 1], 4_914).into());
        let proof = proof_for(&mut guard, 0, &modest);
        assert_eq!(ask(&mut guard, 0, &modest, &proof), Admission::Granted);
    }

    #[test]
    fn cookies_are_for_a_share_of_calls_and_where_a_peer_is_known_to_be_has_its_own() {
        let mut guard = guard();
        put_under_load(&mut guard, 0);
        let mut cookies = 0;
        for n in 0..5_000_u32 {
            let verdict = ask(&mut guard, 0, &n.to_be_bytes(), &NO_PROOF);
            cookies += u32::from(matches!(verdict, Admission::Prove(_)));
        }
        // One cookie for each ten calls, and a hundred.
        assert!((595..=605).contains(&cookies), "{cookies}");
        let proof = proof_for(&mut guard, 0, b"known");
        assert_eq!(ask(&mut guard, 0, b"known", &proof), Admission::Granted);
    }

    #[test]
    fn a_cookie_lives_for_one_change_of_secrets_and_not_for_two() {
        let mut guard = guard();
        guard.turn_secrets(at(0) + COOKIE_LIFE);
        put_under_load(&mut guard, 120_000);
        let proof = proof_for(&mut guard, 120_000, b"a");
        for (millis, good) in [(240_000, true), (360_000, false)] {
            put_under_load(&mut guard, millis);
            let verdict = ask(&mut guard, millis, b"a", &proof);
            assert_eq!(verdict == Admission::Granted, good, "{millis}");
        }
    }

    #[test]
    fn a_cookie_opens_only_for_the_initiation_it_answers() {
        let keys = GuardKeys::of(&Security::None { label: 1 });
        let mut work = Work::default();
        let body = keys.wrap(&[9; 16], &[1; 16], [5; 24]).unwrap();
        assert_eq!(keys.unwrap(&mut work, &body, &[1; 16]), Some([9; 16]));
        assert_eq!(keys.unwrap(&mut work, &body, &[2; 16]), None);
        let others = GuardKeys::of(&Security::None { label: 2 });
        assert_eq!(others.unwrap(&mut work, &body, &[1; 16]), None);
        assert_eq!(keys.unwrap(&mut work, &body[1..], &[1; 16]), None);
        assert_eq!(work.openings, 3);
    }
}
