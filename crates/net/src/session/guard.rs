//! What a stranger can make us do: one hash, or one small answer, and nothing that stays.
//!
//! The scheme is that of `WireGuard` (Donenfeld 2017, section 5.3 and 5.4.4) with BLAKE3 for its hashes: the
//! first check shows that the sender knows whom it talks to; under load, a second one shows that it
//! receives at the address it claims.

use super::config::Security;
use super::entropy::Entropy;
use super::keys::PublicKey;
use chacha20poly1305::aead::AeadInPlace;
use chacha20poly1305::{KeyInit, Tag, XChaCha20Poly1305, XNonce};
use fulmar_proto::units::{Duration, Instant};

/// Octets of each of the two checks behind an initiation.
pub(super) const MAC_BYTES: usize = 16;
const NONCE_BYTES: usize = 24;
const TAG_BYTES: usize = 16;
/// What follows the header in a cookie datagram.
pub(super) const COOKIE_BODY_BYTES: usize = NONCE_BYTES + MAC_BYTES + TAG_BYTES;

/// A cookie is good for this long, and for as long again under the secret before.
pub(super) const COOKIE_LIFE: Duration = Duration::from_secs(120);

/// A 16-octet check or cookie.
pub(super) type Mac = [u8; MAC_BYTES];

fn mac(key: &[u8; 32], parts: &[&[u8]]) -> Mac {
    let mut hasher = blake3::Hasher::new_keyed(key);
    for part in parts {
        hasher.update(part);
    }
    let mut octets = [0; MAC_BYTES];
    hasher.finalize_xof().fill(&mut octets);
    octets
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
            first: blake3::derive_key("fulmar 2026-11-21 session first check", material),
            cookie: blake3::derive_key("fulmar 2026-11-21 session cookie", material),
        }
    }

    /// Of whoever has this public key.
    pub(super) fn of_public(key: &PublicKey) -> Self {
        Self::derive(&[b"noise", &key.octets()[..]].concat())
    }

    /// Of the end that we reach under `security`.
    pub(super) fn of(security: &Security) -> Self {
        match security {
            Security::Noise { peer, .. } => Self::of_public(peer),
            Security::Preset { key } => Self::derive(&[b"preset", &key.octets()[..]].concat()),
            Security::None { label } => Self::derive(&[b"none", &label.to_be_bytes()[..]].concat()),
        }
    }

    /// The first check of a message.
    pub(super) fn first(&self, message: &[u8]) -> Mac {
        mac(&self.first, &[message])
    }

    /// Whether `first` is the first check of `message`.
    pub(super) fn verifies(&self, message: &[u8], first: &Mac) -> bool {
        same(&self.first(message), first)
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
    pub(super) fn unwrap(&self, body: &[u8], first: &Mac) -> Option<Mac> {
        let body: &[u8; COOKIE_BODY_BYTES] = body.try_into().ok()?;
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

/// The second check: of a message with its first check, under a cookie.
pub(super) fn second(cookie: &Mac, message: &[u8]) -> Mac {
    let key = blake3::derive_key("fulmar 2026-11-21 session second check", cookie);
    mac(&key, &[message])
}

/// What an initiation may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admission {
    /// Be read.
    Granted,
    /// Get a cookie first: this one.
    Prove(Mac),
    /// Nothing.
    Refused,
}

/// Sources told apart while under load. More share their buckets.
const SOURCES: usize = 1_024;
/// Initiations a second that one source may have read while we are under load ...
const SOURCE_RATE: u32 = 4;
/// ... and how many at once.
const SOURCE_BURST: u32 = 8;

#[derive(Clone, Copy)]
struct Bucket {
    /// When it will be full again.
    full_at: Instant,
}

impl Bucket {
    const fn full() -> Self {
        Self {
            full_at: Instant::START,
        }
    }

    /// Takes one, if one of `burst` is there, at one in `each`.
    fn take(&mut self, now: Instant, each: Duration, burst: u32) -> bool {
        let from = self.full_at.max(now);
        if from.saturating_since(now) + each > each * burst {
            return false;
        }
        self.full_at = from + each;
        true
    }

    /// The share that is taken of `burst`.
    fn is_past_half(self, now: Instant, each: Duration, burst: u32) -> bool {
        self.full_at.saturating_since(now) * 2 >= each * burst
    }
}

/// Notices of one kind a second to ends that nobody vouches for, and at once.
const NOTICE_RATE: u32 = 10;

/// Decides which initiations are read. Of constant size.
pub(super) struct Guard {
    each: Duration,
    burst: u32,
    all: Bucket,
    sources: Box<[Bucket; SOURCES]>,
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
            each: Duration::from_secs(1) / burst,
            burst,
            all: Bucket::full(),
            sources: Box::new([Bucket::full(); SOURCES]),
            refusals: Bucket::full(),
            denials: Bucket::full(),
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

    /// Judges an initiation from `source` whose first check is right. `message` is all of it before
    /// the second check, `proof` that check.
    pub(super) fn admit(
        &mut self,
        now: Instant,
        source: &[u8],
        message: &[u8],
        proof: &Mac,
    ) -> Admission {
        self.turn_secrets(now);
        if self.all.is_past_half(now, self.each, self.burst) {
            let cookie = mac(&self.secret, &[source]);
            let before = mac(&self.secret_before, &[source]);
            let proven = [cookie, before]
                .iter()
                .any(|cookie| same(&second(cookie, message), proof));
            if !proven {
                return Admission::Prove(cookie);
            }
            let each = Duration::from_secs(1) / SOURCE_RATE;
            if !self.bucket_of(source).take(now, each, SOURCE_BURST) {
                return Admission::Refused;
            }
        }
        if self.all.take(now, self.each, self.burst) {
            Admission::Granted
        } else {
            Admission::Refused
        }
    }

    fn bucket_of(&mut self, source: &[u8]) -> &mut Bucket {
        let [low, high, ..] = mac(&self.secret, &[b"bucket", source]);
        &mut self.sources[usize::from(u16::from_le_bytes([low, high])) % SOURCES]
    }

    /// Whether one more initiation may be told why it is refused.
    pub(super) fn may_refuse(&mut self, now: Instant) -> bool {
        let each = Duration::from_secs(1) / NOTICE_RATE;
        self.refusals.take(now, each, NOTICE_RATE)
    }

    /// Whether one more sender of data may be told that there are no keys for it.
    pub(super) fn may_deny(&mut self, now: Instant) -> bool {
        let each = Duration::from_secs(1) / NOTICE_RATE;
        self.denials.take(now, each, NOTICE_RATE)
    }

    /// A nonce for a cookie.
    pub(super) fn nonce(&mut self) -> [u8; NONCE_BYTES] {
        self.entropy.array()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: u32 = 100;

    fn guard() -> Guard {
        Guard::new(RATE, Entropy::from_seed([3; 32]))
    }

    fn at(millis: u64) -> Instant {
        Instant::START + Duration::from_millis(millis)
    }

    #[test]
    fn half_the_rate_passes_unasked_then_an_address_must_be_proven() {
        let mut guard = guard();
        let ask = |guard: &mut Guard, proof: &Mac| guard.admit(at(0), b"a", b"message", proof);
        for n in 0..RATE / 2 {
            assert_eq!(ask(&mut guard, &[0; 16]), Admission::Granted, "{n}");
        }
        let Admission::Prove(cookie) = ask(&mut guard, &[0; 16]) else {
            panic!("not asked for a proof");
        };
        let proof = second(&cookie, b"message");
        assert_eq!(ask(&mut guard, &proof), Admission::Granted);
        assert!(matches!(
            guard.admit(at(0), b"b", b"message", &proof),
            Admission::Prove(_)
        ));
    }

    #[test]
    fn one_proven_source_cannot_take_everything() {
        let mut guard = guard();
        while guard.admit(at(0), b"a", b"m", &[0; 16]) == Admission::Granted {}
        let cookie_of =
            |guard: &mut Guard, source: &[u8]| match guard.admit(at(0), source, b"m", &[0; 16]) {
                Admission::Prove(cookie) => second(&cookie, b"m"),
                other => panic!("{other:?}"),
            };
        let greedy = cookie_of(&mut guard, b"greedy");
        let granted = (0..1_000)
            .filter(|_| guard.admit(at(0), b"greedy", b"m", &greedy) == Admission::Granted)
            .count();
        assert_eq!(granted, SOURCE_BURST as usize);
        let modest = cookie_of(&mut guard, b"modest");
        assert_eq!(
            guard.admit(at(0), b"modest", b"m", &modest),
            Admission::Granted
        );
    }

    #[test]
    fn a_cookie_lives_for_one_change_of_secrets_and_not_for_two() {
        let mut guard = guard();
        guard.turn_secrets(at(0) + COOKIE_LIFE);
        while guard.admit(at(120_000), b"a", b"m", &[0; 16]) == Admission::Granted {}
        let Admission::Prove(cookie) = guard.admit(at(120_000), b"a", b"m", &[0; 16]) else {
            panic!("not asked");
        };
        let proof = second(&cookie, b"m");
        for (millis, good) in [(240_000, true), (360_000, false)] {
            while guard.admit(at(millis), b"x", b"m", &[0; 16]) == Admission::Granted {}
            let verdict = guard.admit(at(millis), b"a", b"m", &proof);
            assert_eq!(verdict == Admission::Granted, good, "{millis}");
        }
    }

    #[test]
    fn a_cookie_opens_only_for_the_initiation_it_answers() {
        let keys = GuardKeys::of(&Security::None { label: 1 });
        let body = keys.wrap(&[9; 16], &[1; 16], [5; 24]).unwrap();
        assert_eq!(keys.unwrap(&body, &[1; 16]), Some([9; 16]));
        assert_eq!(keys.unwrap(&body, &[2; 16]), None);
        let others = GuardKeys::of(&Security::None { label: 2 });
        assert_eq!(others.unwrap(&body, &[1; 16]), None);
        assert_eq!(keys.unwrap(&body[1..], &[1; 16]), None);
    }
}
