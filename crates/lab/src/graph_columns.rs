//! The measures of a graph's flows and hops as columns, one for each flow and each direction of a hop that a sweep has.

use crate::measure::{MeasureKind, MeasureUnit};
use arrow_array::ArrayRef;
use arrow_array::builder::{Float64Builder, UInt64Builder};
use arrow_schema::{DataType, Field};
use fulmar_sim::SweepPoint;
use fulmar_sim::report::graph::{FLOWS_MAX, WAYS_MAX};
use serde_json::{Map, Value};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use MeasureKind::{Count, Real};
use MeasureUnit::{BitPerSecond, Octet, One, Second};

/// A measure: its name, its type, its unit and its meaning.
type Measure = (&'static str, MeasureKind, MeasureUnit, &'static str);

const OF_FLOW: [Measure; 4] = [
    (
        "delivered_bytes",
        Count,
        Octet,
        "a flow: delivered unaltered",
    ),
    (
        "goodput_bps",
        Real,
        BitPerSecond,
        "a flow: 8 x delivered / (last delivery - first submission)",
    ),
    (
        "delay_p50_s",
        Real,
        Second,
        "a flow: median delay of pieces",
    ),
    (
        "delay_p99_s",
        Real,
        Second,
        "a flow: 99th percentile of the delay of pieces",
    ),
];
const OF_WAY: [Measure; 7] = [
    ("packets", Count, One, "a way of a hop: packets put on it"),
    ("bytes", Count, Octet, "a way of a hop: their octets"),
    (
        "rate_bps",
        Real,
        BitPerSecond,
        "a way of a hop: 8 x octets / (last packet - first packet)",
    ),
    (
        "lost",
        Count,
        One,
        "a way of a hop: packets that the medium lost",
    ),
    (
        "lost_outage",
        Count,
        One,
        "a way of a hop: packets lost in outages",
    ),
    (
        "lost_queue",
        Count,
        One,
        "a way of a hop: packets that its queue dropped",
    ),
    (
        "lost_frame_check",
        Count,
        One,
        "a way of a hop: packets dropped by its frame check",
    ),
];

/// The groups in the records.
const BY_FLOW: &str = "by_flow";
const BY_WAY: &str = "by_way";

/// A measure of one flow or one direction of a hop.
#[derive(Clone, Debug)]
pub(crate) struct GraphColumn {
    /// The group in the records, and the flow or direction in it.
    group: &'static str,
    of: String,
    measure: Measure,
}

impl GraphColumn {
    /// The columns of these points, those of the first flows and directions if a sweep has too many names; none of chains.
    pub(crate) fn all(points: &[SweepPoint]) -> Vec<Self> {
        let mut known = BTreeSet::new();
        let mut known_ways = 0;
        let mut columns = Vec::new();
        for plan in points.iter().map(|point| &point.plan) {
            if plan.topology.is_chain() {
                continue;
            }
            let flows = (0..plan.flows.len().min(FLOWS_MAX)).map(|flow| flow.to_string());
            let hops = (0..plan.hops.len()).map(|hop| plan.topology.hop_name(hop));
            let ways =
                hops.flat_map(|hop| ["forward", "reverse"].map(|way| format!("{hop}/{way}")));
            let flows = flows.map(|flow| (BY_FLOW, flow, OF_FLOW.as_slice()));
            let ways = ways.map(|way| (BY_WAY, way, OF_WAY.as_slice()));
            for (group, of, measures) in flows.chain(ways) {
                let is_full = group == BY_WAY && known_ways == WAYS_MAX;
                if is_full || !known.insert((group, of.clone())) {
                    continue;
                }
                known_ways += usize::from(group == BY_WAY);
                columns.extend(measures.iter().map(|measure| Self {
                    group,
                    of: of.clone(),
                    measure: *measure,
                }));
            }
        }
        columns
    }

    pub(crate) fn field(&self) -> Field {
        let (name, kind, unit, about) = self.measure;
        let data_type = match kind {
            Count => DataType::UInt64,
            _ => DataType::Float64,
        };
        let metadata = [("unit", unit.name()), ("about", about)];
        let metadata = metadata.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let name = format!("{}.{}.{name}", self.group, self.of);
        Field::new(name, data_type, true).with_metadata(HashMap::from(metadata))
    }

    /// The values of these runs.
    pub(crate) fn array(&self, runs: &[Map<String, Value>]) -> ArrayRef {
        let (name, kind, ..) = self.measure;
        let values = runs
            .iter()
            .map(|run| run.get(self.group)?.get(&self.of)?.get(name));
        if kind == Count {
            let mut counts = UInt64Builder::new();
            values.for_each(|value| counts.append_option(value.and_then(Value::as_u64)));
            return Arc::new(counts.finish());
        }
        let mut reals = Float64Builder::new();
        values.for_each(|value| reals.append_option(value.and_then(Value::as_f64)));
        Arc::new(reals.finish())
    }
}
