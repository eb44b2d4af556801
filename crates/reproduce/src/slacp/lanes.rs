//! Short messages beside a file: one lane for both, lanes of their own, and error control by lane.

use super::cells::{LOSSY, cell, difference};
use super::tables::ERROR_MODEL;
use crate::claims::{ClaimFinding, ClaimVerdict, PaperClaim};
use crate::data::Data;
use crate::family::{Family, FamilyLine};
use crate::figure::{Figure, FigureSection};
use crate::measure::{Measure, Quantity, Statistic};
use crate::parameter::AxisUnit;

const SHARED: &str = "one lane";
const OWN: &str = "a lane of their own";
const FIRST: &str = "the same, out of the queue first";
const BARE: &str = "the same, without ARQ and FEC";

const SCENARIO: (&str, &str) = (
    "scenarios/slacp-lanes.toml",
    include_str!("../../../../scenarios/slacp-lanes.toml"),
);

const LINES: &[FamilyLine] = &[
    FamilyLine::of(
        SHARED,
        &["flow.0.priority=0", "hop.link.queue_order=arrival"],
    ),
    FamilyLine::of(OWN, &["hop.link.queue_order=arrival"]),
    FamilyLine::of(FIRST, &[]),
    FamilyLine::of(
        BARE,
        &["hop.link.class.arq=false", "hop.link.class.fec=false"],
    ),
];

pub(super) const MESSAGES: Family = Family {
    id: "lanes",
    scenario: SCENARIO,
    sets: &["run.runs=16"],
    x: ERROR_MODEL,
    lines: LINES,
    conditions: "A message of 100 octets every 500 ms beside a file of 1 MB by the enhanced TCP; 128 kbit/s and 512 kbit/s, 250 ms each way, no buffer below SLACP; 16 runs.",
};

/// The file of the same runs.
pub(super) const FILE: Family = Family {
    id: "lanes-file",
    sets: &[
        "run.runs=16",
        "flow.0.measured=false",
        "flow.1.measured=true",
    ],
    ..MESSAGES
};

const DELAY_P99: Measure = Measure {
    name: "delay_p99_s",
    unit: 1.0,
    unit_name: AxisUnit::S,
    label: "99th percentile of the messages' delay",
    statistic: Statistic::Mean,
    quantity: Quantity::Other,
};

pub(super) const SECTION: FigureSection = FigureSection {
    title: "Lanes",
    intro: "Messages beside a file: what they wait for where both share a lane, and where they do not.",
    figures: &[
        Figure::of(
            "lanes-delay",
            PRINCIPLES,
            "Messages beside a file",
            &MESSAGES,
            DELAY_P99,
        ),
        super::tables::elapsed("lanes-file-elapsed", PRINCIPLES, "The file", &FILE),
    ],
};

const PRINCIPLES: &str = "Slide 4, principles";

pub(super) const CLAIMS: [PaperClaim; 2] = [
    PaperClaim {
        id: "head-of-line",
        place: PRINCIPLES,
        says: "A single link channel is vulnerable to head-of-line blocking: flows that are sensitive to delay may have to wait for transmissions and retransmissions of less urgent data.",
        criterion: "Reproduced if under every error model with losses the 99th percentile of the messages' delay is longer in one lane with the file than in a lane of their own that goes first, by more than \
            both intervals; partly if under most.",
        see: &["lanes-delay"],
        check: head_of_line,
    },
    PaperClaim {
        id: "error-control-by-flow",
        place: PRINCIPLES,
        says: "Flows with different needs are treated apart, and ARQ and FEC are turned off for flows that do not benefit from them.",
        criterion: "Reproduced if under every error model with losses the messages' 99th percentile is lower in a lane without ARQ and FEC than in one with both, by more than both intervals, and the file is \
            not slower, run by run, by more than its interval and 1 %; partly if one of both. What the messages lose for it is in the comment.",
        see: &["lanes-delay", "lanes-file-elapsed"],
        check: by_flow,
    },
];

/// The mean 99th percentile and half of its interval.
fn p99(data: &Data, line: &str, model: &str) -> Option<(f64, f64)> {
    let summary = data.at("lanes", line, model, "delay_p99_s")?;
    Some((summary.mean?, summary.ci95.unwrap_or_default()))
}

fn seconds(data: &Data, line: &str) -> Option<String> {
    let each = LOSSY
        .iter()
        .map(|model| Some(format!("{:.2}", p99(data, line, model)?.0)));
    Some(each.collect::<Option<Vec<_>>>()?.join(", "))
}

fn head_of_line(data: &Data) -> Option<ClaimFinding> {
    let mut longer = 0;
    for model in LOSSY {
        let (shared, half) = p99(data, SHARED, model)?;
        let (first, own) = p99(data, FIRST, model)?;
        longer += usize::from(shared - first > half.hypot(own));
    }
    Some(ClaimFinding::new(
        ClaimVerdict::of(longer == LOSSY.len(), 2 * longer > LOSSY.len()),
        format!(
            "{} s, first {} s",
            seconds(data, SHARED)?,
            seconds(data, FIRST)?
        ),
        format!(
            "From low to huge (calibrated). Behind the file in one queue a lane of their own has {} s. A lane of its own ends the wait for the file's repairs; only the queue's order ends the wait for its \
             transmissions.",
            seconds(data, OWN)?
        ),
    ))
}

fn by_flow(data: &Data) -> Option<ClaimFinding> {
    let mut sooner = true;
    for model in LOSSY {
        let (bare, half) = p99(data, BARE, model)?;
        let (repaired, other) = p99(data, FIRST, model)?;
        sooner &= bare + half.hypot(other) < repaired;
    }
    let pairs: Vec<_> = LOSSY
        .iter()
        .map(|model| {
            (
                cell("lanes-file", BARE, model),
                cell("lanes-file", FIRST, model),
            )
        })
        .collect();
    let file = difference(data, &pairs)?;
    let mean = data.mean("lanes-file", FIRST, LOSSY[0], "elapsed_s")?;
    let is_slower = file.is_longer() && file.mean > 0.01 * mean;
    let lost = |line| {
        let each = LOSSY.iter().map(|model| {
            let lost = data.mean("lanes", line, model, "residual_loss.lost")?;
            Some(format!("{lost:.1}"))
        });
        Some(each.collect::<Option<Vec<_>>>()?.join(", "))
    };
    Some(ClaimFinding::new(
        ClaimVerdict::of(sooner && !is_slower, sooner || !is_slower),
        format!(
            "{} s without, {} s with",
            seconds(data, BARE)?,
            seconds(data, FIRST)?
        ),
        format!(
            "From low to huge (calibrated). Of 140 messages {} are lost without and {} with. The file's time differs by {}.",
            lost(BARE)?,
            lost(FIRST)?,
            file.text()
        ),
    ))
}
