//! The session as a machine around another machine.
//!
//! Outside, a path is an address; inside, it is a peer. Arriving datagrams are opened, judged and handed
//! inwards; datagrams of the inner machine are sealed. While no peer can be reached, the inner machine
//! is not asked for datagrams, and is woken no more often than probes leave.

mod arrivals;
mod carrying;
mod contents;
mod damage;
mod departures;
mod initiations;
mod later;
mod meetings;
mod membership;
mod notices;
mod paths;
mod relaying;
mod responses;
mod timers;
mod told;

pub use arrivals::{DatagramArrival, source_octets};
pub use told::PathSeen;

use super::arrival_maps::tell_arrivals;
use super::config::{EarlyData, PeerIndex, SessionConfig, SessionConfigError};
use super::counters::SessionCounters;
use super::dialect::{DataForm, Wire, speaks_two, use_windows};
use super::entropy::Entropy;
use super::event::{HandshakeRefusal, SessionEvent};
use super::guard::{Guard, GuardKeys};
use super::handshake::Means;
use super::introductions::Wishes;
use super::keys::SecretKey;
use super::path_acks;
use super::peer::{Complaints, Peer};
use super::peer_status::PeerStatus;
use super::sizes::Sizes;
use super::sources::Bucket;
use super::tap::SessionTap;
use super::whereabouts::Whereabouts;
use super::wire::{
    Capability, Hello, MESSAGE_TYPE_BYTES, Message, REPORT_BYTES, Report, SESSION_VERSION,
};
use super::work::{KeyMeter, Work};
use carrying::News;
use contents::Held;
use fulmar_proto::fec::packet::PacketCode;
use fulmar_proto::liveness::Wants;
use fulmar_proto::machine::{
    Carried, Datagram, Deadline, Ecn, Machine, PathId, Priority, Transmit, TransmitKind,
};
use fulmar_proto::units::{Duration, Instant};
use std::collections::{BTreeMap, VecDeque};

/// The most own datagrams that wait to be sent; more are dropped and counted.
const OUTBOX_MAX: usize = 256;

/// A machine whose datagrams cross an untrusted, lossy network to known peers.
pub struct Session<M: Machine> {
    config: SessionConfig,
    inner: M,
    peers: Vec<Peer>,
    /// Our session indices, of pending handshakes and of keys.
    indices: BTreeMap<u32, PeerIndex>,
    /// The keys for checks of initiations that are sent to us by our public key.
    own_guard_keys: Option<GuardKeys>,
    /// A key of our own that peers may still call.
    former_identity: Option<SecretKey>,
    former_guard_keys: Option<GuardKeys>,
    guard: Guard,
    whereabouts: Whereabouts,
    work: Work,
    meter: KeyMeter,
    entropy: Entropy,
    code: PacketCode,
    /// The corrections for senders at addresses where no peer is.
    corrections: Bucket,
    outbox: VecDeque<(Transmit, Vec<u8>)>,
    events: VecDeque<SessionEvent<M::Event>>,
    /// The part of the present event that the inner machine is told after the application has heard it.
    news: Option<News>,
    counters: SessionCounters,
    complaints: Complaints,
    wrong_macs: u32,
    boot: u64,
    handshakes_begun: u64,
    /// The time of the last look at the timers.
    timers_ran: Option<Instant>,
    /// The time at which the inner machine was last woken while it could not send.
    inner_woken: Instant,
    /// Content before it is sealed, or after it was opened.
    scratch: Vec<u8>,
    /// The form of data to the peer that the inner machine sent to last: the next datagram is most likely for the same.
    likely_form: DataForm,
    /// Datagrams of peers whose restart the application has still to hear of, so that their new start's datagrams are
    /// not taken for their old one's.
    after_restart: VecDeque<Held>,
    /// The tap that captures datagrams, if there is one.
    tap: Option<Box<SessionTap>>,
    /// The wishes of peers to meet each other, where this end is their hub.
    wishes: Wishes,
    /// Datagrams of peers that a hub has carried here, with the paths that stand for the way through it.
    carried: VecDeque<(PathId, Vec<u8>)>,
    now: Instant,
}

impl<M: Carried> Session<M> {
    /// A session around `inner`. Peers with endpoints are called at the first drain.
    ///
    /// # Errors
    /// [`SessionConfigError`] if the settings contradict each other.
    pub fn new(
        config: SessionConfig,
        inner: M,
        mut entropy: Entropy,
    ) -> Result<Self, SessionConfigError> {
        config.check()?;
        if speaks_two(&config.capabilities) && !M::SHORT {
            return Err(SessionConfigError::LongFormOnly);
        }
        let peers = (0..).zip(&config.peers);
        let guard = Guard::new(config.guard.handshakes_per_second, entropy.child());
        let own = config.identity.as_ref().map(SecretKey::public);
        let boot = u64::from_le_bytes(entropy.array());
        let peers = peers.map(|(n, peer)| Peer::new(PeerIndex(n), peer.clone(), &config, boot));
        Ok(Self {
            peers: peers.collect(),
            inner,
            indices: BTreeMap::new(),
            own_guard_keys: own.as_ref().map(GuardKeys::of_public),
            former_identity: None,
            former_guard_keys: None,
            guard,
            whereabouts: Whereabouts::default(),
            work: Work::default(),
            meter: KeyMeter::default(),
            boot,
            entropy,
            code: PacketCode::new(),
            corrections: Bucket::FULL,
            outbox: VecDeque::new(),
            events: VecDeque::new(),
            news: None,
            counters: SessionCounters::default(),
            complaints: Complaints::default(),
            wrong_macs: 0,
            handshakes_begun: 0,
            timers_ran: None,
            inner_woken: Instant::START,
            scratch: Vec::new(),
            likely_form: DataForm::default(),
            after_restart: VecDeque::new(),
            tap: None,
            wishes: Wishes::default(),
            carried: VecDeque::new(),
            now: Instant::START,
            config,
        })
    }

    /// Captures from here on.
    pub fn set_tap(&mut self, tap: SessionTap) {
        self.tap = Some(Box::new(tap));
    }

    /// The machine inside, to look at.
    pub const fn inner(&self) -> &M {
        &self.inner
    }

    /// The machine inside, for application calls. They count as input: drain afterwards.
    pub const fn inner_mut(&mut self) -> &mut M {
        &mut self.inner
    }

    /// The counters.
    pub const fn counters(&self) -> &SessionCounters {
        &self.counters
    }

    /// The operations that it took to judge arriving datagrams, and to answer them.
    pub fn work(&self) -> Work {
        Work {
            key_operations: self.meter.counted(),
            ..self.work
        }
    }

    /// The status of a peer.
    pub fn status(&self, peer: PeerIndex) -> Option<PeerStatus> {
        let state = self.peer(peer)?;
        Some(PeerStatus {
            name: state.config.name.clone(),
            link: state.link_state(self.now),
            calling_for: (state.trying_since).map(|since| self.now.saturating_since(since)),
            path: state.path.or_else(|| {
                let quickest = state.further.quickest()?;
                Some(state.further.get(quickest)?.path)
            }),
            rtt: state.liveness.rtt(),
            round_trips: state.round_trips.quantiles(),
            outward: state.reports.outward(),
            inward: state.reports.inward(),
            sizes: self.sizes_of(state),
            capabilities: state.capabilities.clone(),
            wire: state.keys.wire(),
            secure: state.config.security.is_secure(),
            damage: state.damage_status(self.now),
        })
    }

    /// The round trip to a peer: smoothed, or that of its handshake as long as nothing else was measured.
    pub fn round_trip(&self, peer: PeerIndex) -> Option<Duration> {
        let state = self.peer(peer)?;
        state.liveness.rtt().or(state.set_up_in)
    }

    /// The peer's index, by its configured name.
    pub fn peer_named(&self, name: &str) -> Option<PeerIndex> {
        let found = self.peers.iter().find(|peer| peer.config.name == name);
        found.map(|peer| peer.index)
    }

    /// Peers whose datagrams are not protected; worth a loud warning.
    pub fn unprotected(&self) -> impl Iterator<Item = &str> {
        let peers = self.peers.iter();
        let bare = peers.filter(|peer| !peer.config.security.is_secure());
        bare.map(|peer| peer.config.name.as_str())
    }

    /// The sizes of what goes to `peer`.
    pub fn sizes(&self, peer: PeerIndex) -> Option<Sizes> {
        Some(self.sizes_of(self.peer(peer)?))
    }

    fn sizes_of(&self, state: &Peer) -> Sizes {
        let sends_early = self.config.early_data == EarlyData::Send;
        Sizes::new(
            state.mtu.packet(),
            state.headers,
            state.wire,
            state.protection.parity(),
            sends_early,
        )
    }

    /// The outer paths where peers are, and where they may be found.
    pub fn paths_in_use(&self) -> impl Iterator<Item = PathId> {
        let peers = self.peers.iter();
        peers.flat_map(|peer| {
            peer.path
                .into_iter()
                .chain(peer.config.endpoints.iter().copied())
                .chain(peer.further.outer_paths())
        })
    }

    /// The peer that is, or may be found, on an outer path.
    pub fn peer_on(&self, path: PathId) -> Option<PeerIndex> {
        let is_on = |peer: &&Peer| {
            peer.path == Some(path)
                || peer.config.endpoints.contains(&path)
                || peer.further.outer_paths().any(|one| one == path)
        };
        self.peers.iter().find(is_on).map(|peer| peer.index)
    }

    /// Replaces the outer paths where `peer` may be found, for instance after a name was resolved
    /// again. A path that it has been heard from stays in use.
    pub fn set_endpoints(&mut self, peer: PeerIndex, endpoints: Vec<PathId>) {
        self.whereabouts.forget();
        if let Some(state) = self.peer_mut(peer) {
            state.path = state.path.or(endpoints.first().copied());
            state.config.endpoints = endpoints;
        }
    }

    /// Notes that the system refused a datagram to `path` because of its size.
    pub fn on_too_large(&mut self, now: Instant, path: PathId) {
        for index in 0..self.peers.len() {
            let state = self
                .peers
                .get_mut(index)
                .filter(|state| state.path == Some(path));
            if state.is_some_and(|state| state.mtu.on_too_large(now).is_some()) {
                self.say_sizes(index);
            }
        }
    }

    /// Tells every peer that this end shuts down. Drain afterwards, once.
    pub fn close(&mut self, now: Instant) {
        for index in 0..self.peers.len() {
            self.send_message(now, index, Message::Close, Wants::Nothing);
        }
    }

    /// The octets that a report to `peer` has room for, so that it fits into a packet that is known to arrive.
    pub fn report_room(&self, peer: PeerIndex) -> usize {
        let room = self.peer(peer).map(|state| {
            let content = self.sizes_of(state).payload.as_usize() + state.wire.lead_bytes();
            content.saturating_sub(MESSAGE_TYPE_BYTES + REPORT_BYTES)
        });
        room.unwrap_or(0)
    }

    /// Tells `peer` how many datagrams were sent to it, how many of its own arrived, and `octets`, which
    /// it is told of by [`SessionEvent::Reported`]. `false` if it cannot be told now, or there is no
    /// [room](Session::report_room).
    pub fn report(&mut self, now: Instant, peer: PeerIndex, octets: &[u8]) -> bool {
        let index = usize::try_from(peer.0).unwrap_or(usize::MAX);
        let Some(state) = self.peers.get(index).filter(|state| state.is_open(now)) else {
            return false;
        };
        if octets.len() > self.report_room(peer) {
            return false;
        }
        let (sent, known) = state.reports.report();
        let message = Message::Report(Report {
            sent,
            heard: known.sent,
            arrived: known.arrived,
            rest: octets,
        });
        self.send_message(now, index, message, Wants::Nothing)
    }

    fn peer(&self, peer: PeerIndex) -> Option<&Peer> {
        self.peers.get(usize::try_from(peer.0).ok()?)
    }

    fn peer_mut(&mut self, peer: PeerIndex) -> Option<&mut Peer> {
        self.peers.get_mut(usize::try_from(peer.0).ok()?)
    }

    fn is_any_open(&self, now: Instant) -> bool {
        let mut peers = self.peers.iter();
        peers.any(|peer| peer.is_open(now) || peer.is_early(now))
    }

    /// Our hello to the peer at place `peer`, which leaves.
    fn say_hello(&mut self, epoch: u64, peer: usize) -> Hello {
        let asks = self.finds_rate(peer);
        if let Some((state, asks)) = self.peers.get_mut(peer).zip(asks) {
            state.path_acks.on_hello(asks);
        }
        self.hello(epoch, peer)
    }

    /// Whether the rate towards the peer at place `peer` is found: the reason to ask for path acks, and to try sizes seldom.
    fn finds_rate(&self, peer: usize) -> Option<bool> {
        let state = self.peers.get(peer)?;
        Some(self.inner.finds_rate(state.index.inner_path()) || state.further.are_named())
    }

    /// Our hello to the peer at place `peer`, as it would be now.
    fn hello(&self, epoch: u64, peer: usize) -> Hello {
        let mut capabilities = self.config.capabilities.clone();
        if let Some(asks) = self.finds_rate(peer) {
            path_acks::say(&mut capabilities, asks);
        }
        Hello {
            version: SESSION_VERSION,
            boot: self.boot,
            epoch,
            capabilities,
        }
    }

    /// A fresh index of ours for `peer`, whose old ones are forgotten with their keys.
    fn new_index(&mut self, peer: PeerIndex) -> u32 {
        let Self { indices, peers, .. } = self;
        let alive = |index: u32, of: PeerIndex| {
            let state = peers.get(of.0 as usize);
            state.is_some_and(|state| {
                let pending = state.pending.as_ref();
                state.keys.owns(index) || pending.is_some_and(|p| p.index == index)
            })
        };
        indices.retain(|index, of| *of != peer || alive(*index, *of));
        loop {
            let index = u32::from_be_bytes(self.entropy.array());
            if index != 0 && !self.indices.contains_key(&index) {
                self.indices.insert(index, peer);
                return index;
            }
        }
    }

    /// Makes the means of a handshake.
    fn means(&mut self) -> Means {
        Means {
            entropy: self.entropy.child(),
            meter: self.meter.clone(),
        }
    }

    /// The peer that is, or may be found, at `path`.
    fn peer_at(&mut self, now: Instant, path: PathId) -> Option<usize> {
        self.whereabouts.peer_at(now, path, &self.peers)
    }

    /// Queues an answer to somebody that nobody vouches for.
    fn answer_stranger(&mut self, path: PathId, octets: Vec<u8>) -> bool {
        self.work.answers += 1;
        self.queue(path, octets)
    }

    fn queue(&mut self, path: PathId, octets: Vec<u8>) -> bool {
        let fits = self.outbox.len() < OUTBOX_MAX;
        if fits {
            let transmit = Transmit {
                path,
                len: octets.len(),
                kind: TransmitKind::Control,
                priority: Priority(u8::MAX),
                ecn: Ecn::NotCapable,
            };
            self.outbox.push_back((transmit, octets));
        } else {
            self.counters.queue_full += 1;
        }
        fits
    }

    fn refuse(
        &mut self,
        now: Instant,
        path: PathId,
        peer: Option<PeerIndex>,
        reason: HandshakeRefusal,
    ) {
        let complaints = match peer.and_then(|peer| self.peers.get_mut(peer.0 as usize)) {
            Some(state) => &mut state.complaints,
            None => &mut self.complaints,
        };
        if complaints.may(now, reason.kind()) {
            let event = SessionEvent::Refused { path, peer, reason };
            self.events.push_back(event);
        }
    }

    /// Tells the application of a peer whose keys are usable now.
    fn announce(&mut self, now: Instant, index: usize, boot: u64, capabilities: Vec<Capability>) {
        let has_new_form = self.agree_on_form(now, index);
        let before = self.peers.get(index);
        if before.is_some_and(|state| !state.announced || state.boot != Some(boot)) {
            self.begin_checksum_choice(now, index, &capabilities);
        }
        let has_new_form = self.agree_on_parity(index, &capabilities) || has_new_form;
        let Some(state) = self.peers.get_mut(index) else {
            return;
        };
        let peer = state.index;
        self.counters.handshakes += 1;
        let restarted = state.boot.is_some_and(|before| before != boot);
        let resumed = state.boot == Some(boot);
        if restarted {
            // If two gateways have one key, the older keys are another gateway's: the later start counts.
            state.keys.forget_previous();
            state.reports.begin_again();
            state.damage.begin_again();
            self.events.push_back(SessionEvent::PeerRestarted(peer));
            self.part_paths(now, index);
        }
        let Some(state) = self.peers.get_mut(index) else {
            return;
        };
        if restarted || !state.announced {
            state.mtu.on_new_path(now);
            state.reassembly.clear();
            self.events.push_back(SessionEvent::Up {
                peer,
                capabilities: capabilities.clone(),
                resumed,
                wire: state.wire,
            });
            if let Some(round_trip) = self.round_trip(peer) {
                self.inner.on_round_trip(now, peer.inner_path(), round_trip);
            }
            self.say_sizes(index);
        } else {
            self.counters.rekeys += 1;
            self.events.push_back(SessionEvent::Rekeyed(peer));
            if has_new_form {
                self.say_sizes(index);
            }
        }
        let Some(state) = self.peers.get_mut(index) else {
            return;
        };
        state.announced = true;
        state.boot = Some(boot);
        state
            .reports
            .agree(&self.config.capabilities, &capabilities);
        let is_in_two = state.wire == Wire::Two;
        let ours = &self.config.capabilities;
        let tells = state.damage.agree(ours, &capabilities, is_in_two);
        let is_claimed = tells && state.protection.may_armour();
        let is_mapped = is_in_two && tell_arrivals(ours, &capabilities);
        state.maps.agree(is_mapped);
        let told = (is_in_two, is_claimed, is_mapped);
        let ways = (state.path_acks).agree(ours, &capabilities, told);
        let acked = (ways, self.config.liveness);
        (state.further).agree(now, (ours, &capabilities, is_in_two), acked);
        let inner_path = state.index.inner_path();
        let windows = is_in_two && use_windows(ours, &capabilities);
        self.inner.number_path(now, inner_path, ways);
        self.inner.use_windows(now, inner_path, windows);
        state.capabilities = capabilities;
        state.trying_since = None;
        state.said_no_answer = false;
        state.doubt.settle();
    }
}

impl<M: Carried> Machine for Session<M> {
    type Event = SessionEvent<M::Event>;

    /// Takes the path's number for the source's address. Drivers that know the address call
    /// [`Session::handle_datagram_from`].
    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        let source = datagram.path.0.to_be_bytes();
        self.handle_datagram_from(now, datagram, &source);
    }

    fn handle_deadline(&mut self, now: Instant) {
        self.now = now;
        self.run_timers(now);
        self.wake_inner(now);
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        self.now = now;
        self.transmit(now, out)
    }

    fn poll_event(&mut self) -> Option<SessionEvent<M::Event>> {
        self.carry_news();
        if let Some(own) = self.events.pop_front() {
            self.news = News::of(&own);
            return Some(own);
        }
        while let Some(held) = self.after_restart.pop_front() {
            held.hand_to(&mut self.inner, self.now);
        }
        self.inner.poll_event().map(SessionEvent::Inner)
    }

    fn next_deadline(&self) -> Option<Deadline> {
        let peers = self.peers.iter();
        let own = peers.fold(None, |first, peer| {
            let first = Deadline::earlier(first, self.next_question(peer));
            Deadline::earlier(first, peer.next_deadline(self.now))
        });
        let Deadline { at, why } = Deadline::earlier(own, self.inner_deadline())?;
        Some(Deadline {
            at: at.max(self.now),
            why,
        })
    }
}
