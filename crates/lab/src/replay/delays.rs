//! The delay of a link over time, from packets that waited for no other.
//!
//! Where a train of packets takes longer to arrive than the rate and their lateness explain, the link was idle for a while, so
//! some packet has waited for nothing. A single packet says less: one that was passed on late looks as if the link had been
//! idle before, but those behind it make up for it. The delay is then the least that was seen for some while: a delay that
//! falls again sooner was a queue, or a machine that stood still. Where the link was never idle, the delay is at most the least
//! that was seen.

use super::seen::{SPAN_S, Seen, span_count};

/// The part by which a train must take longer than the rate explains.
const LONGER: f64 = 1.01;
/// Times late that a train may be longer without an idle link: at both its ends, and as much again.
const LATE_TIMES: f64 = 4.0;
/// The packets that arrive in a train at least, and its time at least.
const PACKETS: usize = 16;
const TRAIN_S: f64 = 0.05;
/// The spans for which a delay lasts.
const LASTING: usize = 6;
/// The packets whose time on the link a longer delay exceeds: a sender at the link's very rate leaves one or two in its queue for long.
const QUEUED: f64 = 1.5;

/// A packet that arrived.
#[derive(Clone, Copy)]
struct Arrival {
    span: usize,
    arrived: f64,
    /// The time from sending to arrival without its own time on the link, which may be that of a span beside.
    delay: f64,
    /// The time on the link of the packets since the arrival before, with this one.
    explained: f64,
}

/// The delay in each span, in seconds. Packets are late by `late_s`, but for one in ten.
pub(super) fn delays(
    seen: &[Seen],
    rate_at: &dyn Fn(&Seen) -> Option<f64>,
    late_s: f64,
) -> Vec<f64> {
    let spans = span_count(seen);
    let mut was_idle = vec![false; spans];
    let mut least: Vec<f64> = vec![f64::INFINITY; spans];
    let arrivals = arrivals(seen, rate_at);
    for (index, first) in arrivals.iter().enumerate() {
        least[first.span] = least[first.span].min(first.delay);
        let idle = match index {
            0 => Some(first.span),
            _ => idle_span(&arrivals[index - 1..], late_s),
        };
        if let Some(span) = idle {
            was_idle[span] = true;
        }
    }
    let lasting = lasting(&least);
    let mut known = least.iter().copied().find(|least| least.is_finite());
    let queued = queued(seen, rate_at);
    let spans = was_idle.into_iter().zip(least).zip(lasting).zip(queued);
    spans
        .map(|(((was_idle, least), lasting), queued)| {
            let is_queue = known.is_some_and(|known| lasting > known && lasting < known + queued);
            known = if was_idle && lasting.is_finite() && !is_queue {
                Some(lasting)
            } else {
                known.map(|known| known.min(least))
            };
            known.unwrap_or_default()
        })
        .collect()
}

/// The time by which packets in each span may wait for others for long.
fn queued(seen: &[Seen], rate_at: &dyn Fn(&Seen) -> Option<f64>) -> Vec<f64> {
    let mut longest = vec![0.0_f64; span_count(seen)];
    for packet in seen {
        let time = rate_at(packet).map_or(0.0, |rate| packet.time_at(rate));
        let longest = &mut longest[packet.span()];
        *longest = longest.max(QUEUED * time);
    }
    longest
}

/// The span in which the link was idle for a while, if it was in the train behind the first of these arrivals, as each of its last
/// ends has it: one of them is in time. The packet that waited for nothing has the least delay of the train: those before it may
/// still have stood in a queue.
fn idle_span(arrivals: &[Arrival], late_s: f64) -> Option<usize> {
    let (before, following) = arrivals.split_first()?;
    let (mut explained, mut least, mut span) = (0.0, f64::INFINITY, before.span);
    let mut ends = 0;
    for (place, arrival) in following.iter().enumerate() {
        explained += arrival.explained;
        if arrival.delay < least {
            (least, span) = (arrival.delay, arrival.span);
        }
        let time = arrival.arrived - before.arrived;
        if place < PACKETS / 2 || time < TRAIN_S {
            continue;
        }
        // The rate is known as well as trains of packets that are late tell it.
        let trains = (place + 1) as f64 / PACKETS as f64;
        if time <= explained * LONGER + late_s * (LATE_TIMES + trains) {
            return None;
        }
        ends += 1;
        if ends == PACKETS / 2 {
            return Some(span);
        }
    }
    // Few packets are left.
    (ends > 0).then_some(span)
}

/// The delay that lasts, of the least in each span: the highest of which all spans of some while around it have as much.
fn lasting(least: &[f64]) -> Vec<f64> {
    let len = LASTING.min(least.len());
    let of_windows = least
        .windows(len)
        .map(|window| window.iter().copied().fold(f64::INFINITY, f64::min));
    let of_windows: Vec<f64> = of_windows.collect();
    let lasting = (0..least.len()).map(|span| {
        let first = span.saturating_sub(len - 1);
        let last = span.min(of_windows.len() - 1);
        of_windows[first..=last]
            .iter()
            .copied()
            .filter(|delay| delay.is_finite())
            .fold(f64::NEG_INFINITY, f64::max)
    });
    lasting.collect()
}

fn arrivals(seen: &[Seen], rate_at: &dyn Fn(&Seen) -> Option<f64>) -> Vec<Arrival> {
    let mut arrivals = Vec::with_capacity(seen.len());
    let mut explained = 0.0;
    for packet in seen {
        let time = rate_at(packet).map_or(0.0, |rate| packet.time_at(rate));
        // A rate that changes does so within a span: for a while the link may have that of a span beside.
        let beside = [-SPAN_S, SPAN_S].map(|beside| Seen {
            sent: (packet.sent + beside).max(0.0),
            ..*packet
        });
        let beside =
            beside.map(|beside| rate_at(&beside).map_or(time, |rate| packet.time_at(rate)));
        explained += beside.into_iter().fold(time, f64::max);
        let shortest = beside.into_iter().fold(time, f64::min);
        if let Some(arrived) = packet.arrived {
            arrivals.push(Arrival {
                span: packet.span(),
                arrived,
                delay: (arrived - packet.sent - shortest).max(0.0),
                explained: core::mem::take(&mut explained),
            });
        }
    }
    arrivals
}
