//! A recording as a channel: the rate, the delay, the loss and the outages that its packets met, over time.
//!
//! No more is used of a packet than two ends of a real link know: when it was handed over, its length, and when it
//! arrived, if it did. So a gateway's trace serves as well as the simulator's.
//!
//! # How it works
//! The recording is cut into spans of a quarter of a second. Spans of one rate and delay are joined, and spans of one loss.
//! - *Rate*: where sixteen gaps between packets take longer to arrive than they took to send, the link was busy, and their
//!   octets over that time are the rate (`rates`). Where it was not busy, long packets take longer than short ones (`lone`); else
//!   the rate is at least what came through.
//! - *Delay*: where packets arrive farther apart than the rate explains, the link was idle between them, and the later one
//!   has waited for nothing (`delays`). Else the delay is at most the least that was seen. The time that the ends take for a packet
//!   is added (`ends`): the simulator's take none.
//! - *Outages*: rows of lost packets that the loss around them does not explain (`outages`). An outage ends half way to the
//!   next packet that arrives, and is one of both ways unless something came through the other way meanwhile.
//! - *Queue*: packets that are lost while their neighbours waited as long as any did were refused by a full queue.
//! - *Loss*: the fates of the others in their order (`losses`): the first packet of a stretch of one loss has the fate of the
//!   recorded first one, and so on, whoever sends it. So bursts remain bursts.
//!
//! Times count from the first packet, or from a start that is told: those of a capture are seconds since 1970.
//!
//! # Does not
//! - Keep when a packet was lost: a mode that sends fewer packets meets a burst for longer.
//! - Know a rate that the recorded sender never asked for, unless short packets went beside long ones.

mod delays;
mod ends;
mod lone;
mod losses;
mod outages;
mod perf;
mod rates;
mod seen;
mod spans;

use crate::recording::{RecordingTables, direction_name, packet_rows};
use core::fmt::Write;
use core::time::Duration;
use delays::delays;
use ends::end_s;
use fulmar_channel::Fates;
use fulmar_proto::units::{ByteCount, Instant};
use fulmar_sim::scenario::AppDirection;
use losses::{Fate, stretches};
use outages::{OwnOutages, shared};
use rates::SeenRates;
use seen::{SPAN_S, Seen};
use spans::joined;

pub use losses::ReplayedLoss;
pub use perf::PerfKeys;

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
    /// Its spans of one rate and delay, the first from 0 s on, each up to the next.
    pub spans: Vec<ReplayedSpan>,
    /// Its stretches of one loss, likewise; none if no packet's fate is known.
    pub losses: Vec<ReplayedLoss>,
    /// Its outages.
    pub outages: Vec<ReplayedOutage>,
    /// The octets that its queue holds, if a full queue was seen.
    pub queue_bytes: Option<f64>,
    /// The time that an end takes for a packet, in seconds, which is not in the delays.
    pub end_s: f64,
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
}

/// The longest recording: each span of it takes memory.
const RECORDED_DAYS_MAX: u64 = 10;
const DAY_S: u64 = 24 * 60 * 60;
const RECORDED_MAX: Duration = Duration::from_secs(RECORDED_DAYS_MAX * DAY_S);
/// The part of the longest wait from which the queue counts as full, which may hold so many packets, of which some are short; and the
/// packets that such a queue holds at least.
const FULL: f64 = 0.8;
const QUEUE_MIN: f64 = 15.0 * 1_500.0;
/// The packets of a stretch whose fates are kept: a scenario is to be read, too.
const FATES_MAX: usize = 1 << 16;
/// The packets that wait as long as the queue lasts where it is full; a few others were passed on late.
const WAITING: usize = 16;

/// One direction as far as it is read before the outages of the other one are known.
struct SeenWay {
    seen: Vec<Seen>,
    rates: Vec<Option<f64>>,
    delays: Vec<f64>,
    outages: OwnOutages,
}

impl SeenWay {
    /// The way of these packets, with the rates that are known of it.
    fn at_rates(seen: Vec<Seen>, rates: SeenRates) -> Self {
        let SeenRates {
            bps: rates, late_s, ..
        } = rates;
        let rate_at = |packet: &Seen| rates.get(packet.span()).copied().flatten();
        let delays = delays(&seen, &rate_at, late_s);
        let delay_at = |packet: &Seen| delays.get(packet.span()).copied().unwrap_or(0.0);
        let left = |packet: &Seen| Some(packet.arrived? - delay_at(packet));
        let begun = |packet: &Seen| Some(left(packet)? - packet.time_at(rate_at(packet)?));
        let outages = OwnOutages::of(&seen, &left, &begun);
        Self {
            seen,
            rates,
            delays,
            outages,
        }
    }

    /// The octets before each packet that arrived.
    fn waits(&self) -> Vec<Option<f64>> {
        let before = |packet: &Seen| {
            let rate = self.rates.get(packet.span()).copied().flatten()?;
            let delay = self.delays.get(packet.span())?;
            let waited = packet.arrived? - packet.sent - delay - packet.time_at(rate);
            Some((waited * rate / 8.0).max(0.0))
        };
        self.seen.iter().map(before).collect()
    }

    /// The whole of this way, the other of which had these outages.
    fn whole(self, others: &[ReplayedOutage]) -> ReplayedWay {
        let outages = shared(&self.seen, &self.outages, others);
        let waits = self.waits();
        let longest = longest(&waits);
        let octets = self.seen.iter().map(|packet| packet.octets);
        let largest = octets.fold(1.0, f64::max);
        let mut fates = Vec::with_capacity(self.seen.len());
        let mut neighbour = 0.0;
        let mut refused = false;
        for ((packet, wait), in_outage) in self.seen.iter().zip(&waits).zip(&outages.inside) {
            neighbour = wait.unwrap_or(neighbour);
            let is_full = longest >= QUEUE_MIN && neighbour >= FULL * longest;
            let lost = packet.arrived.is_none();
            if lost && (*in_outage || is_full) {
                refused |= !in_outage;
                continue;
            }
            let span = packet.span();
            fates.push(Fate { span, lost });
        }
        let spans = self.rates.iter().zip(&self.delays).enumerate();
        let spans = spans.map(|(index, (rate, delay))| ReplayedSpan {
            from_s: index as f64 * SPAN_S,
            rate_bps: *rate,
            delay_s: *delay,
        });
        ReplayedWay {
            spans: joined(spans),
            losses: stretches(&fates, self.rates.len()),
            outages: outages.found,
            // Queues hold whole packets: the last one that was taken waited for a part of the one on the link.
            queue_bytes: refused.then_some((longest / largest).ceil() * largest),
            end_s: 0.0,
        }
    }
}

/// The keys of a way at a time, as TOML has them.
#[derive(Clone, PartialEq)]
struct WayKeys {
    delay: String,
    rate: Option<String>,
    loss: String,
}

impl WayKeys {
    /// The keys as a table in one line, but for those that are as before; `None` if all are.
    fn table(&self, before: Option<&Self>, first: &[String]) -> Option<String> {
        let rate = |keys: &Self| keys.rate.clone();
        let known = before.and_then(rate);
        let delay = before.is_none_or(|before| before.delay != self.delay);
        let loss = before.is_none_or(|before| before.loss != self.loss);
        let keys = [
            delay.then(|| self.delay.clone()),
            self.rate
                .clone()
                .filter(|rate| Some(rate) != known.as_ref()),
            loss.then(|| self.loss.clone()),
        ];
        let keys: Vec<String> = keys.into_iter().flatten().chain(first.to_vec()).collect();
        (!keys.is_empty()).then(|| format!("{{ {} }}", keys.join(", ")))
    }
}

impl ReplayedWay {
    /// The way of these packets, which are in the order in which they were handed over, its time counted from `start`.
    ///
    /// # Errors
    /// None arrived, or the last was sent too long after the start.
    pub fn of(packets: &[ObservedPacket], start: Instant) -> Result<Self, UnseenLink> {
        let seen = seen_since(packets, start)?;
        let rates = SeenRates::of(&seen);
        Ok(SeenWay::at_rates(seen, rates).whole(&[]))
    }

    /// The span at a time.
    fn at(&self, seconds: f64) -> &ReplayedSpan {
        let begun = self.spans.partition_point(|span| span.from_s <= seconds);
        &self.spans[begun.saturating_sub(1)]
    }

    /// The fates of packets handed over from a time on, as the scenario has them.
    fn loss_at(&self, seconds: f64) -> String {
        let begun = self.losses.partition_point(|loss| loss.from_s() <= seconds);
        let stretch = self.losses.get(begun.saturating_sub(1));
        let lost = stretch.map_or(&[][..], |stretch| &stretch.lost);
        if !lost.contains(&true) {
            return "0%".to_owned();
        }
        let fates = Fates::of(lost.iter().take(FATES_MAX).copied());
        // Runs begin at different places of the row, so that they differ.
        fates.map_or_else(|| "0%".to_owned(), |fates| format!("fates {fates} shifted"))
    }

    /// The keys of this way from a time on.
    fn keys(&self, seconds: f64) -> WayKeys {
        let span = self.at(seconds);
        let rate = |rate: f64| format!("rate = \"{:.0}bit\"", rate.max(1.0));
        WayKeys {
            // A half at each end.
            delay: format!("delay = \"{:.0}us\"", (span.delay_s + self.end_s) * 1e6),
            rate: span.rate_bps.map(rate),
            loss: format!("loss = \"{}\"", self.loss_at(seconds)),
        }
    }

    /// The keys that hold for the whole recording.
    fn lasting_keys(&self) -> Vec<String> {
        let queue = |octets: f64| format!("queue = \"{:.0}B\"", octets.max(1.0));
        let outage = |outage: &ReplayedOutage| {
            let length = (outage.end_s - outage.start_s).max(1e-6);
            format!("{:.0}us+{:.0}us", outage.start_s * 1e6, length * 1e6)
        };
        let outages: Vec<String> = self.outages.iter().map(outage).collect();
        let outages = format!("outages = \"{}\"", outages.join(", "));
        let outages = (!self.outages.is_empty()).then_some(outages);
        self.queue_bytes
            .map(queue)
            .into_iter()
            .chain(outages)
            .collect()
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
    let end_s = end_s(&there, &Seen::all(back, start));
    let rates = SeenRates::of(&there);
    let back = match seen_since(back, start) {
        Err(UnseenLink::NothingArrived) => None,
        // Answers are few. A way back that they never filled is as fast as the way there, or as they were.
        seen => Some(seen.map(|back| {
            let own = SeenRates::of(&back).raised_to(&rates);
            SeenWay::at_rates(back, own)
        })?),
    };
    let there = SeenWay::at_rates(there, rates);
    let (there, back) = if let Some(back) = back {
        let own = [&there, &back].map(|way| way.outages.found.clone());
        (there.whole(&own[1]), back.whole(&own[0]))
    } else {
        // A way back on which nothing came is as good as the way there.
        let there = there.whole(&[]);
        let back = ReplayedWay {
            outages: Vec::new(),
            queue_bytes: None,
            ..there.clone()
        };
        (there, back)
    };
    let [there, back] = [there, back].map(|way| ReplayedWay { end_s, ..way });
    let known = |way: &ReplayedWay| way.spans.iter().find_map(|span| span.rate_bps);
    let rate = known(&there).ok_or(UnseenLink::NoRate)?;
    let ways = [("forward", &there), ("reverse", &back)];
    let mut text = format!("[[hop]]\nrate = \"{rate:.0}bit\"\n");
    let mut latest = ways.map(|(_, way)| way.keys(0.0));
    for ((name, way), keys) in ways.iter().zip(&latest) {
        if let Some(table) = keys.table(None, &way.lasting_keys()) {
            // Writing to a text cannot fail.
            let _ = writeln!(text, "{name} = {table}");
        }
    }
    for start in starts(&there, &back) {
        let mut changed = String::new();
        for ((name, way), latest) in ways.iter().zip(&mut latest) {
            let keys = way.keys(start);
            if let Some(table) = keys.table(Some(latest), &[]) {
                let _ = writeln!(changed, "{name} = {table}");
            }
            *latest = WayKeys {
                rate: keys.rate.clone().or_else(|| latest.rate.clone()),
                ..keys
            };
        }
        if !changed.is_empty() {
            let _ = write!(
                text,
                "\n[[change]]\nat = \"{:.0}ms\"\n{changed}",
                start * 1e3
            );
        }
    }
    Ok(text)
}

/// The times behind the first at which something begins in one of the directions, in seconds.
fn starts(there: &ReplayedWay, back: &ReplayedWay) -> Vec<f64> {
    let of_way = |way: &ReplayedWay| {
        let spans = way.spans.iter().map(|span| span.from_s);
        let losses = way.losses.iter().map(ReplayedLoss::from_s);
        spans.chain(losses).collect::<Vec<f64>>()
    };
    let mut starts = [of_way(there), of_way(back)].concat();
    starts.retain(|start| *start > 0.0);
    starts.sort_by(f64::total_cmp);
    starts.dedup();
    starts
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

/// The packets of one direction of a recorded hop. One that arrived damaged counts as lost.
pub fn observed(recording: &RecordingTables, hop: usize, way: AppDirection) -> Vec<ObservedPacket> {
    let rows = packet_rows(recording).into_iter().flatten();
    let of_way = rows.filter(|row| row.hop == hop as u64 && row.direction == direction_name(way));
    let observed = of_way.map(|row| ObservedPacket {
        sent_at: row.sent_at,
        len: row.len,
        arrived_at: row.arrived_at.filter(|_| row.inverted_bits == 0),
    });
    let mut observed: Vec<_> = observed.collect();
    observed.sort_by_key(|packet| packet.sent_at);
    observed
}
