//! Flows and the machines that carry them, put in their places before a run.

use super::Slot;
use crate::app::AppSource;
use crate::flow::{FIRST_PORT, Flow, Positions, promise};
use crate::measure::flow::FlowMeter;
use crate::network::{Network, NetworkEvent, path_of};
use crate::node::{NodeId, StackId};
use crate::own::{OwnTransport, TransportSetup};
use crate::pattern::Pattern;
use crate::scenario::{
    AerotpPlan, AppDirection, FlowPlan, PointPlan, SEAL_BYTES, SendRate, TransportPlan,
};
use crate::stack::Stack;
use crate::stack::aerotp::AerotpStack;
use crate::stack::datagram::DatagramStack;
use crate::stack::gateway::GatewayStack;
use crate::stack::own::OwnStack;
use crate::stack::stream::StreamStack;
use crate::topology::ChainEnds;
use fulmar_baseline::datagram::DatagramConfig;
use fulmar_baseline::lt_tcp::LtTcpEndpoint;
use fulmar_baseline::tcp::TcpEndpoint;
use fulmar_baseline::wire::udp::UDP_HEADER_BYTES;
use fulmar_proto::rng::Rng;
use fulmar_proto::transport::aerotp::{EndpointConfig, RateSource};
use fulmar_proto::units::{Bitrate, ByteCount, Instant};
use fulmar_proto::wire::Port;
use fulmar_proto::wire::network::{NETWORK_HEADER_BYTES, NodeAddress};
use std::collections::BTreeMap;

/// The machines of all nodes while flows are put in their places, each made for the first flow that needs it.
#[derive(Debug)]
pub(super) struct Placement<'a> {
    plan: &'a PointPlan,
    rng: &'a Rng,
    /// The number of notes that AeroTP keeps between two drains.
    notes: usize,
    made: usize,
    datagram: Machines<DatagramStack>,
    aerotp: Machines<AerotpStack>,
    gateway: Machines<GatewayStack>,
    tcp: Machines<StreamStack<TcpEndpoint>>,
    lt_tcp: Machines<StreamStack<LtTcpEndpoint>>,
    own: Machines<OwnStack>,
}

/// The machines of one transport by node.
#[derive(Debug)]
struct Machines<S>(BTreeMap<usize, (StackId, S)>);

impl<S> Machines<S> {
    const NONE: Self = Self(BTreeMap::new());

    /// The machine at `node`.
    fn at(
        &mut self,
        node: NodeId,
        made: &mut usize,
        make: impl FnOnce() -> S,
    ) -> (StackId, &mut S) {
        let (id, machine) = self.0.entry(node.0).or_insert_with(|| {
            let id = StackId(*made);
            *made += 1;
            (id, make())
        });
        (*id, machine)
    }

    fn into_slots(self, wrap: impl Fn(Box<S>) -> Stack) -> impl Iterator<Item = (usize, Slot)> {
        self.0.into_iter().map(move |(node, (id, machine))| {
            let slot = Slot {
                stack: wrap(Box::new(machine)),
                node: NodeId(node),
                wake: None,
            };
            (id.0, slot)
        })
    }
}

impl<'a> Placement<'a> {
    /// No machines yet; `observed` says whether their events are logged.
    pub(super) fn new(plan: &'a PointPlan, rng: &'a Rng, observed: bool) -> Self {
        let leaves_holes = |flow: &FlowPlan| Positions::needed(&flow.transport).is_some();
        let notes = observed || plan.flows.iter().any(leaves_holes);
        Self {
            plan,
            rng,
            notes: if notes { NOTES_MAX } else { 0 },
            made: 0,
            datagram: Machines::NONE,
            aerotp: Machines::NONE,
            gateway: Machines::NONE,
            tcp: Machines::NONE,
            lt_tcp: Machines::NONE,
            own: Machines::NONE,
        }
    }

    /// The flow `index`, with a machine at each of its ends.
    pub(super) fn add(
        &mut self,
        network: &mut Network,
        index: usize,
        flow: &FlowPlan,
        ends: ChainEnds,
    ) -> Flow {
        let ends = match flow.direction {
            AppDirection::Forward => [ends.source, ends.sink],
            AppDirection::Reverse => [ends.sink, ends.source],
        };
        let port = FIRST_PORT + u16::try_from(index).expect("FLOWS_MAX keeps ports in range");
        let port = Port(port);
        let addresses = ends.map(|node| network.nodes[node.0].address);
        let machines = self.machines_for((index, flow), port, ends, addresses);
        for (node, id) in ends.into_iter().zip(machines) {
            let node = &mut network.nodes[node.0];
            let known = match flow.transport {
                TransportPlan::Datagram(_) => &mut node.datagram,
                TransportPlan::Aerotp(_) | TransportPlan::Gateway(_) => &mut node.aerotp,
                TransportPlan::Tcp(_) => &mut node.tcp,
                TransportPlan::LtTcp(_) => &mut node.lt_tcp,
                TransportPlan::Own(_) => &mut node.own,
            };
            *known = Some(id);
        }
        let start = Instant::START + flow.start;
        let stream = |name| self.rng.child(&format!("flow-{index}/{name}"));
        let octets = stream("octets").next_u64();
        let source = AppSource::new(flow.traffic.clone(), start, &stream("source"));
        let pattern = Pattern::new(octets);
        let meter = FlowMeter::new(pattern, promise(flow), source.total(), flow.piece, start)
            .with_deadline(flow.deadline);
        network.queue.push(start, NetworkEvent::Start(index));
        let [sender, receiver] = machines;
        Flow {
            plan: flow.clone(),
            pattern,
            source,
            meter,
            sender,
            receiver,
            path: path_of(addresses[1]),
            port,
            positions: Positions::needed(&flow.transport),
            decisions: None,
            awaits_connection: false,
            sender_closed: None,
            receiver_closed: None,
        }
    }

    /// The machines at the sending and at the receiving end of a flow, which are told its settings.
    fn machines_for(
        &mut self,
        (index, flow): (usize, &FlowPlan),
        port: Port,
        [from, to]: [NodeId; 2],
        [local, remote]: [NodeAddress; 2],
    ) -> [StackId; 2] {
        let told = match flow.send_rate {
            SendRate::Told(rate) => rate,
            SendRate::Lowest | SendRate::Found(_) => lowest_rate(self.plan, flow),
        };
        let rate = match flow.send_rate {
            SendRate::Found(sharing) => RateSource::Found {
                bound: None,
                first: None,
                sharing,
            },
            SendRate::Told(_) | SendRate::Lowest => RateSource::Told(told),
        };
        let rng = self.rng;
        let stream = |address: NodeAddress, name| rng.child(&format!("node-{}/{name}", address.0));
        let made = &mut self.made;
        match &flow.transport {
            TransportPlan::Datagram(own) => {
                let make = |address| DatagramStack::new(datagram_config(flow, told, address));
                let (sender, stack) = self.datagram.at(from, made, || make(local));
                stack.send_copies(index, own.copies);
                // A UDP port is open as soon as there is a node, and so is a gateway.
                let (receiver, _) = self.datagram.at(to, made, || make(remote));
                [sender, receiver]
            }
            TransportPlan::Aerotp(own) => {
                let config = endpoint_config(rate, own, self.notes);
                let make = |address, other| {
                    let rng = stream(address, "aerotp");
                    let mut stack = AerotpStack::new(config, own.adapt_power, rng);
                    if own.is_sealed() {
                        stack.seal(path_of(other));
                    }
                    stack
                };
                let (sender, stack) = self.aerotp.at(from, made, || make(local, remote));
                stack.send(index, own.connection);
                if let Some(controller) = &flow.controller {
                    let rng = rng.child(&format!("flow-{index}/controller"));
                    stack.control(index, controller.for_run(&rng));
                }
                let (receiver, stack) = self.aerotp.at(to, made, || make(remote, local));
                stack.listen(port, own.connection);
                [sender, receiver]
            }
            TransportPlan::Gateway(own) => {
                let config = endpoint_config(rate, &own.aerotp, self.notes);
                let make = |address| {
                    GatewayStack::new(&own.splicer(), config, &stream(address, "gateway"))
                };
                let (sender, stack) = self.gateway.at(from, made, || make(local));
                stack.send(index, own.class());
                let (receiver, stack) = self.gateway.at(to, made, || make(remote));
                stack.receive(index, own.read_rate);
                [sender, receiver]
            }
            TransportPlan::Tcp(own) => {
                let make = |address| StreamStack::new(address, stream(address, "tcp"));
                let (sender, stack) = self.tcp.at(from, made, || make(local));
                stack.send(index, own.config);
                let (receiver, stack) = self.tcp.at(to, made, || make(remote));
                stack.listen(port, own.config);
                [sender, receiver]
            }
            TransportPlan::LtTcp(own) => {
                let make = |address| StreamStack::new(address, stream(address, "lt-tcp"));
                let (sender, stack) = self.lt_tcp.at(from, made, || make(local));
                stack.send(index, own.config);
                let (receiver, stack) = self.lt_tcp.at(to, made, || make(remote));
                stack.listen(port, own.config);
                [sender, receiver]
            }
            TransportPlan::Own(own) => self.own_ends(
                (index, flow, own),
                port,
                told,
                [(from, local), (to, remote)],
            ),
        }
    }

    /// The ends of a flow over a transport of one's own.
    fn own_ends(
        &mut self,
        (index, flow, own): (usize, &FlowPlan, &OwnTransport),
        port: Port,
        rate: Bitrate,
        [near, far]: [(NodeId, NodeAddress); 2],
    ) -> [StackId; 2] {
        let packet_max = flow.payload;
        let max = usize::try_from(packet_max.0).unwrap_or(usize::MAX);
        let mut add = |node, other, sends, name| {
            let setup = TransportSetup {
                sends,
                rate,
                packet_max,
            };
            let end = own.end(&setup, &self.rng.child(&format!("flow-{index}/{name}")));
            let (id, stack) = self.own.at(node, &mut self.made, OwnStack::new);
            stack.add(index, end, (path_of(other), port), max, sends);
            id
        };
        let sender = add(near.0, far.1, true, "sending end");
        [sender, add(far.0, near.1, false, "receiving end")]
    }

    /// The machines in the order in which they were made.
    pub(super) fn into_slots(self) -> Vec<Slot> {
        let slots = self.datagram.into_slots(Stack::Datagram);
        let slots = slots.chain(self.aerotp.into_slots(Stack::Aerotp));
        let slots = slots.chain(self.gateway.into_slots(Stack::Gateway));
        let slots = slots.chain(self.tcp.into_slots(Stack::Tcp));
        let slots = slots.chain(self.lt_tcp.into_slots(Stack::LtTcp));
        let slots = slots.chain(self.own.into_slots(Stack::Own));
        let by_id: BTreeMap<usize, Slot> = slots.collect();
        by_id.into_values().collect()
    }
}

fn datagram_config(flow: &FlowPlan, rate: Bitrate, local: NodeAddress) -> DatagramConfig {
    DatagramConfig {
        local,
        rate: paced(flow).then_some(rate),
        lower_overhead: ByteCount::from_usize(NETWORK_HEADER_BYTES),
        payload_max: flow.mtu - ByteCount::from_usize(NETWORK_HEADER_BYTES + UDP_HEADER_BYTES),
        queue_max: QUEUE_MAX,
    }
}

fn endpoint_config(rate: RateSource, plan: &AerotpPlan, notes: usize) -> EndpointConfig {
    let seal = if plan.is_sealed() { SEAL_BYTES } else { 0 };
    EndpointConfig {
        rate,
        burst: plan.burst,
        lower_overhead: ByteCount::from_usize(NETWORK_HEADER_BYTES + seal),
        connections_max: usize::from(u16::MAX),
        ecn: plan.ecn,
        follows_length: plan.follows_length,
        trace_records: notes,
        ..EndpointConfig::default()
    }
}

/// The most that may wait before UDP's pacer: the application waits instead, so that a bulk transfer's
/// delay is the path's.
const QUEUE_MAX: ByteCount = ByteCount(3_000);

/// The number of a machine's notes kept between two drains: far more than one input causes.
const NOTES_MAX: usize = 1 << 16;

/// Whether UDP is paced: a bulk source would otherwise offer everything in one instant.
fn paced(flow: &FlowPlan) -> bool {
    flow.send_rate != SendRate::Lowest || matches!(flow.traffic, crate::app::Traffic::Bulk { .. })
}

/// The lowest rate on a flow's way.
fn lowest_rate(plan: &PointPlan, flow: &FlowPlan) -> Bitrate {
    let hops = plan.hops.iter().map(|hop| match flow.direction {
        AppDirection::Forward => hop.forward.rate,
        AppDirection::Reverse => hop.reverse.rate,
    });
    let lan = plan.lan.iter().map(|lan| lan.config.rate);
    hops.chain(lan)
        .flatten()
        .min()
        .unwrap_or(Bitrate::from_bits_per_second(u64::MAX))
}
