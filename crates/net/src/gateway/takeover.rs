//! Another configuration taken up while the gateway runs: entries, classes, permissions, peers and keys.
//!
//! # Promises
//! - Steps that can fail are tried first: keys are read where the loop does not wait for it, and a configuration
//!   that cannot be taken up changes nothing.
//! - A key that is not in the new configuration has no session from then on, and a peer that is not in it
//!   no flow.
//! - Each change of a peer or key is a line of the log, with who asked for it.

use super::Link;
use super::config::{GatewayConfig, Keys, PeerSettings, change};
use super::entries::entry;
use super::link::{Recognition, inner_paths, known_address, mtu_config, security_of, set_meetings};
use super::peers::index_of;
use super::reload::{Asker, Reload};
use super::running::Running;
use crate::session::{PEERS_MAX, PeerConfig, SecretKey};
use fulmar_capture::GatewayEvent;
use fulmar_proto::splice::{FlowId, ResetCode};
use fulmar_proto::units::Instant;

/// A change of a peer's settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Comes,
    Goes,
    Stays,
    /// It was removed before.
    IsGone,
}

fn fate(was: Option<&PeerSettings>, is: &PeerSettings) -> Fate {
    let was_there = was.is_some_and(|was| !was.is_removed);
    match (was_there, is.is_removed) {
        (false, false) => Fate::Comes,
        (true, true) => Fate::Goes,
        (true, false) => Fate::Stays,
        (false, true) => Fate::IsGone,
    }
}

/// The names of the settings that differ, but for the keys.
fn changed(was: &PeerSettings, is: &PeerSettings) -> Vec<&'static str> {
    let all = [
        ("address", was.address != is.address),
        ("rate", was.rate.bound() != is.rate.bound()),
        ("share", was.rate.sharing() != is.rate.sharing()),
        (
            "rendezvous",
            was.meeting.rendezvous != is.meeting.rendezvous,
        ),
        ("introduce", was.meeting.introduce != is.meeting.introduce),
    ];
    let changed = all.iter().filter(|(_, differs)| *differs);
    changed.map(|(name, _)| *name).collect()
}

/// One reload under way.
struct Change<'a> {
    now: Instant,
    link: &'a mut Link,
    by: &'a Asker,
}

fn change_own_keys(change: &mut Change<'_>, keys: &Keys) {
    let Change { now, link, by } = change;
    let (identity, former) = (keys.identity.clone(), keys.former.clone());
    let public = |key: &Option<SecretKey>| key.as_ref().map(|key| key.public().to_string());
    if link.set_identity(*now, identity, former) {
        tracing::warn!(
            event = "own_key_changed",
            public_key = public(&keys.identity),
            former = public(&keys.former),
            %by
        );
    }
}

fn add_peer(
    change: &mut Change<'_>,
    index: usize,
    settings: &PeerSettings,
    (security, also): Recognition,
) {
    let Change { now, link, by } = change;
    let added = link.add_peer(PeerConfig {
        name: settings.name.clone(),
        security: security.clone(),
        endpoints: Vec::new(),
        mtu: mtu_config(settings),
    });
    debug_assert_eq!(added, Some(index_of(index)), "places are the session's");
    let peer = index_of(index);
    link.set_security(*now, peer, security, also);
    let (machine, path) = (link.inner_mut(), peer.inner_path());
    (machine.endpoint_mut()).set_rate_source(*now, path, settings.rate);
    // No TPDU is made for the peer before it is there.
    machine.hold(*now, path, true);
    tracing::warn!(
        event = "peer_added",
        peer = settings.name,
        public_key = settings.public_key,
        other_public_key = settings.other_public_key,
        %by
    );
}

fn change_peer(
    change: &mut Change<'_>,
    index: usize,
    (was, is): (&PeerSettings, &PeerSettings),
    (security, also): Recognition,
) {
    let Change { now, link, by } = change;
    let peer = index_of(index);
    let session_ended = link.set_security(*now, peer, security, also);
    if session_ended {
        link.inner_mut().hold(*now, peer.inner_path(), true);
    }
    let mut what = changed(was, is);
    if session_ended || !was.public_keys().eq(is.public_keys()) {
        what.push("keys");
    }
    if !what.is_empty() {
        tracing::warn!(
            event = "peer_changed",
            peer = is.name,
            what = what.join(", "),
            public_key = is.public_key,
            other_public_key = is.other_public_key,
            session_ended,
            %by
        );
    }
}

impl Running {
    /// Takes up another configuration.
    pub(super) fn reload(&mut self, now: Instant, link: &mut Link, new: Reload) {
        let Reload { config, keys, by } = new;
        let fixed = change::fixed_differences(&self.ground.config, &config);
        let places: Vec<String> = config.peers.iter().map(|peer| peer.name.clone()).collect();
        let same_kind = self.ground.config.security.name() == config.security.name();
        let merged = change::merge(&self.ground.config, config);
        if merged.peers.len() > PEERS_MAX {
            let problem = format!(
                "there were more than {PEERS_MAX} peers since the start, removed ones with them; restart it"
            );
            tracing::error!(event = "reload_refused", problem, %by);
            return;
        }
        let rules = match entry::rules(&merged) {
            Ok(rules) => rules,
            Err(error) => {
                tracing::error!(event = "reload_refused", %error, %by);
                return;
            }
        };
        if !fixed.is_empty() {
            tracing::warn!(event = "reload_partial", needs_restart = fixed.join(", "));
        }
        // Their names are those of the configuration under which they came.
        self.tell_news();
        let before = core::mem::replace(&mut self.ground.config, merged);
        if same_kind {
            let turn = &mut Change {
                now,
                link: &mut *link,
                by: &by,
            };
            self.change_peers(turn, (&before, &places), &keys);
        }
        let floor = &mut self.ground.floor(now, link);
        let unopened = self.entries.change_entries(floor, &mut self.traffic, rules);
        self.traffic.admission.follow(&self.ground.config);
        let places = || self.ground.config.live_places();
        self.traffic.budget.follow(places());
        self.traffic.disk_budget.follow(places());
        let endpoint = link.inner_mut().endpoint_mut();
        endpoint.share_among(inner_paths(&self.ground.config));
        for peer in 0..self.ground.config.peers.len() {
            self.ground.floor(now, link).report_link(peer);
        }
        self.tell(now, &GatewayEvent::Reloaded);
        tracing::info!(
            event = "reloaded",
            peers = self.ground.config.live_peers().count(),
            entries = self.entries.len(),
            unopened,
            flows = self.traffic.flows.len(),
            %by
        );
    }

    /// Takes up other peers and keys; `before` is the configuration until now, and `places` are the names of the peers in
    /// the order of the new file.
    fn change_peers(
        &mut self,
        turn: &mut Change<'_>,
        (before, places): (&GatewayConfig, &[String]),
        keys: &Keys,
    ) {
        let place_of = |peer: &PeerSettings| places.iter().position(|name| *name == peer.name);
        let hub_before = |place| before.hub_of(place);
        change_own_keys(turn, keys);
        let all: Vec<(usize, PeerSettings)> = self
            .ground
            .config
            .peers
            .iter()
            .cloned()
            .enumerate()
            .collect();
        // Peers that go come first: another may come with the key of one.
        for (index, peer) in &all {
            if fate(before.peers.get(*index), peer) == Fate::Goes {
                self.remove_peer(turn, *index);
            }
        }
        for (index, peer) in &all {
            let Some(place) = place_of(peer) else {
                continue;
            };
            let recognised = security_of(keys, place, peer);
            let was = before.peers.get(*index);
            let is_found_anew = match (fate(was, peer), was) {
                (Fate::Comes, _) => {
                    add_peer(turn, *index, peer, recognised);
                    true
                }
                (Fate::Stays, Some(was)) => {
                    change_peer(turn, *index, (was, peer), recognised);
                    was.address != peer.address
                }
                _ => false,
            };
            let has_other_hub = hub_before(*index) != self.ground.config.hub_of(*index);
            if has_other_hub && hub_before(*index).is_some() {
                // An address that the hub before told waits for a path.
                self.peers.found.forget(index_of(*index));
            }
            let is_met_anew = is_found_anew
                || was.is_some_and(|was| was.meeting != peer.meeting)
                || has_other_hub;
            if is_met_anew {
                set_meetings(&self.ground.config, turn.link, *index);
            }
            if is_found_anew {
                self.find_peer(turn.now, turn.link, *index);
            }
        }
        self.peers.names.follow(turn.now, &self.ground.config.peers);
        self.peers.ports.peers_changed(turn.now);
    }

    fn remove_peer(&mut self, change: &mut Change<'_>, index: usize) {
        let Change { now, link, by } = change;
        let now = *now;
        let of_peer = self
            .traffic
            .flows
            .iter()
            .filter(|(_, flow)| flow.peer == index);
        let flows: Vec<FlowId> = of_peer.map(|(id, _)| id).collect();
        let floor = &mut self.ground.floor(now, link);
        let traffic = &mut self.traffic;
        for id in &flows {
            floor.link.inner_mut().reset(now, *id, ResetCode::PeerLost);
            traffic.drop_flow(floor, *id, "peer_removed", true);
        }
        self.entries.turn_away_newcomers(floor, traffic, index);
        let peer = index_of(index);
        self.peers.found.forget(peer);
        link.remove_peer(now, peer);
        link.inner_mut().peer_restarted(now, peer.inner_path());
        link.inner_mut().hold(now, peer.inner_path(), true);
        tracing::warn!(
            event = "peer_removed",
            peer = self.ground.config.peer_name(index),
            flows = flows.len(),
            %by
        );
    }

    /// Calls a peer at another address, or not at all until its name is resolved.
    fn find_peer(&mut self, now: Instant, link: &mut Link, index: usize) {
        let peer = index_of(index);
        self.peers.found.forget(peer);
        // A peer that has no address for our socket was refused before.
        match known_address(&self.ground.config, index).ok().flatten() {
            Some(address) => self.peers.found.add(now, peer, address),
            None => link.set_endpoints(peer, Vec::new()),
        }
    }
}
