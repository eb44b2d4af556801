//! The file as such, and its tables `run` and `lan`.

use super::{Mistake, each_is_one_line_with_file_line_field_and_remedy};
use crate::processes::{Place, run, said};
use std::fs;

const MISTAKES: &[Mistake<'_>] = &[
    (
        r#"title = "a base""#,
        r#"titel = "a base""#,
        1,
        "titel",
        "did you mean `title`",
    ),
    (
        r#"title = "a base""#,
        r#"title = "a base"#,
        1,
        "title",
        r#"expected `"`"#,
    ),
    ("[run]", "[runn]", 2, "runn", "did you mean `run`"),
    ("[run]", "[run", 2, "run", "expected `]`"),
    ("[run]", "[run]\n[run]", 3, "run", "write it once"),
    (
        "seed = 1",
        "seed = 1.5",
        3,
        "run.seed",
        "must be a whole number from 0",
    ),
    (
        "runs = 2",
        "runs = 0",
        4,
        "run.runs",
        "must be a whole number from 1",
    ),
    ("runs = 2", "runs = 1000000000", 4, "run.runs", "to 1000000"),
    (
        r#"duration = "30s""#,
        r#"duration = "30""#,
        5,
        "run.duration",
        "has no unit: write a time such as",
    ),
    (
        r#"duration = "30s""#,
        r#"duration = "-30s""#,
        5,
        "run.duration",
        "`-30s` is negative; a time is 0s or longer, such as 30s",
    ),
    (
        r#"duration = "30s""#,
        r#"duration = "0s""#,
        5,
        "run.duration",
        "must be longer than 0",
    ),
    (
        r#"lateness = "1ms""#,
        r#"latness = "1ms""#,
        6,
        "run.latness",
        "did you mean `lateness`",
    ),
    (
        r#"rate = "1gbit""#,
        r#"rate = "0bit""#,
        8,
        "lan.rate",
        "at least 1bit",
    ),
    (
        "[lan]",
        "[lan]\nloss = \"1%\"",
        8,
        "lan.loss",
        "known are rate, delay, queue",
    ),
    (
        r#"title = "a base""#,
        "title = []",
        1,
        "title",
        "must be a single value",
    ),
];

#[test]
fn mistakes_of_the_file_run_and_lan() {
    each_is_one_line_with_file_line_field_and_remedy(MISTAKES);
}

#[test]
fn files_that_are_no_scenarios_are_refused_in_one_line() {
    let place = Place::with(1);
    let file = place.path("scenario.toml");
    let nested = format!("a = {}", "[".repeat(100_000));
    let dotted = format!("[run]\nseed{} = 1", ".a".repeat(100_000));
    for (octets, expected) in [
        (&b""[..], "toml:1: `hop`: there must be 1 to"),
        (b"seed = 1\n\xff\n", "toml:2: is not UTF-8"),
        (nested.as_bytes(), "toml:1: `a`: "),
        (dotted.as_bytes(), "recursion limit"),
        (b"\0\0\0", "toml:1: "),
    ] {
        fs::write(&file, octets).expect("room");
        let output = run(&format!("sim {}", file.display()));
        let told = said(&output);
        assert_eq!(output.status.code(), Some(2), "{told}");
        assert!(
            told.contains(expected) && told.lines().count() == 1,
            "{told}"
        );
    }
    for (path, expected) in [
        ("/dev/zero", "is longer than"),
        ("/", "cannot read the scenario /"),
        ("/no/such/file.toml", "No such file"),
    ] {
        let output = run(&format!("sim {path}"));
        let told = said(&output);
        assert_eq!(output.status.code(), Some(2), "{told}");
        assert!(
            told.contains(expected) && told.lines().count() == 1,
            "{told}"
        );
    }
}
