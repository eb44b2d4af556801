//! Messages that fill a share of a link, beside the frontier of `reference/fraction_vs_budget.csv`: its rows of 100 ms and even
//! loss. `scripts/fraction-vs-budget` has all of them.

use super::families::IN_TIME;
use crate::claims::{ClaimFinding, ClaimVerdict, PaperClaim};
use crate::data::Data;
use crate::family::{Family, FamilyLine};
use crate::figure::Figure;
use crate::parameter::{SweptParameter, ValueName};

const CONDITIONS: &str = "Packets of 1200 octets over 10 Mbit/s and 50 ms one way. Messages of one packet are written at the given part of the largest share of capacity at which 99 of \
    100 packets can be read in order within the budget (a simulation of a sliding window with ideal feedback and known loss, blocks and repetition; the best of them), 20,000 of them. They are due by the budget and the way. \
    Ideal feedback: nothing is lost on the way back, and its packets take no time to send. Real feedback: it is as the way there.";

const FILE: (&str, &str) = (
    "scenarios/deadline-frontier.toml",
    include_str!("../../../../scenarios/deadline-frontier.toml"),
);

/// The line of every family here.
const AUTO: &str = "auto";

/// A budget in milliseconds, with the time between messages and the deadline that are written for it.
const fn row(budget: &'static str, written: &'static str) -> ValueName {
    ValueName {
        id: budget,
        written,
        label: budget,
    }
}

const fn family(
    id: &'static str,
    rows: &'static [ValueName],
    lines: &'static [FamilyLine],
) -> Family {
    Family {
        id,
        scenario: FILE,
        sets: &[],
        x: SweptParameter::names("flow.interval, flow.deadline", rows, "budget / ms"),
        lines,
        conditions: CONDITIONS,
    }
}

/// The times between messages at .95 of the frontier, and at .88 of it, by the loss in hundredths.
const IDEAL_10_ROWS: &[ValueName] = &[
    row("5", "[1.6834ms,55.96ms]"),
    row("10", "[1.4601ms,60.96ms]"),
    row("25", "[1.2906ms,75.96ms]"),
    row("50", "[1.2906ms,100.96ms]"),
    row("100", "[1.1970ms,150.96ms]"),
    row("250", "[1.1364ms,300.96ms]"),
    row("500", "[1.1228ms,550.96ms]"),
    row("1000", "[1.1228ms,1050.96ms]"),
    row("2500", "[1.1228ms,2550.96ms]"),
];
const REAL_10_ROWS: &[ValueName] = &[
    row("5", "[1.8173ms,55.96ms]"),
    row("10", "[1.5762ms,60.96ms]"),
    row("25", "[1.3932ms,75.96ms]"),
    row("50", "[1.3932ms,100.96ms]"),
    row("100", "[1.2922ms,150.96ms]"),
    row("250", "[1.2268ms,300.96ms]"),
    row("500", "[1.2121ms,550.96ms]"),
    row("1000", "[1.2121ms,1050.96ms]"),
    row("2500", "[1.2121ms,2550.96ms]"),
];
const IDEAL_30_ROWS: &[ValueName] = &[
    row("5", "[3.6090ms,55.96ms]"),
    row("10", "[2.7445ms,60.96ms]"),
    row("25", "[2.0922ms,75.96ms]"),
    row("50", "[1.7691ms,100.96ms]"),
    row("100", "[1.6367ms,150.96ms]"),
    row("250", "[1.5038ms,300.96ms]"),
    row("500", "[1.4806ms,550.96ms]"),
    row("1000", "[1.4465ms,1050.96ms]"),
    row("2500", "[1.4465ms,2550.96ms]"),
];
const REAL_30_ROWS: &[ValueName] = &[
    row("5", "[3.8961ms,55.96ms]"),
    row("10", "[2.9628ms,60.96ms]"),
    row("25", "[2.2586ms,75.96ms]"),
    row("50", "[1.9099ms,100.96ms]"),
    row("100", "[1.7669ms,150.96ms]"),
    row("250", "[1.6234ms,300.96ms]"),
    row("500", "[1.5984ms,550.96ms]"),
    row("1000", "[1.5616ms,1050.96ms]"),
    row("2500", "[1.5616ms,2550.96ms]"),
];

macro_rules! ideal {
    ($loss:literal) => {
        &[FamilyLine::of(
            AUTO,
            &[
                concat!("hop.loss=", $loss),
                "hop.reverse.loss=0%",
                "hop.reverse.rate=1gbit",
            ],
        )]
    };
}

macro_rules! real {
    ($loss:literal) => {
        &[FamilyLine::of(AUTO, &[concat!("hop.loss=", $loss)])]
    };
}

pub(super) const IDEAL_10: Family = family("frontier-ideal-10", IDEAL_10_ROWS, ideal!("10%"));
pub(super) const REAL_10: Family = family("frontier-real-10", REAL_10_ROWS, real!("10%"));
pub(super) const IDEAL_30: Family = family("frontier-ideal-30", IDEAL_30_ROWS, ideal!("30%"));
pub(super) const REAL_30: Family = family("frontier-real-30", REAL_30_ROWS, real!("30%"));

const PLACE: &str = "Issue 21, must 6";

pub(super) const FIGURES: [Figure; 4] = [
    Figure::of(
        "frontier-ideal-10-in-time",
        PLACE,
        "In time at .95 of the frontier, ideal feedback, 10 % lost",
        &IDEAL_10,
        IN_TIME,
    ),
    Figure::of(
        "frontier-real-10-in-time",
        PLACE,
        "In time at .88 of the frontier, real feedback, 10 % lost",
        &REAL_10,
        IN_TIME,
    ),
    Figure::of(
        "frontier-ideal-30-in-time",
        PLACE,
        "In time at .95 of the frontier, ideal feedback, 30 % lost",
        &IDEAL_30,
        IN_TIME,
    ),
    Figure::of(
        "frontier-real-30-in-time",
        PLACE,
        "In time at .88 of the frontier, real feedback, 30 % lost",
        &REAL_30,
        IN_TIME,
    ),
];

pub(super) const CLAIMS: [PaperClaim; 2] = [
    PaperClaim {
        id: "frontier-ideal",
        place: PLACE,
        says: "With ideal feedback auto reaches .95 of the frontier of capacity and delay.",
        criterion: "Reproduced if at .95 of the frontier at least .99 of the messages are in time in every row; partly if in half of the rows.",
        see: &["frontier-ideal-10-in-time", "frontier-ideal-30-in-time"],
        check: |data| held(data, [&IDEAL_10, &IDEAL_30]),
    },
    PaperClaim {
        id: "frontier-real",
        place: PLACE,
        says: "With real feedback auto reaches .88 of the frontier of capacity and delay.",
        criterion: "Reproduced if at .88 of the frontier at least .99 of the messages are in time in every row; partly if in half of the rows.",
        see: &["frontier-real-10-in-time", "frontier-real-30-in-time"],
        check: |data| held(data, [&REAL_10, &REAL_30]),
    },
];

/// The rows in which 99 of 100 messages are in time, and those in which they are not.
fn held(data: &Data, families: [&Family; 2]) -> Option<ClaimFinding> {
    let (mut rows, mut missed) = (0_usize, Vec::new());
    for (family, loss) in families.into_iter().zip(["10 %", "30 %"]) {
        for budget in family.x.ids() {
            let share = data.mean(family.id, AUTO, budget, IN_TIME.name)?;
            rows += 1;
            if share < 0.99 {
                missed.push(format!("{loss} within {budget} ms: {:.1} %", share * 100.0));
            }
        }
    }
    let met = rows - missed.len();
    let verdict = ClaimVerdict::of(missed.is_empty(), met * 2 >= rows);
    let comment = if missed.is_empty() {
        String::new()
    } else {
        format!(
            "In time in the others: {}. A flow that writes a message every millisecond or two has some that wait for the line, and gets no plan then: its repetition is that of bulk. Symbols span 16 messages at most.",
            missed.join("; ")
        )
    };
    Some(ClaimFinding::new(
        verdict,
        format!("{met} of {rows} rows"),
        comment,
    ))
}
