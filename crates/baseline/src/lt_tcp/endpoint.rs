//! All connections of one node: listeners, ports, resets for strangers.

mod drive;

use super::config::LtTcpConfig;
use super::connection::LtTcpConnection;
use super::counters::LtTcpCounters;
use crate::stream::{StreamConnection, StreamKey, StreamTable, stream_endpoint};
use crate::tcp::{TcpConnectError, TcpConnectionId, TcpEndpointConfig, TcpState, TcpWriteError};
use crate::wire::tcp::AddressPair;
use fulmar_proto::machine::PathId;
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{Duration, Instant};
use fulmar_proto::wire::Port;
use fulmar_proto::wire::network::NodeAddress;

/// The state of a connection and its figures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LtTcpStatus {
    /// Its state.
    pub state: TcpState,
    /// The congestion window in octets.
    pub window: u64,
    /// The slow start threshold in octets; `u64::MAX` before a mark or timeout.
    pub threshold: u64,
    /// Octets in flight.
    pub pipe: u64,
    /// The receiver's loss estimate, in 0..=1.
    pub loss: f64,
    /// The smoothed round-trip time, if there was a sample.
    pub rtt: Option<Duration>,
    /// The retransmission timeout.
    pub rto: Duration,
    /// Whether everything written was acknowledged.
    pub all_acked: bool,
}

/// The LT-TCP endpoint of one node.
#[derive(Debug)]
pub struct LtTcpEndpoint {
    config: TcpEndpointConfig,
    rng: Rng,
    table: StreamTable<LtTcpConnection, LtTcpConfig>,
}

stream_endpoint!(LtTcpEndpoint, LtTcpConnection, LtTcpConfig);

impl LtTcpEndpoint {
    fn with(config: TcpEndpointConfig, rng: Rng) -> Self {
        Self {
            config,
            rng,
            table: StreamTable::new(config.connections_max),
        }
    }

    /// The addresses of segments sent to `path`.
    fn addresses_to(&self, path: PathId) -> AddressPair {
        AddressPair::nodes(self.config.local, NodeAddress(path.0))
    }

    fn add(&mut self, key: StreamKey, config: &LtTcpConfig) -> TcpConnectionId {
        let iss = u32::try_from(self.rng.below(1 << 32)).unwrap_or_default();
        self.table
            .add(key, |id| LtTcpConnection::open(id, key, config, iss))
    }

    /// The state and figures of a connection, unless it is over.
    pub fn status(&self, id: TcpConnectionId) -> Option<LtTcpStatus> {
        let connection = self.table.get(id)?;
        let sender = connection.sender();
        let (window, threshold) = sender.windows();
        Some(LtTcpStatus {
            state: connection.states().state(),
            window,
            threshold,
            pipe: sender.pipe(),
            loss: sender.loss(),
            rtt: sender.rtt().smoothed(),
            rto: sender.rto(),
            all_acked: sender.is_all_acked(),
        })
    }

    /// Octets of memory of connections and of answers that wait.
    pub fn memory_bytes(&self) -> usize {
        let connections: usize = self.table.iter().map(LtTcpConnection::memory_bytes).sum();
        connections + self.table.memory_bytes()
    }

    /// The most memory that a connection with `config` takes, whatever its peer sends and asks for.
    pub fn connection_memory_max(config: &LtTcpConfig) -> usize {
        LtTcpConnection::memory_max(config)
    }

    /// The counters, including those of open connections.
    pub fn counters(&self) -> LtTcpCounters {
        let mut counters = self.table.ledger;
        for connection in self.table.iter() {
            counters.book(connection);
        }
        counters
    }
}

impl LtTcpCounters {
    pub(super) fn book(&mut self, connection: &LtTcpConnection) {
        let counts = connection.sender().counts();
        self.unbelieved += connection.unbelieved();
        self.timeouts += counts.timeouts;
        self.marks += counts.marks;
        self.blocks += counts.blocks;
        self.proactive += counts.proactive;
        self.reactive += counts.reactive;
        self.resent += counts.resent;
        self.recovered += connection.receiver().recovered();
    }
}
