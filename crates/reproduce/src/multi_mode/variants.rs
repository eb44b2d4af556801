//! Figures 21-24 under the other readings of the conditions that the paper leaves open: latency, unit of
//! the error rate, stop time and send buffer; and with 20 MB.

use super::overlays;
use super::tables::{BER_PLACES, COMPARED, COMPARED_128K};
use crate::airborne::{BIT_ERROR_RATE, SCENARIO, four_figures, octet_error_rate, overlaid};
use crate::family::Family;
use crate::figure::Figure;
use crate::overlay::Overlay;

pub(super) const LATE: Family = Family {
    id: "ber-10ms",
    scenario: SCENARIO,
    sets: &["hop.delay=10ms", "run.runs=100"],
    x: BIT_ERROR_RATE,
    lines: &COMPARED,
    conditions: "As Figures 21-24, with a latency of 10 ms on the lossy link.",
};

pub(super) const OCTET: Family = Family {
    id: "ber-octet",
    sets: &[],
    x: octet_error_rate("error rate per octet"),
    conditions: "As Figures 21-24, with the error rate per octet: ns-3's default unit.",
    ..LATE
};

pub(super) const OCTET_SHORT: Family = Family {
    id: "ber-octet-10s",
    sets: &["run.duration=10s"],
    lines: &COMPARED_128K,
    conditions: "As Figures 21-24, with the error rate per octet, cut off at 10 s, with send buffers of 128 KiB.",
    ..OCTET
};

pub(super) const OCTET_SHORT_LATE: Family = Family {
    id: "ber-octet-10s-10ms",
    sets: &["run.duration=10s", "hop.delay=10ms"],
    conditions: "The same with a latency of 10 ms.",
    ..OCTET_SHORT
};

pub(super) const BULK: Family = Family {
    id: "ber-20mb",
    sets: &["flow.bytes=20MB", "run.duration=1000s", "run.runs=10"],
    conditions: "As Figures 21-24, with 20 MB, cut off at 1000 s.",
    ..LATE
};

const NONE: &[Overlay] = &[];
const IDEAL_PER_OCTET: [&[Overlay]; 4] = [
    NONE,
    overlays::IDEAL_DELAY_OCTET,
    NONE,
    overlays::IDEAL_OVERHEAD_OCTET,
];

pub(super) const LATE_FIGURES: [Figure; 4] = overlaid(
    four_figures!(LATE, BER_PLACES, "ber", "-10ms", ", 10 ms"),
    [
        overlays::GOODPUT_LATE,
        overlays::DELAY_LATE,
        overlays::DELIVERED_LATE,
        overlays::OVERHEAD_LATE,
    ],
);

pub(super) const OCTET_FIGURES: [Figure; 4] = overlaid(
    four_figures!(OCTET, BER_PLACES, "ber", "-octet", ", error rate per octet"),
    IDEAL_PER_OCTET,
);

pub(super) const OCTET_SHORT_FIGURES: [Figure; 4] = overlaid(
    four_figures!(
        OCTET_SHORT,
        BER_PLACES,
        "ber",
        "-octet-10s",
        ", error rate per octet, 10 s, 128 KiB"
    ),
    IDEAL_PER_OCTET,
);

pub(super) const OCTET_SHORT_LATE_FIGURES: [Figure; 4] = overlaid(
    four_figures!(
        OCTET_SHORT_LATE,
        BER_PLACES,
        "ber",
        "-octet-10s-10ms",
        ", error rate per octet, 10 s, 128 KiB, 10 ms"
    ),
    [
        NONE,
        overlays::IDEAL_DELAY_OCTET_LATE,
        NONE,
        overlays::IDEAL_OVERHEAD_OCTET,
    ],
);

pub(super) const BULK_FIGURES: [Figure; 4] =
    four_figures!(BULK, BER_PLACES, "ber", "-20mb", ", 20 MB");
