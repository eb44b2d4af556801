//! The page of a paper: one file that needs nothing else.

use crate::claims::{Checked, ClaimVerdict, PaperClaim, changes};
use crate::data::Data;
use crate::exhibit::Exhibit;
use crate::family::Family;
use crate::few_runs::FewRuns;
use crate::figure::{Figure, FigureSection};
use crate::paper::{DAMAGED, Paper};
use crate::scenario::line_command;
use crate::style::{count, document, given, undecided, verdict};
use maud::{Markup, PreEscaped, html};

/// The condition on which comparisons with AeroTP rest.
pub(crate) const PREMISE: &str = "AeroTP is compared under the condition that its receiver gets damaged frames, as the papers' model has \
    it: parity and NACKs work on what arrives damaged. The link drops damaged frames of TCP and UDP. Over a link that drops every damaged \
    frame, AeroTP's bit-error correction has nothing to work on.";

/// The drawings of a paper.
#[derive(Debug, Default)]
pub(crate) struct Drawings {
    /// Figures of runs.
    pub(crate) of_runs: Vec<(&'static Figure, String)>,
    /// Figures of computed curves.
    pub(crate) computed: Vec<(&'static Exhibit, String)>,
}

/// A claim as written in the tables, and as judged.
type Judged<'a> = (&'static PaperClaim, &'a Checked);

/// The page of a paper.
pub(crate) fn page(
    paper: &Paper,
    data: &Data,
    drawings: &Drawings,
    claims: &[Checked],
    (command, few): (&str, Option<FewRuns>),
) -> String {
    let title = format!("{} ({})", paper.title, paper.name);
    let tables = paper.claims.iter().copied().flatten();
    let judged: Vec<Judged<'_>> = tables.zip(claims).collect();
    let body = html! {
        h1 { (title) }
        (warning(few))
        (summary(paper, claims))
        (contents(paper))
        h2 id="claims" { (heading(paper)) }
        (table(paper, &judged))
        h2 id="figures" { "Figures" }
        @for (index, section) in paper.sections.iter().enumerate() {
            (figures(index, (paper, section), &drawings.of_runs, &judged))
        }
        @if !drawings.computed.is_empty() {
            h3 id=(COMPUTED) { "Computed curves" }
            div.figures { @for (exhibit, svg) in &drawings.computed { (computed(exhibit, svg, &judged)) } }
        }
        @if paper.exhibits.iter().any(is_table) {
            h2 id="tables" { "Tables" }
            @for exhibit in paper.exhibits { (exhibit.markup(data)) }
        }
        h2 id="conditions" { "Conditions" }
        ul { @for note in paper.notes { li { (note) } } }
        @for family in &data.families { (conditions(family.family, runs(family))) }
        h2 id="absent" { "Not here" }
        p { (absent(paper)) ". No claim above is judged by any of it." }
        ul.absent { @for part in paper.absent { li { b { (part.what) } " (" (part.place) "). " (part.instead) } } }
        h2 id="command" { "The command that made this page" }
        pre { (command) }
        p { small { "fulmar " (env!("CARGO_PKG_VERSION")) ". The same command gives the same page, octet for octet." } }
    };
    document(&title, &body)
}

/// The warning that the verdicts rest on few runs, if they do.
pub(crate) fn warning(few: Option<FewRuns>) -> Markup {
    html! {
        @if let Some(few) = few {
            p.warning role="note" {
                b { "Not to be relied on." } " Made with " (few) ": intervals are wide, and verdicts may change with more runs. \
                 Without --runs the command makes them all."
            }
        }
    }
}

fn runs(family: &crate::data::FamilyData) -> usize {
    let mut records = family.lines.iter().flatten();
    records.next().map_or(0, |point| point.aggregate.n)
}

/// The heading over the claims.
fn heading(paper: &Paper) -> &'static str {
    if paper.states_goals() {
        "Goals"
    } else {
        "Claims"
    }
}

/// The beginning of a sentence on what is not on the page.
fn absent(paper: &Paper) -> &'static str {
    if paper.states_goals() {
        "What this page does not show"
    } else {
        "What the paper describes and Fulmar has not, or this page does not show"
    }
}

fn summary(paper: &Paper, claims: &[Checked]) -> Markup {
    let not = || {
        claims
            .iter()
            .filter(|claim| claim.verdict == ClaimVerdict::Not)
    };
    let refuted: Vec<&Checked> = not().filter(|claim| !claim.open).collect();
    let open: Vec<&Checked> = not().filter(|claim| claim.open).collect();
    html! {
        p {
            @if paper.states_goals() {
                "Goals of Fulmar's own, and runs of its simulator that show whether they are met: " b { "reproduced" } " means met. Of "
                (claims.len()) " goals "
            } @else {
                "The paper's figures, run again in Fulmar's simulator, and what the paper says of them. Of "
                (claims.len()) " claims "
            }
            b.reproduced { (count(claims, ClaimVerdict::Reproduced)) " are reproduced" } ", "
            b.partly { (count(claims, ClaimVerdict::Partly)) " partly" } ", and "
            b.not { (count(claims, ClaimVerdict::Not)) " not" } (undecided(claims)) (given(claims)) ". "
            (absent(paper)) ", is listed under " a href="#absent" { "Not here" } "."
        }
        @if !refuted.is_empty() {
            p { "What came out otherwise, and why, is told with each claim:" }
            (list(&refuted))
        }
        @if !open.is_empty() {
            p { "What these runs do not decide, for the intervals leave both open; it counts as not reproduced, and is not refuted:" }
            (list(&open))
        }
        p {
            @if paper.gives_some_damaged() { (PREMISE) " " }
            @let (read, changed) = changes(claims);
            @if read > 0 {
                "The paper leaves conditions open: " (read) " claims are judged under other readings of them too, and the verdict of "
                (changed) " changes with the reading. "
            }
        }
        p {
            "Points are means, bars their 95 % intervals (Student's t); where a figure says median, they are medians, \
             and the intervals those of order statistics. Each verdict is computed from the runs."
        }
    }
}

/// Claims with our figures, each a link to its row.
fn list(claims: &[&Checked]) -> Markup {
    html! {
        ul { @for claim in claims { li { a href=(format!("#{}", claim.id)) { (claim.claim) } " " (claim.figure) "." } } }
    }
}

fn contents(paper: &Paper) -> Markup {
    html! {
        nav aria-label="Contents" {
            ul {
                li { a href="#claims" { (heading(paper)) } }
                li {
                    a href="#figures" { "Figures" }
                    ul {
                        @for (index, section) in paper.sections.iter().enumerate() {
                            li { a href=(format!("#{}", anchor(index))) { (section.title) } }
                        }
                        @if paper.computed().next().is_some() { li { a href=(format!("#{COMPUTED}")) { "Computed curves" } } }
                    }
                }
                @if paper.exhibits.iter().any(is_table) {
                    li {
                        a href="#tables" { "Tables" }
                        ul { @for exhibit in paper.exhibits.iter().filter(|exhibit| is_table(exhibit)) { li { a href=(format!("#{}", exhibit.id)) { (exhibit.title) } } } }
                    }
                }
                li { a href="#conditions" { "Conditions" } }
                li { a href="#absent" { "Not here" } }
                li { a href="#command" { "The command" } }
            }
        }
    }
}

/// The page's anchor for the figures of computed curves.
const COMPUTED: &str = "figures-computed";

fn is_table(exhibit: &Exhibit) -> bool {
    exhibit.graph().is_none()
}

fn anchor(section: usize) -> String {
    format!("figures-{}", section + 1)
}

fn figures(
    index: usize,
    (paper, section): (&Paper, &FigureSection),
    drawings: &[(&Figure, String)],
    judged: &[Judged<'_>],
) -> Markup {
    let of = |id| drawings.iter().find(|(figure, _)| figure.id == id);
    let drawings = section.figures.iter().filter_map(|figure| of(figure.id));
    html! {
        h3 id=(anchor(index)) { (section.title) }
        @if !section.intro.is_empty() { p { (section.intro) } }
        div.figures { @for (figure, svg) in drawings { (drawing(paper, figure, svg, judged)) } }
    }
}

fn drawing(paper: &Paper, figure: &Figure, svg: &str, judged: &[Judged<'_>]) -> Markup {
    let label = format!("{}: {}", figure.place, figure.title);
    html! {
        figure id=(figure.id) {
            div.wide role="img" aria-label=(label) { (PreEscaped(svg)) }
            figcaption {
                b { (figure.place) ". " (figure.title) ". " }
                @if paper.gives_some_damaged_in(figure) { (DAMAGED) " " }
                a href=(format!("{}.csv", figure.id)) { "Data" }
                " (" code { (figure.measure.name) } " by " code { (x_path(paper, figure)) } " of the records), "
                (picture_and_claims(figure.id, judged))
            }
        }
    }
}

/// The parameter that a figure's runs are swept over, as scenarios name it.
fn x_path(paper: &Paper, figure: &Figure) -> &'static str {
    let mut families = paper.families.iter();
    let family = families.find(|family| family.id == figure.family);
    family.map_or("", |family| family.x.path())
}

fn computed(exhibit: &Exhibit, svg: &str, judged: &[Judged<'_>]) -> Markup {
    html! {
        figure id=(exhibit.id) {
            div.wide role="img" aria-label=(exhibit.title) { (PreEscaped(svg)) }
            figcaption {
                b { (exhibit.title) ". " }
                (exhibit.intro) " "
                a href=(format!("{}.csv", exhibit.id)) { "Data" } ", "
                (picture_and_claims(exhibit.id, judged))
            }
        }
    }
}

/// A figure's picture, and links to the claims that it shows.
fn picture_and_claims(id: &str, judged: &[Judged<'_>]) -> Markup {
    let claims: Vec<_> = judged
        .iter()
        .filter(|(claim, _)| claim.see.contains(&id))
        .collect();
    html! {
        a href=(format!("{id}.svg")) { "picture" } ". "
        @if !claims.is_empty() {
            "Claims: "
            @for (index, (claim, checked)) in claims.iter().enumerate() {
                @if index > 0 { ", " }
                a href=(format!("#{}", claim.id)) { (claim.id) } " (" (verdict(checked)) ")"
            }
            "."
        }
    }
}

fn table(paper: &Paper, judged: &[Judged<'_>]) -> Markup {
    let title = |id: &str| {
        let known = paper.figures().find(|figure| figure.id == id);
        let mut exhibits = paper.exhibits.iter();
        let mut exhibit = || exhibits.find(|exhibit| exhibit.id == id);
        let known = known.map(|figure| figure.title);
        known.or_else(|| Some(exhibit()?.title)).unwrap_or("figure")
    };
    html! {
        table.claims {
            thead { tr { th { "Claim" } th { "Where" } th { "Verdict" } th { "Our figure" } th { "How it is judged, and why it is so" } } }
            tbody {
                @for (claim, checked) in judged {
                    tr id=(checked.id) {
                        td data-label="Claim" { (checked.claim) }
                        td data-label="Where" { (checked.place) }
                        td data-label="Verdict" { (verdict(checked)) }
                        td data-label="Our figure" { (checked.figure) }
                        td.comment {
                            (checked.comment)
                            @if !claim.see.is_empty() {
                                "\nSee "
                                @for (index, id) in claim.see.iter().enumerate() {
                                    @if index > 0 { "; " }
                                    a href=(format!("#{id}")) { (title(id)) }
                                }
                                "."
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The conditions of a family, and a command that runs a line by itself.
fn conditions(family: &Family, runs: usize) -> Markup {
    html! {
        h3 { (family.id) }
        p { (family.conditions) " " (runs) " runs a point, seeds from 1." }
        details {
            summary { "Each curve as a command" }
            @for line in family.lines { p { (line.label) } pre { (line_command(family, line, runs)) } }
        }
    }
}
