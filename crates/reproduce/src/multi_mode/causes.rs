//! Experiments of ours that show why a claim does not come out, or comes out otherwise.

use super::overlays;
use super::strength::PARITY_WORDS;
use super::tables::{SETUP_FAMILY, aerotp};
use crate::airborne::{
    BIT_ERROR_RATE, DELAY, DELIVERED, FIRST_ARRIVAL, GOODPUT, OVERHEAD, SCENARIO,
};
use crate::family::{Family, FamilyLine};
use crate::figure::Figure;
use crate::measure::Statistic;
use crate::overlay::Overlay;

/// Sources of other rates, and the code that keeps packets from being lost.
pub(super) const QUEUES: &str = "queue";
pub(super) const TCPS: &str = "tcp";
pub(super) const GAPS: &str = "setup-interval";

pub(super) const AS_NS3: &str = "NewReno as in ns-3";
pub(super) const SACK: &str = "NewReno with SACK";
pub(super) const UNCONTROLLED: &str = "no control with SACK";
pub(super) const PATIENT: &str = "never gives up 1000 s";
pub(super) const SPLIT: &str = "split at gateways";
pub(super) const QUICK: &str = "timer from 0.2 s";
pub(super) const CUT: &str = "cut off at 10 s";
pub(super) const GAP_PAPER: &str = "AeroTP 333 writes/s";

pub(super) const TIMERS: &str = "setup-timers";
pub(super) const TIMERS_EVEN: &str = "TCP timers stay at 3 s";

pub(super) const HOLES: &str = "holes";
pub(super) const HOLES_PLAIN: &str = "0 words no wait";
pub(super) const HOLES_PARITY: &str = "32 words no wait";

pub(super) const SLOW: &str = "1.2 Mbit/s";
pub(super) const SLOWER: &str = "0.4 Mbit/s";
pub(super) const SLOW_PARITY: &str = "0.4 and 32 words";

pub(super) const SLACK: &str = "slack";
pub(super) const SLACK_SLOW: &str = "1.2 Mbit/s no wait";

/// The reliable mode's queue.
pub(super) const QUEUE_FAMILY: Family = Family {
    id: QUEUES,
    lines: &[
        aerotp!("4.416 Mbit/s", "flow.mode=reliable"),
        aerotp!(SLOW, "flow.mode=reliable", "flow.rate=1.2mbit"),
        aerotp!(SLOWER, "flow.mode=reliable", "flow.rate=0.4mbit"),
        aerotp!(
            SLOW_PARITY,
            "flow.mode=reliable",
            "flow.rate=0.4mbit",
            "flow.fec_words=32"
        ),
        aerotp!(
            "4.416 and 32 words",
            "flow.mode=reliable",
            "flow.fec_words=32"
        ),
    ],
    conditions: "The reliable mode of Figures 21-24 with sources of three rates. At 1e-4 the link carries 1.5 Mbit/s \
        in packets that arrive whole.",
    ..HOLE_FAMILY
};

/// The choices of a TCP, and the parts of its curves that they make.
pub(crate) const TCP_FAMILY: Family = Family {
    id: TCPS,
    lines: &[
        FamilyLine::of(AS_NS3, &[]),
        FamilyLine::of(SACK, &["tcp.sack=true"]),
        FamilyLine::of(UNCONTROLLED, &["tcp.sack=true", "tcp.congestion=none"]),
        FamilyLine::of(QUICK, &["tcp.rto_min=200ms"]),
        FamilyLine::of(PATIENT, &["tcp.data_retries=100", "run.duration=1000s"]),
        FamilyLine::of(CUT, &["run.duration=10s"]),
        aerotp!(SPLIT, "flow.transport=gateway", "flow.mode=near-reliable"),
    ],
    conditions: "The TCP of Figures 21-24, one thing changed at a time: SACK; no congestion control, a window of \
        what the receiver offers; a timer as short as the wait of delayed acknowledgements; no end of repeats, and \
        1000 s; cut off at 10 s; the connection split at two gateways, with AeroTP's near-reliable mode between.",
    ..HOLE_FAMILY
};

/// Whether the quasi-reliable mode waits for missing data.
pub(super) const HOLE_FAMILY: Family = Family {
    id: HOLES,
    scenario: SCENARIO,
    sets: &[],
    x: BIT_ERROR_RATE,
    lines: &[
        aerotp!(
            "0 words waits 20 ms",
            "flow.mode=quasi-reliable",
            "flow.fec_words=0"
        ),
        aerotp!(
            HOLES_PLAIN,
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
            HOLES_PARITY,
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

/// Whether strong parity has room on the link.
pub(super) const SLACK_FAMILY: Family = Family {
    id: SLACK,
    sets: &["hop.ber=1e-4"],
    x: PARITY_WORDS,
    lines: &[
        aerotp!("4.416 Mbit/s waits 20 ms", "flow.mode=quasi-reliable"),
        aerotp!(
            "4.416 Mbit/s no wait",
            "flow.mode=quasi-reliable",
            "flow.wait_lost=0s"
        ),
        aerotp!(
            "1.2 Mbit/s waits 20 ms",
            "flow.mode=quasi-reliable",
            "flow.rate=1.2mbit"
        ),
        aerotp!(
            SLACK_SLOW,
            "flow.mode=quasi-reliable",
            "flow.rate=1.2mbit",
            "flow.wait_lost=0s"
        ),
    ],
    conditions: "As Figure 18 at a bit error rate of 1e-4, with the source's rate and with one that leaves room for 256 words; \
        with and without waiting for holes.",
    ..HOLE_FAMILY
};

/// Whether TCP's timers double.
pub(super) const TIMER_FAMILY: Family = Family {
    id: TIMERS,
    lines: &[
        FamilyLine::of("TCP timers double", &[]),
        FamilyLine::of(TIMERS_EVEN, &["tcp.rto_max=3s"]),
    ],
    conditions: "TCP as in Figure 12, and with timers that stay at 3 s, however often they run out.",
    ..SETUP_FAMILY
};

/// The time between the source's packets.
pub(super) const GAP_FAMILY: Family = Family {
    id: GAPS,
    lines: &[
        FamilyLine::of(
            "AeroTP 375 writes/s",
            &[
                "flow.transport=aerotp",
                "flow.mode=reliable",
                "flow.first=after-interval",
                "flow.write=1400B",
                "flow.rate=4.2mbit",
            ],
        ),
        FamilyLine::of(
            GAP_PAPER,
            &[
                "flow.transport=aerotp",
                "flow.mode=reliable",
                "flow.first=after-interval",
                "flow.write=1400B",
                "flow.rate=3.7333mbit",
            ],
        ),
    ],
    conditions: "AeroTP as in Figure 12, with 2.67 ms and 3 ms from packet to packet.",
    ..SETUP_FAMILY
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

pub(super) const SETUP_FIGURES: [Figure; 2] = [
    Figure {
        logarithmic: false,
        ..Figure::of(
            "setup-interval",
            "Our experiment on Figure 12",
            "AeroTP's set-up with 2.67 ms and with 3 ms from packet to packet",
            &GAP_FAMILY,
            FIRST_ARRIVAL,
        )
        .overlaid(overlays::SETUP_PAPER)
    },
    Figure {
        logarithmic: false,
        ..Figure::of(
            "setup-timers",
            "Our experiment on Figure 12",
            "TCP's set-up with timers that double, and that do not",
            &TIMER_FAMILY,
            FIRST_ARRIVAL,
        )
    },
];

pub(super) const STRENGTH_FIGURES: [Figure; 3] = [
    Figure::of(
        "hole-delay",
        "Our experiment on Figures 14 and 18",
        "Delay of the quasi-reliable mode with and without waiting for holes",
        &HOLE_FAMILY,
        DELAY,
    ),
    Figure::of(
        "slack-delay",
        "Our experiment on Figure 18",
        "Delay against the FEC strength, with and without room on the link, at 1e-4",
        &SLACK_FAMILY,
        DELAY,
    ),
    Figure::of(
        "header-delivered",
        "Our experiment on Figures 13, 15 and 19",
        "Delivered data, and what a hit network header alone would leave",
        &HOLE_FAMILY,
        DELIVERED,
    )
    .overlaid(&[HEADERS_ALONE]),
];

pub(crate) const TCP_GOODPUT: Figure = Figure::of(
    "tcp-goodput",
    "Our experiment on Figure 21",
    "Goodput of TCP, one thing changed at a time",
    &TCP_FAMILY,
    GOODPUT,
);

pub(super) const BER_FIGURES: [Figure; 5] = [
    Figure::of(
        "queue-delay",
        "Our experiment on Figure 22",
        "Delay of the reliable mode by the rate of its source",
        &QUEUE_FAMILY,
        DELAY,
    )
    .overlaid(overlays::IDEAL_DELAY),
    TCP_GOODPUT,
    Figure::of(
        "tcp-delay",
        "Our experiment on Figure 22",
        "Delay of TCP, one thing changed at a time",
        &TCP_FAMILY,
        DELAY,
    )
    .overlaid(overlays::IDEAL_DELAY),
    Figure::of(
        "tcp-delivered",
        "Our experiment on Figure 23",
        "What TCP delivers, one thing changed at a time",
        &TCP_FAMILY,
        DELIVERED,
    ),
    Figure::of(
        "tcp-overhead",
        "Our experiment on Figure 24",
        "Overhead of TCP, one thing changed at a time",
        &TCP_FAMILY,
        OVERHEAD,
    )
    .overlaid(overlays::IDEAL_OVERHEAD)
    .logarithmic(),
];
