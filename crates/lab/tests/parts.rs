//! Sweeps in parts: the whole is the same however it was cut, and what does not belong together is refused.

use crate::tables::{EVERYTHING, study};
use core::sync::atomic::{AtomicBool, Ordering};
use fulmar_lab::parts::{is_whole, merge};
use fulmar_lab::{FailedRuns, KeptParts, PartError, Study, SweepPart};
use fulmar_sim::ExperimentProgress;
use std::fs;
use std::path::{Path, PathBuf};

fn made(study: &Study, parts: &[SweepPart], directory: &Path, build: &str) -> Vec<PathBuf> {
    let make = |(number, part): (usize, &SweepPart)| {
        let path = directory.join(format!("{number}-of-{}-{build}.parquet", parts.len()));
        let written = part.write(study, build, &path, 1, &ExperimentProgress::default());
        written.expect("written");
        path
    };
    parts.iter().enumerate().map(make).collect()
}

fn whole(parts: &[PathBuf], directory: &Path) -> Result<(Vec<u8>, Vec<u8>), PartError> {
    let files = [
        directory.join("all.parquet"),
        directory.join("all-points.parquet"),
    ];
    let failed = merge(parts, &files[0], &files[1], &AtomicBool::new(false))?;
    assert_eq!(failed, FailedRuns::default());
    let read = |path: &PathBuf| fs::read(path).expect("written");
    Ok((read(&files[0]), read(&files[1])))
}

#[test]
fn a_whole_has_the_same_octets_however_it_was_cut() {
    let study = study(EVERYTHING);
    let directory = tempfile::tempdir().expect("a directory");
    let at_once = made(
        &study,
        &SweepPart::all(&study, 1_000),
        directory.path(),
        "b",
    );
    assert_eq!(at_once.len(), 1);
    let expected = whole(&at_once, directory.path()).expect("complete");
    for shards in [2, 4, 16] {
        let shards: Vec<SweepPart> = (1..=shards)
            .map(|number| SweepPart::shard(&study, number, shards))
            .collect();
        let mut parts = made(&study, &shards, directory.path(), "b");
        parts.reverse();
        let joined = whole(&parts, directory.path()).expect("complete");
        assert!(joined == expected, "{} shards", shards.len());
    }
    let by_one = made(&study, &SweepPart::all(&study, 1), directory.path(), "b");
    assert!(whole(&by_one, directory.path()).expect("complete") == expected);
}

#[test]
fn parts_that_are_missing_doubled_or_of_another_sweep_are_refused() {
    let study = study(EVERYTHING);
    let directory = tempfile::tempdir().expect("a directory");
    let parts = made(&study, &SweepPart::all(&study, 3), directory.path(), "b");
    let refused = |parts: &[PathBuf]| {
        whole(parts, directory.path())
            .expect_err("refused")
            .to_string()
    };
    let missing = refused(&[parts[0].clone(), parts[2].clone()]);
    assert_eq!(
        missing,
        "runs 3 to 5 of 9 are in no part; make the shard that has them"
    );
    let doubled = refused(&[
        parts[0].clone(),
        parts[1].clone(),
        parts[1].clone(),
        parts[2].clone(),
    ]);
    assert_eq!(doubled, "runs 3 to 5 of 9 are in two parts; leave one out");
    assert_eq!(refused(&[]), "no parts were named");
    let other_build = made(&study, &SweepPart::all(&study, 4), directory.path(), "c");
    assert!(refused(&[parts[0].clone(), other_build[1].clone()]).contains("of another build than"));
    let other = self::study(&EVERYTHING.replace("50kB", "60kB"));
    let other = made(&other, &SweepPart::all(&other, 5), directory.path(), "d");
    assert!(refused(&[parts[0].clone(), other[1].clone()]).contains("of another sweep than"));
    fs::write(&parts[0], "no table").expect("written");
    let torn = refused(&parts);
    assert!(
        torn.ends_with("0-of-3-b.parquet as runs of a sweep: it is no Parquet file; name files that `fulmar sim --out FILE.parquet` made"),
        "{torn}"
    );
}

#[test]
fn a_part_is_found_again_by_the_study_and_the_build_that_made_it() {
    let study = study(EVERYTHING);
    let directory = tempfile::tempdir().expect("a directory");
    let parts = SweepPart::all(&study, 4);
    let files = made(&study, &parts, directory.path(), "b");
    for (part, file) in parts.iter().zip(&files) {
        assert_eq!(SweepPart::found(&study, "b", file).as_ref(), Some(part));
        assert_eq!(SweepPart::found(&study, "c", file), None);
    }
    let other = self::study(&EVERYTHING.replace("50kB", "60kB"));
    assert_eq!(SweepPart::found(&other, "b", &files[0]), None);
    assert_ne!(
        parts[0].content_name(&study, "b"),
        parts[0].content_name(&other, "b")
    );
    assert_ne!(
        parts[0].content_name(&study, "b"),
        parts[1].content_name(&study, "b")
    );
}

#[test]
fn results_of_another_sweep_are_not_overwritten_and_a_cancelled_part_leaves_nothing() {
    let study = study(EVERYTHING);
    let directory = tempfile::tempdir().expect("a directory");
    let place = directory.path().join("all.parquet");
    assert!(!is_whole(&study, &place).expect("no file"));
    let parts = made(&study, &SweepPart::all(&study, 9), directory.path(), "b");
    whole(&parts, directory.path()).expect("complete");
    assert!(is_whole(&study, &place).expect("ours"));
    let other = self::study(&EVERYTHING.replace("50kB", "60kB"));
    let refused = is_whole(&other, &place).expect_err("another's").to_string();
    assert!(
        refused.contains("all.parquet has the results of another sweep"),
        "{refused}"
    );
    assert!(is_whole(&study, &parts[0]).is_err(), "a part is no whole");
    let cancelled = ExperimentProgress::default();
    cancelled.cancel.store(true, Ordering::Relaxed);
    let path = directory.path().join("cancelled.parquet");
    let part = &SweepPart::all(&study, 9)[0];
    let ended = part.write(&study, "b", &path, 1, &cancelled);
    assert!(matches!(ended, Err(PartError::Cancelled)), "{ended:?}");
    let left = fs::read_dir(directory.path()).expect("a directory");
    let names = left.map(|entry| entry.expect("an entry").file_name());
    assert!(
        names
            .into_iter()
            .all(|name| !name.to_string_lossy().contains("cancelled"))
    );
}

#[test]
fn parts_that_were_cut_otherwise_are_found_and_the_gaps_between_them_are_made() {
    let study = study(EVERYTHING);
    let directory = tempfile::tempdir().expect("a directory");
    let span = |start, end| SweepPart { runs: start..end };
    let found = |build| KeptParts::found(&study, build, directory.path()).expect("readable");
    assert_eq!(
        found("b").missing(&study, 4),
        [span(0, 4), span(4, 8), span(8, 9)]
    );
    // Of another build, of another study, and what is none.
    made(&study, &[span(0, 9)], directory.path(), "c");
    let other = self::study(&EVERYTHING.replace("50kB", "60kB"));
    made(&other, &[span(0, 9)], directory.path(), "d");
    fs::write(directory.path().join("torn.parquet"), "PAR1").expect("written");
    let half = directory.path().join("torn.parquet.new");
    fs::write(&half, "PAR1").expect("written");
    // Runs 1 and 2, 5 and 6; 2 and 3 have one of them twice.
    let files = made(
        &study,
        &[span(5, 7), span(2, 4), span(1, 3)],
        directory.path(),
        "b",
    );
    let kept = found("b");
    let parts: Vec<_> = kept
        .parts
        .iter()
        .map(|kept| kept.part.runs.clone())
        .collect();
    assert_eq!(parts, [1..3, 5..7]);
    assert_eq!(
        (kept.runs(), &kept.spare),
        (4, &vec![half, files[1].clone()])
    );
    let missing = kept.missing(&study, 1_000);
    assert_eq!(missing, [span(0, 1), span(3, 5), span(7, 9)]);
    assert_eq!(kept.missing(&study, 1).len(), 5);
    let mut all: Vec<PathBuf> = kept.parts.into_iter().map(|kept| kept.file).collect();
    let gaps = tempfile::tempdir().expect("a directory");
    all.extend(made(&study, &missing, gaps.path(), "b"));
    let whole_again = whole(&all, gaps.path()).expect("complete");
    let at_once = made(&study, &SweepPart::all(&study, 9), gaps.path(), "e");
    assert!(whole_again == whole(&at_once, gaps.path()).expect("complete"));
}

#[test]
fn a_merge_that_is_cancelled_leaves_nothing() {
    let study = study(EVERYTHING);
    let directory = tempfile::tempdir().expect("a directory");
    let parts = made(&study, &SweepPart::all(&study, 5), directory.path(), "b");
    let files = ["all.parquet", "all-points.parquet"].map(|name| directory.path().join(name));
    let merged = merge(&parts, &files[0], &files[1], &AtomicBool::new(true));
    assert!(matches!(merged, Err(PartError::Cancelled)), "{merged:?}");
    let left = fs::read_dir(directory.path()).expect("a directory").count();
    assert_eq!(left, parts.len());
}
