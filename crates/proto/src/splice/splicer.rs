//! The machine: flows by their names, and the way between them and AeroTP's connections.

use super::address::{Destination, FlowId, FlowKind};
use super::class::FlowClass;
use super::codes::{RefuseCode, ResetCode};
use super::config::{SplicerConfig, SplicerConfigError};
use super::counters::SplicerCounters;
use super::event::{FlowEvent, OpenError};
use crate::machine::{Datagram, Deadline, Machine, PathId, Transmit};
use crate::rng::Rng;
use crate::transport::aerotp::Endpoint;
use crate::units::Instant;
use core::net::SocketAddr;
use std::collections::VecDeque;

/// Which side of a flow a gateway is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Its client asked for the flow.
    Opener,
    /// It connects to the destination.
    Acceptor,
}

/// A flow as its driver kept it across a restart. Offsets count octets since the flow's start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    /// Its name.
    pub flow: FlowId,
    /// The peer.
    pub peer: PathId,
    /// Which side this gateway is on.
    pub role: Role,
    /// Where the acceptor connects to.
    pub destination: Destination,
    /// Its class, with `resume` set.
    pub class: FlowClass,
    /// Acceptor: the address that was reported with `connected`, if it was.
    pub bound: Option<SocketAddr>,
    /// Octets from the far side that reached the local socket.
    pub received: u64,
    /// The first octet towards the far side that the driver still has: everything before was
    /// reported as delivered.
    pub kept_from: u64,
}

/// One gateway's flows: a machine around an AeroTP endpoint.
#[derive(Debug)]
pub struct Splicer {
    config: SplicerConfig,
    endpoint: Endpoint,
    rng: Rng,
    events: VecDeque<FlowEvent>,
    counters: SplicerCounters,
}

impl Splicer {
    /// A splicer without flows. `rng` names the flows: the gateway seeds it from the system.
    ///
    /// # Errors
    /// [`SplicerConfigError`] if the settings cannot work.
    pub fn new(
        config: SplicerConfig,
        endpoint: Endpoint,
        rng: Rng,
    ) -> Result<Self, SplicerConfigError> {
        Ok(Self {
            config,
            endpoint,
            rng,
            events: VecDeque::new(),
            counters: SplicerCounters::default(),
        })
    }

    /// The AeroTP endpoint, to look at.
    pub const fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// The AeroTP endpoint, for the layer below to report on paths.
    pub const fn endpoint_mut(&mut self) -> &mut Endpoint {
        &mut self.endpoint
    }

    /// What was counted.
    pub const fn counters(&self) -> &SplicerCounters {
        &self.counters
    }

    /// Opener: asks `peer` to connect to `destination`. Nothing is waited for: what is given to
    /// `accept` before the machine is drained travels with the opening.
    ///
    /// # Errors
    /// [`OpenError`] if the class cannot carry this kind, or there are too many flows.
    pub fn open(
        &mut self,
        _now: Instant,
        _peer: PathId,
        _kind: FlowKind,
        _destination: Destination,
        _class: FlowClass,
    ) -> Result<FlowId, OpenError> {
        let mut id = [0; 16];
        self.rng.fill(&mut id);
        Err(OpenError::TooMany)
    }

    /// Takes up a flow that was there before a restart. The opener connects again by itself; the
    /// acceptor waits for it. `Resume` follows on both sides.
    ///
    /// # Errors
    /// [`OpenError`] as for `open`, or when the flow is there already.
    pub fn restore(&mut self, _now: Instant, _flow: Restored) -> Result<(), OpenError> {
        Err(OpenError::TooMany)
    }

    /// A peer has restarted and knows no flow of before: those that cannot resume are reset, the
    /// others connect again.
    pub fn peer_restarted(&mut self, _now: Instant, _peer: PathId) {}

    /// Streams: how many octets `accept` would take now. Read no more from the socket than that.
    pub fn capacity(&self, _flow: FlowId) -> usize {
        0
    }

    /// Streams: the offset of the next octet to give to `accept`; `None` if there is no such flow.
    pub fn accepted_offset(&self, _flow: FlowId) -> Option<u64> {
        None
    }

    /// Streams: takes octets towards the far side, in order, and says how many.
    pub fn accept(&mut self, _now: Instant, _flow: FlowId, _octets: &[u8]) -> usize {
        0
    }

    /// The local side sends no more: half-closes a stream, ends a datagram flow.
    pub fn finish(&mut self, _now: Instant, _flow: FlowId) {}

    /// The local side broke, or the driver gives the flow up. The far side hears `code`; the flow
    /// is gone here, without a further event.
    pub fn reset(&mut self, _now: Instant, _flow: FlowId, _code: ResetCode) {}

    /// Streams: octets for the local side that lie in one piece; `None` when there are none now.
    pub fn peek(&self, _flow: FlowId) -> Option<&[u8]> {
        None
    }

    /// Streams: `len` octets of what `peek` showed were taken.
    pub fn consume(&mut self, _now: Instant, _flow: FlowId, _len: usize) {}

    /// Streams: the local host has acknowledged the first `total` octets of the flow.
    pub fn delivered(&mut self, _now: Instant, _flow: FlowId, _total: u64) {}

    /// Acceptor: the destination accepted; `bound` is the local address of that connection.
    pub fn connected(&mut self, _now: Instant, _flow: FlowId, _bound: SocketAddr) {}

    /// Acceptor: there will be no connection. The flow is gone here, without a further event.
    pub fn refused(&mut self, _now: Instant, _flow: FlowId, _code: RefuseCode) {}

    /// Datagrams: takes a message towards the far side; `false` if it was dropped, which is
    /// counted.
    pub fn accept_datagram(&mut self, _now: Instant, _flow: FlowId, _message: &[u8]) -> bool {
        false
    }

    /// Datagrams: the next message for the local side.
    pub fn poll_datagram(&mut self, _now: Instant, _flow: FlowId) -> Option<Vec<u8>> {
        None
    }

    /// The flows, in the order of their names.
    pub fn flows(&self) -> impl Iterator<Item = FlowId> + '_ {
        core::iter::empty()
    }
}

impl Machine for Splicer {
    type Event = FlowEvent;

    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        self.endpoint.handle_datagram(now, datagram);
    }

    fn handle_deadline(&mut self, now: Instant) {
        self.endpoint.handle_deadline(now);
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        self.endpoint.poll_transmit(now, out)
    }

    fn poll_event(&mut self) -> Option<FlowEvent> {
        self.events.pop_front()
    }

    fn next_deadline(&self) -> Option<Deadline> {
        let _ = self.config;
        self.endpoint.next_deadline()
    }
}
