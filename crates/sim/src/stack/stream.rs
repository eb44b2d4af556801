//! Transports of octet streams in the simulator, TCP and LT-TCP: one endpoint for each node, a
//! connection for each flow.

use super::{Context, Recovered, StackCounts};
use crate::flow::{Flow, flow_of};
use crate::guard::Guarded;
use crate::scenario::FlowPlan;
use fulmar_proto::machine::{Deadline, Driver, Machine, PathId, Transmit, drain};
use fulmar_proto::rng::Rng;
use fulmar_proto::transport::lt_tcp::LtTcpEndpoint;
use fulmar_proto::transport::tcp::{
    TcpCloseReason, TcpConnectError, TcpConnectionId, TcpEndpoint, TcpEndpointConfig, TcpEvent,
    TcpWriteError,
};
use fulmar_proto::units::Instant;
use fulmar_proto::wire::aerotp::Port;
use fulmar_proto::wire::network::{NodeAddress, Protocol};
use std::collections::BTreeMap;

/// What a stack asks of an endpoint; the settings are those of a flow's plan.
pub(crate) trait StreamEndpoint: Machine<Event = TcpEvent> {
    /// What the network header says is in the packet.
    const PROTOCOL: Protocol;

    fn begin(config: TcpEndpointConfig, rng: Rng) -> Self;
    fn accept_at(&mut self, port: Port, plan: &FlowPlan) -> Result<(), TcpConnectError>;
    fn open(
        &mut self,
        path: PathId,
        port: Port,
        plan: &FlowPlan,
    ) -> Result<TcpConnectionId, TcpConnectError>;
    fn write(&mut self, id: TcpConnectionId, octets: &[u8]) -> Result<usize, TcpWriteError>;
    fn room(&self, id: TcpConnectionId) -> usize;
    fn read(&mut self, id: TcpConnectionId) -> Option<Vec<u8>>;
    fn recycle(&mut self, id: TcpConnectionId, octets: Vec<u8>);
    fn close(&mut self, id: TcpConnectionId);
    fn counts(&self) -> StackCounts;
}

/// Implements what both endpoints have by the same names.
macro_rules! stream_endpoint {
    ($endpoint:ty, $protocol:expr, $config:ident, $counts:item) => {
        impl StreamEndpoint for $endpoint {
            const PROTOCOL: Protocol = $protocol;

            fn begin(config: TcpEndpointConfig, rng: Rng) -> Self {
                Self::new(config, rng)
            }
            fn accept_at(&mut self, port: Port, plan: &FlowPlan) -> Result<(), TcpConnectError> {
                self.listen(port, plan.$config().config)
            }
            fn open(
                &mut self,
                path: PathId,
                port: Port,
                plan: &FlowPlan,
            ) -> Result<TcpConnectionId, TcpConnectError> {
                self.connect(path, port, port, plan.$config().config)
            }
            fn write(
                &mut self,
                id: TcpConnectionId,
                octets: &[u8],
            ) -> Result<usize, TcpWriteError> {
                self.write(id, octets)
            }
            fn room(&self, id: TcpConnectionId) -> usize {
                self.room(id)
            }
            fn read(&mut self, id: TcpConnectionId) -> Option<Vec<u8>> {
                self.read(id)
            }
            fn recycle(&mut self, id: TcpConnectionId, octets: Vec<u8>) {
                self.recycle(id, octets);
            }
            fn close(&mut self, id: TcpConnectionId) {
                self.close(id);
            }
            $counts
        }
    };
}

stream_endpoint!(
    TcpEndpoint,
    Protocol::TCP,
    tcp,
    fn counts(&self) -> StackCounts {
        let counters = self.counters();
        StackCounts {
            damaged: counters.checksum,
            timeouts: counters.timeouts,
            timeout_repairs: counters.timeout_repairs,
            ..StackCounts::default()
        }
    }
);

stream_endpoint!(
    LtTcpEndpoint,
    Protocol::LT_TCP,
    lt_tcp,
    fn counts(&self) -> StackCounts {
        let counters = self.counters();
        StackCounts {
            recovered: Recovered {
                fec_block: counters.recovered,
                ..Recovered::default()
            },
            damaged: counters.checksum,
            timeouts: counters.timeouts,
            timeout_repairs: 0,
        }
    }
);

/// A node's endpoint and its applications.
#[derive(Debug)]
pub(crate) struct StreamStack<E: StreamEndpoint> {
    pub(super) machine: Guarded<E>,
    ends: Ends,
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

/// How many octets are offered to a machine at once.
const WRITE_MAX: u64 = 64 * 1024;

impl<E: StreamEndpoint> StreamStack<E> {
    pub(crate) fn new(local: NodeAddress, rng: Rng) -> Self {
        let config = TcpEndpointConfig {
            local,
            connections_max: usize::from(u16::MAX),
        };
        Self {
            machine: Guarded::new(E::begin(config, rng)),
            ends: Ends::default(),
        }
    }

    pub(super) fn listen(&mut self, flow: &Flow) {
        self.machine
            .app()
            .accept_at(flow.port, &flow.plan)
            .expect("reading a plan checks its settings");
    }

    pub(super) fn connect(&mut self, index: usize, flow: &mut Flow) {
        match self.machine.app().open(flow.path, flow.port, &flow.plan) {
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

impl Ends {
    /// Writes what the application has until the machine takes no more; closes after the last.
    fn write<E: StreamEndpoint>(
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

impl<E: StreamEndpoint> Driver<Guarded<E>> for StackDriver<'_, '_> {
    fn buffer(&mut self) -> &mut Vec<u8> {
        self.context.network.buffer()
    }

    fn send(&mut self, now: Instant, transmit: Transmit) {
        let node = self.context.node;
        let network = &mut *self.context.network;
        network.send(now, node, E::PROTOCOL, transmit, 0);
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

/// How a connection ends of which nothing came back for too long.
pub(crate) const GAVE_UP: &str = "gave_up";
