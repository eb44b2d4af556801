//! Data before the handshake is through, under keys that both ends have from the beginning.
//!
//! The root of such keys is a preset key or, between ends with public keys, the secret that these two have in common
//! ([`root`]). The key of the data comes from the root and a salt that the sender draws for each
//! handshake: epoch and 16 random octets. So no key repeats, whatever was forgotten in a crash. But nothing
//! in the key comes from the receiver: a receiver that forgot the epochs it saw takes recorded early data
//! for new. It has to remember the highest epoch over its restarts
//! ([`SessionConfig::epochs_seen`](super::SessionConfig)).

use super::cipher::TAG_BYTES;
use super::config::{EarlyData, Security};
use super::keys::{KEY_BYTES, PresetKey, SecretKey};
use super::primitives::derive_key;
use super::replay::ReplayWindow;
use super::seal::Unopened;
use super::work::Work;
use chacha20poly1305::aead::AeadInPlace;
use chacha20poly1305::{ChaCha20Poly1305, KeyInit, Nonce, Tag};
use zeroize::Zeroizing;

const RANDOM_BYTES: usize = 16;
/// Octets of a salt: epoch, then random octets.
pub(super) const SALT_BYTES: usize = 8 + RANDOM_BYTES;

/// The octets that make a key of early data differ from every other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Salt([u8; SALT_BYTES]);

impl Salt {
    pub(super) fn new(epoch: u64, random: [u8; RANDOM_BYTES]) -> Self {
        let mut octets = [0; SALT_BYTES];
        octets[..8].copy_from_slice(&epoch.to_be_bytes());
        octets[8..].copy_from_slice(&random);
        Self(octets)
    }

    /// The salt at the beginning of a datagram's body, and the rest.
    pub(super) fn split(body: &[u8]) -> Option<(Self, &[u8])> {
        let (octets, rest) = body.split_first_chunk()?;
        Some((Self(*octets), rest))
    }

    pub(super) const fn octets(&self) -> &[u8; SALT_BYTES] {
        &self.0
    }

    pub(super) fn epoch(&self) -> u64 {
        let [e0, e1, e2, e3, e4, e5, e6, e7, ..] = self.0;
        u64::from_be_bytes([e0, e1, e2, e3, e4, e5, e6, e7])
    }
}

/// The root of the early data that an end sends, or of that which it takes. Between public keys each direction has its
/// own, so that what an end sent opens at no other end than the one that it was for.
pub(super) fn root(
    security: &Security,
    identity: Option<&SecretKey>,
    early: EarlyData,
) -> Option<PresetKey> {
    if early == EarlyData::Off {
        return None;
    }
    match security {
        Security::Preset { key } => Some(key.clone()),
        Security::Noise { peer, preset } => {
            let own = identity?;
            let common = own.in_common_with(peer)?;
            let ours = own.public();
            let (from, to) = match early {
                EarlyData::Take => (peer, &ours),
                _ => (&ours, peer),
            };
            let preset = preset.as_ref().map_or(&[0; KEY_BYTES], PresetKey::octets);
            let parts = Zeroizing::new([*common.octets(), *preset, *from.octets(), *to.octets()]);
            let material = Zeroizing::new(parts.concat());
            let context = "fulmar 2026-11-23 session early root of public keys";
            Some(PresetKey::derived(derive_key(context, &material)))
        }
        Security::None { .. } | Security::Nobody => None,
    }
}

/// The number of a root, which a header carries instead of a session index.
pub(super) fn key_id(preset: &PresetKey) -> u32 {
    let derived = derive_key("fulmar 2026-11-21 session early id", preset.octets());
    let [i0, i1, i2, i3, ..] = derived;
    u32::from_be_bytes([i0, i1, i2, i3])
}

/// The key of one sender's early data, at either end.
pub(super) struct EarlyKey {
    pub(super) salt: Salt,
    cipher: ChaCha20Poly1305,
    sealed: u32,
    window: ReplayWindow,
}

fn nonce(counter: u32) -> Nonce {
    let mut octets = [0; 12];
    octets[8..].copy_from_slice(&counter.to_be_bytes());
    octets.into()
}

impl EarlyKey {
    pub(super) fn new(preset: &PresetKey, salt: Salt) -> Self {
        let material = Zeroizing::new([&preset.octets()[..], salt.octets()].concat());
        let key = derive_key("fulmar 2026-11-21 session early data", &material);
        Self {
            salt,
            cipher: ChaCha20Poly1305::new(&key.into()),
            sealed: 0,
            window: ReplayWindow::default(),
        }
    }

    /// The counter of the next datagram; `None` when the key is used up.
    pub(super) fn next_counter(&mut self) -> Option<u32> {
        let counter = self.sealed;
        self.sealed = counter.checked_add(1)?;
        Some(counter)
    }

    /// Appends `plain`, sealed under `counter` of [`EarlyKey::next_counter`].
    pub(super) fn seal(&self, counter: u32, plain: &[u8], out: &mut Vec<u8>) -> bool {
        let start = out.len();
        out.extend_from_slice(plain);
        let sealed = self
            .cipher
            .encrypt_in_place_detached(&nonce(counter), &[], &mut out[start..]);
        match sealed {
            Ok(tag) => out.extend_from_slice(&tag),
            Err(_) => out.truncate(start),
        }
        sealed.is_ok()
    }

    /// Opens octets that were sealed under `counter`.
    pub(super) fn open(
        &mut self,
        work: &mut Work,
        counter: u32,
        sealed: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Unopened> {
        out.clear();
        if !self.window.is_new(u64::from(counter)) {
            return Err(Unopened::Replayed);
        }
        work.openings += 1;
        let (body, tag) = sealed
            .split_last_chunk::<TAG_BYTES>()
            .ok_or(Unopened::Forged)?;
        out.extend_from_slice(body);
        self.cipher
            .decrypt_in_place_detached(&nonce(counter), &[], out, Tag::from_slice(tag))
            .map_err(|_| Unopened::Forged)?;
        self.window.mark(u64::from(counter));
        Ok(())
    }
}

/// The receiver's side of a peer's early data.
#[derive(Default)]
pub(super) struct EarlyIntake {
    key: Option<Box<EarlyKey>>,
    /// The lowest epoch that is not refused.
    floor: u64,
}

impl EarlyIntake {
    /// The intake of a peer whose highest epoch in earlier runs is `epoch_seen`.
    pub(super) const fn new(epoch_seen: u64) -> Self {
        Self {
            key: None,
            floor: epoch_seen.saturating_add(1),
        }
    }

    /// Forgets the key, and takes nothing more of what came or could have come under it: the key may be configured again.
    pub(super) fn forget_key(&mut self) {
        if let Some(key) = self.key.take() {
            self.raise(key.salt.epoch().saturating_add(1));
        }
    }

    /// Notes that the peer began a handshake in `epoch`: nothing older counts any more.
    pub(super) fn raise(&mut self, epoch: u64) {
        self.floor = self.floor.max(epoch);
    }

    /// Opens early data: octets sealed under a salt and a counter. A salt that is not known yet is kept once it opened something.
    pub(super) fn open(
        &mut self,
        work: &mut Work,
        preset: &PresetKey,
        (salt, counter, sealed): (Salt, u32, &[u8]),
        out: &mut Vec<u8>,
    ) -> Result<(), Unopened> {
        if let Some(key) = self.key.as_mut().filter(|key| key.salt == salt) {
            return key.open(work, counter, sealed, out);
        }
        let known = self.key.as_ref().map_or(0, |key| key.salt.epoch());
        if salt.epoch() < self.floor || salt.epoch() <= known {
            return Err(Unopened::Replayed);
        }
        work.hashes += 1;
        let mut key = Box::new(EarlyKey::new(preset, salt));
        key.open(work, counter, sealed, out)?;
        self.floor = salt.epoch();
        self.key = Some(key);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::entropy::Entropy;

    fn preset() -> PresetKey {
        PresetKey::generate(&mut Entropy::from_seed([1; 32]))
    }

    fn sealed(epoch: u64, random: u8, counter: u32) -> (Salt, Vec<u8>) {
        let salt = Salt::new(epoch, [random; 16]);
        let mut out = Vec::new();
        assert!(EarlyKey::new(&preset(), salt).seal(counter, b"hello", &mut out));
        (salt, out)
    }

    #[test]
    fn early_data_opens_once_and_only_in_epochs_not_seen_before() {
        let mut intake = EarlyIntake::new(100);
        let mut out = Vec::new();
        let mut open = |epoch, random, counter| {
            let (salt, octets) = sealed(epoch, random, counter);
            intake.open(
                &mut Work::default(),
                &preset(),
                (salt, counter, &octets),
                &mut out,
            )
        };
        assert_eq!(
            open(100, 1, 0),
            Err(Unopened::Replayed),
            "of before the restart"
        );
        assert_eq!(open(101, 1, 0), Ok(()));
        assert_eq!(open(101, 1, 0), Err(Unopened::Replayed));
        assert_eq!(open(101, 1, 1), Ok(()));
        assert_eq!(
            open(101, 2, 0),
            Err(Unopened::Replayed),
            "two salts in one epoch"
        );
        assert_eq!(open(102, 2, 0), Ok(()));
        assert_eq!(open(101, 1, 2), Err(Unopened::Replayed));
    }

    #[test]
    fn a_forged_salt_displaces_nothing() {
        let mut intake = EarlyIntake::new(0);
        let mut out = Vec::new();
        let (salt, octets) = sealed(5, 1, 0);
        assert_eq!(
            intake.open(
                &mut Work::default(),
                &preset(),
                (salt, 0, &octets),
                &mut out
            ),
            Ok(())
        );
        let forged = Salt::new(u64::MAX, [9; 16]);
        let refused = intake.open(
            &mut Work::default(),
            &preset(),
            (forged, 0, &octets),
            &mut out,
        );
        assert_eq!(refused, Err(Unopened::Forged));
        let (salt, octets) = sealed(5, 1, 1);
        assert_eq!(
            intake.open(
                &mut Work::default(),
                &preset(),
                (salt, 1, &octets),
                &mut out
            ),
            Ok(())
        );
        assert_eq!(out, b"hello");
    }

    #[test]
    fn recordings_under_a_key_that_comes_back_are_refused() {
        let mut intake = EarlyIntake::new(3);
        let open = |intake: &mut EarlyIntake, epoch, counter| {
            let (salt, octets) = sealed(epoch, 1, counter);
            intake.open(
                &mut Work::default(),
                &preset(),
                (salt, counter, &octets),
                &mut Vec::new(),
            )
        };
        assert_eq!(open(&mut intake, 8, 0), Ok(()));
        intake.forget_key();
        for epoch in [4, 7, 8] {
            assert_eq!(
                open(&mut intake, epoch, 0),
                Err(Unopened::Replayed),
                "{epoch}"
            );
        }
        assert_eq!(open(&mut intake, 9, 0), Ok(()));
    }

    #[test]
    fn an_epoch_begun_by_a_handshake_ends_the_ones_before() {
        let mut intake = EarlyIntake::new(0);
        intake.raise(7);
        let mut open = |epoch| {
            let (salt, octets) = sealed(epoch, 1, 0);
            intake.open(
                &mut Work::default(),
                &preset(),
                (salt, 0, &octets),
                &mut Vec::new(),
            )
        };
        assert_eq!(open(6), Err(Unopened::Replayed));
        assert_eq!(open(7), Ok(()));
    }
}
