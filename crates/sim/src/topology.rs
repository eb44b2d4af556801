//! The step from a plan to nodes and hops: a chain, or a graph.
//!
//! ```text
//! source --lan-- node --hop 0-- node --hop 1-- ... node --lan-- sink
//! ```
//!
//! Nodes may be created in any order: identity is only a place in a table, addresses follow from the position in
//! the plan and random streams from the names of hops, and so results do not depend on it.

use crate::measure::wire::WayMeter;
use crate::network::link_end::{LinkEnd, LinkId, QueuedAbove};
use crate::network::{Network, Way, WayChange, WayNews};
use crate::node::{NetworkNode, NodeId, Routes, WayId, with_alias};
use crate::scenario::{AppDirection, HopChange, LinkPlan, PointPlan};
use crate::tap::TapEnd;
use core::time::Duration;
use fulmar_baseline::link::{LinkLayer, Medium};
use fulmar_capture::Dissector;
use fulmar_channel::{BitErrors, Channel, ChannelConfig, ChannelConfigError, PacketQueue};
use fulmar_proto::rng::Rng;
use fulmar_proto::told::ToldFacts;
use fulmar_proto::units::{ByteCount, Instant};
use fulmar_proto::wire::network::NodeAddress;
use std::collections::VecDeque;

/// 10.0.0.1, so that an address has bits in more than one octet.
const FIRST_ADDRESS: u32 = 0x0A00_0001;

/// A hop, or an access link of the chain, as planned.
struct Link<'a> {
    name: String,
    /// The positions of the nodes where it begins and ends.
    ends: [usize; 2],
    forward: &'a ChannelConfig,
    reverse: &'a ChannelConfig,
    measured: bool,
    frame_check: bool,
    framing: ByteCount,
    layer: Option<&'a LinkPlan>,
    changes: &'a [HopChange],
    told_after: Option<Duration>,
}

fn links(plan: &PointPlan) -> Vec<Link<'_>> {
    let last = node_count(plan) - 1;
    let before = usize::from(plan.lan.is_some());
    let lan = |name: &str, ends| {
        plan.lan.as_ref().map(|lan| Link {
            name: name.to_owned(),
            ends,
            forward: &lan.config,
            reverse: &lan.config,
            measured: false,
            frame_check: false,
            framing: lan.framing,
            layer: None,
            changes: &[],
            told_after: None,
        })
    };
    let hops = plan.hops.iter().enumerate().map(|(index, planned)| Link {
        name: plan.topology.hop_name(index).to_owned(),
        ends: plan.topology.ends_of(index).map(|end| end + before),
        forward: &planned.forward,
        reverse: &planned.reverse,
        measured: true,
        frame_check: planned.frame_check,
        framing: planned.framing,
        layer: planned.link.as_ref(),
        changes: &planned.changes,
        told_after: planned.told_after,
    });
    lan("lan-source", [0, 1])
        .into_iter()
        .chain(hops)
        .chain(lan("lan-sink", [last.saturating_sub(1), last]))
        .collect()
}

/// The knowledge of an end about its hop: it sends by `config`, and hears by `back`. Where a station has slots, many frames take as
/// long as at the mean rate.
fn medium(config: &ChannelConfig, back: &ChannelConfig) -> Medium {
    Medium {
        rate: config.mean_rate(),
        back_rate: back.mean_rate(),
        round_trip: config.delay + back.delay,
        access: config.access_max(Medium::FRAME) + back.access_max(Medium::FRAME),
    }
}

/// The words of the radio that sends on a way like this. Wrong bits, also those that the received power means, matter to lengths
/// where what is damaged is dropped.
fn told_of(config: &ChannelConfig, frame_check: bool) -> ToldFacts {
    let bit_errors = match config.bits {
        BitErrors::Independent(_) | BitErrors::Received(_) if frame_check => {
            Some(config.bits.rate())
        }
        _ => None,
    };
    ToldFacts {
        is_up: Some(config.loss.mean_loss().value() < 1.0),
        rate: config.mean_rate(),
        bit_errors,
        ..ToldFacts::default()
    }
}

/// The words of the radio on one way of a link, with their times; none if it says nothing.
fn news_of<'a>(
    link: &'a Link<'_>,
    is_forward: bool,
) -> impl Iterator<Item = (Instant, ToldFacts)> + 'a {
    let first = if is_forward {
        link.forward
    } else {
        link.reverse
    };
    let later = link.changes.iter().map(move |change| {
        let side = if is_forward {
            &change.forward
        } else {
            &change.reverse
        };
        (change.at, side)
    });
    let all = core::iter::once((Duration::ZERO, first)).chain(later);
    link.told_after.into_iter().flat_map(move |after| {
        let told = |(at, config): (Duration, &ChannelConfig)| {
            (
                Instant::START + at + after,
                told_of(config, link.frame_check),
            )
        };
        all.clone().map(told).collect::<Vec<_>>()
    })
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

fn queue(config: &ChannelConfig, plan: &LinkPlan, rng: &Rng) -> PacketQueue<QueuedAbove> {
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

/// The number of nodes of a plan.
pub(crate) fn node_count(plan: &PointPlan) -> usize {
    plan.topology.nodes().len() + if plan.lan.is_some() { 2 } else { 0 }
}

/// The position of a node of the topology. Behind the ends of a chain there may be access links.
fn position(plan: &PointPlan, node: usize) -> usize {
    let before = usize::from(plan.lan.is_some());
    match node {
        0 => 0,
        last if last + 1 == plan.topology.nodes().len() => last + 2 * before,
        inner => inner + before,
    }
}

/// The hops that have a link layer, from 0 and in order.
pub(crate) fn link_hops(plan: &PointPlan) -> Vec<usize> {
    let hops = plan.hops.iter().enumerate();
    hops.filter_map(|(index, hop)| hop.link.as_ref().map(|_| index))
        .collect()
}

/// The names of the hops of a graph, in order; none of a chain, whose hops have no names.
pub(crate) fn graph_hops(plan: &PointPlan) -> Vec<String> {
    let count = if plan.topology.is_chain() {
        0
    } else {
        plan.topology.hop_count()
    };
    let name = |hop| plan.topology.hop_name(hop).to_owned();
    (0..count).map(name).collect()
}

/// The ends of the links, in the order of the ways that begin there.
pub(crate) fn tap_ends(plan: &PointPlan) -> Vec<TapEnd> {
    let ends = links(plan).into_iter().flat_map(|link| {
        let layer = link.layer.map(|plan| match plan.layer {
            LinkLayer::Slacp(_) => Dissector::Slacp,
            LinkLayer::Plain | LinkLayer::Arq(_) | LinkLayer::LlHarq(_) => Dissector::Link,
        });
        let [source, sink] = link.ends.map(address_at);
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

/// The address of the node at a position.
fn address_at(position: usize) -> NodeAddress {
    let offset = u32::try_from(position).expect("a scenario has few nodes");
    NodeAddress(FIRST_ADDRESS + offset)
}

/// The ways by which each node forwards, by position.
fn routes(plan: &PointPlan) -> Vec<Routes> {
    let count = node_count(plan);
    if plan.topology.is_chain() {
        let way = |link: usize, direction: usize| WayId(2 * link + direction);
        let chain = |position: usize| Routes::Chain {
            onward: (position + 1 < count).then(|| way(position, 0)),
            back: position.checked_sub(1).map(|link| way(link, 1)),
        };
        return (0..count).map(chain).collect();
    }
    let mut tables = vec![Vec::new(); count];
    let aliases = plan.aliases().expect("reading a plan checks its aliases");
    for (route, step) in aliases.routes {
        let way = match step.direction {
            AppDirection::Forward => WayId(2 * step.hop),
            AppDirection::Reverse => WayId(2 * step.hop + 1),
        };
        tables[route.at].push((with_alias(address_at(route.to), route.alias), way));
    }
    tables.into_iter().map(Routes::Table).collect()
}

/// Builds the network, and tells the node of each node of the topology. `order` lists the positions in the order of creation.
///
/// # Errors
/// A channel's settings are out of range.
pub(crate) fn build(
    plan: &PointPlan,
    rng: &Rng,
    order: &[usize],
) -> Result<(Network, Vec<NodeId>), ChannelConfigError> {
    let mut id_at = vec![NodeId(0); order.len()];
    for (id, &position) in order.iter().enumerate() {
        id_at[position] = NodeId(id);
    }
    let routes = routes(plan);
    let node = |&position: &usize| NetworkNode::new(address_at(position), routes[position].clone());
    let nodes = order.iter().map(node).collect();
    let (mut ways, mut ends, mut changes) = (Vec::new(), Vec::new(), Vec::new());
    let mut news = Vec::new();
    for link in links(plan) {
        let [left, right] = link.ends.map(|position| id_at[position]);
        let course = rng.child(&link.name).child("course").next_u64();
        for (from, to, config, back, name) in [
            (left, right, link.forward, link.reverse, "forward"),
            (right, left, link.reverse, link.forward, "reverse"),
        ] {
            let stream = rng.child(&format!("{}/{name}", link.name));
            let way = WayId(ways.len());
            let is_forward = from == left;
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
            news.extend(news_of(&link, is_forward).map(|(at, told)| WayNews { at, way, told }));
            let own = link.layer.map(|layer| {
                let (own, peer) = (LinkId(ends.len()), LinkId(ends.len() ^ 1));
                let machine = layer
                    .layer
                    .machine(medium(config, back), &mut stream.child("link"));
                let queue = queue(config, layer, &stream);
                ends.push(LinkEnd::new(
                    machine,
                    (queue, layer.by_precedence),
                    (from, way, peer),
                ));
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
                meter: WayMeter::default(),
            });
        }
    }
    let links = ends;
    let places = 0..plan.topology.nodes().len();
    let places = places.map(|node| id_at[position(plan, node)]).collect();
    let mut network = Network::new(nodes, ways, links);
    changes.sort_by_key(|change| change.at);
    network.changes = changes.into();
    news.sort_by_key(|one: &WayNews| one.at);
    network.news = news.into();
    Ok((network, places))
}
