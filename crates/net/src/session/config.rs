//! The configuration of a session, fixed at its start.

use super::keys::{PresetKey, PublicKey, SecretKey};
use super::path_slot::PathSlot;
use super::wire::{Capability, Hello, HelloError};
use fulmar_proto::liveness::LivenessConfig;
use fulmar_proto::machine::PathId;
use fulmar_proto::units::{Bitrate, ByteCount, Duration, FecStrength};

/// The bits below the place of a path in the inner machine's numbers of paths.
const PLACE_SHIFT: u32 = 28;

/// A peer's place in [`SessionConfig::peers`]: also its [`PathId`] towards the inner machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerIndex(pub u32);

impl PeerIndex {
    /// The path by which the inner machine knows the peer.
    pub const fn inner_path(self) -> PathId {
        PathId(self.0)
    }

    /// The path by which the inner machine knows a further path to the peer.
    pub(super) const fn inner_path_in(self, place: PathSlot) -> PathId {
        PathId(self.0 | (place.bits() as u32) << PLACE_SHIFT)
    }

    /// The peer, and the place of its path, that the inner machine knows by `path`.
    pub(super) const fn of_inner(path: PathId) -> (Self, PathSlot) {
        let place = PathSlot::of_bits((path.0 >> PLACE_SHIFT & 7) as u8);
        (Self(path.0 & ((1 << PLACE_SHIFT) - 1)), place)
    }
}

/// The way in which a peer is recognised and its datagrams are protected.
#[derive(Clone, Debug)]
pub enum Security {
    /// Static keys on both sides: `Noise_IKpsk2_25519_ChaChaPoly_BLAKE2s`.
    Noise {
        /// The peer's public key.
        peer: PublicKey,
        /// A preset key on top, which must be the same on both sides.
        preset: Option<PresetKey>,
    },
    /// One key that both sides were given: `Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s`.
    Preset {
        /// That key. No two links may share it.
        key: PresetKey,
    },
    /// Nothing is protected: damage is noticed, attackers are not. For the lab only.
    None {
        /// Tells several unprotected peers apart; the same on both sides.
        label: u32,
    },
    /// Nobody: a peer that was removed. Nothing is taken from it, and nothing sent.
    Nobody,
}

impl Security {
    /// Whether datagrams are authenticated.
    pub const fn is_secure(&self) -> bool {
        !matches!(self, Self::None { .. })
    }
}

/// One peer.
#[derive(Clone, Debug)]
pub struct PeerConfig {
    /// The user's name for it, for logs.
    pub name: String,
    /// The way in which it is recognised.
    pub security: Security,
    /// Outer paths where it may be found, tried in turn. Empty: it must come to us.
    pub endpoints: Vec<PathId>,
    /// The sizes of packets towards it.
    pub mtu: MtuConfig,
}

/// The times at which keys are replaced.
#[derive(Clone, Copy, Debug)]
pub struct RekeyPolicy {
    /// The age of keys at which the initiator of the last handshake begins another. The other end does so a
    /// little later, if the initiator did not.
    pub after: Duration,
    /// The datagrams in one direction at which it begins another, too.
    pub after_datagrams: u64,
    /// The most datagrams that keys seal; then nothing is sealed until new keys are there. The data cipher has a
    /// bound of its own, which holds as well.
    pub datagrams_last: u64,
    /// The age at which keys are used no more. It is far above `after`, so that handshakes lost on a bad
    /// link do not stall the data.
    pub keys_last: Duration,
    /// The time for which datagrams under replaced keys are taken.
    pub grace: Duration,
}

impl Default for RekeyPolicy {
    fn default() -> Self {
        Self {
            after: Duration::from_secs(120),
            after_datagrams: 1 << 40,
            datagrams_last: u64::MAX,
            keys_last: Duration::from_secs(600),
            grace: Duration::from_secs(60),
        }
    }
}

/// The sizes of IP packets towards a peer.
#[derive(Clone, Copy, Debug)]
pub struct MtuConfig {
    /// Octets that every path carries: 1280, IPv6's minimum (RFC 8200, section 5).
    pub start: ByteCount,
    /// The most octets that are tried; if this is `start`, nothing is tried.
    pub max: ByteCount,
    /// The rate of the link, so that probes take a small part of it.
    pub rate: Option<Bitrate>,
}

impl MtuConfig {
    /// A fixed size: packets of `octets` are taken to arrive, and nothing else is tried.
    pub const fn fixed(octets: ByteCount) -> Self {
        Self {
            start: octets,
            max: octets,
            rate: None,
        }
    }
}

impl Default for MtuConfig {
    fn default() -> Self {
        Self {
            start: ByteCount(1_280),
            max: ByteCount(1_500),
            rate: None,
        }
    }
}

/// The limits on the work that strangers can cause.
#[derive(Clone, Copy, Debug)]
pub struct GuardConfig {
    /// The initiations that are read, a second. From half of that rate on, cookies are asked for.
    pub handshakes_per_second: u32,
}

impl Default for GuardConfig {
    fn default() -> Self {
        Self {
            handshakes_per_second: 100,
        }
    }
}

/// Whether the first octets travel with the first packet, a round trip sooner, at the price of replays.
///
/// Early data is under keys that both ends have before any handshake, sent together with the first handshake of a
/// start: under a preset key, or under the secret that two static keys have in common.
///
/// One end sends early data and the other takes it, never both at one end: otherwise an end would open its own
/// datagrams when somebody sends them back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum EarlyData {
    /// No early data.
    #[default]
    Off,
    /// This end sends it.
    Send,
    /// This end takes it. Keep [`SessionConfig::epochs_seen`], or it can be replayed once after each
    /// start of this end.
    Take,
}

/// A session's settings.
#[derive(Clone, Debug)]
pub struct SessionConfig {
    /// Our identity; needed as soon as one peer is recognised by its public key.
    pub identity: Option<SecretKey>,
    /// All peers, in the order of their [`PeerIndex`].
    pub peers: Vec<PeerConfig>,
    /// Our capabilities, as we tell them to peers.
    pub capabilities: Vec<Capability>,
    /// Larger than at any earlier start with the same keys: see [`super::next_boot_epoch`].
    pub boot_epoch: u64,
    /// Whether data is sent, or taken, before the handshake is through.
    pub early_data: EarlyData,
    /// The highest epoch seen of each peer at earlier starts, from
    /// [`SessionEvent::EpochSeen`](super::SessionEvent); missing ones count as 0.
    pub epochs_seen: Vec<u64>,
    /// The latest epoch whose early data is refused whoever it is from: for an end that remembers no peer's epoch,
    /// its own start. Handshakes are not held to it.
    pub early_floor: u64,
    /// Parity behind every datagram, outside the encryption, for carriers that deliver damaged
    /// datagrams: 0 to 255 words.
    pub fec_words: FecStrength,
    /// The times at which keys are replaced.
    pub rekey: RekeyPolicy,
    /// The silence after which a link is held for down.
    pub liveness: LivenessConfig,
    /// The limits on the work that strangers can cause.
    pub guard: GuardConfig,
}

/// The most peers of one session.
pub const PEERS_MAX: usize = 256;

impl SessionConfig {
    /// Settings with the defaults for everything but these.
    pub fn new(identity: Option<SecretKey>, peers: Vec<PeerConfig>, boot_epoch: u64) -> Self {
        Self {
            identity,
            peers,
            capabilities: Vec::new(),
            boot_epoch,
            early_data: EarlyData::Off,
            epochs_seen: Vec::new(),
            early_floor: 0,
            fec_words: FecStrength::NONE,
            rekey: RekeyPolicy::default(),
            liveness: LivenessConfig::default(),
            guard: GuardConfig::default(),
        }
    }

    pub(crate) fn check(&self) -> Result<(), SessionConfigError> {
        if self.peers.is_empty() || self.peers.len() > PEERS_MAX {
            return Err(SessionConfigError::Peers(self.peers.len()));
        }
        if self.fec_words.words() > u16::from(u8::MAX) {
            return Err(SessionConfigError::FecWords(self.fec_words.words()));
        }
        Hello::check(&self.capabilities)?;
        for (index, peer) in self.peers.iter().enumerate() {
            let MtuConfig { start, max, .. } = peer.mtu;
            if start < START_MIN || max < start || max > MAX_MAX {
                return Err(SessionConfigError::Mtu(start.0, max.0));
            }
            let needs_identity = matches!(peer.security, Security::Noise { .. });
            if needs_identity && self.identity.is_none() {
                return Err(SessionConfigError::NoIdentity(peer.name.clone()));
            }
            let own = self.identity.as_ref().map(SecretKey::public);
            if let Security::Noise { peer: key, .. } = &peer.security
                && own == Some(*key)
            {
                return Err(SessionConfigError::OwnKey(peer.name.clone()));
            }
            for other in &self.peers[..index] {
                if same_recognition(&peer.security, &other.security) {
                    return Err(SessionConfigError::Twice(
                        other.name.clone(),
                        peer.name.clone(),
                    ));
                }
            }
        }
        Ok(())
    }
}

/// The smallest packet size that may be configured. The header, the tag and a probe must fit. A handshake of 396
/// octets with 1,020 of parity does not; the user chooses how much parity to spend.
const START_MIN: ByteCount = ByteCount(576);
const MAX_MAX: ByteCount = ByteCount(65_000);

fn same_recognition(a: &Security, b: &Security) -> bool {
    match (a, b) {
        (Security::Noise { peer: a, .. }, Security::Noise { peer: b, .. }) => a == b,
        (Security::Preset { key: a }, Security::Preset { key: b }) => a == b,
        (Security::None { label: a }, Security::None { label: b }) => a == b,
        _ => false,
    }
}

/// The reason why a session cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SessionConfigError {
    /// No peer, or too many.
    #[error("a session needs 1 to {PEERS_MAX} peers, not {0}")]
    Peers(usize),
    /// A peer is recognised by its key, but we have none.
    #[error("peer `{0}` is recognised by its public key, so a secret key of our own is needed")]
    NoIdentity(String),
    /// A peer has our own public key.
    #[error("peer `{0}` has our own public key; give it the key of the other end")]
    OwnKey(String),
    /// Two peers could not be told apart.
    #[error("peers `{0}` and `{1}` have the same key; give each its own")]
    Twice(String, String),
    /// The header counts parity in one octet.
    #[error("parity of {0} words; the session's datagrams carry 0 to 255")]
    FecWords(u16),
    /// The machine inside cannot speak the form that wire 2 takes.
    #[error(
        "the capability `wire-2`, and a machine inside that speaks the long form only; leave it out"
    )]
    LongFormOnly,
    /// The sizes are out of order.
    #[error("packets of {0} to {1} octets; both must be 576 to 65000, the first not larger")]
    Mtu(u64, u64),
    /// Capabilities do not fit the handshake.
    #[error(transparent)]
    Hello(#[from] HelloError),
}
