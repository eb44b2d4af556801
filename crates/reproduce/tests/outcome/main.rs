//! The files of a reproduction: a page that needs nothing else, claims by their schema, data.

mod pages;
mod short;

use crate::short::{runs, short};
use fulmar_reproduce::{
    Attempt, ClaimVerdict, FSO, HYBRID, LT_TCP, MULTI_MODE, OutputFile, Paper, SLACP, overview,
};
use fulmar_sim::experiment::{ExperimentProgress, PointResult};
use serde::Deserialize;
use std::sync::OnceLock;

/// The number of claims: none may vanish unnoticed.
const CLAIMS: usize = 65;

fn results() -> Vec<PointResult> {
    short(&MULTI_MODE).results.clone()
}

fn written(results: Vec<PointResult>) -> Vec<OutputFile> {
    let command = "fulmar reproduce <paper> & more";
    short(&MULTI_MODE).outcome(results, command).files
}

fn files() -> &'static [OutputFile] {
    static FILES: OnceLock<Vec<OutputFile>> = OnceLock::new();
    FILES.get_or_init(|| written(results()))
}

fn text(name: &str) -> &'static str {
    let file = files().iter().find(|file| file.name == name);
    &file.unwrap_or_else(|| panic!("no {name}")).text
}

/// The schema of an object of `claims.json`: these fields, and no others.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenClaim {
    id: String,
    #[serde(rename = "where")]
    place: String,
    claim: String,
    verdict: ClaimVerdict,
    figure: String,
    comment: String,
}

fn claims(files: &[OutputFile]) -> Vec<WrittenClaim> {
    let file = files.iter().find(|file| file.name == "claims.json");
    serde_json::from_str(&file.expect("claims.json").text).expect("the schema of claims")
}

/// Every eighth point is run again: a run depends on its point and seed alone, so these stand for the
/// others.
const AGAIN: usize = 8;

#[test]
fn the_same_runs_give_the_same_octets_for_every_number_of_threads() {
    let mut results = results();
    let mut some = short(&MULTI_MODE).experiment.clone();
    let mut number = 0;
    some.points.retain(|_| {
        number += 1;
        number % AGAIN == 1
    });
    let again = some
        .run(1, &ExperimentProgress::default())
        .expect("threads start");
    assert!(again.len() > 100, "{}", again.len());
    for (index, mut point) in again.into_iter().enumerate() {
        // Numbered among its own; the page does not show it.
        let known = &results[index * AGAIN];
        for (run, known) in point.runs.iter_mut().zip(&known.runs) {
            run.point = known.point;
        }
        assert_eq!(point.runs, known.runs);
        results[index * AGAIN] = point;
    }
    assert_eq!(files(), written(results));
}

#[test]
fn every_element_of_the_page_is_closed_in_turn() {
    let page = text("index.html");
    let mut open: Vec<&str> = Vec::new();
    for tag in page.split('<').skip(1) {
        let (tag, _) = tag.split_once('>').expect("a tag ends");
        let name = tag.split([' ', '\n']).next().unwrap_or_default();
        if let Some(closed) = name.strip_prefix('/') {
            assert_eq!(open.pop(), Some(closed));
        } else if !(tag.ends_with('/') || ["!DOCTYPE", "meta"].contains(&name)) {
            open.push(name);
        }
    }
    assert_eq!(open, Vec::<&str>::new());
    assert!(page.contains("&lt;paper&gt; &amp; more"));
}

#[test]
fn the_page_asks_for_nothing_from_anywhere() {
    let page = text("index.html").replace("http://www.w3.org/2000/svg", "");
    for request in [
        "://", "src=", "url(", "@import", "<script", "<link", "<image", "<iframe",
    ] {
        assert!(!page.contains(request), "{request}");
    }
    // What a reader may click on is on the page or beside it.
    for link in page.split("href=\"").skip(1) {
        let name = link.split('"').next().expect("a value");
        let here = name.strip_prefix('#');
        let here = here.is_some_and(|id| page.contains(&format!("id=\"{id}\"")));
        assert!(
            here || files().iter().any(|file| file.name == name),
            "{name}"
        );
    }
}

#[test]
fn each_figure_has_data_with_intervals_and_a_picture_on_the_page() {
    let data: Vec<_> = files()
        .iter()
        .filter_map(|file| Some((file, file.name.strip_suffix(".csv")?)))
        // A table of features: words without runs, so neither intervals nor a picture.
        .filter(|(_, name)| *name != "table-i")
        .collect();
    assert_eq!(data.len(), 89);
    for (file, name) in data {
        let mut rows = file
            .text
            .lines()
            .map(|row| row.split(',').collect::<Vec<_>>());
        let header = rows.next().expect("a header");
        assert!(
            [6, 9].contains(&header.len()) && header[2] == "n",
            "{header:?}"
        );
        let mut count = 0;
        for row in rows {
            let number = |index: usize| row[index].parse::<f64>().ok();
            // One of these lengths is that of the slot.
            let named = name == "slot-lengths-goodput";
            assert!(named || number(1).is_some(), "{}: {row:?}", file.name);
            let other = row[0].starts_with("ns-3");
            assert!(
                other || number(2) <= Some(runs(&MULTI_MODE) as f64),
                "{row:?}"
            );
            if let (Some(mean), Some(low), Some(high)) = (number(3), number(4), number(5)) {
                assert!(low <= mean && mean <= high, "{row:?}");
                count += 1;
            }
        }
        assert!(count >= 10, "{}: {count}", file.name);
        let picture = text(&format!("{name}.svg"));
        assert!(text("index.html").contains(picture), "{}", file.name);
    }
}

/// These tests make fewer runs than the figures have; the criterion comes next.
fn is_told_of_few_runs(claim: &WrittenClaim) -> bool {
    let mut lines = claim.comment.lines();
    let first = lines.next().unwrap_or_default();
    let next = lines.next().unwrap_or_default();
    first.starts_with("Few runs (")
        && first.contains(" instead of ")
        && next.starts_with("Reproduced ")
}

#[test]
fn each_claim_is_told_once_with_a_figure_and_a_criterion() {
    let claims = claims(files());
    assert_eq!(claims.len(), CLAIMS);
    let mut ids: Vec<_> = claims.iter().map(|claim| &claim.id).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), CLAIMS);
    for claim in &claims {
        // Two runs may lose nothing at all, and then a claim on growth has nothing to judge by.
        let judged = claim.figure.contains(|c: char| c.is_ascii_digit());
        assert!(
            judged || (claim.figure == "none" && claim.verdict == ClaimVerdict::Not),
            "{claim:?}"
        );
        assert!(!claim.figure.contains("NaN") && !claim.figure.contains("inf"));
        assert!(is_told_of_few_runs(claim), "{claim:?}");
        assert!(!claim.place.is_empty() && !claim.claim.is_empty());
    }
}

#[test]
fn a_verdict_follows_the_runs() {
    let verdict = |results| {
        let claims = claims(&written(results));
        let claim = claims.iter().find(|claim| claim.id == "arq-complete");
        claim.expect("a claim").verdict
    };
    let changed = |to: Option<f64>| {
        let mut results = results();
        for (name, summary) in results.iter_mut().flat_map(|r| &mut r.aggregate.flat) {
            if name == "completed" {
                summary.mean = to;
            }
        }
        verdict(results)
    };
    assert_eq!(changed(Some(1.0)), ClaimVerdict::Reproduced);
    assert_eq!(changed(Some(0.96)), ClaimVerdict::Partly);
    assert_eq!(changed(Some(0.5)), ClaimVerdict::Not);
    assert_eq!(changed(None), ClaimVerdict::Not);
}

#[test]
fn half_an_experiment_makes_no_page() {
    let mut results = results();
    results.pop();
    let runs = short(&MULTI_MODE);
    let error = runs.made.outcome(results, "");
    let error = error.expect_err("a point is missing");
    let planned = runs.experiment.points.len();
    let there = format!("{} of {planned} points", planned - 1);
    assert!(error.to_string().contains(&there), "{error}");
}

/// Runs every sixteenth point again, on one thread. Returns the files of the paper, and those over all papers.
fn keeps_its_claims_and_its_octets(
    paper: &'static Paper,
    count: usize,
) -> (Vec<OutputFile>, Vec<OutputFile>) {
    let runs = short(paper);
    let results = runs.results.clone();
    let mut some = runs.experiment.clone();
    let mut number = 0;
    some.points.retain(|_| {
        number += 1;
        number % 16 == 1
    });
    let mut mixed = results.clone();
    let again = some
        .run(1, &ExperimentProgress::default())
        .expect("threads start");
    assert!(!again.is_empty());
    for (index, mut point) in again.into_iter().enumerate() {
        let known = &mut mixed[index * 16];
        for (run, known) in point.runs.iter_mut().zip(&known.runs) {
            run.point = known.point;
        }
        *known = point;
    }
    let both = [results, mixed].map(|results| {
        let outcome = runs.outcome(results, "fulmar reproduce all");
        let files = outcome.files.clone();
        let attempt = Attempt {
            paper,
            outcome: Ok(outcome),
        };
        let all = overview(&[attempt], "fulmar reproduce all").expect("claims are JSON");
        (files, all)
    });
    assert_eq!(both[0], both[1]);
    let (files, all) = &both[0];
    assert_eq!(claims(files).len(), count);
    let page = files.iter().find(|file| file.name == "index.html");
    tells_what_is_absent_and_counts_nothing_given(
        paper,
        &page.expect("a page").text,
        &claims(files),
    );
    let listed = claims(all);
    assert_eq!(listed.len(), count);
    let prefix = format!("{}/", paper.name);
    for claim in &listed {
        assert!(claim.id.starts_with(&prefix), "{}", claim.id);
        assert!(is_told_of_few_runs(claim), "{claim:?}");
        assert!(!claim.figure.contains("NaN") && !claim.figure.contains("inf"));
        let judged = claim.figure.contains(|c: char| c.is_ascii_digit());
        assert!(judged || claim.figure == "none", "{claim:?}");
    }
    let [whole, _] = both;
    whole
}

/// Checks that the page names the things that the paper has and Fulmar has not, and that a claim that our
/// own settings make hold says so and does not count as reproduced.
fn tells_what_is_absent_and_counts_nothing_given(
    paper: &Paper,
    page: &str,
    claims: &[WrittenClaim],
) {
    let (_, list) = page
        .split_once("<h2 id=\"absent\">Not here</h2>")
        .expect("a list");
    let (list, _) = list.split_once("</ul>").expect("its end");
    assert!(!paper.absent().is_empty(), "{}", paper.name);
    for part in paper.absent() {
        let escaped = |text: &str| text.replace('&', "&amp;").replace('"', "&quot;");
        let is_there = |text: &str| list.contains(&escaped(text));
        assert!(is_there(part.what) && is_there(part.place), "{part:?}");
        assert!(part.instead.ends_with('.'), "{part:?}");
    }
    let of = |verdict| {
        claims
            .iter()
            .filter(|claim| claim.verdict == verdict)
            .count()
    };
    let [reproduced, given] = [ClaimVerdict::Reproduced, ClaimVerdict::Given].map(of);
    assert!(
        page.contains(&format!("{reproduced} are reproduced")),
        "{reproduced}"
    );
    assert_eq!(
        given > 0,
        page.contains("and counts for nothing"),
        "{given}"
    );
    for claim in claims {
        let says = claim.comment.contains("\nGiven, not found: ");
        assert_eq!(claim.verdict == ClaimVerdict::Given, says, "{claim:?}");
    }
}

#[test]
fn the_hybrid_paper_and_the_overview_keep_their_claims_and_their_octets() {
    let (files, all) = keeps_its_claims_and_its_octets(&HYBRID, 49);
    tells_of_readings_and_damage(&files, &all);
}

#[test]
fn the_slacp_slides_keep_their_claims_and_their_octets() {
    keeps_its_claims_and_its_octets(&SLACP, 21);
}

#[test]
fn the_lt_tcp_slides_keep_their_claims_and_their_octets() {
    let (files, _) = keeps_its_claims_and_its_octets(&LT_TCP, 18);
    // LL-ARQ's latencies were fitted to; whether these runs have them or not, they reproduce nothing.
    let claims = claims(&files);
    let fitted = claims.iter().find(|claim| claim.id == "latency-order");
    let verdict = fitted.expect("a claim").verdict;
    assert!(
        [ClaimVerdict::Given, ClaimVerdict::Not].contains(&verdict),
        "{verdict:?}"
    );
}

#[test]
fn the_fso_papers_keep_their_claims_and_their_octets() {
    keeps_its_claims_and_its_octets(&FSO, 52);
}

/// Checks that the overview says how many verdicts change with the reading, and that AeroTP gets damaged
/// frames and the others do not.
fn tells_of_readings_and_damage(files: &[OutputFile], all: &[OutputFile]) {
    let page = |files: &[OutputFile]| {
        let page = files.iter().find(|file| file.name == "index.html");
        page.expect("a page").text.clone()
    };
    let (overview, paper) = (page(all), page(files));
    let claims = claims(files);
    let told: Vec<(ClaimVerdict, &str)> = claims
        .iter()
        .filter_map(|claim| {
            let (_, others) = claim.comment.split_once("\nUnder other readings:\n")?;
            Some((claim.verdict, others))
        })
        .collect();
    let changed = told.iter().filter(|(verdict, others)| {
        let verdict = format!(": {} (", verdict.name());
        let mut others = others.lines().filter(|line| !line.ends_with("no value"));
        others.any(|line| !line.contains(&verdict))
    });
    let (changed, read) = (changed.count(), told.len());
    assert!(changed > 5 && read > changed, "{changed} of {read}");
    assert!(overview.contains(&format!(
        "the verdict of {changed} changes with the reading"
    )));
    assert!(overview.contains(&format!("{read} of the claims")));
    let marks = overview.matches(", changes with the reading").count();
    assert_eq!(marks, changed);
    assert!(paper.contains(&format!(
        "the verdict of {changed} changes with the reading"
    )));
    for page in [&overview, &paper] {
        assert!(page.contains("Made with 1 run a point instead of 10 to 25: "));
        assert!(page.contains("its receiver gets damaged frames"));
    }
    // The sentence stands under each figure of which some curves get damaged frames and others do not.
    let captions: Vec<&str> = paper.split("<figcaption>").skip(1).collect();
    let says = |caption: &&&str| caption.contains("AeroTP gets damaged frames");
    let id = |name: &str| {
        let (figure, _) = paper
            .split_once(&format!("<figure id=\"{name}\""))
            .expect("it");
        captions[figure.matches("<figure ").count()]
    };
    assert!(says(&&id("modes-goodput")) && !says(&&id("mack-goodput")));
}
