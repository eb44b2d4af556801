//! The page of `auto`.

use super::families::{BESIDE, DUE_150, DUE_300, THIN};
use super::{beside, frontier, thin};
use crate::figure::FigureSection;
use crate::paper::{Absent, ClaimSource, Paper};

/// `mode = "auto"` beside its goals.
pub static AUTO: Paper = Paper {
    name: "auto",
    title: "Repair to order: the goals of mode auto, which are our own",
    source: ClaimSource::OwnGoals,
    families: &[
        THIN,
        DUE_150,
        DUE_300,
        BESIDE,
        frontier::IDEAL_10,
        frontier::REAL_10,
        frontier::IDEAL_30,
        frontier::REAL_30,
    ],
    sections: &[
        FigureSection {
            title: "Thin flows",
            intro: "A message every 20 ms, read in order, whatever is lost.",
            figures: &thin::THIN_FIGURES,
        },
        FigureSection {
            title: "Messages that are given up when late",
            intro: "The same messages in any order, beside fixed settings.",
            figures: &thin::DUE_FIGURES,
        },
        FigureSection {
            title: "Beside bulk",
            intro: "The same messages, and bulk to the same peer.",
            figures: &beside::FIGURES,
        },
        FigureSection {
            title: "The frontier",
            intro: "Messages that fill most of the link, where 99 of 100 could be in time.",
            figures: &frontier::FIGURES,
        },
    ],
    exhibits: &[],
    claims: &[
        &thin::THIN_CLAIMS,
        &thin::DUE_CLAIMS,
        &beside::CLAIMS,
        &frontier::CLAIMS,
    ],
    absent: ABSENT,
    notes: &[
        "No paper stands behind this page. Its claims are goals that were set for Fulmar before it was built. How auto chooses stands in docs/models/auto.md.",
        "Octets are all that the sender's machine puts on the wire for one octet of message, all headers and its answers included.",
        "All of it is virtual time between two ends. Through gateways and over real links: docs/models/auto.md.",
    ],
};

/// Goals that the page does not have.
const ABSENT: &[Absent] = &[
    Absent {
        place: "goals 4 and 5",
        what: "Bulk alone, and requests and answers",
        instead: "docs/measurements has them: between gateways, beside TCP and QUIC.",
    },
    Absent {
        place: "goal 6",
        what: "The other rows of the frontier",
        instead: "`scripts/fraction-vs-budget` runs all of them; docs/measurements/fraction-vs-budget.md has the result.",
    },
    Absent {
        place: "goal 7",
        what: "500 random scenarios beside 93 fixed settings",
        instead: "`make auto-vs-fixed`; docs/models/auto.md has the result.",
    },
];
