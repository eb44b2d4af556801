//! A recording as a channel: the rate, the delay, the loss and the outages that its packets met, over time.
//!
//! No more is used of a packet than two ends of a real link know: when it was handed over, its length, and when it
//! arrived, if it did. So a gateway's trace serves as well as the simulator's.
//!
//! # How it works
//! The recording is cut into spans of a quarter of a second, and like spans that follow one another are joined.
//! - *Rate*: where packets arrive farther apart than they were sent, the link was busy between them, and a packet's length over that
//!   gap is the rate. Where it was never busy, the rate is at least what came through.
//! - *Delay*: where packets arrive farther apart than the rate explains, the link was idle between them, and the later one
//!   has waited for nothing. Else the delay is at most the least that was seen.
//! - *Outages*: rows of lost packets that the loss around them does not explain. An outage ends half way to the next packet that
//!   arrives.
//! - *Queue*: packets that are lost while their neighbours waited as long as any did were refused by a full queue.
//! - *Loss*: the share of the others that did not arrive.
//!
//! Times count from the first packet, or from a start that is told: those of a capture are seconds since 1970.
//!
//! # Does not
//! - Keep which packet was lost: under another mode other packets are on the link. Bursts shorter than a span become loss of
//!   that share.
//! - Know a rate that the recorded sender never asked for.

use core::fmt::Write;
use core::time::Duration;
use fulmar_proto::units::{ByteCount, Instant};
use fulmar_sim::RunRecording;
use fulmar_sim::scenario::AppDirection;

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

/// The length of the spans that a recording is cut into.
const SPAN_S: f64 = 0.25;
/// The longest recording: each span of it takes memory.
const RECORDED_DAYS_MAX: u64 = 10;
const DAY_S: u64 = 24 * 60 * 60;
const RECORDED_MAX: Duration = Duration::from_secs(RECORDED_DAYS_MAX * DAY_S);
/// The part by which one gap must exceed another to be longer.
const LONGER: f64 = 1.01;
/// Gaps of a busy link from which its rate is known.
const BUSY_MIN: usize = 3;
/// The chance below which a row of losses is an outage, and the packets of the shortest such row.
const OUTAGE_CHANCE: f64 = 1e-6;
const OUTAGE_PACKETS: usize = 5;
/// The chance above which losses at the end of such a row may be single ones.
const SINGLE_CHANCE: f64 = 0.01;
/// The loss that is thought possible anywhere.
const LOSS_MIN: f64 = 0.02;
/// The time from which a packet has waited for others.
const WAITED_S: f64 = 0.001;
/// The part of the longest wait from which the queue counts as full, and the packets that such a queue holds at least.
const FULL: f64 = 0.9;
const QUEUE_MIN: f64 = 15.0 * 1_500.0;
/// The parts by which rates, and the spans by which delays, may differ in one span.
const SAME_RATE: f64 = 0.02;
const SAME_DELAY_S: f64 = 0.001;
/// Standard errors by which losses may differ in one span.
const SAME_LOSS: f64 = 3.0;

/// A packet in seconds and octets.
#[derive(Clone, Copy)]
struct Seen {
    sent: f64,
    octets: f64,
    arrived: Option<f64>,
}

impl ReplayedWay {
    /// The way of these packets, which are in the order in which they were handed over, its time counted from `start`.
    ///
    /// # Errors
    /// None arrived, or the last was sent too long after the start.
    pub fn of(packets: &[ObservedPacket], start: Instant) -> Result<Self, UnseenLink> {
        let last = packets.iter().map(|packet| packet.sent_at).max();
        let after = last.map_or(Duration::ZERO, |last| last.saturating_since(start));
        if after > RECORDED_MAX {
            return Err(UnseenLink::TooLong { after });
        }
        let seconds = |at: Instant| at.saturating_since(start).as_secs_f64();
        let seen: Vec<Seen> = packets
            .iter()
            .map(|packet| Seen {
                sent: seconds(packet.sent_at),
                octets: packet.len.0 as f64,
                arrived: packet.arrived_at.map(seconds),
            })
            .collect();
        if seen.iter().all(|packet| packet.arrived.is_none()) {
            return Err(UnseenLink::NothingArrived);
        }
        let rates = rates(&seen);
        let rate_at = |packet: &Seen| rates.get(span_of(packet.sent)).copied().flatten();
        let delays = delays(&seen, &rate_at);
        let delay_at = |packet: &Seen| delays.get(span_of(packet.sent)).copied().unwrap_or(0.0);
        let left = |packet: &Seen| Some(packet.arrived? - delay_at(packet));
        let begun = |packet: &Seen| Some(left(packet)? - packet.octets * 8.0 / rate_at(packet)?);
        let (outages, row_of) = outages(&seen, &left, &begun);
        // The octets before each packet that arrived.
        let before = |packet: &Seen| {
            let rate = rate_at(packet)?;
            let waited =
                packet.arrived? - packet.sent - delay_at(packet) - packet.octets * 8.0 / rate;
            Some((waited * rate / 8.0).max(0.0))
        };
        let waits: Vec<Option<f64>> = seen.iter().map(before).collect();
        let longest = waits.iter().flatten().copied().fold(0.0, f64::max);
        let largest = seen.iter().map(|packet| packet.octets).fold(1.0, f64::max);
        let mut counted = vec![(0.0, 0.0); rates.len()];
        let mut neighbour = 0.0;
        let mut refused = false;
        for ((packet, wait), in_outage) in seen.iter().zip(&waits).zip(&row_of) {
            neighbour = wait.unwrap_or(neighbour);
            let is_full = longest >= QUEUE_MIN && neighbour >= FULL * longest;
            let span = &mut counted[span_of(packet.sent)];
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
        Ok(Self {
            spans: joined(spans),
            outages,
            // Queues hold whole packets: the last one that was taken waited for a part of the one on the link.
            queue_bytes: refused.then_some((longest / largest).ceil() * largest),
        })
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
    let seen_there = ReplayedWay::of(there, start)?;
    let seen_back = match ReplayedWay::of(back, start) {
        // A way back on which nothing came is as good as the way there.
        Err(UnseenLink::NothingArrived) => ReplayedWay {
            outages: Vec::new(),
            queue_bytes: None,
            ..seen_there.clone()
        },
        seen => seen?,
    };
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

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a time of a run in seconds"
)]
fn span_of(at: f64) -> usize {
    (at / SPAN_S) as usize
}

/// A time of a packet's transmission, if it is known.
type TimeOf<'a> = &'a dyn Fn(&Seen) -> Option<f64>;

/// The outages, and whether each packet was lost in one. `left` and `begun` are the times at which a packet that arrived had
/// left the link, and at which it began to.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a few packets: the loss is bounded on both sides"
)]
fn outages(seen: &[Seen], left: TimeOf<'_>, begun: TimeOf<'_>) -> (Vec<ReplayedOutage>, Vec<bool>) {
    let arrived = seen
        .iter()
        .filter(|packet| packet.arrived.is_some())
        .count();
    let loss = (1.0 - arrived as f64 / seen.len() as f64).clamp(LOSS_MIN, 0.9);
    let row_min = OUTAGE_CHANCE.ln() / loss.ln();
    let single = (SINGLE_CHANCE.ln() / loss.ln()).ceil() as usize;
    let mut found = Vec::new();
    let mut inside = vec![false; seen.len()];
    let mut index = 0;
    while index < seen.len() {
        let lost = seen[index..]
            .iter()
            .take_while(|packet| packet.arrived.is_none());
        let row = lost.count();
        let end = index + row;
        if row >= OUTAGE_PACKETS && row as f64 >= row_min {
            let (first, last) = (seen[index].sent, seen[end - 1].sent);
            let sure = seen[end.saturating_sub(single + 1).max(index)].sent;
            // Those before may still have been on the link when the first of the row was handed over.
            let before = index.checked_sub(1).and_then(|before| left(&seen[before]));
            let start = before.map_or(first, |before| before.max(first));
            let over = seen.get(end).map_or(last, |next| {
                let waited = begun(next).filter(|begun| *begun > next.sent + WAITED_S);
                waited.unwrap_or_else(|| f64::midpoint(last, next.sent))
            });
            found.push(ReplayedOutage {
                start_s: start,
                sure_until_s: sure.max(start),
                end_s: over.max(start),
            });
            inside[index..end].fill(true);
        }
        index = end.max(index + 1);
    }
    (found, inside)
}

/// The rate in each span.
fn rates(seen: &[Seen]) -> Vec<Option<f64>> {
    let last = seen.iter().map(|packet| span_of(packet.sent)).max();
    let count = last.unwrap_or_default() + 1;
    let mut busy: Vec<Vec<f64>> = vec![Vec::new(); count];
    let mut least: Vec<f64> = vec![0.0; count];
    for pair in seen.windows(2) {
        let (Some(before), Some(after)) = (pair[0].arrived, pair[1].arrived) else {
            continue;
        };
        let (gap, sent_gap) = (after - before, pair[1].sent - pair[0].sent);
        if gap <= 0.0 {
            continue;
        }
        let rate = pair[1].octets * 8.0 / gap;
        let span = span_of(pair[1].sent);
        if sent_gap * LONGER < gap {
            busy[span].push(rate);
        }
        least[span] = least[span].max(rate);
    }
    let mut known: Option<f64> = None;
    let mut rates: Vec<Option<f64>> = Vec::with_capacity(count);
    for (mut busy, least) in busy.into_iter().zip(least) {
        if busy.len() >= BUSY_MIN {
            busy.sort_by(f64::total_cmp);
            known = Some(busy[busy.len() / 2]);
        } else if least > 0.0 {
            known = Some(known.map_or(least, |known| known.max(least)));
        }
        rates.push(known);
    }
    // Before anything was known the link was as it is known first.
    let first = rates.iter().flatten().copied().next();
    rates.into_iter().map(|rate| rate.or(first)).collect()
}

/// The delay in each span.
fn delays(seen: &[Seen], rate_at: &dyn Fn(&Seen) -> Option<f64>) -> Vec<f64> {
    let last = seen.iter().map(|packet| span_of(packet.sent)).max();
    let count = last.unwrap_or_default() + 1;
    let mut idle: Vec<Vec<f64>> = vec![Vec::new(); count];
    let mut least: Vec<f64> = vec![f64::INFINITY; count];
    let mut before: Option<f64> = None;
    let mut between = 0.0;
    for packet in seen {
        let time = rate_at(packet).map_or(0.0, |rate| packet.octets * 8.0 / rate);
        let Some(arrived) = packet.arrived else {
            between += time;
            continue;
        };
        let delay = (arrived - packet.sent - time).max(0.0);
        let span = span_of(packet.sent);
        least[span] = least[span].min(delay);
        let explained = (time + core::mem::take(&mut between)) * LONGER;
        if before.is_none_or(|before| arrived - before > explained) {
            idle[span].push(delay);
        }
        before = Some(arrived);
    }
    let mut known = least.iter().copied().find(|least| least.is_finite());
    let spans = idle.into_iter().zip(least);
    spans
        .map(|(mut idle, least)| {
            if idle.is_empty() {
                known = known.map(|known| known.min(least));
            } else {
                idle.sort_by(f64::total_cmp);
                known = Some(idle[idle.len() / 2]);
            }
            known.unwrap_or_default()
        })
        .collect()
}

/// The spans with those that are alike joined.
fn joined(spans: impl Iterator<Item = ReplayedSpan>) -> Vec<ReplayedSpan> {
    let mut joined: Vec<ReplayedSpan> = Vec::new();
    for span in spans {
        match joined.last_mut() {
            Some(last) if is_like(last, &span) => {
                let counted = last.counted + span.counted;
                if counted > 0.0 {
                    last.loss = (last.loss * last.counted + span.loss * span.counted) / counted;
                }
                last.counted = counted;
            }
            _ => joined.push(span),
        }
    }
    joined
}

fn is_like(one: &ReplayedSpan, other: &ReplayedSpan) -> bool {
    let same_rate = match (one.rate_bps, other.rate_bps) {
        (Some(one), Some(other)) => (one - other).abs() <= SAME_RATE * one,
        (one, other) => one == other,
    };
    let same_delay =
        (one.delay_s - other.delay_s).abs() <= SAME_DELAY_S.max(SAME_RATE * one.delay_s);
    let (least, all) = (one.counted.min(other.counted), one.counted + other.counted);
    let same_loss = least == 0.0 || {
        let both = (one.loss * one.counted + other.loss * other.counted) / all;
        let error = (both * (1.0 - both) * (1.0 / one.counted + 1.0 / other.counted)).sqrt();
        (one.loss - other.loss).abs() <= SAME_LOSS * error
    };
    same_rate && same_delay && same_loss
}
