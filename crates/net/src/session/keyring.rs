//! The keys shared with one peer: those in use, those before, and those offered but not yet proven.
//!
//! An initiator uses new keys at once, a responder only after the peer has used them. Until then, and
//! for a grace span after, both take datagrams under the old keys. So data flows through every
//! rekey, whichever of its messages are lost.

use super::config::RekeyPolicy;
use super::seal::Keypair;
use fulmar_proto::units::{Duration, Instant};

/// The time that a responder waits longer than the initiator before it begins a handshake itself.
const RESPONDER_EXTRA: Duration = Duration::from_secs(15);

/// The place of a keypair in the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slot {
    Current,
    Previous,
    Next,
}

pub(super) struct KeyRing {
    policy: RekeyPolicy,
    current: Option<Keypair>,
    previous: Option<(Keypair, Instant)>,
    next: Option<Keypair>,
}

impl KeyRing {
    pub(super) const fn new(policy: RekeyPolicy) -> Self {
        Self {
            policy,
            current: None,
            previous: None,
            next: None,
        }
    }

    /// The keys to send with.
    pub(super) fn current(&mut self, now: Instant) -> Option<&mut Keypair> {
        let policy = self.policy;
        self.current
            .as_mut()
            .filter(|keys| now.saturating_since(keys.made) < policy.keys_last && !keys.is_spent())
    }

    /// Whether there are keys to send with.
    pub(super) fn is_usable(&self, now: Instant) -> bool {
        let young = |keys: &Keypair| now.saturating_since(keys.made) < self.policy.keys_last;
        let current = self.current.as_ref();
        current.is_some_and(|keys| young(keys) && !keys.is_spent())
    }

    /// The time at which the keys in use stop being usable.
    pub(super) fn expires_at(&self) -> Option<Instant> {
        Some(self.current.as_ref()?.made + self.policy.keys_last)
    }

    /// The time at which we should replace the keys in use; now, if enough was sent under them.
    pub(super) fn rekey_at(&self) -> Option<Instant> {
        let keys = self.current.as_ref()?;
        let after = self.policy.after_datagrams.min(keys.renew_datagrams());
        let (extra, more) = if keys.initiated {
            (Duration::ZERO, 0)
        } else {
            (RESPONDER_EXTRA, after / 4)
        };
        if keys.used() >= after.saturating_add(more) || keys.is_worn() {
            return Some(keys.made);
        }
        Some(keys.made + self.policy.after + extra)
    }

    /// The keys with our index `local`, if datagrams under them are still taken.
    pub(super) fn find(&mut self, now: Instant, local: u32) -> Option<(&mut Keypair, Slot)> {
        let limit = self.policy.keys_last + self.policy.grace;
        let young =
            |keys: &&mut Keypair| keys.local == local && now.saturating_since(keys.made) < limit;
        if let Some(keys) = self.current.as_mut().filter(young) {
            return Some((keys, Slot::Current));
        }
        if let Some(keys) = self.next.as_mut().filter(young) {
            return Some((keys, Slot::Next));
        }
        let (keys, until) = self.previous.as_mut()?;
        (keys.local == local && now < *until).then_some((keys, Slot::Previous))
    }

    /// Whether `local` is the index of keys that are still here.
    pub(super) fn owns(&self, local: u32) -> bool {
        let previous = self.previous.as_ref().map(|(keys, _)| keys);
        [self.current.as_ref(), previous, self.next.as_ref()]
            .into_iter()
            .flatten()
            .any(|keys| keys.local == local)
    }

    /// Puts the keys of a handshake that we began into use. An offer of the same time gives way, so
    /// that both ends end up with the same keys.
    pub(super) fn install(&mut self, now: Instant, mut keys: Keypair) {
        self.next = None;
        keys.stop_after(self.policy.datagrams_last);
        self.replace(now, keys);
    }

    /// Keeps the keys of a handshake that the peer began until it uses them.
    pub(super) fn offer(&mut self, mut keys: Keypair) {
        keys.stop_after(self.policy.datagrams_last);
        self.next = Some(keys);
    }

    /// Puts the offered keys into use, since the peer has used them.
    pub(super) fn promote(&mut self, now: Instant) {
        if let Some(mut keys) = self.next.take() {
            keys.confirmed = true;
            self.replace(now, keys);
        }
    }

    fn replace(&mut self, now: Instant, keys: Keypair) {
        let until = now + self.policy.grace;
        self.previous = self.current.replace(keys).map(|keys| (keys, until));
    }

    /// Whether `remote` is the peer's index of the keys in use, and a datagram whose counter ends in `low`
    /// left under them lately.
    pub(super) fn has_sent(&self, now: Instant, remote: u32, low: u32) -> bool {
        let keys = self.current.as_ref().filter(|_| self.is_usable(now));
        keys.is_some_and(|keys| keys.remote == remote && keys.has_sent(low))
    }

    /// Forgets the keys before: no more datagrams are taken under them.
    pub(super) fn forget_previous(&mut self) {
        self.previous = None;
    }

    /// Takes an offer back.
    pub(super) fn forget_offer(&mut self) {
        self.next = None;
    }

    /// Forgets all keys, as the peer has done.
    pub(super) fn clear(&mut self) {
        *self = Self::new(self.policy);
    }
}
