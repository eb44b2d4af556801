//! All connections of one node: listeners, ports, resets for strangers.

mod drive;

use super::config::TcpConfig;
use super::connection::{Connection, Key, Learned};
use super::event::{TcpConnectError, TcpConnectionId, TcpEvent, TcpState, TcpWriteError};
use crate::machine::PathId;
use crate::rng::Rng;
use crate::units::{Duration, Instant};
use crate::wire::aerotp::Port;
use crate::wire::network::NodeAddress;
use crate::wire::tcp::AddressPair;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The endpoint's settings.
#[derive(Clone, Copy, Debug)]
pub struct TcpEndpointConfig {
    /// This node, or its IPv4 address as a number. A remote node's address is the number of its
    /// [`PathId`], unless [`TcpEndpoint::set_addresses`] says otherwise.
    pub local: NodeAddress,
    /// Connections at once, at most; SYNs that would open more are dropped.
    pub connections_max: usize,
}

/// What was counted, over all connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpCounters {
    /// Segments dropped because their checksum does not match.
    pub checksum: u64,
    /// Segments dropped because their header is impossible.
    pub malformed: u64,
    /// Resets sent to segments without a connection.
    pub strangers: u64,
    /// SYNs dropped because there are as many connections as may be.
    pub refused: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Of these, those that began a repair: nothing that timed out before was still missing.
    pub timeout_repairs: u64,
    /// Of these, found to be spurious by F-RTO.
    pub spurious_timeouts: u64,
    /// Fast recoveries begun.
    pub fast_recoveries: u64,
    /// Segments with data or a FIN sent again.
    pub resent: u64,
    /// Reductions for congestion marks.
    pub marks: u64,
}

/// A look at a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpStatus {
    /// Its state.
    pub state: TcpState,
    /// The congestion window in octets.
    pub window: u64,
    /// The slow start threshold in octets; `u64::MAX` before a loss.
    pub threshold: u64,
    /// The smoothed round trip, if there was a sample.
    pub rtt: Option<Duration>,
    /// The retransmission timeout.
    pub rto: Duration,
    /// Whether everything written was acknowledged.
    pub all_acked: bool,
}

/// Resets that may wait to be sent; more strangers are ignored.
const RESETS_MAX: usize = 64;
/// Paths whose lessons are kept.
const LESSONS_MAX: usize = 1024;

/// One node's TCP.
#[derive(Debug)]
pub struct TcpEndpoint {
    config: TcpEndpointConfig,
    rng: Rng,
    listeners: BTreeMap<Port, TcpConfig>,
    connections: BTreeMap<TcpConnectionId, Box<Connection>>,
    keys: BTreeMap<Key, TcpConnectionId>,
    addresses: BTreeMap<PathId, AddressPair>,
    /// Connections that may have something to send, in turn.
    ready: VecDeque<TcpConnectionId>,
    deadlines: BTreeSet<(Instant, TcpConnectionId)>,
    events: VecDeque<TcpEvent>,
    resets: VecDeque<(PathId, Vec<u8>)>,
    lessons: BTreeMap<PathId, Learned>,
    next_id: u64,
    counters: TcpCounters,
}

impl TcpEndpoint {
    /// An endpoint with nothing to do. Initial sequence numbers come from `rng`.
    pub fn new(config: TcpEndpointConfig, rng: Rng) -> Self {
        Self {
            config,
            rng,
            listeners: BTreeMap::new(),
            connections: BTreeMap::new(),
            keys: BTreeMap::new(),
            addresses: BTreeMap::new(),
            ready: VecDeque::new(),
            deadlines: BTreeSet::new(),
            events: VecDeque::new(),
            resets: VecDeque::new(),
            lessons: BTreeMap::new(),
            next_id: 0,
            counters: TcpCounters::default(),
        }
    }

    /// Says which addresses belong to segments sent to `path`: for IPv6, or when the path's number
    /// is not the remote's IPv4 address.
    pub fn set_addresses(&mut self, path: PathId, addresses: AddressPair) {
        self.addresses.insert(path, addresses);
    }

    /// Accepts connections to `port`.
    ///
    /// # Errors
    /// A setting is out of range.
    pub fn listen(&mut self, port: Port, config: TcpConfig) -> Result<(), TcpConnectError> {
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
        config: TcpConfig,
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

    fn add(&mut self, key: Key, config: &TcpConfig) -> TcpConnectionId {
        let id = TcpConnectionId(self.next_id);
        self.next_id += 1;
        let secrets = (self.secret(), self.secret());
        let learned = self.lessons.get(&key.path).copied().unwrap_or_default();
        let mut connection = Connection::open(id, key, config, secrets, learned);
        connection.is_ready = true;
        self.ready.push_back(id);
        self.connections.insert(id, Box::new(connection));
        self.keys.insert(key, id);
        id
    }

    /// 32 random bits.
    fn secret(&mut self) -> u32 {
        u32::try_from(self.rng.below(1 << 32)).unwrap_or_default()
    }

    /// Runs `call` on a connection and notices what it changed.
    fn with<T>(
        &mut self,
        id: TcpConnectionId,
        call: impl FnOnce(&mut Connection) -> T,
    ) -> Option<T> {
        let connection = self.connections.get_mut(&id)?;
        let result = call(connection);
        if !core::mem::replace(&mut connection.is_ready, true) {
            self.ready.push_back(id);
        }
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
        let known = core::mem::replace(&mut connection.filed, at);
        if at == known {
            return;
        }
        if let Some(known) = known {
            self.deadlines.remove(&(known, id));
        }
        if let Some(at) = at {
            self.deadlines.insert((at, id));
        }
    }

    fn forget(&mut self, id: TcpConnectionId) {
        let Some(connection) = self.connections.remove(&id) else {
            return;
        };
        if let Some(at) = connection.filed {
            self.deadlines.remove(&(at, id));
        }
        if self.keys.get(&connection.key) == Some(&id) {
            self.keys.remove(&connection.key);
        }
        self.counters.add(&connection);
        let path = connection.key.path;
        if self.lessons.len() < LESSONS_MAX || self.lessons.contains_key(&path) {
            let Learned { threshold, rtt } = connection.lessons();
            let lesson = self.lessons.entry(path).or_default();
            lesson.threshold = threshold.or(lesson.threshold);
            lesson.rtt = rtt.or(lesson.rtt);
        }
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

    /// How many octets [`TcpEndpoint::write`] would take; 0 of a connection that is over.
    pub fn room(&self, id: TcpConnectionId) -> usize {
        let connection = self.connections.get(&id);
        connection.map_or(0, |connection| connection.sender().room_to_write())
    }

    /// Takes the next octets in order. Give the vector back with [`TcpEndpoint::recycle`].
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
    pub fn abort(&mut self, now: Instant, id: TcpConnectionId) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        let path = connection.key.path;
        if connection.abort() {
            let mut octets = Vec::new();
            let addresses = addresses_to(&self.addresses, self.config.local, path);
            connection.write_reset(now, &addresses, &mut octets);
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
    pub fn status(&self, id: TcpConnectionId) -> Option<TcpStatus> {
        let connection = self.connections.get(&id)?;
        let sender = connection.sender();
        let (window, threshold) = sender.windows();
        Some(TcpStatus {
            state: connection.state(),
            window,
            threshold,
            rtt: sender.rtt().smoothed(),
            rto: sender.rto(),
            all_acked: sender.is_all_acked(),
        })
    }

    /// Octets of memory that connections, answers that wait and lessons take.
    pub fn memory_bytes(&self) -> usize {
        let connections: usize = self.connections.values().map(|c| c.memory_bytes()).sum();
        let resets: usize = self
            .resets
            .iter()
            .map(|(_, octets)| octets.capacity())
            .sum();
        let events = self.events.capacity() * size_of::<TcpEvent>();
        let lessons = self.lessons.len() * size_of::<(PathId, Learned)>();
        connections + resets + events + lessons
    }

    /// What a connection with `config` takes at most, whatever its peer sends and asks for.
    pub fn connection_memory_max(config: &TcpConfig) -> usize {
        Connection::memory_max(config)
    }

    /// Connections that are not over.
    pub fn connections(&self) -> usize {
        self.connections.len()
    }

    /// The counters, those of open connections included.
    pub fn counters(&self) -> TcpCounters {
        let mut counters = self.counters;
        for connection in self.connections.values() {
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

impl TcpCounters {
    fn add(&mut self, connection: &Connection) {
        let counts = connection.sender().counts();
        self.timeouts += counts.timeouts;
        self.timeout_repairs += counts.timeout_repairs;
        self.spurious_timeouts += counts.spurious_timeouts;
        self.fast_recoveries += counts.fast_recoveries;
        self.resent += counts.resent;
        self.marks += counts.marks;
    }
}
