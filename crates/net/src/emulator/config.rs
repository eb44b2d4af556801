//! What an emulated link is.

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
            flows_max: 256,
            idle_after: Duration::from_secs(60),
            held_max: ByteCount(256 * 1024 * 1024),
        }
    }
}
