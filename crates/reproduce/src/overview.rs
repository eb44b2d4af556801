//! The page over all papers, and their claims as one list.

use crate::claims::{Checked, ClaimVerdict, changes};
use crate::few_runs::FewRuns;
use crate::output_file::OutputFile;
use crate::page::{PREMISE, warning};
use crate::paper::Paper;
use crate::reproduction::{PaperOutcome, ReproductionError, claims_json};
use crate::style::{count, document, given, undecided, verdict};
use maud::{Markup, html};

/// A paper, and its outcome or the reason why it has none.
#[derive(Debug)]
pub struct Attempt {
    /// The paper.
    pub paper: &'static Paper,
    /// The outcome. Its files lie in a directory of the paper's name, beside the overview.
    pub outcome: Result<PaperOutcome, String>,
}

/// The page over `attempts` and one list of all claims, whose ids begin with the paper's name; `command` is
/// the command that the page names for making them again.
///
/// # Errors
/// The claims cannot be written as JSON.
pub fn overview(attempts: &[Attempt], command: &str) -> Result<Vec<OutputFile>, ReproductionError> {
    let claims: Vec<Checked> = made(attempts)
        .flat_map(|(paper, outcome)| {
            outcome.claims.iter().map(|claim| Checked {
                id: format!("{}/{}", paper.name, claim.id),
                ..claim.clone()
            })
        })
        .collect();
    Ok(vec![
        OutputFile {
            name: "claims.json".to_owned(),
            text: claims_json(&claims)?,
        },
        OutputFile {
            name: "index.html".to_owned(),
            text: page(attempts, &claims, command),
        },
    ])
}

/// The papers that have an outcome, with it.
fn made(attempts: &[Attempt]) -> impl Iterator<Item = (&'static Paper, &PaperOutcome)> {
    attempts.iter().filter_map(|attempt| {
        let outcome = attempt.outcome.as_ref().ok()?;
        Some((attempt.paper, outcome))
    })
}

/// The claims that papers state, without goals of our own.
fn of_papers(attempts: &[Attempt]) -> Vec<Checked> {
    made(attempts)
        .filter(|(paper, _)| !paper.states_goals())
        .flat_map(|(_, outcome)| outcome.claims.iter().cloned())
        .collect()
}

/// A warning, if the runs of some paper are too few for its verdicts.
pub fn few_runs(attempts: &[Attempt]) -> Option<FewRuns> {
    let all = made(attempts).filter_map(|(_, outcome)| outcome.few);
    all.reduce(FewRuns::and)
}

fn page(attempts: &[Attempt], claims: &[Checked], command: &str) -> String {
    let title = "The papers, run again in Fulmar";
    let body = html! {
        h1 { (title) }
        (warning(few_runs(attempts)))
        @let stated = of_papers(attempts);
        p {
            "What the papers behind Fulmar state as results, checked one by one by runs of its simulator. Of "
            (stated.len()) " claims " (count(&stated, ClaimVerdict::Reproduced)) " are reproduced, "
            (count(&stated, ClaimVerdict::Partly)) " partly, and " (count(&stated, ClaimVerdict::Not))
            " not" (undecided(&stated)) (given(&stated)) ". Each paper's page has its figures, the conditions, why claims came out otherwise, and what \
             of the paper Fulmar has not."
        }
        @for (paper, outcome) in made(attempts).filter(|(paper, _)| paper.states_goals()) {
            p {
                "No paper stands behind " a href=(format!("{}/index.html", paper.name)) { (paper.name) } ": its "
                (outcome.claims.len()) " claims are goals of Fulmar's own, of which "
                (count(&outcome.claims, ClaimVerdict::Reproduced)) " are met."
            }
        }
        @let (read, changed) = changes(claims);
        @if read > 0 {
            p {
                "The papers leave conditions open, such as the unit of the error rate (per bit, or per octet), that of the latency, and \
                 the amount of data. " (read) " of the claims are judged under other readings of them too: "
                b { "the verdict of " (changed) " changes with the reading" }
                ". Verdicts here are of the conditions as printed; each claim's row tells the others."
            }
        }
        @let mixed: Vec<&str> = made(attempts).filter(|(paper, _)| paper.gives_some_damaged()).map(|(paper, _)| paper.name).collect();
        @if !mixed.is_empty() { p { "In " (mixed.join(" and ")) ": " (PREMISE) } }
        h2 { "Papers" }
        div.wide {
            table {
                thead { tr { th { "Paper" } th { "Claims" } th { "Reproduced" } th { "Partly" } th { "Not" } th { "Given" } th { "Change with the reading" } th { "Figures" } } }
                tbody { @for attempt in attempts { (row(attempt)) } }
            }
        }
        @for attempt in attempts { (list(attempt)) }
        h2 { "The command that made these pages" }
        pre { (command) }
        p { small { "fulmar " (env!("CARGO_PKG_VERSION")) ". The same command gives the same pages, octet for octet. All claims in one list: "
            a href="claims.json" { "claims.json" } "." } }
    };
    document(title, &body)
}

fn row(attempt: &Attempt) -> Markup {
    let paper = attempt.paper;
    html! {
        tr {
            @match &attempt.outcome {
                Ok(outcome) => {
                    td data-label="Paper" { a href=(format!("{}/index.html", paper.name)) { (paper.title) } " (" (paper.name) ")" }
                    td data-label="Claims" { (outcome.claims.len()) }
                    td data-label="Reproduced" { (count(&outcome.claims, ClaimVerdict::Reproduced)) }
                    td data-label="Partly" { (count(&outcome.claims, ClaimVerdict::Partly)) }
                    td data-label="Not" { (count(&outcome.claims, ClaimVerdict::Not)) (undecided(&outcome.claims)) }
                    td data-label="Given" { (count(&outcome.claims, ClaimVerdict::Given)) }
                    td data-label="Change with the reading" { (changing(&outcome.claims)) }
                    td data-label="Figures" { (outcome.figures) }
                }
                Err(problem) => {
                    td data-label="Paper" { (paper.title) " (" (paper.name) ")" }
                    td colspan="7" { span.not { "failed" } ": " (problem) }
                }
            }
        }
    }
}

/// The number of claims whose verdict changes, of those that are judged under several readings, as text.
fn changing(claims: &[Checked]) -> String {
    match changes(claims) {
        (0, _) => "one reading".to_owned(),
        (read, changed) => format!("{changed} of {read}"),
    }
}

/// A paper's claims with their verdicts, each a link to its row.
fn list(attempt: &Attempt) -> Markup {
    let paper = attempt.paper;
    let Ok(outcome) = &attempt.outcome else {
        return html! {};
    };
    html! {
        h2 { (paper.title) }
        div.wide {
            table {
                thead { tr { th { "Claim" } th { "Verdict" } th { "Our figure" } } }
                tbody {
                    @for claim in &outcome.claims {
                        tr {
                            td data-label="Claim" {
                                a href=(format!("{}/index.html#{}", paper.name, claim.id)) { (claim.claim) }
                            }
                            td data-label="Verdict" {
                                (verdict(claim))
                                @if claim.changes == Some(true) { ", changes with the reading" }
                            }
                            td data-label="Our figure" { (claim.figure) }
                        }
                    }
                }
            }
        }
    }
}
