//! The rate of a link over time, from trains of packets.
//!
//! A packet of a real link is some tens of microseconds late, and now and then some milliseconds: the program that passes it
//! on waits for its turn. So the gap between two packets says little. A train is sixteen gaps that follow one another, each
//! between packets that were sent one after the other and both arrived; only the ends of a train are late.
//!
//! - A train that took longer to arrive than it took to send met a busy link: its octets over that time are the rate.
//! - Any other train shows that the link has that rate at least. So where it was not busy, its rate is that of the trains in the
//!   fastest span, unless lone packets show it.

use super::lone::{alike, lone_rates};
use super::seen::{Seen, quantile, span_count};

/// The gaps of a train, and those after which the next one begins.
const TRAIN_GAPS: usize = 16;
const TRAIN_STEP: usize = 4;
/// Trains of a span whose median counts.
const TRAINS_MIN: usize = 4;
/// The part by which a busy link makes a train longer.
const LONGER: f64 = 1.01;
/// The part of a span's trains that are busy where its link is.
const BUSY_SHARE: f64 = 0.25;
/// The part of all trains that are busy where a direction is filled at times: a few of those that are sparse look so.
const BUSY_OFTEN: f64 = 0.1;
/// The part of trains that are not faster than the rate where none is busy: some leave the link idle for a while.
const FAST: f64 = 0.75;
/// The part by which rates differ that are one.
const ONE_RATE: f64 = 0.05;
/// The part of gaps that are shorter than the link allows by no more than packets are late.
const PUNCTUAL: f64 = 0.9;
/// Times late by which a train may be longer though the link was idle: at both its ends, and as much again.
const LATE_TIMES: f64 = 4.0;

/// The rate of one direction in each span, in bits per second.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SeenRates {
    /// The rates, none where nothing shows one.
    pub(super) bps: Vec<Option<f64>>,
    /// Whether the link was often busy; otherwise it may be faster.
    pub(super) were_busy: bool,
    /// The time by which packets are late at most, but for one in ten, in seconds.
    pub(super) late_s: f64,
}

/// A gap between packets that were sent one after the other and both arrived.
#[derive(Clone, Copy)]
struct Gap {
    span: usize,
    octets: f64,
    sent_s: f64,
    arrived_s: f64,
}

/// The trains of a span, by their rates.
#[derive(Clone, Default)]
struct SpanTrains {
    busy: Vec<f64>,
    all: Vec<f64>,
}

impl SpanTrains {
    /// The rate of the link, if it was busy.
    fn busy_rate(&self) -> Option<f64> {
        let is_busy = self.busy.len() as f64 >= BUSY_SHARE * self.all.len() as f64;
        quantile(self.busy.clone(), 0.5).filter(|_| is_busy)
    }

    /// The rate that the link has at least.
    fn least_rate(&self) -> Option<f64> {
        quantile(self.all.clone(), FAST)
    }
}

/// Spans that follow one another, in which the link has one rate.
#[derive(Default)]
struct Stretch {
    /// The number of its spans.
    spans: usize,
    /// The rates of its busy trains, those of all, and those of lone packets.
    busy: Vec<f64>,
    all: Vec<f64>,
    lone: Vec<f64>,
    /// The median rate of the span that has the highest: some are spent with waiting.
    fastest: Option<f64>,
}

impl Stretch {
    /// The rate of the link, or the least that it has. Lone packets show it where it is not what was carried.
    fn rate(&self) -> Option<f64> {
        if let Some(busy) = quantile(self.busy.clone(), 0.5) {
            return Some(busy);
        }
        let all = || quantile(self.all.clone(), FAST);
        let carried = self.fastest.or_else(all);
        let lone = quantile(self.lone.clone(), 0.5);
        let is_other =
            |lone: &f64| carried.is_none_or(|carried| (lone - carried).abs() > ONE_RATE * carried);
        lone.filter(is_other).or(carried)
    }

    /// Whether nothing shows the rate but what was carried.
    const fn is_carried_only(&self) -> bool {
        self.busy.is_empty() && self.lone.is_empty()
    }
}

impl SeenRates {
    /// The rates that packets show.
    pub(super) fn of(seen: &[Seen]) -> Self {
        let gaps = gaps(seen);
        let delays = least_delays(seen);
        // Lateness is seen by the rate, and the rate better if lateness is known.
        let punctual = Self::read(seen, &gaps, &delays, 0.0);
        Self::read(seen, &gaps, &delays, late(&gaps, &punctual.bps))
    }

    fn read(seen: &[Seen], gaps: &[Gap], delays: &[f64], late_s: f64) -> Self {
        let trains = trains(gaps, delays.len(), late_s);
        let carried = trains
            .iter()
            .map(|span| span.busy_rate().or_else(|| span.least_rate()));
        let lone = lone_rates(seen, &carried.collect::<Vec<_>>());
        let stretches = stretches(&trains, &lone, delays, late_s);
        let rates = stretches
            .iter()
            .flat_map(|stretch| core::iter::repeat_n(stretch.rate(), stretch.spans));
        Self {
            bps: rates.collect(),
            were_busy: {
                let sum =
                    |of: fn(&Stretch) -> usize| stretches.iter().map(of).sum::<usize>() as f64;
                sum(|stretch| stretch.busy.len()) >= BUSY_OFTEN * sum(|stretch| stretch.all.len())
            },
            late_s,
        }
    }

    /// The same rates, where they may be higher, as high as those of the other direction.
    pub(super) fn raised_to(mut self, other: &Self) -> Self {
        if !self.were_busy {
            let last = other.bps.last().copied().flatten();
            for (span, rate) in self.bps.iter_mut().enumerate() {
                let other = other.bps.get(span).copied().unwrap_or(last);
                let both = [*rate, other].into_iter().flatten();
                *rate = both.max_by(f64::total_cmp);
            }
        }
        self
    }
}

fn gaps(seen: &[Seen]) -> Vec<Gap> {
    let pairs = seen.windows(2).filter_map(|pair| {
        let (before, after) = (pair[0].arrived?, pair[1].arrived?);
        Some(Gap {
            span: pair[1].span(),
            octets: pair[1].octets,
            sent_s: pair[1].sent - pair[0].sent,
            arrived_s: after - before,
        })
    });
    pairs.collect()
}

/// The least time from sending to arrival in each span.
fn least_delays(seen: &[Seen]) -> Vec<f64> {
    let mut least = vec![f64::INFINITY; span_count(seen)];
    for packet in seen {
        if let Some(arrived) = packet.arrived {
            let least = &mut least[packet.span()];
            *least = least.min(arrived - packet.sent);
        }
    }
    least
}

/// The trains of each span.
fn trains(gaps: &[Gap], spans: usize, late_s: f64) -> Vec<SpanTrains> {
    let mut trains = vec![SpanTrains::default(); spans];
    // Of a few packets there is one train.
    let len = TRAIN_GAPS.min(gaps.len()).max(1);
    for train in gaps.windows(len).step_by(TRAIN_STEP) {
        let sum = |of: fn(&Gap) -> f64| train.iter().map(of).sum::<f64>();
        let (octets, arrived) = (sum(|gap| gap.octets), sum(|gap| gap.arrived_s));
        if arrived <= 0.0 {
            continue;
        }
        let of_span = &mut trains[train[len / 2].span];
        let rate = octets * 8.0 / arrived;
        if is_busy(train, late_s) {
            of_span.busy.push(rate);
        }
        of_span.all.push(rate);
    }
    trains
}

/// Whether a train took longer to arrive than to send, as each of its last ends has it: one of them is in time.
fn is_busy(train: &[Gap], late_s: f64) -> bool {
    let (mut sent, mut arrived) = (0.0, 0.0);
    train.iter().enumerate().all(|(place, gap)| {
        sent += gap.sent_s;
        arrived += gap.arrived_s;
        place < train.len() / 2 || sent * LONGER + LATE_TIMES * late_s < arrived
    })
}

/// The stretches of one rate: that of a busy link lasts until it is busy at another, until lone packets show another, or else until
/// it carries more. Where nothing shows the rate, a low one may be the sender's, so all that follow one another are one stretch.
fn stretches(
    trains: &[SpanTrains],
    lone: &[Option<f64>],
    delays: &[f64],
    late_s: f64,
) -> Vec<Stretch> {
    let near = |one: f64, other: f64| (one - other).abs() <= ONE_RATE * other;
    let shown: Vec<Option<f64>> = trains.iter().map(SpanTrains::busy_rate).collect();
    // A span alone, behind which no queue is left, is a machine that stood still for a moment.
    let is_lasting = |place: usize| {
        let behind = delays.get(place + 1).is_some_and(|behind| {
            behind.is_finite() && *behind > delays[place] + LATE_TIMES * late_s
        });
        let beside = [place.checked_sub(1), Some(place + 1)]
            .into_iter()
            .flatten();
        let mut beside = beside.filter_map(|beside| *shown.get(beside)?);
        shown[place].is_some_and(|rate| behind || beside.any(|beside| near(rate, beside)))
    };
    let mut stretches: Vec<Stretch> = Vec::new();
    // The rate of a busy link.
    let mut known: Option<f64> = None;
    for (place, span) in trains.iter().enumerate() {
        let (busy, least) = (
            shown[place].filter(|_| is_lasting(place)),
            span.least_rate(),
        );
        let lone = lone[place].filter(|_| busy.is_none());
        let goes_on = match (busy, lone, known) {
            (Some(rate), _, Some(known)) => near(rate, known),
            (None, Some(rate), Some(known)) => alike(rate, known),
            (None, None, Some(known)) => {
                least.is_none_or(|least| least <= known * (1.0 + ONE_RATE))
            }
            (Some(_), _, None) => false,
            (None, _, None) => true,
        };
        if !goes_on || stretches.is_empty() {
            stretches.push(Stretch::default());
            known = busy;
        }
        known = known.or(lone);
        if let Some(stretch) = stretches.last_mut() {
            stretch.spans += 1;
            if busy.is_some() {
                stretch.busy.extend(&span.busy);
            }
            stretch.all.extend(&span.all);
            stretch.lone.extend(lone);
            let many = (span.all.len() >= TRAINS_MIN).then(|| span.all.clone());
            let median = many.and_then(|rates| quantile(rates, 0.5));
            let both = [stretch.fastest, median].into_iter().flatten();
            stretch.fastest = both.max_by(f64::total_cmp);
        }
    }
    // Before anything was known the link was as it is known first, unless it carried more.
    if let [first, second, ..] = stretches.as_mut_slice()
        && first.is_carried_only()
        && !second.is_carried_only()
        && first
            .rate()
            .is_none_or(|carried| second.rate().is_some_and(|rate| rate > carried))
    {
        first.busy.clone_from(&second.busy);
        first.lone.clone_from(&second.lone);
    }
    stretches
}

/// The time by which packets are late: gaps are shorter than the link allows by it.
fn late(gaps: &[Gap], rates: &[Option<f64>]) -> f64 {
    let short = gaps.iter().filter_map(|gap| {
        let rate = rates.get(gap.span).copied().flatten()?;
        Some((gap.octets * 8.0 / rate - gap.arrived_s).max(0.0))
    });
    quantile(short.collect(), PUNCTUAL).unwrap_or_default()
}
