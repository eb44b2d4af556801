//! The connections of a node: listeners, turns to send, deadlines, resets.

use super::{StreamKey, StreamStates};
use crate::tcp::{TcpConnectError, TcpConnectionId, TcpEvent};
use crate::wire::tcp::{AddressPair, TcpFlags, TcpHeader, TcpSeq};
use fulmar_proto::machine::{Deadline, Ecn, PathId, Priority, Transmit, TransmitKind};
use fulmar_proto::units::Instant;
use fulmar_proto::wire::Port;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A datagram that was written, with fields for the network header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamDeparture {
    pub(crate) len: usize,
    pub(crate) kind: TransmitKind,
    pub(crate) ecn: Ecn,
}

impl StreamDeparture {
    /// A segment without octets of the stream.
    pub(crate) const fn control(len: usize) -> Self {
        Self {
            len,
            kind: TransmitKind::Control,
            ecn: Ecn::NotCapable,
        }
    }

    fn to(self, path: PathId) -> Transmit {
        Transmit {
            path,
            len: self.len,
            kind: self.kind,
            priority: Priority::default(),
            ecn: self.ecn,
        }
    }
}

/// The methods of a connection that the table calls.
pub(crate) trait StreamConnection {
    /// The sums that are kept of connections that are over.
    type Ledger: Default;

    fn states(&self) -> &StreamStates;
    fn states_mut(&mut self) -> &mut StreamStates;
    fn next_deadline(&self) -> Option<Deadline>;
    fn handle_deadline(&mut self, now: Instant);
    /// Adds the figures of the connection, which is over, to `ledger`.
    fn book(&self, ledger: &mut Self::Ledger);
}

#[derive(Debug)]
struct Slot<C> {
    connection: C,
    /// Whether it is in the queue of connections that may have something to send.
    is_ready: bool,
    /// The deadline under which it is filed.
    filed: Option<Instant>,
}

/// Resets that may wait to be sent; more strangers are ignored.
const RESETS_MAX: usize = 64;

/// The connections of one node, and listeners with their settings `S`.
#[derive(Debug)]
pub(crate) struct StreamTable<C: StreamConnection, S> {
    connections_max: usize,
    listeners: BTreeMap<Port, S>,
    connections: BTreeMap<TcpConnectionId, Box<Slot<C>>>,
    keys: BTreeMap<StreamKey, TcpConnectionId>,
    /// Connections that may have something to send, in turn.
    ready: VecDeque<TcpConnectionId>,
    deadlines: BTreeSet<(Instant, TcpConnectionId)>,
    events: VecDeque<TcpEvent>,
    resets: VecDeque<(PathId, Vec<u8>)>,
    next_id: u64,
    pub(crate) ledger: C::Ledger,
}

impl<C: StreamConnection, S: Copy> StreamTable<C, S> {
    /// A table without connections; it will have at most `connections_max`.
    pub(crate) fn new(connections_max: usize) -> Self {
        Self {
            connections_max,
            listeners: BTreeMap::new(),
            connections: BTreeMap::new(),
            keys: BTreeMap::new(),
            ready: VecDeque::new(),
            deadlines: BTreeSet::new(),
            events: VecDeque::new(),
            resets: VecDeque::new(),
            next_id: 0,
            ledger: C::Ledger::default(),
        }
    }

    /// Accepts connections to `port` with `settings` from now on.
    pub(crate) fn listen(&mut self, port: Port, settings: S) {
        self.listeners.insert(port, settings);
    }

    /// The settings of the listener at `port`.
    pub(crate) fn listener(&self, port: Port) -> Option<S> {
        self.listeners.get(&port).copied()
    }

    /// Whether there are as many connections as allowed.
    pub(crate) fn is_full(&self) -> bool {
        self.connections.len() >= self.connections_max
    }

    /// Checks that another connection may be opened.
    pub(crate) fn check_vacant(&self, key: StreamKey) -> Result<(), TcpConnectError> {
        if self.is_full() {
            return Err(TcpConnectError::TooMany(self.connections_max));
        }
        if self.keys.contains_key(&key) {
            return Err(TcpConnectError::InUse(key.local, key.remote));
        }
        Ok(())
    }

    /// Adds the connection that `open` makes.
    pub(crate) fn add(
        &mut self,
        key: StreamKey,
        open: impl FnOnce(TcpConnectionId) -> C,
    ) -> TcpConnectionId {
        let id = TcpConnectionId(self.next_id);
        self.next_id += 1;
        let slot = Slot {
            connection: open(id),
            is_ready: true,
            filed: None,
        };
        self.ready.push_back(id);
        self.connections.insert(id, Box::new(slot));
        self.keys.insert(key, id);
        id
    }

    pub(crate) fn find(&self, key: StreamKey) -> Option<TcpConnectionId> {
        self.keys.get(&key).copied()
    }

    pub(crate) fn get(&self, id: TcpConnectionId) -> Option<&C> {
        self.connections.get(&id).map(|slot| &slot.connection)
    }

    /// A connection, for changes that affect neither the segments it may send nor its deadline.
    pub(crate) fn get_mut(&mut self, id: TcpConnectionId) -> Option<&mut C> {
        let slot = self.connections.get_mut(&id);
        slot.map(|slot| &mut slot.connection)
    }

    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = &C> {
        self.connections.values().map(|slot| &slot.connection)
    }

    /// Runs `call` on a connection and brings the table up to date.
    pub(crate) fn with<T>(
        &mut self,
        id: TcpConnectionId,
        call: impl FnOnce(&mut C) -> T,
    ) -> Option<T> {
        let slot = self.connections.get_mut(&id)?;
        let result = call(&mut slot.connection);
        if !core::mem::replace(&mut slot.is_ready, true) {
            self.ready.push_back(id);
        }
        self.settle(id);
        Some(result)
    }

    /// Takes a connection's events and deadline, and forgets it when it is over.
    pub(crate) fn settle(&mut self, id: TcpConnectionId) {
        let Some(slot) = self.connections.get_mut(&id) else {
            return;
        };
        while let Some(event) = slot.connection.states_mut().poll_event() {
            self.events.push_back(event);
        }
        if slot.connection.states().is_closed() {
            self.forget(id);
            return;
        }
        let at = slot.connection.next_deadline().map(|deadline| deadline.at);
        let known = core::mem::replace(&mut slot.filed, at);
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
        let Some(slot) = self.connections.remove(&id) else {
            return;
        };
        if let Some(at) = slot.filed {
            self.deadlines.remove(&(at, id));
        }
        let key = slot.connection.states().key();
        if self.keys.get(&key) == Some(&id) {
            self.keys.remove(&key);
        }
        slot.connection.book(&mut self.ledger);
    }

    /// Lets every connection that is due handle its deadline, each once, so that the deadline moves
    /// on.
    pub(crate) fn handle_deadline(&mut self, now: Instant) {
        let due: Vec<TcpConnectionId> = self
            .deadlines
            .iter()
            .take_while(|(at, _)| *at <= now)
            .map(|(_, id)| *id)
            .collect();
        for id in due {
            self.with(id, |connection| connection.handle_deadline(now));
        }
    }

    /// The deadline at which to call [`StreamTable::handle_deadline`].
    pub(crate) fn next_deadline(&self) -> Option<Deadline> {
        let (_, id) = self.deadlines.first()?;
        self.get(*id)?.next_deadline()
    }

    pub(crate) fn poll_event(&mut self) -> Option<TcpEvent> {
        self.events.pop_front()
    }

    /// The next reset, or the segment that `poll` gets from the connections in turn.
    pub(crate) fn poll_transmit(
        &mut self,
        now: Instant,
        out: &mut Vec<u8>,
        mut poll: impl FnMut(&mut C, &mut Vec<u8>) -> Option<StreamDeparture>,
    ) -> Option<Transmit> {
        // A driver that wakes late may bring other input first.
        if self.deadlines.first().is_some_and(|(at, _)| *at <= now) {
            self.handle_deadline(now);
        }
        if let Some((path, octets)) = self.resets.pop_front() {
            out.extend_from_slice(&octets);
            return Some(StreamDeparture::control(octets.len()).to(path));
        }
        while let Some(&id) = self.ready.front() {
            if let Some(slot) = self.connections.get_mut(&id) {
                if let Some(departure) = poll(&mut slot.connection, out) {
                    return Some(departure.to(slot.connection.states().key().path));
                }
                slot.is_ready = false;
                self.settle(id);
            }
            self.ready.pop_front();
        }
        None
    }

    /// Queues a reset to be sent.
    pub(crate) fn queue_reset(&mut self, path: PathId, octets: Vec<u8>) {
        if self.resets.len() < RESETS_MAX {
            self.resets.push_back((path, octets));
        }
    }

    /// Answers a segment of `len` sequence numbers that has no connection (RFC 9293, section
    /// 3.10.7.1).
    pub(crate) fn reset_stranger(
        &mut self,
        path: PathId,
        header: &TcpHeader,
        len: u32,
        addresses: &AddressPair,
    ) {
        let mut reset = TcpHeader {
            source: header.destination,
            destination: header.source,
            flags: TcpFlags::RST,
            ..TcpHeader::default()
        };
        if header.flags.has(TcpFlags::ACK) {
            reset.seq = header.ack;
        } else {
            reset.seq = TcpSeq(0);
            reset.ack = header.seq.plus(len);
            reset.flags = TcpFlags::RST | TcpFlags::ACK;
        }
        let mut octets = Vec::new();
        reset.write(addresses, &[], &mut octets);
        self.queue_reset(path, octets);
    }

    /// Octets of memory that events and resets take.
    pub(crate) fn memory_bytes(&self) -> usize {
        let resets = self.resets.iter().map(|(_, octets)| octets.capacity());
        self.events.capacity() * size_of::<TcpEvent>() + resets.sum::<usize>()
    }
}
