//! Every transport over every link layer, over three channels: our own experiment.

use super::published::GOODPUT;
use crate::exhibit::{Cells, Exhibit};
use crate::family::{Family, FamilyLine};
use crate::parameter::{SweptParameter, ValueName};

const fn layer(name: &'static str) -> ValueName {
    ValueName {
        id: name,
        written: name,
        label: name,
    }
}

const LAYERS: &[ValueName] = &[
    layer("plain"),
    layer("stop-and-wait"),
    layer("go-back-n"),
    layer("selective-repeat"),
    layer("ll-arq"),
    layer("ll-harq"),
    layer("slacp"),
];

const LINES: &[FamilyLine] = &[
    FamilyLine::of(
        "AeroTP reliable",
        &["flow.transport=aerotp", "flow.mode=reliable"],
    ),
    FamilyLine::of(
        "AeroTP near-reliable",
        &["flow.transport=aerotp", "flow.mode=near-reliable"],
    ),
    FamilyLine::of("TCP", &[]),
    FamilyLine::of("LT-TCP", &["flow.transport=lt-tcp"]),
];

const fn family(id: &'static str, sets: &'static [&'static str]) -> Family {
    Family {
        id,
        scenario: (
            "scenarios/link-matrix.toml",
            include_str!("../../../../scenarios/link-matrix.toml"),
        ),
        sets,
        x: SweptParameter::names("hop.link", LAYERS, "link layer"),
        lines: LINES,
        conditions: "One bulk flow for 10 s over one hop of 10 Mbit/s and 10 ms, both ways alike; a queue of 100 packets with RED (20 to 60) above \
            the link layer; packets of 1350 octets. TCP is linux-like with ECN.",
    }
}

pub(super) const RANDOM: Family = family("matrix-random", &["hop.loss=5%"]);
pub(super) const ON_OFF: Family = family("matrix-on-off", &["hop.loss=on-off 30% period 50ms"]);
pub(super) const BITS: Family = family("matrix-bits", &["hop.ber=1e-5"]);

pub(super) const HEAT: Exhibit = Exhibit {
    id: "matrix",
    title: "Any transport over any link layer",
    intro: "Goodput in Mbit/s with 95 % intervals; the deeper the colour, the nearer to the best over that channel. Not of the slides: our own \
        experiment.",
    cells: Cells::Heat {
        families: &[
            ("matrix-random", "5 % of the frames lost"),
            ("matrix-on-off", "on-off 30 % with 50 ms"),
            ("matrix-bits", "bit error rate 1e-5"),
        ],
        measure: GOODPUT,
    },
};
