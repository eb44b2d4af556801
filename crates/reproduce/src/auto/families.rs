//! The runs, and their measures.

use crate::family::{Family, FamilyLine};
use crate::measure::{Measure, Quantity, Statistic};
use crate::parameter::{Axis, AxisUnit, SweptParameter, ValueName};

const THIN_FILE: (&str, &str) = (
    "scenarios/thin-flow.toml",
    include_str!("../../../../scenarios/thin-flow.toml"),
);
const BESIDE_FILE: (&str, &str) = (
    "scenarios/messages-beside-bulk.toml",
    include_str!("../../../../scenarios/messages-beside-bulk.toml"),
);

const THIN_CONDITIONS: &str = "5,000 messages of 1200 octets, one every 20 ms, over 10 Mbit/s and 20 ms one way, lost both ways.";

pub(super) const P99: Measure = Measure {
    name: "delay_p99_s",
    unit: 1e-3,
    unit_name: AxisUnit::MS,
    label: "99 of 100 messages are read within",
    statistic: Statistic::Mean,
    quantity: Quantity::Other,
};

/// The octets that the sender's machine puts on the wire, headers and its answers included.
pub(super) const OCTETS: Measure = Measure {
    name: "sent_per_byte",
    unit: 1.0,
    unit_name: AxisUnit::NONE,
    label: "octets sent for one of message",
    statistic: Statistic::Mean,
    quantity: Quantity::Other,
};

pub(super) const IN_TIME: Measure = Measure {
    name: "in_time",
    unit: 0.01,
    unit_name: AxisUnit::PERCENT,
    label: "in time",
    statistic: Statistic::Mean,
    quantity: Quantity::Other,
};

pub(super) const GOODPUT: Measure = Measure {
    name: "goodput_bps",
    unit: 1e6,
    unit_name: AxisUnit::MBIT_PER_S,
    label: "goodput",
    statistic: Statistic::Mean,
    quantity: Quantity::Other,
};

pub(super) const NOTHING_AHEAD: &str = "nothing sent twice";
pub(super) const NO_GOAL: &str = "no goal";
pub(super) const DUE_80: &str = "80 ms";
pub(super) const DUE_90: &str = "90 ms";

pub(super) const THIN: Family = Family {
    id: "thin",
    scenario: THIN_FILE,
    sets: &[],
    x: SweptParameter::numbers(
        "hop.loss",
        &["0", "5", "10", "20", "30"],
        "{}%",
        Axis::linear("loss", AxisUnit::PERCENT),
    ),
    lines: &[
        FamilyLine::of(NOTHING_AHEAD, &["flow.overhead=0%"]),
        FamilyLine::of(NO_GOAL, &[]),
        FamilyLine::of(
            DUE_80,
            &[
                "flow.deadline=80ms",
                "flow.deliver=all",
                "flow.overhead=40%",
            ],
        ),
        FamilyLine::of(DUE_90, &["flow.deadline=90ms", "flow.deliver=all"]),
    ],
    conditions: THIN_CONDITIONS,
};

pub(super) const EVEN_10: &str = "10";
pub(super) const EVEN_30: &str = "30";
pub(super) const ON_OFF: &str = "on-off";

const LINKS: &[ValueName] = &[
    ValueName {
        id: EVEN_10,
        written: "10%",
        label: "10 %",
    },
    ValueName {
        id: EVEN_30,
        written: "30%",
        label: "30 %",
    },
    ValueName {
        id: ON_OFF,
        written: "on-off 50% period 100ms",
        label: "25 and 75 %",
    },
];

pub(super) const ANY_ORDER: &str = "auto";
/// The fixed settings beside `auto`.
pub(super) const FIXED: [&str; 5] = [
    "nack-mack",
    "all twice",
    "all three times",
    "parity 4+4",
    "parity 10+5",
];

const DUE_LINES: &[FamilyLine] = &[
    FamilyLine::of(ANY_ORDER, &["flow.order=any"]),
    FamilyLine::of(FIXED[0], &["flow.mode=nack-mack", "flow.sealed=true"]),
    FamilyLine::of(
        FIXED[1],
        &["flow.mode=unreliable", "flow.copies=2", "flow.sealed=true"],
    ),
    FamilyLine::of(
        FIXED[2],
        &["flow.mode=unreliable", "flow.copies=3", "flow.sealed=true"],
    ),
    FamilyLine::of(
        FIXED[3],
        &[
            "flow.mode=quasi-reliable",
            "flow.fec_block=4+4",
            "flow.sealed=true",
        ],
    ),
    FamilyLine::of(
        FIXED[4],
        &[
            "flow.mode=quasi-reliable",
            "flow.fec_block=10+5",
            "flow.sealed=true",
        ],
    ),
];

/// Messages that are due so long after they are written, over three links.
const fn due(id: &'static str, sets: &'static [&'static str]) -> Family {
    Family {
        id,
        scenario: THIN_FILE,
        sets,
        x: SweptParameter::names("hop.loss", LINKS, "loss"),
        lines: DUE_LINES,
        conditions: "5,000 messages of 1200 octets, one every 20 ms, over 10 Mbit/s and 20 ms one way, lost both ways: evenly, or 25 and 75 % in turn, 100 ms each. \
            With auto they come in any order, and late ones are given up.",
    }
}

pub(super) const DUE_150: Family = due("due-150", &["flow.deadline=150ms"]);
pub(super) const DUE_300: Family = due("due-300", &["flow.deadline=300ms"]);

pub(super) const MESSAGES_ALONE: &str = "messages alone";
pub(super) const MESSAGES_BESIDE: &str = "messages beside bulk";
pub(super) const BULK_ALONE: &str = "bulk alone";
pub(super) const BULK_BESIDE: &str = "bulk beside messages";

pub(super) const BESIDE: Family = Family {
    id: "beside-bulk",
    scenario: BESIDE_FILE,
    sets: &[],
    x: SweptParameter::numbers(
        "hop.loss",
        &["0", "10", "30"],
        "{}%",
        Axis::linear("loss", AxisUnit::PERCENT),
    ),
    lines: &[
        FamilyLine::of(
            MESSAGES_ALONE,
            &["flow.1.measured=false", "flow.1.bytes=1B"],
        ),
        FamilyLine::of(MESSAGES_BESIDE, &["flow.1.measured=false"]),
        FamilyLine::of(
            BULK_ALONE,
            &[
                "flow.0.measured=false",
                "flow.0.bytes=1B",
                "flow.1.bytes=20MB",
            ],
        ),
        FamilyLine::of(BULK_BESIDE, &["flow.0.measured=false", "flow.1.bytes=20MB"]),
    ],
    conditions: "2,000 messages of 1200 octets, one every 20 ms, without a goal; bulk of 60 MB, or of 20 MB where bulk is measured; both to the same peer, over 10 Mbit/s and 20 ms one way.",
};
