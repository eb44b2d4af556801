//! A recording as a channel: the rate, the delay, the loss and the outages that its packets met, over time.
//!
//! No more is used of a packet than two ends of a real link know: when it was handed over, its length, and when it
//! arrived, if it did. So a gateway's trace serves as well as the simulator's.
//!
//! # How it works
//! The recording is cut into spans of a quarter of a second, and like spans that follow one another are joined.
//! - *Rate*: where sixteen gaps between packets take longer to arrive than they took to send, the link was busy, and their
//!   octets over that time are the rate (`rates`). Where it was never busy, the rate is at least what came through.
//! - *Delay*: where packets arrive farther apart than the rate explains, the link was idle between them, and the later one
//!   has waited for nothing (`delays`). Else the delay is at most the least that was seen.
//! - *Outages*: rows of lost packets that the loss around them does not explain (`outages`). An outage ends half way to the
//!   next packet that arrives.
//! - *Queue*: packets that are lost while their neighbours waited as long as any did were refused by a full queue.
//! - *Loss*: the share of the others that did not arrive.
//!
//! Times count from the first packet, or from a start that is told: those of a capture are seconds since 1970.
//!
//! # Does not
//! - Keep which packet was lost: under another mode other packets are on the link. Bursts shorter than a span become loss of
//!   that share.
//! - Know a rate that the recorded sender never asked for.

mod delays;
mod outages;
mod rates;
mod seen;
mod spans;

use core::fmt::Write;
use core::time::Duration;
use delays::delays;
use fulmar_proto::units::{ByteCount, Instant};
use fulmar_sim::RunRecording;
use fulmar_sim::scenario::AppDirection;
use outages::outages;
use rates::SeenRates;
use seen::{SPAN_S, Seen};
use spans::joined;

/// A packet as the two ends of a link know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObservedPacket {
    /// The time at which it was handed over.
    pub sent_at: Instant,
    /// Its length on the link.
    pub len: ByteCount,
    /// The time at which it arrived, if it did.
    pub arrived_at: Option<Instant>,
}

/// One direction of a link over time.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplayedWay {
    /// Its spans, the first from 0 s on, each up to the next.
    pub spans: Vec<ReplayedSpan>,
    /// Its outages.
    pub outages: Vec<ReplayedOutage>,
    /// The octets that its queue holds, if a full queue was seen.
    pub queue_bytes: Option<f64>,
}

/// Packets that show no link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnseenLink {
    /// None arrived.
    #[error("no packet arrived on the way there, so nothing is known of it")]
    NothingArrived,
    /// No packet arrived behind the one that was sent before it.
    #[error(
        "no rate can be seen: of no two packets that were sent one after the other both arrived, the second later \
         than the first; give more packets, with the times at which each arrived"
    )]
    NoRate,
    /// They reach over more time than is read at once.
    #[error(
        "the last packet was sent {} days behind the start, and {RECORDED_DAYS_MAX} days are read at most; give a \
         part of the recording, times in seconds, and a start near its first packet if you give one",
        after.as_secs() / DAY_S
    )]
    TooLong {
        /// The time from the start to the last packet.
        after: Duration,
    },
}

/// A time in which nothing came through.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReplayedOutage {
    /// Its start, in seconds.
    pub start_s: f64,
    /// The time until which it surely lasted: later losses may be single ones.
    pub sure_until_s: f64,
    /// Its end, as far as it is known: between that packet and the next one.
    pub end_s: f64,
}

/// A link that stays as it is for a while.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReplayedSpan {
    /// Its start, in seconds.
    pub from_s: f64,
    /// The rate, in bits per second; none before anything showed it.
    pub rate_bps: Option<f64>,
    /// The delay, in seconds.
    pub delay_s: f64,
    /// The share that is lost on the link.
    pub loss: f64,
    /// Packets from which the loss is known.
    pub counted: f64,
}

/// The longest recording: each span of it takes memory.
const RECORDED_DAYS_MAX: u64 = 10;
const DAY_S: u64 = 24 * 60 * 60;
const RECORDED_MAX: Duration = Duration::from_secs(RECORDED_DAYS_MAX * DAY_S);
/// The part of the longest wait from which the queue counts as full, and the packets that such a queue holds at least.
const FULL: f64 = 0.9;
const QUEUE_MIN: f64 = 15.0 * 1_500.0;
/// The packets that wait as long as the queue lasts where it is full; a few others were passed on late.
const WAITING: usize = 16;

impl ReplayedWay {
    /// The way of these packets, which are in the order in which they were handed over, its time counted from `start`.
    ///
    /// # Errors
    /// None arrived, or the last was sent too long after the start.
    pub fn of(packets: &[ObservedPacket], start: Instant) -> Result<Self, UnseenLink> {
        let seen = seen_since(packets, start)?;
        let rates = SeenRates::of(&seen);
        Ok(Self::at_rates(&seen, rates))
    }

    /// The way of these packets, with the rates that are known of it.
    fn at_rates(seen: &[Seen], rates: SeenRates) -> Self {
        let SeenRates {
            bps: rates, late_s, ..
        } = rates;
        let rate_at = |packet: &Seen| rates.get(packet.span()).copied().flatten();
        let delays = delays(seen, &rate_at, late_s);
        let delay_at = |packet: &Seen| delays.get(packet.span()).copied().unwrap_or(0.0);
        let left = |packet: &Seen| Some(packet.arrived? - delay_at(packet));
        let begun = |packet: &Seen| Some(left(packet)? - packet.time_at(rate_at(packet)?));
        let (outages, row_of) = outages(seen, &left, &begun);
        // The octets before each packet that arrived.
        let before = |packet: &Seen| {
            let rate = rate_at(packet)?;
            let waited = packet.arrived? - packet.sent - delay_at(packet) - packet.time_at(rate);
            Some((waited * rate / 8.0).max(0.0))
        };
        let waits: Vec<Option<f64>> = seen.iter().map(before).collect();
        let longest = longest(&waits);
        let largest = seen.iter().map(|packet| packet.octets).fold(1.0, f64::max);
        let mut counted = vec![(0.0, 0.0); rates.len()];
        let mut neighbour = 0.0;
        let mut refused = false;
        for ((packet, wait), in_outage) in seen.iter().zip(&waits).zip(&row_of) {
            neighbour = wait.unwrap_or(neighbour);
            let is_full = longest >= QUEUE_MIN && neighbour >= FULL * longest;
            let span = &mut counted[packet.span()];
            match packet.arrived {
                Some(_) => span.1 += 1.0,
                None if *in_outage => {}
                None if is_full => refused = true,
                None => {
                    span.0 += 1.0;
                    span.1 += 1.0;
                }
            }
        }
        let spans = counted
            .iter()
            .enumerate()
            .map(|(index, &(lost, all))| ReplayedSpan {
                from_s: index as f64 * SPAN_S,
                rate_bps: rates[index],
                delay_s: delays[index],
                loss: if all > 0.0 { lost / all } else { 0.0 },
                counted: all,
            });
        Self {
            spans: joined(spans),
            outages,
            // Queues hold whole packets: the last one that was taken waited for a part of the one on the link.
            queue_bytes: refused.then_some((longest / largest).ceil() * largest),
        }
    }

    /// The same way, which carries answers, where an outage ends no later than that of the way `other` of what is answered,
    /// unless losses show that it lasted: while nothing comes through there, nobody sends here.
    fn ended_with(mut self, other: &Self) -> Self {
        for outage in &mut self.outages {
            let same = |other: &&ReplayedOutage| {
                other.start_s < outage.end_s && outage.start_s < other.end_s
            };
            if let Some(other) = other.outages.iter().find(same) {
                let end = other.end_s.max(outage.sure_until_s);
                outage.end_s = outage.end_s.min(end);
            }
        }
        self
    }

    /// The span at a time.
    fn at(&self, seconds: f64) -> &ReplayedSpan {
        let begun = self.spans.partition_point(|span| span.from_s <= seconds);
        &self.spans[begun.saturating_sub(1)]
    }

    /// The keys of this way from a time on, as a TOML table in one line.
    fn keys(&self, seconds: f64, first: bool) -> String {
        let span = self.at(seconds);
        let mut keys = format!(
            "delay = \"{:.0}us\", loss = \"{:.4}%\"",
            span.delay_s * 1e6,
            span.loss * 100.0
        );
        if let Some(rate) = span.rate_bps {
            // Writing to a text cannot fail.
            let _ = write!(keys, ", rate = \"{:.0}bit\"", rate.max(1.0));
        }
        if first {
            if let Some(octets) = self.queue_bytes {
                let _ = write!(keys, ", queue = \"{:.0}B\"", octets.max(1.0));
            }
            if !self.outages.is_empty() {
                let texts: Vec<String> = self
                    .outages
                    .iter()
                    .map(|outage| {
                        let length = (outage.end_s - outage.start_s).max(1e-6);
                        format!("{:.0}us+{:.0}us", outage.start_s * 1e6, length * 1e6)
                    })
                    .collect();
                let _ = write!(keys, ", outages = \"{}\"", texts.join(", "));
            }
        }
        format!("{{ {keys} }}")
    }
}

/// The hop of a recording as tables of a scenario: one `[[hop]]`, and a `[[change]]` for each time at which it changes.
/// The scenario begins at `start`; without one, when the first packet was handed over.
///
/// # Errors
/// [`UnseenLink`].
pub fn hop_tables(
    there: &[ObservedPacket],
    back: &[ObservedPacket],
    start: Option<Instant>,
) -> Result<String, UnseenLink> {
    let first = || there.iter().chain(back).map(|packet| packet.sent_at).min();
    let start = start.or_else(first).unwrap_or(Instant::START);
    let there = seen_since(there, start)?;
    let rates = SeenRates::of(&there);
    let seen_back = match seen_since(back, start) {
        Err(UnseenLink::NothingArrived) => None,
        // Answers are few. A way back that they never filled is as fast as the way there, or as they were.
        seen => Some(seen.map(|back| {
            let own = SeenRates::of(&back).raised_to(&rates);
            ReplayedWay::at_rates(&back, own)
        })?),
    };
    let seen_there = ReplayedWay::at_rates(&there, rates);
    // A way back on which nothing came is as good as the way there.
    let seen_back = seen_back.unwrap_or_else(|| ReplayedWay {
        outages: Vec::new(),
        queue_bytes: None,
        ..seen_there.clone()
    });
    let (back, there) = (seen_back.ended_with(&seen_there), seen_there);
    let known = |way: &ReplayedWay| way.spans.iter().find_map(|span| span.rate_bps);
    let rate = known(&there).ok_or(UnseenLink::NoRate)?;
    let mut text = format!(
        "[[hop]]\nrate = \"{rate:.0}bit\"\nforward = {}\nreverse = {}\n",
        there.keys(0.0, true),
        back.keys(0.0, true)
    );
    let starts = there
        .spans
        .iter()
        .chain(&back.spans)
        .map(|span| span.from_s);
    let mut starts: Vec<f64> = starts.filter(|&start| start > 0.0).collect();
    starts.sort_by(f64::total_cmp);
    starts.dedup();
    for start in starts {
        let (there, back) = (there.keys(start, false), back.keys(start, false));
        let at = start * 1e3;
        let _ = write!(
            text,
            "\n[[change]]\nat = \"{at:.0}ms\"\nforward = {there}\nreverse = {back}\n"
        );
    }
    Ok(text)
}

/// These packets in seconds since `start`.
fn seen_since(packets: &[ObservedPacket], start: Instant) -> Result<Vec<Seen>, UnseenLink> {
    let last = packets.iter().map(|packet| packet.sent_at).max();
    let after = last.map_or(Duration::ZERO, |last| last.saturating_since(start));
    if after > RECORDED_MAX {
        return Err(UnseenLink::TooLong { after });
    }
    if packets.iter().all(|packet| packet.arrived_at.is_none()) {
        return Err(UnseenLink::NothingArrived);
    }
    Ok(Seen::all(packets, start))
}

/// The longest of these waits that is no lone packet's.
fn longest(waits: &[Option<f64>]) -> f64 {
    let mut longest: Vec<f64> = waits.iter().flatten().copied().collect();
    longest.sort_by(|one, other| other.total_cmp(one));
    let supported = longest.get(WAITING - 1).or(longest.last());
    supported.copied().unwrap_or_default()
}

/// The packets of one direction of a recorded hop.
pub fn observed(recording: &RunRecording, hop: usize, way: AppDirection) -> Vec<ObservedPacket> {
    let packets = recording.packets.iter();
    let of_way = packets.filter(|packet| packet.hop == hop && packet.direction == way);
    of_way
        .map(|packet| ObservedPacket {
            sent_at: packet.sent_at,
            len: packet.len,
            arrived_at: packet.arrived_at.filter(|_| packet.inverted_bits == 0),
        })
        .collect()
}
