//! The paper's families of runs and figures.

use super::{claims_ber, claims_setup};
use crate::paper::{Family, Figure, Line, Measure, Missing, Paper, Section, Statistic};

pub(super) const SETUP: &str = "setup";
pub(super) const BER: &str = "ber";
pub(super) const TCP: &str = "TCP NewReno";
pub(super) const UDP: &str = "UDP";
pub(super) const SETUP_TCP: &str = "TCP";
pub(super) const SETUP_AEROTP: &str = "AeroTP";
pub(super) const RELIABLE: &str = "AeroTP reliable";
pub(super) const QUASI: &str = "AeroTP quasi-reliable 32 words";

const MILLISECONDS: f64 = 1e-3;

/// Everything that is made of `aerotp-multi-mode`.
pub const MULTI_MODE: Paper = Paper {
    name: "aerotp-multi-mode",
    title: "AeroTP's modes against TCP and UDP",
    families: &[SETUP_FAMILY, BER_FAMILY],
    sections: &[Section {
        title: "Figures",
        intro: "",
        figures: &FIGURES,
    }],
    claims: &[&claims_setup::CLAIMS, &claims_ber::CLAIMS],
    missing: &MISSING,
    notes: &[
        "The unit of the middle link's latency was lost in print; 10 us is what the typography and TCP's \
         delay speak for.",
        "The error rate is taken per bit. ns-3's default unit is the octet, and the paper does not say \
         which it used; with the rate per bit, a link without parity loses 70 % of its 1502-octet frames \
         at 1e-4, and every scheme that repeats lost packets needs three times the time of the source.",
        "Goodput counts from the first submission to the last delivery. Of a run that delivers a block or two \
         and gives up it says nothing: TCP's from 5e-5 on is such a mean, with an interval to match. Delay is the mean over the \
         writes that arrived: a transport that gives up early has only its early writes counted.",
        "The bound of plain ARQ is what no scheme can beat that throws damaged packets away.",
        "Overhead is what is put on all links, in both directions, less what is delivered; a transport \
         that gives up saves it.",
    ],
};

const SETUP_FAMILY: Family = Family {
    id: SETUP,
    scenario: (
        "scenarios/ns3-setup.toml",
        include_str!("../../../../scenarios/ns3-setup.toml"),
    ),
    sets: &[],
    x_path: "hop.loss",
    x_values: &["0%", "1%", "2%", "5%", "10%", "15%", "20%"],
    x_label: "packet loss, both directions / %",
    x_logarithmic: false,
    lines: &[
        Line {
            label: SETUP_TCP,
            sets: &[],
        },
        Line {
            label: SETUP_AEROTP,
            // A write fills one TPDU, and there are 375 a second as in TCP's source.
            sets: &[
                "flow.transport=aerotp",
                "flow.mode=reliable",
                "flow.first=after-interval",
                "flow.write=1400B",
                "flow.rate=4.2mbit",
            ],
        },
    ],
    conditions: "Two nodes, 10 Mbit/s, 5 ms, every packet lost with the same probability in both \
        directions. TCP as ns-3 has it (reference/README.md, S2): SYN and data timer of 3 s that double, \
        initial window of 1 segment, first write one interval after the handshake. AeroTP sends its \
        first data with the ASYN. 375 writes a second, each of which fills a packet.",
};

const BER_FAMILY: Family = Family {
    id: BER,
    scenario: (
        "scenarios/ns3-airborne.toml",
        include_str!("../../../../scenarios/ns3-airborne.toml"),
    ),
    sets: &[],
    x_path: "hop.ber",
    x_values: &[
        "0", "1e-6", "5e-6", "1e-5", "2.5e-5", "3.5e-5", "5e-5", "7.5e-5", "1e-4",
    ],
    x_label: "bit error rate",
    x_logarithmic: false,
    lines: &[
        Line {
            label: TCP,
            sets: &[],
        },
        Line {
            label: UDP,
            sets: &["flow.transport=udp", "flow.first=after-interval"],
        },
        aerotp(
            RELIABLE,
            &[
                "flow.transport=aerotp",
                "flow.first=after-interval",
                "hop.frame_check=false",
                "flow.mode=reliable",
            ],
        ),
        aerotp(
            "AeroTP reliable 32 words",
            &[
                "flow.transport=aerotp",
                "flow.first=after-interval",
                "hop.frame_check=false",
                "flow.mode=reliable",
                "flow.fec_words=32",
            ],
        ),
        aerotp(
            "AeroTP near-reliable",
            &[
                "flow.transport=aerotp",
                "flow.first=after-interval",
                "hop.frame_check=false",
                "flow.mode=near-reliable",
            ],
        ),
        aerotp(
            "AeroTP nack-mack",
            &[
                "flow.transport=aerotp",
                "flow.first=after-interval",
                "hop.frame_check=false",
                "flow.mode=nack-mack",
            ],
        ),
        aerotp(
            "AeroTP nack",
            &[
                "flow.transport=aerotp",
                "flow.first=after-interval",
                "hop.frame_check=false",
                "flow.mode=nack",
            ],
        ),
        aerotp(
            QUASI,
            &[
                "flow.transport=aerotp",
                "flow.first=after-interval",
                "hop.frame_check=false",
                "flow.mode=quasi-reliable",
                "flow.fec_words=32",
            ],
        ),
        aerotp(
            "AeroTP unreliable",
            &[
                "flow.transport=aerotp",
                "flow.first=after-interval",
                "hop.frame_check=false",
                "flow.mode=unreliable",
            ],
        ),
        aerotp(
            "AeroTP datagram",
            &[
                "flow.transport=aerotp",
                "flow.first=after-interval",
                "hop.frame_check=false",
                "flow.mode=datagram",
            ],
        ),
    ],
    conditions: "680 writes of 1472 octets (1 MB) at 4.416 Mbit/s over 10 Gbit/s, 5 Mbit/s with 10 us \
        and bit errors in both directions, 10 Gbit/s; at most 300 s. TCP is NewReno as ns-3 has it \
        (reference/README.md, S1), and gives up after 6 repeats of a segment. The link drops damaged \
        frames of TCP and UDP; AeroTP gets them, with the damage, and uses its own checks and parity. \
        Modes named without words carry no parity; the paper does not say what its quasi-reliable mode \
        carried in these figures, 32 words (128 octets a packet) are our choice.",
};

const fn aerotp(label: &'static str, sets: &'static [&'static str]) -> Line {
    Line { label, sets }
}

const FIGURES: [Figure; 5] = [
    Figure {
        id: "setup-delay",
        place: "Figure 12",
        title: "Connection set-up: time to the first data at the sink",
        family: SETUP,
        measure: Measure {
            name: "first_arrival_s",
            unit: MILLISECONDS,
            unit_name: "ms",
            label: "time to first data",
            statistic: Statistic::Mean,
        },
        bounds: &[],
        overlays: &[],
        logarithmic: true,
    },
    Figure {
        id: "ber-goodput",
        place: "Figure 21",
        title: "Goodput against the bit error rate",
        family: BER,
        measure: Measure {
            name: "goodput_bps",
            unit: 1e6,
            unit_name: "Mbit/s",
            label: "goodput",
            statistic: Statistic::Median,
        },
        bounds: &[
            ("capacity_bps", "capacity of the link"),
            ("arq_bound_bps", "bound of plain ARQ"),
        ],
        overlays: &[],
        logarithmic: false,
    },
    Figure {
        id: "ber-delay",
        place: "Figure 22",
        title: "Mean delay against the bit error rate",
        family: BER,
        measure: Measure {
            name: "delay_mean_s",
            unit: MILLISECONDS,
            unit_name: "ms",
            label: "mean delay",
            statistic: Statistic::Median,
        },
        bounds: &[],
        overlays: &[],
        logarithmic: true,
    },
    Figure {
        id: "ber-delivered",
        place: "Figure 23",
        title: "Delivered data against the bit error rate",
        family: BER,
        measure: Measure {
            name: "delivered_bytes",
            unit: 1e3,
            unit_name: "kB",
            label: "delivered",
            statistic: Statistic::Mean,
        },
        bounds: &[],
        overlays: &[],
        logarithmic: false,
    },
    Figure {
        id: "ber-overhead",
        place: "Figure 24",
        title: "Cumulative overhead against the bit error rate",
        family: BER,
        measure: Measure {
            name: "overhead_bytes",
            unit: 1e3,
            unit_name: "kB",
            label: "overhead, all links",
            statistic: Statistic::Mean,
        },
        bounds: &[],
        overlays: &[],
        logarithmic: true,
    },
];

const MISSING: [Missing; 5] = [
    Missing {
        place: "Figures 13-16",
        what: "FEC strengths 0-256 against the bit error rate, and the claims of section IV.C on them",
    },
    Missing {
        place: "Figures 17-20",
        what: "the same against the strength, and the claims of section IV.C on them",
    },
    Missing {
        place: "section IV.B",
        what: "aggregation of 1-365 acknowledgements, and the claim that it hardly matters",
    },
    Missing {
        place: "Figures 21-24",
        what: "the variants: 10 ms latency, error rate per octet, 20 MB",
    },
    Missing {
        place: "abstract, Table I and sections I-III",
        what: "claims on design, which no figure here measures",
    },
];
