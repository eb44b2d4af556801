//! The session's peers by their keys, and how they are.

use crate::relay::Link;
use fulmar_net::secured::choose_checksum;
use fulmar_net::session::{
    HandshakeRefusal, Hint, Mismatch, MtuConfig, PeerConfig, PeerIndex, PublicKey, Security,
    SecurityKinds, SessionEvent,
};
use fulmar_proto::machine::PathId;
use fulmar_proto::units::{Bitrate, Duration, Instant};
use std::collections::BTreeMap;

/// The reason why a peer's streams do not come about, as far as somebody on the way says.
pub(crate) type Trouble = str;

/// The peers of an endpoint.
#[derive(Debug)]
pub(crate) struct Peers {
    /// The keys, by the session's index; `None` for a peer without a key of its own.
    keys: BTreeMap<PeerIndex, Option<PublicKey>>,
    rate: Option<Bitrate>,
    sends_early: bool,
    chooses_checksum: bool,
    /// Since when a peer cannot be reached.
    down: BTreeMap<PeerIndex, Instant>,
    troubles: BTreeMap<PeerIndex, String>,
}

/// The settings of a peer with this security, at the end of a link of `rate` if it was told.
pub(crate) fn settings(name: &str, security: Security, rate: Option<Bitrate>) -> PeerConfig {
    let mtu = MtuConfig {
        rate,
        ..MtuConfig::default()
    };
    PeerConfig {
        name: name.to_owned(),
        security,
        endpoints: Vec::new(),
        mtu,
    }
}

/// A key that two processes use.
const ONE_KEY_TWICE: &str = "another process that started later uses the same key: give each its own \
(new_secret_key), or a clock was set back";

/// A hint in the words of this crate: the session speaks of a gateway's file.
fn turned_away(hint: &Hint) -> String {
    match hint {
        Hint::WrongPublicKey(key) => {
            format!("its public key is not {key}: connect with the one that it has")
        }
        Hint::UnknownCaller(own) => {
            format!("it was not given our public key {own}: there, name it with Config::peer")
        }
        Hint::Superseded => ONE_KEY_TWICE.to_owned(),
        Hint::Mismatch(mismatch) => differ(*mismatch),
    }
}

/// A refusal in the words of this crate.
fn refusal(reason: &HandshakeRefusal) -> String {
    match reason {
        HandshakeRefusal::OldEpoch => ONE_KEY_TWICE.to_owned(),
        HandshakeRefusal::Mismatch(mismatch) => differ(*mismatch),
        other => other.to_string(),
    }
}

fn differ(mismatch: Mismatch) -> String {
    let made_by = |kinds: SecurityKinds| {
        if kinds.contains(SecurityKinds::NOISE) {
            "Config::new"
        } else if kinds.contains(SecurityKinds::PRESET) {
            "Config::with_shared_key"
        } else {
            "Config::insecure_for_tests"
        }
    };
    match mismatch {
        Mismatch::PresetKey => {
            "its shared key is another than ours: give both ends the same".to_owned()
        }
        Mismatch::Label => {
            "without security only two ends find each other: it is another one's".to_owned()
        }
        Mismatch::Security { ours, theirs } => format!(
            "it is configured by {}, and we by {}: use the same at both ends",
            made_by(theirs),
            made_by(ours)
        ),
    }
}

/// The security of a peer with a key.
pub(crate) const fn by_key(peer: PublicKey) -> Security {
    Security::Noise { peer, preset: None }
}

impl Peers {
    pub(crate) const fn new(
        keys: BTreeMap<PeerIndex, Option<PublicKey>>,
        rate: Option<Bitrate>,
        sends_early: bool,
        chooses_checksum: bool,
    ) -> Self {
        Self {
            keys,
            rate,
            sends_early,
            chooses_checksum,
            down: BTreeMap::new(),
            troubles: BTreeMap::new(),
        }
    }

    pub(crate) fn key_of(&self, peer: PeerIndex) -> Option<PublicKey> {
        self.keys.get(&peer).copied().flatten()
    }

    pub(crate) fn index_of(&self, key: Option<PublicKey>) -> Option<PeerIndex> {
        let found = self.keys.iter().find(|(_, of)| **of == key);
        found.map(|(index, _)| *index)
    }

    /// The peer with this key, taken in if it is not known; `None` if there are too many.
    pub(crate) fn index_for(
        &mut self,
        link: &mut Link,
        key: Option<PublicKey>,
    ) -> Option<PeerIndex> {
        if let Some(known) = self.index_of(key) {
            return Some(known);
        }
        let public = key?;
        let config = settings(&public.to_string(), by_key(public), self.rate);
        let index = link.add_peer(config)?;
        if self.chooses_checksum {
            choose_checksum(link, index);
        }
        if !self.sends_early {
            // Nothing is made for a peer before it is there.
            link.inner_mut()
                .hold(Instant::START, index.inner_path(), true);
        }
        self.keys.insert(index, key);
        Some(index)
    }

    /// Takes note of what the session says about a peer.
    pub(crate) fn follow<E>(&mut self, now: Instant, event: &SessionEvent<E>) {
        match event {
            SessionEvent::Up { peer, .. } | SessionEvent::LinkUp { peer, .. } => {
                self.down.remove(peer);
                self.troubles.remove(peer);
            }
            SessionEvent::LinkDown { peer, silent_for } => {
                let since = Instant::START
                    + now
                        .saturating_since(Instant::START)
                        .saturating_sub(*silent_for);
                self.down.insert(*peer, since);
            }
            SessionEvent::TurnedAway { peer, hint, .. } => {
                let text = format!("the other end says, without proof: {}", turned_away(hint));
                self.troubles.insert(*peer, text);
            }
            SessionEvent::Refused {
                peer: Some(peer),
                reason,
                ..
            } => {
                self.troubles.insert(*peer, refusal(reason));
            }
            _ => {}
        }
    }

    /// The network says that nobody listens there.
    pub(crate) fn on_unreachable(&mut self, link: &Link, path: PathId) {
        for peer in self.keys.keys() {
            if link.status(*peer).and_then(|status| status.path) == Some(path) {
                let text = "the network says that nobody listens at that address";
                self.troubles.insert(*peer, text.to_owned());
            }
        }
    }

    pub(crate) fn trouble(&self, peer: PeerIndex) -> Option<&Trouble> {
        self.troubles.get(&peer).map(String::as_str)
    }

    /// Takes the peers that cannot be reached for `patience`: each is named once.
    pub(crate) fn down_for(&mut self, now: Instant, patience: Duration) -> Vec<PeerIndex> {
        let is_over = |since: Instant| now.saturating_since(since) >= patience;
        let over = self.down.iter().filter(|(_, since)| is_over(**since));
        let over: Vec<PeerIndex> = over.map(|(peer, _)| *peer).collect();
        self.down.retain(|_, since| !is_over(*since));
        over
    }

    /// When the next peer will have been gone for `patience`.
    pub(crate) fn next_end(&self, patience: Duration) -> Option<Instant> {
        self.down.values().min().map(|since| *since + patience)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn troubles_are_in_the_words_of_this_crate_and_not_of_a_gateways_file() {
        let key = PublicKey::from_octets([1; 32]);
        let kinds = [
            SecurityKinds::NOISE,
            SecurityKinds::PRESET,
            SecurityKinds::NONE,
        ];
        let mut mismatches = vec![Mismatch::PresetKey, Mismatch::Label];
        for ours in kinds {
            let with = |theirs| Mismatch::Security { ours, theirs };
            mismatches.extend(kinds.map(with));
        }
        let hints = [
            Hint::WrongPublicKey(key),
            Hint::UnknownCaller(key),
            Hint::Superseded,
        ];
        let mut texts: Vec<String> = hints.iter().map(turned_away).collect();
        texts.push(refusal(&HandshakeRefusal::OldEpoch));
        for mismatch in mismatches {
            texts.push(turned_away(&Hint::Mismatch(mismatch)));
            texts.push(refusal(&HandshakeRefusal::Mismatch(mismatch)));
        }
        for text in texts {
            for of_gateways in ["[[", "public_key", "state_dir", "gateway", "security kind"] {
                assert!(!text.contains(of_gateways), "{of_gateways}: {text}");
            }
        }
    }
}
