//! Figures of a run: its counters, its meters, and what went wrong.

use super::World;
use crate::flow::Flow;
use crate::measure::flow::FlowMeter;
use crate::measure::link::LinkMeter;
use crate::measure::wire::{WayMeter, WireMeter};
use crate::node::NodeId;
use crate::scenario::HopStep;
use crate::stack::StackCounts;
use crate::stack::stream::GAVE_UP;
use fulmar_baseline::link::LinkCounters;
use fulmar_proto::units::Instant;
use fulmar_proto::wire::network::NetworkProtocol;

impl World {
    /// The present instant.
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// Packets that are between two nodes.
    pub fn packets_in_flight(&self) -> usize {
        self.network.pool.in_flight()
    }

    /// Each direction of each hop of a graph, by name, with its counts. There are none in a chain.
    pub(crate) fn named_ways(&self) -> Vec<(String, &WayMeter)> {
        let directions = (self.hop_names.iter())
            .flat_map(|hop| ["forward", "reverse"].map(|way| format!("{hop}/{way}")));
        let meters = self.network.ways.iter().map(|way| &way.meter);
        directions.zip(meters).collect()
    }

    /// The counters of the hops.
    pub const fn wire(&self) -> &WireMeter {
        &self.network.meter
    }

    /// The hops' ends that have a link layer, hop by hop, the end towards the source first: the meter of
    /// the packets that it sends, and the counters of it and of its peer.
    pub fn links(&self) -> impl Iterator<Item = (&LinkMeter, [LinkCounters; 2])> {
        let links = &self.network.links;
        links
            .iter()
            .map(|end| (&end.meter, [end.counters(), links[end.peer.0].counters()]))
    }

    /// The hops that have a link layer, from 0 and in order.
    pub fn link_hops(&self) -> &[usize] {
        &self.link_hops
    }

    /// The hops on the first path of the first flow, from 0 and in order.
    pub(crate) fn first_flow_steps(&self) -> Vec<HopStep> {
        let first = self.flows.first();
        let steps = first.map(|flow| flow.plan.ends.first_steps().to_vec());
        let mut steps = steps.unwrap_or_default();
        steps.sort_unstable();
        steps
    }

    /// Octets of measured flows that were delivered, each counted once for each hop of its flow's first path.
    pub(crate) fn carried(&self) -> u64 {
        let measured = self.flows.iter().filter(|flow| flow.plan.measured);
        let carried = measured.map(|flow| {
            let hops = flow.plan.ends.first_steps().len() as u64;
            flow.meter.delivered().0.saturating_mul(hops)
        });
        carried.fold(0, u64::saturating_add)
    }

    /// The times at which hops changed, and others that were marked, with the octets that were sent by then, as [`World::octets_sent`] has them, and the
    /// octets of measured flows that were delivered.
    pub fn marks(&self) -> &[(Instant, u64, u64)] {
        &self.marks
    }

    /// The octets that the machines from which measured flows are sent have handed to the network, headers included.
    pub fn octets_sent(&self) -> u64 {
        let measured = self.flows.iter().filter(|flow| flow.plan.measured);
        let mut senders: Vec<(NodeId, u8)> = measured
            .map(|flow| {
                (
                    self.stacks[flow.sender.0].node,
                    flow.plan.transport.protocol().0,
                )
            })
            .collect();
        senders.sort_unstable();
        senders.dedup();
        let sent = |(node, protocol)| self.network.sent(node, NetworkProtocol(protocol));
        senders.into_iter().map(sent).sum()
    }

    /// Those octets for each octet that was submitted, if any was.
    pub fn sent_per_byte(&self) -> Option<f64> {
        let submitted: u64 = self.measured().map(|meter| meter.submitted().0).sum();
        (submitted > 0).then(|| self.octets_sent() as f64 / submitted as f64)
    }

    /// The flows' meters, in the order of the plan.
    pub fn meters(&self) -> impl Iterator<Item = &FlowMeter> {
        self.flows.iter().map(|flow| &flow.meter)
    }

    /// The meters of the flows that are measured.
    pub fn measured(&self) -> impl Iterator<Item = &FlowMeter> {
        let flows = self.flows.iter().filter(|flow| flow.plan.measured);
        flows.map(|flow| &flow.meter)
    }

    /// The sum of all transports' counters.
    pub(crate) fn transport_counts(&self) -> StackCounts {
        let mut sum = StackCounts::default();
        for slot in &self.stacks {
            let counts = slot.stack.counts();
            sum.recovered += counts.recovered;
            sum.adaptation += counts.adaptation;
            sum.damaged += counts.damaged;
            sum.timeouts += counts.timeouts;
            sum.timeout_repairs += counts.timeout_repairs;
        }
        sum
    }

    /// Whether a transport gave up the sending side of a flow.
    pub(crate) fn has_given_up(&self) -> bool {
        let gave_up = |flow: &Flow| matches!(flow.sender_closed, Some(GAVE_UP | "peer_vanished"));
        self.flows.iter().any(gave_up)
    }

    /// A sentence that names a transport that takes more memory than its settings allow, if there is one.
    pub(crate) fn memory_excess(&self) -> Option<String> {
        let mut stacks = self.stacks.iter();
        let (taken, allowed) = stacks.find_map(|slot| {
            let (taken, allowed) = slot.stack.memory()?;
            (taken > allowed).then_some((taken, allowed))
        })?;
        Some(format!(
            "a TCP takes {taken} octets of memory, {allowed} at most"
        ))
    }

    /// The first broken promise as a sentence, or one that says that a trace was too short.
    pub fn error(&self) -> Option<String> {
        let mut flows = self.flows.iter().enumerate();
        let violation = flows.find_map(|(index, flow)| {
            let violation = flow.meter.violation()?;
            Some(format!("flow {index}: {violation}"))
        });
        let violation = violation.or_else(|| self.memory_excess().filter(|_| self.watch_memory));
        violation.or_else(|| Some(self.network.trace_used_up()?.to_string()))
    }

    /// The reasons why the connections of each flow closed, sender first; `None` while open.
    pub fn closings(&self) -> impl Iterator<Item = [Option<&'static str>; 2]> {
        self.flows
            .iter()
            .map(|flow| [flow.sender_closed, flow.receiver_closed])
    }
}
