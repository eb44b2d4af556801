//! The slides' families of runs, figures and published values.

use super::{claims_link, claims_transport, matrix};
use crate::exhibit::{Beside, Cells, Exhibit};
use crate::overlay::Overlay;
use crate::paper::{Family, Figure, Line, Measure, Missing, Paper, Section, Statistic};

/// The slides' average packet error rates, in per cent.
pub(super) const PERCENT: [u32; 6] = [0, 10, 20, 30, 40, 50];
/// As the simulator takes them.
pub(super) const ERROR_RATES: &[&str] = &[
    "on-off 0% period 20ms",
    "on-off 10% period 20ms",
    "on-off 20% period 20ms",
    "on-off 30% period 20ms",
    "on-off 40% period 20ms",
    "on-off 50% period 20ms",
];

pub(super) const TCP_ARQ: &str = "TCP-SACK over LL-ARQ";
pub(super) const TCP_HARQ: &str = "TCP-SACK over LL-HARQ";
pub(super) const LT_ARQ: &str = "LT-TCP over LL-ARQ";
pub(super) const LT_HARQ: &str = "LT-TCP over LL-HARQ";
pub(super) const ARQ: &str = "LL-ARQ";
pub(super) const HARQ: &str = "LL-HARQ";
pub(super) const NARROW: &str = "TCP-SACK over LL-ARQ, 16 frames at once";
pub(super) const SMALL: &str = "TCP-SACK over LL-ARQ, windows of 20 packets";
pub(super) const LIGHT: &str = "LT-TCP over LL-HARQ, 30 % may fail";
pub(super) const SINGLE: &str = "LT-TCP over LL-HARQ, each packet a block";
pub(super) const BOTH_WAYS_TCP: &str = "TCP-SACK over LL-ARQ, errors both ways";
pub(super) const BOTH_WAYS_LT: &str = "LT-TCP over LL-HARQ, errors both ways";

/// Everything that is made of the slides.
pub const LT_TCP: Paper = Paper {
    name: "lt-tcp",
    title: "Loss tolerance between link and transport: LT-TCP and LL-HARQ",
    families: &[
        SATURATED,
        SATURATED_100,
        HOP,
        CHAIN,
        LIGHT_CHAIN,
        BOTH_WAYS,
        matrix::RANDOM,
        matrix::ON_OFF,
        matrix::BITS,
    ],
    sections: &[
        Section {
            title: "The link by itself",
            intro: "One hop whose queue never empties, packets of 1040 octets.",
            figures: &LINK_FIGURES,
        },
        Section {
            title: "Four hops, ten flows",
            intro: "The slides' chain; their Table I beside.",
            figures: &CHAIN_FIGURES,
        },
        Section {
            title: "One hop, ten flows",
            intro: "",
            figures: &HOP_FIGURES,
        },
        Section {
            title: "Why it comes out otherwise",
            intro: "LL-ARQ whose window is narrow, and TCP with ns-2's default window; LL-HARQ with less parity, which trades latency for \
                goodput, and with parity for each packet by itself; errors on the way back too.",
            figures: &WHY_FIGURES,
        },
    ],
    exhibits: &[TABLE_1, matrix::HEAT],
    claims: &[&claims_link::CLAIMS, &claims_transport::CLAIMS],
    missing: &[Missing {
        place: "slide on end-end delay, slide on link-level goodput, slide on TCP goodput",
        what: "the curves' own values, which are lost with the pictures; only the tables' values stand beside ours",
    }],
    notes: &[
        "The slides leave most parameters unsaid. Rate, propagation, packet lengths, LL-ARQ's retries and its order are decoded from their \
         latencies; LL-ARQ's timer (28 frame times) and LL-HARQ's blocks were made as long, and as many of them left to a second round, as the published latencies allow \
         (docs/models/link.md has the grids). Queues and RED's thresholds are ours: one to three bandwidth-delay products of the chain.",
        "ON and OFF last 20 ms each; the error rate in ON is 1.5 times the average, in OFF half of it. Every transmission of a frame or unit is lost by \
         that rate, however short. Errors hit the way there; the way back is clean, but for the experiment that says otherwise.",
        "LL-HARQ's units have ten to twelve octets of header, where a simulation of the slides' time may have had none: 2 % of a packet of 1350 octets in two parts.",
        "Receiver goodput is that of all ten flows together; link goodput, residual loss and latency are means over the hops. Latency counts from leaving \
         the queue above the link layer. The round trip is the sum of the hops' mean waits and latencies, there and back.",
    ],
};

const CONDITIONS: &str = "Ten bulk flows that start 0.1 s apart, 40 s over one hop and 100 s over four; hops of 10 Mbit/s and 10 ms, above each link layer a queue of 600 packets with RED (100 to \
    300 packets, marks). TCP-SACK: NewReno with RFC 6675 and ECN, packets of 1040 octets; LT-TCP: packets of 1350 octets.";

const HOP_FILE: (&str, &str) = (
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
    x_path: &'static str,
    lines: &'static [Line],
) -> Family {
    Family {
        id,
        scenario,
        sets: &[],
        x_path,
        x_values: ERROR_RATES,
        x_label: "average packet error rate / %",
        x_logarithmic: false,
        lines,
        conditions: CONDITIONS,
    }
}

const LT: [&str; 2] = ["flow.transport=lt-tcp", "flow.mtu=1350B"];

/// The four combinations of the slides, and `$more` lines.
macro_rules! combinations {
    ($($label:expr => [$($set:expr),*]),* $(,)?) => {
        &[
            Line {
                label: TCP_ARQ,
                sets: &["hop.link.layer=ll-arq"],
            },
            Line {
                label: TCP_HARQ,
                sets: &["hop.link.layer=ll-harq"],
            },
            Line {
                label: LT_ARQ,
                sets: &["hop.link.layer=ll-arq", LT[0], LT[1]],
            },
            Line {
                label: LT_HARQ,
                sets: &["hop.link.layer=ll-harq", LT[0], LT[1]],
            },
            $(Line {
                label: $label,
                sets: &[$($set),*],
            }),*
        ]
    };
}

const HOP: Family = family(
    "hop",
    HOP_FILE,
    "hop.forward.loss",
    combinations!(NARROW => ["hop.link.layer=ll-arq", "hop.link.window=16"]),
);

const CHAIN: Family = family(
    "chain",
    CHAIN_FILE,
    "hop.forward.loss",
    combinations!(
        SMALL => ["hop.link.layer=ll-arq", "flow.tcp.receive_buffer=20kB"],
        NARROW => ["hop.link.layer=ll-arq", "hop.link.window=16"],
    ),
);

const LIGHT_CHAIN: Family = family(
    "chain-light",
    CHAIN_FILE,
    "hop.forward.loss",
    &[
        Line {
            label: LT_HARQ,
            sets: &["hop.link.layer=ll-harq", LT[0], LT[1]],
        },
        Line {
            label: SINGLE,
            sets: &["hop.link.layer=ll-harq", "hop.link.units=2", LT[0], LT[1]],
        },
        Line {
            label: LIGHT,
            sets: &[
                "hop.link.layer=ll-harq",
                "hop.link.failure=30%",
                LT[0],
                LT[1],
            ],
        },
    ],
);

const BOTH_WAYS: Family = Family {
    sets: &["run.runs=3"],
    ..family(
        "chain-both-ways",
        CHAIN_FILE,
        "hop.loss",
        &[
            Line {
                label: BOTH_WAYS_TCP,
                sets: &["hop.link.layer=ll-arq"],
            },
            Line {
                label: BOTH_WAYS_LT,
                sets: &["hop.link.layer=ll-harq", LT[0], LT[1]],
            },
        ],
    )
};

const SATURATION: &[&str] = &[
    "flow.transport=udp",
    "flow.traffic=constant-rate",
    "flow.rate=9.9mbit",
    "flow.write=1012B",
    "flow.count=1",
];

const SATURATED: Family = Family {
    sets: SATURATION,
    conditions: "Packets of 1040 octets at 9.9 Mbit/s over one hop of 10 Mbit/s and 10 ms for 40 s; ON and OFF 20 ms each.",
    ..family(
        "saturated",
        HOP_FILE,
        "hop.forward.loss",
        &[
            Line {
                label: ARQ,
                sets: &["hop.link.layer=ll-arq"],
            },
            Line {
                label: HARQ,
                sets: &["hop.link.layer=ll-harq"],
            },
        ],
    )
};

const SATURATED_100: Family = Family {
    id: "saturated-100",
    x_values: &[
        "on-off 0% period 100ms",
        "on-off 10% period 100ms",
        "on-off 20% period 100ms",
        "on-off 30% period 100ms",
        "on-off 40% period 100ms",
        "on-off 50% period 100ms",
    ],
    conditions: "The same with ON and OFF of 100 ms each.",
    ..SATURATED
};

const LATENCY: Measure = Measure {
    name: "link.latency_mean_s",
    unit: 1e-3,
    unit_name: "ms",
    label: "latency of a hop",
    statistic: Statistic::Mean,
};

const ROUND_TRIP: Measure = Measure {
    name: "link.round_trip_s",
    label: "round trip",
    ..LATENCY
};

pub(super) const GOODPUT: Measure = Measure {
    name: "goodput_bps",
    unit: 1e6,
    unit_name: "Mbit/s",
    label: "receiver goodput",
    statistic: Statistic::Mean,
};

const LINK_GOODPUT: Measure = Measure {
    name: "link.goodput_bps",
    label: "link goodput",
    ..GOODPUT
};

const RESIDUAL: Measure = Measure {
    name: "link.residual_loss",
    unit: 0.01,
    unit_name: "%",
    label: "residual loss of a hop",
    statistic: Statistic::Mean,
};

const LATENCIES: (&str, &str) = (
    "reference/ll_latency.csv",
    include_str!("../../../../reference/ll_latency.csv"),
);

const PUBLISHED_ARQ: Overlay = Overlay {
    label: "LL-ARQ, slides",
    like: Some(ARQ),
    table: LATENCIES,
    rows: &[],
    x: ("per_percent", 1.0),
    y: "ll_arq_latency_s",
    half: None,
    n: None,
    statistic: Statistic::Mean,
    joined: false,
};

const PUBLISHED_HARQ: Overlay = Overlay {
    label: "LL-HARQ, slides",
    like: Some(HARQ),
    y: "ll_harq_latency_s",
    ..PUBLISHED_ARQ
};

/// A column of the slides' Table I.
const fn table_1(y: &'static str, half: Option<&'static str>) -> Overlay {
    Overlay {
        label: "LT-TCP over LL-HARQ, Table I",
        like: Some(LT_HARQ),
        table: (
            "reference/lt_tcp_table1.csv",
            include_str!("../../../../reference/lt_tcp_table1.csv"),
        ),
        rows: &[],
        x: ("per_percent", 1.0),
        y,
        half,
        n: None,
        statistic: Statistic::Mean,
        joined: false,
    }
}

const PUBLISHED_GOODPUT: Overlay = table_1("receiver_goodput_bps", Some("goodput_half_bps"));
const PUBLISHED_LINK_GOODPUT: Overlay = table_1("link_goodput_bps", None);
const PUBLISHED_RESIDUAL: Overlay = table_1("link_residual_loss", None);
const PUBLISHED_LATENCY: Overlay = table_1("link_latency_s", None);

const TABLE_1: Exhibit = Exhibit {
    id: "table-1",
    title: "Table I: LT-TCP over LL-HARQ, ten flows, four hops",
    intro: "Means and 95 % intervals over the runs, beside the slides'. Their intervals are printed with the goodput alone.",
    cells: Cells::Beside {
        family: "chain",
        line: LT_HARQ,
        columns: &[
            Beside {
                measure: GOODPUT,
                published: &PUBLISHED_GOODPUT,
            },
            Beside {
                measure: LINK_GOODPUT,
                published: &PUBLISHED_LINK_GOODPUT,
            },
            Beside {
                measure: RESIDUAL,
                published: &PUBLISHED_RESIDUAL,
            },
            Beside {
                measure: LATENCY,
                published: &PUBLISHED_LATENCY,
            },
        ],
    },
};

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

const LINK_FIGURES: [Figure; 4] = [
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
];

const CHAIN_FIGURES: [Figure; 5] = [
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

const HOP_FIGURES: [Figure; 5] = [
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

const WHY_FIGURES: [Figure; 3] = [
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
