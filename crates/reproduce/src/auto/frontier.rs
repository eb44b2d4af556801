//! Messages that fill a share of a link, beside the frontier of `reference/fraction_vs_budget.csv`: its rows of 100 ms and even
//! loss. `scripts/fraction-vs-budget` has all of them.

use super::families::IN_TIME;
use crate::claims::{ClaimFinding, ClaimVerdict, PaperClaim};
use crate::data::Data;
use crate::family::{Family, FamilyLine};
use crate::figure::Figure;
use crate::parameter::{Axis, AxisUnit, SweptParameter, ValueRow};
use std::sync::LazyLock;

const CONDITIONS: &str = "Packets of 1200 octets over 10 Mbit/s and 50 ms one way. Messages of one packet are written at the given part of the largest share of capacity at which 99 of \
    100 packets can be read in order within the budget (a simulation of a sliding window with ideal feedback and known loss, blocks and repetition; the best of them), 20,000 of them. The deadline is the budget, the way of 50 ms and the .96 ms that a packet takes to send. \
    Ideal feedback: nothing is lost on the way back, and its packets take no time to send. Real feedback: it is as the way there.";

const FILE: (&str, &str) = (
    "scenarios/deadline-frontier.toml",
    include_str!("../../../../scenarios/deadline-frontier.toml"),
);

/// The line of every family here.
const AUTO: &str = "auto";

const TABLE: &str = include_str!("../../../../reference/fraction_vs_budget.csv");

/// The rows of the table that the page has: their round trip, and the packets of a burst.
const ROUND_TRIP_MS: &str = "100";
const EVEN: &str = "1";
/// The time of a packet on the link.
const SLOT_MS: f64 = 0.96;

/// A part of the frontier at which messages are written, at one loss.
struct Part {
    /// The loss, as the table has it.
    loss: &'static str,
    of_frontier: f64,
}

impl Part {
    /// The budgets of the table, with the time between messages and the deadline that follow from each.
    fn rows(&self) -> Vec<ValueRow> {
        let mut lines = TABLE
            .lines()
            .map(|line| line.split(',').collect::<Vec<_>>());
        let names = lines.next().unwrap_or_default();
        let column = |name: &str| names.iter().position(|known| *known == name);
        let row = |line: Vec<&'static str>| {
            let text = |name| line.get(column(name)?).copied();
            let number = |name| text(name)?.parse::<f64>().ok();
            let is_shown = text("loss_p") == Some(self.loss)
                && text("mean_burst_packets") == Some(EVEN)
                && text("rtt_ms") == Some(ROUND_TRIP_MS);
            if !is_shown {
                return None;
            }
            let arrives = 1.0 - number("loss_p")?;
            let share = number("best_fraction_of_capacity")? * arrives * self.of_frontier;
            let deadline = number("p99_extra_budget_ms")? + number("rtt_ms")? / 2.0 + SLOT_MS;
            Some(ValueRow {
                number: text("p99_extra_budget_ms")?,
                written: format!("[{:.6}ms,{deadline:.3}ms]", SLOT_MS / share),
            })
        };
        lines.filter_map(row).collect()
    }
}

static IDEAL_10_ROWS: LazyLock<Vec<ValueRow>> = LazyLock::new(|| IDEAL_10_PART.rows());
static REAL_10_ROWS: LazyLock<Vec<ValueRow>> = LazyLock::new(|| REAL_10_PART.rows());
static IDEAL_30_ROWS: LazyLock<Vec<ValueRow>> = LazyLock::new(|| IDEAL_30_PART.rows());
static REAL_30_ROWS: LazyLock<Vec<ValueRow>> = LazyLock::new(|| REAL_30_PART.rows());

const IDEAL_PART: f64 = 0.95;
const REAL_PART: f64 = 0.88;
const LOSSES: [&str; 2] = ["0.1", "0.3"];
const IDEAL_10_PART: Part = Part {
    loss: LOSSES[0],
    of_frontier: IDEAL_PART,
};
const REAL_10_PART: Part = Part {
    loss: LOSSES[0],
    of_frontier: REAL_PART,
};
const IDEAL_30_PART: Part = Part {
    loss: LOSSES[1],
    of_frontier: IDEAL_PART,
};
const REAL_30_PART: Part = Part {
    loss: LOSSES[1],
    of_frontier: REAL_PART,
};

const fn family(
    id: &'static str,
    rows: &'static LazyLock<Vec<ValueRow>>,
    lines: &'static [FamilyLine],
) -> Family {
    Family {
        id,
        scenario: FILE,
        sets: &[],
        x: SweptParameter::rows(
            "flow.interval, flow.deadline",
            rows,
            Axis::logarithmic("budget", AxisUnit::MS),
        ),
        lines,
        conditions: CONDITIONS,
    }
}

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

pub(super) const IDEAL_10: Family = family("frontier-ideal-10", &IDEAL_10_ROWS, ideal!("10%"));
pub(super) const REAL_10: Family = family("frontier-real-10", &REAL_10_ROWS, real!("10%"));
pub(super) const IDEAL_30: Family = family("frontier-ideal-30", &IDEAL_30_ROWS, ideal!("30%"));
pub(super) const REAL_30: Family = family("frontier-real-30", &REAL_30_ROWS, real!("30%"));

const PLACE: &str = "Goal 6";

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
            "In time in the others: {}. Nearly none is in time where the budget is shorter than a round trip: every few milliseconds a packet is lost, and all behind it wait for its repetition. Symbols ahead would bring it sooner, but a flow with messages that wait for the line gets none: it is repaired as bulk is.",
            missed.join("; ")
        )
    };
    Some(ClaimFinding::new(
        verdict,
        format!("{met} of {rows} rows"),
        comment,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interval_and_deadline_of_a_row_follow_from_the_table() {
        // A packet over its share of what arrives; 5, 50 and 0.96 ms.
        let parts = [
            (&IDEAL_10_ROWS, 0.96 / (0.9 * 0.667 * 0.95)),
            (&REAL_30_ROWS, 0.96 / (0.7 * 0.400 * 0.88)),
        ];
        for (rows, interval) in parts {
            assert_eq!(rows.len(), 9);
            let first = &rows[0];
            assert_eq!(first.number, "5");
            let expected = format!("[{interval:.6}ms,55.960ms]");
            assert_eq!(first.written, expected);
        }
    }
}
