//! 1 to 365 acknowledgements in one packet, in reliable mode (section IV.B), with its claims.

use super::readings::{MACKS, View, percent};
use super::tables::aerotp;
use crate::airborne::{DELAY, GOODPUT, OVERHEAD, SCENARIO};
use crate::claims::{ClaimFinding, ClaimVerdict, PaperClaim};
use crate::family::{Family, FamilyLine};
use crate::figure::Figure;
use crate::parameter::{Axis, AxisUnit, SweptParameter};
use crate::reading::under;

const COUNTS: &[&str] = &["1", "2", "5", "10", "20", "50", "100", "200", "365"];
const CLEAN: &str = "BER 0 until full";
/// The lines by rate: with our timer, and without.
const PAIRS: [(&str, &str); 2] = [
    ("BER 1e-5 5 ms at most", "BER 1e-5 until full"),
    ("BER 1e-4 5 ms at most", "BER 1e-4 until full"),
];

/// The lines of a family, by the rates that they have.
macro_rules! lines {
    ($low:literal, $high:literal) => {
        &[
            aerotp!(
                CLEAN,
                "flow.mode=reliable",
                "flow.mack_flush=1s",
                "hop.ber=0"
            ),
            aerotp!(PAIRS[0].0, "flow.mode=reliable", $low),
            aerotp!(PAIRS[0].1, "flow.mode=reliable", "flow.mack_flush=1s", $low),
            aerotp!(PAIRS[1].0, "flow.mode=reliable", $high),
            aerotp!(
                PAIRS[1].1,
                "flow.mode=reliable",
                "flow.mack_flush=1s",
                $high
            ),
        ]
    };
}

pub(super) const FAMILY: Family = Family {
    id: "mack",
    scenario: SCENARIO,
    sets: &[],
    x: SweptParameter::numbers(
        "flow.mack",
        COUNTS,
        "{}",
        Axis::logarithmic("acknowledgements in one packet", AxisUnit::NONE),
    ),
    lines: lines!("hop.ber=1e-5", "hop.ber=1e-4"),
    conditions: "The reliable mode of Figures 21-24. A packet of acknowledgements goes out when it has as many as the axis \
        says, or after 5 ms, our default; \"until full\": after 1 s, the time in which 365 arrive.",
};

/// The same runs under other readings of the paper's conditions.
pub(super) const LATE_FAMILY: Family = Family {
    id: "mack-10ms",
    sets: &["hop.delay=10ms"],
    conditions: "The same, with a latency of 10 ms on the lossy link.",
    ..FAMILY
};

pub(super) const OCTET_FAMILY: Family = Family {
    id: "mack-octet",
    lines: lines!("hop.ber=1e-5 per octet", "hop.ber=1e-4 per octet"),
    conditions: "The same, with the error rates per octet: ns-3's default unit.",
    ..FAMILY
};

pub(super) const BULK_FAMILY: Family = Family {
    id: "mack-20mb",
    sets: &["flow.bytes=20MB", "run.duration=1000s", "run.runs=10"],
    conditions: "The same, with 20 MB.",
    ..FAMILY
};

/// The three figures of a family.
macro_rules! figures {
    ($name:ident, $family:ident, $suffix:literal, $reading:literal) => {
        pub(super) const $name: [Figure; 3] = [
            Figure::of(
                concat!("mack-goodput", $suffix),
                PLACE,
                concat!(
                    "Goodput against the acknowledgements in one packet",
                    $reading
                ),
                &$family,
                GOODPUT,
            ),
            Figure::of(
                concat!("mack-delay", $suffix),
                PLACE,
                concat!("Delay against the acknowledgements in one packet", $reading),
                &$family,
                DELAY,
            ),
            Figure::of(
                concat!("mack-overhead", $suffix),
                PLACE,
                concat!(
                    "Overhead against the acknowledgements in one packet",
                    $reading
                ),
                &$family,
                OVERHEAD,
            )
            .logarithmic(),
        ];
    };
}

const PLACE: &str = "section IV.B, figure not printed";

figures!(FIGURES, FAMILY, "", "");
figures!(LATE_FIGURES, LATE_FAMILY, "-10ms", ", 10 ms");
figures!(
    OCTET_FIGURES,
    OCTET_FAMILY,
    "-octet",
    ", error rate per octet"
);
figures!(BULK_FIGURES, BULK_FAMILY, "-20mb", ", 20 MB");

pub(super) const CLAIMS: [PaperClaim; 3] = [
    PaperClaim {
        id: "mack-negligible",
        place: "section IV.B",
        says: "How many acknowledgements share a packet hardly changes the performance.",
        criterion: "Reproduced if goodput and delay change by 10 % at most from 1 to 365, packets waiting until they are \
            full, at 0, 1e-5 and 1e-4; partly if so at 0 and 1e-5.",
        see: &["mack-goodput", "mack-delay"],
        check: under!(MACKS, negligible),
    },
    PaperClaim {
        id: "mack-bandwidth",
        place: "Table I, section IV.B",
        says: "Aggregation adjusts the bandwidth that acknowledgements take.",
        criterion: "Reproduced if without errors 100 to a packet take at most a tenth of the octets that single ones \
            take, partly if half.",
        see: &["mack-overhead"],
        check: under!(MACKS, bandwidth),
    },
    PaperClaim {
        id: "arq-trade",
        place: "section IV.B",
        says: "The reliable mode pays for reliability with the delay of what is lost and with the reverse channel.",
        criterion: "Reproduced if at 1e-5, with our defaults, the delay is longer than without errors, \
            acknowledgements are on the link, and every run completes; partly if one is missing.",
        see: &["mack-delay", "mack-overhead"],
        check: under!(MACKS, trade),
    },
];

/// The greatest relative departure of a measure, over the counts, from its value at 1.
fn change(view: &View<'_>, line: &str, name: &str) -> Option<f64> {
    let first = view.at(line, "1", name)?;
    let of = |x: &&str| Some((view.at(line, x, name)? / first - 1.0).abs());
    let all: Vec<f64> = COUNTS.iter().map(of).collect::<Option<_>>()?;
    all.into_iter().reduce(f64::max)
}

fn negligible(view: &View<'_>) -> Option<ClaimFinding> {
    let most = |line| {
        let goodput = change(view, line, GOODPUT.name)?;
        Some((goodput, change(view, line, DELAY.name)?))
    };
    let small = |(goodput, delay): (f64, f64)| goodput.max(delay) <= 0.1;
    let (low, high) = (most(PAIRS[0].1)?, most(PAIRS[1].1)?);
    let some = small(most(CLEAN)?) && small(low);
    Some(ClaimFinding::new(
        ClaimVerdict::of(some && small(high), some),
        format!(
            "goodput within {} at 1e-5 and {} at 1e-4, delay {:.0} and {:.1} times as long",
            percent(low.0),
            percent(high.0),
            low.1 + 1.0,
            high.1 + 1.0
        ),
        format!(
            "Until full, 365 take a second: what is lost is noticed that much later. Without errors nothing changes. With our wait of 5 ms goodput stays \
             within {}, and says nothing: at 375 packets a second no more than two come together, whatever the number. The paper does not say how long a packet \
             of acknowledgements may wait.",
            percent(most(PAIRS[0].0)?.0.max(most(PAIRS[1].0)?.0))
        ),
    ))
}

fn bandwidth(view: &View<'_>) -> Option<ClaimFinding> {
    let control = |x| view.at(CLEAN, x, "wire_bytes.control");
    let (single, many) = (control("1")?, control("100")?);
    Some(ClaimFinding::new(
        ClaimVerdict::of(many <= single / 10.0, many <= single / 2.0),
        format!("{:.1} kB, single {:.1} kB", many / 1e3, single / 1e3),
        "With set-up, close and reports of the rate.".to_owned(),
    ))
}

fn trade(view: &View<'_>) -> Option<ClaimFinding> {
    let clean = view.at(CLEAN, "10", DELAY.name)?;
    let of = |name| view.at(PAIRS[0].0, "10", name);
    let (delay, control) = (of(DELAY.name)?, of("wire_bytes.control")?);
    let signs = [delay > clean, control > 0.0, of("completed")? >= 1.0];
    let held = signs.iter().filter(|sign| **sign).count();
    Some(ClaimFinding::bare(
        ClaimVerdict::of(held == 3, held == 2),
        format!(
            "{:.1} ms instead of {:.1}, {:.1} kB of acknowledgements",
            delay * 1e3,
            clean * 1e3,
            control / 1e3
        ),
    ))
}
