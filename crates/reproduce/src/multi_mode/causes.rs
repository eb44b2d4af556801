//! Experiments of ours that show why a claim does not come out, or comes out otherwise.

use crate::airborne::{DELAY, DELIVERED, RATES, SCENARIO};
use crate::overlay::Overlay;
use crate::paper::{Family, Figure, Line, Statistic};

const HOLES: &str = "holes";

macro_rules! aerotp {
    ($label:literal, $($set:literal),+) => {
        Line {
            label: $label,
            sets: &[
                "flow.transport=aerotp",
                "flow.first=after-interval",
                "hop.frame_check=false",
                $($set),+
            ],
        }
    };
}

/// Whether the quasi-reliable mode waits for what is missing.
pub(super) const HOLE_FAMILY: Family = Family {
    id: HOLES,
    scenario: SCENARIO,
    sets: &[],
    x_path: "hop.ber",
    x_values: RATES,
    x_label: "bit error rate",
    x_logarithmic: false,
    lines: &[
        aerotp!(
            "0 words waits 20 ms",
            "flow.mode=quasi-reliable",
            "flow.fec_words=0"
        ),
        aerotp!(
            "0 words no wait",
            "flow.mode=quasi-reliable",
            "flow.fec_words=0",
            "flow.wait_lost=0s"
        ),
        aerotp!(
            "32 words waits 20 ms",
            "flow.mode=quasi-reliable",
            "flow.fec_words=32"
        ),
        aerotp!(
            "32 words no wait",
            "flow.mode=quasi-reliable",
            "flow.fec_words=32",
            "flow.wait_lost=0s"
        ),
        aerotp!(
            "96 words waits 20 ms",
            "flow.mode=quasi-reliable",
            "flow.fec_words=96"
        ),
    ],
    conditions: "As the quasi-reliable mode above; without the wait, data behind a hole are delivered at once.",
};

const HEADERS_ALONE: Overlay = Overlay {
    label: "all but hit network headers",
    like: None,
    table: (
        "reference/network_header.csv",
        include_str!("../../../../reference/network_header.csv"),
    ),
    rows: &[("unit", "bit")],
    x: ("rate", 1.0),
    y: "delivered_bytes",
    half: None,
    n: None,
    statistic: Statistic::Mean,
    joined: true,
};

pub(super) const STRENGTH_FIGURES: [Figure; 2] = [
    Figure::of(
        "hole-delay",
        "our experiment on Figures 14 and 18",
        "Delay of the quasi-reliable mode with and without waiting for holes",
        &HOLE_FAMILY,
        DELAY,
    ),
    Figure::of(
        "header-delivered",
        "our experiment on Figures 13, 15 and 19",
        "Delivered data, and what a hit network header alone would leave",
        &HOLE_FAMILY,
        DELIVERED,
    )
    .overlaid(&[HEADERS_ALONE]),
];
