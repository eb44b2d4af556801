//! Thin flows and messages with a deadline: figures and goals.

use super::families::{
    ANY_ORDER, DUE_80, DUE_90, DUE_150, DUE_300, EVEN_10, EVEN_30, FIXED, IN_TIME, NO_GOAL,
    NOTHING_AHEAD, OCTETS, ON_OFF, P99, THIN,
};
use crate::claims::{ClaimFinding, ClaimVerdict, PaperClaim};
use crate::data::Data;
use crate::figure::Figure;

const GOAL_1: &str = "Goal 1";
const GOAL_2: &str = "Goal 2";

pub(super) const THIN_FIGURES: [Figure; 2] = [
    Figure::of(
        "thin-p99",
        GOAL_1,
        "Delay of 99 of 100 messages",
        &THIN,
        P99,
    ),
    Figure::of("thin-octets", GOAL_1, "Octets sent", &THIN, OCTETS),
];

pub(super) const DUE_FIGURES: [Figure; 4] = [
    Figure::of(
        "due-150-in-time",
        GOAL_2,
        "In time, 150 ms",
        &DUE_150,
        IN_TIME,
    ),
    Figure::of(
        "due-150-octets",
        GOAL_2,
        "Octets sent, 150 ms",
        &DUE_150,
        OCTETS,
    ),
    Figure::of(
        "due-300-in-time",
        GOAL_2,
        "In time, 300 ms",
        &DUE_300,
        IN_TIME,
    ),
    Figure::of(
        "due-300-octets",
        GOAL_2,
        "Octets sent, 300 ms",
        &DUE_300,
        OCTETS,
    ),
];

const P99_CRITERION: &str = "Reproduced if the mean of the runs' 99th percentiles and the mean of octets are at most these; partly if one of the two is.";
const SHARE_CRITERION: &str = "Reproduced if the mean share in time is at least this and the mean of octets at most that; partly if one of the two is.";

pub(super) const THIN_CLAIMS: [PaperClaim; 6] = [
    thin(
        "nothing-ahead-10",
        "With nothing sent twice 99 of 100 messages are read within 125 ms at 10 % loss, for at most 1.2 octets for one.",
        |data| within(data, (NOTHING_AHEAD, "10"), 125.0, 1.2),
    ),
    thin(
        "nothing-ahead-30",
        "With nothing sent twice 99 of 100 messages are read within 215 ms at 30 % loss, for at most 1.6 octets for one.",
        |data| within(data, (NOTHING_AHEAD, "30"), 215.0, 1.6),
    ),
    thin(
        "no-goal-10",
        "Without a goal 99 of 100 messages are read within 90 ms at 10 % loss, for at most 1.35 octets for one.",
        |data| within(data, (NO_GOAL, "10"), 90.0, 1.35),
    ),
    thin(
        "no-goal-30",
        "Without a goal 99 of 100 messages are read within 140 ms at 30 % loss, for at most 1.85 octets for one.",
        |data| within(data, (NO_GOAL, "30"), 140.0, 1.85),
    ),
    thin(
        "due-80-10",
        "With a deadline of 80 ms 99 of 100 messages are read by it at 10 % loss, for at most 1.4 octets for one.",
        |data| within(data, (DUE_80, "10"), 80.0, 1.4),
    ),
    thin(
        "due-90-30",
        "With a deadline of 90 ms 99 of 100 messages are read by it at 30 % loss, for at most 2.25 octets for one.",
        |data| within(data, (DUE_90, "30"), 90.0, 2.25),
    ),
];

pub(super) const DUE_CLAIMS: [PaperClaim; 5] = [
    due(
        "in-time-10",
        "Of messages with 150 ms in any order 99.97 % are in time at 10 % loss, for at most 1.3 octets for one.",
        |data| in_time(data, (DUE_150.id, EVEN_10), 0.9997, 1.3),
    ),
    due(
        "in-time-30",
        "Of messages with 150 ms in any order 99.8 % are in time at 30 % loss, for at most 1.85 octets for one.",
        |data| in_time(data, (DUE_150.id, EVEN_30), 0.998, 1.85),
    ),
    due(
        "in-time-on-off-150",
        "Where 25 and 75 % are lost in turn, 83 % of messages are in time with 150 ms, for at most 2 octets for one.",
        |data| in_time(data, (DUE_150.id, ON_OFF), 0.83, 2.0),
    ),
    due(
        "in-time-on-off-300",
        "Where 25 and 75 % are lost in turn, 92 % of messages are in time with 300 ms, for at most 2 octets for one.",
        |data| in_time(data, (DUE_300.id, ON_OFF), 0.92, 2.0),
    ),
    PaperClaim {
        id: "better-than-fixed",
        place: GOAL_2,
        says: "More messages are in time with auto than with every fixed setting that sends no more octets.",
        criterion: "Reproduced if on each of the links and with both deadlines no fixed setting of the page that sends no more octets has a larger share in time; partly if on half of them. `make \
            auto-vs-fixed` has 93 settings and random scenarios (docs/models/auto.md).",
        see: &[
            "due-150-in-time",
            "due-150-octets",
            "due-300-in-time",
            "due-300-octets",
        ],
        check: better,
    },
];

const fn thin(
    id: &'static str,
    says: &'static str,
    check: fn(&Data) -> Option<ClaimFinding>,
) -> PaperClaim {
    PaperClaim {
        id,
        place: GOAL_1,
        says,
        criterion: P99_CRITERION,
        see: &["thin-p99", "thin-octets"],
        check,
    }
}

const fn due(
    id: &'static str,
    says: &'static str,
    check: fn(&Data) -> Option<ClaimFinding>,
) -> PaperClaim {
    PaperClaim {
        id,
        place: GOAL_2,
        says,
        criterion: SHARE_CRITERION,
        see: &[
            "due-150-in-time",
            "due-150-octets",
            "due-300-in-time",
            "due-300-octets",
        ],
        check,
    }
}

fn within(data: &Data, (line, loss): (&str, &str), p99_ms: f64, most: f64) -> Option<ClaimFinding> {
    let delay = data.mean(THIN.id, line, loss, P99.name)? / P99.unit;
    let octets = data.mean(THIN.id, line, loss, OCTETS.name)?;
    let (fast, cheap) = (delay <= p99_ms, octets <= most);
    let verdict = ClaimVerdict::of(fast && cheap, fast || cheap);
    Some(ClaimFinding::bare(
        verdict,
        format!("{delay:.1} ms, {octets:.3} octets"),
    ))
}

fn in_time(
    data: &Data,
    (family, link): (&str, &str),
    least: f64,
    most: f64,
) -> Option<ClaimFinding> {
    let share = data.mean(family, ANY_ORDER, link, IN_TIME.name)?;
    let octets = data.mean(family, ANY_ORDER, link, OCTETS.name)?;
    let (enough, cheap) = (share >= least, octets <= most);
    let verdict = ClaimVerdict::of(enough && cheap, enough || cheap);
    Some(ClaimFinding::bare(
        verdict,
        format!("{:.2} %, {octets:.3} octets", share * 100.0),
    ))
}

fn better(data: &Data) -> Option<ClaimFinding> {
    let (mut cells, mut ahead, mut nearest) = (0, 0, Vec::new());
    for family in [&DUE_150, &DUE_300] {
        for link in family.x.ids() {
            let of = |line, name| data.mean(family.id, line, link, name);
            let own = (of(ANY_ORDER, IN_TIME.name)?, of(ANY_ORDER, OCTETS.name)?);
            let mut beaten = true;
            for line in FIXED {
                let (share, octets) = (of(line, IN_TIME.name)?, of(line, OCTETS.name)?);
                if octets <= own.1 && share > own.0 {
                    beaten = false;
                    nearest.push(format!("{line} on {link}: {:.2} %", share * 100.0));
                }
            }
            cells += 1;
            ahead += usize::from(beaten);
        }
    }
    let verdict = ClaimVerdict::of(ahead == cells, ahead * 2 >= cells);
    Some(ClaimFinding::new(
        verdict,
        format!("{ahead} of {cells}"),
        nearest.join("; "),
    ))
}
