//! The configuration of an emulated link.

use crate::tun::{DeviceLayer, TunEnd};
use fulmar_channel::ChannelConfig;
use fulmar_proto::units::{ByteCount, Duration};
use std::net::SocketAddr;

/// The fate of a packet with inverted bits in its payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DamagePolicy {
    /// It arrives damaged, as over UDP-Lite or UDP without a checksum.
    #[default]
    Deliver,
    /// It arrives damaged behind its lower headers, or its IP header on a link between TUN devices, or its Ethernet header
    /// between TAP devices. These stay whole, as on links that protect them.
    DeliverBehindHeaders,
    /// It is dropped, as a receiving kernel drops datagrams whose UDP checksum is wrong.
    Drop,
}

/// A limit on the length of packets about which the path tells nobody: a black hole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LargestPacket {
    /// The octets of the largest packet that still passes, lower headers included.
    pub octets: ByteCount,
    /// The time after the start from which the limit holds; before, all pass.
    pub after: Duration,
}

/// A change of the link while it runs: of its rate, delay, loss and bit errors, and of nothing else.
#[derive(Clone, Debug)]
pub struct LinkChange {
    /// Its time, from the start.
    pub after: Duration,
    /// The link from the clients to the target, or from a to b, from then on.
    pub up: ChannelConfig,
    /// The link of the other direction.
    pub down: ChannelConfig,
}

impl LinkChange {
    /// The changes of one direction, with their times.
    pub(super) fn of_way(
        changes: &[Self],
        way: fn(&Self) -> &ChannelConfig,
    ) -> impl Iterator<Item = (Duration, ChannelConfig)> {
        changes
            .iter()
            .map(move |change| (change.after, way(change).clone()))
    }
}

/// The most octets in flight: a second at 2 gbit.
const HELD_MAX: ByteCount = ByteCount(256 * 1024 * 1024);

/// A link in each direction, and the addresses it joins.
#[derive(Clone, Debug)]
pub struct EmulatorConfig {
    /// The address where clients send to; port 0 takes any free port.
    pub listen: SocketAddr,
    /// The address where their datagrams go.
    pub to: SocketAddr,
    /// The link from the clients to the target.
    pub up: ChannelConfig,
    /// The link from the target to the clients.
    pub down: ChannelConfig,
    /// The changes of both while it runs, in the order of their times.
    pub changes: Vec<LinkChange>,
    /// The seed of every random decision.
    pub seed: u64,
    /// The fate of damaged payloads.
    pub damage: DamagePolicy,
    /// Network and carrier headers of each datagram on the link: 28 for IPv4 and UDP.
    pub overhead: ByteCount,
    /// The limit on packets: longer ones vanish, both ways.
    pub largest: Option<LargestPacket>,
    /// The most clients at once.
    pub flows_max: usize,
    /// The silence after which a client is forgotten when its place is wanted.
    pub idle_after: Duration,
    /// The most octets in flight, beyond any queue limit; packets above it are dropped.
    pub held_max: ByteCount,
}

impl EmulatorConfig {
    /// A perfect medium between `listen` and `to`, with default bounds.
    pub fn perfect(listen: SocketAddr, to: SocketAddr) -> Self {
        Self {
            listen,
            to,
            up: ChannelConfig::default(),
            down: ChannelConfig::default(),
            changes: Vec::new(),
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

/// A link in each direction, and the TUN or TAP devices it joins.
#[derive(Clone, Debug)]
pub struct TunLinkConfig {
    /// One end.
    pub a: TunEnd,
    /// The other end.
    pub b: TunEnd,
    /// The kind of both devices.
    pub layer: DeviceLayer,
    /// The longest packet on either device, in octets, without an Ethernet header.
    pub mtu: u16,
    /// The link from a to b.
    pub up: ChannelConfig,
    /// The link from b to a.
    pub down: ChannelConfig,
    /// The changes of both while it runs, in the order of their times.
    pub changes: Vec<LinkChange>,
    /// The seed of every random decision.
    pub seed: u64,
    /// The fate of damaged packets. Delivered ones meet the kernel's checksums; dropping stands for a link with a
    /// frame check of its own.
    pub damage: DamagePolicy,
    /// Octets that the link adds to each packet of a device, in time and in bit errors.
    pub overhead: ByteCount,
    /// The limit on packets: longer ones vanish, both ways. On its device a packet may be as long as `mtu`.
    pub largest: Option<LargestPacket>,
    /// The most octets in flight, beyond any queue limit; packets above it are dropped.
    pub held_max: ByteCount,
}

impl TunLinkConfig {
    /// A perfect medium between the TUN devices `a` and `b`, with default bounds.
    pub fn perfect(a: TunEnd, b: TunEnd) -> Self {
        Self {
            a,
            b,
            layer: DeviceLayer::Ip,
            mtu: 1500,
            up: ChannelConfig::default(),
            down: ChannelConfig::default(),
            changes: Vec::new(),
            seed: 1,
            damage: DamagePolicy::default(),
            overhead: ByteCount::ZERO,
            largest: None,
            held_max: HELD_MAX,
        }
    }
}
