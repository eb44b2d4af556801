//! Flows and the machines that carry them, put in their places before a run.

use super::{Slot, World};
use crate::app::Source;
use crate::flow::{FIRST_PORT, Flow, promise};
use crate::measure::flow::FlowMeter;
use crate::network::{Event, path_of};
use crate::node::{NodeId, StackId};
use crate::pattern::Pattern;
use crate::scenario::{AerotpPlan, AppDirection, FlowPlan, Plan, TransportPlan};
use crate::stack::Stack;
use crate::stack::aerotp::AerotpStack;
use crate::stack::datagram::DatagramStack;
use crate::stack::gateway::GatewayStack;
use crate::stack::stream::StreamStack;
use crate::topology::Ends;
use fulmar_baseline::datagram::DatagramConfig;
use fulmar_baseline::wire::udp::UDP_HEADER_BYTES;
use fulmar_proto::rng::Rng;
use fulmar_proto::transport::aerotp::EndpointConfig;
use fulmar_proto::units::{Bitrate, ByteCount, Instant};
use fulmar_proto::wire::Port;
use fulmar_proto::wire::network::NETWORK_HEADER_BYTES;

impl World {
    pub(super) fn add_flow(
        &mut self,
        plan: &Plan,
        flow: &FlowPlan,
        index: usize,
        ends: Ends,
        rng: &Rng,
    ) {
        let (from, to) = match flow.direction {
            AppDirection::Forward => (ends.source, ends.sink),
            AppDirection::Reverse => (ends.sink, ends.source),
        };
        let rate = flow.send_rate.unwrap_or_else(|| lowest_rate(plan, flow));
        let [sender, receiver] = [from, to].map(|node| self.stack_at(node, flow, rate, rng));
        let start = Instant::START + flow.start;
        let pattern = Pattern::new(rng.child(&format!("flow-{index}/octets")).next_u64());
        let source = Source::new(flow.traffic, start);
        let meter = FlowMeter::new(
            pattern,
            promise(flow),
            flow.traffic.total(),
            flow.piece,
            start,
        );
        let port = FIRST_PORT + u16::try_from(index).expect("FLOWS_MAX keeps ports in range");
        let flow = Flow {
            plan: flow.clone(),
            pattern,
            source,
            meter,
            sender,
            receiver,
            path: path_of(self.network.nodes[to.0].address),
            port: Port(port),
            positions: Vec::new(),
            next_position: 0,
            awaits_connection: false,
            sender_closed: None,
            receiver_closed: None,
        };
        self.stacks[receiver.0].stack.listen(&flow);
        self.flows.push(flow);
        self.network.queue.push(start, Event::Start(index));
    }

    /// The machine that carries `flow` at `node`, made when the first flow needs it.
    fn stack_at(&mut self, node: NodeId, flow: &FlowPlan, rate: Bitrate, rng: &Rng) -> StackId {
        let place = &mut self.network.nodes[node.0];
        let address = place.address;
        let known = match flow.transport {
            TransportPlan::Datagram(_) => &mut place.datagram,
            TransportPlan::Aerotp(_) | TransportPlan::Gateway(_) => &mut place.aerotp,
            TransportPlan::Tcp(_) => &mut place.tcp,
            TransportPlan::LtTcp(_) => &mut place.lt_tcp,
        };
        if let Some(id) = *known {
            return id;
        }
        let id = StackId(self.stacks.len());
        *known = Some(id);
        let stack = match &flow.transport {
            TransportPlan::Datagram(_) => {
                Stack::Datagram(Box::new(DatagramStack::new(DatagramConfig {
                    local: address,
                    rate: paced(flow).then_some(rate),
                    lower_overhead: ByteCount::from_usize(NETWORK_HEADER_BYTES),
                    payload_max: flow.mtu
                        - ByteCount::from_usize(NETWORK_HEADER_BYTES + UDP_HEADER_BYTES),
                    queue_max: QUEUE_MAX,
                })))
            }
            TransportPlan::Gateway(plan) => {
                let config = self.endpoint_config(rate, &plan.aerotp);
                let stream = rng.child(&format!("node-{}/gateway", address.0));
                let stack = GatewayStack::new(&plan.splicer(), config, &stream);
                Stack::Gateway(Box::new(stack))
            }
            TransportPlan::Tcp(_) => {
                let stream = rng.child(&format!("node-{}/tcp", address.0));
                Stack::Tcp(Box::new(StreamStack::new(address, stream)))
            }
            TransportPlan::LtTcp(_) => {
                let stream = rng.child(&format!("node-{}/lt-tcp", address.0));
                Stack::LtTcp(Box::new(StreamStack::new(address, stream)))
            }
            TransportPlan::Aerotp(plan) => {
                let config = self.endpoint_config(rate, plan);
                let stream = rng.child(&format!("node-{}/aerotp", address.0));
                let stack = AerotpStack::new(config, plan.adapt_power, stream);
                Stack::Aerotp(Box::new(stack))
            }
        };
        self.stacks.push(Slot {
            stack,
            node,
            wake: None,
        });
        id
    }

    fn endpoint_config(&self, rate: Bitrate, plan: &AerotpPlan) -> EndpointConfig {
        EndpointConfig {
            rate,
            burst: plan.burst,
            lower_overhead: ByteCount::from_usize(NETWORK_HEADER_BYTES),
            connections_max: usize::from(u16::MAX),
            ecn: plan.ecn,
            trace_records: self.events.as_ref().map_or(0, |_| TRACE_RECORDS),
            ..EndpointConfig::default()
        }
    }
}

/// The most that may wait before UDP's pacer: the application waits instead, so that a bulk transfer's
/// delay is the path's.
const QUEUE_MAX: ByteCount = ByteCount(3_000);

/// The number of a machine's events kept between two drains: far more than one input causes.
const TRACE_RECORDS: usize = 1 << 16;

/// Whether UDP is paced: a bulk source would otherwise offer everything in one instant.
fn paced(flow: &FlowPlan) -> bool {
    flow.send_rate.is_some() || matches!(flow.traffic, crate::app::Traffic::Bulk { .. })
}

/// The lowest rate on a flow's way.
fn lowest_rate(plan: &Plan, flow: &FlowPlan) -> Bitrate {
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
