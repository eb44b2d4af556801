//! The cryptography of pairing: SPAKE2 over the code, and what is proved and sealed under its key.

use super::code::PairingCode;
use super::wire::{CallId, HEADER_BYTES, Kind, header, write};
use crate::session::{Entropy, KEY_BYTES, PublicKey, derive_key, keyed_hash};
use chacha20poly1305::aead::AeadInPlace;
use chacha20poly1305::{ChaCha20Poly1305, KeyInit, Nonce, Tag};
use rand_core_06::{CryptoRng, RngCore};
use spake2::{Ed25519Group, Identity, Password, Spake2};
use zeroize::Zeroizing;

/// Octets of a message of SPAKE2: its side and a point.
pub(super) const SHARE_BYTES: usize = 33;
/// Octets of a proof.
pub(super) const PROOF_BYTES: usize = 32;
const SEAL_TAG_BYTES: usize = 16;
/// Octets of a `Confirm`'s body.
pub(super) const CONFIRM_BYTES: usize = KEY_BYTES + SEAL_TAG_BYTES + PROOF_BYTES;
/// The most octets of terms: an `Accept` fits every path of 1,280 octets.
pub const TERMS_BYTES_MAX: usize = 1_000;

const CALLER: &str = "fulmar pairing 1 caller";
const CALLED: &str = "fulmar pairing 1 called";

/// The end of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Caller,
    Called,
}

/// The generator from which SPAKE2 draws its scalar.
struct Scalars<'a>(&'a mut Entropy);

impl CryptoRng for Scalars<'_> {}

impl RngCore for Scalars<'_> {
    fn next_u32(&mut self) -> u32 {
        u32::from_le_bytes(self.0.array())
    }
    fn next_u64(&mut self) -> u64 {
        u64::from_le_bytes(self.0.array())
    }
    fn fill_bytes(&mut self, dest: &mut [u8]) {
        self.0.fill(dest);
    }
    fn try_fill_bytes(&mut self, dest: &mut [u8]) -> Result<(), rand_core_06::Error> {
        self.0.fill(dest);
        Ok(())
    }
}

/// One end's half of an exchange, until it has the other's share.
pub(super) struct Exchange {
    role: Role,
    pake: Spake2<Ed25519Group>,
    /// Our share, for the other end.
    pub(super) share: [u8; SHARE_BYTES],
}

impl Exchange {
    /// Begins an exchange over `code`. `None` if the library gave a share of another length, which it does not.
    pub(super) fn begin(role: Role, code: &PairingCode, entropy: &mut Entropy) -> Option<Self> {
        let password = Password::new(code.password());
        let caller = Identity::new(CALLER.as_bytes());
        let called = Identity::new(CALLED.as_bytes());
        let scalars = Scalars(entropy);
        let (pake, share) = match role {
            Role::Caller => Spake2::start_a_with_rng(&password, &caller, &called, scalars),
            Role::Called => Spake2::start_b_with_rng(&password, &caller, &called, scalars),
        };
        let share = share.try_into().ok()?;
        Some(Self { role, pake, share })
    }

    /// The keys of the call with the other end's share; `None` if that is no share of the other role.
    pub(super) fn finish(self, call: CallId, share: &[u8; SHARE_BYTES]) -> Option<PairingKeys> {
        let common = Zeroizing::new(self.pake.finish(share).ok()?);
        let material = Zeroizing::new([common.as_slice(), &call.0].concat());
        let of_end = |seal, proof| EndKeys {
            seal: Zeroizing::new(derive_key(seal, &material)),
            proof: Zeroizing::new(derive_key(proof, &material)),
        };
        let caller = of_end(
            "fulmar 2026-11-28 pairing caller seals",
            "fulmar 2026-11-28 pairing caller proves",
        );
        let called = of_end(
            "fulmar 2026-11-28 pairing called seals",
            "fulmar 2026-11-28 pairing called proves",
        );
        let (ours, theirs) = match self.role {
            Role::Caller => (caller, called),
            Role::Called => (called, caller),
        };
        Some(PairingKeys { call, ours, theirs })
    }
}

/// The keys of what one end sends.
struct EndKeys {
    seal: Zeroizing<[u8; KEY_BYTES]>,
    proof: Zeroizing<[u8; KEY_BYTES]>,
}

impl EndKeys {
    fn proof(&self, head: &[u8; HEADER_BYTES], content: &[u8]) -> blake3::Hash {
        keyed_hash(&self.proof, &[head, content].concat()).into()
    }
}

/// The keys of a call, the same at both ends if both have one code.
pub(super) struct PairingKeys {
    call: CallId,
    ours: EndKeys,
    theirs: EndKeys,
}

/// The nonce of a seal. Each key seals one content.
fn nonce() -> Nonce {
    Nonce::default()
}

impl PairingKeys {
    /// A datagram without content that proves that we have the key.
    pub(super) fn proof(&self, kind: Kind) -> Vec<u8> {
        self.proved(kind, &[])
    }

    /// A datagram with our public key and `terms`, sealed, and the proof that we have the key. `None` if the content is
    /// too long to be sealed, which it is not.
    pub(super) fn sealed(&self, kind: Kind, own: &PublicKey, terms: &[u8]) -> Option<Vec<u8>> {
        let mut content = [own.octets(), terms].concat();
        let tag = ChaCha20Poly1305::new((&*self.ours.seal).into())
            .encrypt_in_place_detached(&nonce(), &header(kind, self.call), &mut content)
            .ok()?;
        content.extend_from_slice(&tag);
        Some(self.proved(kind, &content))
    }

    fn proved(&self, kind: Kind, content: &[u8]) -> Vec<u8> {
        let proof = self.ours.proof(&header(kind, self.call), content);
        write(kind, self.call, &[content, proof.as_bytes()].concat())
    }

    /// Whether `body` proves that the other end has the key, and nothing else.
    pub(super) fn is_proof(&self, kind: Kind, body: &[u8]) -> bool {
        self.content(kind, body).is_some_and(<[u8]>::is_empty)
    }

    /// The other end's public key and terms, if `body` proves that it has the key.
    pub(super) fn open(&self, kind: Kind, body: &[u8]) -> Option<(PublicKey, Vec<u8>)> {
        let (sealed, tag) = self
            .content(kind, body)?
            .split_last_chunk::<SEAL_TAG_BYTES>()?;
        let mut content = sealed.to_vec();
        ChaCha20Poly1305::new((&*self.theirs.seal).into())
            .decrypt_in_place_detached(
                &nonce(),
                &header(kind, self.call),
                &mut content,
                Tag::from_slice(tag),
            )
            .ok()?;
        let (key, terms) = content.split_first_chunk::<KEY_BYTES>()?;
        Some((PublicKey::from_octets(*key), terms.to_vec()))
    }

    /// The content before the proof, if the proof is right.
    fn content<'a>(&self, kind: Kind, body: &'a [u8]) -> Option<&'a [u8]> {
        let (content, proof) = body.split_last_chunk::<PROOF_BYTES>()?;
        // Hashes are compared in constant time.
        (self.theirs.proof(&header(kind, self.call), content) == *proof).then_some(content)
    }
}

#[cfg(test)]
mod unit {
    use super::*;
    use crate::pairing::wire::{Read, read};

    fn pair(caller: u64, called: u64) -> [PairingKeys; 2] {
        let call = CallId([5; 16]);
        let mut entropy = Entropy::from_seed([9; 32]);
        let mut begin =
            |role, code| Exchange::begin(role, &PairingCode::of_number(code), &mut entropy);
        let caller = begin(Role::Caller, caller).unwrap();
        let called = begin(Role::Called, called).unwrap();
        let shares = [called.share, caller.share];
        let finish = |end: Exchange, share| end.finish(call, share).unwrap();
        [finish(caller, &shares[0]), finish(called, &shares[1])]
    }

    fn body(datagram: &[u8]) -> Vec<u8> {
        match read(datagram) {
            Some(Read::Ours { body, .. }) => body.to_vec(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn ends_with_one_code_open_what_the_other_sealed_and_nothing_else() {
        let [caller, called] = pair(1, 1);
        let key = PublicKey::from_octets([8; 32]);
        let sealed = body(&caller.sealed(Kind::Confirm, &key, b"terms").unwrap());
        assert_eq!(
            called.open(Kind::Confirm, &sealed),
            Some((key, b"terms".to_vec()))
        );
        assert_eq!(called.open(Kind::Accept, &sealed), None, "another kind");
        assert_eq!(caller.open(Kind::Confirm, &sealed), None, "sent back");
        for octet in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[octet] ^= 1;
            assert_eq!(called.open(Kind::Confirm, &changed), None, "octet {octet}");
        }
        let proof = body(&called.proof(Kind::Bye));
        assert!(caller.is_proof(Kind::Bye, &proof));
        assert!(!called.is_proof(Kind::Bye, &proof), "sent back");
        assert!(!caller.is_proof(Kind::Done, &proof), "another kind");
    }

    #[test]
    fn ends_with_two_codes_have_nothing_in_common() {
        let [caller, called] = pair(1, 2);
        let key = PublicKey::from_octets([8; 32]);
        let sealed = body(&caller.sealed(Kind::Confirm, &key, b"").unwrap());
        assert_eq!(called.open(Kind::Confirm, &sealed), None);
        assert!(!called.is_proof(Kind::Done, &body(&caller.proof(Kind::Done))));
    }

    #[test]
    fn a_share_of_our_own_role_or_no_point_is_refused() {
        let call = CallId([5; 16]);
        let mut entropy = Entropy::from_seed([9; 32]);
        let code = PairingCode::of_number(3);
        let mut begin = |role| Exchange::begin(role, &code, &mut entropy).unwrap();
        let other = begin(Role::Caller).share;
        assert!(begin(Role::Caller).finish(call, &other).is_none());
        let refused = (0..=u8::MAX).filter(|octet| {
            let share = [b"A".as_slice(), [*octet; 32].as_slice()].concat();
            let share = share.try_into().unwrap();
            begin(Role::Called).finish(call, &share).is_none()
        });
        assert!(refused.count() > 50, "half of all octets are no point");
    }
}
