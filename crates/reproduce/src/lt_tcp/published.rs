//! The measures of the slides, and their published tables.

use super::families::{ARQ, HARQ, LT_HARQ};
use crate::exhibit::{Beside, Cells, Exhibit};
use crate::measure::{Measure, Quantity, Statistic};
use crate::overlay::Overlay;
use crate::parameter::AxisUnit;

pub(super) const LATENCY: Measure = Measure {
    name: "link.latency_mean_s",
    unit: 1e-3,
    unit_name: AxisUnit::MS,
    label: "latency of a hop",
    statistic: Statistic::Mean,
    quantity: Quantity::Delay,
};

pub(super) const ROUND_TRIP: Measure = Measure {
    name: "link.round_trip_s",
    label: "round trip",
    ..LATENCY
};

pub(super) const GOODPUT: Measure = Measure {
    name: "goodput_bps",
    unit: 1e6,
    unit_name: AxisUnit::MBIT_PER_S,
    label: "receiver goodput",
    statistic: Statistic::Mean,
    quantity: Quantity::Goodput,
};

pub(super) const LINK_GOODPUT: Measure = Measure {
    name: "link.goodput_bps",
    label: "link goodput",
    ..GOODPUT
};

pub(super) const RESIDUAL: Measure = Measure {
    name: "link.residual_loss",
    unit: 0.01,
    unit_name: AxisUnit::PERCENT,
    label: "residual loss of a hop",
    statistic: Statistic::Mean,
    quantity: Quantity::Other,
};

const LATENCIES: (&str, &str) = (
    "reference/ll_latency.csv",
    include_str!("../../../../reference/ll_latency.csv"),
);

pub(super) const PUBLISHED_ARQ: Overlay = Overlay {
    label: "LL-ARQ, slides",
    like: Some(ARQ),
    table: LATENCIES,
    rows: &[],
    x: ("per_percent", 1.0),
    y: "ll_arq_latency_s",
    half: None,
    n: None,
    statistic: Statistic::Mean,
    joined: false,
};

pub(super) const PUBLISHED_HARQ: Overlay = Overlay {
    label: "LL-HARQ, slides",
    like: Some(HARQ),
    y: "ll_harq_latency_s",
    ..PUBLISHED_ARQ
};

/// A column of the slides' Table I.
const fn table_1(y: &'static str, half: Option<&'static str>) -> Overlay {
    Overlay {
        label: "LT-TCP over LL-HARQ, Table I",
        like: Some(LT_HARQ),
        table: (
            "reference/lt_tcp_table1.csv",
            include_str!("../../../../reference/lt_tcp_table1.csv"),
        ),
        rows: &[],
        x: ("per_percent", 1.0),
        y,
        half,
        n: None,
        statistic: Statistic::Mean,
        joined: false,
    }
}

pub(super) const PUBLISHED_GOODPUT: Overlay =
    table_1("receiver_goodput_bps", Some("goodput_half_bps"));
pub(super) const PUBLISHED_LINK_GOODPUT: Overlay = table_1("link_goodput_bps", None);
pub(super) const PUBLISHED_RESIDUAL: Overlay = table_1("link_residual_loss", None);
pub(super) const PUBLISHED_LATENCY: Overlay = table_1("link_latency_s", None);

pub(super) const TABLE_1: Exhibit = Exhibit {
    id: "table-1",
    title: "Table I: LT-TCP over LL-HARQ, ten flows, four hops",
    intro: "Means and 95 % intervals over the runs, beside the slides'. Their intervals are printed with the goodput alone.",
    cells: Cells::Beside {
        family: "chain",
        line: LT_HARQ,
        columns: &[
            Beside {
                measure: GOODPUT,
                published: &PUBLISHED_GOODPUT,
            },
            Beside {
                measure: LINK_GOODPUT,
                published: &PUBLISHED_LINK_GOODPUT,
            },
            Beside {
                measure: RESIDUAL,
                published: &PUBLISHED_RESIDUAL,
            },
            Beside {
                measure: LATENCY,
                published: &PUBLISHED_LATENCY,
            },
        ],
    },
};
