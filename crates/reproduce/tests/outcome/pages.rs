//! The pages of all papers as files, for `scripts/tests/test_page.py`, which opens them in a browser.

use crate::short::short;
use fulmar_reproduce::{Attempt, OutputFile, PAPERS, overview};
use std::fs;
use std::path::Path;

fn write(directory: &Path, files: &[OutputFile]) {
    fs::create_dir_all(directory).expect("the build's own directory");
    for file in files {
        fs::write(directory.join(&file.name), &file.text).expect("room on the disk");
    }
}

#[test]
fn the_pages_of_all_papers_and_their_overview_are_files_for_a_browser() {
    let command = "fulmar reproduce all";
    let attempts = PAPERS.map(|paper| {
        let runs = short(paper);
        let outcome = Ok(runs.outcome(runs.results.clone(), command));
        Attempt { paper, outcome }
    });
    let all = overview(&attempts, command).expect("claims are JSON");
    let place = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (fresh, pages) = (place.join("fresh-pages"), place.join("pages"));
    let _none_before = fs::remove_dir_all(&fresh);
    for attempt in &attempts {
        let outcome = attempt.outcome.as_ref().expect("it was made");
        write(&fresh.join(attempt.paper.name), &outcome.files);
    }
    write(&fresh, &all);
    // Whole or not at all.
    let _none_before = fs::remove_dir_all(&pages);
    fs::rename(&fresh, &pages).expect("in the same directory");
}
