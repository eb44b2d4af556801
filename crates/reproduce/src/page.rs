//! The page: one file that needs nothing else.

use crate::claims::{Checked, Verdict};
use crate::data::Data;
use crate::paper::{Family, Figure, Paper, Section};
use crate::reproduction::sweep;
use maud::{DOCTYPE, Markup, PreEscaped, html};

/// Light, dark and print. The drawings' ink, grid and ground follow (`plot`).
const STYLE: &str = "
:root{color-scheme:light dark;--ink:#222223;--ground:#fff;--faint:#ddd;--soft:#666;--yes:#1a7a3a;--half:#946200;--no:#b3261e}
@media (prefers-color-scheme:dark){:root{--ink:#e4e4e6;--ground:#16181c;--faint:#3a3d44;--soft:#a0a4ac;--yes:#6fd08c;--half:#e5b450;--no:#ff8a80}}
body{font:16px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--ground);max-width:62rem;margin:0 auto;padding:1.5rem}
h1{line-height:1.2}h2{margin-top:2.5rem;border-bottom:1px solid var(--faint)}
figure{margin:1.5rem 0}figcaption,small{color:var(--soft)}svg{width:100%;height:auto}
pre{overflow-x:auto;padding:.7rem;border:1px solid var(--faint);border-radius:4px}
.wide{overflow-x:auto}table{border-collapse:collapse;width:100%;font-size:.92rem}
th,td{text-align:left;vertical-align:top;padding:.35rem .6rem;border-bottom:1px solid var(--faint)}
.reproduced{color:var(--yes)}.partly{color:var(--half)}.not{color:var(--no)}td[class]{font-weight:600}
svg [fill='#222223' i]{fill:var(--ink)}svg [stroke='#222223' i]{stroke:var(--ink)}
svg [stroke='#DDDDDE' i]{stroke:var(--faint)}svg [fill='#FFFFFE' i]{fill:var(--ground)}
@media print{:root{color-scheme:light;--ink:#000;--ground:#fff;--faint:#ccc;--soft:#444;--yes:#1a7a3a;--half:#946200;--no:#b3261e}
body{max-width:none;padding:0;font-size:10pt}figure,tr{break-inside:avoid}h2{break-after:avoid}pre{white-space:pre-wrap}}
";

/// The page of a paper.
pub(crate) fn page(
    paper: &Paper,
    data: &Data,
    drawings: &[(&Figure, String)],
    claims: &[Checked],
    command: &str,
) -> String {
    let title = format!("{} ({})", paper.title, paper.name);
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                h1 { (title) }
                (summary(paper, claims))
                h2 { "Figures" }
                @for section in paper.sections { (figures(section, drawings)) }
                h2 { "Claims" }
                (table(paper, claims))
                h2 { "Conditions" }
                ul { @for note in paper.notes { li { (note) } } }
                @for family in &data.families { (conditions(family.family, runs(family))) }
                @if !paper.missing.is_empty() {
                    h2 { "Not made yet" }
                    ul { @for part in paper.missing { li { (part.place) ": " (part.what) "." } } }
                }
                h2 { "The command that made this page" }
                pre { (command) }
                small { "fulmar " (env!("CARGO_PKG_VERSION")) ". The same command gives the same page, octet for octet." }
            }
        }
    }
    .into_string()
}

fn runs(family: &crate::data::FamilyData) -> usize {
    let mut records = family.lines.iter().flatten();
    records.next().map_or(0, |point| point.aggregate.n)
}

fn summary(paper: &Paper, claims: &[Checked]) -> Markup {
    let count = |verdict| claims.iter().filter(|c| c.verdict == verdict).count();
    html! {
        p {
            "The paper's figures, run again in Fulmar's simulator, and what the paper says of them. Of " (claims.len()) " claims "
            (count(Verdict::Reproduced)) " are reproduced, "
            (count(Verdict::Partly)) " partly, and "
            (count(Verdict::Not)) " not. "
            @if !paper.missing.is_empty() { "The page's end lists what is not made yet." }
        }
        p {
            "Points are means, bars their 95 % intervals (Student's t); where a figure says median, they are medians, \
             and the intervals those of order statistics. Each verdict is computed from the runs."
        }
    }
}

fn figures(section: &Section, drawings: &[(&Figure, String)]) -> Markup {
    let of = |id| drawings.iter().find(|(figure, _)| figure.id == id);
    let drawings = section.figures.iter().filter_map(|figure| of(figure.id));
    html! {
        h3 { (section.title) }
        p { (section.intro) }
        @for (figure, svg) in drawings { (drawing(figure, svg)) }
    }
}

fn drawing(figure: &Figure, svg: &str) -> Markup {
    let label = format!("{}: {}", figure.place, figure.title);
    html! {
        figure id=(figure.id) {
            div role="img" aria-label=(label) { (PreEscaped(svg)) }
            figcaption {
                (figure.place) ". " (figure.title) ". Data: "
                a href=(format!("{}.csv", figure.id)) { (figure.id) ".csv" }
                ", picture: " a href=(format!("{}.svg", figure.id)) { (figure.id) ".svg" } "."
            }
        }
    }
}

fn table(paper: &Paper, claims: &[Checked]) -> Markup {
    let claims: Vec<_> = claims
        .iter()
        .zip(paper.claims.iter().copied().flatten())
        .map(|(checked, claim)| (checked, claim.see))
        .collect();
    html! {
        div.wide {
            table {
                thead { tr { th { "Claim" } th { "Where" } th { "Verdict" } th { "Our figure" } th { "Comment" } } }
                tbody {
                    @for (claim, see) in claims {
                        tr id=(claim.id) {
                            td { (claim.claim) }
                            td { (claim.place) }
                            td class=(claim.verdict.name()) { (claim.verdict.name()) }
                            td { (claim.figure) }
                            td {
                                (claim.comment)
                                @for id in see { " " a href=(format!("#{id}")) { (id) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The conditions of a family, and how to run a line by itself.
fn conditions(family: &Family, runs: usize) -> Markup {
    let quoted = |set: &str| format!(" --set '{set}'");
    let command = |sets: &[&str]| {
        let sets = family.sets.iter().chain(sets).copied();
        let sets: String = sets.map(quoted).collect();
        let scenario = family.scenario.0;
        format!(
            "fulmar sim {scenario} --runs {runs}{sets}{}",
            quoted(&sweep(family))
        )
    };
    html! {
        h3 { (family.id) }
        p { (family.conditions) " " (runs) " runs a point, seeds from 1." }
        details {
            summary { "Each curve as a command" }
            @for line in family.lines { p { (line.label) } pre { (command(line.sets)) } }
        }
    }
}
