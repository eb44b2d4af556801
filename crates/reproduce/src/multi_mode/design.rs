//! Runs on claims of sections I to III about TCP and AeroTP's design, for which the paper has no figure.

use super::strength::{AMOUNT_FIGURE, parity_words};
use super::tables::aerotp;
use crate::airborne::{BIT_ERROR_RATE, DELIVERED, GOODPUT, LAST, OVERHEAD, SCENARIO};
use crate::family::{Family, FamilyLine};
use crate::figure::Figure;
use crate::measure::Measure;
use crate::parameter::{Axis, AxisUnit, SweptParameter};

pub(super) const RAMP: &str = "slow-start";
pub(super) const OUTAGE: &str = "outage";
pub(super) const PACKED: &str = "full-packets";

pub(super) const RAMP_10: &str = "TCP initial window 10";
pub(super) const RAMP_PLAIN: &str = "TCP without timestamps";
pub(super) const RAMP_1: &str = "TCP initial window 1";
pub(super) const RAMP_AEROTP: &str = "AeroTP reliable";

pub(super) const OUTAGE_TCP: &str = "TCP NewReno";
pub(super) const MOMENTS: &str = "outage-moment";
pub(super) const OUTAGE_UNCONTROLLED: &str = "TCP no congestion control";
pub(super) const OUTAGE_AEROTP: &str = "AeroTP reliable";

pub(super) const FEEDBACK: &str = "feedback";
pub(super) const FEEDBACK_PARITY: &str = "near-reliable 32 words";

pub(super) const REPORTS: &str = "reports";
pub(super) const REPORTS_ONE: &str = "1 MB";
pub(super) const REPORTS_TWO: &str = "2 MB";

pub(super) const FULL: &str = "full packets";
pub(super) const WRITES: &str = "writes of 1472 octets";

/// Short transfers over a long round trip.
pub(crate) const RAMP_FAMILY: Family = Family {
    id: RAMP,
    scenario: SCENARIO,
    sets: &[
        "flow.traffic=bulk",
        "hop.delay=50ms",
        "hop.jitter=1ms",
        "run.runs=10",
    ],
    x: SweptParameter::numbers(
        "flow.bytes",
        &["15", "50", "150", "500", "1500", "5000"],
        "{}kB",
        Axis::logarithmic("data to send", AxisUnit::KB),
    ),
    lines: &[
        FamilyLine::of(RAMP_10, &[]),
        FamilyLine::of(RAMP_1, &["tcp.initial_window=1"]),
        FamilyLine::of(RAMP_PLAIN, &["tcp.timestamps=false"]),
        aerotp!(RAMP_AEROTP, "flow.mode=reliable"),
    ],
    conditions: "As much as the axis says, as fast as the transport can, over 5 Mbit/s with 50 ms, up to 1 ms of \
        jitter by chance, and no errors. The goodput counts from the request to connect on.",
};

/// 1 MB with the link gone for a while.
pub(crate) const OUTAGE_FAMILY: Family = Family {
    id: OUTAGE,
    sets: &["run.duration=1000s", "hop.jitter=10us", "run.runs=10"],
    x: SweptParameter::numbers(
        "hop.outages",
        &["0.1", "0.3", "1", "3", "10", "30", "100", "200"],
        "0.5s+{}s",
        Axis::logarithmic("length of the outage", AxisUnit::S),
    ),
    lines: &[
        FamilyLine::of(OUTAGE_TCP, &[]),
        aerotp!(
            OUTAGE_AEROTP,
            "flow.mode=reliable",
            "flow.give_up_after=1000s"
        ),
    ],
    conditions: "1 MB as in Figures 21-24 without errors, and the lossy link gone from 0.5 s on, for as long as the axis \
        says. TCP gives up after 6 repeats of a segment, as in ns-3; AeroTP is told to be patient.",
    ..RAMP_FAMILY
};

/// The starts of transfers whose link is gone from 2 s on.
pub(super) const STARTS: &[&str] = &[
    "0.3", "0.45", "0.6", "0.75", "0.9", "1.05", "1.2", "1.35", "1.5", "1.65",
];

/// 1 MB with the link gone for a second, sooner or later in the transfer.
pub(crate) const MOMENT_FAMILY: Family = Family {
    id: MOMENTS,
    sets: &["hop.outages=2s+1s", "hop.jitter=10us", "run.runs=10"],
    x: SweptParameter::numbers(
        "flow.start",
        STARTS,
        "{}s",
        Axis::linear(
            "start of the transfer, with an outage from 2 s to 3 s",
            AxisUnit::S,
        ),
    ),
    lines: &[
        FamilyLine::of(OUTAGE_TCP, &[]),
        FamilyLine::of(OUTAGE_UNCONTROLLED, &["tcp.congestion=none"]),
        aerotp!(OUTAGE_AEROTP, "flow.mode=reliable"),
    ],
    conditions: "1 MB as in Figures 21-24 without errors; the link is gone from 2 s to 3 s. Without congestion control TCP sends what \
        the receiver's window allows.",
    ..RAMP_FAMILY
};

/// Packets of 1500 octets, the last included.
pub(super) const PACKED_FAMILY: Family = Family {
    id: PACKED,
    sets: &["hop.jitter=10us", "run.runs=10"],
    x: parity_words(&["0", "8", "16", "32", "64", "96", "128", "256"]),
    lines: &[
        aerotp!(FULL, "flow.mode=quasi-reliable", "flow.traffic=bulk"),
        aerotp!(WRITES, "flow.mode=quasi-reliable"),
    ],
    conditions: "1 MB in quasi-reliable mode without errors, once as fast as the transport can, which makes every packet \
        full, and once in the writes of Figures 13-20, of which weak strengths leave a small packet behind each.",
    ..RAMP_FAMILY
};

/// The feedback of near-reliable receivers, with and without parity.
pub(super) const FEEDBACK_FAMILY: Family = Family {
    id: FEEDBACK,
    sets: &[],
    x: BIT_ERROR_RATE,
    lines: &[
        aerotp!("reliable", "flow.mode=reliable"),
        aerotp!("near-reliable", "flow.mode=near-reliable"),
        aerotp!(
            FEEDBACK_PARITY,
            "flow.mode=near-reliable",
            "flow.fec_words=32"
        ),
    ],
    conditions: "The reliable and the near-reliable mode of Figures 21-24, and the latter with parity that leaves little to \
        ask for.",
    ..RAMP_FAMILY
};

/// The octets on the way back in quasi-reliable mode, by the length of a transfer.
pub(super) const REPORTS_FAMILY: Family = Family {
    id: REPORTS,
    sets: &["hop.jitter=10us", "run.runs=10"],
    x: SweptParameter::numbers(
        "flow.rate",
        &["0.552", "1.104", "2.208", "3.312", "4.416"],
        "{}mbit",
        Axis::linear("rate of the source", AxisUnit::MBIT_PER_S),
    ),
    lines: &[
        aerotp!(REPORTS_ONE, "flow.mode=quasi-reliable", "flow.fec_words=32"),
        aerotp!(
            REPORTS_TWO,
            "flow.mode=quasi-reliable",
            "flow.fec_words=32",
            "flow.bytes=2MB"
        ),
    ],
    conditions: "The quasi-reliable mode of Figures 13-20 with 32 words and without errors, for sources of five rates: the \
        slower, the longer it takes.",
    ..RAMP_FAMILY
};

const CONTROL: Measure = Measure {
    name: "wire_bytes.control",
    label: "control packets, both ways",
    ..OVERHEAD
};

const AGAIN: Measure = Measure {
    name: "wire_bytes.retransmission",
    label: "sent again",
    ..OVERHEAD
};

pub(crate) const RAMP_GOODPUT: Figure = Figure::of(
    "ramp-goodput",
    "Experiment on section II.A",
    "Goodput of short transfers, 50 ms one way",
    &RAMP_FAMILY,
    GOODPUT,
);

pub(crate) const OUTAGE_DELIVERED: Figure = Figure::of(
    "outage-delivered",
    "Experiment on section II.A",
    "Delivered data with an outage",
    &OUTAGE_FAMILY,
    DELIVERED,
);

pub(crate) const OUTAGE_LAST: Figure = Figure::of(
    "outage-last",
    "Experiment on section II.A",
    "Last delivery with an outage; before it, if the connection is given up",
    &OUTAGE_FAMILY,
    LAST,
)
.logarithmic();

pub(crate) const OUTAGE_AGAIN: Figure = Figure::of(
    "outage-again",
    "Experiment on section II.A",
    "What an outage of 1 s has sent again, by the moment",
    &MOMENT_FAMILY,
    AGAIN,
);

pub(super) const TCP_FIGURES: [Figure; 4] =
    [RAMP_GOODPUT, OUTAGE_DELIVERED, OUTAGE_LAST, OUTAGE_AGAIN];

pub(super) const FIGURES: [Figure; 2] = [
    Figure::of(
        "feedback-control",
        "Our experiment on section III.D",
        "Control octets of the near-reliable mode, with and without parity",
        &FEEDBACK_FAMILY,
        CONTROL,
    )
    .logarithmic(),
    Figure::of(
        "reports-control",
        "Our experiment on section III.D",
        "Control octets of the quasi-reliable mode by the rate of its source",
        &REPORTS_FAMILY,
        CONTROL,
    ),
];

pub(super) const PACKED_FIGURES: [Figure; 2] = [
    Figure::of(
        "packed-overhead",
        "Our experiment on Figure 20",
        "Overhead against the FEC strength, with full packets and with the source's writes",
        &PACKED_FAMILY,
        OVERHEAD,
    ),
    AMOUNT_FIGURE,
];
