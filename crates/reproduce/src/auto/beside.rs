//! Messages and bulk to the same peer at the same time: figures and goals.

use super::families::{
    BESIDE, BULK_ALONE, BULK_BESIDE, GOODPUT, MESSAGES_ALONE, MESSAGES_BESIDE, OCTETS, P99,
};
use crate::claims::{ClaimFinding, ClaimVerdict, PaperClaim};
use crate::data::Data;
use crate::figure::Figure;

const GOAL_3: &str = "Goal 3";
/// The link's rate, and the rate of messages, in bits per second.
const LINK: f64 = 10e6;
const MESSAGES: f64 = 1_200.0 * 8.0 / 0.02;

pub(super) const FIGURES: [Figure; 2] = [
    Figure {
        logarithmic: true,
        ..Figure::of(
            "beside-p99",
            GOAL_3,
            "Delay of 99 of 100, alone and beside the other",
            &BESIDE,
            P99,
        )
    },
    Figure::of(
        "beside-goodput",
        GOAL_3,
        "Goodput, alone and beside the other",
        &BESIDE,
        GOODPUT,
    ),
];

pub(super) const CLAIMS: [PaperClaim; 2] = [
    PaperClaim {
        id: "beside-bulk-delay",
        place: GOAL_3,
        says: "Beside bulk to the same peer 99 of 100 messages take at most 1.3 times as long as alone.",
        criterion: "Reproduced if so at 10 and at 30 % loss; partly if at one of them.",
        see: &["beside-p99"],
        check: delay,
    },
    PaperClaim {
        id: "bulk-beside-messages",
        place: GOAL_3,
        says: "Bulk loses at most what messages beside it take.",
        criterion: "Reproduced if at 10 and at 30 % loss the goodput that bulk loses is at most its goodput over the share of the link that messages alone send; partly if it is at most 1.1 times that.",
        see: &["beside-goodput"],
        check: goodput,
    },
];

fn delay(data: &Data) -> Option<ClaimFinding> {
    let times = |loss| {
        let of = |line| data.mean(BESIDE.id, line, loss, P99.name);
        Some(of(MESSAGES_BESIDE)? / of(MESSAGES_ALONE)?)
    };
    let (ten, thirty) = (times("10")?, times("30")?);
    let held = [ten, thirty].map(|times| times <= 1.3);
    let verdict = ClaimVerdict::of(held == [true; 2], held != [false; 2]);
    Some(ClaimFinding::bare(
        verdict,
        format!("{ten:.2} and {thirty:.2} times"),
    ))
}

fn goodput(data: &Data) -> Option<ClaimFinding> {
    let parts = |loss| {
        let of = |line| data.mean(BESIDE.id, line, loss, GOODPUT.name);
        let alone = of(BULK_ALONE)?;
        let octets = data.mean(BESIDE.id, MESSAGES_ALONE, loss, OCTETS.name)?;
        let taken = alone * octets * MESSAGES / LINK;
        Some((alone - of(BULK_BESIDE)?, taken))
    };
    let all = [parts("10")?, parts("30")?];
    let held = |factor: f64| all.iter().all(|(lost, taken)| *lost <= taken * factor);
    let verdict = ClaimVerdict::of(held(1.0), held(1.1));
    let [ten, thirty] =
        all.map(|(lost, taken)| format!("{:.3} lost of {:.3} Mbit/s", lost / 1e6, taken / 1e6));
    Some(ClaimFinding::bare(verdict, format!("{ten}; {thirty}")))
}
