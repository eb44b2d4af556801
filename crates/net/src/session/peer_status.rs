//! The state of a peer, as users see it.

use super::config::PeerIndex;
use super::damage_reports::DamageCounts;
use super::dialect::Wire;
use super::reports::Passage;
use super::round_trips::RoundTripQuantiles;
use super::sizes::Sizes;
use super::wire::Capability;
use fulmar_proto::machine::PathId;
use fulmar_proto::units::{BitErrorRate, Duration, FecStrength};

/// The state of a peer, for users.
#[derive(Clone, Debug, PartialEq)]
pub struct PeerStatus {
    /// The configured name.
    pub name: String,
    /// The state of its link.
    pub link: LinkState,
    /// The time for which handshakes to it have been unanswered; none while it is not called.
    pub calling_for: Option<Duration>,
    /// The path to it.
    pub path: Option<PathId>,
    /// The session's own round trips, smoothed.
    pub rtt: Option<Duration>,
    /// The last round trips as measured.
    pub round_trips: Option<RoundTripQuantiles>,
    /// Datagrams from here to it.
    pub outward: Passage,
    /// Datagrams from it to here.
    pub inward: Passage,
    /// The sizes of what goes to it.
    pub sizes: Sizes,
    /// Its capabilities, as it told them.
    pub capabilities: Vec<Capability>,
    /// The form of the data to and from it, while there are keys.
    pub wire: Option<Wire>,
    /// Whether its datagrams are authenticated.
    pub secure: bool,
    /// The damage on the way, where data is armoured.
    pub damage: Option<DamageStatus>,
}

/// The damage on the way to and from a peer, and the parity against it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DamageStatus {
    /// Words of parity behind a full datagram to it.
    pub words: FecStrength,
    /// Armoured datagrams from here to it, as it told.
    pub outward: DamageCounts,
    /// Armoured datagrams from it to here.
    pub inward: DamageCounts,
    /// Datagrams of those beyond repair from it to here that further parity mended.
    pub mended_later: u64,
    /// The rate of wrong bits on the way to it, as it told last.
    pub outward_rate: Option<BitErrorRate>,
    /// The rate of wrong bits on the way here.
    pub inward_rate: Option<BitErrorRate>,
}

/// The state of one of several paths to a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathStatus {
    /// Its place among them; the first one has 0.
    pub place: u8,
    /// The path by which the machine inside knows it.
    pub inner: PathId,
    /// The path by which its datagrams leave, once there is one.
    pub outer: Option<PathId>,
    /// Its cost: data leave on it while no path that costs less is up.
    pub cost: u8,
    /// Whether it carries data.
    pub use_now: PathUse,
    /// The round trip on it, smoothed.
    pub rtt: Option<Duration>,
    /// The times that it was down.
    pub outages: u64,
    /// The time for which it was down, in all.
    pub outage_time: Duration,
}

/// The way by which a peer is reached that a hub introduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// At an address of its own.
    Direct,
    /// Through this peer, which carries datagrams between the two.
    Through(PeerIndex),
}

/// Whether a path carries data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathUse {
    /// No probe was answered on it yet.
    Tried,
    /// It does.
    Up,
    /// Nothing has come back on it, for so long.
    Down(Duration),
}

/// The state of the link to a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkState {
    /// No keys yet, or not any more.
    Connecting,
    /// Data flows.
    Up,
    /// Keys are there, but nothing comes back.
    Down,
}
