//! All connections of one node: listeners, ports, resets for strangers.

mod drive;

use super::config::{TcpConfig, TcpEndpointConfig};
use super::connection::{Learned, TcpConnection};
use super::event::{TcpConnectError, TcpConnectionId, TcpState, TcpWriteError};
use crate::stream::{StreamConnection, StreamKey, StreamTable, stream_endpoint};
use crate::wire::tcp::AddressPair;
use fulmar_proto::machine::PathId;
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{Duration, Instant};
use fulmar_proto::wire::Port;
use fulmar_proto::wire::network::NodeAddress;
use std::collections::BTreeMap;

/// Counters over all connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpCounters {
    /// Segments dropped because their checksum does not match.
    pub checksum: u64,
    /// Segments dropped because their header is impossible.
    pub malformed: u64,
    /// Resets sent to segments without a connection.
    pub strangers: u64,
    /// SYNs dropped because there are as many connections as allowed.
    pub refused: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Timeouts that began a repair: nothing that timed out before was still missing.
    pub timeout_repairs: u64,
    /// Timeouts that F-RTO found to be spurious.
    pub spurious_timeouts: u64,
    /// Fast recoveries begun.
    pub fast_recoveries: u64,
    /// Segments with data or a FIN that were retransmitted.
    pub resent: u64,
    /// Reductions for congestion marks.
    pub marks: u64,
}

/// The state of a connection and its figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpStatus {
    /// Its state.
    pub state: TcpState,
    /// The congestion window in octets.
    pub window: u64,
    /// The slow start threshold in octets; `u64::MAX` before a loss.
    pub threshold: u64,
    /// The smoothed round-trip time, if there was a sample.
    pub rtt: Option<Duration>,
    /// The retransmission timeout.
    pub rto: Duration,
    /// Whether everything written was acknowledged.
    pub all_acked: bool,
}

/// Paths whose learned values are kept.
const LESSONS_MAX: usize = 1024;

/// The TCP endpoint of one node.
#[derive(Debug)]
pub struct TcpEndpoint {
    config: TcpEndpointConfig,
    rng: Rng,
    addresses: BTreeMap<PathId, AddressPair>,
    table: StreamTable<TcpConnection, TcpConfig>,
}

stream_endpoint!(TcpEndpoint, TcpConnection, TcpConfig);

impl TcpEndpoint {
    fn with(config: TcpEndpointConfig, rng: Rng) -> Self {
        Self {
            config,
            rng,
            addresses: BTreeMap::new(),
            table: StreamTable::new(config.connections_max),
        }
    }

    /// Sets the addresses of segments sent to `path`: for IPv6, or when the path's number is not
    /// the remote's IPv4 address.
    pub fn set_addresses(&mut self, path: PathId, addresses: AddressPair) {
        self.addresses.insert(path, addresses);
    }

    fn add(&mut self, key: StreamKey, config: &TcpConfig) -> TcpConnectionId {
        let secrets = (self.secret(), self.secret());
        let lessons = &self.table.ledger.lessons;
        let learned = lessons.get(&key.path).copied().unwrap_or_default();
        let open = |id| TcpConnection::open(id, key, config, secrets, learned);
        self.table.add(key, open)
    }

    /// The addresses of segments to `path`.
    fn addresses_to(&self, path: PathId) -> AddressPair {
        addresses_to(&self.addresses, self.config.local, path)
    }

    /// 32 random bits.
    fn secret(&mut self) -> u32 {
        u32::try_from(self.rng.below(1 << 32)).unwrap_or_default()
    }

    /// The state and figures of a connection, unless it is over.
    pub fn status(&self, id: TcpConnectionId) -> Option<TcpStatus> {
        let connection = self.table.get(id)?;
        let sender = connection.sender();
        let (window, threshold) = sender.windows();
        Some(TcpStatus {
            state: connection.states().state(),
            window,
            threshold,
            rtt: sender.rtt().smoothed(),
            rto: sender.rto(),
            all_acked: sender.is_all_acked(),
        })
    }

    /// Octets of memory of connections, of answers that wait, and of learned values.
    pub fn memory_bytes(&self) -> usize {
        let connections: usize = self.table.iter().map(TcpConnection::memory_bytes).sum();
        let lessons = self.table.ledger.lessons.len() * size_of::<(PathId, Learned)>();
        connections + self.table.memory_bytes() + lessons
    }

    /// The most memory that a connection with `config` takes, whatever its peer sends and asks for.
    pub fn connection_memory_max(config: &TcpConfig) -> usize {
        TcpConnection::memory_max(config)
    }

    /// The counters, including those of open connections.
    pub fn counters(&self) -> TcpCounters {
        let mut counters = self.table.ledger.counters;
        for connection in self.table.iter() {
            counters.add(connection);
        }
        counters
    }
}

/// The addresses of segments from `local` to `path`.
fn addresses_to(
    known: &BTreeMap<PathId, AddressPair>,
    local: NodeAddress,
    path: PathId,
) -> AddressPair {
    let nodes = AddressPair::nodes(local, NodeAddress(path.0));
    known.get(&path).copied().unwrap_or(nodes)
}

/// The sums that are kept of connections that are over.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    pub(super) counters: TcpCounters,
    lessons: BTreeMap<PathId, Learned>,
}

impl Ledger {
    /// Adds the figures of `connection`, which is over.
    pub(super) fn book(&mut self, connection: &TcpConnection) {
        self.counters.add(connection);
        let path = connection.states().key().path;
        if self.lessons.len() < LESSONS_MAX || self.lessons.contains_key(&path) {
            let Learned { threshold, rtt } = connection.lessons();
            let lesson = self.lessons.entry(path).or_default();
            lesson.threshold = threshold.or(lesson.threshold);
            lesson.rtt = rtt.or(lesson.rtt);
        }
    }
}

impl TcpCounters {
    fn add(&mut self, connection: &TcpConnection) {
        let counts = connection.sender().counts();
        self.timeouts += counts.timeouts;
        self.timeout_repairs += counts.timeout_repairs;
        self.spurious_timeouts += counts.spurious_timeouts;
        self.fast_recoveries += counts.fast_recoveries;
        self.resent += counts.resent;
        self.marks += counts.marks;
    }
}
