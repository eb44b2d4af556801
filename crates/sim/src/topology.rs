//! The step from a plan to a chain of nodes and hops.
//!
//! ```text
//! source --lan-- node --hop 0-- node --hop 1-- ... node --lan-- sink
//! ```
//!
//! Nodes may be created in any order: identity is only a place in a table, addresses and random
//! streams follow from the position in the chain, and so results do not depend on it.

use crate::network::link_end::{LinkEnd, LinkId};
use crate::network::{Network, Way, WayChange};
use crate::node::{ChainNode, NodeId, WayId};
use crate::pool::PacketId;
use crate::scenario::{HopChange, LinkPlan, PointPlan};
use crate::tap::TapEnd;
use core::time::Duration;
use fulmar_baseline::link::{LinkLayer, Medium};
use fulmar_capture::Dissector;
use fulmar_channel::{Channel, ChannelConfig, ChannelConfigError, PacketQueue};
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{ByteCount, Instant};
use fulmar_proto::wire::network::NodeAddress;
use std::collections::VecDeque;

/// 10.0.0.1, so that an address has bits in more than one octet.
const FIRST_ADDRESS: u32 = 0x0A00_0001;

/// One link of the chain, as planned.
struct Link<'a> {
    name: String,
    forward: &'a ChannelConfig,
    reverse: &'a ChannelConfig,
    measured: bool,
    frame_check: bool,
    framing: ByteCount,
    layer: Option<&'a LinkPlan>,
    changes: &'a [HopChange],
}

fn links(plan: &PointPlan) -> Vec<Link<'_>> {
    let lan = |name: &str| {
        plan.lan.as_ref().map(|lan| Link {
            name: name.to_owned(),
            forward: &lan.config,
            reverse: &lan.config,
            measured: false,
            frame_check: false,
            framing: lan.framing,
            layer: None,
            changes: &[],
        })
    };
    let hops = plan.hops.iter().enumerate().map(|(index, planned)| Link {
        name: format!("hop-{index}"),
        forward: &planned.forward,
        reverse: &planned.reverse,
        measured: true,
        frame_check: planned.frame_check,
        framing: planned.framing,
        layer: planned.link.as_ref(),
        changes: &planned.changes,
    });
    lan("lan-source")
        .into_iter()
        .chain(hops)
        .chain(lan("lan-sink"))
        .collect()
}

/// The knowledge of an end about its hop: it sends by `config`, and hears by `back`.
fn medium(config: &ChannelConfig, back: &ChannelConfig) -> Medium {
    Medium {
        rate: config.rate,
        back_rate: back.rate,
        round_trip: config.delay + back.delay,
        access: config.access_max(Medium::FRAME) + back.access_max(Medium::FRAME),
    }
}

/// The channel below a link layer: marks are made in the queue above, where packets are. `course` is the
/// seed of the light's course in this run, which both directions share.
fn below(config: &ChannelConfig, link: Option<LinkId>, course: u64) -> ChannelConfig {
    ChannelConfig {
        ecn_threshold: config.ecn_threshold.filter(|_| link.is_none()),
        fading: config.fading.clone().map(|fading| fading.in_run(course)),
        ..config.clone()
    }
}

/// RED's typical packet (Floyd and Jacobson's simulations): it only scales idle time.
const TYPICAL_PACKET: ByteCount = ByteCount(1_000);

fn queue(config: &ChannelConfig, plan: &LinkPlan, rng: &Rng) -> PacketQueue<(PacketId, Instant)> {
    let queue = PacketQueue::new(plan.queue.unwrap_or(config.queue), config.ecn_threshold);
    match plan.red {
        Some(red) => {
            let packet_time = config
                .rate
                .map_or(Duration::ZERO, |r| r.time_to_send(TYPICAL_PACKET));
            queue.with_red(red, packet_time, rng.child("red"))
        }
        None => queue,
    }
}

/// The ends of a chain that was built.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChainEnds {
    pub(crate) source: NodeId,
    pub(crate) sink: NodeId,
}

/// The number of nodes of a plan.
pub(crate) fn node_count(plan: &PointPlan) -> usize {
    plan.hops.len() + 1 + if plan.lan.is_some() { 2 } else { 0 }
}

/// The hops that have a link layer, from 0 and in order.
pub(crate) fn link_hops(plan: &PointPlan) -> Vec<usize> {
    let hops = plan.hops.iter().enumerate();
    hops.filter_map(|(index, hop)| hop.link.as_ref().map(|_| index))
        .collect()
}

/// The ends of the chain's links, in the order of the ways that begin there.
pub(crate) fn tap_ends(plan: &PointPlan) -> Vec<TapEnd> {
    let links = links(plan).into_iter().zip(FIRST_ADDRESS..);
    let ends = links.flat_map(|(link, address)| {
        let layer = link.layer.map(|plan| match plan.layer {
            LinkLayer::Slacp(_) => Dissector::Slacp,
            LinkLayer::Plain | LinkLayer::Arq(_) | LinkLayer::LlHarq(_) => Dissector::Link,
        });
        let (source, sink) = (NodeAddress(address), NodeAddress(address + 1));
        [("source-end", source, sink), ("sink-end", sink, source)].map(|(end, here, there)| {
            TapEnd {
                name: format!("{}/{end}", link.name),
                here,
                there,
                layer,
            }
        })
    });
    ends.collect()
}

/// Builds the chain. `order` lists the positions of the chain in the order of creation.
///
/// # Errors
/// A channel's settings are out of range.
pub(crate) fn build(
    plan: &PointPlan,
    rng: &Rng,
    order: &[usize],
) -> Result<(Network, ChainEnds), ChannelConfigError> {
    let mut id_at = vec![NodeId(0); order.len()];
    for (id, &position) in order.iter().enumerate() {
        id_at[position] = NodeId(id);
    }
    let mut nodes = vec![ChainNode::default(); order.len()];
    for (node, &position) in nodes.iter_mut().zip(order) {
        let offset = u32::try_from(position).expect("a chain has few nodes");
        node.address = NodeAddress(FIRST_ADDRESS + offset);
    }
    let (mut ways, mut ends, mut changes) = (Vec::new(), Vec::new(), Vec::new());
    for (position, link) in links(plan).into_iter().enumerate() {
        let (left, right) = (id_at[position], id_at[position + 1]);
        let course = rng.child(&link.name).child("course").next_u64();
        for (from, to, config, back, name) in [
            (left, right, link.forward, link.reverse, "forward"),
            (right, left, link.reverse, link.forward, "reverse"),
        ] {
            let stream = rng.child(&format!("{}/{name}", link.name));
            let way = WayId(ways.len());
            let is_forward = from == left;
            if is_forward {
                nodes[from.0].onward = Some(way);
            } else {
                nodes[from.0].back = Some(way);
            }
            changes.extend(link.changes.iter().enumerate().map(|(number, change)| {
                let side = if is_forward {
                    &change.forward
                } else {
                    &change.reverse
                };
                WayChange {
                    at: Instant::START + change.at,
                    way,
                    config: below(side, None, 0),
                    rng: stream.child(&format!("change-{number}")),
                }
            }));
            let own = link.layer.map(|layer| {
                let (own, peer) = (LinkId(ends.len()), LinkId(ends.len() ^ 1));
                let machine = layer
                    .layer
                    .machine(medium(config, back), &mut stream.child("link"));
                let queue = queue(config, layer, &stream);
                ends.push(LinkEnd::new(machine, queue, (from, way, peer)));
                own
            });
            ways.push(Way {
                channel: Channel::new(below(config, own, course), &stream)?,
                to,
                measured: link.measured,
                frame_check: link.frame_check,
                framing: link.framing,
                standing: VecDeque::new(),
                wake: None,
                link: own,
            });
        }
    }
    let links = ends;
    let ends = ChainEnds {
        source: id_at[0],
        sink: id_at[order.len() - 1],
    };
    let mut network = Network::new(nodes, ways, links);
    changes.sort_by_key(|change| change.at);
    network.changes = changes.into();
    Ok((network, ends))
}
