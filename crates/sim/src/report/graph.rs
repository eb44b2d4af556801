//! The measures of a graph's flows and hops, each by itself.

use crate::measure::wire::WayMeter;
use crate::scenario::HOPS_MAX;
use crate::world::World;
use fulmar_proto::units::ByteCount;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The flows of a graph that are told apart, at most.
pub const FLOWS_MAX: usize = 100;
/// The directions of hops that the columns of a sweep tell apart, at most: both of each hop of the largest graph. Only a sweep
/// over the names of hops has more.
pub const WAYS_MAX: usize = 2 * HOPS_MAX;

/// The measures of each flow and each direction of each hop of a graph.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GraphMetrics {
    /// Flows by number, of up to a hundred.
    pub by_flow: BTreeMap<String, GraphFlow>,
    /// Directions of hops by the name of the hop, `/` and `forward` or `reverse`.
    pub by_way: BTreeMap<String, WayMetrics>,
}

/// The measures of a flow, for the summary over runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct GraphFlow {
    /// Octets delivered unaltered.
    pub delivered_bytes: u64,
    /// 8 x delivered / (last delivery - first submission).
    pub goodput_bps: Option<f64>,
    /// Median delay of pieces.
    pub delay_p50_s: Option<f64>,
    /// 99th percentile of the delay of pieces.
    pub delay_p99_s: Option<f64>,
}

/// The measures of one direction of a hop.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct WayMetrics {
    /// Packets that were put on it.
    pub packets: u64,
    /// Their octets, with the link's framing.
    pub bytes: u64,
    /// 8 x octets / (last packet - first packet).
    pub rate_bps: Option<f64>,
    /// Packets that the medium lost.
    pub lost: u64,
    /// Packets that were lost in outages.
    pub lost_outage: u64,
    /// Packets that the queue before it dropped.
    pub lost_queue: u64,
    /// Packets that its frame check dropped.
    pub lost_frame_check: u64,
}

impl GraphMetrics {
    /// The measures of a world that has ended, with those of its flows by number; `None` of a chain.
    pub(super) fn of(
        world: &World,
        by_flow: impl FnOnce() -> BTreeMap<String, GraphFlow>,
    ) -> Option<Self> {
        let ways = world.named_ways();
        if ways.is_empty() {
            return None;
        }
        let way = |(name, meter): (String, &WayMeter)| (name, WayMetrics::of(meter));
        Some(Self {
            by_flow: by_flow(),
            by_way: ways.into_iter().map(way).collect(),
        })
    }
}

impl WayMetrics {
    fn of(meter: &WayMeter) -> Self {
        let span = meter.span.map(|(first, last)| last.saturating_since(first));
        let span = span.filter(|span| !span.is_zero());
        Self {
            packets: meter.packets,
            bytes: meter.octets,
            rate_bps: span.map(|span| ByteCount(meter.octets).bits() as f64 / span.as_secs_f64()),
            lost: meter.lost.loss,
            lost_outage: meter.lost.outage,
            lost_queue: meter.lost.queue,
            lost_frame_check: meter.lost.frame_check,
        }
    }
}
