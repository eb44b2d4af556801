//! The quasi-reliable mode with 0 to 256 parity words a packet (section IV.C, Figures 13-20).

use crate::airborne::{BIT_ERROR_RATE, OVERHEAD, SCENARIO, four_figures, octet_error_rate};
use crate::family::{Family, FamilyLine};
use crate::figure::Figure;
use crate::parameter::{Axis, AxisUnit, SweptParameter};

/// The ids of strengths against the bit error rate, and of the same runs the other way round.
pub(super) const BY_RATE: &str = "strength-by-rate";
pub(super) const BY_STRENGTH: &str = "rate-by-strength";
pub(super) const BY_AMOUNT: &str = "strength-by-amount";

/// The strengths, as the lines name them and as the scenario does.
pub(super) const STRENGTHS: [(&str, &str); 10] = [
    ("0 words", "0"),
    ("2 words", "2"),
    ("4 words", "4"),
    ("8 words", "8"),
    ("16 words", "16"),
    ("32 words", "32"),
    ("64 words", "64"),
    ("96 words", "96"),
    ("128 words", "128"),
    ("256 words", "256"),
];

/// The words of parity in a packet, at some strengths.
pub(super) const fn parity_words(words: &'static [&'static str]) -> SweptParameter {
    let axis = Axis::linear("parity words of 32 bits in a packet", AxisUnit::NONE);
    SweptParameter::numbers("flow.fec_words", words, "{}", axis)
}

pub(super) const PARITY_WORDS: SweptParameter =
    parity_words(&["0", "2", "4", "8", "16", "32", "64", "96", "128", "256"]);

/// The amounts of data that have runs, in MB.
pub(super) const AMOUNTS: [&str; 5] = ["1", "2", "5", "10", "20"];

macro_rules! quasi {
    ($label:literal, $set:literal) => {
        FamilyLine::of(
            $label,
            &[
                "flow.transport=aerotp",
                "flow.first=after-interval",
                "hop.frame_check=false",
                "flow.mode=quasi-reliable",
                $set,
            ],
        )
    };
}

pub(super) const RATE_FAMILY: Family = Family {
    id: BY_RATE,
    scenario: SCENARIO,
    sets: &[],
    x: BIT_ERROR_RATE,
    lines: &[
        quasi!("0 words", "flow.fec_words=0"),
        quasi!("2 words", "flow.fec_words=2"),
        quasi!("4 words", "flow.fec_words=4"),
        quasi!("8 words", "flow.fec_words=8"),
        quasi!("16 words", "flow.fec_words=16"),
        quasi!("32 words", "flow.fec_words=32"),
        quasi!("64 words", "flow.fec_words=64"),
        quasi!("96 words", "flow.fec_words=96"),
        quasi!("128 words", "flow.fec_words=128"),
        quasi!("256 words", "flow.fec_words=256"),
    ],
    conditions: "680 writes of 1472 octets (1 MB) at 4.416 Mbit/s over 10 Gbit/s, 5 Mbit/s with 10 us \
        and bit errors in both directions, 10 Gbit/s. AeroTP's quasi-reliable mode with packets of 1500 \
        octets, of which the parity words take 4 each; Reed-Solomon over GF(256), interleaved. A hole in \
        the data is waited for 20 ms, then passed over.",
};

pub(super) const STRENGTH_FAMILY: Family = Family {
    id: BY_STRENGTH,
    x: PARITY_WORDS,
    lines: &[
        quasi!("BER 0", "hop.ber=0"),
        quasi!("BER 1e-6", "hop.ber=1e-6"),
        quasi!("BER 1e-5", "hop.ber=1e-5"),
        quasi!("BER 2.5e-5", "hop.ber=2.5e-5"),
        quasi!("BER 5e-5", "hop.ber=5e-5"),
        quasi!("BER 1e-4", "hop.ber=1e-4"),
    ],
    conditions: "The same runs, by strength.",
    ..RATE_FAMILY
};

pub(super) const AMOUNT_FAMILY: Family = Family {
    id: BY_AMOUNT,
    x: SweptParameter::numbers(
        "flow.bytes",
        &AMOUNTS,
        "{}MB",
        Axis::linear("data to send", AxisUnit::MB),
    ),
    lines: &[
        quasi!("0 words", "flow.fec_words=0"),
        quasi!("32 words", "flow.fec_words=32"),
        quasi!("128 words", "flow.fec_words=128"),
    ],
    sets: &["run.runs=10", "hop.jitter=10us"],
    conditions: "As above without bit errors, with up to 10 us of jitter by chance; 1 to 20 MB.",
    ..RATE_FAMILY
};

/// Strengths by rate under other readings of the paper's conditions.
pub(super) const LATE_FAMILY: Family = Family {
    id: "strength-10ms",
    sets: &["hop.delay=10ms"],
    conditions: "As Figures 13-16, with a latency of 10 ms on the lossy link.",
    ..RATE_FAMILY
};

pub(super) const OCTET_FAMILY: Family = Family {
    id: "strength-octet",
    x: octet_error_rate("error rate per octet"),
    conditions: "As Figures 13-16, with the error rate per octet: ns-3's default unit.",
    ..RATE_FAMILY
};

pub(super) const BULK_FAMILY: Family = Family {
    id: "strength-20mb",
    sets: &["flow.bytes=20MB", "run.duration=1000s", "run.runs=10"],
    x: SweptParameter::numbers(
        "hop.ber",
        &["0", "1e-5", "5e-5", "1e-4"],
        "{}",
        BIT_ERROR_RATE.axis,
    ),
    conditions: "As Figures 13-16, with 20 MB, at four of the rates.",
    ..RATE_FAMILY
};

/// The runs of the readings above, by strength.
pub(super) const LATE_STRENGTH_FAMILY: Family = Family {
    id: "rate-by-strength-10ms",
    sets: LATE_FAMILY.sets,
    conditions: "As Figures 17-20, with a latency of 10 ms on the lossy link: the runs of Figures 13-16 at 10 ms.",
    ..STRENGTH_FAMILY
};

pub(super) const OCTET_STRENGTH_FAMILY: Family = Family {
    id: "rate-by-strength-octet",
    lines: &[
        quasi!("0 per octet", "hop.ber=0 per octet"),
        quasi!("1e-6 per octet", "hop.ber=1e-6 per octet"),
        quasi!("1e-5 per octet", "hop.ber=1e-5 per octet"),
        quasi!("2.5e-5 per octet", "hop.ber=2.5e-5 per octet"),
        quasi!("5e-5 per octet", "hop.ber=5e-5 per octet"),
        quasi!("1e-4 per octet", "hop.ber=1e-4 per octet"),
    ],
    conditions: "As Figures 17-20, with the error rates per octet, ns-3's default unit: the runs of Figures 13-16 per octet.",
    ..STRENGTH_FAMILY
};

pub(super) const BULK_STRENGTH_FAMILY: Family = Family {
    id: "rate-by-strength-20mb",
    sets: BULK_FAMILY.sets,
    lines: &[
        quasi!("BER 0", "hop.ber=0"),
        quasi!("BER 1e-5", "hop.ber=1e-5"),
        quasi!("BER 5e-5", "hop.ber=5e-5"),
        quasi!("BER 1e-4", "hop.ber=1e-4"),
    ],
    conditions: "As Figures 17-20, with 20 MB, at four of the rates: the runs of Figures 13-16 with 20 MB.",
    ..STRENGTH_FAMILY
};

const BY_RATE_PLACES: [&str; 4] = ["Figure 13", "Figure 14", "Figure 15", "Figure 16"];
const BY_STRENGTH_PLACES: [&str; 4] = ["Figure 17", "Figure 18", "Figure 19", "Figure 20"];

/// The paper's eight figures: two families of the same runs, by rate and by strength.
macro_rules! figures {
    ($by_rate:ident, $by_strength:ident, $suffix:literal, $reading:literal) => {{
        let [a, b, c, d] = four_figures!(
            $by_rate,
            BY_RATE_PLACES,
            "strength",
            $suffix,
            " of FEC strengths against the error rate",
            $reading
        );
        let [e, f, g, h] = four_figures!(
            $by_strength,
            BY_STRENGTH_PLACES,
            "rate",
            $suffix,
            " against the FEC strength",
            $reading
        );
        [a, b, c, d, e, f, g, h.linear()]
    }};
}

pub(super) const FIGURES: [Figure; 8] = figures!(RATE_FAMILY, STRENGTH_FAMILY, "", "");
pub(super) const LATE_FIGURES: [Figure; 8] =
    figures!(LATE_FAMILY, LATE_STRENGTH_FAMILY, "-10ms", ", 10 ms");
pub(super) const OCTET_FIGURES: [Figure; 8] = figures!(
    OCTET_FAMILY,
    OCTET_STRENGTH_FAMILY,
    "-octet",
    ", error rate per octet"
);
pub(super) const BULK_FIGURES: [Figure; 8] =
    figures!(BULK_FAMILY, BULK_STRENGTH_FAMILY, "-20mb", ", 20 MB");

/// Our experiment on the growth of Figure 20.
pub(super) const AMOUNT_FIGURE: Figure = Figure::of(
    "amount-overhead",
    "Our experiment on Figure 20",
    "Overhead against the amount of data",
    &AMOUNT_FAMILY,
    OVERHEAD,
);
