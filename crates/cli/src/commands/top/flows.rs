//! Flows as rows that can be sorted, with the rate of each since a look some seconds ago.

use super::super::lines::Style;
use super::columns::{Align, Cell};
use super::model::{Flow, View};
use std::cmp::Ordering;
use std::collections::{BTreeMap, VecDeque};

/// The looks that a rate is of at most.
const LOOKS_KEPT: usize = 6;
/// A shorter span tells no rate.
const LEAST_SECONDS: f64 = 0.2;
const BITS: f64 = 8.0;

/// A column to sort by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum FlowColumn {
    Destination,
    From,
    Class,
    Peer,
    #[default]
    Rate,
    Sent,
    Received,
    Age,
}

impl FlowColumn {
    pub(super) const ALL: [Self; 8] = [
        Self::Destination,
        Self::From,
        Self::Class,
        Self::Peer,
        Self::Rate,
        Self::Sent,
        Self::Received,
        Self::Age,
    ];
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Destination => "destination",
            Self::From => "from",
            Self::Class => "class",
            Self::Peer => "peer",
            Self::Rate => "rate",
            Self::Sent => "sent",
            Self::Received => "received",
            Self::Age => "age",
        }
    }

    /// Words begin at the left, numbers end at the right.
    pub(super) const fn align(self) -> Align {
        match self {
            Self::Destination | Self::From | Self::Class | Self::Peer => Align::Left,
            Self::Rate | Self::Sent | Self::Received | Self::Age => Align::Right,
        }
    }

    pub(super) fn next(self) -> Self {
        let place = Self::ALL.iter().position(|column| *column == self);
        Self::ALL[place.map_or(0, |place| (place + 1) % Self::ALL.len())]
    }

    /// The order of rows: words from A to Z, numbers from the largest on.
    pub(super) fn compare(self, one: &FlowRow<'_>, other: &FlowRow<'_>) -> Ordering {
        let (a, b) = (one.flow, other.flow);
        let order = match self {
            Self::Destination => a.destination.cmp(&b.destination),
            Self::From => a.direction.cmp(&b.direction),
            Self::Class => a.class.cmp(&b.class),
            Self::Peer => a.peer.cmp(&b.peer),
            Self::Rate => {
                let rate = |row: &FlowRow<'_>| row.rate.unwrap_or(0.0);
                rate(other).total_cmp(&rate(one))
            }
            Self::Sent => b.sent_bytes.cmp(&a.sent_bytes),
            Self::Received => b.received_bytes.cmp(&a.received_bytes),
            Self::Age => b.seconds.total_cmp(&a.seconds),
        };
        order.then_with(|| a.id.cmp(&b.id))
    }
}

/// A flow and its rate, in bits a second in both directions together.
#[derive(Clone, Copy, Debug)]
pub(super) struct FlowRow<'a> {
    flow: &'a Flow,
    rate: Option<f64>,
}

impl FlowRow<'_> {
    pub(super) fn cells(&self) -> [Cell; 8] {
        let flow = self.flow;
        let from = if flow.direction == "in" {
            "here"
        } else {
            "there"
        };
        let rate = self.rate.map_or_else(|| "–".to_owned(), scaled);
        FlowColumn::ALL.map(|column| {
            let (style, text) = match column {
                FlowColumn::Destination => (Style::Strong, flow.destination.clone()),
                FlowColumn::From => (Style::Usual, format!("{from}, {}", flow.protocol)),
                FlowColumn::Class => (Style::Usual, flow.class.clone()),
                FlowColumn::Peer => (Style::Usual, flow.peer.clone()),
                FlowColumn::Rate => (Style::Usual, rate.clone()),
                FlowColumn::Sent => (Style::Usual, flow.sent_text.clone()),
                FlowColumn::Received => (Style::Usual, flow.received_text.clone()),
                FlowColumn::Age => (Style::Usual, flow.age_text.clone()),
            };
            Cell::new(style, &text, column.align())
        })
    }
}

/// A rate with three digits.
fn scaled(bits_per_second: f64) -> String {
    let mut value = bits_per_second;
    let mut prefix = "";
    for next in ["k", "M", "G"] {
        if value < 999.5 {
            break;
        }
        value /= 1_000.0;
        prefix = next;
    }
    let digits = match value {
        _ if prefix.is_empty() => 0,
        v if v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        _ => 2,
    };
    format!("{value:.digits$} {prefix}bit/s")
}

/// A look at all flows: the uptime, and the octets of each flow.
type FlowLook = (f64, BTreeMap<String, u64>);

/// The last looks at the flows.
#[derive(Debug, Default)]
pub(super) struct FlowRates {
    looks: VecDeque<FlowLook>,
}

impl FlowRates {
    pub(super) fn look(&mut self, view: &View) {
        let is_of_another_life = |(at, _): &FlowLook| *at > view.uptime_seconds;
        if self.looks.back().is_some_and(is_of_another_life) {
            self.looks.clear();
        }
        let flows = view.flows.iter();
        let octets = flows.map(|flow| {
            (
                flow.id.clone(),
                flow.sent_bytes.saturating_add(flow.received_bytes),
            )
        });
        self.looks
            .push_back((view.uptime_seconds, octets.collect()));
        if self.looks.len() > LOOKS_KEPT {
            self.looks.pop_front();
        }
    }

    pub(super) fn rows<'a>(&self, view: &'a View) -> Vec<FlowRow<'a>> {
        let rate = |flow: &Flow| {
            let (at, octets) = self.looks.front()?;
            // An older gateway has no names for flows.
            let before = octets.get(&flow.id).filter(|_| !flow.id.is_empty());
            let seconds = before.map_or(flow.seconds, |_| view.uptime_seconds - at);
            let now = flow.sent_bytes.saturating_add(flow.received_bytes);
            let moved = now.saturating_sub(before.copied().unwrap_or(0));
            (seconds >= LEAST_SECONDS).then(|| moved as f64 * BITS / seconds)
        };
        let flows = view.flows.iter();
        flows
            .map(|flow| FlowRow {
                flow,
                rate: rate(flow),
            })
            .collect()
    }
}
