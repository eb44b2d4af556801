//! The paper's Table 1 and the tables of the experiments.

use super::families::{AEROTP, ALL, FOUR, GBN};
use crate::exhibit::{Cells, Exhibit, ExhibitColumn};
use crate::measure::{Measure, Quantity, Statistic};
use crate::overlay::Overlay;
use crate::parameter::AxisUnit;

pub(super) const SHARE: Measure = Measure {
    name: "goodput_bps",
    unit: 622e6,
    unit_name: AxisUnit::SHARE_OF_LINK,
    label: "goodput",
    statistic: Statistic::Mean,
    quantity: Quantity::Goodput,
};

/// The way back's share of the link: its octets in 2 s.
const BACK: Measure = Measure {
    name: "wire_bytes.control",
    unit: 622e6 / 8.0 * 2.0,
    label: "back channel",
    quantity: Quantity::Other,
    ..SHARE
};

const TIMEOUT_COUNT: Measure = Measure {
    name: "timeouts",
    unit: 1.0,
    unit_name: AxisUnit::of("a run", "a"),
    label: "timeouts",
    statistic: Statistic::Mean,
    quantity: Quantity::Other,
};

/// A column of the paper's Table 1, of one scenario.
pub(super) const fn published(
    label: &'static str,
    like: Option<&'static str>,
    scenario: &'static [(&'static str, &'static str)],
    y: &'static str,
) -> Overlay {
    Overlay {
        label,
        like,
        table: (
            "reference/fso_table1.csv",
            include_str!("../../../../reference/fso_table1.csv"),
        ),
        rows: scenario,
        x: ("packet_bytes", 1.0),
        y,
        half: None,
        n: None,
        statistic: Statistic::Mean,
        joined: false,
    }
}

/// A column of the paper's Table 1, for each of our families.
macro_rules! columns {
    ($column:literal) => {
        columns!(
            $column,
            "awgn-testbed",
            "awgn-kiodo",
            "testbed",
            "atenaa",
            "fasolt",
            "kiodo"
        )
    };
    ($column:literal, $($id:literal),+) => {
        &[$(($id, published("", None, &[("scenario", $id)], $column))),+]
    };
}

pub(super) const TABLE_1: Exhibit = Exhibit {
    id: "table-1",
    title: "Table 1",
    intro: "Goodput as a share of the link beside the paper's simulations, and what acknowledgements take of the way back. Rows by packet length: user \
        data and 40 octets. The last column has no counterpart in the paper's table.",
    cells: Cells::Rows {
        families: &[
            ("awgn-testbed", "AWGN testbed"),
            ("awgn-kiodo", "AWGN KIODO"),
            ("testbed", "testbed"),
            ("atenaa", "ATENAA"),
            ("fasolt", "FASOLT"),
            ("kiodo", "KIODO"),
        ],
        columns: &[
            ExhibitColumn {
                caption: "go-back-N",
                line: GBN,
                measure: SHARE,
                published: columns!("gbn_sim_bps"),
            },
            ExhibitColumn {
                caption: "four blocks",
                line: FOUR,
                measure: SHARE,
                published: columns!("sr_sim_bps"),
            },
            ExhibitColumn {
                caption: "way back, go-back-N",
                line: GBN,
                measure: BACK,
                published: columns!("backchannel_gbn_bytes"),
            },
            ExhibitColumn {
                caption: "way back, four blocks",
                line: FOUR,
                measure: BACK,
                published: columns!("backchannel_sr_bytes"),
            },
            ExhibitColumn {
                caption: "TCP, every block",
                line: ALL,
                measure: SHARE,
                published: &[],
            },
            ExhibitColumn {
                caption: "AeroTP, every block",
                line: AEROTP,
                measure: SHARE,
                published: &[],
            },
        ],
    },
};

const FEATURE_FAMILIES: &[(&str, &str)] = &[
    ("features-testbed", "testbed"),
    ("features-atenaa", "ATENAA"),
    ("features-fasolt", "FASOLT"),
    ("features-kiodo", "KIODO, rising"),
    ("features-setting", "KIODO, setting"),
    ("features-clean", "KIODO, setting, no errors"),
];

pub(super) const FEATURES: Exhibit = Exhibit {
    id: "features",
    title: "Timeouts, timestamps, congestion control, SNACK, repetition beforehand: goodput",
    intro: "Packets of 1040 octets; the first four are TCP as a go-back-N. UDP offers 250 Mbit/s of user data, once or twice. Share of the link.",
    cells: Cells::Heat {
        families: FEATURE_FAMILIES,
        measure: SHARE,
    },
};

pub(super) const STAMPS: Exhibit = Exhibit {
    id: "stamps",
    title: "Timestamps and timeouts, eight courses of each channel: goodput",
    intro: "Packets of 1040 octets, go-back-N; ATENAA with a jitter of up to 2 us. Share of the link.",
    cells: Cells::Heat {
        families: &[
            ("stamps-testbed", "testbed"),
            ("stamps-atenaa", "ATENAA"),
            ("stamps-fasolt", "FASOLT"),
            ("stamps-kiodo", "KIODO, rising"),
            ("stamps-setting", "KIODO, setting"),
        ],
        measure: SHARE,
    },
};

pub(super) const TIMEOUTS: Exhibit = Exhibit {
    id: "timeouts",
    title: "The same: timeouts",
    intro: "How often a retransmission timer ended, in 2 s.",
    cells: Cells::Heat {
        families: FEATURE_FAMILIES,
        measure: TIMEOUT_COUNT,
    },
};

pub(super) const CONTROLS: Exhibit = Exhibit {
    id: "control",
    title: "Congestion control where errors lie evenly",
    intro: "FASOLT's distance, packets of 1040 octets, laws of 50 ms scaled to 1e-6. Share of the link.",
    cells: Cells::Heat {
        families: &[("control", "FASOLT's distance")],
        measure: SHARE,
    },
};

pub(super) const ROUGH: Exhibit = Exhibit {
    id: "rough",
    title: "Fixed and adaptive at a long-term bit error rate of 1e-4",
    intro: "Packets of 1540 octets at most. Share of the link.",
    cells: Cells::Heat {
        families: &[
            ("rough-testbed", "testbed"),
            ("rough-atenaa", "ATENAA"),
            ("rough-fasolt", "FASOLT"),
            ("rough-kiodo", "KIODO"),
        ],
        measure: SHARE,
    },
};
