//! What an emulated link is.

use crate::tun::TunEnd;
use fulmar_channel::Config;
use fulmar_proto::units::{ByteCount, Duration};
use std::net::SocketAddr;

/// What happens to a packet with inverted bits in its payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DamagePolicy {
    /// It arrives damaged, as over UDP-Lite or UDP without a checksum.
    #[default]
    Deliver,
    /// It is dropped, as a receiving kernel drops datagrams whose UDP checksum is wrong.
    Drop,
}

/// A path that carries no longer packets, and says so to nobody: a black hole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LargestPacket {
    /// Of a packet that still passes, lower headers included.
    pub octets: ByteCount,
    /// Since when after the start; before, all pass.
    pub after: Duration,
}

/// Octets in flight at most: a second at 2 gbit.
const HELD_MAX: ByteCount = ByteCount(256 * 1024 * 1024);

/// A link in each direction, and the addresses it joins.
#[derive(Clone, Debug)]
pub struct EmulatorConfig {
    /// Where clients send to; port 0 takes any free one.
    pub listen: SocketAddr,
    /// Where their datagrams go.
    pub to: SocketAddr,
    /// From the clients to the target.
    pub up: Config,
    /// From the target to the clients.
    pub down: Config,
    /// The seed of every random decision.
    pub seed: u64,
    /// What happens to damaged payloads.
    pub damage: DamagePolicy,
    /// Network and carrier headers of each datagram on the link: 28 for IPv4 and UDP.
    pub overhead: ByteCount,
    /// What is longer vanishes, both ways.
    pub largest: Option<LargestPacket>,
    /// Clients at once.
    pub flows_max: usize,
    /// A client that was silent for so long is forgotten when its place is wanted.
    pub idle_after: Duration,
    /// Octets in flight at most, beyond any queue limit; what exceeds it is dropped.
    pub held_max: ByteCount,
}

impl EmulatorConfig {
    /// A perfect medium between `listen` and `to`, with default bounds.
    pub fn perfect(listen: SocketAddr, to: SocketAddr) -> Self {
        Self {
            listen,
            to,
            up: Config::default(),
            down: Config::default(),
            seed: 1,
            damage: DamagePolicy::default(),
            overhead: ByteCount(28),
            largest: None,
            flows_max: 256,
            idle_after: Duration::from_secs(60),
            held_max: HELD_MAX,
        }
    }
}

/// A link in each direction, and the TUN devices it joins.
#[derive(Clone, Debug)]
pub struct TunLinkConfig {
    /// One end.
    pub a: TunEnd,
    /// The other.
    pub b: TunEnd,
    /// The longest IP packet on either device, in octets.
    pub mtu: u16,
    /// From a to b.
    pub up: Config,
    /// From b to a.
    pub down: Config,
    /// The seed of every random decision.
    pub seed: u64,
    /// What happens to damaged packets: delivered, the kernel's checksums see to them; dropped, the
    /// link has a frame check of its own.
    pub damage: DamagePolicy,
    /// Octets that the link adds to each IP packet, in time and in bit errors.
    pub overhead: ByteCount,
    /// What is longer vanishes, both ways; on its device it may be as long as `mtu`.
    pub largest: Option<LargestPacket>,
    /// Octets in flight at most, beyond any queue limit; what exceeds it is dropped.
    pub held_max: ByteCount,
}

impl TunLinkConfig {
    /// A perfect medium between `a` and `b`, with default bounds.
    pub fn perfect(a: TunEnd, b: TunEnd) -> Self {
        Self {
            a,
            b,
            mtu: 1500,
            up: Config::default(),
            down: Config::default(),
            seed: 1,
            damage: DamagePolicy::default(),
            overhead: ByteCount::ZERO,
            largest: None,
            held_max: HELD_MAX,
        }
    }
}
