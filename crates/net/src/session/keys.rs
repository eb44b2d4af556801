//! Keys: X25519 pairs that identify a gateway, and preset keys that two gateways share.
//!
//! Both are 32 octets and are written as `WireGuard` writes them: 44 characters of base64 (RFC 4648,
//! section 4). Secrets show nothing when printed for debugging and are wiped when dropped.

use super::entropy::Entropy;
use super::primitives;
use base64ct::{Base64, Encoding};
use core::fmt;
use core::str::FromStr;
use snow::types::Dh;
use zeroize::Zeroize;

/// Octets of every key.
pub const KEY_BYTES: usize = 32;

/// Characters of a key in base64.
const KEY_CHARS: usize = 44;

/// A text that is no key. The text itself is not repeated: it may be most of a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// Not the length of 32 octets in base64.
    #[error("a key has 44 characters of base64, this text has {0}; make one with `fulmar keygen`")]
    Length(usize),
    /// A character that base64 does not have, or padding in the wrong place.
    #[error("this text is not base64; make a key with `fulmar keygen`")]
    Alphabet,
    /// All octets are zero, as in an unset key.
    #[error("an all-zero key protects nothing; make a key with `fulmar keygen`")]
    Zero,
}

fn decode(text: &str) -> Result<[u8; KEY_BYTES], KeyError> {
    let text = text.trim();
    if text.len() != KEY_CHARS {
        return Err(KeyError::Length(text.chars().count()));
    }
    let mut octets = [0; KEY_BYTES];
    let whole = Base64::decode(text, &mut octets).map_err(|_| KeyError::Alphabet)?;
    if whole.len() != KEY_BYTES {
        return Err(KeyError::Alphabet);
    }
    if octets == [0; KEY_BYTES] {
        return Err(KeyError::Zero);
    }
    Ok(octets)
}

/// The key by which others know an end.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublicKey([u8; KEY_BYTES]);

impl PublicKey {
    /// The octets of a key, unjudged.
    pub const fn from_octets(octets: [u8; KEY_BYTES]) -> Self {
        Self(octets)
    }

    /// The octets.
    pub const fn octets(&self) -> &[u8; KEY_BYTES] {
        &self.0
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&Base64::encode_string(&self.0))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for PublicKey {
    type Err = KeyError;
    fn from_str(text: &str) -> Result<Self, KeyError> {
        decode(text).map(Self)
    }
}

/// The secret half of an end's identity, with the public one.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretKey {
    secret: [u8; KEY_BYTES],
    /// Kept, since to compute it takes a multiplication on the curve.
    public: PublicKey,
}

impl SecretKey {
    /// A new key. Any 32 octets are one: X25519 clamps them (RFC 7748, section 5).
    pub fn generate(entropy: &mut Entropy) -> Self {
        Self::of(entropy.array())
    }

    fn of(secret: [u8; KEY_BYTES]) -> Self {
        let mut dh = primitives::curve().expect("snow is built with Curve25519");
        dh.set(&secret);
        let mut public = [0; KEY_BYTES];
        public.copy_from_slice(dh.pubkey());
        Self {
            secret,
            public: PublicKey(public),
        }
    }

    /// The public half.
    pub const fn public(&self) -> PublicKey {
        self.public
    }

    pub(super) const fn octets(&self) -> &[u8; KEY_BYTES] {
        &self.secret
    }

    /// The secret that this key and the holder of `peer` have in common (X25519); `None` for a key that has the same
    /// with everybody.
    pub(super) fn in_common_with(&self, peer: &PublicKey) -> Option<PresetKey> {
        let mut dh = primitives::curve()?;
        dh.set(&self.secret);
        let mut common = PresetKey([0; KEY_BYTES]);
        dh.dh(peer.octets(), &mut common.0).ok()?;
        (common.0 != [0; KEY_BYTES]).then_some(common)
    }

    /// The key as text, as in a key file.
    pub fn to_text(&self) -> String {
        Base64::encode_string(&self.secret)
    }
}

impl FromStr for SecretKey {
    type Err = KeyError;
    fn from_str(text: &str) -> Result<Self, KeyError> {
        decode(text).map(Self::of)
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretKey(..)")
    }
}

impl Drop for SecretKey {
    fn drop(&mut self) {
        self.secret.zeroize();
    }
}

/// A symmetric key that both ends have been given.
#[derive(Clone, PartialEq, Eq)]
pub struct PresetKey([u8; KEY_BYTES]);

impl PresetKey {
    /// A new key.
    pub fn generate(entropy: &mut Entropy) -> Self {
        Self(entropy.array())
    }

    /// A key that was derived from others.
    pub(super) const fn derived(octets: [u8; KEY_BYTES]) -> Self {
        Self(octets)
    }

    pub(crate) const fn octets(&self) -> &[u8; KEY_BYTES] {
        &self.0
    }

    /// A hash that tells keys apart and reveals nothing of the key.
    pub(crate) fn fingerprint(&self) -> [u8; KEY_BYTES] {
        primitives::derive_key("fulmar 2026-11-21 session preset fingerprint", &self.0)
    }

    /// The key as text, as in a key file.
    pub fn to_text(&self) -> String {
        Base64::encode_string(&self.0)
    }
}

impl FromStr for PresetKey {
    type Err = KeyError;
    fn from_str(text: &str) -> Result<Self, KeyError> {
        decode(text).map(Self)
    }
}

impl fmt::Debug for PresetKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PresetKey(..)")
    }
}

impl Drop for PresetKey {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_public_half_is_that_of_rfc_7748() {
        // RFC 7748, section 6.1: Alice's pair.
        let secret = SecretKey::of([
            0x77, 0x07, 0x6d, 0x0a, 0x73, 0x18, 0xa5, 0x7d, 0x3c, 0x16, 0xc1, 0x72, 0x51, 0xb2,
            0x66, 0x45, 0xdf, 0x4c, 0x2f, 0x87, 0xeb, 0xc0, 0x99, 0x2a, 0xb1, 0x77, 0xfb, 0xa5,
            0x1d, 0xb9, 0x2c, 0x2a,
        ]);
        let public = [
            0x85, 0x20, 0xf0, 0x09, 0x89, 0x30, 0xa7, 0x54, 0x74, 0x8b, 0x7d, 0xdc, 0xb4, 0x3e,
            0xf7, 0x5a, 0x0d, 0xbf, 0x3a, 0x0d, 0x26, 0x38, 0x1a, 0xf4, 0xeb, 0xa4, 0xa9, 0x8e,
            0xaa, 0x9b, 0x4e, 0x6a,
        ];
        assert_eq!(secret.public().octets(), &public);
    }

    #[test]
    fn keys_survive_their_text_form() {
        let mut entropy = Entropy::from_seed([1; 32]);
        let secret = SecretKey::generate(&mut entropy);
        assert_eq!(secret.to_text().parse(), Ok(secret.clone()));
        let public = secret.public();
        assert_eq!(format!("{public}\n").parse(), Ok(public));
        let preset = PresetKey::generate(&mut entropy);
        assert_eq!(preset.to_text().parse(), Ok(preset));
    }

    #[test]
    fn a_text_that_is_no_key_is_refused_without_being_repeated() {
        let refused = |text: &str| text.parse::<SecretKey>().unwrap_err();
        assert_eq!(refused("short"), KeyError::Length(5));
        assert_eq!(refused(&"A".repeat(45)), KeyError::Length(45));
        assert_eq!(refused(&"!".repeat(44)), KeyError::Alphabet);
        // 44 characters that stand for 33 octets.
        assert_eq!(refused(&"B".repeat(44)), KeyError::Alphabet);
        assert_eq!(
            refused("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="),
            KeyError::Zero
        );
        for error in [refused("hunter2"), refused(&"h".repeat(44))] {
            assert!(!error.to_string().contains("h".repeat(4).as_str()));
            assert!(!error.to_string().contains("hunter2"));
        }
    }

    #[test]
    fn secrets_do_not_print() {
        let mut entropy = Entropy::from_seed([2; 32]);
        let secret = SecretKey::generate(&mut entropy);
        assert_eq!(format!("{secret:?}"), "SecretKey(..)");
        let preset = PresetKey::generate(&mut entropy);
        assert_eq!(format!("{preset:?}"), "PresetKey(..)");
    }
}
