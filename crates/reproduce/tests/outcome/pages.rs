//! The pages of all papers as files, for `scripts/tests/test_page.py`, which opens them in a browser.

use crate::short::short;
use fulmar_reproduce::{AUTO, Attempt, OutputFile, PAPERS, overview};
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

#[test]
fn the_page_of_goals_speaks_of_no_paper_and_its_data_have_the_budgets_of_its_axis() {
    let runs = short(&AUTO);
    let outcome = runs.outcome(runs.results.clone(), "fulmar reproduce auto");
    let text = |name: &str| {
        let file = outcome.files.iter().find(|file| file.name == name);
        file.expect("it is written").text.as_str()
    };
    let page = text("index.html");
    for wrong in [
        "he paper's figures",
        "he paper describes",
        "ssue 21",
        "*reproduced*",
    ] {
        assert!(!page.contains(wrong), "{wrong}");
    }
    assert!(page.contains("Goals of Fulmar's own"));
    let mut rows = text("frontier-ideal-10-in-time.csv").lines();
    let columns = rows.next().expect("a row of names");
    assert!(columns.starts_with("line,budget_ms,n,"), "{columns}");
    let budgets: Vec<&str> = rows.filter_map(|row| row.split(',').nth(1)).collect();
    let table = ["5", "10", "25", "50", "100", "250", "500", "1000", "2500"];
    assert_eq!(budgets, table);
}
