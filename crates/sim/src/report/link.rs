//! The measures of hops with link layers.

use crate::measure::link::LinkMeter;
use crate::measure::statistics::{mean_seconds, percentile};
use crate::scenario::AppDirection;
use crate::world::World;
use core::time::Duration;
use fulmar_baseline::link::LinkCounters;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The measures of one direction of a hop that has a link layer, or of several together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkMetrics {
    /// Mean span from the layer's taking a packet off its queue to its handing it up.
    pub latency_mean_s: Option<f64>,
    /// 99th percentile of that span.
    pub latency_p99_s: Option<f64>,
    /// The longest such span.
    pub latency_max_s: Option<f64>,
    /// Mean span in the queue above the layer; over several hops, the mean.
    pub wait_mean_s: Option<f64>,
    /// The time of a packet and its answer on the way there and back, if all hops have link layers: the sum
    /// of every hop's mean span in the queue and in the layer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round_trip_s: Option<f64>,
    /// 8 x released octets / (last release - first offer); over several hops, the mean.
    pub goodput_bps: Option<f64>,
    /// Packets that the layer took and that never came out, as a share of those it took.
    pub residual_loss: Option<f64>,
    /// Packets that the layer took.
    pub offered_packets: u64,
    /// Packets that it handed up.
    pub released_packets: u64,
    /// Packets that never came out, though later ones did.
    pub lost_packets: u64,
    /// Packets put right by parity that was sent along with them.
    pub recovered_by_parity: u64,
    /// Packets put right by a retransmission or a later round of parity.
    pub recovered_by_arq: u64,
    /// Frames that carried something for the first time.
    pub frames_data: u64,
    /// Frames that carried octets which an earlier frame had carried.
    pub frames_again: u64,
    /// Frames of parity.
    pub frames_parity: u64,
    /// Acknowledgements and the like, which the far end sent back.
    pub frames_control: u64,
    /// Frames that the far end could not use: their check failed, or they made no sense.
    pub frames_rejected: u64,
    /// Packets that the queue above the layer had no room for.
    pub queue_full: u64,
    /// Packets that RED dropped early.
    pub queue_early: u64,
    /// Packets that were marked "congestion experienced".
    pub marked: u64,
}

/// One direction of one hop by itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HopMetrics {
    /// The hop, from 0.
    pub hop: usize,
    /// `forward` or `reverse`.
    pub direction: Cow<'static, str>,
    /// Its measures.
    #[serde(flatten)]
    pub link: LinkMetrics,
}

/// One direction of one hop: its meter, the sending and the receiving end's counters.
type Direction<'a> = (&'a LinkMeter, [LinkCounters; 2]);

impl LinkMetrics {
    /// The measures over `directions` together; `None` if there are none.
    fn of(directions: &[Direction<'_>]) -> Option<Self> {
        if directions.is_empty() {
            return None;
        }
        let meters = || directions.iter().map(|(meter, _)| *meter);
        let sum = |count: fn(&LinkMeter) -> u64| meters().map(count).sum::<u64>();
        let sent = |count: fn(&LinkCounters) -> u64| {
            directions.iter().map(|(_, [own, _])| count(own)).sum()
        };
        let heard = |count: fn(&LinkCounters) -> u64| {
            directions.iter().map(|(_, [_, peer])| count(peer)).sum()
        };
        let mut latencies: Vec<Duration> =
            meters().flat_map(LinkMeter::latencies).copied().collect();
        latencies.sort_unstable();
        let seconds = |span: Duration| span.as_secs_f64();
        let waits: Vec<f64> = meters().filter_map(LinkMeter::wait_mean_s).collect();
        let goodputs: Vec<f64> = meters().filter_map(LinkMeter::goodput_bps).collect();
        let mean = goodputs.iter().sum::<f64>() / goodputs.len() as f64;
        let (offered, lost) = (sum(LinkMeter::offered), sum(LinkMeter::lost));
        Some(Self {
            latency_mean_s: mean_seconds(&latencies),
            latency_p99_s: percentile(&latencies, 0.99).map(seconds),
            latency_max_s: latencies.last().copied().map(seconds),
            wait_mean_s: (!waits.is_empty())
                .then(|| waits.iter().sum::<f64>() / waits.len() as f64),
            round_trip_s: None,
            goodput_bps: (!goodputs.is_empty()).then_some(mean),
            residual_loss: (offered > 0).then(|| lost as f64 / offered as f64),
            offered_packets: offered,
            released_packets: sum(LinkMeter::released),
            lost_packets: lost,
            recovered_by_parity: heard(|c| c.recovered_by_parity),
            recovered_by_arq: heard(|c| c.recovered_by_arq),
            frames_data: sent(|c| c.frames.data),
            frames_again: sent(|c| c.frames.again),
            frames_parity: sent(|c| c.frames.parity),
            frames_control: heard(|c| c.frames.control),
            frames_rejected: heard(LinkCounters::rejected_total),
            queue_full: sum(|m| m.queue_full),
            queue_early: sum(|m| m.queue_early),
            marked: sum(|m| m.marked),
        })
    }

    /// The measures over the hops on the first flow's first path, in its direction; `None` if none has a
    /// link layer.
    pub fn of_first_flow(world: &World) -> Option<Self> {
        let ends: Vec<Direction<'_>> = world.links().collect();
        let steps = world.first_flow_steps();
        let on_the_way: Vec<(usize, AppDirection)> = steps
            .iter()
            .filter_map(|step| {
                let place = world.link_hops().iter().position(|hop| *hop == step.hop)?;
                Some((place, step.direction))
            })
            .collect();
        let direction = |(place, direction): &(usize, AppDirection)| {
            ends.get(2 * place + usize::from(*direction == AppDirection::Reverse))
        };
        let there = on_the_way.iter().filter_map(direction);
        let directions: Vec<Direction<'_>> = there.copied().collect();
        let both = on_the_way
            .iter()
            .flat_map(|(place, _)| ends.iter().skip(2 * place).take(2));
        let round_trip_s = (on_the_way.len() == steps.len())
            .then(|| round_trip_s(both))
            .flatten();
        Self::of(&directions).map(|metrics| Self {
            round_trip_s,
            ..metrics
        })
    }
}

/// The sum of both directions' mean spans; `None` if a way was not taken.
fn round_trip_s<'a>(both: impl Iterator<Item = &'a Direction<'a>>) -> Option<f64> {
    let spans =
        both.map(|(meter, _)| Some(meter.wait_mean_s()? + mean_seconds(meter.latencies())?));
    spans.sum()
}

impl HopMetrics {
    /// Each direction of each hop that has a link layer.
    pub fn of(world: &World) -> Vec<Self> {
        let hops = world.link_hops().iter();
        let directions = hops.flat_map(|&hop| [(hop, "forward"), (hop, "reverse")]);
        directions
            .zip(world.links())
            .filter_map(|((hop, direction), link)| {
                Some(Self {
                    hop,
                    direction: Cow::Borrowed(direction),
                    link: LinkMetrics::of(&[link])?,
                })
            })
            .collect()
    }
}
