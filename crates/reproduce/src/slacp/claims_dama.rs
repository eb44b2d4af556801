//! The slides' claims about the three ways to get capacity.

use super::cells::{
    ALL_CHARTS, CALIBRATED, Chart, Difference, FOUR, HIGH, LINES, LOSSY, NONE, ONE, RULE, Tally,
    cell, difference, name, seconds,
};
use super::experiments::{ANSWERS, CLEAN_BARE, CLEAN_SLACP, HIGH_BARE, HIGH_SLACP, TIMEOUTS};
use super::tables::{ENHANCED, ENHANCED_SLACP, MODELS, REFERENCE, REFERENCE_SLACP};
use crate::claims::{ClaimFinding, ClaimVerdict, PaperClaim};
use crate::data::Data;

const CONCLUSIONS: &str = "Slide \"Conclusions\"";
const BY_FLOWS: [[Chart; 3]; 2] = [ONE, FOUR];

const RULE_EXCEPTED: &str = "Reproduced if, but for the cells of which the slides say otherwise (high error rates without SLACP), \
    transfers are shorter over RBDC in nine of ten, by more than their intervals, and in none longer by more than its interval and \
    1 %; partly if in most.";

pub(super) const CLAIMS: [PaperClaim; 4] = [
    PaperClaim {
        id: "cra-best",
        place: CONCLUSIONS,
        says: "CRA yields the best performance.",
        criterion: RULE,
        see: ALL_CHARTS,
        check: cra_best,
    },
    PaperClaim {
        id: "rbdc-before-vbdc",
        place: CONCLUSIONS,
        says: "RBDC performs better than VBDC.",
        criterion: RULE_EXCEPTED,
        see: ALL_CHARTS,
        check: rbdc_before_vbdc,
    },
    PaperClaim {
        id: "rbdc-collapses",
        place: "Slides \"RBDC Interaction with TCP Error Recovery\" and \"Conclusions\"",
        says: "With high error rates TCP performs very poorly with RBDC.",
        criterion: "Reproduced if, without SLACP, at high and each higher loss both TCPs, with one flow and with four, take longer over RBDC than over VBDC, by more than \
            the interval, although RBDC is the faster one at low; partly if one flow of both TCPs does at the highest.",
        see: &[
            "rbdc-elapsed",
            "vbdc-elapsed",
            "rbdc-4-elapsed",
            "vbdc-4-elapsed",
            "timeout-elapsed",
        ],
        check: rbdc_collapses,
    },
    PaperClaim {
        id: "slow-allocation-slow-recovery",
        place: CONCLUSIONS,
        says: "The longer capacity takes to be allocated, the slower is error recovery.",
        criterion: "Reproduced if what errors cost (high, against none) is more over RBDC and VBDC than over CRA, for each TCP with \
            SLACP and without, and grows by a tenth at least from the shortest to the longest answer of the control centre, under both; partly if the former.",
        see: &["answer-rbdc-elapsed", "answer-vbdc-elapsed"],
        check: slow_recovery,
    },
];

fn cra_best(data: &Data) -> Option<ClaimFinding> {
    let mut tally = Tally::default();
    for [cra, rbdc, vbdc] in BY_FLOWS {
        for line in LINES {
            for model in MODELS {
                for other in [rbdc, vbdc] {
                    let pair = (other.cell(line, model), cra.cell(line, model));
                    tally.add(data, &name(other, line, model), pair)?;
                }
            }
        }
    }
    Some(tally.finding(tally.figure("shorter"), tally.exceptions()))
}

fn rbdc_before_vbdc(data: &Data) -> Option<ClaimFinding> {
    let (mut tally, mut excepted) = (Tally::default(), Tally::default());
    for [_, rbdc, vbdc] in BY_FLOWS {
        for line in LINES {
            for model in MODELS {
                let pair = (vbdc.cell(line, model), rbdc.cell(line, model));
                let bare = [REFERENCE, ENHANCED].contains(&line);
                let tally = if bare && HIGH.contains(model) {
                    &mut excepted
                } else {
                    &mut tally
                };
                tally.add(data, &name(vbdc, line, model), pair)?;
            }
        }
    }
    let comment = format!(
        "Where the slides say otherwise: shorter at {} of {}, longer at {}.{}",
        excepted.longer.len(),
        excepted.all(),
        excepted.shorter.len(),
        tally.exceptions()
    );
    Some(tally.finding(tally.figure("shorter"), comment))
}

fn rbdc_collapses(data: &Data) -> Option<ClaimFinding> {
    let worse = |flows: [Chart; 3], line, model| {
        let [_, rbdc, vbdc] = flows;
        difference(data, &[(rbdc.cell(line, model), vbdc.cell(line, model))])
    };
    let (mut collapsed, mut longer, mut cells, mut open) = (0, 0, 0, 0);
    let mut places: Vec<&str> = Vec::new();
    let mut faster_at_low = true;
    for line in [REFERENCE, ENHANCED] {
        let (low, huge) = (worse(ONE, line, "low")?, worse(ONE, line, CALIBRATED)?);
        collapsed += usize::from(low.is_shorter() && huge.is_longer());
        open += usize::from(!low.is_longer() && !huge.is_shorter());
        for flows in BY_FLOWS {
            faster_at_low &= worse(flows, line, "low")?.is_shorter();
            for model in HIGH {
                longer += usize::from(worse(flows, line, model)?.is_longer());
                cells += 1;
            }
        }
        let mut lossy = LOSSY.iter();
        let from = lossy.find(|model| worse(ONE, line, model).is_some_and(Difference::is_longer));
        places.push(from.map_or("nowhere", |model| model));
    }
    let at = |line| cell("rbdc", line, CALIBRATED).elapsed(data);
    let kept = |x: &str| data.mean("timeout", ENHANCED, x, "elapsed_s");
    let (default, long) = (kept(TIMEOUTS[1])?, kept(TIMEOUTS[4])?);
    let found = ClaimFinding::new(
        ClaimVerdict::of(longer == cells && faster_at_low, collapsed == 2),
        format!(
            "at huge (calibrated) {} (reference) and {} (enhanced), VBDC {} and {}",
            seconds(at(REFERENCE)?),
            seconds(at(ENHANCED)?),
            seconds(cell("vbdc", REFERENCE, CALIBRATED).elapsed(data)?),
            seconds(cell("vbdc", ENHANCED, CALIBRATED).elapsed(data)?)
        ),
        format!(
            "At high and above RBDC is the slower one in {longer} of {cells} cells, of one flow from {} (reference) and from {} (enhanced) on. While TCP waits for its timer it sends nothing, and \
             the assigned rate expires; each retransmission then waits for a new one. Kept for 15 super-frames instead of 2, the rate \
             outlives more of these waits: {} instead of {}. With SLACP at huge (calibrated): {} (reference), {} (enhanced).",
            places.first()?,
            places.get(1)?,
            seconds(long),
            seconds(default),
            seconds(at(REFERENCE_SLACP)?),
            seconds(at(ENHANCED_SLACP)?)
        ),
    );
    Some(found.open_if(
        open > 0,
        "an interval at low or at huge (calibrated) has both signs.",
    ))
}

fn slow_recovery(data: &Data) -> Option<ClaimFinding> {
    let mut slower = true;
    let mut costs = Vec::new();
    for line in LINES {
        let cost = |chart: Chart| {
            let at = |model| chart.cell(line, model).elapsed(data);
            Some(at("high")? - at(NONE)?)
        };
        let of: Vec<f64> = ONE.into_iter().map(cost).collect::<Option<_>>()?;
        let [cra, rbdc, vbdc] = of[..] else {
            return None;
        };
        slower &= cra < rbdc && cra < vbdc;
        costs.push(format!("{line} {cra:.0}, {rbdc:.0} and {vbdc:.0} s"));
    }
    let mut grows = true;
    let mut spans = Vec::new();
    for (dama, family) in [("RBDC", "answer-rbdc"), ("VBDC", "answer-vbdc")] {
        for (high, clean) in [(HIGH_SLACP, CLEAN_SLACP), (HIGH_BARE, CLEAN_BARE)] {
            let cost = |x: &str| {
                let at = |line| data.mean(family, line, x, "elapsed_s");
                Some(at(high)? - at(clean)?)
            };
            let (first, last) = (cost(ANSWERS.first()?)?, cost(ANSWERS.last()?)?);
            grows &= last >= 1.1 * first;
            let link = if high == HIGH_SLACP {
                "with"
            } else {
                "without"
            };
            spans.push(format!("{dama} {link} SLACP {first:.0} to {last:.0} s"));
        }
    }
    Some(ClaimFinding::new(
        ClaimVerdict::of(slower && grows, slower),
        format!("errors cost {} (CRA, RBDC, VBDC)", costs.join("; ")),
        format!(
            "From an answer after 265 ms to one after 1060 ms, for the enhanced TCP: {}.",
            spans.join("; ")
        ),
    ))
}
