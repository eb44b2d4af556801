//! 1 to 365 acknowledgements in one packet, in reliable mode (section IV.B), with its claims.

use super::readings::percent;
use super::tables::aerotp;
use crate::airborne::{DELAY, GOODPUT, OVERHEAD, SCENARIO};
use crate::claims::{Claim, Finding, Verdict};
use crate::data::Data;
use crate::paper::{Family, Figure, Line};

const MACK: &str = "mack";
const COUNTS: &[&str] = &["1", "2", "5", "10", "20", "50", "100", "200", "365"];
const CLEAN: &str = "BER 0 until full";
/// By rate: with our timer, and without.
const PAIRS: [(&str, &str); 2] = [
    ("BER 1e-5 5 ms at most", "BER 1e-5 until full"),
    ("BER 1e-4 5 ms at most", "BER 1e-4 until full"),
];

pub(super) const FAMILY: Family = Family {
    id: MACK,
    scenario: SCENARIO,
    sets: &[],
    x_path: "flow.mack",
    x_values: COUNTS,
    x_label: "acknowledgements in one packet",
    x_logarithmic: true,
    lines: &[
        aerotp!(
            CLEAN,
            "flow.mode=reliable",
            "flow.mack_flush=1s",
            "hop.ber=0"
        ),
        aerotp!(PAIRS[0].0, "flow.mode=reliable", "hop.ber=1e-5"),
        aerotp!(
            PAIRS[0].1,
            "flow.mode=reliable",
            "flow.mack_flush=1s",
            "hop.ber=1e-5"
        ),
        aerotp!(PAIRS[1].0, "flow.mode=reliable", "hop.ber=1e-4"),
        aerotp!(
            PAIRS[1].1,
            "flow.mode=reliable",
            "flow.mack_flush=1s",
            "hop.ber=1e-4"
        ),
    ],
    conditions: "The reliable mode of Figures 21-24. A packet of acknowledgements goes out when it has as many as the axis \
        says, or after 5 ms, our default; \"until full\": after 1 s, the time in which 365 arrive.",
};

pub(super) const FIGURES: [Figure; 3] = [
    Figure::of(
        "mack-goodput",
        "section IV.B, figure not printed",
        "Goodput against the acknowledgements in one packet",
        &FAMILY,
        GOODPUT,
    ),
    Figure::of(
        "mack-delay",
        "section IV.B, figure not printed",
        "Delay against the acknowledgements in one packet",
        &FAMILY,
        DELAY,
    ),
    Figure::of(
        "mack-overhead",
        "section IV.B, figure not printed",
        "Overhead against the acknowledgements in one packet",
        &FAMILY,
        OVERHEAD,
    )
    .logarithmic(),
];

pub(super) const CLAIMS: [Claim; 3] = [
    Claim {
        id: "mack-negligible",
        place: "section IV.B",
        says: "How many acknowledgements share a packet hardly changes the performance.",
        criterion: "Reproduced if goodput and delay change by 10 % at most from 1 to 365 when packets wait until they are \
            full, at 0, 1e-5 and 1e-4; partly if so with a wait of 5 ms.",
        see: &["mack-goodput", "mack-delay"],
        check: negligible,
    },
    Claim {
        id: "mack-bandwidth",
        place: "Table I, section IV.B",
        says: "Aggregation adjusts the bandwidth that acknowledgements take.",
        criterion: "Reproduced if without errors 100 to a packet take at most a tenth of the octets that single ones \
            take, partly if half.",
        see: &["mack-overhead"],
        check: bandwidth,
    },
    Claim {
        id: "arq-trade",
        place: "section IV.B",
        says: "The reliable mode pays for reliability with the delay of what is lost and with the reverse channel.",
        criterion: "Reproduced if at 1e-5, with our defaults, the delay is longer than without errors, \
            acknowledgements are on the link, and every run completes; partly if one is missing.",
        see: &["mack-delay", "mack-overhead"],
        check: trade,
    },
];

/// How far a measure departs over the counts from its value at 1.
fn change(data: &Data, line: &str, name: &str) -> Option<f64> {
    let first = data.mean(MACK, line, "1", name)?;
    let of = |x: &&str| Some((data.mean(MACK, line, x, name)? / first - 1.0).abs());
    let all: Vec<f64> = COUNTS.iter().map(of).collect::<Option<_>>()?;
    all.into_iter().reduce(f64::max)
}

fn negligible(data: &Data) -> Option<Finding> {
    let most = |line| {
        let goodput = change(data, line, GOODPUT.name)?;
        Some((goodput, change(data, line, DELAY.name)?))
    };
    let small = |(goodput, delay): (f64, f64)| goodput.max(delay) <= 0.1;
    let (low, high) = (most(PAIRS[0].1)?, most(PAIRS[1].1)?);
    let full = small(most(CLEAN)?) && small(low) && small(high);
    let timed = small(most(PAIRS[0].0)?) && small(most(PAIRS[1].0)?);
    Some(Finding {
        verdict: Verdict::of(full, timed),
        figure: format!(
            "5 ms at most: goodput within {}; until full: within {} at 1e-5, {} at 1e-4",
            percent(most(PAIRS[0].0)?.0.max(most(PAIRS[1].0)?.0)),
            percent(low.0),
            percent(high.0)
        ),
        comment: format!(
            "At 375 packets a second a wait of 5 ms never holds more than two. Until full, 365 take a second: \
             what is lost is noticed that much later, and the delay at 1e-5 is {:.0} times as long. Without errors \
             nothing changes. The paper does not say how long a packet of acknowledgements may wait.",
            low.1 + 1.0
        ),
    })
}

fn bandwidth(data: &Data) -> Option<Finding> {
    let control = |x| data.mean(MACK, CLEAN, x, "wire_bytes.control");
    let (single, many) = (control("1")?, control("100")?);
    Some(Finding {
        verdict: Verdict::of(many <= single / 10.0, many <= single / 2.0),
        figure: format!("{:.1} kB, single {:.1} kB", many / 1e3, single / 1e3),
        comment: "With set-up, close and reports of the rate.".to_owned(),
    })
}

fn trade(data: &Data) -> Option<Finding> {
    let clean = data.mean(MACK, CLEAN, "10", DELAY.name)?;
    let of = |name| data.mean(MACK, PAIRS[0].0, "10", name);
    let (delay, control) = (of(DELAY.name)?, of("wire_bytes.control")?);
    let signs = [delay > clean, control > 0.0, of("completed")? >= 1.0];
    let held = signs.iter().filter(|sign| **sign).count();
    Some(Finding {
        verdict: Verdict::of(held == 3, held == 2),
        figure: format!(
            "{:.1} ms instead of {:.1}, {:.1} kB of acknowledgements",
            delay * 1e3,
            clean * 1e3,
            control / 1e3
        ),
        comment: String::new(),
    })
}
