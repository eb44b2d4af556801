//! Flows and the machines that carry them, put in their places before a run.

use super::Slot;
use crate::app::AppSource;
use crate::flow::{FIRST_PORT, Flow, Positions, promise};
use crate::measure::flow::FlowMeter;
use crate::network::{Network, NetworkEvent, path_of};
use crate::node::{NodeId, StackId, with_alias, with_alias_of};
use crate::own::{OwnTransport, TransportSetup};
use crate::pattern::Pattern;
use crate::scenario::{
    AerotpPlan, AppDirection, DatagramPlan, FlowPath, FlowPlan, GatewayPlan, HopStep, PointPlan,
    SEAL_BYTES, SendRate, TransportPlan,
};
use crate::stack::Stack;
use crate::stack::aerotp::AerotpStack;
use crate::stack::datagram::DatagramStack;
use crate::stack::gateway::{GatewayPath, GatewayStack};
use crate::stack::own::OwnStack;
use crate::stack::stream::StreamStack;
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
    /// The aliases of each flow's paths.
    aliases: Vec<Vec<u8>>,
    made: usize,
    datagram: Machines<DatagramStack>,
    aerotp: Machines<AerotpStack>,
    gateway: Machines<GatewayStack>,
    tcp: Machines<StreamStack<TcpEndpoint>>,
    lt_tcp: Machines<StreamStack<LtTcpEndpoint>>,
    own: Machines<OwnStack>,
}

/// A machine's place: its node, the alias of its address, and, of a sender of datagrams in a graph, the node to which it sends
/// at a pace of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct MachinePlace {
    node: NodeId,
    alias: u8,
    towards: Option<NodeId>,
}

/// The machines of one transport by place.
#[derive(Debug)]
struct Machines<S>(BTreeMap<MachinePlace, (StackId, S)>);

impl<S> Machines<S> {
    const NONE: Self = Self(BTreeMap::new());

    /// The machine at `place`.
    fn at(
        &mut self,
        place: MachinePlace,
        made: &mut usize,
        make: impl FnOnce() -> S,
    ) -> (StackId, &mut S) {
        let (id, machine) = self.0.entry(place).or_insert_with(|| {
            let id = StackId(*made);
            *made += 1;
            (id, make())
        });
        (*id, machine)
    }

    fn into_slots(self, wrap: impl Fn(Box<S>) -> Stack) -> impl Iterator<Item = (usize, Slot)> {
        self.0.into_iter().map(move |(place, (id, machine))| {
            let slot = Slot {
                stack: wrap(Box::new(machine)),
                node: place.node,
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
            aliases: (plan.aliases().map(|aliases| aliases.of_flow)).unwrap_or_default(),
            made: 0,
            datagram: Machines::NONE,
            aerotp: Machines::NONE,
            gateway: Machines::NONE,
            tcp: Machines::NONE,
            lt_tcp: Machines::NONE,
            own: Machines::NONE,
        }
    }

    /// The flow `index`, with a machine at each of its ends. `places` are the nodes of the topology.
    pub(super) fn add(
        &mut self,
        network: &mut Network,
        index: usize,
        flow: &FlowPlan,
        places: &[NodeId],
    ) -> Flow {
        let ends = flow.ends.nodes.map(|node| places[node]);
        let aliases = self.aliases.get(index).cloned().unwrap_or_default();
        let first = aliases.first().copied().unwrap_or_default();
        let port = FIRST_PORT + u16::try_from(index).expect("FLOWS_MAX keeps ports in range");
        let port = Port(port);
        let own = ends.map(|node| network.nodes[node.0].address);
        let addresses = own.map(|address| with_alias(address, first));
        let machines = self.machines_for((index, flow), port, ends, addresses);
        // The other transports have one path.
        let used = if flow.is_bonded() { aliases.len() } else { 1 };
        for (end, (node, id)) in ends.into_iter().zip(machines).enumerate() {
            for alias in aliases.iter().take(used) {
                let listeners = network.nodes[node.0].listeners_mut(with_alias(own[end], *alias));
                let known = match flow.transport {
                    // One that only sends hears nothing.
                    TransportPlan::Datagram(_) if end == 0 && !self.plan.topology.is_chain() => {
                        continue;
                    }
                    TransportPlan::Datagram(_) => &mut listeners.datagram,
                    TransportPlan::Aerotp(_) | TransportPlan::Gateway(_) => &mut listeners.aerotp,
                    TransportPlan::Tcp(_) => &mut listeners.tcp,
                    TransportPlan::LtTcp(_) => &mut listeners.lt_tcp,
                    TransportPlan::Own(_) => &mut listeners.own,
                };
                *known = Some(id);
            }
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
            path_back: path_of(addresses[0]),
            port,
            positions: Positions::needed(&flow.transport),
            decisions: None,
            awaits_connection: false,
            sender_closed: None,
            receiver_closed: None,
        }
    }

    /// The rate of a flow's path, as its sender (`there`) or its receiver knows it.
    fn rate_of(&self, flow: &FlowPlan, path: &FlowPath, there: bool) -> RateSource {
        let told = path.rate.or(match flow.send_rate {
            SendRate::Told(rate) => Some(rate),
            SendRate::Lowest | SendRate::Found(_) => None,
        });
        match (flow.send_rate, told) {
            (SendRate::Found(sharing), None) => RateSource::Found {
                bound: None,
                first: None,
                sharing,
            },
            (_, Some(rate)) => RateSource::Told(rate),
            (_, None) if there => RateSource::Told(lowest_rate(self.plan, &path.steps)),
            (_, None) => RateSource::Told(lowest_rate(self.plan, &path.back())),
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
        let is_graph = !self.plan.topology.is_chain();
        let first = &flow.ends.paths[0];
        let rate = self.rate_of(flow, first, true);
        let back_rate = self.rate_of(flow, first, false);
        let told = match flow.send_rate {
            SendRate::Told(rate) => rate,
            SendRate::Lowest | SendRate::Found(_) => lowest_rate(self.plan, &first.steps),
        };
        let aliases = self.aliases.get(index).cloned().unwrap_or_default();
        let place = |node| MachinePlace {
            node,
            alias: aliases.first().copied().unwrap_or_default(),
            towards: None,
        };
        let rng = self.rng;
        let stream = |address: NodeAddress, name| rng.child(&format!("node-{}/{name}", address.0));
        match &flow.transport {
            TransportPlan::Datagram(own) => {
                self.datagrams_for((index, flow, own), told, [(from, local), (to, remote)])
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
                let (sender, stack) =
                    (self.aerotp).at(place(from), &mut self.made, || make(local, remote));
                if is_graph {
                    stack.meet(path_of(remote), rate);
                }
                stack.send(index, own.connection);
                if let Some(controller) = &flow.controller {
                    let rng = rng.child(&format!("flow-{index}/controller"));
                    stack.control(index, controller.for_run(&rng));
                }
                let (receiver, stack) =
                    (self.aerotp).at(place(to), &mut self.made, || make(remote, local));
                if is_graph {
                    stack.meet(path_of(local), back_rate);
                }
                stack.listen(port, own.connection);
                [sender, receiver]
            }
            TransportPlan::Gateway(own) => {
                self.gateways_for((index, flow), own, (from, local), (to, remote))
            }
            TransportPlan::Tcp(own) => {
                let make = |address| StreamStack::new(address, stream(address, "tcp"));
                let (sender, stack) = (self.tcp).at(place(from), &mut self.made, || make(local));
                stack.send(index, own.config);
                let (receiver, stack) = (self.tcp).at(place(to), &mut self.made, || make(remote));
                stack.listen(port, own.config);
                [sender, receiver]
            }
            TransportPlan::LtTcp(own) => {
                let make = |address| StreamStack::new(address, stream(address, "lt-tcp"));
                let (sender, stack) = (self.lt_tcp).at(place(from), &mut self.made, || make(local));
                stack.send(index, own.config);
                let (receiver, stack) =
                    (self.lt_tcp).at(place(to), &mut self.made, || make(remote));
                stack.listen(port, own.config);
                [sender, receiver]
            }
            TransportPlan::Own(own) => self.own_ends(
                (index, flow, own),
                port,
                told,
                [(place(from), local), (place(to), remote)],
            ),
        }
    }

    /// The sender and the receiver of a flow of datagrams.
    fn datagrams_for(
        &mut self,
        (index, flow, own): (usize, &FlowPlan, &DatagramPlan),
        rate: Bitrate,
        [(from, local), (to, remote)]: [(NodeId, NodeAddress); 2],
    ) -> [StackId; 2] {
        let aliases = self.aliases.get(index).cloned().unwrap_or_default();
        let place = |node| MachinePlace {
            node,
            alias: aliases.first().copied().unwrap_or_default(),
            towards: None,
        };
        let make = |address| DatagramStack::new(datagram_config(flow, rate, address));
        let sending = MachinePlace {
            towards: (!self.plan.topology.is_chain()).then_some(to),
            ..place(from)
        };
        let (sender, stack) = (self.datagram).at(sending, &mut self.made, || make(local));
        stack.send_copies(index, own.copies);
        // A UDP port is open as soon as there is a node, and so is a gateway.
        let (receiver, _) = (self.datagram).at(place(to), &mut self.made, || make(remote));
        [sender, receiver]
    }

    /// The ends of a flow over a transport of one's own.
    fn own_ends(
        &mut self,
        (index, flow, own): (usize, &FlowPlan, &OwnTransport),
        port: Port,
        rate: Bitrate,
        [near, far]: [(MachinePlace, NodeAddress); 2],
    ) -> [StackId; 2] {
        let packet_max = flow.payload;
        let max = usize::try_from(packet_max.0).unwrap_or(usize::MAX);
        let mut add = |place, other, sends, name| {
            let setup = TransportSetup {
                sends,
                rate,
                packet_max,
            };
            let end = own.end(&setup, &self.rng.child(&format!("flow-{index}/{name}")));
            let (id, stack) = self.own.at(place, &mut self.made, OwnStack::new);
            stack.add(index, end, (path_of(other), port), max, sends);
            id
        };
        let sender = add(near.0, far.1, true, "sending end");
        [sender, add(far.0, near.1, false, "receiving end")]
    }

    /// The gateways at both ends of a flow. Each has all the addresses of its node.
    fn gateways_for(
        &mut self,
        (index, flow): (usize, &FlowPlan),
        own: &GatewayPlan,
        (from, local): (NodeId, NodeAddress),
        (to, remote): (NodeId, NodeAddress),
    ) -> [StackId; 2] {
        let is_graph = !self.plan.topology.is_chain();
        let aliases = self.aliases.get(index).cloned().unwrap_or_default();
        let rate = self.rate_of(flow, &flow.ends.paths[0], true);
        let config = endpoint_config(rate, &own.aerotp, self.notes);
        let rng = self.rng;
        let make = |address: NodeAddress| {
            let rng = rng.child(&format!("node-{}/gateway", address.0));
            GatewayStack::new(&own.splicer(), config, &rng)
        };
        let place = |node| MachinePlace {
            node,
            alias: 0,
            towards: None,
        };
        let [local, remote] =
            [local, remote].map(|address| with_alias_of(address, NodeAddress::default()));
        let longest = own.aerotp.connection.tpdu_bytes_max;
        let at_sender = self.peer(flow, &aliases, (remote, true));
        let at_receiver = self.peer(flow, &aliases, (local, false));
        let (sender, stack) = (self.gateway).at(place(from), &mut self.made, || make(local));
        if is_graph {
            stack.meet(&at_sender, longest);
        }
        stack.send(index, own.class());
        let (receiver, stack) = (self.gateway).at(place(to), &mut self.made, || make(remote));
        if is_graph {
            stack.meet(&at_receiver, longest);
        }
        stack.receive(index, own.read_rate);
        [sender, receiver]
    }

    /// The paths of a gateway to the other one, at the sender's end (`there`) or at the receiver's.
    fn peer(
        &self,
        flow: &FlowPlan,
        aliases: &[u8],
        (address, there): (NodeAddress, bool),
    ) -> Vec<GatewayPath> {
        let paths = flow.ends.paths.iter().zip(aliases);
        let path = |(path, alias): (&FlowPath, &u8)| GatewayPath {
            path: path_of(with_alias(address, *alias)),
            cost: path.cost,
            rate: self.rate_of(flow, path, there),
        };
        paths.map(path).collect()
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

/// The lowest rate on a path; with access links, theirs too.
fn lowest_rate(plan: &PointPlan, steps: &[HopStep]) -> Bitrate {
    let hops = steps.iter().map(|step| {
        let hop = &plan.hops[step.hop];
        match step.direction {
            AppDirection::Forward => hop.forward.mean_rate(),
            AppDirection::Reverse => hop.reverse.mean_rate(),
        }
    });
    let lan = plan.lan.iter().map(|lan| lan.config.rate);
    hops.chain(lan)
        .flatten()
        .min()
        .unwrap_or(Bitrate::from_bits_per_second(u64::MAX))
}
