//! The figures of the slides, and of our experiments on them.

use super::families::{BOTH_WAYS, CHAIN, HOP, LIGHT_CHAIN, SATURATED, SATURATED_100};
use super::granulation::GRANULATION;
use super::published::{
    GOODPUT, LATENCY, LINK_GOODPUT, PUBLISHED_ARQ, PUBLISHED_GOODPUT, PUBLISHED_HARQ,
    PUBLISHED_LATENCY, PUBLISHED_LINK_GOODPUT, PUBLISHED_RESIDUAL, RESIDUAL, ROUND_TRIP,
};
use crate::family::Family;
use crate::figure::Figure;
use crate::measure::Measure;

const fn figure(
    id: &'static str,
    place: &'static str,
    title: &'static str,
    family: &Family,
    measure: Measure,
) -> Figure {
    Figure {
        id,
        place,
        title,
        family: family.id,
        measure,
        bounds: &[],
        overlays: &[],
        logarithmic: false,
    }
}

pub(super) const LINK_FIGURES: [Figure; 5] = [
    figure(
        "saturated-latency",
        "Slide \"Link level goodput\", table",
        "Latency of a saturated hop",
        &SATURATED,
        LATENCY,
    )
    .overlaid(&[PUBLISHED_ARQ, PUBLISHED_HARQ]),
    figure(
        "saturated-latency-100",
        "The same",
        "Latency with ON and OFF of 100 ms",
        &SATURATED_100,
        LATENCY,
    )
    .overlaid(&[PUBLISHED_ARQ, PUBLISHED_HARQ]),
    figure(
        "saturated-goodput",
        "Slide \"Link level goodput\"",
        "Goodput of a saturated hop",
        &SATURATED,
        LINK_GOODPUT,
    ),
    figure(
        "saturated-residual",
        "Slide \"Protocol objectives\"",
        "Residual loss of a saturated hop",
        &SATURATED,
        RESIDUAL,
    ),
    figure(
        "granulation-goodput",
        "Slide \"Building blocks\"",
        "Goodput of a saturated hop by the parts of a packet",
        &GRANULATION,
        LINK_GOODPUT,
    ),
];

pub(super) const CHAIN_FIGURES: [Figure; 5] = [
    figure(
        "chain-goodput",
        "Slide \"PER v/s TCP goodput\", Table I",
        "Receiver goodput, four hops",
        &CHAIN,
        GOODPUT,
    )
    .overlaid(&[PUBLISHED_GOODPUT]),
    figure(
        "chain-link-goodput",
        "Table I",
        "Link goodput, four hops",
        &CHAIN,
        LINK_GOODPUT,
    )
    .overlaid(&[PUBLISHED_LINK_GOODPUT]),
    figure(
        "chain-residual",
        "Table I",
        "Residual loss of a hop, four hops",
        &CHAIN,
        RESIDUAL,
    )
    .overlaid(&[PUBLISHED_RESIDUAL]),
    figure(
        "chain-latency",
        "Table I",
        "Latency of a hop, four hops",
        &CHAIN,
        LATENCY,
    )
    .overlaid(&[PUBLISHED_LATENCY]),
    figure(
        "chain-round-trip",
        "Slide \"End-end delay\"",
        "Round trip over four hops, queues included",
        &CHAIN,
        ROUND_TRIP,
    ),
];

pub(super) const HOP_FIGURES: [Figure; 5] = [
    figure(
        "hop-goodput",
        "One hop",
        "Receiver goodput, one hop",
        &HOP,
        GOODPUT,
    ),
    figure(
        "hop-link-goodput",
        "Slide \"Link level goodput\"",
        "Link goodput, one hop",
        &HOP,
        LINK_GOODPUT,
    ),
    figure(
        "hop-residual",
        "One hop",
        "Residual loss, one hop",
        &HOP,
        RESIDUAL,
    ),
    figure(
        "hop-latency",
        "One hop",
        "Latency of the hop",
        &HOP,
        LATENCY,
    ),
    figure(
        "hop-round-trip",
        "One hop",
        "Round trip over one hop, queue included",
        &HOP,
        ROUND_TRIP,
    ),
];

pub(super) const WHY_FIGURES: [Figure; 3] = [
    figure(
        "light-goodput",
        "Table I, otherwise",
        "Receiver goodput with less parity",
        &LIGHT_CHAIN,
        GOODPUT,
    )
    .overlaid(&[PUBLISHED_GOODPUT]),
    figure(
        "light-latency",
        "Table I, otherwise",
        "Latency of a hop with less parity",
        &LIGHT_CHAIN,
        LATENCY,
    )
    .overlaid(&[PUBLISHED_LATENCY]),
    figure(
        "both-ways-goodput",
        "Errors both ways",
        "Receiver goodput with errors on the way back too",
        &BOTH_WAYS,
        GOODPUT,
    ),
];
