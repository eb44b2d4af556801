//! The paper's families of runs and figures, under each reading of its conditions.

use super::experiments as extra;
use super::{claims_aggregation, claims_delivery, claims_design, claims_modes};
use crate::airborne::{BIT_ERROR_RATE, SCENARIO, four_figures, octet_error_rate};
use crate::family::{Family, FamilyLine};
use crate::figure::{Figure, FigureSection};
use crate::multi_mode::{absent, causes, claims_drawbacks, design};
use crate::paper::{ClaimSource, Paper};
use crate::parameter::SweptParameter;

pub(super) const TCP: &str = "TCP NewReno";
pub(super) const UDP: &str = "UDP";
pub(super) const RELIABLE: &str = "AeroTP reliable";
pub(super) const QUASI: &str = "AeroTP quasi-reliable";
pub(super) const NACK: &str = "AeroTP NACK";
pub(super) const BOTH: &str = "AeroTP NACK+MACK";

/// The reproduction of `aerotp-hybrid`.
pub static HYBRID: Paper = Paper {
    name: "aerotp-hybrid",
    title: "AeroTP's error control: ARQ, FEC and both",
    source: ClaimSource::Paper,
    families: &[
        MODES,
        MODES_10MS,
        MODES_OCTET,
        MODES_OCTET_10MS,
        MODES_20MB,
        MACK,
        MACK_10MS,
        MACK_OCTET,
        MACK_OCTET_10MS,
        MACK_20MB,
        extra::STRENGTH,
        extra::WAITS,
        extra::STYLE,
        extra::TAIL,
        extra::NARROW,
        extra::BACK,
        causes::TCP_FAMILY,
        design::RAMP_FAMILY,
        design::OUTAGE_FAMILY,
        design::MOMENT_FAMILY,
        extra::STOP,
        extra::TCPS,
    ],
    sections: &[
        FigureSection {
            title: "Modes compared, as printed",
            intro: "Figures 8 to 11: 1 MB, 10 us, error rate per bit. The modes with parity carry 4 words a TPDU.",
            figures: &MODES_FIGURES,
        },
        FigureSection {
            title: "Acknowledgements aggregated, as printed",
            intro: "Figures 4 to 7: 1 MB, 10 us, error rate per bit. MACKs are lists, as the paper's, and wait up to 1 s.",
            figures: &MACK_FIGURES,
        },
        extra::WHY_STRENGTH,
        extra::WHY_WAITS,
        extra::WHY_MACK,
        extra::WHY_TCP,
        extra::WHY_BACK,
        FigureSection {
            title: "Modes compared: 10 ms",
            intro: "",
            figures: &MODES_10MS_FIGURES,
        },
        FigureSection {
            title: "Modes compared: error rate per octet",
            intro: "The same numbers as the probability that an octet is hit, which is what ns-3's error model takes them for unless told otherwise.",
            figures: &MODES_OCTET_FIGURES,
        },
        FigureSection {
            title: "Modes compared: error rate per octet, 10 ms",
            intro: "",
            figures: &MODES_OCTET_10MS_FIGURES,
        },
        FigureSection {
            title: "Modes compared: 20 MB",
            intro: "",
            figures: &MODES_20MB_FIGURES,
        },
        FigureSection {
            title: "Acknowledgements aggregated: 10 ms",
            intro: "",
            figures: &MACK_10MS_FIGURES,
        },
        FigureSection {
            title: "Acknowledgements aggregated: error rate per octet",
            intro: "",
            figures: &MACK_OCTET_FIGURES,
        },
        FigureSection {
            title: "Acknowledgements aggregated: error rate per octet, 10 ms",
            intro: "",
            figures: &MACK_OCTET_10MS_FIGURES,
        },
        FigureSection {
            title: "Acknowledgements aggregated: 20 MB",
            intro: "",
            figures: &MACK_20MB_FIGURES,
        },
    ],
    exhibits: &[],
    claims: &[
        &claims_modes::CLAIMS,
        &claims_delivery::CLAIMS,
        &claims_aggregation::CLAIMS,
        &claims_drawbacks::CLAIMS,
        &claims_design::CLAIMS,
    ],
    absent: absent::HYBRID,
    notes: &[
        "Not judged, for they are no results: the functions of section I, the packet flows and states of section III (Table 1), quality of service, \
         what UDP lacks, type-II hybrids, which the paper does not run, how hard paths are to restore after an outage, and that 365 acknowledgements of 4 octets fit into a MACK of 1500 \
         octets behind headers of 20 and 20, which is arithmetic; our listed MACK has that format.",
        "Verdicts are of the conditions as printed: 1 MB, a latency of 10 us (its unit was lost in print; typography speaks for it), \
         and the error rate taken per bit. Each comment says what the other readings give: 10 ms, the rate per octet (ns-3's \
         default unit), and 20 MB.",
        "The paper names neither the code nor the number of parity words. Ours is an interleaved Reed-Solomon code; 4 words \
         (16 octets) are its weakest setting that pays, and leave errors for the hybrids to ask about, as the paper's code did. The \
         experiment on strength has 0 to 64 words.",
        "Nor does it say how long a MACK waits for company. Here up to 1 s, time enough for 365 writes; the experiment on \
         styles has shorter waits and our own MACK.",
        "Goodput counts from the first submission to the last delivery, delay is the mean over the writes that arrived, of \
         which the figures show the median run: a TCP that delivers a block and gives up has a goodput and a delay that say nothing. \
         Claims on TCP's goodput are judged where it delivers at least half.",
        "Overhead is what is put on the lossy link, in both directions, network headers included, less what is delivered; a transport that gives up \
         saves it.",
        "A damaged TPDU reaches the receiver and its parity; one whose network header is damaged (20 of up to 1500 octets) does \
         not: to NACK such a loss there is nothing to say.",
    ],
};

macro_rules! conditions {
    ($size:literal, $latency:literal, $errors:literal, $stop:literal) => {
        concat!(
            $size,
            " in writes of 1472 octets at 4.416 Mbit/s over 10 Gbit/s, 5 Mbit/s with ",
            $latency,
            " and ",
            $errors,
            " in both directions, 10 Gbit/s; at most ",
            $stop,
            ". TCP is NewReno as ns-3 has it (reference/README.md, S1), and gives up after 6 repeats of a segment. The link drops \
             damaged frames of TCP and UDP; AeroTP gets them, with the damage."
        )
    };
}
const PRINTED: &str = conditions!("1 MB", "10 us", "bit errors", "300 s");
const SLOW: &str = conditions!("1 MB", "10 ms", "bit errors", "300 s");
const OCTETS: &str = conditions!("1 MB", "10 us", "octets hit", "300 s");
const OCTETS_SLOW: &str = conditions!("1 MB", "10 ms", "octets hit", "300 s");
const MUCH: &str = conditions!("20 MB", "10 us", "bit errors", "1200 s");

const AEROTP: [&str; 3] = [
    "flow.transport=aerotp",
    "flow.first=after-interval",
    "hop.frame_check=false",
];

/// An AeroTP mode with 4 parity words.
macro_rules! with_parity {
    ($mode:literal) => {
        &[
            AEROTP[0],
            AEROTP[1],
            AEROTP[2],
            concat!("flow.mode=", $mode),
            "flow.fec_words=4",
        ]
    };
}

const MODE_LINES: &[FamilyLine] = &[
    FamilyLine::of(TCP, &[]),
    FamilyLine::of(UDP, &["flow.transport=udp", "flow.first=after-interval"]),
    FamilyLine::of(
        RELIABLE,
        &[AEROTP[0], AEROTP[1], AEROTP[2], "flow.mode=reliable"],
    ),
    FamilyLine::of(QUASI, with_parity!("quasi-reliable")),
    FamilyLine::of(NACK, with_parity!("nack")),
    FamilyLine::of(BOTH, with_parity!("nack-mack")),
];

/// The paper's numbers of acknowledgements in a MACK. Its legend is lost, so only 200 and 365 are known.
pub(super) const AGGREGATED: [&str; 7] = [
    ONE,
    TEN,
    "MACK of 50",
    HUNDRED,
    "MACK of 200",
    "MACK of 300",
    "MACK of 365",
];
pub(super) const ONE: &str = "MACK of 1";
pub(super) const TEN: &str = "MACK of 10";
pub(super) const HUNDRED: &str = "MACK of 100";

/// A reliable line with so many acknowledgements in a MACK.
macro_rules! aggregated {
    ($($n:literal)*) => {
        &[$(FamilyLine::of(concat!("MACK of ", $n), &[
                AEROTP[0],
                AEROTP[1],
                AEROTP[2],
                "flow.mode=reliable",
                "flow.mack_style=listed",
                "flow.mack_repeats=1",
                "flow.mack_flush=1s",
                concat!("flow.mack=", $n),
            ])),*]
    };
}

const MACK_LINES: &[FamilyLine] = aggregated!("1" "10" "50" "100" "200" "300" "365");

const fn family(
    id: &'static str,
    sets: &'static [&'static str],
    x: SweptParameter,
    lines: &'static [FamilyLine],
    conditions: &'static str,
) -> Family {
    Family {
        id,
        scenario: SCENARIO,
        sets,
        x,
        lines,
        conditions,
    }
}

const PER_OCTET: SweptParameter = octet_error_rate("probability that an octet is hit");

const LONG: &[&str] = &["flow.bytes=20MB", "run.duration=1200s", "run.runs=10"];

const PLAIN: &[&str] = &[];
const LATENT: &[&str] = &["hop.delay=10ms"];

const MODES_PLACES: [&str; 4] = ["Figure 8", "Figure 9", "Figure 10", "Figure 11"];
const MACK_PLACES: [&str; 4] = ["Figure 4", "Figure 5", "Figure 6", "Figure 7"];

/// The family and the four figures of a comparison, under each reading of the conditions.
macro_rules! readings {
    ($lines:expr, $places:expr, $(
        $family:ident, $figures:ident: $id:literal, $sets:expr, $x:expr, $conditions:expr, $title:literal;
    )+) => { $(
        const $family: Family = family($id, $sets, $x, $lines, $conditions);
        const $figures: [Figure; 4] = four_figures!($family, $places, $id, "", $title);
    )+ };
}

readings! {
    MODE_LINES, MODES_PLACES,
    MODES, MODES_FIGURES: "modes", PLAIN, BIT_ERROR_RATE, PRINTED, ", modes compared";
    MODES_10MS, MODES_10MS_FIGURES: "modes-10ms", LATENT, BIT_ERROR_RATE, SLOW, ", 10 ms";
    MODES_OCTET, MODES_OCTET_FIGURES: "modes-octet", PLAIN, PER_OCTET, OCTETS, ", rate per octet";
    MODES_OCTET_10MS, MODES_OCTET_10MS_FIGURES: "modes-octet-10ms", LATENT, PER_OCTET, OCTETS_SLOW, ", rate per octet, 10 ms";
    MODES_20MB, MODES_20MB_FIGURES: "modes-20mb", LONG, BIT_ERROR_RATE, MUCH, ", 20 MB";
}

readings! {
    MACK_LINES, MACK_PLACES,
    MACK, MACK_FIGURES: "mack", PLAIN, BIT_ERROR_RATE, PRINTED, ", by acknowledgements to a MACK";
    MACK_10MS, MACK_10MS_FIGURES: "mack-10ms", LATENT, BIT_ERROR_RATE, SLOW, ", 10 ms";
    MACK_OCTET, MACK_OCTET_FIGURES: "mack-octet", PLAIN, PER_OCTET, OCTETS, ", rate per octet";
    MACK_OCTET_10MS, MACK_OCTET_10MS_FIGURES: "mack-octet-10ms", LATENT, PER_OCTET, OCTETS_SLOW, ", rate per octet, 10 ms";
    MACK_20MB, MACK_20MB_FIGURES: "mack-20mb", LONG, BIT_ERROR_RATE, MUCH, ", 20 MB";
}
