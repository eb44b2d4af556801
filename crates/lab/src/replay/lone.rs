//! The rate of a link that is not busy: a long packet that waits for no other takes longer than a short one, by its further octets
//! at that rate.
//!
//! It shows a rate that the recorded sender never asked for, if short packets went beside long ones, such as soundings. A link
//! that does not pass packets on at its rate, but counts their octets (a token bucket), shows the rate of the wire. So the
//! reading is believed only of a link on which it agrees with what was carried elsewhere in the recording.

use super::seen::{Seen, quantile, span_count};

/// The parts of the longest packet from which a packet is long, and up to which it is short, and the packets of each that a span
/// needs.
const LONG: f64 = 0.8;
const SHORT: f64 = 0.25;
const PACKETS_MIN: usize = 8;
/// The octets by which they differ at least: fewer take hardly longer than packets are late.
const LONGER_MIN: f64 = 800.0;
/// The part of a span's packets that is quicker than those that count: single ones show a rate that begins in this span.
const QUICKEST: f64 = 0.1;
/// The spans on each side among which no short packet is quicker than by this time, or else those of this span waited for others.
const AROUND: usize = 5;
const WAITED_S: f64 = 0.0003;
/// The spans in a row that show one rate, and the part by which they may differ.
const IN_A_ROW: usize = 3;
const ALIKE: f64 = 0.1;
/// The spans in which the rate is that which was carried, before it is believed elsewhere.
const AGREEING: usize = 4;

/// The quickest packets of a span.
#[derive(Clone, Copy)]
struct Quickest {
    octets: f64,
    took_s: f64,
}

/// The rate in each span that lone packets show, in bits per second. `carried` are the rates that were carried or that a busy link
/// had.
pub(super) fn lone_rates(seen: &[Seen], carried: &[Option<f64>]) -> Vec<Option<f64>> {
    let spans = span_count(seen);
    let longest = seen.iter().map(|packet| packet.octets).fold(0.0, f64::max);
    let long = quickest(seen, spans, &|octets| octets >= LONG * longest);
    let short = quickest(seen, spans, &|octets| octets <= SHORT * longest);
    let least = |place: usize| {
        let around = place.saturating_sub(AROUND)..(place + AROUND + 1).min(spans);
        let known = short[around].iter().flatten();
        known
            .map(|short| short.took_s)
            .fold(f64::INFINITY, f64::min)
    };
    let shown = (0..spans).map(|place| {
        let (long, short) = (long[place]?, short[place]?);
        let (more, longer_s) = (long.octets - short.octets, long.took_s - short.took_s);
        let shown = (more >= LONGER_MIN && longer_s > 0.0).then(|| more * 8.0 / longer_s)?;
        // No link carries more than its rate: these packets waited for others.
        let is_enough = carried[place].is_none_or(|carried| carried <= shown * (1.0 + ALIKE));
        is_enough.then_some(shown)
    });
    let shown = steady(&shown.collect::<Vec<_>>());
    let agrees = |(shown, carried): &(&Option<f64>, &Option<f64>)| {
        shown
            .zip(**carried)
            .is_some_and(|(shown, carried)| alike(shown, carried))
    };
    if shown.iter().zip(carried).filter(agrees).count() < AGREEING {
        return vec![None; spans];
    }
    let is_lone =
        |place: usize| short[place].is_some_and(|short| short.took_s <= least(place) + WAITED_S);
    let places = shown.into_iter().enumerate();
    places
        .map(|(place, shown)| shown.filter(|_| is_lone(place)))
        .collect()
}

/// Whether two rates are one.
pub(super) fn alike(one: f64, other: f64) -> bool {
    (one - other).abs() <= ALIKE * other
}

/// The quickest packets in each span, of those whose octets count.
fn quickest(seen: &[Seen], spans: usize, counts: &dyn Fn(f64) -> bool) -> Vec<Option<Quickest>> {
    let mut of_spans = vec![(Vec::new(), Vec::new()); spans];
    for packet in seen.iter().filter(|packet| counts(packet.octets)) {
        if let Some(arrived) = packet.arrived {
            let (octets, took_s) = &mut of_spans[packet.span()];
            octets.push(packet.octets);
            took_s.push(arrived - packet.sent);
        }
    }
    let of_span = |(octets, took_s): (Vec<f64>, Vec<f64>)| {
        let is_enough = octets.len() >= PACKETS_MIN;
        let quickest = Quickest {
            octets: quantile(octets, 0.5)?,
            took_s: quantile(took_s, QUICKEST)?,
        };
        is_enough.then_some(quickest)
    };
    of_spans.into_iter().map(of_span).collect()
}

/// These rates where some spans in a row show the same.
fn steady(shown: &[Option<f64>]) -> Vec<Option<f64>> {
    let mut steady = vec![None; shown.len()];
    for (place, row) in shown.windows(IN_A_ROW).enumerate() {
        let is_one = row.iter().all(|rate| {
            rate.zip(row[0])
                .is_some_and(|(rate, first)| alike(rate, first))
        });
        if is_one {
            steady[place..place + IN_A_ROW].copy_from_slice(row);
        }
    }
    steady
}
