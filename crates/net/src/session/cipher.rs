//! The seal of datagrams: the AEADs, their keys and nonces, and the choice between them for two ends.
//!
//! Handshakes are always Noise's with `ChaChaPoly`. Data goes under the keys of its `Split()` with the
//! same AEAD, or, if both ends said in their hellos that their processors are made for it, under
//! AES-256-GCM with keys derived from those.

use super::path_slot::PathSlot;
use super::primitives::derive_key;
use super::wire::{Capability, Hello};
use fulmar_proto::wire::checksum::crc32;
use ring::aead::{AES_256_GCM, Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use zeroize::Zeroizing;

/// The most octets that sealing adds.
pub(super) const TAG_BYTES: usize = 16;
const CRC_BYTES: usize = 4;
const KEY_BYTES: usize = 32;
const NONCE_BYTES: usize = 12;

const CIPHER: &str = "cipher";
const AES: &str = "aes-256-gcm";
/// A key never serves two algorithms.
const AES_CONTEXT: &str = "fulmar 2026-11-22 session aes-256-gcm";

/// The octets of an AES block.
const BLOCK_BYTES: usize = 16;
/// The datagrams under one AES key after which another is asked for.
const AES_DATAGRAMS_RENEW: u64 = 1 << 24;
/// The most blocks under one AES key. For an attacker's advantage of 2^-57, RFC 9001, appendix B.1.1, allows 2^28
/// packets of 2^11 octets, or 2^23 of 2^16, which are as many blocks.
const AES_BLOCKS_MAX: u64 = 1 << 35;
/// The most forgeries that may be tried under one key: RFC 9001, appendix B.2, allows 2^36 for
/// ChaCha20-Poly1305, and more for AES-256-GCM.
pub(super) const FORGED_MAX: u64 = 1 << 36;

/// The capability in a hello that asks for data sealed by AES-256-GCM, which is used if the peer says the same.
/// `None` on processors without instructions for AES. With them it takes less than half of ChaCha20-Poly1305's
/// time, and without them several times as much.
pub fn fast_cipher() -> Option<Capability> {
    has_aes().then(|| Capability {
        name: CIPHER.to_owned(),
        value: AES.to_owned(),
        must_agree: false,
    })
}

#[cfg(target_arch = "x86_64")]
fn has_aes() -> bool {
    std::arch::is_x86_feature_detected!("aes") && std::arch::is_x86_feature_detected!("pclmulqdq")
}

#[cfg(target_arch = "aarch64")]
fn has_aes() -> bool {
    std::arch::is_aarch64_feature_detected!("aes")
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const fn has_aes() -> bool {
    false
}

/// The AEAD that seals data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Suite {
    ChaCha20Poly1305,
    Aes256Gcm,
}

impl Suite {
    /// The suite of two ends that said this in their hellos.
    pub(super) fn of(ours: &Hello, theirs: &Hello) -> Self {
        let wants = |hello: &Hello| {
            let mut said = hello.capabilities.iter();
            said.any(|capability| capability.name == CIPHER && capability.value == AES)
        };
        if wants(ours) && wants(theirs) {
            Self::Aes256Gcm
        } else {
            Self::ChaCha20Poly1305
        }
    }

    fn key(self, split: &[u8; KEY_BYTES]) -> Option<LessSafeKey> {
        let unbound = match self {
            Self::ChaCha20Poly1305 => UnboundKey::new(&CHACHA20_POLY1305, split),
            Self::Aes256Gcm => {
                let derived = Zeroizing::new(derive_key(AES_CONTEXT, split));
                UnboundKey::new(&AES_256_GCM, derived.as_slice())
            }
        };
        unbound.ok().map(LessSafeKey::new)
    }

    /// The nonce of a number: the path's place, then the counter as Noise has it (revision 34, section 12).
    fn nonce(self, number: Number) -> Nonce {
        let mut octets = [0; NONCE_BYTES];
        octets[3] = number.slot.bits();
        octets[4..].copy_from_slice(&match self {
            Self::ChaCha20Poly1305 => number.counter.to_le_bytes(),
            Self::Aes256Gcm => number.counter.to_be_bytes(),
        });
        Nonce::assume_unique_for_key(octets)
    }
}

/// The number of a datagram of one direction under one pair of keys: no two have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Number {
    /// The place of its path.
    pub(super) slot: PathSlot,
    /// The datagrams that were sealed before it in that place.
    pub(super) counter: u64,
}

/// The most that may be sealed under one key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// Datagrams after which other keys are due ...
    pub(super) renew_datagrams: u64,
    /// ... and blocks.
    pub(super) renew_blocks: u64,
    /// Blocks after which nothing is sealed any more.
    pub(super) blocks_max: u64,
}

/// The blocks that sealing `len` octets takes, with those of its tag.
pub(super) const fn blocks_of(len: usize) -> u64 {
    len.div_ceil(BLOCK_BYTES) as u64 + 1
}

/// The keys of both directions.
pub(super) struct Aead {
    suite: Suite,
    ours: LessSafeKey,
    theirs: LessSafeKey,
}

/// The AEAD that seals and opens the datagrams of one handshake.
pub(super) enum Cipher {
    /// An AEAD under the keys of a Noise handshake; the nonce is the packet's number.
    Aead(Box<Aead>),
    /// A CRC-32 over number and content: notices damage, and no attacker.
    Clear,
}

fn crc_of(number: Number, plain: &[u8]) -> [u8; CRC_BYTES] {
    // The number is part of what is checked, as it is of an AEAD's nonce.
    let mut octets = number.counter.to_be_bytes();
    // Only wire 2 has more places than the first, and its counters have 24 bits.
    octets[0] ^= number.slot.bits();
    let mixed = crc32(plain) ^ crc32(&octets);
    mixed.to_be_bytes()
}

impl Cipher {
    /// Seals under `ours` and opens under `theirs`. `None`: ring refuses keys of its own length,
    /// which it does not.
    pub(super) fn aead(
        suite: Suite,
        ours: &[u8; KEY_BYTES],
        theirs: &[u8; KEY_BYTES],
    ) -> Option<Self> {
        let (ours, theirs) = (suite.key(ours)?, suite.key(theirs)?);
        Some(Self::Aead(Box::new(Aead {
            suite,
            ours,
            theirs,
        })))
    }

    /// Octets that this cipher adds.
    const fn overhead(&self) -> usize {
        match self {
            Self::Aead(_) => TAG_BYTES,
            Self::Clear => CRC_BYTES,
        }
    }

    /// The most that may be sealed under one of its keys.
    pub(super) fn bounds(&self) -> Bounds {
        match self {
            Self::Aead(aead) if aead.suite == Suite::Aes256Gcm => Bounds {
                renew_datagrams: AES_DATAGRAMS_RENEW,
                renew_blocks: AES_BLOCKS_MAX / 2,
                blocks_max: AES_BLOCKS_MAX,
            },
            Self::Aead(_) | Self::Clear => Bounds {
                renew_datagrams: u64::MAX,
                renew_blocks: u64::MAX,
                blocks_max: u64::MAX,
            },
        }
    }

    /// Seals the octets from `start` on, in their place. `false`: they are too many, and mean nothing now.
    pub(super) fn seal(&self, number: Number, start: usize, out: &mut Vec<u8>) -> bool {
        let body = &mut out[start..];
        match self {
            Self::Aead(aead) => {
                let nonce = aead.suite.nonce(number);
                let sealed = aead
                    .ours
                    .seal_in_place_separate_tag(nonce, Aad::empty(), body);
                if let Ok(tag) = &sealed {
                    out.extend_from_slice(tag.as_ref());
                }
                sealed.is_ok()
            }
            Self::Clear => {
                let check = crc_of(number, body);
                out.extend_from_slice(&check);
                true
            }
        }
    }

    /// Replaces `out` by the content of `sealed`. `false`: it was not sealed so, and `out` means nothing.
    pub(super) fn open(&self, number: Number, sealed: &[u8], out: &mut Vec<u8>) -> bool {
        out.clear();
        let Some(len) = sealed.len().checked_sub(self.overhead()) else {
            return false;
        };
        match self {
            Self::Aead(aead) => {
                out.extend_from_slice(sealed);
                let nonce = aead.suite.nonce(number);
                let opened = aead.theirs.open_in_place(nonce, Aad::empty(), out);
                let is_genuine = opened.is_ok();
                out.truncate(len);
                is_genuine
            }
            Self::Clear => {
                let (plain, check) = sealed.split_at(len);
                out.extend_from_slice(plain);
                crc_of(number, plain) == *check
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::wire::SESSION_VERSION;
    use super::*;

    fn hello(capabilities: &[(&str, &str)]) -> Hello {
        let capability = |&(name, value): &(&str, &str)| Capability {
            name: name.to_owned(),
            value: value.to_owned(),
            must_agree: false,
        };
        Hello {
            version: SESSION_VERSION,
            boot: 1,
            epoch: 1,
            capabilities: capabilities.iter().map(capability).collect(),
        }
    }

    #[test]
    fn aes_takes_both_ends() {
        let (none, aes) = (hello(&[]), hello(&[("x", "y"), (CIPHER, AES)]));
        let other = hello(&[(CIPHER, "rot13"), ("x", AES)]);
        assert_eq!(Suite::of(&aes, &aes), Suite::Aes256Gcm);
        for (ours, theirs) in [(&none, &none), (&aes, &none), (&none, &aes), (&aes, &other)] {
            assert_eq!(Suite::of(ours, theirs), Suite::ChaCha20Poly1305);
        }
    }

    fn number(counter: u64) -> Number {
        Number {
            slot: PathSlot::FIRST,
            counter,
        }
    }

    /// The two ends of one handshake.
    fn pair(suite: Suite) -> [Cipher; 2] {
        let keys = [[1; KEY_BYTES], [2; KEY_BYTES]];
        let end = |ours: &[u8; 32], theirs: &[u8; 32]| Cipher::aead(suite, ours, theirs);
        [end(&keys[0], &keys[1]), end(&keys[1], &keys[0])]
            .map(|cipher| cipher.expect("keys of the right length"))
    }

    #[test]
    fn what_one_end_seals_the_other_opens_under_that_counter_and_whole_only() {
        for suite in [Suite::ChaCha20Poly1305, Suite::Aes256Gcm] {
            let [here, there] = pair(suite);
            let mut sealed = b"beforecontent".to_vec();
            assert!(here.seal(number(7), 6, &mut sealed));
            assert_eq!(&sealed[..6], b"before");
            let sealed = &sealed[6..];
            assert_eq!(sealed.len(), 7 + TAG_BYTES);
            let mut out = Vec::new();
            assert!(there.open(number(7), sealed, &mut out), "{suite:?}");
            assert_eq!(out, b"content");
            assert!(!there.open(number(8), sealed, &mut out), "another counter");
            assert!(
                !here.open(number(7), sealed, &mut out),
                "the other direction"
            );
            for octet in 0..sealed.len() {
                let mut damaged = sealed.to_vec();
                damaged[octet] ^= 1;
                assert!(!there.open(number(7), &damaged, &mut out), "octet {octet}");
                assert!(
                    !there.open(number(7), &sealed[..octet], &mut out),
                    "cut at {octet}"
                );
            }
        }
    }

    /// The oracle is the implementation that snow uses.
    #[test]
    fn chacha_is_noises_octet_for_octet() {
        use chacha20poly1305::aead::AeadInPlace;
        use chacha20poly1305::{ChaCha20Poly1305, KeyInit};
        let [here, _] = pair(Suite::ChaCha20Poly1305);
        let counter = 0x0102_0304_0506_0708_u64;
        let mut sealed = b"content".to_vec();
        assert!(here.seal(number(counter), 0, &mut sealed));
        let mut expected = b"content".to_vec();
        let nonce = [[0; 4].as_slice(), &counter.to_le_bytes()].concat();
        let tag = ChaCha20Poly1305::new(&[1; KEY_BYTES].into())
            .encrypt_in_place_detached(nonce.as_slice().into(), &[], &mut expected)
            .expect("short");
        expected.extend_from_slice(&tag);
        assert_eq!(sealed, expected);
    }

    #[test]
    fn the_place_of_a_path_is_in_the_nonce_and_the_first_one_is_none() {
        for suite in [Suite::ChaCha20Poly1305, Suite::Aes256Gcm] {
            for bits in 0..8 {
                let number = Number {
                    slot: PathSlot::of_bits(bits),
                    counter: 0x01_02_03,
                };
                let mut octets = [0, 0, 0, bits, 0, 0, 0, 0, 0, 1, 2, 3];
                if suite == Suite::ChaCha20Poly1305 {
                    octets[4..].reverse();
                }
                assert_eq!(suite.nonce(number).as_ref(), &octets);
            }
        }
    }

    #[test]
    fn without_keys_the_check_is_of_content_place_and_counter() {
        let mut sealed = b"content".to_vec();
        let number = Number {
            slot: PathSlot::of_bits(5),
            counter: 0x01_02_03,
        };
        assert!(Cipher::Clear.seal(number, 0, &mut sealed));
        let check = crc32(b"content") ^ crc32(&[5, 0, 0, 0, 0, 1, 2, 3]);
        assert_eq!(sealed[7..], check.to_be_bytes());
        let mut out = Vec::new();
        assert!(Cipher::Clear.open(number, &sealed, &mut out));
        let elsewhere = Number {
            slot: PathSlot::FIRST,
            ..number
        };
        assert!(!Cipher::Clear.open(elsewhere, &sealed, &mut out));
    }

    #[test]
    fn the_two_suites_share_no_key() {
        let [chacha, aes] = [Suite::ChaCha20Poly1305, Suite::Aes256Gcm].map(|suite| {
            let [here, _] = pair(suite);
            let mut sealed = vec![0; 32];
            assert!(here.seal(number(0), 0, &mut sealed));
            sealed
        });
        assert_ne!(chacha, aes);
        // AES-256-GCM under the split's key itself would give these; it must not.
        let bare = UnboundKey::new(&AES_256_GCM, &[1; KEY_BYTES]).expect("32 octets");
        let mut plain = vec![0; 32];
        let nonce = Suite::Aes256Gcm.nonce(number(0));
        LessSafeKey::new(bare)
            .seal_in_place_append_tag(nonce, Aad::empty(), &mut plain)
            .expect("short");
        assert_ne!(aes, plain);
    }

    #[test]
    fn aes_keys_are_due_to_be_replaced_before_their_bound_whatever_the_packets() {
        let [aes, _] = pair(Suite::Aes256Gcm).map(|cipher| cipher.bounds());
        let [chacha, _] = pair(Suite::ChaCha20Poly1305).map(|cipher| cipher.bounds());
        // The bounds of RFC 9001, in packets of both its sizes.
        for (packet_bytes, packets) in [(1 << 11, 1_u64 << 28), (1 << 16, 1 << 23)] {
            assert!(aes.blocks_max <= packets * (packet_bytes / 16));
        }
        assert!(aes.renew_blocks <= aes.blocks_max / 2);
        assert!(aes.renew_datagrams * blocks_of(1_500) < aes.blocks_max);
        assert_eq!(chacha.blocks_max, u64::MAX);
    }
}
