//! Transports of octet streams in the simulator, TCP and LT-TCP: one endpoint for each node, a
//! connection for each flow.

use super::{Context, RecoveredTpdus, StackCounts};
use crate::flow::{Flow, flow_of};
use crate::guard::Guarded;
use fulmar_baseline::StreamEndpoint;
use fulmar_baseline::lt_tcp::LtTcpEndpoint;
use fulmar_baseline::tcp::{
    TcpCloseReason, TcpConnectionId, TcpEndpoint, TcpEndpointConfig, TcpEvent,
};
use fulmar_proto::machine::{Deadline, MachineDriver, Transmit, drain};
use fulmar_proto::rng::Rng;
use fulmar_proto::units::Instant;
use fulmar_proto::wire::Port;
use fulmar_proto::wire::network::{NetworkProtocol, NodeAddress};
use std::collections::BTreeMap;

/// A stream endpoint with the properties that its stack needs.
pub(crate) trait SimulatedStream: StreamEndpoint {
    /// The protocol number in the network header.
    const PROTOCOL: NetworkProtocol;

    fn counts(&self) -> StackCounts;
}

impl SimulatedStream for TcpEndpoint {
    const PROTOCOL: NetworkProtocol = NetworkProtocol::TCP;

    fn counts(&self) -> StackCounts {
        let counters = self.counters();
        StackCounts {
            damaged: counters.checksum,
            timeouts: counters.timeouts,
            timeout_repairs: counters.timeout_repairs,
            ..StackCounts::default()
        }
    }
}

impl SimulatedStream for LtTcpEndpoint {
    const PROTOCOL: NetworkProtocol = NetworkProtocol::LT_TCP;

    fn counts(&self) -> StackCounts {
        let counters = self.counters();
        StackCounts {
            recovered: RecoveredTpdus {
                fec_block: counters.recovered,
                ..RecoveredTpdus::default()
            },
            damaged: counters.checksum,
            timeouts: counters.timeouts,
            ..StackCounts::default()
        }
    }
}

/// A node's endpoint and its applications.
#[derive(Debug)]
pub(crate) struct StreamStack<E: SimulatedStream> {
    pub(super) machine: Guarded<E>,
    ends: Ends,
    /// The settings of flows that will be sent from here.
    outgoing: BTreeMap<usize, E::Settings>,
    /// The settings of every connection of this stack.
    settings: Vec<E::Settings>,
}

/// The connections of a stack.
#[derive(Debug, Default)]
struct Ends {
    /// Sending connections by flow.
    senders: BTreeMap<usize, TcpConnectionId>,
    /// Flows by connection, and whether this end sends.
    flows: BTreeMap<TcpConnectionId, (usize, bool)>,
    write: Vec<u8>,
}

/// The most octets that are offered to a machine at once.
const WRITE_MAX: u64 = 64 * 1024;

impl<E: SimulatedStream> StreamStack<E> {
    pub(crate) fn new(local: NodeAddress, rng: Rng) -> Self {
        let config = TcpEndpointConfig {
            local,
            connections_max: usize::from(u16::MAX),
        };
        Self {
            machine: Guarded::new(E::new(config, rng)),
            ends: Ends::default(),
            outgoing: BTreeMap::new(),
            settings: Vec::new(),
        }
    }

    /// Flow `index` will be sent from here, with these settings.
    pub(crate) fn send(&mut self, index: usize, settings: E::Settings) {
        self.outgoing.insert(index, settings);
    }

    /// The receiving application waits for a flow at `port`.
    pub(crate) fn listen(&mut self, port: Port, settings: E::Settings) {
        self.settings.push(settings);
        self.machine
            .app()
            .listen(port, settings)
            .expect("reading a plan checks its settings");
    }

    pub(super) fn connect(&mut self, index: usize, flow: &mut Flow) {
        let Some(settings) = self.outgoing.remove(&index) else {
            return;
        };
        self.settings.push(settings);
        let connection = (self.machine.app()).connect(flow.path, flow.port, flow.port, settings);
        match connection {
            Ok(id) => {
                self.ends.senders.insert(index, id);
                self.ends.flows.insert(id, (index, true));
            }
            Err(_) => flow.sender_closed = Some("refused"),
        }
    }

    pub(super) fn write(&mut self, now: Instant, index: usize, flow: &mut Flow) {
        self.ends.write(now, self.machine.app(), index, flow);
    }

    pub(super) fn drain(&mut self, now: Instant, context: &mut Context<'_>) -> Option<Deadline> {
        let mut driver = StackDriver {
            context,
            ends: &mut self.ends,
        };
        drain(&mut self.machine, now, &mut driver)
    }

    pub(super) fn counts(&self) -> StackCounts {
        self.machine.inner().counts()
    }
}

/// The most that an endpoint takes besides its connections: events and answers that wait.
const ENDPOINT_BYTES_MAX: usize = 65_536;

impl StreamStack<TcpEndpoint> {
    /// Octets of memory that the endpoint takes, and the most that it may take.
    pub(super) fn memory(&self) -> (usize, usize) {
        let connections = self.settings.iter().map(TcpEndpoint::connection_memory_max);
        let allowed = ENDPOINT_BYTES_MAX + connections.sum::<usize>();
        (self.machine.inner().memory_bytes(), allowed)
    }
}

impl Ends {
    /// Writes the application's octets until the machine accepts no more; closes after the last.
    fn write<E: SimulatedStream>(
        &mut self,
        now: Instant,
        machine: &mut E,
        index: usize,
        flow: &mut Flow,
    ) {
        let Some(&id) = self.senders.get(&index) else {
            return;
        };
        loop {
            // One octet too many is refused, and asks to be told when there is room.
            let room = (machine.room(id) as u64).saturating_add(1);
            flow.fill(room.min(WRITE_MAX), &mut self.write);
            if self.write.is_empty() {
                break;
            }
            let taken = machine.write(id, &self.write).unwrap_or(0);
            if taken > 0 {
                flow.accept(now, taken as u64);
            }
            if taken < self.write.len() {
                return;
            }
        }
        if flow.source.is_finished() {
            machine.close(id);
        }
    }
}

struct StackDriver<'a, 'b> {
    context: &'a mut Context<'b>,
    ends: &'a mut Ends,
}

impl<E: SimulatedStream> MachineDriver<Guarded<E>> for StackDriver<'_, '_> {
    fn buffer(&mut self) -> &mut Vec<u8> {
        self.context.network.buffer()
    }

    fn send(&mut self, now: Instant, transmit: Transmit) {
        self.context
            .send_with_precedence(now, E::PROTOCOL, transmit, 0);
    }

    fn deliver(&mut self, now: Instant, machine: &mut Guarded<E>, event: TcpEvent) {
        let machine = machine.app();
        match event {
            TcpEvent::Incoming { id, local, .. } => {
                if let Some(index) = flow_of(local) {
                    self.ends.flows.insert(id, (index, false));
                }
            }
            TcpEvent::Connected(id) => {
                if let Some(&(index, _)) = self.ends.flows.get(&id) {
                    self.context.network.connected.push(index);
                }
            }
            TcpEvent::Readable(id) => self.with(id, |_, flow, _| {
                while let Some(octets) = machine.read(id) {
                    flow.meter.deliver(now, flow.meter.next_offset(), &octets);
                    machine.recycle(id, octets);
                }
            }),
            TcpEvent::Writable(id) => self.with(id, |ends, flow, (index, sends)| {
                if sends {
                    ends.write(now, machine, index, flow);
                }
            }),
            TcpEvent::PeerFinished(id) => machine.close(id),
            TcpEvent::Closed { id, why } => self.with(id, |_, flow, (_, sends)| {
                let closed = if sends {
                    &mut flow.sender_closed
                } else {
                    &mut flow.receiver_closed
                };
                *closed = Some(name(why));
            }),
        }
    }
}

impl StackDriver<'_, '_> {
    fn with(
        &mut self,
        id: TcpConnectionId,
        call: impl FnOnce(&mut Ends, &mut Flow, (usize, bool)),
    ) {
        let Some(&end) = self.ends.flows.get(&id) else {
            return;
        };
        if let Some(flow) = self.context.flows.get_mut(end.0) {
            call(self.ends, flow, end);
        }
    }
}

const fn name(why: TcpCloseReason) -> &'static str {
    match why {
        TcpCloseReason::Finished => "finished",
        TcpCloseReason::Aborted => "aborted",
        TcpCloseReason::Refused => "refused",
        TcpCloseReason::Reset => "reset",
        TcpCloseReason::TimedOut => GAVE_UP,
    }
}

/// The name of the end of a connection that heard nothing for too long.
pub(crate) const GAVE_UP: &str = "gave_up";
