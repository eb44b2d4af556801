//! The runs behind the slides' figures and tables, and behind our experiments on them.

use crate::family::{Family, FamilyLine};
use crate::parameter::{Axis, AxisUnit, SweptParameter};

/// The slides' average packet error rates, in per cent.
pub(super) const PERCENT: [u32; 6] = [0, 10, 20, 30, 40, 50];
/// The same rates as text.
const ERROR_RATES: &[&str] = &["0", "10", "20", "30", "40", "50"];
/// Those above 0.
pub(super) const LOSSY_PERCENT: &[&str] = ERROR_RATES.split_at(1).1;

/// The error rates at `path`, which a scenario has in `form`.
pub(super) const fn error_rate(
    path: &'static str,
    rates: &'static [&'static str],
    form: &'static str,
) -> SweptParameter {
    let axis = Axis::linear("average packet error rate", AxisUnit::PERCENT);
    SweptParameter::numbers(path, rates, form, axis)
}

pub(super) const TCP_ARQ: &str = "TCP-SACK over LL-ARQ";
pub(super) const TCP_HARQ: &str = "TCP-SACK over LL-HARQ";
pub(super) const LT_ARQ: &str = "LT-TCP over LL-ARQ";
pub(super) const LT_HARQ: &str = "LT-TCP over LL-HARQ";
pub(super) const ARQ: &str = "LL-ARQ";
pub(super) const HARQ: &str = "LL-HARQ";
pub(super) const ARQ_WIDE: &str = "LL-ARQ, 512 frames at once";
pub(super) const WIDE: &str = "TCP-SACK over LL-ARQ, 512 frames at once";
pub(super) const SMALL: &str = "TCP-SACK over LL-ARQ, windows of 20 packets";
pub(super) const LIGHT: &str = "LT-TCP over LL-HARQ, 30 % may fail";
pub(super) const SINGLE: &str = "LT-TCP over LL-HARQ, each packet a block";
pub(super) const BOTH_WAYS_TCP: &str = "TCP-SACK over LL-ARQ, errors both ways";
pub(super) const BOTH_WAYS_HARQ: &str = "TCP-SACK over LL-HARQ, errors both ways";
pub(super) const BOTH_WAYS_LT: &str = "LT-TCP over LL-HARQ, errors both ways";

const CONDITIONS: &str = "Ten bulk flows that start 0.1 s apart, 40 s over one hop and 100 s over four; hops of 10 Mbit/s and 10 ms, above each link layer a queue of 600 packets with RED (100 to \
    300 packets, marks). TCP-SACK: NewReno with RFC 6675 and ECN, packets of 1040 octets; LT-TCP: packets of 1350 octets.";

pub(super) const HOP_FILE: (&str, &str) = (
    "scenarios/lt-tcp-hop.toml",
    include_str!("../../../../scenarios/lt-tcp-hop.toml"),
);
const CHAIN_FILE: (&str, &str) = (
    "scenarios/lt-tcp-chain.toml",
    include_str!("../../../../scenarios/lt-tcp-chain.toml"),
);

/// A family over the slides' error rates.
const fn family(
    id: &'static str,
    scenario: (&'static str, &'static str),
    path: &'static str,
    lines: &'static [FamilyLine],
) -> Family {
    Family {
        id,
        scenario,
        sets: &[],
        x: error_rate(path, ERROR_RATES, "on-off {}% period 20ms"),
        lines,
        conditions: CONDITIONS,
    }
}

const LT: [&str; 2] = ["flow.transport=lt-tcp", "flow.mtu=1350B"];

/// The four combinations of the slides, and `$more` lines.
macro_rules! combinations {
    ($($label:expr => [$($set:expr),*]),* $(,)?) => {
        &[
            FamilyLine::of(TCP_ARQ, &["hop.link.layer=ll-arq"]),
            FamilyLine::of(TCP_HARQ, &["hop.link.layer=ll-harq"]),
            FamilyLine::of(LT_ARQ, &["hop.link.layer=ll-arq", LT[0], LT[1]]),
            FamilyLine::of(LT_HARQ, &["hop.link.layer=ll-harq", LT[0], LT[1]]),
            $(FamilyLine::of($label, &[$($set),*])),*
        ]
    };
}

/// An LL-ARQ whose window is never exhausted; its timer fits the slides' latencies.
const WIDE_SETS: [&str; 2] = ["hop.link.window=512", "hop.link.retransmit_after=23.4ms"];

pub(super) const HOP: Family = family(
    "hop",
    HOP_FILE,
    "hop.forward.loss",
    combinations!(WIDE => ["hop.link.layer=ll-arq", WIDE_SETS[0], WIDE_SETS[1]]),
);

pub(super) const CHAIN: Family = family(
    "chain",
    CHAIN_FILE,
    "hop.forward.loss",
    combinations!(
        SMALL => ["hop.link.layer=ll-arq", "flow.tcp.receive_buffer=20kB"],
        WIDE => ["hop.link.layer=ll-arq", WIDE_SETS[0], WIDE_SETS[1]],
    ),
);

pub(super) const LIGHT_CHAIN: Family = family(
    "chain-light",
    CHAIN_FILE,
    "hop.forward.loss",
    &[
        FamilyLine::of(LT_HARQ, &["hop.link.layer=ll-harq", LT[0], LT[1]]),
        FamilyLine::of(
            SINGLE,
            &["hop.link.layer=ll-harq", "hop.link.units=2", LT[0], LT[1]],
        ),
        FamilyLine::of(
            LIGHT,
            &[
                "hop.link.layer=ll-harq",
                "hop.link.failure=30%",
                LT[0],
                LT[1],
            ],
        ),
    ],
);

pub(super) const BOTH_WAYS: Family = Family {
    sets: &["run.runs=3"],
    ..family(
        "chain-both-ways",
        CHAIN_FILE,
        "hop.loss",
        &[
            FamilyLine::of(BOTH_WAYS_TCP, &["hop.link.layer=ll-arq"]),
            FamilyLine::of(BOTH_WAYS_HARQ, &["hop.link.layer=ll-harq"]),
            FamilyLine::of(BOTH_WAYS_LT, &["hop.link.layer=ll-harq", LT[0], LT[1]]),
        ],
    )
};

pub(super) const SATURATION: &[&str] = &[
    "flow.transport=udp",
    "flow.traffic=constant-rate",
    "flow.rate=9.9mbit",
    "flow.write=1012B",
    "flow.count=1",
];

pub(super) const SATURATED: Family = Family {
    sets: SATURATION,
    conditions: "Packets of 1040 octets at 9.9 Mbit/s over one hop of 10 Mbit/s and 10 ms for 40 s; ON and OFF 20 ms each.",
    ..family(
        "saturated",
        HOP_FILE,
        "hop.forward.loss",
        &[
            FamilyLine::of(ARQ, &["hop.link.layer=ll-arq"]),
            FamilyLine::of(HARQ, &["hop.link.layer=ll-harq"]),
            FamilyLine::of(
                ARQ_WIDE,
                &["hop.link.layer=ll-arq", WIDE_SETS[0], WIDE_SETS[1]],
            ),
        ],
    )
};

pub(super) const SATURATED_100: Family = Family {
    id: "saturated-100",
    x: error_rate("hop.forward.loss", ERROR_RATES, "on-off {}% period 100ms"),
    conditions: "The same with ON and OFF of 100 ms each.",
    ..SATURATED
};
