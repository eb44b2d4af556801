//! Points drawn over the paper's figures: ns-3's own runs and the ideal ARQ, out of `reference/`, and the
//! two values that the paper's text gives for Figure 12.

use super::tables::{SETUP_AEROTP, SETUP_TCP, TCP, UDP};
use crate::measure::Statistic;
use crate::overlay::Overlay;

const RUNS: (&str, &str) = (
    "reference/ns3/s1_udp_newreno.csv",
    include_str!("../../../../reference/ns3/s1_udp_newreno.csv"),
);
const IDEAL: (&str, &str) = (
    "reference/ns3/s1_ideal_arq_bound.csv",
    include_str!("../../../../reference/ns3/s1_ideal_arq_bound.csv"),
);
const SETUPS: (&str, &str) = (
    "reference/ns3/s2_setup.csv",
    include_str!("../../../../reference/ns3/s2_setup.csv"),
);

const NS3_TCP: Overlay = Overlay {
    label: "ns-3 3.37 TCP",
    like: Some(TCP),
    table: RUNS,
    rows: &[],
    x: ("ber", 1.0),
    y: "",
    half: None,
    n: Some("n"),
    statistic: Statistic::Mean,
    joined: false,
};

const NS3_UDP: Overlay = Overlay {
    label: "ns-3 3.37 UDP",
    like: Some(UDP),
    ..NS3_TCP
};

const IDEAL_ARQ: Overlay = Overlay {
    label: "ideal ARQ",
    like: None,
    table: IDEAL,
    rows: &[],
    x: ("rate", 1.0),
    y: "",
    half: None,
    n: None,
    statistic: Statistic::Mean,
    joined: true,
};

/// Rows of ns-3's table: protocol, latency, losses in both directions.
macro_rules! ns3 {
    ($protocol:literal, $latency:literal) => {
        &[
            ("protocol", $protocol),
            ("latency", $latency),
            ("lossy", "both"),
        ]
    };
}

macro_rules! runs {
    ($latency:literal, $column:literal, $half:expr, $statistic:expr) => {
        [
            Overlay {
                rows: ns3!("newreno", $latency),
                y: $column,
                half: $half,
                statistic: $statistic,
                ..NS3_TCP
            },
            Overlay {
                rows: ns3!("udp", $latency),
                y: $column,
                half: $half,
                statistic: $statistic,
                ..NS3_UDP
            },
        ]
    };
}

macro_rules! ideal {
    ($unit:literal, $latency:literal, $column:literal, $statistic:expr) => {
        Overlay {
            rows: &[("unit", $unit), ("latency", $latency)],
            y: $column,
            statistic: $statistic,
            ..IDEAL_ARQ
        }
    };
}

const fn and(runs: [Overlay; 2], third: Overlay) -> [Overlay; 3] {
    let [first, second] = runs;
    [first, second, third]
}

pub(super) const GOODPUT: &[Overlay] =
    &runs!("10us", "goodput_bps_median", None, Statistic::Median);
pub(super) const GOODPUT_LATE: &[Overlay] =
    &runs!("10ms", "goodput_bps_median", None, Statistic::Median);
pub(super) const DELAY: &[Overlay] = &and(
    runs!("10us", "delay_s_median", None, Statistic::Median),
    ideal!("bit", "10us", "mean_delay_s", Statistic::Median),
);
pub(super) const DELAY_LATE: &[Overlay] = &and(
    runs!("10ms", "delay_s_median", None, Statistic::Median),
    ideal!("bit", "10ms", "mean_delay_s", Statistic::Median),
);
pub(super) const DELIVERED: &[Overlay] = &runs!(
    "10us",
    "delivered_bytes_mean",
    Some("delivered_bytes_ci95"),
    Statistic::Mean
);
pub(super) const DELIVERED_LATE: &[Overlay] = &runs!(
    "10ms",
    "delivered_bytes_mean",
    Some("delivered_bytes_ci95"),
    Statistic::Mean
);
pub(super) const OVERHEAD: &[Overlay] = &and(
    runs!(
        "10us",
        "overhead_bytes_mean",
        Some("overhead_bytes_ci95"),
        Statistic::Mean
    ),
    ideal!("bit", "10us", "link_bytes_overhead", Statistic::Mean),
);
pub(super) const OVERHEAD_LATE: &[Overlay] = &and(
    runs!(
        "10ms",
        "overhead_bytes_mean",
        Some("overhead_bytes_ci95"),
        Statistic::Mean
    ),
    ideal!("bit", "10ms", "link_bytes_overhead", Statistic::Mean),
);

pub(super) const IDEAL_DELAY: &[Overlay] =
    &[ideal!("bit", "10us", "mean_delay_s", Statistic::Median)];
pub(super) const IDEAL_DELAY_OCTET: &[Overlay] =
    &[ideal!("byte", "10us", "mean_delay_s", Statistic::Median)];
pub(super) const IDEAL_DELAY_OCTET_LATE: &[Overlay] =
    &[ideal!("byte", "10ms", "mean_delay_s", Statistic::Median)];
pub(super) const IDEAL_OVERHEAD: &[Overlay] = &[ideal!(
    "bit",
    "10us",
    "link_bytes_overhead",
    Statistic::Mean
)];
pub(super) const IDEAL_OVERHEAD_OCTET: &[Overlay] = &[ideal!(
    "byte",
    "10us",
    "link_bytes_overhead",
    Statistic::Mean
)];

/// Points of set-up: the TCP that fits the paper, and UDP's first packet.
pub(super) const SETUP: &[Overlay] = &[
    Overlay {
        label: "ns-3 3.37 TCP",
        like: Some(SETUP_TCP),
        table: SETUPS,
        rows: &[
            ("variant", "conn3s-iw1-minrto3s"),
            ("app", "onoff"),
            ("lossy", "both"),
        ],
        x: ("loss", 0.01),
        y: "t_first_data_app_mean_s",
        half: Some("ci95"),
        ..NS3_TCP
    },
    Overlay {
        label: "ns-3 3.37 UDP",
        like: Some(SETUP_AEROTP),
        table: SETUPS,
        rows: &[("variant", "udp-cbr")],
        x: ("loss", 0.01),
        y: "t_first_data_app_mean_s",
        half: Some("ci95"),
        ..NS3_TCP
    },
];

/// AeroTP's set-up as section IV.A describes it in words.
pub(super) const SETUP_PAPER: &[Overlay] = &[Overlay {
    label: "the paper's text",
    like: None,
    table: ("section IV.A", "loss,seconds\n0,0.0092\n20,0.0101\n"),
    rows: &[],
    x: ("loss", 1.0),
    y: "seconds",
    half: None,
    n: None,
    statistic: Statistic::Mean,
    joined: false,
}];
