//! Peers that come, go and change their keys while the session runs.
//!
//! # Promises
//! - Nothing more is sealed for, or accepted from, a key that was removed: session keys that were agreed on
//!   with it end at once, and so do handshakes under way.
//! - A session whose key stays goes on.

use super::Session;
use crate::session::config::{PEERS_MAX, PeerConfig, PeerIndex, Security};
use crate::session::guard::GuardKeys;
use crate::session::keys::{PublicKey, SecretKey};
use crate::session::peer::Peer;
use crate::session::wire::Message;
use fulmar_proto::liveness::Wants;
use fulmar_proto::machine::Carried;
use fulmar_proto::units::Instant;

impl<M: Carried> Session<M> {
    /// Adds a peer, under the index of a removed one of that name, or under the next index. `None`: there
    /// are as many as there can be. Its settings must not contradict those of the others.
    pub fn add_peer(&mut self, config: PeerConfig) -> Option<PeerIndex> {
        let is_place = |peer: &Peer| {
            matches!(peer.config.security, Security::Nobody) && peer.config.name == config.name
        };
        let place = self.peers.iter().position(is_place);
        let place = place.unwrap_or(self.peers.len());
        let index = PeerIndex(u32::try_from(place).ok().filter(|_| place < PEERS_MAX)?);
        let peer = Peer::new(index, config, &self.config, self.boot);
        self.whereabouts.forget();
        match self.peers.get_mut(place) {
            Some(removed) => *removed = peer,
            None => self.peers.push(peer),
        }
        Some(index)
    }

    /// Removes a peer, and tells it. Its index stays its own. Drain afterwards.
    pub fn remove_peer(&mut self, now: Instant, peer: PeerIndex) {
        let Ok(index) = usize::try_from(peer.0) else {
            return;
        };
        self.send_message(now, index, Message::Close, Wants::Nothing);
        self.whereabouts.forget();
        self.forget_keys(now, index);
        let Some(state) = self.peers.get_mut(index) else {
            return;
        };
        let config = PeerConfig {
            security: Security::Nobody,
            endpoints: Vec::new(),
            ..state.config.clone()
        };
        *state = Peer::new(peer, config, &self.config, self.boot);
        self.wishes.forget(peer);
    }

    /// Recognises a peer by `security` from now on, and also by the public key `also`: while it changes
    /// its key, both are its own. `true` if the session with it had to end, since that was another key's.
    pub fn set_security(
        &mut self,
        now: Instant,
        peer: PeerIndex,
        security: Security,
        also: Option<PublicKey>,
    ) -> bool {
        let Some(state) = self.peer_mut(peer) else {
            return false;
        };
        let had_session = state.keys.is_usable(now);
        let ends = state.replace_security(now, security, also);
        if ends && let Ok(index) = usize::try_from(peer.0) {
            self.forget_keys(now, index);
        }
        ends && had_session
    }

    /// Calls peers under `identity` from now on, and is still called by `former`, if there is one.
    /// Sessions stay; handshakes under the new key follow at once, so that a peer that does not know it
    /// is noticed. `true` if anything changed.
    pub fn set_identity(
        &mut self,
        now: Instant,
        identity: Option<SecretKey>,
        former: Option<SecretKey>,
    ) -> bool {
        let is_news = self.config.identity != identity;
        if !is_news && self.former_identity == former {
            return false;
        }
        self.config.identity = identity;
        self.former_identity = former;
        let guard_keys = |key: &Option<SecretKey>| {
            let public = key.as_ref().map(SecretKey::public);
            public.as_ref().map(GuardKeys::of_public)
        };
        self.own_guard_keys = guard_keys(&self.config.identity);
        self.former_guard_keys = guard_keys(&self.former_identity);
        for state in self.peers.iter_mut().filter(|_| is_news) {
            state.forget_handshakes();
            // The keys of early data are made of both ends' keys, ours among them.
            if matches!(state.config.security, Security::Noise { .. }) {
                state.forget_early();
            }
            state.not_before = now;
            if state.keys.is_usable(now) {
                state.doubt.raise(now);
            }
        }
        true
    }
}
