//! The machine of the splice: flows by their names, and the way between them and AeroTP's
//! connections.

mod arrivals;
mod carried;
mod inquiries;
mod restarts;

use super::address::{Destination, FlowId, FlowKind};
use super::any_flow::AnyFlow;
use super::association::Association;
use super::class::FlowClass;
use super::codes::{RefuseCode, ResetCode};
use super::config::{SplicerConfig, SplicerConfigError};
use super::counters::SplicerCounters;
use super::event::{FlowEvent, OpenError};
use super::flow::Flow;
use super::graves::Graves;
use super::report::{RepairTotals, Reports, SpliceReport};
use super::restored::{Restored, Role};
use super::shared::Shared;
use super::spare_buffers::SpareBuffers;
use super::told_losses::ToldLosses;
use crate::machine::{Datagram, Deadline, Machine, PathId, Transmit};
use crate::rng::Rng;
use crate::transport::aerotp::{AerotpEndpoint, ConnectionId, ModeRules};
use crate::units::Instant;
use crate::wire::{Mode, Port};
use arrivals::Orphan;
use core::net::SocketAddr;
use inquiries::Inquiries;
use restarts::Incarnation;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A flow, and its entries in the splicer's indexes.
#[derive(Debug)]
struct Slot {
    flow: AnyFlow,
    number: u64,
    connection: Option<ConnectionId>,
    deadline: Option<Deadline>,
}

/// One gateway's flows: a machine around an AeroTP endpoint.
#[derive(Debug)]
pub struct Splicer {
    shared: Shared,
    rng: Rng,
    flows: BTreeMap<FlowId, Slot>,
    by_connection: BTreeMap<ConnectionId, FlowId>,
    /// Connections that have not said yet which flow they carry.
    orphans: BTreeMap<ConnectionId, Orphan>,
    deadlines: BTreeSet<(Instant, FlowId)>,
    graves: Graves,
    incarnations: BTreeMap<PathId, Incarnation>,
    inquiries: Inquiries,
    openings: u32,
    next_number: u64,
    now: Instant,
}

impl Splicer {
    /// A splicer without flows, around an endpoint that listens nowhere yet. `rng` makes the flows'
    /// names: the gateway seeds it from the system.
    ///
    /// # Errors
    /// [`SplicerConfigError`] if the settings cannot work.
    pub fn new(
        config: SplicerConfig,
        mut endpoint: AerotpEndpoint,
        rng: Rng,
    ) -> Result<Self, SplicerConfigError> {
        let (config, pool) = config.checked()?;
        for port in config.port.0..=config.last_port() {
            let listening = endpoint.listen(Port(port), config.listener());
            listening.map_err(|error| SplicerConfigError {
                field: error.field,
                problem: error.problem,
            })?;
        }
        Ok(Self {
            shared: Shared {
                config,
                endpoint,
                pool,
                spare: SpareBuffers::default(),
                counters: SplicerCounters::default(),
                events: VecDeque::new(),
                reports: Reports::default(),
                least_round_trips: BTreeMap::new(),
            },
            rng,
            flows: BTreeMap::new(),
            by_connection: BTreeMap::new(),
            orphans: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            graves: Graves::new(config.ends_max, config.resume_within),
            incarnations: BTreeMap::new(),
            inquiries: Inquiries::default(),
            openings: 0,
            next_number: 0,
            now: Instant::START,
        })
    }

    /// The AeroTP endpoint, for reading.
    pub const fn endpoint(&self) -> &AerotpEndpoint {
        &self.shared.endpoint
    }

    /// The AeroTP endpoint, on which the layer below reports on paths. Its connections belong to
    /// the splicer.
    pub const fn endpoint_mut(&mut self) -> &mut AerotpEndpoint {
        &mut self.shared.endpoint
    }

    /// Tells whether `peer` is out of reach, as the layer below knows. While it is, flows with it
    /// wait; see [`AerotpEndpoint::hold`].
    pub fn hold(&mut self, now: Instant, peer: PathId, held: bool) {
        self.now = now;
        let home = self.shared.endpoint.home_of(peer);
        let was_held = self.shared.endpoint.is_held(home);
        self.shared.endpoint.hold(now, peer, held);
        self.pump(now);
        if was_held && !self.shared.endpoint.is_held(home) {
            self.on_link_up(now, home);
        }
    }

    /// The counters.
    pub const fn counters(&self) -> &SplicerCounters {
        &self.shared.counters
    }

    /// The octets of a report to `peer`, at most `room`: it says what became of the peer's datagrams here. The layer
    /// below carries them to the peer's [`Splicer::on_report`].
    pub fn report(&mut self, peer: PathId, room: usize) -> Vec<u8> {
        let counters = self.shared.endpoint.path_counters(peer);
        let report = self.shared.reports.report(peer, &counters, room);
        report.map_or_else(Vec::new, |report| report.encode())
    }

    /// Takes a report of `peer`. A report that this version cannot read is ignored.
    pub fn on_report(&mut self, peer: PathId, octets: &[u8]) {
        if let Some(report) = SpliceReport::decode(octets) {
            let Shared {
                reports, counters, ..
            } = &mut self.shared;
            reports.on_report(peer, &report, counters);
        }
    }

    /// Tells `peer` in the next reports how streams to it lost packets.
    pub fn tell_losses(&mut self, peer: PathId, losses: ToldLosses) {
        self.shared.reports.tell_losses(peer, losses);
    }

    /// The losses of streams from `peer` by cause, as it reports them.
    pub fn told_losses(&self, peer: PathId) -> Option<ToldLosses> {
        self.shared.reports.told_losses(peer)
    }

    /// TPDUs from here that `peer` repaired or gave up, as it reports them.
    pub fn told(&self, peer: PathId) -> RepairTotals {
        self.shared.reports.told(peer)
    }

    /// Opener: asks `peer` to connect to `destination`. The call does not wait: octets that are
    /// given to `accept` before the machine is drained travel with the opening.
    ///
    /// # Errors
    /// [`OpenError`] if the class cannot carry this kind, or there are too many flows.
    pub fn open(
        &mut self,
        now: Instant,
        peer: PathId,
        kind: FlowKind,
        destination: Destination,
        class: FlowClass,
    ) -> Result<FlowId, OpenError> {
        self.now = now;
        if !suits(kind, class.mode) {
            return Err(OpenError::Mode(class.mode.name()));
        }
        class.checked()?;
        if self.is_full() {
            return Err(OpenError::TooMany);
        }
        let mut id = FlowId([0; 16]);
        while self.flows.contains_key(&id) || id.0 == [0; 16] {
            self.rng.fill(&mut id.0);
        }
        let attempt = self.next_attempt();
        let shared = &mut self.shared;
        let flow = match kind {
            FlowKind::Stream => {
                let mut flow = Flow::opener(now, shared, id, peer, destination, class);
                let presumed = flow.presumption(shared);
                flow.connect(now, shared, attempt, presumed)?;
                AnyFlow::Stream(Box::new(flow))
            }
            FlowKind::Datagrams => {
                let mut flow = Association::opener(now, shared, id, peer, destination, class);
                flow.connect(now, shared, attempt)?;
                AnyFlow::Datagrams(Box::new(flow))
            }
        };
        self.add(now, flow);
        Ok(id)
    }

    /// Takes up a flow from before a restart. The opener connects again by itself; the acceptor
    /// waits for it. `Resume` follows on both sides.
    ///
    /// # Errors
    /// [`OpenError`] as for `open`, or when the flow exists already.
    pub fn restore(&mut self, now: Instant, restored: Restored) -> Result<(), OpenError> {
        self.now = now;
        if !suits(FlowKind::Stream, restored.class.mode) {
            return Err(OpenError::Mode(restored.class.mode.name()));
        }
        if self.flows.contains_key(&restored.flow) {
            return Err(OpenError::Exists(restored.flow));
        }
        if self.is_full() {
            return Err(OpenError::TooMany);
        }
        let mut flow = Flow::restored(now, restored);
        flow.go_away(now, &mut self.shared);
        self.add(now, AnyFlow::Stream(Box::new(flow)));
        Ok(())
    }

    /// Streams: the number of octets that `accept` would take now. A driver should read no more
    /// than that from the socket.
    pub fn capacity(&self, flow: FlowId) -> usize {
        let flow = self.alive(flow).and_then(AnyFlow::as_stream);
        flow.map_or(0, |flow| flow.capacity(&self.shared))
    }

    /// Streams: the offset of the next octet to give to `accept`; `None` if there is no such flow.
    pub fn accepted_offset(&self, flow: FlowId) -> Option<u64> {
        Some(self.alive(flow)?.as_stream()?.accepted_offset())
    }

    /// Streams: takes octets towards the far side, in order, and returns their number.
    pub fn accept(&mut self, now: Instant, flow: FlowId, octets: &[u8]) -> usize {
        self.with_stream(now, flow, |flow, now, shared| {
            flow.accept(now, shared, octets)
        })
        .unwrap_or(0)
    }

    /// Notes that the local side sends no more. This half-closes a stream. It ends a datagram flow,
    /// for which no event follows.
    pub fn finish(&mut self, now: Instant, flow: FlowId) {
        let known = self.alive(flow).map(AnyFlow::kind);
        self.with_alive(now, flow, AnyFlow::finish);
        if known == Some(FlowKind::Datagrams) {
            self.hush(flow);
        }
    }

    /// Cuts the flow off, because the local side broke or the driver gives it up. The far side
    /// hears `code`; the flow is gone here, without a further event.
    pub fn reset(&mut self, now: Instant, flow: FlowId, code: ResetCode) {
        self.with_alive(now, flow, |flow, now, shared| flow.reset(now, shared, code));
        self.hush(flow);
    }

    /// Streams: octets for the local side that lie in one piece; `None` when there are none now.
    pub fn peek(&self, flow: FlowId) -> Option<&[u8]> {
        self.alive(flow)?.as_stream()?.peek()
    }

    /// Streams: notes that the driver took `len` of the octets that `peek` showed.
    pub fn consume(&mut self, now: Instant, flow: FlowId, len: usize) {
        self.with_stream(now, flow, |flow, now, shared| {
            flow.consume(now, shared, len);
        });
    }

    /// Streams: notes that the local host has acknowledged the first `total` octets of the flow.
    pub fn delivered(&mut self, now: Instant, flow: FlowId, total: u64) {
        self.with_stream(now, flow, |flow, now, shared| {
            flow.delivered(now, shared, total);
        });
    }

    /// Streams: notes that the local connection is gone. Nothing can be delivered any more, while
    /// octets that were taken from it are still carried. The far side is told; the driver should
    /// continue to `consume` arriving octets.
    pub fn stop(&mut self, now: Instant, flow: FlowId) {
        self.with_stream(now, flow, Flow::stop);
    }

    /// Acceptor: notes that the destination accepted; `bound` is the local address of that
    /// connection.
    pub fn connected(&mut self, now: Instant, flow: FlowId, bound: SocketAddr) {
        self.with_alive(now, flow, |flow, now, shared| {
            flow.connected(now, shared, bound);
        });
    }

    /// Acceptor: refuses the flow, since there will be no connection. The flow is gone here,
    /// without a further event.
    pub fn refused(&mut self, now: Instant, flow: FlowId, code: RefuseCode) {
        self.with_alive(now, flow, |flow, now, shared| {
            flow.refuse(now, shared, code);
        });
        self.hush(flow);
    }

    /// Silences a flow whose driver has said the last word: it gets no more events of the flow.
    fn hush(&mut self, flow: FlowId) {
        self.shared.events.retain(|event| event.flow() != flow);
    }

    /// Datagrams: takes a message towards the far side; `false` if it was dropped, which is
    /// counted.
    pub fn accept_datagram(&mut self, now: Instant, flow: FlowId, message: &[u8]) -> bool {
        let taken = self.with_alive(now, flow, |flow, now, shared| {
            let flow = flow.as_datagrams_mut()?;
            Some(flow.accept_datagram(now, shared, message))
        });
        taken.flatten().unwrap_or(false)
    }

    /// Datagrams: the next message for the local side.
    pub fn poll_datagram(&mut self, now: Instant, flow: FlowId) -> Option<Vec<u8>> {
        let message = self.with_alive(now, flow, |flow, now, shared| {
            flow.as_datagrams_mut()?.poll_datagram(now, shared)
        });
        message.flatten()
    }

    /// The flows that the driver knows, in the order of their names.
    pub fn flows(&self) -> impl Iterator<Item = FlowId> + '_ {
        let alive = self.flows.iter().filter(|(_, slot)| slot.flow.is_alive());
        alive.map(|(id, _)| *id)
    }

    /// The number of flows before this one. The endpoint's [notes](crate::transport::aerotp::Note)
    /// on the flow's connections have it as their label.
    pub fn number_of(&self, flow: FlowId) -> Option<u64> {
        self.flows.get(&flow).map(|slot| slot.number)
    }

    /// Flows and connections that take memory, including those that are ending.
    pub fn entry_count(&self) -> usize {
        self.flows.len() + self.orphans.len()
    }

    fn is_full(&self) -> bool {
        self.shared.counters.flows_now >= self.shared.config.flows_max as u64
    }

    /// A number greater than that of every opening before, also by earlier starts.
    fn next_attempt(&mut self) -> u64 {
        self.openings = self.openings.saturating_add(1);
        u64::from(self.shared.config.incarnation) << 32 | u64::from(self.openings)
    }

    fn alive(&self, id: FlowId) -> Option<&AnyFlow> {
        let flow = &self.flows.get(&id)?.flow;
        flow.is_alive().then_some(flow)
    }

    fn add(&mut self, now: Instant, flow: AnyFlow) {
        let id = flow.id();
        self.shared.counters.flows_now += 1;
        self.shared.class(flow.class().id).flows_opened += 1;
        let slot = Slot {
            flow,
            number: self.next_number,
            connection: None,
            deadline: None,
        };
        self.next_number += 1;
        self.flows.insert(id, slot);
        self.settle(now, id);
    }

    /// Runs a driver's call on a flow that the driver knows.
    fn with_alive<T>(
        &mut self,
        now: Instant,
        id: FlowId,
        call: impl FnOnce(&mut AnyFlow, Instant, &mut Shared) -> T,
    ) -> Option<T> {
        self.alive(id)?;
        let result = self.with(now, id, call);
        self.pump(now);
        result
    }

    fn with_stream<T>(
        &mut self,
        now: Instant,
        id: FlowId,
        call: impl FnOnce(&mut Flow, Instant, &mut Shared) -> T,
    ) -> Option<T> {
        let result = self.with_alive(now, id, |flow, now, shared| {
            Some(call(flow.as_stream_mut()?, now, shared))
        });
        result.flatten()
    }

    fn with<T>(
        &mut self,
        now: Instant,
        id: FlowId,
        call: impl FnOnce(&mut AnyFlow, Instant, &mut Shared) -> T,
    ) -> Option<T> {
        self.now = now;
        let slot = self.flows.get_mut(&id)?;
        let result = call(&mut slot.flow, now, &mut self.shared);
        self.settle(now, id);
        Some(result)
    }

    /// Brings the indexes up to date with a flow that has changed.
    fn settle(&mut self, now: Instant, id: FlowId) {
        let due = self.flows.get_mut(&id).map(|s| s.flow.take_reconnect());
        let attempt = (due == Some(true)).then(|| self.next_attempt());
        let Some(slot) = self.flows.get_mut(&id) else {
            return;
        };
        if let Some(attempt) = attempt {
            slot.flow.reconnect(now, &mut self.shared, attempt);
        }
        slot.flow.settle(now, &mut self.shared);
        let connection = slot.flow.connection();
        if connection != slot.connection {
            if let Some(old) = slot.connection {
                self.by_connection.remove(&old);
            }
            if let Some(new) = connection {
                self.by_connection.insert(new, id);
                self.shared.endpoint.label(new, slot.number);
            }
            slot.connection = connection;
        }
        let deadline = slot.flow.next_deadline();
        if deadline != slot.deadline {
            if let Some(old) = slot.deadline {
                self.deadlines.remove(&(old.at, id));
            }
            if let Some(new) = deadline {
                self.deadlines.insert((new.at, id));
            }
            slot.deadline = deadline;
        }
        if slot.flow.question().is_some() {
            let peer = slot.flow.peer();
            self.inquiries.want(now, peer, self.shared.config.ask_after);
        }
        if slot.flow.is_gone() {
            self.forget(id);
        }
        self.shared.counters.credit_reserved = self.shared.pool.reserved();
    }

    fn forget(&mut self, id: FlowId) {
        let Some(slot) = self.flows.remove(&id) else {
            return;
        };
        if let Some(connection) = slot.connection {
            self.by_connection.remove(&connection);
        }
        if let Some(deadline) = slot.deadline {
            self.deadlines.remove(&(deadline.at, id));
        }
        let flow = &slot.flow;
        if let (Some(outcome), Role::Acceptor) = (flow.outcome(), flow.role()) {
            let (peer, is_heard) = (flow.peer(), flow.end_is_heard());
            self.graves.bury(self.now, id, peer, outcome, is_heard);
        }
    }
}

/// Whether a mode can carry flows of a kind.
fn suits(kind: FlowKind, mode: Mode) -> bool {
    kind == FlowKind::Datagrams || ModeRules::of(mode).complete
}

impl Machine for Splicer {
    type Event = FlowEvent;

    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        self.now = now;
        self.shared.endpoint.handle_datagram(now, datagram);
        self.pump(now);
    }

    fn handle_deadline(&mut self, now: Instant) {
        self.now = now;
        if self
            .shared
            .endpoint
            .next_deadline()
            .is_some_and(|deadline| deadline.at <= now)
        {
            self.shared.endpoint.handle_deadline(now);
        }
        self.pump(now);
        while let Some((at, id)) = self.deadlines.first().copied() {
            if at > now {
                break;
            }
            self.with(now, id, AnyFlow::handle_deadline);
            // A flow that still names a time in the past would make this loop for ever.
            if self.deadlines.first() == Some(&(at, id)) {
                break;
            }
        }
        self.ask_those_due(now);
        self.pump(now);
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        self.now = now;
        loop {
            let transmit = self.shared.endpoint.poll_transmit(now, out);
            let news = self.pump(now);
            if transmit.is_some() || !news {
                return transmit;
            }
        }
    }

    fn poll_event(&mut self) -> Option<FlowEvent> {
        let event = self.shared.events.pop_front()?;
        if let FlowEvent::Resume { flow, .. } = &event
            && let Some(slot) = self.flows.get_mut(flow)
            && let Some(flow) = slot.flow.as_stream_mut()
        {
            flow.on_resume_told();
        }
        Some(event)
    }

    fn next_deadline(&self) -> Option<Deadline> {
        // Sending may make events after a drain has asked for them already.
        if !self.shared.events.is_empty() {
            let (at, why) = (self.now, "flow events");
            return Some(Deadline { at, why });
        }
        let flows = self.deadlines.first().and_then(|(at, id)| {
            let why = self.flows.get(id)?.deadline?.why;
            Some(Deadline {
                at: (*at).max(self.now),
                why,
            })
        });
        // Either may be overdue, if the driver is late.
        let asks = self.inquiries.next_deadline().map(|asks| Deadline {
            at: asks.at.max(self.now),
            ..asks
        });
        let own = Deadline::earlier(flows, asks);
        Deadline::earlier(self.shared.endpoint.next_deadline(), own)
    }
}
