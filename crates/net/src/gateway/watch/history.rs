//! The last hour: a sample a second for five minutes, and one in ten seconds before that.
//!
//! # Promises
//! - At most [`FINE_MAX`] and [`COARSE_MAX`] samples are kept, however long the gateway runs.

use super::registry;
use super::tally::{PeerWindow, Tally, Window};
use serde::Serialize;
use std::collections::VecDeque;

/// The seconds between two samples.
pub(in crate::gateway) const FINE_SECONDS: f64 = 1.0;
/// The most samples of the last five minutes: one more than the spans between them.
const FINE_MAX: usize = 301;
const COARSE_SECONDS: f64 = 10.0;
/// The most samples of the last hour.
const COARSE_MAX: usize = 361;
/// The tolerance for a timer that is late once and early the next time.
const JITTER_SECONDS: f64 = 0.5;
/// The span over which rates and shares are computed.
const WINDOW_SECONDS: f64 = 10.0;

/// The name of the record at `/history`.
pub(in crate::gateway) const SCHEMA: &str = "fulmar.gateway.history.v1";

/// The samples.
#[derive(Debug, Default)]
pub(in crate::gateway) struct History {
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
pub(in crate::gateway) struct Column {
    name: String,
    /// Whether the points say how much the counter grew in a second.
    per_second: bool,
    label: &'static str,
    unit: &'static str,
}

type Read = fn(&Window, &PeerWindow) -> Option<f64>;

/// The columns that are drawn: each is a metric, a label where several columns are of one metric, and the way in
/// which it is read from a window.
const COLUMNS: &[(&str, &str, Read)] = &[
    ("goodput_delivered_bits_per_second", "", |w, _| {
        Some(w.delivered_rate.round())
    }),
    ("goodput_received_bits_per_second", "", |w, _| {
        Some(w.received_rate.round())
    }),
    ("wire_sent_bits_per_second", "", |_, p| {
        Some(p.wire_rate.round())
    }),
    ("payload_confirmed_bits_per_second", "", |_, p| {
        Some(p.confirmed_rate.round())
    }),
    ("payload_received_bits_per_second", "", |_, p| {
        Some(p.payload_rate.round())
    }),
    (
        "link_lost_packets_per_second",
        "datagrams lost, to the peer",
        |_, p| Some(short(p.outward.rate)),
    ),
    (
        "recovered_packets",
        "TPDUs recovered by repetition",
        |_, p| Some(short(p.arq_rate)),
    ),
    (
        "far_recovered_packets",
        "TPDUs recovered by parity, there",
        |_, p| Some(short(p.far_fec_rate)),
    ),
    (
        "far_residual_lost_packets",
        "TPDUs lost for good, there",
        |_, p| Some(short(p.far_residual_rate)),
    ),
    (
        "link_lost_packets_per_second",
        "datagrams lost, from the peer",
        |_, p| Some(short(p.inward.rate)),
    ),
    (
        "recovered_packets",
        "TPDUs recovered by parity, here",
        |_, p| Some(short(p.fec_rate)),
    ),
    (
        "residual_lost_packets",
        "TPDUs lost for good, here",
        |_, p| Some(short(p.residual_rate)),
    ),
    ("link_loss_ratio", "lost, to the peer", |_, p| {
        p.outward.share.map(short)
    }),
    ("link_loss_ratio", "lost, from the peer", |_, p| {
        p.inward.share.map(short)
    }),
    ("repair_ratio", "", |_, p| p.repair_share.map(short)),
    ("rtt_seconds", "", |_, p| p.rtt.map(to_micros)),
    (
        "confirmed_after_quantile_seconds",
        "confirmed after, median",
        |_, p| confirmed_after(p, 0.5),
    ),
    (
        "confirmed_after_quantile_seconds",
        "confirmed after, 99 %",
        |_, p| confirmed_after(p, 0.99),
    ),
    ("link_up", "", |_, p| Some(f64::from(u8::from(p.is_up)))),
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
    let column = |(name, label, _): &(&'static str, &'static str, Read)| {
        let entry = registry::find(name);
        let is_counter = entry.is_some_and(|entry| entry.kind == registry::MetricKind::Counter);
        Column {
            name: entry.map_or_else(String::new, registry::Entry::full_name),
            per_second: is_counter,
            label: if label.is_empty() {
                entry.map_or("", |entry| entry.label)
            } else {
                label
            },
            unit: entry.map_or("", |entry| entry.unit.name()),
        }
    };
    COLUMNS.iter().map(column).collect()
}

/// A point of the drawing: the uptime at the end of a window, then a value of it for each column.
pub(in crate::gateway) fn point(
    at: f64,
    window: &Window,
    of_peer: &PeerWindow,
) -> Vec<Option<f64>> {
    let values = COLUMNS.iter().map(|(_, _, read)| read(window, of_peer));
    let at = (at * 1e3).round() / 1e3;
    core::iter::once(Some(at)).chain(values).collect()
}

/// The answer at `/history`.
#[derive(Clone, Debug, Serialize)]
pub(in crate::gateway) struct Report {
    schema: &'static str,
    /// The uptime at the last sample.
    uptime_seconds: f64,
    peer: String,
    columns: Vec<Column>,
    /// The uptime at the end of each window, then a value for each column.
    pub(in crate::gateway) points: Vec<Vec<Option<f64>>>,
}

impl History {
    /// Takes a sample.
    pub(in crate::gateway) fn push(&mut self, tally: Tally) {
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
    pub(in crate::gateway) fn window(&self, now: &Tally) -> Option<Window> {
        let since = now.at - WINDOW_SECONDS;
        let old = self.fine.iter().rev().find(|tally| tally.at <= since);
        // A young gateway has less.
        let first = old.or_else(|| self.fine.front())?;
        (now.at >= first.at + JITTER_SECONDS).then(|| Window::between(first, now))?
    }

    /// The samples of one peer.
    pub(in crate::gateway) fn report(&self, peer: usize, name: &str) -> Report {
        let begin = self.fine.front().map_or(f64::INFINITY, |tally| tally.at);
        let coarse = self.coarse.iter().filter(|tally| tally.at < begin);
        let all: Vec<&Tally> = coarse.chain(&self.fine).collect();
        let mut points = Vec::new();
        // A window begins as long before each point as `/metrics` looks back, so that the drawing ends with
        // the figures beside it. Confirmations and reports come in steps: a second alone would show
        // nothing, and the next one several times the link's rate.
        let mut begin = 0;
        for (n, last) in all.iter().enumerate().skip(1) {
            let is_early = |next: &&Tally| next.at <= last.at - WINDOW_SECONDS + JITTER_SECONDS;
            while begin + 1 < n && all.get(begin + 1).is_some_and(is_early) {
                begin += 1;
            }
            let first = all.get(begin);
            let Some(window) = first.and_then(|first| Window::between(first, last)) else {
                continue;
            };
            let Some(of_peer) = window.peers.get(peer) else {
                continue;
            };
            points.push(point(last.at, &window, of_peer));
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
    use super::super::tally::{Loss, tests::status};
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
        let labels: Vec<_> = columns().into_iter().map(|column| column.label).collect();
        let each: std::collections::BTreeSet<_> = labels.iter().collect();
        assert_eq!(each.len(), labels.len(), "the page finds columns by them");
    }

    /// The labels of the columns that the page draws under `title`, as its script has them.
    fn drawn_under(title: &str) -> Vec<&'static str> {
        let script = include_str!("page/page.js");
        let (_, charts) = script.split_once("const CHARTS = [").expect("a table");
        let (charts, _) = charts.split_once("\n  ];").expect("its end");
        let (_, chart) = charts.split_once(&format!("[\"{title}\"")).expect(title);
        let (_, labels) = chart.split_once('[').expect("the unit, then labels");
        let (labels, _) = labels.split_once(']').expect("their end");
        labels.split('"').skip(1).step_by(2).collect()
    }

    #[test]
    fn no_chart_of_the_page_mixes_directions() {
        let to_here = PeerWindow {
            payload_rate: 1.0,
            fec_rate: 1.0,
            residual_rate: 1.0,
            inward: Loss {
                share: Some(1.0),
                rate: 1.0,
                sent: 1,
            },
            ..PeerWindow::default()
        };
        let from_here = PeerWindow {
            wire_rate: 1.0,
            confirmed_rate: 1.0,
            arq_rate: 1.0,
            far_fec_rate: 1.0,
            far_residual_rate: 1.0,
            outward: Loss {
                share: Some(1.0),
                rate: 1.0,
                sent: 1,
            },
            ..PeerWindow::default()
        };
        let nothing = PeerWindow::default();
        for (moved, way) in [
            (&from_here, "rom here to the peer"),
            (&to_here, "rom the peer to here"),
        ] {
            let titles = [
                format!("F{way}"),
                format!("Loss and repair f{way}, a second"),
            ];
            for title in titles {
                let drawn = drawn_under(&title);
                assert!(!drawn.is_empty(), "{title}");
                for label in drawn {
                    let of_label = |column: &Column| column.label == label;
                    let index = columns().iter().position(of_label).expect(label);
                    let (_, _, read) = COLUMNS[index];
                    let window = Window::default();
                    assert_ne!(
                        read(&window, moved),
                        read(&window, &nothing),
                        "{title}: {label}"
                    );
                }
            }
        }
    }

    #[test]
    fn what_is_told_in_steps_is_drawn_as_what_the_link_carries() {
        // A report of a far host comes every fourth second and covers four seconds.
        let mut history = History::default();
        for n in 0..=120_u32 {
            let told = u64::from(n - n % 4);
            history.push(Tally::of(&status(f64::from(n), told)));
        }
        let report = history.report(0, "ground");
        let steady = report.points.iter().skip(12);
        for point in steady {
            let goodput = point[1].unwrap();
            // 4,000 bit/s, and a step of four seconds more or less within ten.
            assert!((3_200.0..=4_800.0).contains(&goodput), "{point:?}");
        }
    }
}
