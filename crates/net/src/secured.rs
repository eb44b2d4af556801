//! An application on an AeroTP endpoint, run inside a session, which secures file transfers and tests; and one that is
//! run without, which notices that others call with keys.
//!
//! The application knows a peer by its place in the list of peers
//! ([`PeerIndex::inner_path`](crate::session::PeerIndex::inner_path)) instead of by its address, and sees
//! nothing else of the session. While there are no keys, or the link is down, its connections wait.
//!
//! # Does not
//! - Keep epochs on a disk: they come from the clock. If the clock was set back between two starts with the same key,
//!   an end that saw the later epoch refuses the new one until that end is started again.

use crate::clock::unix_time;
use crate::session::{
    Armour, ChecksumReason, DatagramArrival, Entropy, HandshakeRefusal, Hint, MtuConfig,
    PeerConfig, PeerIndex, PresetKey, PublicKey, SecretKey, Security, SecurityKinds, Session,
    SessionConfig, SessionConfigError, SessionEvent, arrival_maps, damaged, fast_cipher,
    initiation_kind, parity_follows, path_acks, reports, source_octets, unchecked, window_repair,
    wire_2,
};
use crate::udp::{Application, DatagramOrigin, Step};
use fulmar_proto::machine::{Datagram, Deadline, PathId};
use fulmar_proto::transport::aerotp::{AerotpEndpoint, Event};
use fulmar_proto::units::{ByteCount, Duration, Instant};
use fulmar_proto::wire::aerotp::{BodyCheck, TpduKind, parse};
use std::io;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;

/// The keys by which the two ends know each other.
#[derive(Clone, Debug)]
pub enum Credentials {
    /// A key of each end.
    Keys {
        /// Our key.
        own: SecretKey,
        /// The public keys of the ends that we talk to.
        peers: Vec<PublicKey>,
        /// A key that both ends were given, on top.
        preset: Option<PresetKey>,
    },
    /// One key that both ends were given.
    Preset(PresetKey),
}

/// The reason why there is no session.
#[derive(Debug, thiserror::Error)]
pub enum SecuredError {
    /// The kernel has no entropy.
    #[error("asking for entropy")]
    Entropy(#[source] io::Error),
    /// The keys contradict each other, or packets are too small.
    #[error(transparent)]
    Config(#[from] SessionConfigError),
}

/// The machine of a secured application.
pub type SecuredEndpoint = Session<AerotpEndpoint>;

/// Octets of the fraction of an epoch.
const FRACTION_BITS: u32 = 24;

/// The epoch of this start, larger than at any start before, as far as the clock goes: seconds, and 2^-24 of them.
pub fn boot_epoch() -> u64 {
    let now = unix_time();
    let fraction = u64::from(now.subsec_nanos()) >> (30 - FRACTION_BITS);
    now.as_secs() << FRACTION_BITS | fraction
}

/// A session around `endpoint`, for packets of `mtu` octets. With `calls` it opens a session with the
/// first peer there; else peers must come.
///
/// # Errors
/// [`SecuredError`].
pub fn secured(
    endpoint: AerotpEndpoint,
    credentials: Credentials,
    mtu: ByteCount,
    calls: Option<PathId>,
) -> Result<SecuredEndpoint, SecuredError> {
    let entropy = Entropy::from_system().map_err(SecuredError::Entropy)?;
    Ok(secured_by(
        endpoint,
        credentials,
        (mtu, calls),
        (boot_epoch(), entropy),
    )?)
}

/// The same at a start of this epoch, with this entropy.
pub(crate) fn secured_by(
    mut endpoint: AerotpEndpoint,
    credentials: Credentials,
    (mtu, calls): (ByteCount, Option<PathId>),
    (boot_epoch, entropy): (u64, Entropy),
) -> Result<SecuredEndpoint, SessionConfigError> {
    let peer = |index: usize, security| PeerConfig {
        name: format!("peer {}", index + 1),
        security,
        endpoints: calls.filter(|_| index == 0).into_iter().collect(),
        mtu: MtuConfig::fixed(mtu),
    };
    let (identity, peers) = match credentials {
        Credentials::Keys { own, peers, preset } => {
            let of = |(index, public)| {
                let preset = preset.clone();
                let security = Security::Noise {
                    peer: public,
                    preset,
                };
                peer(index, security)
            };
            (Some(own), peers.into_iter().enumerate().map(of).collect())
        }
        Credentials::Preset(key) => (None, vec![peer(0, Security::Preset { key })]),
    };
    // No TPDU is made for a peer before it is there.
    for index in (0..).take(peers.len()) {
        endpoint.hold(Instant::START, PeerIndex(index).inner_path(), true);
    }
    let config = SessionConfig {
        capabilities: fast_cipher()
            .into_iter()
            .chain([
                wire_2(),
                path_acks(),
                window_repair(),
                unchecked(),
                damaged(),
                parity_follows(),
                reports(),
                arrival_maps(),
            ])
            .collect(),
        ..SessionConfig::new(identity, peers, boot_epoch)
    };
    Session::new(config, endpoint, entropy)
}

/// Lets data leave to each peer by UDP with its checksum, or armoured and without it, as serves better.
pub fn choose_checksums(link: &mut SecuredEndpoint) {
    let peers = (0..).map(PeerIndex);
    let known = peers.take_while(|peer| link.status(*peer).is_some());
    for peer in known.collect::<Vec<_>>() {
        choose_checksum(link, peer);
    }
}

/// Does so for one peer.
pub fn choose_checksum(link: &mut SecuredEndpoint, peer: PeerIndex) {
    link.set_armour(peer, Some(Armour::Follows));
    link.choose_checksum(peer);
}

/// Something about the session of the two ends that their users should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecurityNote {
    /// Somebody calls with keys of this kind, and this end has none.
    CallsWithKeys(SocketAddr, SecurityKinds),
    /// Somebody calls without keys, and this end takes only those who have some.
    CallsWithoutKeys(SocketAddr),
    /// A handshake was refused here.
    Refused(HandshakeRefusal),
    /// Somebody who saw our handshake says, without proof, why it is refused.
    TurnedAway(Hint),
    /// The ends have the right keys and differ in something else.
    Mismatch {
        /// The capability on which they do not agree.
        what: String,
        /// Our value.
        ours: String,
        /// The other end's value.
        theirs: String,
    },
    /// Packets go in pieces: the session's words on their sizes.
    TooNarrow(String),
    /// Data leaves by another form of UDP, or it is known now which forms there are.
    CarrierChosen {
        /// Whether it leaves without checksum.
        is_unchecked: bool,
        /// The reason.
        why: ChecksumReason,
    },
}

/// The time in which one line tells of datagrams of the other kind, however many come.
const TOLD_EVERY: Duration = Duration::from_secs(60);

/// The limit on lines about datagrams of the other kind.
#[derive(Debug, Default)]
struct Overheard {
    told: Option<Instant>,
}

impl Overheard {
    /// Notes that something may be told of at `now`; returns `note` if it is.
    fn once<N>(&mut self, now: Instant, note: impl FnOnce() -> Option<N>) -> Option<N> {
        let recent = |told| now.saturating_since(told) < TOLD_EVERY;
        if self.told.is_some_and(recent) {
            return None;
        }
        let note = note()?;
        self.told = Some(now);
        Some(note)
    }
}

/// Whether a datagram would open a connection of AeroTP without a session around it.
fn opens_bare(octets: &[u8]) -> bool {
    let tpdu = parse(octets).ok();
    // Without its check, a sealed datagram may look so by chance.
    let tpdu = tpdu.filter(|tpdu| tpdu.check == BodyCheck::Intact);
    tpdu.is_some_and(|tpdu| matches!(tpdu.kind(), TpduKind::Asyn | TpduKind::Data { asyn: true }))
}

/// An application that is run without a session, and the function that hears of callers with keys.
#[derive(Debug)]
pub struct Unsecured<'a, A: ?Sized, T> {
    application: &'a mut A,
    tell: T,
    overheard: Overheard,
}

impl<'a, A: Application<AerotpEndpoint> + ?Sized, T: FnMut(SecurityNote)> Unsecured<'a, A, T> {
    /// Wraps `application`; `tell` hears of callers with keys, once a minute at most. They get no answer.
    pub fn new(application: &'a mut A, tell: T) -> Self {
        Self {
            application,
            tell,
            overheard: Overheard::default(),
        }
    }
}

impl<A: Application<AerotpEndpoint> + ?Sized, T: FnMut(SecurityNote)> Application<AerotpEndpoint>
    for Unsecured<'_, A, T>
{
    fn deliver(&mut self, now: Instant, machine: &mut AerotpEndpoint, event: Event) {
        self.application.deliver(now, machine, event);
    }

    fn work(&mut self, now: Instant, machine: &mut AerotpEndpoint) -> Step {
        self.application.work(now, machine)
    }

    fn unreachable(&mut self, now: Instant, machine: &mut AerotpEndpoint, path: PathId) {
        self.application.unreachable(now, machine, path);
    }

    fn arrived(
        &mut self,
        now: Instant,
        machine: &mut AerotpEndpoint,
        datagram: Datagram<'_>,
        origin: DatagramOrigin,
    ) {
        let kind = || initiation_kind(datagram.octets);
        if let Some(kind) = self.overheard.once(now, kind) {
            (self.tell)(SecurityNote::CallsWithKeys(origin.from, kind));
        }
        self.application.arrived(now, machine, datagram, origin);
    }

    fn departing(&mut self, now: Instant, to: SocketAddr, octets: &[u8]) {
        self.application.departing(now, to, octets);
    }

    fn too_large(&mut self, now: Instant, machine: &mut AerotpEndpoint, path: PathId) {
        self.application.too_large(now, machine, path);
    }

    fn paths_in_use(&self, now: Instant, machine: &AerotpEndpoint) -> Option<Vec<PathId>> {
        self.application.paths_in_use(now, machine)
    }

    fn times_departures(&self, machine: &AerotpEndpoint) -> bool {
        self.application.times_departures(machine)
    }

    fn next_deadline(&self) -> Option<Deadline> {
        self.application.next_deadline()
    }

    fn source(&self) -> Option<BorrowedFd<'_>> {
        self.application.source()
    }

    fn source_ready(&mut self) {
        self.application.source_ready();
    }
}

/// The application, and the function that hears of the session's refusals.
#[derive(Debug)]
pub struct Secured<'a, A: ?Sized, T> {
    application: &'a mut A,
    tell: T,
    overheard: Overheard,
    leaving: bool,
}

impl<'a, A: Application<AerotpEndpoint> + ?Sized, T: FnMut(SecurityNote)> Secured<'a, A, T> {
    /// Wraps `application`; `tell` hears why an end is turned away, and, once a minute at most, of callers without
    /// keys. They get no answer.
    pub fn new(application: &'a mut A, tell: T) -> Self {
        Self {
            application,
            tell,
            overheard: Overheard::default(),
            leaving: false,
        }
    }

    fn follow(
        &mut self,
        now: Instant,
        link: &mut SecuredEndpoint,
        event: SessionEvent<Event>,
    ) -> Option<Event> {
        match event {
            // Its packets are sent in pieces.
            SessionEvent::TooNarrow { why, .. } => (self.tell)(SecurityNote::TooNarrow(why)),
            SessionEvent::Refused { reason, .. } => (self.tell)(SecurityNote::Refused(reason)),
            SessionEvent::TurnedAway { hint, .. } => (self.tell)(SecurityNote::TurnedAway(hint)),
            SessionEvent::Mismatch {
                what, ours, theirs, ..
            } => (self.tell)(SecurityNote::Mismatch { what, ours, theirs }),
            SessionEvent::ReportDue(peer) => {
                // The session's own counts are all that there is to tell.
                link.report(now, peer, &[]);
            }
            SessionEvent::CarrierChosen {
                is_unchecked, why, ..
            } => (self.tell)(SecurityNote::CarrierChosen { is_unchecked, why }),
            SessionEvent::PeerRestarted(peer) => {
                let path = peer.inner_path();
                self.application.peer_restarted(now, link.inner_mut(), path);
            }
            SessionEvent::Up { peer, .. } => {
                // What begins now need not measure it again.
                if let Some(round_trip) = link.round_trip(peer) {
                    let path = peer.inner_path();
                    link.inner_mut().learn_round_trip(now, path, round_trip);
                }
            }
            SessionEvent::LinkUp { .. }
            | SessionEvent::LinkDown { .. }
            | SessionEvent::Closed(_)
            | SessionEvent::MtuChanged { .. }
            | SessionEvent::ParityChanged { .. }
            | SessionEvent::EpochSeen { .. }
            | SessionEvent::Rekeyed(_)
            | SessionEvent::Reported { .. }
            | SessionEvent::Path { .. }
            | SessionEvent::Moved { .. }
            // Nobody is met through a hub here.
            | SessionEvent::Introduced { .. }
            | SessionEvent::NotIntroduced { .. }
            | SessionEvent::Reached { .. }
            | SessionEvent::NoAnswer { .. } => {}
            SessionEvent::Inner(event) => return Some(event),
        }
        None
    }
}

impl<A: Application<AerotpEndpoint> + ?Sized, T: FnMut(SecurityNote)> Application<SecuredEndpoint>
    for Secured<'_, A, T>
{
    fn deliver(&mut self, now: Instant, link: &mut SecuredEndpoint, event: SessionEvent<Event>) {
        if let Some(event) = self.follow(now, link, event) {
            self.application.deliver(now, link.inner_mut(), event);
        }
    }

    fn work(&mut self, now: Instant, link: &mut SecuredEndpoint) -> Step {
        if self.leaving {
            return Step::Stop;
        }
        let step = self.application.work(now, link.inner_mut());
        if step != Step::Stop {
            return step;
        }
        self.leaving = true;
        link.close(now);
        Step::Again
    }

    fn unreachable(&mut self, now: Instant, link: &mut SecuredEndpoint, path: PathId) {
        let first = PeerIndex(0);
        let is_first = link.status(first).and_then(|status| status.path) == Some(path);
        if is_first {
            let inner = first.inner_path();
            self.application.unreachable(now, link.inner_mut(), inner);
        }
    }

    fn arrived(
        &mut self,
        now: Instant,
        link: &mut SecuredEndpoint,
        datagram: Datagram<'_>,
        origin: DatagramOrigin,
    ) {
        let bare = || opens_bare(datagram.octets).then_some(origin.from);
        if let Some(from) = self.overheard.once(now, bare) {
            (self.tell)(SecurityNote::CallsWithoutKeys(from));
        }
        let DatagramOrigin { from, at } = origin;
        let source = &source_octets(from);
        link.handle_arrival(
            now,
            DatagramArrival {
                datagram,
                source,
                at,
            },
        );
    }

    fn departing(&mut self, now: Instant, to: SocketAddr, octets: &[u8]) {
        self.application.departing(now, to, octets);
    }

    fn too_large(&mut self, now: Instant, link: &mut SecuredEndpoint, path: PathId) {
        link.on_too_large(now, path);
    }

    fn paths_in_use(&self, _now: Instant, link: &SecuredEndpoint) -> Option<Vec<PathId>> {
        Some(link.paths_in_use().collect())
    }

    fn times_departures(&self, machine: &SecuredEndpoint) -> bool {
        self.application.times_departures(machine.inner())
    }

    fn next_deadline(&self) -> Option<Deadline> {
        self.application.next_deadline()
    }

    fn source(&self) -> Option<BorrowedFd<'_>> {
        self.application.source()
    }

    fn source_ready(&mut self) {
        self.application.source_ready();
    }
}
