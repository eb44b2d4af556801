//! `fulmar reproduce` from outside: its files, and its exit.

use crate::processes::{Running, fulmar, until};
use assert_cmd::Command;
use rustix::process::Signal;

fn reproduce(arguments: &[&str]) -> Command {
    let mut command = Command::cargo_bin("fulmar").expect("the binary of this package");
    command.arg("reproduce").args(arguments);
    command
}

#[test]
fn a_paper_becomes_a_directory_and_few_runs_are_told() {
    let directory = tempfile::tempdir().expect("a directory");
    let out = directory.path().join("new/page");
    let out = out.to_str().expect("a text");
    let arguments = ["aerotp-multi-mode", "--runs", "1", "--out", out];
    let output = reproduce(&arguments)
        .assert()
        .success()
        .get_output()
        .clone();
    let told = String::from_utf8(output.stderr).expect("text");
    assert!(
        told.contains("warning: 1 run a point instead of 8 to 2000: verdicts are not"),
        "{told}"
    );
    let page = String::from_utf8(output.stdout).expect("text");
    let page = std::fs::read_to_string(page.trim_end()).expect("the page that stdout names");
    assert!(page.contains("fulmar reproduce aerotp-multi-mode --out DIR --runs 1"));
    // Two files for each figure, beside the page, the claims and Table I, which has data but no picture.
    let figures = page.matches("<figure ").count();
    let count = std::fs::read_dir(out).expect("the directory").count();
    assert!(
        figures >= 5 && count == 2 * figures + 3,
        "{figures}, {count}"
    );
    a_command_on_the_page_gives_the_numbers_of_its_figure(&page, out);
}

/// The command of a family whose own number of runs is not its scenario's.
fn a_command_on_the_page_gives_the_numbers_of_its_figure(page: &str, out: &str) {
    let (_, family) = page
        .split_once("<h3>strength-by-amount</h3>")
        .expect("the family");
    let (_, line) = family.split_once("<p>32 words</p><pre>").expect("its line");
    let (command, _) = line.split_once("</pre>").expect("an end");
    let shown: Vec<String> = command.split(" --set ").map(str::to_owned).collect();
    let (words, sets) = shown.split_first().expect("a command");
    let sets = sets
        .iter()
        .flat_map(|set| ["--set", set.trim_matches('\'')]);
    let output = Command::cargo_bin("fulmar")
        .expect("the binary of this package")
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
        .args(words.split(' ').skip(1))
        .args(sets)
        .arg("--json")
        .assert()
        .success()
        .get_output()
        .clone();
    let records = String::from_utf8(output.stdout).expect("text");
    let records = records
        .lines()
        .map(|line| -> serde_json::Value { serde_json::from_str(line).expect("a record") });
    let ours: Vec<f64> = records
        .filter(|record| record["record"] == "run")
        .map(|record| record["overhead_bytes"].as_f64().expect("a number"))
        .collect();
    let table = std::fs::read_to_string(format!("{out}/amount-overhead.csv")).expect("its data");
    let rows = table
        .lines()
        .filter_map(|row| row.strip_prefix("32 words,"));
    let theirs: Vec<f64> = rows
        .map(|row| {
            row.split(',')
                .nth(2)
                .expect("a mean")
                .parse()
                .expect("a number")
        })
        .collect();
    assert_eq!(ours.len(), 5);
    let shown: Vec<f64> = ours.iter().map(|octets| octets / 1e3).collect();
    assert_eq!(shown, theirs);
}

#[test]
fn a_list_without_a_paper_has_every_figure_of_every_paper() {
    let output = reproduce(&["--list"])
        .assert()
        .success()
        .get_output()
        .clone();
    let text = String::from_utf8(output.stdout).expect("text");
    let mut figures = 0;
    for paper in fulmar_reproduce::PAPERS {
        for name in paper.figure_names() {
            let mut lines = text.lines().map(|line| line.split_whitespace());
            let is_listed = |mut words: std::str::SplitWhitespace<'_>| {
                (words.next(), words.next()) == (Some(paper.name), Some(name))
            };
            assert!(lines.any(is_listed), "{} {name} in {text}", paper.name);
            figures += 1;
        }
    }
    assert_eq!(text.lines().count(), figures);
}

#[test]
fn a_list_may_be_of_the_figures_with_a_word_in_name_title_or_paper() {
    let listed = |arguments: &[&str]| {
        let output = reproduce(arguments).assert().success().get_output().clone();
        String::from_utf8(output.stdout).expect("text")
    };
    let all = listed(&["--list"]);
    for word in ["DELAY", "delay", "hybrid"] {
        let has = |line: &&str| line.to_lowercase().contains(&word.to_lowercase());
        let expected: Vec<&str> = all.lines().filter(has).collect();
        let found = listed(&["--list", "--find", word]);
        assert_eq!(found.lines().collect::<Vec<_>>(), expected, "{word}");
        let (count, all) = (expected.len(), all.lines().count());
        assert!(count > 0 && count < all, "{word}: {count} of {all}");
    }
    let of_paper = listed(&["aerotp-hybrid", "--list", "--find", "hybrid"]);
    assert_eq!(of_paper, listed(&["aerotp-hybrid", "--list"]));
    let none = reproduce(&["--list", "--find", "zeppelin"])
        .assert()
        .code(2);
    let said = String::from_utf8(none.get_output().stderr.clone()).expect("text");
    assert!(
        said.contains("`zeppelin`") && said.contains("--list"),
        "{said}"
    );
    reproduce(&["--find", "delay"]).assert().code(2);
}

#[test]
fn the_help_names_every_paper() {
    let output = reproduce(&["--help"])
        .assert()
        .success()
        .get_output()
        .clone();
    let help = String::from_utf8(output.stdout).expect("text");
    for name in fulmar_reproduce::PAPERS.map(|paper| paper.name) {
        let listed = help.split("Arguments:").nth(1).expect("them");
        let (listed, _) = listed.split_once("Options:").expect("them behind");
        assert!(listed.contains(name), "{name}: {listed}");
    }
}

#[test]
fn an_unknown_paper_and_no_runs_are_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let out = directory.path().to_str().expect("a text");
    for (arguments, named) in [
        (vec!["aerotp", "--out", out], "aerotp-multi-mode"),
        (vec!["slcap", "--out", out], "'slacp'"),
        (
            vec!["aerotp-multi-mode", "--runs", "0", "--out", out],
            "run.runs",
        ),
        (vec!["aerotp-multi-mode"], "--out"),
        (
            vec!["aerotp-hybrid", "--figure", "none", "--out", out],
            "no figure `none`; known are modes-goodput, ",
        ),
        (
            vec!["aerotp-hybrid", "--figure", "mode-goodput", "--out", out],
            "no figure `mode-goodput`; did you mean `modes-goodput`?",
        ),
        (
            vec![
                "aerotp-hybrid",
                "--figure",
                "modes-goodput.png",
                "--out",
                out,
            ],
            "written as SVG and its data as CSV, and in no other format; write --figure modes-goodput,",
        ),
        (
            vec!["all", "--figure", "modes-delay", "--out", out],
            "name the paper",
        ),
    ] {
        let output = reproduce(&arguments).assert().code(2).get_output().clone();
        let told = String::from_utf8(output.stderr).expect("text");
        assert!(told.contains(named), "{told}");
        let left = std::fs::read_dir(out).expect("the directory").count();
        assert_eq!(left, 0, "{arguments:?}");
    }
}

#[test]
fn a_place_that_cannot_be_made_or_written_to_is_told_before_the_runs() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let below = file.path().join("page");
    // Linux's /proc is there, and nobody can make a file in it.
    let places = [below.to_str().expect("a text"), "/proc"];
    for out in places
        .into_iter()
        .filter(|out| *out != "/proc" || cfg!(target_os = "linux"))
    {
        let output = reproduce(&["aerotp-multi-mode", "--out", out])
            .assert()
            .code(5)
            .get_output()
            .clone();
        let told = String::from_utf8(output.stderr).expect("text");
        assert!(told.contains("--out") && told.contains(out), "{told}");
        assert!(!told.contains("runs"), "{told}");
    }
}

#[test]
fn an_interrupt_ends_it_cleanly_and_leaves_what_was_there() {
    let directory = tempfile::tempdir().expect("a directory");
    let old = directory.path().join("index.html");
    std::fs::write(&old, "of an earlier time").expect("room");
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let out = directory.path().display();
        let papers = fulmar_reproduce::PAPERS.len();
        let mut running = Running::start(fulmar(&format!("reproduce all --out {out}")));
        until("some processor time", || running.processor_ticks() >= 50);
        running.signal(signal);
        let (status, said) = running.end();
        assert_eq!(status.code(), Some(code), "{said}");
        assert!(
            said.contains(&format!("interrupted; 0 of {papers} papers were written")),
            "{said}"
        );
        let kept = std::fs::read_to_string(&old).expect("it is still there");
        assert_eq!(kept, "of an earlier time");
        let left = std::fs::read_dir(directory.path()).expect("a directory");
        assert_eq!(left.count(), 1, "nothing was made but what was there");
    }
}

#[test]
fn a_figure_alone_is_a_picture_and_its_data() {
    let directory = tempfile::tempdir().expect("a directory");
    let out = directory.path().to_str().expect("a text");
    // Another paper has another figure of this name.
    let figure = ["--figure", "strength-goodput", "--runs", "2", "--out", out];
    let output = reproduce(&["aerotp-hybrid"])
        .args(figure)
        .assert()
        .success()
        .get_output()
        .clone();
    let told = String::from_utf8(output.stdout).expect("text");
    assert_eq!(
        told,
        format!(
            "{out}/aerotp-hybrid-strength-goodput.svg\n{out}/aerotp-hybrid-strength-goodput.csv\n"
        )
    );
    let warned = String::from_utf8(output.stderr).expect("text");
    assert!(
        warned.contains("warning: 2 runs a point instead of") && warned.lines().count() == 1,
        "{warned}"
    );
    let mut names: Vec<_> = std::fs::read_dir(out)
        .expect("the directory")
        .map(|entry| entry.expect("a file").file_name())
        .collect();
    names.sort_unstable();
    let files = [
        "aerotp-hybrid-strength-goodput.csv",
        "aerotp-hybrid-strength-goodput.svg",
    ];
    assert_eq!(names, files);
}

#[test]
fn computed_curves_are_figures_too_and_need_no_run() {
    let directory = tempfile::tempdir().expect("a directory");
    let out = directory.path().to_str().expect("a text");
    let output = reproduce(&["fso", "--figure", "fig-3-fasolt", "--out", out])
        .assert()
        .success()
        .get_output()
        .clone();
    let told = String::from_utf8(output.stdout).expect("text");
    assert_eq!(
        told,
        format!("{out}/fig-3-fasolt.svg\n{out}/fig-3-fasolt.csv\n")
    );
    assert_eq!(String::from_utf8(output.stderr).expect("text"), "");
    let picture = std::fs::read_to_string(directory.path().join("fig-3-fasolt.svg"));
    assert!(picture.expect("the picture").contains("5000 octets"));
}

#[test]
fn a_figure_of_other_runs_does_not_get_among_those_of_a_page() {
    let directory = tempfile::tempdir().expect("a directory");
    let out = directory.path().to_str().expect("a text");
    std::fs::write(directory.path().join("index.html"), "a page").expect("room");
    let arguments = [
        "slacp",
        "--figure",
        "cra-elapsed",
        "--runs",
        "1",
        "--out",
        out,
    ];
    let output = reproduce(&arguments).assert().code(2).get_output().clone();
    let told = String::from_utf8(output.stderr).expect("text");
    assert!(
        told.contains("has a page") && told.lines().count() == 1,
        "{told}"
    );
    assert_eq!(std::fs::read_dir(out).expect("the directory").count(), 1);

    std::fs::remove_file(directory.path().join("index.html")).expect("it is there");
    let output = reproduce(&arguments)
        .assert()
        .success()
        .get_output()
        .clone();
    let told = String::from_utf8(output.stderr).expect("text");
    assert!(
        told.contains("warning: 1 run a point instead of 32"),
        "{told}"
    );
}

#[test]
fn the_files_do_not_depend_on_the_number_of_threads() {
    let made = |jobs: &str| {
        let directory = tempfile::tempdir().expect("a directory");
        let out = directory.path().to_str().expect("a text");
        let figure = ["--figure", "modes-goodput", "--runs", "2", "--jobs", jobs];
        reproduce(&["aerotp-hybrid", "--out", out])
            .args(figure)
            .assert()
            .success();
        ["modes-goodput.csv", "modes-goodput.svg"]
            .map(|name| std::fs::read(directory.path().join(name)).expect("the file"))
    };
    assert_eq!(made("1"), made("3"));
}
