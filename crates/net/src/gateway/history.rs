//! The last hour: a sample a second for five minutes, and one in ten seconds before that.
//!
//! # Promises
//! - At most [`FINE_MAX`] and [`COARSE_MAX`] samples are kept, however long the gateway runs.

use super::registry;
use super::tally::{PeerWindow, Tally, Window};
use serde::Serialize;
use std::collections::VecDeque;

/// How often to look, in seconds.
pub(super) const FINE_SECONDS: f64 = 1.0;
/// Samples of the last five minutes; one more than spans between them.
const FINE_MAX: usize = 301;
const COARSE_SECONDS: f64 = 10.0;
/// Samples of the last hour.
const COARSE_MAX: usize = 361;
/// Of a timer that is late once and early the next time.
const JITTER_SECONDS: f64 = 0.5;
/// Rates and shares are told of so many seconds.
const WINDOW_SECONDS: f64 = 10.0;

/// The name of the record at `/history`.
pub(super) const SCHEMA: &str = "fulmar.gateway.history.v1";

/// The samples.
#[derive(Debug, Default)]
pub(super) struct History {
    fine: VecDeque<Tally>,
    coarse: VecDeque<Tally>,
}

fn push(ring: &mut VecDeque<Tally>, most: usize, tally: Tally) {
    if ring.len() >= most {
        ring.pop_front();
    }
    ring.push_back(tally);
}

/// One column of the answer: a metric of the registry.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Column {
    name: String,
    /// Whether the points say how much the counter grew in a second.
    per_second: bool,
    label: &'static str,
    unit: &'static str,
}

type Read = fn(&Window, &PeerWindow) -> Option<f64>;

/// What is drawn: a metric, and how it is read from a span.
const COLUMNS: &[(&str, Read)] = &[
    ("goodput_delivered_bits_per_second", |w, _| {
        Some(w.delivered_rate.round())
    }),
    ("goodput_received_bits_per_second", |w, _| {
        Some(w.received_rate.round())
    }),
    ("wire_sent_bits_per_second", |_, p| {
        Some(p.wire_rate.round())
    }),
    ("payload_confirmed_bits_per_second", |_, p| {
        Some(p.confirmed_rate.round())
    }),
    ("payload_received_bits_per_second", |_, p| {
        Some(p.payload_rate.round())
    }),
    ("wire_lost_packets", |_, p| Some(short(p.lost_rate))),
    ("recovered_packets{by=\"fec\"}", |_, p| {
        Some(short(p.fec_rate))
    }),
    ("recovered_packets{by=\"arq\"}", |_, p| {
        Some(short(p.arq_rate))
    }),
    ("residual_lost_packets", |_, p| Some(short(p.residual_rate))),
    ("repair_ratio", |_, p| p.repair_share.map(short)),
    ("rtt_seconds", |_, p| p.rtt.map(to_micros)),
    (
        "confirmed_after_quantile_seconds{quantile=\"0.5\"}",
        |_, p| confirmed_after(p, 0.5),
    ),
    (
        "confirmed_after_quantile_seconds{quantile=\"0.99\"}",
        |_, p| confirmed_after(p, 0.99),
    ),
    ("link_up", |_, p| Some(f64::from(u8::from(p.is_up)))),
];

/// Enough digits for a drawing.
fn short(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}

/// Seconds, to the microsecond.
fn to_micros(seconds: f64) -> f64 {
    (seconds * 1e6).round() / 1e6
}

fn confirmed_after(peer: &PeerWindow, share: f64) -> Option<f64> {
    let delay = peer.confirmed_after.quantile(share)?;
    Some(to_micros(delay.as_secs_f64()))
}

fn columns() -> Vec<Column> {
    let column = |(name, _): &(&'static str, Read)| {
        let (base, by) = name.split_once('{').unwrap_or((name, ""));
        let entry = registry::find(base);
        let is_counter = entry.is_some_and(|entry| entry.kind == registry::Kind::Counter);
        Column {
            name: entry.map_or_else(String::new, registry::Entry::full_name),
            per_second: is_counter,
            label: match by {
                "by=\"fec\"}" => "recovered by parity",
                "by=\"arq\"}" => "recovered by repetition",
                "quantile=\"0.5\"}" => "confirmed after, median",
                "quantile=\"0.99\"}" => "confirmed after, 99 %",
                _ => entry.map_or("", |entry| entry.label),
            },
            unit: entry.map_or("", |entry| entry.unit.name()),
        }
    };
    COLUMNS.iter().map(column).collect()
}

/// The answer at `/history`.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Report {
    schema: &'static str,
    /// Of the last sample.
    uptime_seconds: f64,
    peer: String,
    columns: Vec<Column>,
    /// The uptime at the end of each span, then a value for each column.
    pub(super) points: Vec<Vec<Option<f64>>>,
}

impl History {
    /// Takes a sample.
    pub(super) fn push(&mut self, tally: Tally) {
        let is_due = |ring: &VecDeque<Tally>, seconds: f64| {
            ring.back()
                .is_none_or(|last| tally.at >= last.at + seconds - JITTER_SECONDS)
        };
        if is_due(&self.coarse, COARSE_SECONDS) {
            push(&mut self.coarse, COARSE_MAX, tally.clone());
        }
        if is_due(&self.fine, FINE_SECONDS) {
            push(&mut self.fine, FINE_MAX, tally);
        }
    }

    /// The span up to `now`, ten seconds long as far as that is kept.
    pub(super) fn window(&self, now: &Tally) -> Option<Window> {
        let since = now.at - WINDOW_SECONDS;
        let old = self.fine.iter().rev().find(|tally| tally.at <= since);
        // A young gateway has less.
        let first = old.or_else(|| self.fine.front())?;
        (now.at >= first.at + JITTER_SECONDS).then(|| Window::between(first, now))?
    }

    /// What was with one peer.
    pub(super) fn report(&self, peer: usize, name: &str) -> Report {
        let begin = self.fine.front().map_or(f64::INFINITY, |tally| tally.at);
        let coarse = self.coarse.iter().filter(|tally| tally.at < begin);
        let all: Vec<&Tally> = coarse.chain(&self.fine).collect();
        let mut points = Vec::new();
        for pair in all.windows(2) {
            let [first, last] = pair else { continue };
            let Some(window) = Window::between(first, last) else {
                continue;
            };
            let Some(of_peer) = window.peers.get(peer) else {
                continue;
            };
            let values = COLUMNS.iter().map(|(_, read)| read(&window, of_peer));
            let at = (last.at * 1e3).round() / 1e3;
            points.push(core::iter::once(Some(at)).chain(values).collect());
        }
        Report {
            schema: SCHEMA,
            uptime_seconds: self.fine.back().map_or(0.0, |tally| tally.at),
            peer: name.to_owned(),
            columns: columns(),
            points,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tally::tests::status;
    use super::*;

    fn after(seconds: u32) -> History {
        let mut history = History::default();
        for n in 0..=seconds {
            history.push(Tally::of(&status(f64::from(n), u64::from(n))));
        }
        history
    }

    #[test]
    fn two_hours_take_no_more_room_than_one() {
        let history = after(7_200);
        assert_eq!(history.fine.len(), FINE_MAX);
        assert_eq!(history.coarse.len(), COARSE_MAX);
        let report = history.report(0, "ground");
        assert!(report.points.len() < FINE_MAX + COARSE_MAX);
        let times: Vec<f64> = report.points.iter().filter_map(|p| p[0]).collect();
        assert!(times.is_sorted_by(|a, b| a < b), "in order, none twice");
        let (first, last) = (times[0], times[times.len() - 1]);
        assert!(
            (3_590.0..=3_620.0).contains(&(last - first)),
            "{first} to {last}"
        );
        assert!(report.points.iter().all(|p| p.len() == COLUMNS.len() + 1));
        // Everything happens evenly, so every point says the same, whatever its span.
        for point in &report.points {
            assert_eq!(point[1..], report.points[0][1..]);
        }
    }

    #[test]
    fn samples_that_come_too_often_are_left_out() {
        let mut history = History::default();
        for n in 0..100 {
            history.push(Tally::of(&status(f64::from(n) / 100.0, 0)));
        }
        assert_eq!(history.fine.len(), 2);
    }

    #[test]
    fn the_window_is_ten_seconds_or_what_there_is() {
        let seconds = |history: &History, at| {
            let window = history.window(&Tally::of(&status(at, 1_000)));
            window.map(|window| window.seconds)
        };
        assert_eq!(seconds(&History::default(), 1.0), None);
        assert_eq!(seconds(&after(0), 0.1), None, "too short to tell");
        assert_eq!(seconds(&after(3), 3.5), Some(3.5));
        assert_eq!(seconds(&after(60), 60.5), Some(10.5));
    }

    #[test]
    fn every_column_is_a_metric_of_the_registry() {
        for column in columns() {
            assert!(
                !column.name.is_empty() && !column.label.is_empty(),
                "{column:?}"
            );
        }
    }
}
