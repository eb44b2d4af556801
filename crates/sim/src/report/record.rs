//! The record of one run.

use super::adaptation::AdaptationMetrics;
use super::graph::{self, GraphFlow, GraphMetrics};
use super::link::{HopMetrics, LinkMetrics};
use crate::measure::capacity::Yardsticks;
use crate::measure::flow::{Delay, FlowMeter, FlowPunctuality};
use crate::measure::statistics::{mean_seconds, percentile};
use crate::measure::wire::{ByKind, LossCounts};
use crate::stack::RecoveredTpdus;
use crate::world::{EndReason, World};
use core::time::Duration;
use fulmar_proto::units::Instant;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The version of the records' schema. A change of meaning or a removed field raises it.
pub const SCHEMA: u32 = 1;

/// One run, as a line of NDJSON. A printed line reads back as the same record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// Always `run`.
    pub record: Cow<'static, str>,
    /// [`SCHEMA`].
    pub schema: u32,
    /// The version of the program.
    pub version: Cow<'static, str>,
    /// The name of the scenario's file.
    pub scenario: String,
    /// The point of the sweep, from 0.
    pub point: usize,
    /// The run of the point, from 0.
    pub run: usize,
    /// Its seed: `--seed` with this and `--runs 1` repeats it.
    pub seed: u64,
    /// Everything the scenario says at this point, by path, as written.
    pub parameters: BTreeMap<String, String>,
    /// The measures.
    #[serde(flatten)]
    pub metrics: Metrics,
    /// The broken promise, if one was broken.
    pub error: Option<String>,
    /// Each flow by itself, if there is more than one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<FlowMetrics>,
    /// Each direction of each hop that has a link layer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hops: Vec<HopMetrics>,
}

/// The measures of a run, in the order of reports. Rates are bits per second, spans seconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Metrics {
    /// Whether every octet of every flow was delivered unaltered.
    pub completed: bool,
    /// The reason why the run ended.
    pub end_reason: Cow<'static, str>,
    /// The time at which the run ended.
    pub duration_s: f64,
    /// The time from the start of the first measured flow to the last octet that is delivered to an
    /// application of any flow.
    #[serde(default)]
    pub elapsed_s: Option<f64>,
    /// Application octets the measured flows set out to send.
    pub offered_bytes: u64,
    /// The measures of all measured flows together.
    #[serde(flatten)]
    pub flow: FlowMetrics,
    /// Octets put on the measured hops, both directions, minus delivered octets times the hops of their flow's first path.
    pub overhead_bytes: i64,
    /// Octets that the measured flows' senders put on the wire, headers included, for each octet that their applications
    /// wrote. Where a sender has other flows, or answers any, theirs count, too.
    #[serde(default)]
    pub sent_per_byte: Option<f64>,
    /// Octets put on the measured hops, both directions.
    pub wire_bytes: ByKind,
    /// Packets put on the measured hops, both directions.
    pub wire_packets: u64,
    /// Packets lost on any hop, by cause.
    pub wire_loss: LossCounts,
    /// Packets that went on with inverted bits.
    pub wire_damaged: u64,
    /// TPDUs put right, by the means of repair.
    pub recovered: RecoveredTpdus,
    /// The effect of following the bit error rate (AeroTP).
    #[serde(default)]
    pub adaptation: AdaptationMetrics,
    /// Retransmission timeouts, where the transport counts them (TCP).
    pub timeouts: u64,
    /// Retransmission timeouts that began a repair: nothing that timed out before was still missing.
    pub timeout_repairs: u64,
    /// Whether a transport gave up a flow because it had heard nothing for too long.
    pub gave_up: bool,
    /// Pieces that never arrived, by cause.
    pub residual_loss: ResidualLoss,
    /// The measured flows' shares of their sum of goodputs, if there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shares: Option<FlowShares>,
    /// Goodput over capacity.
    pub efficiency: Option<f64>,
    /// Goodput over the bound of schemes that drop damaged packets.
    pub efficiency_arq: Option<f64>,
    /// The capacity, R (1 - L) (1 - H(B)).
    pub capacity_bps: Option<f64>,
    /// The ARQ bound, R (1 - L) (1 - B)^bits.
    pub arq_bound_bps: Option<f64>,
    /// The hops that have link layers, together, in the direction of the first flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<LinkMetrics>,
    /// The flows and hops of a graph, each by itself.
    #[serde(flatten)]
    pub graph: Option<GraphMetrics>,
}

/// The most flows whose shares are told apart.
const SHARES_MAX: usize = 10;

/// The division of a link among several flows. A flow's goodput counts from its own beginning, so that a later one
/// is not less for being later.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowShares {
    /// Jain's index of the goodputs: 1 if all are equal, 1/n if one has everything.
    pub jain: f64,
    /// The goodput of each flow by its number, in fair shares: 1 is the mean. Of up to ten flows.
    #[serde(flatten)]
    pub of_flow: BTreeMap<String, f64>,
}

impl FlowShares {
    fn of(goodputs: &[f64]) -> Option<Self> {
        let sum: f64 = goodputs.iter().sum();
        if goodputs.len() < 2 || sum <= 0.0 {
            return None;
        }
        let count = goodputs.len() as f64;
        let squares: f64 = goodputs.iter().map(|goodput| goodput * goodput).sum();
        let share = |(index, goodput): (usize, &f64)| (index.to_string(), goodput * count / sum);
        Some(Self {
            jain: sum * sum / (count * squares),
            of_flow: if goodputs.len() <= SHARES_MAX {
                goodputs.iter().enumerate().map(share).collect()
            } else {
                BTreeMap::new()
            },
        })
    }
}

/// The measures of one flow, or of all together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowMetrics {
    /// Octets delivered to the receiving application unaltered.
    pub delivered_bytes: u64,
    /// Octets delivered and wrong.
    pub corrupt_bytes: u64,
    /// 8 x delivered / (last delivery - first submission).
    pub goodput_bps: Option<f64>,
    /// Mean delay of pieces.
    pub delay_mean_s: Option<f64>,
    /// Median delay of pieces.
    pub delay_p50_s: Option<f64>,
    /// 99th percentile of the delay of pieces.
    pub delay_p99_s: Option<f64>,
    /// The set-up delay: from the start of the flow to the first arrival of data at the receiving
    /// transport; over several flows, the mean.
    pub first_arrival_s: Option<f64>,
    /// The time from the start of the flow to the first delivery to the application; over several flows,
    /// the mean.
    pub first_delivery_s: Option<f64>,
    /// The time from the start of the flow to the last delivery to the application; over several flows, the
    /// mean.
    pub last_delivery_s: Option<f64>,
    /// Datagrams that were delivered a second time, where the transport permits it.
    pub repeated_pieces: u64,
    /// The share of pieces that came by their deadline, of flows that have one.
    #[serde(default)]
    pub in_time: Option<f64>,
    /// The share of those that came after it.
    #[serde(default)]
    pub late: Option<f64>,
    /// The share of those that did not come.
    #[serde(default)]
    pub lost: Option<f64>,
}

/// Pieces (writes, or TPDU-sized parts of a bulk transfer) that never arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResidualLoss {
    /// Pieces of which nothing arrived.
    pub lost: u64,
    /// Pieces that arrived damaged beyond use.
    pub damaged: u64,
    /// Pieces still missing when the run ended, of a transport that gives up nothing.
    pub unfinished: u64,
}

fn seconds(span: Duration) -> f64 {
    span.as_secs_f64()
}

impl FlowMetrics {
    /// The measures over `meters` together.
    fn of(meters: &[&FlowMeter]) -> Self {
        let delivered = meters.iter().map(|m| m.delivered().0).sum::<u64>();
        let first = meters.iter().filter_map(|m| Some(m.span()?.0)).min();
        let last = meters.iter().filter_map(|m| Some(m.span()?.1)).max();
        let goodput_bps = first.zip(last).and_then(|(first, last)| {
            let span = last.saturating_since(first);
            (!span.is_zero()).then(|| delivered as f64 * 8.0 / seconds(span))
        });
        let mut delays: Vec<Delay> =
            Vec::with_capacity(meters.iter().map(|m| m.delays().len()).sum());
        delays.extend(meters.iter().flat_map(|m| m.delays()));
        delays.sort_unstable();
        let at = |share| percentile(&delays, share).map(|delay| seconds(delay.into()));
        let arrivals: Vec<Duration> = meters.iter().filter_map(|m| m.first_arrival()).collect();
        let firsts: Vec<Duration> = meters.iter().filter_map(|m| m.first_delivery()).collect();
        let lasts: Vec<Duration> = meters.iter().filter_map(|m| m.last_delivery()).collect();
        let mut fates = FlowPunctuality::default();
        let all = |m: &&FlowMeter| m.punctuality(Instant::START, Instant::FAR_FUTURE);
        meters.iter().filter_map(all).for_each(|own| fates += own);
        let of = |pieces: u64| (fates.total() > 0).then(|| pieces as f64 / fates.total() as f64);
        Self {
            in_time: of(fates.in_time),
            late: of(fates.late),
            lost: of(fates.lost),
            delivered_bytes: delivered,
            corrupt_bytes: meters.iter().map(|m| m.corrupt().0).sum(),
            goodput_bps,
            delay_mean_s: mean_seconds(&delays),
            delay_p50_s: at(0.5),
            delay_p99_s: at(0.99),
            first_arrival_s: mean_seconds(&arrivals),
            first_delivery_s: mean_seconds(&firsts),
            last_delivery_s: mean_seconds(&lasts),
            repeated_pieces: meters.iter().map(|m| m.repeated_pieces()).sum(),
        }
    }
}

impl Metrics {
    /// The measures of a world that has ended.
    pub fn of(world: &World, end: EndReason, yardsticks: Option<Yardsticks>) -> Self {
        let meters: Vec<&FlowMeter> = world.measured().collect();
        let starts = meters.iter().filter_map(|m| Some(m.lifetime()?.0));
        let ends = meters.iter().filter_map(|m| Some(m.lifetime()?.1));
        let elapsed = ends
            .max()
            .and_then(|end| Some(end.saturating_since(starts.min()?)));
        let flow = FlowMetrics::of(&meters);
        let goodput = |meter: &&FlowMeter| FlowMetrics::of(&[meter]).goodput_bps.unwrap_or(0.0);
        let goodputs: Vec<f64> = if meters.len() > 1 {
            meters.iter().map(goodput).collect()
        } else {
            Vec::new()
        };
        let wire = world.wire();
        let counts = world.transport_counts();
        let carried = world.carried();
        let share = |bound: Option<f64>| Some(flow.goodput_bps? / bound?);
        let capacity_bps = yardsticks.map(|y| y.capacity_bps);
        let arq_bound_bps = yardsticks.map(|y| y.arq_bound_bps);
        Self {
            completed: world.meters().all(FlowMeter::is_complete),
            end_reason: Cow::Borrowed(end.name()),
            duration_s: world.now().as_secs_f64(),
            elapsed_s: elapsed.map(seconds),
            offered_bytes: meters.iter().map(|m| m.total().0).sum(),
            overhead_bytes: wire.octets.total().cast_signed() - carried.cast_signed(),
            sent_per_byte: world.sent_per_byte(),
            wire_bytes: wire.octets,
            wire_packets: wire.packets,
            wire_loss: wire.lost,
            wire_damaged: wire.damaged,
            recovered: counts.recovered,
            adaptation: AdaptationMetrics::of(counts.adaptation),
            timeouts: counts.timeouts,
            timeout_repairs: counts.timeout_repairs,
            gave_up: world.has_given_up(),
            residual_loss: residual(&meters, counts.damaged),
            shares: FlowShares::of(&goodputs),
            efficiency: share(capacity_bps),
            efficiency_arq: share(arq_bound_bps),
            capacity_bps,
            arq_bound_bps,
            link: LinkMetrics::of_first_flow(world),
            graph: GraphMetrics::of(world, || graph_flows(world)),
            flow,
        }
    }

    /// Each flow by itself, if there is more than one.
    pub fn flows_of(world: &World) -> Vec<FlowMetrics> {
        let meters: Vec<&FlowMeter> = world.meters().collect();
        if meters.len() < 2 {
            return Vec::new();
        }
        meters.iter().map(|m| FlowMetrics::of(&[m])).collect()
    }
}

/// The measures of each flow for the summary over runs, by its number.
fn graph_flows(world: &World) -> BTreeMap<String, GraphFlow> {
    let flows = world.meters().enumerate().take(graph::FLOWS_MAX);
    let flow = |(index, meter): (usize, &FlowMeter)| {
        let own = FlowMetrics::of(&[meter]);
        let flow = GraphFlow {
            delivered_bytes: own.delivered_bytes,
            goodput_bps: own.goodput_bps,
            delay_p50_s: own.delay_p50_s,
            delay_p99_s: own.delay_p99_s,
        };
        (index.to_string(), flow)
    };
    flows.map(flow).collect()
}

fn residual(meters: &[&FlowMeter], damaged: u64) -> ResidualLoss {
    let mut residual = ResidualLoss::default();
    let mut missing = 0;
    for meter in meters {
        if meter.is_reliable() {
            residual.unfinished += meter.missing_pieces();
        } else {
            missing += meter.missing_pieces();
        }
    }
    residual.damaged = damaged.min(missing);
    residual.lost = missing - residual.damaged;
    residual
}
