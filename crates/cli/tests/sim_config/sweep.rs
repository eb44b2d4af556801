//! `[sweep]`, and values of the command line beside it.

use super::{BASE, Mistake, each_is_one_line_with_file_line_field_and_remedy};
use crate::processes::{Place, run, said};
use std::fs;

const MISTAKES: &[Mistake<'_>] = &[
    (
        r#""hop.ber" = [0, "1e-5"]"#,
        r#""hop.ber" = []"#,
        34,
        "sweep.hop.ber",
        "must have at least one value",
    ),
    (
        r#""hop.ber" = [0, "1e-5"]"#,
        r#""hop.ber" = 0"#,
        34,
        "sweep.hop.ber",
        "must be a list of the values",
    ),
    (
        r#""hop.ber" = [0, "1e-5"]"#,
        r#""hop.bre" = [0]"#,
        34,
        "hop.0.bre",
        "did you mean `ber`",
    ),
    (
        r#""hop.ber" = [0, "1e-5"]"#,
        r#""hpo.ber" = [0]"#,
        34,
        "hpo",
        "did you mean `hop`",
    ),
    (
        r#""hop.ber" = [0, "1e-5"]"#,
        r#""hop.3.ber" = [0]"#,
        34,
        "hop.3.ber",
        "there is only 0",
    ),
    (
        r#""hop.ber" = [0, "1e-5"]"#,
        r#""hop..ber" = [0]"#,
        34,
        "sweep.hop..ber",
        "is not a path; write it as in",
    ),
    (
        r#""hop.ber" = [0, "1e-5"]"#,
        r#""hop.ber" = [0, "many"]"#,
        34,
        "hop.0.ber",
        "write `none`, `1e-5`",
    ),
    (
        r#""hop.ber" = [0, "1e-5"]"#,
        r#""sweep.hop.ber" = [0, 1]"#,
        34,
        "sweep.sweep.hop.ber",
        "cannot vary the sweep itself",
    ),
    (
        r#""hop.ber" = [0, "1e-5"]"#,
        "\"hop.ber\" = [0]\n\"hop.0.ber\" = [0]",
        34,
        "sweep.hop.ber",
        "what `hop.0.ber` varies already",
    ),
    (
        r#""hop.ber" = [0, "1e-5"]"#,
        "\"hop.ber\" = [0]\n\"hop.ber\" = [0]",
        35,
        "hop.ber",
        "write it once",
    ),
    (
        r#""hop.ber" = [0, "1e-5"]"#,
        r#""run" = [1, 2]"#,
        34,
        "run",
        "must be a table",
    ),
    (
        r#"["nack-mack", 24]]"#,
        r#"["nack-mack"]]"#,
        35,
        "sweep.flow.0.mode, flow.0.fec_words",
        "one entry for each path",
    ),
    (
        r#"["nack-mack", 24]]"#,
        r#"["nack-mck", 24]]"#,
        35,
        "flow.0.mode",
        "did you mean `nack-mack`",
    ),
    (
        r#"["nack-mack", 24]]"#,
        r#"["nack-mack", 300]]"#,
        35,
        "flow.0.fec_words",
        "must be a whole number from 0 to 256",
    ),
    (
        "[sweep]",
        "[[sweep]]",
        33,
        "sweep",
        "must be one table, [sweep]",
    ),
    (
        r#""hop.ber" = [0, "1e-5"]"#,
        r#""hop.ber" = [0, "1e-5", 0]"#,
        34,
        "sweep.hop.ber",
        "takes `0` twice; write each value once",
    ),
    (
        r#"["nack-mack", 24]]"#,
        r#"["reliable", 0]]"#,
        35,
        "sweep.flow.0.mode, flow.0.fec_words",
        "takes `reliable, 0` twice",
    ),
    (
        r#""hop.ber" = [0, "1e-5"]"#,
        r#""hop.ber" = {}"#,
        34,
        "sweep.hop.ber",
        "must be a list of the values",
    ),
];

#[test]
fn mistakes_of_sweeps() {
    each_is_one_line_with_file_line_field_and_remedy(MISTAKES);
    each_is_one_line_with_file_line_field_and_remedy(&[
        (
            r#""hop.ber" = [0, "1e-5"]"#,
            &huge(),
            33,
            "sweep",
            "take fewer values",
        ),
        (
            r#""hop.ber" = [0, "1e-5"]"#,
            &runs(),
            4,
            "run.runs",
            "write a table, --out FILE.parquet, or take fewer",
        ),
    ]);
}

/// A sweep of `count` rates.
fn rates(count: u32) -> String {
    let rates: Vec<String> = (0..count).map(|n| format!("{n}e-9")).collect();
    rates.join(", ")
}

/// A sweep of more points than the most.
fn huge() -> String {
    let rates = rates(1000);
    format!("\"hop.ber\" = [{rates}]\n\"hop.duplicate\" = [{rates}]")
}

/// A file with few points and too many runs.
fn runs() -> String {
    let rates = rates(2000);
    format!("\"run.runs\" = [10000]\n\"hop.ber\" = [{rates}]")
}

#[test]
fn records_of_more_than_ten_million_runs_are_refused_and_a_table_of_as_many_is_not() {
    let place = Place::with(1);
    let file = place.path("scenario.toml");
    // Two modes of 2,500 rates of 2,000 runs, but for the first rate.
    let others: Vec<String> = (0..2499).map(|n| format!("[{n}e-9, 2000]")).collect();
    let swept = |first: u32| {
        let others = others.join(", ");
        format!("\"hop.ber, run.runs\" = [[\"1e-3\", {first}], {others}]")
    };
    let table = format!("--out {}", place.path("all.parquet").display());
    for (first, flags, is_refused) in [(2000, "", false), (2001, "", true), (2001, &*table, false)]
    {
        let sweep = &swept(first);
        fs::write(&file, BASE.replace(r#""hop.ber" = [0, "1e-5"]"#, sweep)).expect("room");
        // Names a column that is not there, which is refused before anything is run.
        let output = run(&format!("sim {} --columns none {flags}", file.display()));
        let told = said(&output);
        assert_eq!(output.status.code(), Some(2), "{told}");
        let cure = "runs are more than 10000000 records; write a table";
        assert_eq!(told.contains(cure), is_refused, "{told}");
        assert_eq!(told.contains("`run.runs`: 10000002"), is_refused, "{told}");
        assert_eq!(told.contains("--columns"), !is_refused, "{told}");
    }
}

#[test]
fn a_value_of_the_command_line_that_the_sweep_replaces_is_refused_and_told_how_to_be_had() {
    let place = Place::with(1);
    let file = place.path("scenario.toml");
    fs::write(&file, BASE).expect("room");
    let shown = file.display();
    for (flags, field, remedy) in [
        (
            "--set hop.ber=1e-4",
            "hop.0.ber",
            "--set 'sweep.hop.ber=[...]'",
        ),
        (
            "--set hop.0.ber=1e-4",
            "hop.0.ber",
            "scenario.toml:34) gives `hop.ber` at every point",
        ),
        (
            "--set flow.0.fec_words=4",
            "flow.0.fec_words",
            "--set 'sweep.flow.0.mode, flow.0.fec_words=[...]'",
        ),
        (
            "--set sweep.run.seed=[1,2] --seed 7",
            "run.seed",
            "is never used",
        ),
    ] {
        let output = run(&format!("sim {shown} {flags}"));
        let told = said(&output);
        assert_eq!(output.status.code(), Some(2), "{flags}: {told}");
        let expected = format!(": `{field}`: is never used");
        assert!(told.contains(&expected) && told.contains(remedy), "{told}");
        assert_eq!(told.lines().count(), 1, "{told}");
    }
    // The settings that the remedy asks for, and values beside the swept ones.
    for flags in [
        "--set sweep.hop.ber=[1e-4]",
        "--set hop.reverse.ber=1e-4",
        "--seed 7",
    ] {
        let output = run(&format!("sim {shown} {flags}"));
        assert!(output.status.success(), "{flags}: {}", said(&output));
    }
}

#[test]
fn a_table_has_the_swept_values_of_lists_of_tables() {
    let place = Place::with(1);
    let file = place.path("scenario.toml");
    fs::write(&file, BASE).expect("room");
    let output = run(&format!("sim {} --csv -", file.display()));
    let rows = String::from_utf8(output.stdout).expect("text");
    let mut rows = rows.lines();
    let header: Vec<&str> = rows.next().expect("a header").split(',').collect();
    let column = |name: &str| header.iter().position(|known| *known == name).expect("it");
    let (ber, mode) = (column("hop.ber"), column("flow.0.mode"));
    let mut found = Vec::new();
    for row in rows.filter(|row| row.starts_with("aggregate,")) {
        let cells: Vec<&str> = row.split(',').collect();
        found.push((cells[ber], cells[mode]));
    }
    let expected = [
        ("0", "reliable"),
        ("1e-5", "reliable"),
        ("0", "nack-mack"),
        ("1e-5", "nack-mack"),
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_sweep_of_nothing_is_refused() {
    let place = Place::with(1);
    let file = place.path("scenario.toml");
    let (before, _) = BASE.split_once("[sweep]").expect("it has one");
    fs::write(&file, format!("{before}[sweep]\n")).expect("room");
    let output = run(&format!("sim {}", file.display()));
    assert_eq!(output.status.code(), Some(2));
    assert!(
        said(&output).contains("scenario.toml:33: `sweep`: varies nothing; name"),
        "{}",
        said(&output)
    );
}
