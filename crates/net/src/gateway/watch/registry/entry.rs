//! One figure of the registry, and its values.

use super::super::snapshots::Snapshot;
use super::PREFIX;
use serde::Serialize;
use std::fmt::Write as _;

/// The behaviour of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// Only grows, from 0 at the start of the gateway.
    Counter,
    /// Tells the present state.
    Gauge,
}

impl MetricKind {
    /// The name in `OpenMetrics`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
        }
    }
}

/// The unit of a value. Base units only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Flows.
    Flows,
    /// TPDUs of AeroTP.
    Tpdus,
    /// Sealed datagrams of the carrier.
    Datagrams,
    /// Messages of users, and records.
    Messages,
    /// Events.
    Times,
    /// Octets.
    Bytes,
    /// Bits a second.
    BitsPerSecond,
    /// Seconds.
    Seconds,
    /// A part of a whole: 0 to 1, unless its meaning says otherwise.
    Ratio,
    /// 1 for true, 0 for false.
    Flag,
    /// 0 good, 1 poor, 2 bad.
    Grade,
}

fn scaled(value: f64, unit: &str, prefixes: &[&str]) -> String {
    let mut value = value;
    let mut rest = prefixes.iter();
    let mut prefix = rest.next().copied().unwrap_or("");
    // 999.6 is already written as 1.00 of the next.
    while value.abs() >= 999.5 {
        let Some(next) = rest.next() else { break };
        value /= 1_000.0;
        prefix = next;
    }
    let digits = match value.abs() {
        v if v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        _ => 2,
    };
    let digits = if prefix.is_empty() && value.fract() == 0.0 {
        0
    } else {
        digits
    };
    format!("{value:.digits$} {prefix}{unit}")
}

fn grouped(count: f64) -> String {
    let plain = format!("{count:.0}");
    let mut text = String::new();
    for (n, c) in plain.chars().enumerate() {
        if n > 0 && (plain.len() - n).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(c);
    }
    text
}

fn span(seconds: f64) -> String {
    let whole = seconds.round();
    if seconds <= 0.0 {
        "0 s".to_owned()
    } else if seconds < 1.0 {
        scaled(seconds * 1e6, "s", &["µ", "m"])
    } else if whole < 60.0 {
        format!("{seconds:.2} s")
    } else if whole < 3_600.0 {
        format!("{:.0} min {:02.0} s", (whole / 60.0).floor(), whole % 60.0)
    } else {
        let minutes = (whole / 60.0).floor();
        format!(
            "{:.0} h {:02.0} min",
            (minutes / 60.0).floor(),
            minutes % 60.0
        )
    }
}

impl Unit {
    /// The name in documents.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Flows => "flows",
            Self::Tpdus => "TPDUs",
            Self::Datagrams => "datagrams",
            Self::Messages => "messages",
            Self::Times => "times",
            Self::Bytes => "octets",
            Self::BitsPerSecond => "bit/s",
            Self::Seconds => "s",
            Self::Ratio => "1",
            Self::Flag => "0 or 1",
            Self::Grade => "0 to 2",
        }
    }

    /// A value for people: three digits, a prefix of the unit.
    pub fn text(self, value: f64) -> String {
        match self {
            Self::Flows | Self::Tpdus | Self::Datagrams | Self::Messages | Self::Times => {
                grouped(value)
            }
            Self::Bytes => scaled(value, "B", &["", "k", "M", "G", "T", "P"]),
            Self::BitsPerSecond => scaled(value, "bit/s", &["", "k", "M", "G", "T"]),
            Self::Seconds => span(value),
            // Two digits behind the point would say that there is none.
            Self::Ratio if value > 0.0 && value < 1e-4 => format!("{value:.1e}"),
            Self::Ratio => format!("{:.2} %", value * 100.0),
            Self::Flag => if value > 0.0 { "yes" } else { "no" }.to_owned(),
            Self::Grade if value < 1.0 => "good".to_owned(),
            Self::Grade => if value < 2.0 { "poor" } else { "bad" }.to_owned(),
        }
    }
}

/// Where a figure is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// Nowhere: it is configured.
    Configured,
    /// At local sockets.
    Local,
    /// Where flows are joined to AeroTP.
    Splice,
    /// AeroTP, of what this gateway sends.
    Sender,
    /// AeroTP, of what this gateway receives.
    Receiver,
    /// The session: sealed datagrams, keys, liveness.
    Session,
    /// Computed when asked, from the others.
    Computed,
}

impl Point {
    /// The name in documents.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Configured => "configuration",
            Self::Local => "local sockets",
            Self::Splice => "splice",
            Self::Sender => "AeroTP, sending",
            Self::Receiver => "AeroTP, receiving",
            Self::Session => "session",
            Self::Computed => "computed",
        }
    }
}

/// One value. A value that is not a number has no form.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub(in crate::gateway) enum Value {
    Count(u64),
    Number(Finite),
}

/// A number that is finite.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(in crate::gateway) struct Finite(f64);

impl Value {
    pub(in crate::gateway) fn number(value: f64) -> Option<Self> {
        value.is_finite().then_some(Self::Number(Finite(value)))
    }

    pub(in crate::gateway) const fn as_f64(self) -> f64 {
        match self {
            Self::Count(count) => count as f64,
            Self::Number(Finite(number)) => number,
        }
    }
}

/// A value with its labels' values, in the order of [`Entry::labels`].
#[derive(Clone, Debug, PartialEq)]
pub(in crate::gateway) struct Sample {
    pub(in crate::gateway) labels: Vec<String>,
    pub(in crate::gateway) value: Value,
}

/// One figure.
pub struct Entry {
    /// Its name, without the prefix and without the `_total` of counters.
    pub name: &'static str,
    /// Its behaviour.
    pub kind: MetricKind,
    /// Its unit.
    pub unit: Unit,
    /// The labels that tell its series apart.
    pub labels: &'static [&'static str],
    /// Where it is counted.
    pub point: Point,
    /// Its name on the page and in `top`.
    pub label: &'static str,
    /// Its meaning: a sentence without its full stop.
    pub help: &'static str,
    /// The formula that computes it from others; empty if it is counted.
    pub formula: &'static str,
    pub(super) read: fn(&Snapshot) -> Vec<Sample>,
}

impl core::fmt::Debug for Entry {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Entry({})", self.full_name())
    }
}

/// A label's value as `OpenMetrics` writes it.
pub(in crate::gateway) fn escaped(value: &str) -> String {
    let mut text = String::new();
    for c in value.chars() {
        match c {
            '\\' => text.push_str("\\\\"),
            '"' => text.push_str("\\\""),
            '\n' => text.push_str("\\n"),
            c => text.push(c),
        }
    }
    text
}

impl Entry {
    /// The name in `/metrics` and `/status`.
    pub fn full_name(&self) -> String {
        let total = match self.kind {
            MetricKind::Counter => "_total",
            MetricKind::Gauge => "",
        };
        format!("{PREFIX}_{}{total}", self.name)
    }

    pub(in crate::gateway) fn samples(&self, snapshot: &Snapshot) -> Vec<Sample> {
        (self.read)(snapshot)
    }

    /// A sample's name with its labels, as a line of `/metrics` begins.
    pub(in crate::gateway) fn series(&self, sample: &Sample) -> String {
        let mut text = self.full_name();
        for (n, (label, value)) in self.labels.iter().zip(&sample.labels).enumerate() {
            let before = if n == 0 { '{' } else { ',' };
            // Writing to a String does not fail.
            let _ = write!(text, "{before}{label}=\"{}\"", escaped(value));
        }
        if !self.labels.is_empty() {
            text.push('}');
        }
        text
    }

    /// The sum of those of its samples that have all of these labels; `None` if there is none.
    pub(in crate::gateway) fn sum(
        &self,
        samples: &[Sample],
        labels: &[(&str, &str)],
    ) -> Option<Value> {
        let place = |name: &str| self.labels.iter().position(|label| *label == name);
        let is_meant = |sample: &&Sample| {
            labels.iter().all(|(name, value)| {
                let found = place(name).and_then(|n| sample.labels.get(n));
                found.map(String::as_str) == Some(*value)
            })
        };
        let mut meant = samples.iter().filter(is_meant);
        let first = meant.next()?.value;
        meant.try_fold(first, |sum, sample| match (sum, sample.value) {
            (Value::Count(a), Value::Count(b)) => Some(Value::Count(a.saturating_add(b))),
            (a, b) => Value::number(a.as_f64() + b.as_f64()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_said_with_three_digits_and_a_prefix() {
        let cases = [
            (Unit::Tpdus, 0.0, "0"),
            (Unit::Tpdus, 1_234_567.0, "1 234 567"),
            (Unit::Tpdus, 999.0, "999"),
            (Unit::Bytes, 0.0, "0 B"),
            (Unit::Bytes, 999.0, "999 B"),
            (Unit::Bytes, 1_500.0, "1.50 kB"),
            (Unit::Bytes, 999_600.0, "1.00 MB"),
            (Unit::BitsPerSecond, 12_345_678.0, "12.3 Mbit/s"),
            (Unit::BitsPerSecond, 0.0, "0 bit/s"),
            (Unit::BitsPerSecond, 123.4, "123 bit/s"),
            (Unit::Seconds, 0.0, "0 s"),
            (Unit::Seconds, 0.000_25, "250 µs"),
            (Unit::Seconds, 0.012_34, "12.3 ms"),
            (Unit::Seconds, 2.5, "2.50 s"),
            (Unit::Seconds, 59.7, "1 min 00 s"),
            (Unit::Seconds, 119.9, "2 min 00 s"),
            (Unit::Seconds, 7_260.0, "2 h 01 min"),
            (Unit::Ratio, 0.123_45, "12.35 %"),
            (Unit::Ratio, 0.000_1, "0.01 %"),
            (Unit::Ratio, 0.000_02, "2.0e-5"),
            (Unit::Ratio, 0.0, "0.00 %"),
            (Unit::Flag, 1.0, "yes"),
            (Unit::Grade, 0.0, "good"),
            (Unit::Grade, 1.0, "poor"),
            (Unit::Grade, 2.0, "bad"),
        ];
        for (unit, value, text) in cases {
            assert_eq!(unit.text(value), text, "{value} {unit:?}");
        }
    }

    #[test]
    fn what_is_no_number_is_no_value() {
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(Value::number(value), None);
        }
        assert_eq!(serde_json::to_string(&Value::number(0.5)).unwrap(), "0.5");
    }
}
