//! The keys shared with one peer: those in use, those before, and those offered but not yet proven.
//!
//! An initiator uses new keys at once, a responder only after the peer has used them. Until then, and
//! for a grace span after, both take datagrams under the old keys. So data flows through every
//! rekey, whichever of its messages are lost.

use super::config::RekeyPolicy;
use super::dialect::Wire;
use super::path_slot::PathSlot;
use super::seal::{ArrivedUnder, KeyTraffic, Keypair, Numbered, Told};
use fulmar_proto::units::{Duration, Instant};
use std::collections::VecDeque;

/// The time that a responder waits longer than the initiator before it begins a handshake itself.
const RESPONDER_EXTRA: Duration = Duration::from_secs(15);

/// Keys that are gone of which it is known which datagrams went under them: an outage may take several handshakes.
const GONE_MAX: usize = 2;

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
    /// The datagrams under keys that are gone, the oldest first.
    gone: VecDeque<KeyTraffic>,
    /// Whether keys were offered since the present ones came into use, and gave way to others. The peer may have sealed
    /// under them, and nothing of it arrived.
    displaced: bool,
}

impl KeyRing {
    pub(super) const fn new(policy: RekeyPolicy) -> Self {
        Self {
            policy,
            current: None,
            previous: None,
            next: None,
            gone: VecDeque::new(),
            displaced: false,
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

    /// The counters that arrived under the keys with our index `local`, if they are in use or were of late.
    pub(super) fn arrived_under(&self, local: u32) -> Option<ArrivedUnder<'_>> {
        let here = self.both().map(Keypair::arrived);
        let gone = self.gone.iter().map(KeyTraffic::arrived);
        here.chain(gone).find(|arrived| arrived.local == local)
    }

    /// The datagrams that left in the first place under the keys with the peer's index `remote`, and whether they are in use;
    /// `None` if these were not of late.
    pub(super) fn sealed_under(&self, remote: u32) -> Option<(Numbered, bool)> {
        if let Some(keys) = self.both().find(|keys| keys.remote == remote) {
            let in_use = self.current.as_ref().map(|keys| keys.remote);
            return Some((keys.numbered(PathSlot::FIRST)?, in_use == Some(remote)));
        }
        let gone = self.gone.iter().find(|gone| gone.remote == remote)?;
        Some((gone.numbered?, false))
    }

    fn both(&self) -> impl Iterator<Item = &Keypair> {
        let previous = self.previous.as_ref().map(|(keys, _)| keys);
        self.current.as_ref().into_iter().chain(previous)
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
        self.forget_offer();
        keys.stop_after(self.policy.datagrams_last);
        self.replace(now, keys);
    }

    /// Keeps the keys of a handshake that the peer began until it uses them.
    pub(super) fn offer(&mut self, mut keys: Keypair) {
        keys.stop_after(self.policy.datagrams_last);
        self.forget_offer();
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
        let before = self.current.replace(keys);
        // In wire 2, numbers of TPDUs are cut: they come back right as long as nothing is taken that is older than the
        // keys in use and those that the peer had before them (ADR 0029, section 4).
        let is_too_old = core::mem::take(&mut self.displaced);
        self.forget_previous();
        match before {
            Some(keys) if is_too_old && keys.wire == Wire::Two => self.keep_traffic(keys),
            before => self.previous = before.map(|keys| (keys, until)),
        }
    }

    fn keep_traffic(&mut self, keys: Keypair) {
        if self.gone.len() >= GONE_MAX {
            self.gone.pop_front();
        }
        self.gone.push_back(keys.into_traffic());
    }

    /// The wire of the keys in use, if there are any.
    pub(super) fn wire(&self) -> Option<Wire> {
        self.current.as_ref().map(|keys| keys.wire)
    }

    /// Whether `remote` is the peer's index of the keys in use, and a datagram with this number left under them lately.
    pub(super) fn has_sent(&self, now: Instant, remote: u32, told: Told) -> bool {
        let keys = self.current.as_ref().filter(|_| self.is_usable(now));
        keys.is_some_and(|keys| keys.remote == remote && keys.has_sent(told))
    }

    /// Forgets the keys before: no more datagrams are taken under them.
    pub(super) fn forget_previous(&mut self) {
        if let Some((keys, _)) = self.previous.take() {
            self.keep_traffic(keys);
        }
    }

    /// Takes an offer back.
    pub(super) fn forget_offer(&mut self) {
        self.displaced |= self.next.take().is_some();
    }

    /// Forgets all keys, as the peer has done.
    pub(super) fn clear(&mut self) {
        *self = Self::new(self.policy);
    }
}

#[cfg(test)]
mod tests {
    use super::super::cipher::Cipher;
    use super::super::handshake::Agreed;
    use super::*;

    const NOW: Instant = Instant::START;

    fn keys(local: u32, wire: Wire) -> Keypair {
        let cipher = Cipher::Clear;
        Keypair::new(Agreed { cipher, wire }, local, 100 + local, NOW, false)
    }

    /// A ring with the keys 1 in use, and after them `offers` others, of which nothing was heard.
    fn ring(offers: u32, wire: Wire) -> KeyRing {
        let mut ring = KeyRing::new(RekeyPolicy::default());
        ring.install(NOW, keys(1, wire));
        for offer in 0..offers {
            ring.offer(keys(2 + offer, wire));
        }
        ring
    }

    fn takes(ring: &mut KeyRing, local: u32) -> bool {
        ring.find(NOW, local).is_some()
    }

    #[test]
    fn in_wire_2_an_offer_that_displaced_an_unused_one_voids_the_keys_before() {
        for wire in [Wire::One, Wire::Two] {
            for (offers, stay) in [(1, true), (2, wire == Wire::One), (3, wire == Wire::One)] {
                let mut ring = ring(offers, wire);
                assert!(takes(&mut ring, 1), "until it is heard");
                ring.promote(NOW);
                assert_eq!(takes(&mut ring, 1), stay, "{offers} offers, {wire:?}");
                // That is over with the next ones.
                ring.offer(keys(9, wire));
                ring.promote(NOW);
                assert!(takes(&mut ring, 1 + offers));
            }
        }
    }

    #[test]
    fn what_went_under_keys_that_are_gone_is_known_through_two_handshakes() {
        let mut ring = ring(2, Wire::Two);
        let sealed = |ring: &mut KeyRing| {
            let keys = ring.current(NOW).expect("keys");
            for _ in 0..3 {
                keys.next_number(PathSlot::FIRST);
            }
            keys.note_number(PathSlot::FIRST, 12)
        };
        assert_eq!(sealed(&mut ring), Some(12));
        let numbered = ring.sealed_under(101).map(|(numbered, _)| numbered);
        assert!(numbered.is_some());
        // The first ones give way to an offer that displaced another, and are no previous keys.
        ring.promote(NOW);
        assert!(!takes(&mut ring, 1));
        for local in [8, 9, 10] {
            assert_eq!(ring.sealed_under(101), numbered.map(|all| (all, false)));
            assert!(ring.arrived_under(1).is_some());
            ring.install(NOW, keys(local, Wire::Two));
        }
        // Those and the second ones after them are known, and no more.
        assert!(ring.arrived_under(3).is_some() && ring.arrived_under(8).is_some());
        assert!(ring.arrived_under(1).is_none() && ring.sealed_under(101).is_none());
    }

    #[test]
    fn so_do_keys_of_our_own_handshake_for_which_an_unused_offer_gave_way() {
        for wire in [Wire::One, Wire::Two] {
            for (offers, stay) in [(0, true), (1, wire == Wire::One)] {
                let mut ring = ring(offers, wire);
                ring.install(NOW, keys(8, wire));
                assert_eq!(takes(&mut ring, 1), stay, "{offers} offers, {wire:?}");
                assert!(!takes(&mut ring, 2));
            }
            let mut ring = ring(1, wire);
            ring.forget_offer();
            ring.offer(keys(3, wire));
            ring.promote(NOW);
            assert_eq!(takes(&mut ring, 1), wire == Wire::One, "taken back");
        }
    }
}
