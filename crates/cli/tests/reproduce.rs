//! `fulmar reproduce` from outside: what it writes, and how it ends.

use assert_cmd::Command;

fn reproduce(arguments: &[&str]) -> Command {
    let mut command = Command::cargo_bin("fulmar").expect("the binary of this package");
    command.arg("reproduce").args(arguments);
    command
}

#[test]
fn a_paper_becomes_a_directory_and_what_is_not_made_is_told() {
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
    for part in fulmar_reproduce::MULTI_MODE.missing() {
        assert!(told.contains(part.what), "{told}");
    }
    let page = String::from_utf8(output.stdout).expect("text");
    let page = std::fs::read_to_string(page.trim_end()).expect("the page that stdout names");
    assert!(page.contains("fulmar reproduce aerotp-multi-mode --out DIR --runs 1"));
    // Two files for each figure, beside the page and the claims.
    let figures = page.matches("<figure ").count();
    let count = std::fs::read_dir(out).expect("the directory").count();
    assert!(
        figures >= 5 && count == 2 * figures + 2,
        "{figures}, {count}"
    );
}

#[test]
fn an_unknown_paper_and_no_runs_are_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let out = directory.path().to_str().expect("a text");
    for (arguments, named) in [
        (vec!["aerotp", "--out", out], "aerotp-multi-mode"),
        (
            vec!["aerotp-multi-mode", "--runs", "0", "--out", out],
            "run.runs",
        ),
        (vec!["aerotp-multi-mode"], "--out"),
        (
            vec!["aerotp-hybrid", "--figure", "none", "--out", out],
            "no figure `none`",
        ),
        (
            vec!["all", "--figure", "modes-delay", "--out", out],
            "name the paper",
        ),
    ] {
        let output = reproduce(&arguments).assert().code(2).get_output().clone();
        let told = String::from_utf8(output.stderr).expect("text");
        assert!(told.contains(named), "{told}");
    }
}

#[test]
fn a_place_that_cannot_be_made_is_told_before_the_runs() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let out = file.path().join("page");
    let out = out.to_str().expect("a text");
    let output = reproduce(&["aerotp-multi-mode", "--out", out])
        .assert()
        .code(5)
        .get_output()
        .clone();
    let told = String::from_utf8(output.stderr).expect("text");
    assert!(told.contains(out), "{told}");
}

#[test]
fn a_figure_alone_is_a_picture_and_its_data() {
    let directory = tempfile::tempdir().expect("a directory");
    let out = directory.path().to_str().expect("a text");
    let figure = ["--figure", "stop-delay", "--runs", "2", "--out", out];
    reproduce(&["aerotp-hybrid"])
        .args(figure)
        .assert()
        .success();
    let mut names: Vec<_> = std::fs::read_dir(out)
        .expect("the directory")
        .map(|entry| entry.expect("a file").file_name())
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["stop-delay.csv", "stop-delay.svg"]);
}
