//! The slides' claims about the TCPs: enhancements, overshoot and its cures, four flows.

use super::cells::{
    ALL_CHARTS, BY_TCP, Chart, Difference, FOUR, LINES, LOSSY, NONE, ONE, RULE, Tally, cell,
    difference, name,
};
use super::cures::{BOTH, CBI, NO_DAASS, PLAIN};
use super::experiments::{QUEUE_LINES, QUEUES};
use super::tables::{MODELS, REFERENCE};
use crate::claims::{ClaimFinding, ClaimVerdict, PaperClaim};
use crate::data::Data;

const CONCLUSIONS: &str = "Slide \"Conclusions\"";
const OVERSHOOT: &str = "Slide \"Slow-Start overshoot problem\"";
const CHARTS: &[&str] = &["cra-elapsed", "rbdc-elapsed", "vbdc-elapsed"];
const CURES: &[&str] = &[
    "cures-vbdc-elapsed",
    "cures-rbdc-elapsed",
    "cures-cra-elapsed",
];

pub(super) const CLAIMS: [PaperClaim; 9] = [
    PaperClaim {
        id: "enhanced-better",
        place: CONCLUSIONS,
        says: "Enhanced TCP performs better than reference TCP.",
        criterion: RULE,
        see: CHARTS,
        check: |data| enhanced(data, &ONE),
    },
    PaperClaim {
        id: "enhanced-better-4",
        place: "Slide \"4 flows\"",
        says: "Enhanced TCP performs better than reference TCP, also with four flows.",
        criterion: RULE,
        see: &["cra-4-elapsed", "rbdc-4-elapsed", "vbdc-4-elapsed"],
        check: |data| enhanced(data, &FOUR),
    },
    PaperClaim {
        id: "enhanced-above-all-without-slacp",
        place: CONCLUSIONS,
        says: "Enhanced TCP is better in particular when SLACP does not repair.",
        criterion: "Reproduced if under each assignment and at each error model with losses, with one flow and with four, it saves more seconds without SLACP than \
            with it; partly at most places.",
        see: ALL_CHARTS,
        check: above_all,
    },
    PaperClaim {
        id: "overshoot-loses-segments",
        place: OVERSHOOT,
        says: "The exponential opening of the congestion window overshoots the terminal's queue and loses several segments.",
        criterion: "Reproduced if on an error-free link every transfer loses at least two segments at full queues; partly if those of the \
            enhanced TCP do.",
        see: &["queue-dropped"],
        check: overshoot,
    },
    PaperClaim {
        id: "overshoot-worse-enhanced",
        place: OVERSHOOT,
        says: "The overshoot is more serious for the enhanced TCP, which is more aggressive.",
        criterion: "Reproduced if on an error-free link it loses more segments at full queues than the reference TCP, under each \
            assignment, with SLACP and without; partly at most of these.",
        see: &["queue-dropped"],
        check: overshoot_enhanced,
    },
    PaperClaim {
        id: "overshoot-costs",
        place: CONCLUSIONS,
        says: "Because of the overshoot enhanced TCP is slower than reference TCP in some tests.",
        criterion: "Reproduced if it is slower in some cell of the charts, of one flow or of four, by more than its interval and 1 %. With other queues above the \
            link, of which the slides say nothing, it may be: that is told beside it and decides nothing.",
        see: &["queue-elapsed", "queue-dropped"],
        check: overshoot_costs,
    },
    PaperClaim {
        id: "cbi-helps",
        place: "Slides \"Attacking Slow-Start overshoot\" and \"Conclusions\"",
        says: "Reuse of ssthresh (CBI) helps against the overshoot.",
        criterion: CURED,
        see: CURES,
        check: |data| cure(data, CBI),
    },
    PaperClaim {
        id: "no-daass-helps",
        place: "Slides \"Attacking Slow-Start overshoot\" and \"Conclusions\"",
        says: "Acknowledging every segment in slow start (DAASS) makes TCP too aggressive: disabling it helps, too.",
        criterion: CURED,
        see: CURES,
        check: |data| cure(data, NO_DAASS),
    },
    PaperClaim {
        id: "four-better-than-one",
        place: "Slide \"Conclusions\"",
        says: "Four flows transfer the same amount of data faster than one.",
        criterion: RULE,
        see: &["cra-4-elapsed", "rbdc-4-elapsed", "vbdc-4-elapsed"],
        check: four,
    },
];

/// The criterion by which both cures are judged.
const CURED: &str = "Reproduced if with SLACP over VBDC, the slide's case, the seven error models' transfers of 1 MB are shorter on average, by more than the interval, and \
    nowhere longer by more than theirs: under no other assignment, nor with four flows, nor without SLACP. Partly if in the slide's case.";

fn enhanced(data: &Data, charts: &[Chart]) -> Option<ClaimFinding> {
    let tally = by_tcp(data, charts)?;
    Some(tally.finding(tally.figure("shorter"), tally.exceptions()))
}

/// The reference TCP against the enhanced one, in every cell of some charts.
fn by_tcp(data: &Data, charts: &[Chart]) -> Option<Tally> {
    let mut tally = Tally::default();
    for chart in charts {
        for (reference, enhanced) in BY_TCP {
            for model in MODELS {
                let pair = (chart.cell(reference, model), chart.cell(enhanced, model));
                tally.add(data, &name(*chart, link(reference), model), pair)?;
            }
        }
    }
    Some(tally)
}

/// The link layer below one of the reference TCP's lines.
fn link(reference: &str) -> &'static str {
    if reference == REFERENCE {
        "without"
    } else {
        "SLACP"
    }
}

fn above_all(data: &Data) -> Option<ClaimFinding> {
    let (mut more, mut all) = (0, 0);
    let mut others = Vec::new();
    for chart in ONE.into_iter().chain(FOUR) {
        for model in LOSSY {
            let saved = |(reference, enhanced)| {
                let pair = (chart.cell(reference, model), chart.cell(enhanced, model));
                Some(difference(data, &[pair])?.mean)
            };
            let (without, with) = (saved(BY_TCP[0])?, saved(BY_TCP[1])?);
            all += 1;
            if without > with {
                more += 1;
            } else {
                others.push(format!(
                    "{}, {model}: {without:.1} and {with:.1} s",
                    chart.name
                ));
            }
        }
    }
    let except = if others.is_empty() {
        String::new()
    } else {
        format!("Otherwise (without and with): {}.", others.join("; "))
    };
    Some(ClaimFinding::new(
        ClaimVerdict::of(more == all, 2 * more > all),
        format!("saves more at {more} of {all}"),
        except,
    ))
}

fn dropped(data: &Data, family: &str, line: &str) -> Option<f64> {
    data.mean(family, line, NONE, "wire_loss.queue")
}

/// Segments lost at full queues on an error-free link: reference and enhanced, without and with
/// SLACP, by assignment.
fn drops(data: &Data) -> Option<Vec<(String, f64, f64)>> {
    let mut drops = Vec::new();
    for Chart { family, name } in ONE {
        for (reference, enhanced) in BY_TCP {
            drops.push((
                format!("{name} {}", link(reference)),
                dropped(data, family, reference)?,
                dropped(data, family, enhanced)?,
            ));
        }
    }
    Some(drops)
}

fn list(drops: &[(String, f64, f64)]) -> String {
    let text = |(name, reference, enhanced): &(String, f64, f64)| {
        format!("{name} {reference:.0} and {enhanced:.0}")
    };
    drops.iter().map(text).collect::<Vec<_>>().join("; ")
}

fn overshoot(data: &Data) -> Option<ClaimFinding> {
    let drops = drops(data)?;
    let (reference, enhanced) = (
        drops.iter().all(|(_, reference, _)| *reference >= 2.0),
        drops.iter().all(|(_, _, enhanced)| *enhanced >= 2.0),
    );
    Some(ClaimFinding::new(
        ClaimVerdict::of(reference && enhanced, enhanced),
        format!("reference and enhanced: {}", list(&drops)),
        "Segments of about 700.".to_owned(),
    ))
}

fn overshoot_enhanced(data: &Data) -> Option<ClaimFinding> {
    let drops = drops(data)?;
    let more = drops
        .iter()
        .filter(|(_, reference, enhanced)| enhanced > reference)
        .count();
    Some(ClaimFinding::new(
        ClaimVerdict::of(more == drops.len(), 2 * more > drops.len()),
        format!("more at {more} of {}", drops.len()),
        format!(
            "Reference and enhanced: {}. The reference TCP's window is 64 kB at most, which also bounds its overshoot.",
            list(&drops)
        ),
    ))
}

fn overshoot_costs(data: &Data) -> Option<ClaimFinding> {
    let tally = by_tcp(data, &[ONE, FOUR].concat())?;
    let mut others = Tally::default();
    for (dama, [reference, enhanced]) in QUEUE_LINES {
        for size in QUEUES {
            let pair = (
                cell("queue", reference, size),
                cell("queue", enhanced, size),
            );
            others.add(data, &format!("{dama}, {size}kB"), pair)?;
        }
    }
    let at_queue = |line| data.mean("queue", line, "115.2", "wire_loss.queue");
    let named = |lead: &str, names: &[String]| match names {
        [] => format!("{lead}: nowhere."),
        _ => format!("{lead}: {}.", names.join("; ")),
    };
    let found = ClaimFinding::new(
        ClaimVerdict::of(!tally.shorter.is_empty(), false),
        format!("slower in {} of {} cells", tally.shorter.len(), tally.all()),
        format!(
            "{} {} With a queue of 115.2 kB the enhanced TCP loses {:.0} segments there over RBDC, the reference TCP, whose window ends \
             at 64 kB, {:.0}.",
            named(
                "Slower (reference less enhanced) in the charts",
                &tally.shorter
            ),
            named(
                "On an error-free link with SLACP, by the router's queue",
                &others.shorter
            ),
            at_queue(QUEUE_LINES[1].1[1])?,
            at_queue(QUEUE_LINES[1].1[0])?
        ),
    );
    Some(found.open_if(
        tally.may_be_shorter > 0,
        &format!(
            "in {} of {} cells the interval of the difference reaches 1 % the other way.",
            tally.may_be_shorter,
            tally.all()
        ),
    ))
}

/// The difference that a cure makes over all models: negative if it helps.
fn cured(data: &Data, family: &str, line: &str, models: &[&str]) -> Option<Difference> {
    let pairs = models
        .iter()
        .map(|model| (cell(family, line, model), cell(family, PLAIN, model)));
    difference(data, &pairs.collect::<Vec<_>>())
}

fn cure(data: &Data, line: &str) -> Option<ClaimFinding> {
    let of = |family| cured(data, family, line, MODELS);
    let vbdc = of("cures-vbdc")?;
    let others = [("RBDC", of("cures-rbdc")?), ("CRA", of("cures-cra")?)];
    let clean = cured(data, "cures-vbdc", line, &[NONE])?;
    let both = cured(data, "cures-vbdc", BOTH, MODELS)?;
    let text = |(name, difference): &(&str, Difference)| format!("{name} {}", difference.text());
    let bare = [
        ("VBDC", of("cures-vbdc-bare")?),
        ("RBDC", of("cures-rbdc-bare")?),
        ("CRA", of("cures-cra-bare")?),
    ];
    let four = [
        ("VBDC", of("cures-vbdc-4")?),
        ("RBDC", of("cures-rbdc-4")?),
        ("CRA", of("cures-cra-4")?),
    ];
    let elsewhere = others.iter().chain(&bare).chain(&four);
    let costs = elsewhere.filter(|(_, of)| of.is_longer()).count();
    let join = |list: &[(&str, Difference)]| list.iter().map(text).collect::<Vec<_>>().join(", ");
    let found = ClaimFinding::new(
        ClaimVerdict::of(vbdc.is_shorter() && costs == 0, vbdc.is_shorter()),
        format!(
            "{} on average; longer in {costs} of 8 other cases",
            vbdc.text()
        ),
        format!(
            "Without errors {}. Other assignments: {}. Both cures together over VBDC: {}. Four flows: {}. Without SLACP: {}.",
            clean.text(),
            join(&others),
            both.text(),
            join(&four),
            join(&bare)
        ),
    );
    Some(found.open_if(
        !vbdc.is_longer(),
        "over VBDC the transfers are not longer by more than the interval either.",
    ))
}

fn four(data: &Data) -> Option<ClaimFinding> {
    let mut tally = Tally::default();
    for (one, four) in ONE.into_iter().zip(FOUR) {
        for line in LINES {
            for model in MODELS {
                let pair = (one.cell(line, model), four.cell(line, model));
                tally.add(data, &name(one, line, model), pair)?;
            }
        }
    }
    let exceptions = tally.exceptions().trim_start().to_owned();
    Some(tally.finding(tally.figure("sooner"), exceptions))
}
