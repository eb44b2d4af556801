//! All connections of one node: listeners, ports, resets for strangers.

mod drive;

use super::config::LtTcpConfig;
use super::connection::{Connection, Key};
use crate::machine::PathId;
use crate::rng::Rng;
use crate::transport::tcp::{
    TcpConnectError, TcpConnectionId, TcpEndpointConfig, TcpEvent, TcpState, TcpWriteError,
};
use crate::units::{Duration, Instant};
use crate::wire::aerotp::Port;
use crate::wire::network::NodeAddress;
use crate::wire::tcp::AddressPair;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// What was counted, over all connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LtTcpCounters {
    /// Segments dropped because their checksum does not match.
    pub checksum: u64,
    /// Segments dropped because header or extension are impossible.
    pub malformed: u64,
    /// Resets sent to segments without a connection.
    pub strangers: u64,
    /// SYNs dropped because there are as many connections as may be.
    pub refused: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Reductions for congestion marks.
    pub marks: u64,
    /// Blocks begun.
    pub blocks: u64,
    /// Parity units sent before any feedback.
    pub proactive: u64,
    /// Parity units sent in answer to feedback.
    pub reactive: u64,
    /// Source units sent again.
    pub resent: u64,
    /// Source units rebuilt from parity.
    pub recovered: u64,
}

/// A look at a connection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LtTcpStatus {
    /// Its state.
    pub state: TcpState,
    /// The congestion window in octets.
    pub window: u64,
    /// The slow start threshold in octets; `u64::MAX` before a mark or timeout.
    pub threshold: u64,
    /// Octets in the network.
    pub pipe: u64,
    /// The receiver's loss estimate, in 0..=1.
    pub loss: f64,
    /// The smoothed round trip, if there was a sample.
    pub rtt: Option<Duration>,
    /// The retransmission timeout.
    pub rto: Duration,
    /// Whether everything written was acknowledged.
    pub all_acked: bool,
}

/// Resets that may wait to be sent; more strangers are ignored.
const RESETS_MAX: usize = 64;

/// One node's LT-TCP.
#[derive(Debug)]
pub struct LtTcpEndpoint {
    config: TcpEndpointConfig,
    rng: Rng,
    listeners: BTreeMap<Port, LtTcpConfig>,
    connections: BTreeMap<TcpConnectionId, Box<Connection>>,
    keys: BTreeMap<Key, TcpConnectionId>,
    /// Connections that may have something to send, in turn.
    ready: VecDeque<TcpConnectionId>,
    is_ready: BTreeSet<TcpConnectionId>,
    deadlines: BTreeSet<(Instant, TcpConnectionId)>,
    deadline_of: BTreeMap<TcpConnectionId, Instant>,
    events: VecDeque<TcpEvent>,
    resets: VecDeque<(PathId, Vec<u8>)>,
    next_id: u64,
    counters: LtTcpCounters,
}

impl LtTcpEndpoint {
    /// An endpoint with nothing to do. Initial sequence numbers come from `rng`.
    pub fn new(config: TcpEndpointConfig, rng: Rng) -> Self {
        Self {
            config,
            rng,
            listeners: BTreeMap::new(),
            connections: BTreeMap::new(),
            keys: BTreeMap::new(),
            ready: VecDeque::new(),
            is_ready: BTreeSet::new(),
            deadlines: BTreeSet::new(),
            deadline_of: BTreeMap::new(),
            events: VecDeque::new(),
            resets: VecDeque::new(),
            next_id: 0,
            counters: LtTcpCounters::default(),
        }
    }

    /// The addresses of segments sent to `path`.
    fn addresses_to(&self, path: PathId) -> AddressPair {
        AddressPair::nodes(self.config.local, NodeAddress(path.0))
    }

    /// Accepts connections to `port`.
    ///
    /// # Errors
    /// A setting is out of range.
    pub fn listen(&mut self, port: Port, config: LtTcpConfig) -> Result<(), TcpConnectError> {
        config.check()?;
        self.listeners.insert(port, config);
        Ok(())
    }

    /// Opens a connection to `remote` at `path`.
    ///
    /// # Errors
    /// A setting is out of range, the ports are in use, or there are too many connections.
    pub fn connect(
        &mut self,
        path: PathId,
        local: Port,
        remote: Port,
        config: LtTcpConfig,
    ) -> Result<TcpConnectionId, TcpConnectError> {
        config.check()?;
        if self.connections.len() >= self.config.connections_max {
            return Err(TcpConnectError::TooMany(self.config.connections_max));
        }
        let key = Key {
            path,
            local,
            remote,
        };
        if self.keys.contains_key(&key) {
            return Err(TcpConnectError::InUse(local, remote));
        }
        Ok(self.add(key, &config))
    }

    fn add(&mut self, key: Key, config: &LtTcpConfig) -> TcpConnectionId {
        let id = TcpConnectionId(self.next_id);
        self.next_id += 1;
        let iss = u32::try_from(self.rng.below(1 << 32)).unwrap_or_default();
        let connection = Connection::open(id, key, config, iss);
        self.connections.insert(id, Box::new(connection));
        self.keys.insert(key, id);
        self.mark_ready(id);
        id
    }

    fn mark_ready(&mut self, id: TcpConnectionId) {
        if self.is_ready.insert(id) {
            self.ready.push_back(id);
        }
    }

    /// Runs `call` on a connection and notices what it changed.
    fn with<T>(
        &mut self,
        id: TcpConnectionId,
        call: impl FnOnce(&mut Connection) -> T,
    ) -> Option<T> {
        let result = call(self.connections.get_mut(&id)?);
        self.mark_ready(id);
        self.settle(id);
        Some(result)
    }

    /// Takes a connection's events and deadline, and forgets it when it is over.
    fn settle(&mut self, id: TcpConnectionId) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        while let Some(event) = connection.poll_event() {
            self.events.push_back(event);
        }
        if connection.state() == TcpState::Closed {
            self.forget(id);
            return;
        }
        let at = connection.next_deadline().map(|deadline| deadline.at);
        if at == self.deadline_of.get(&id).copied() {
            return;
        }
        if let Some(known) = self.deadline_of.remove(&id) {
            self.deadlines.remove(&(known, id));
        }
        if let Some(at) = at {
            self.deadlines.insert((at, id));
            self.deadline_of.insert(id, at);
        }
    }

    fn forget(&mut self, id: TcpConnectionId) {
        let Some(connection) = self.connections.remove(&id) else {
            return;
        };
        if let Some(at) = self.deadline_of.remove(&id) {
            self.deadlines.remove(&(at, id));
        }
        if self.keys.get(&connection.key) == Some(&id) {
            self.keys.remove(&connection.key);
        }
        self.counters.add(&connection);
    }

    /// Writes as much of `octets` as there is room for and says how much that was;
    /// [`TcpEvent::Writable`] follows when it was less than all.
    ///
    /// # Errors
    /// The connection is over, or was closed for writing.
    pub fn write(&mut self, id: TcpConnectionId, octets: &[u8]) -> Result<usize, TcpWriteError> {
        self.with(id, |connection| connection.write(octets))
            .unwrap_or(Err(TcpWriteError::Closed))
    }

    /// How many octets [`LtTcpEndpoint::write`] would take; 0 of a connection that is over.
    pub fn room(&self, id: TcpConnectionId) -> usize {
        let connection = self.connections.get(&id);
        connection.map_or(0, |connection| connection.sender().room_to_write())
    }

    /// Takes the next octets in order. Give the vector back with [`LtTcpEndpoint::recycle`].
    pub fn read(&mut self, id: TcpConnectionId) -> Option<Vec<u8>> {
        self.with(id, Connection::read).flatten()
    }

    /// Takes back a vector that was read.
    pub fn recycle(&mut self, id: TcpConnectionId, octets: Vec<u8>) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.recycle(octets);
        }
    }

    /// Closes the connection for writing. What was written is still sent.
    pub fn close(&mut self, id: TcpConnectionId) {
        self.with(id, Connection::close);
    }

    /// Ends the connection at once, with a reset.
    pub fn abort(&mut self, id: TcpConnectionId) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        let path = connection.key.path;
        if connection.abort() {
            let addresses = AddressPair::nodes(self.config.local, NodeAddress(path.0));
            let mut octets = Vec::new();
            connection.write_reset(&addresses, &mut octets);
            self.queue_reset(path, octets);
        }
        self.settle(id);
    }

    fn queue_reset(&mut self, path: PathId, octets: Vec<u8>) {
        if self.resets.len() < RESETS_MAX {
            self.resets.push_back((path, octets));
        }
    }

    /// A look at a connection, unless it is over.
    pub fn status(&self, id: TcpConnectionId) -> Option<LtTcpStatus> {
        let connection = self.connections.get(&id)?;
        let sender = connection.sender();
        let (window, threshold) = sender.windows();
        Some(LtTcpStatus {
            state: connection.state(),
            window,
            threshold,
            pipe: sender.pipe(),
            loss: sender.loss(),
            rtt: sender.rtt().smoothed(),
            rto: sender.rto(),
            all_acked: sender.is_all_acked(),
        })
    }

    /// The counters, those of open connections included.
    pub fn counters(&self) -> LtTcpCounters {
        let mut counters = self.counters;
        for connection in self.connections.values() {
            counters.add(connection);
        }
        counters
    }
}

impl LtTcpCounters {
    fn add(&mut self, connection: &Connection) {
        let counts = connection.sender().counts();
        self.timeouts += counts.timeouts;
        self.marks += counts.marks;
        self.blocks += counts.blocks;
        self.proactive += counts.proactive;
        self.reactive += counts.reactive;
        self.resent += counts.resent;
        self.recovered += connection.receiver().recovered();
    }
}
