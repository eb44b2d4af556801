//! The state of one peer. Of constant size, made at birth.

mod calls;
mod meeting;

pub(super) use calls::Cookie;

use super::arrival_maps::ArrivalMaps;
use super::asking::Asking;
use super::checksum_choice::ChecksumChoice;
use super::config::{PeerConfig, PeerIndex, Security, SessionConfig};
use super::correction::Corrections;
use super::damage_reports::DamageReports;
use super::dialect::{DataForm, DataParity, Wire};
use super::early::{EarlyIntake, EarlyKey, key_id, root};
use super::event::{HandshakeRefusal, Hint};
use super::fragments::Reassembly;
use super::further_paths::FurtherPaths;
use super::guard::{GuardKeys, Mac};
use super::handshake::Initiator;
use super::introductions::Introduced;
use super::keyring::KeyRing;
use super::keys::{PresetKey, PublicKey};
use super::later_repair::LaterRepair;
use super::path_acks::PathAcks;
use super::path_mtu::PathMtu;
use super::path_slot::PathSlot;
use super::peer_status::{DamageStatus, LinkState, Reach};
use super::protection::{Protection, layout};
use super::reports::Reports;
use super::round_trips::RoundTrips;
use super::sizes::NetworkHeaders;
use super::sources::Bucket;
use super::wire::Capability;
use calls::Calls;
use fulmar_proto::damage::ProtectedLayout;
use fulmar_proto::liveness::Liveness;
use fulmar_proto::machine::{Deadline, PathId, TransmitKind};
use fulmar_proto::units::{ByteCount, Duration, FecStrength, Instant};
use std::net::SocketAddr;

/// The time between initiations at first, or every second round trip ...
const RETRY_FIRST: Duration = Duration::from_millis(250);
/// ... but no more often than this ...
const RETRY_SHORTEST: Duration = Duration::from_millis(100);
/// ... for so many times: on a link that loses half each way, one in 10,000 handshakes takes more ...
const RETRIES_AT_FIRST_PACE: u32 = 32;
/// ... and the time between them at last, so that an outage's end is noticed.
const RETRY_LAST: Duration = Duration::from_secs(1);
/// The time for which an initiation is repeated; then another is made, with a fresh ephemeral key.
const INITIATION_LIFE: Duration = Duration::from_secs(20);
/// The same time where the peer may have either of two keys: enough for three round trips over a satellite.
const INITIATION_LIFE_OF_TWO: Duration = Duration::from_secs(4);
/// The pause after a disagreement, which only a person can end.
pub(super) const MISMATCH_PAUSE: Duration = Duration::from_secs(60);
/// The time that a handshake of the peer's has before we begin one, or another displaces it.
pub(super) const OFFER_PATIENCE: Duration = Duration::from_secs(5);
/// The time for which data leaves under a preset key alone; a peer that did not answer by then may be absent.
const EARLY_SPAN: Duration = Duration::from_secs(2);
/// The span in which hints that the peer lost its keys begin no more than one handshake.
const DOUBT_PAUSE: Duration = Duration::from_secs(5);
/// The span in which one complaint of a kind is logged.
pub(crate) const COMPLAINT_PAUSE: Duration = Duration::from_secs(60);
/// The time after which initiations without an answer are worth an event.
pub(super) const NO_ANSWER_AFTER: Duration = Duration::from_secs(5);

/// A handshake that we began and that is not answered yet.
pub(super) struct Pending {
    pub(super) index: u32,
    pub(super) initiator: Initiator,
    /// Everything before the second check.
    pub(super) message: Vec<u8>,
    /// The parity behind it.
    pub(super) parity: FecStrength,
    /// The first check, at the message's end.
    pub(super) first: Mac,
    pub(super) began: Instant,
    pub(super) tries: u32,
    /// Answers that did not verify.
    pub(super) forged: u32,
    /// Notices that it is refused.
    pub(super) refusals: u32,
    pub(super) next_at: Instant,
    /// The time at which it was last repeated before its turn.
    pub(super) hastened: Option<Instant>,
}

impl Pending {
    /// Repeats it at once, unless that was done just now.
    pub(super) fn hasten(&mut self, now: Instant) {
        let soon = |last| now.saturating_since(last) < RETRY_SHORTEST;
        if !self.hastened.is_some_and(soon) {
            self.hastened = Some(now);
            self.next_at = now;
        }
    }

    /// Whether another initiation is to take its place. `of_two` is set where the peer may have another key.
    pub(super) fn is_stale(&self, now: Instant, of_two: bool) -> bool {
        let life = if of_two {
            INITIATION_LIFE_OF_TWO
        } else {
            INITIATION_LIFE
        };
        now.saturating_since(self.began) >= life
    }

    /// Sets the time of the next repetition; `jitter` is in 0..1024.
    pub(super) fn schedule(&mut self, now: Instant, rtt: Option<Duration>, jitter: u64) {
        let doublings = self.tries.saturating_sub(RETRIES_AT_FIRST_PACE).min(4);
        self.tries = self.tries.saturating_add(1);
        let first = rtt.map_or(RETRY_FIRST, |rtt| {
            (rtt * 2).clamp(RETRY_SHORTEST, RETRY_FIRST)
        });
        let pace = (first * (1 << doublings)).min(RETRY_LAST);
        // Three quarters of the pause to all of it, so that two ends do not keep in step.
        let jitter = u32::try_from(jitter.min(1_023)).unwrap_or(0);
        self.next_at = now + pace * 3 / 4 + pace / 4 * jitter / 1_024;
    }
}

/// The last initiation of the peer that was answered, so that its repetition gets the same answer.
pub(super) struct Answered {
    pub(super) first: Mac,
    pub(super) response: Vec<u8>,
    pub(super) since: Instant,
    pub(super) count: u32,
}

/// The contents of the initiation that the offered keys belong to.
pub(super) struct Offer {
    /// The path on which it came.
    pub(super) path: PathId,
    pub(super) boot: u64,
    pub(super) epoch: u64,
    pub(super) capabilities: Vec<Capability>,
    /// Whether both ends would have several paths.
    pub(super) has_paths: bool,
    pub(super) since: Instant,
    /// The peer's public key, where keys tell who it is.
    pub(super) key: Option<PublicKey>,
}

impl Offer {
    /// Whether an initiation of `epoch` may displace it: a newer one may, others only when it led to
    /// nothing for a while. So recorded ones cannot keep a true one from being finished.
    pub(super) fn yields_to(&self, now: Instant, epoch: u64) -> bool {
        epoch > self.epoch || now.saturating_since(self.since) >= OFFER_PATIENCE
    }
}

impl Answered {
    /// Notes that it led to keys that are in use.
    pub(super) const fn settle(&mut self, now: Instant) {
        self.since = now;
        self.count = 0;
    }
}

/// Whether somebody who may be the peer said that it has no keys; a handshake shows whether that is so.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Doubt {
    is_raised: bool,
    last: Option<Instant>,
}

impl Doubt {
    /// Notes that it was said at `now`.
    pub(super) fn raise(&mut self, now: Instant) {
        let soon = |last| now.saturating_since(last) < DOUBT_PAUSE;
        if !self.last.is_some_and(soon) {
            self.is_raised = true;
            self.last = Some(now);
        }
    }

    /// Notes that a handshake was begun, or completed.
    pub(super) const fn settle(&mut self) {
        self.is_raised = false;
    }
}

/// The limit on complaints, so that an attacker cannot fill the log.
#[derive(Clone, Copy, Default)]
pub(super) struct Complaints([Option<Instant>; HandshakeRefusal::COUNT + Hint::COUNT]);

impl Complaints {
    pub(super) fn may(&mut self, now: Instant, kind: usize) -> bool {
        let Some(last) = self.0.get_mut(kind) else {
            return false;
        };
        let may = last.is_none_or(|last| now.saturating_since(last) >= COMPLAINT_PAUSE);
        if may {
            *last = Some(now);
        }
        may
    }
}

/// The public key by which a peer is called.
pub(super) const fn public_key(security: &Security) -> Option<PublicKey> {
    match security {
        Security::Noise { peer, .. } => Some(*peer),
        Security::Preset { .. } | Security::None { .. } | Security::Nobody => None,
    }
}

/// A question to a peer at an address from which damaged data seemed to come.
pub(super) struct Challenge {
    /// The number of the probe.
    pub(super) id: u32,
    pub(super) path: PathId,
    /// The headers around datagrams on that path.
    pub(super) headers: NetworkHeaders,
    pub(super) asked_at: Instant,
}

pub(super) struct Peer {
    pub(super) index: PeerIndex,
    pub(super) config: PeerConfig,
    /// The keys for the checks of our initiations to it.
    pub(super) guard_keys: GuardKeys,
    /// A second public key of it, while it changes its own. The key that it is called by is in `config`.
    pub(super) also: Option<PublicKey>,
    /// The public key that the keys in use were agreed on with.
    pub(super) key_in_use: Option<PublicKey>,
    pub(super) path: Option<PathId>,
    /// Whether it was at `path` when it last sent something sealed; an initiation alone may lie.
    pub(super) path_proven: bool,
    /// The question at an address where it may be.
    pub(super) challenge: Option<Challenge>,
    candidate: usize,
    pub(super) keys: KeyRing,
    /// The wire for which the inner machine sends to it.
    pub(super) wire: Wire,
    /// The parity of data to it.
    pub(super) protection: Protection,
    /// The choice between UDP with its checksum and without it, if both are allowed.
    // Boxed: most peers have none.
    pub(super) checksum: Option<Box<ChecksumChoice>>,
    /// The fate of armoured data, either way.
    pub(super) damage: DamageReports,
    /// Datagrams that further parity may mend, either way.
    pub(super) later: LaterRepair,
    pub(super) pending: Option<Pending>,
    pub(super) cookie: Option<Cookie>,
    calls: Calls,
    pub(super) answered: Option<Answered>,
    pub(super) epoch_seen: u64,
    /// The highest epoch of an initiation that was answered.
    pub(super) epoch_offered: u64,
    /// The epoch that the application knows.
    pub(super) epoch_said: u64,
    /// The key of our early data, since the first handshake of this start began.
    pub(super) early: Option<EarlyKey>,
    pub(super) early_intake: EarlyIntake,
    /// The root of the keys of early data, ours or the peer's.
    pub(super) early_root: Option<PresetKey>,
    /// Its number in headers.
    pub(super) early_id: Option<u32>,
    pub(super) liveness: Liveness,
    /// The time at which something came on the first path last.
    pub(super) heard_at: Option<Instant>,
    pub(super) round_trips: RoundTrips,
    /// The round trip of the handshake that led to the keys, if none of its messages was repeated.
    pub(super) set_up_in: Option<Duration>,
    pub(super) reports: Reports,
    pub(super) path_acks: PathAcks,
    /// The maps of what arrives on the first path.
    pub(super) maps: ArrivalMaps,
    pub(super) further: FurtherPaths,
    pub(super) mtu: PathMtu,
    /// The headers around each datagram on the path in use.
    pub(super) headers: NetworkHeaders,
    pub(super) reassembly: Reassembly,
    /// The number of the last inner datagram that left in pieces.
    pub(super) fragment_id: u32,
    pub(super) boot: Option<u64>,
    pub(super) capabilities: Vec<Capability>,
    pub(super) offer: Option<Offer>,
    /// Whether the application holds the session for established.
    pub(super) announced: bool,
    pub(super) trying_since: Option<Instant>,
    pub(super) said_no_answer: bool,
    pub(super) not_before: Instant,
    /// The time at which we called last.
    pub(super) called_at: Option<Instant>,
    pub(super) doubt: Doubt,
    pub(super) complaints: Complaints,
    pub(super) probes: u32,
    /// The wish to meet it through a hub.
    // Boxed: most peers have an address.
    pub(super) asking: Option<Box<Asking>>,
    /// Its part in meetings, where this end is the hub.
    pub(super) introduced: Introduced,
    /// The address that it was heard from last, sealed and on the first path.
    pub(super) source: Option<SocketAddr>,
    /// The way by which it was reached, as the application knows, where a hub introduced it.
    pub(super) reach_said: Option<Reach>,
    /// The corrections of datagrams from its address.
    pub(super) corrections: Corrections,
    /// The limit on answers to our initiations that are read.
    pub(super) answers_expected: Bucket,
    pub(super) answers_from_elsewhere: Bucket,
}

/// The bits of a probe's number that count; those above say what it tries.
const PROBES_MASK: u32 = (1 << 29) - 1;

impl Peer {
    pub(super) fn new(
        index: PeerIndex,
        config: PeerConfig,
        session: &SessionConfig,
        boot: u64,
    ) -> Self {
        let seen = session.epochs_seen.get(index.0 as usize);
        let epoch_seen = seen.copied().unwrap_or(0);
        let early_root = root(
            &config.security,
            session.identity.as_ref(),
            session.early_data,
        );
        let early_id = early_root.as_ref().map(key_id);
        Self {
            index,
            guard_keys: GuardKeys::of(&config.security),
            also: None,
            key_in_use: None,
            early: None,
            early_intake: EarlyIntake::new(epoch_seen.max(session.early_floor)),
            early_root,
            early_id,
            path: config.endpoints.first().copied(),
            path_proven: false,
            challenge: None,
            candidate: 0,
            keys: KeyRing::new(session.rekey),
            wire: Wire::default(),
            protection: Protection::new(session.fec_words),
            checksum: None,
            damage: DamageReports::default(),
            later: LaterRepair::default(),
            pending: None,
            cookie: None,
            calls: Calls::default(),
            answered: None,
            epoch_seen,
            epoch_offered: epoch_seen,
            epoch_said: epoch_seen,
            liveness: Liveness::new(session.liveness, Instant::START),
            heard_at: None,
            round_trips: RoundTrips::default(),
            set_up_in: None,
            reports: Reports::new(config.mtu.rate),
            path_acks: PathAcks::default(),
            maps: ArrivalMaps::default(),
            further: FurtherPaths::default(),
            mtu: PathMtu::new(config.mtu),
            headers: NetworkHeaders::UNKNOWN,
            reassembly: Reassembly::default(),
            // Another process begins at another number, so that pieces of both never make a whole.
            fragment_id: u32::try_from(boot & u64::from(u32::MAX)).unwrap_or_default(),
            boot: None,
            capabilities: Vec::new(),
            offer: None,
            announced: false,
            trying_since: None,
            said_no_answer: false,
            not_before: Instant::START,
            called_at: None,
            doubt: Doubt::default(),
            complaints: Complaints::default(),
            probes: 0,
            asking: None,
            introduced: Introduced::default(),
            source: None,
            reach_said: None,
            corrections: Corrections::new(),
            answers_expected: Bucket::FULL,
            answers_from_elsewhere: Bucket::FULL,
            config,
        }
    }

    /// Notes a datagram of `len` octets for the choice between UDP with its checksum and without it, if there is one.
    pub(super) fn note_carrier(
        &mut self,
        now: Instant,
        (len, is_armoured): (usize, bool),
        kind: TransmitKind,
    ) {
        let Some(choice) = &mut self.checksum else {
            return;
        };
        if is_armoured {
            choice.on_sent(now, len);
        } else if kind != TransmitKind::Control && self.reports.is_agreed() {
            choice.on_sent_checked(now);
        }
    }

    /// The path acks shared on the path in a place.
    pub(super) fn acks_in(&mut self, place: PathSlot) -> Option<&mut PathAcks> {
        if place == PathSlot::FIRST {
            return Some(&mut self.path_acks);
        }
        self.further.get_mut(place).map(|further| &mut further.acks)
    }

    /// The path by which the inner machine knows what comes in a place: that of its home until it uses the place itself.
    pub(super) fn inner_path_of(&self, place: PathSlot) -> PathId {
        let is_bonded = self.further.get(place).is_some_and(|one| one.is_bonded);
        let known = if is_bonded { place } else { PathSlot::FIRST };
        self.index.inner_path_in(known)
    }

    /// The outer path in a place.
    pub(super) fn outer_path(&self, place: PathSlot) -> Option<PathId> {
        if place == PathSlot::FIRST {
            return self.path;
        }
        self.further.get(place).map(|further| further.path)
    }

    /// The form of data to it on the path in a place: on further ones without parity.
    pub(super) fn form_in(&self, place: PathSlot) -> DataForm {
        if place == PathSlot::FIRST {
            return self.form();
        }
        DataForm {
            wire: self.wire,
            parity: DataParity::NONE,
        }
    }

    /// The parity of so much content on the path in a place, if it fits in so much room.
    pub(super) fn parity_for(
        &self,
        place: PathSlot,
        (content, room): (usize, usize),
    ) -> Option<DataParity> {
        if place == PathSlot::FIRST {
            return self.protection.parity_for(content, room);
        }
        (content <= room).then_some(DataParity::NONE)
    }

    /// The form of data to it.
    pub(super) const fn form(&self) -> DataForm {
        DataForm {
            wire: self.wire,
            parity: self.protection.parity(),
        }
    }

    /// The number of the next probe.
    pub(super) const fn next_probe(&mut self) -> u32 {
        self.probes = self.probes.wrapping_add(1) & PROBES_MASK;
        self.probes
    }

    /// The way of a datagram on `path`, armoured or not, in the form of UDP that serves it.
    pub(super) fn way(&self, path: PathId, is_armoured: bool) -> PathId {
        if is_armoured && self.checksum.is_some() {
            path.without_checksum()
        } else {
            path
        }
    }

    /// The layout of full armoured datagrams to it.
    pub(super) fn protected_layout(&self) -> ProtectedLayout {
        layout(self.mtu.packet(), self.headers.0)
    }

    /// Octets of a packet to it with so many of content.
    pub(super) fn octets_of_own(&self, content: usize) -> ByteCount {
        let around = self.wire.around(self.protection.parity_of_short(content));
        // In wire 1 content begins behind what is counted as around it.
        let lead = self.wire.lead_bytes();
        self.headers.0 + around + ByteCount::from_usize(content.saturating_sub(lead))
    }

    /// The damage on the way, if data to or from it was armoured.
    pub(super) fn damage_status(&self, now: Instant) -> Option<DamageStatus> {
        let parity = self.protection.parity();
        let inward_rate = self.damage.rate(now);
        (parity.is_armoured || inward_rate.is_some()).then(|| DamageStatus {
            words: parity.words,
            outward: self.damage.outward(),
            inward: self.damage.inward(),
            mended_later: self.later.mended(),
            outward_rate: self.protection.rate(),
            inward_rate,
        })
    }

    /// Whether it is, or may be found, at `path`.
    pub(super) fn may_be_at(&self, path: PathId) -> bool {
        self.path == Some(path) || self.config.endpoints.contains(&path) || self.further.has(path)
    }

    /// Whether what comes on `path` does not come from its home: the path is a further one, for both ends.
    pub(super) fn is_beside(&self, path: PathId) -> bool {
        let offers = self.offer.as_ref().is_some_and(|offer| offer.has_paths);
        (offers || self.further.are_agreed()) && self.further.has(path)
    }

    /// Whether a public key is its own.
    pub(super) fn is_known_by(&self, key: PublicKey) -> bool {
        let main = public_key(&self.config.security);
        main.is_some() && (main == Some(key) || self.also == Some(key))
    }

    /// Calls it by its other key from now on, if it has one.
    pub(super) fn take_other_key(&mut self) {
        if let (Security::Noise { peer, .. }, Some(also)) =
            (&mut self.config.security, &mut self.also)
        {
            core::mem::swap(peer, also);
            self.guard_keys = GuardKeys::of(&self.config.security);
            self.cookie = None;
        }
    }

    /// Notes that keys that were agreed on with `key` are in use.
    pub(super) fn use_key(&mut self, key: Option<PublicKey>) {
        self.key_in_use = key;
        if key.is_some() && key == self.also {
            self.take_other_key();
        }
    }

    /// Changes the way in which the peer is recognised; `true` if the keys agreed on before are void.
    pub(super) fn replace_security(
        &mut self,
        now: Instant,
        security: Security,
        also: Option<PublicKey>,
    ) -> bool {
        let before = [public_key(&self.config.security), self.also];
        let goes_on = match (&self.config.security, &security) {
            (Security::Noise { preset: was, .. }, Security::Noise { preset: is, .. }) => was == is,
            (Security::Preset { key: was }, Security::Preset { key: is }) => was == is,
            (Security::None { label: was }, Security::None { label: is }) => was == is,
            _ => false,
        };
        let mut after = [public_key(&security), also];
        let is_as_before = after == before || {
            after.reverse();
            after == before
        };
        if goes_on && is_as_before {
            // A handshake under way goes on, and the key that works stays the first.
            return false;
        }
        self.config.security = security;
        self.also = also;
        self.guard_keys = GuardKeys::of(&self.config.security);
        self.pending = None;
        let revoked = |key: &PublicKey| !self.is_known_by(*key);
        let is_any_revoked = before.iter().flatten().any(revoked);
        let is_void = !goes_on || self.key_in_use.as_ref().is_some_and(revoked);
        if !goes_on || matches!(self.config.security, Security::Noise { .. }) {
            self.forget_early();
        }
        if is_void {
            self.keys.clear();
            self.announced = false;
            self.key_in_use = None;
            self.path_proven = false;
            self.path = self.config.endpoints.first().copied();
        }
        if is_void || is_any_revoked {
            self.keys.forget_previous();
            self.forget_handshakes();
            // Whoever had the key may have said any epoch with it.
            self.epoch_seen = 0;
            self.epoch_offered = 0;
            self.not_before = now;
            self.said_no_answer = false;
            self.complaints = Complaints::default();
        }
        // The key that works is tried first.
        self.use_key(self.key_in_use);
        is_void
    }

    /// Sends and takes no more early data under the keys before, nor recordings of it if they come back. Between public keys there is none any more until
    /// the next start.
    pub(super) fn forget_early(&mut self) {
        self.early = None;
        self.early_intake.forget_key();
        self.early_root = match (&self.config.security, &self.early_root) {
            (Security::Preset { key }, Some(_)) => Some(key.clone()),
            _ => None,
        };
        self.early_id = self.early_root.as_ref().map(key_id);
    }

    /// Forgets handshakes that are under way: they would lead to other keys than now wanted.
    pub(super) fn forget_handshakes(&mut self) {
        self.keys.forget_offer();
        self.pending = None;
        self.offer = None;
        self.answered = None;
        self.cookie = None;
    }

    /// Whether data may be sent.
    pub(super) fn is_open(&self, now: Instant) -> bool {
        let is_home_up = self.path.is_some() && !self.liveness.is_down();
        self.keys.is_usable(now) && (is_home_up || self.further.is_any_up())
    }

    /// Whether sizes of packets are tried, which is on the path of its home.
    pub(super) fn tries_sizes(&self, now: Instant) -> bool {
        let is_known = self.path.is_some_and(|path| !self.is_unproven(path));
        self.is_open(now) && is_known && !self.liveness.is_told_down()
    }

    /// Whether data may be sent under the preset key alone: while the first handshake is young.
    pub(super) fn is_early(&self, now: Instant) -> bool {
        let young = |since| now.saturating_since(since) < EARLY_SPAN;
        self.early.is_some()
            && self.path.is_some()
            && !self.announced
            && !self.keys.is_usable(now)
            && self.trying_since.is_some_and(young)
    }

    pub(super) fn link_state(&self, now: Instant) -> LinkState {
        if !self.keys.is_usable(now) {
            LinkState::Connecting
        } else if self.liveness.is_down() && !self.further.is_any_up() {
            LinkState::Down
        } else {
            LinkState::Up
        }
    }

    /// The outer paths on which its home may be: its last path and the configured ones.
    fn home_paths(&self) -> impl Iterator<Item = PathId> + Clone + '_ {
        let configured = self.config.endpoints.iter().copied();
        let others = configured.filter(|path| Some(*path) != self.path);
        self.path.into_iter().chain(others)
    }

    /// The path of the next probe of a silent home: its last path and the configured ones in turn.
    pub(super) fn next_candidate(&mut self) -> Option<PathId> {
        let count = self.home_paths().count();
        let chosen = self.home_paths().nth(self.candidate.checked_rem(count)?);
        self.candidate = self.candidate.wrapping_add(1);
        chosen
    }

    pub(super) fn next_deadline(&self, now: Instant) -> Option<Deadline> {
        let why = "handshake";
        let mut first = self.initiation_at().map(|at| Deadline { at, why });
        if self.keys.is_usable(now) {
            let why = "end of keys";
            let end = self.keys.expires_at().map(|at| Deadline { at, why });
            first = Deadline::earlier(first, end);
            first = Deadline::earlier(first, self.liveness.next_deadline());
            first = Deadline::earlier(first, self.further.next_deadline());
            if self.is_open(now) {
                let at = self.further.next_ack_at();
                let why = "path ack";
                first = Deadline::earlier(first, at.map(|at| Deadline { at, why }));
                let sizes = self.mtu.next_deadline();
                first = Deadline::earlier(first, sizes.filter(|_| self.tries_sizes(now)));
                let why = "report to the peer";
                let report = self.reports.next_at().map(|at| Deadline { at, why });
                first = Deadline::earlier(first, report);
                let why = "path ack";
                let ack = self.path_acks.next_at().map(|at| Deadline { at, why });
                first = Deadline::earlier(first, ack);
                let why = "arrival map";
                let map = self.maps.next_at().map(|at| Deadline { at, why });
                first = Deadline::earlier(first, map);
                let why = "damage report";
                let report = self.damage.next_at().map(|at| Deadline { at, why });
                first = Deadline::earlier(first, report);
                let why = "choice between UDP with and without checksum";
                let round_trip = self.liveness.rtt().unwrap_or_default();
                let choice = self.checksum.as_ref();
                let choice = choice.and_then(|choice| choice.next_at(round_trip));
                first = Deadline::earlier(first, choice.map(|at| Deadline { at, why }));
            }
        }
        first
    }
}
