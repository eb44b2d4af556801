//! The file of a trace.

use super::EventTrace;
use crate::clock::Clock;
use crate::recording::{EndOfRecording, RecordingConfig, RecordingCounters, RecordingEnd};
use fulmar_capture::EventPlace;
use fulmar_proto::trace::TraceRecord;
use fulmar_proto::units::{ByteCount, Instant};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc;

fn start(file: PathBuf, max_size: u64) -> (EventTrace, mpsc::Receiver<EndOfRecording>) {
    let (told, heard) = mpsc::channel();
    let config = RecordingConfig {
        file,
        max_size: ByteCount(max_size),
        is_required: true,
    };
    let tell = move |ended| told.send(ended).expect("the test listens");
    let trace = EventTrace::start(Clock::start(), config, "gateway", "air", tell);
    (trace.unwrap(), heard)
}

fn stall(trace: &EventTrace) {
    trace.record(Instant::START, EventPlace::default(), TraceRecord::Stalled);
}

fn lines(file: &Path) -> Vec<Value> {
    let text = fs::read_to_string(file).unwrap();
    assert!(text.ends_with('\n'), "the last line is whole");
    let lines = text.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn a_trace_is_whole_and_keeps_the_former_one_beside_it() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("a.jsonl");
    for _ in 0..2 {
        let (trace, heard) = start(file.clone(), u64::MAX);
        stall(&trace);
        trace.end(Instant::START, "stopped");
        drop(trace);
        assert!(heard.recv().is_err(), "it did not end before");
    }
    let former = directory.path().join("a.jsonl.1");
    for file in [file, former] {
        let lines = lines(&file);
        let events: Vec<_> = lines.iter().map(|line| &line["event"]).collect();
        assert_eq!(events, ["started", "stalled", "end"]);
        assert_eq!(lines[2]["how"], "stopped");
    }
}

#[test]
fn nothing_follows_the_last_line() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("a.jsonl");
    let (trace, heard) = start(file.clone(), u64::MAX);
    trace.end(Instant::START, "stopped");
    stall(&trace);
    drop(trace);
    assert!(heard.recv().is_err(), "it did not end before");
    let lines = lines(&file);
    assert_eq!((lines.len(), &lines[1]["event"]), (2, &"end".into()));
}

#[test]
fn what_was_missed_is_told_before_the_next_event() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("a.jsonl");
    let (trace, _heard) = start(file.clone(), u64::MAX);
    trace.note_missed(3);
    stall(&trace);
    stall(&trace);
    assert_eq!(trace.counters().missed, 3);
    drop(trace);
    let lines = lines(&file);
    let events: Vec<_> = lines.iter().map(|line| &line["event"]).collect();
    assert_eq!(events, ["started", "missed", "stalled", "stalled"]);
    assert_eq!(lines[1]["events"], 3);
}

#[test]
fn the_largest_size_is_never_passed_and_the_last_line_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("a.jsonl");
    let (trace, heard) = start(file.clone(), 2_000);
    for _ in 0..1_000 {
        stall(&trace);
    }
    assert_eq!(heard.recv().unwrap().why, RecordingEnd::Size);
    let RecordingCounters { written, missed } = trace.counters();
    drop(trace);
    let len = fs::metadata(&file).unwrap().len();
    assert!((1_800..=2_000).contains(&len), "{len}");
    let lines = lines(&file);
    assert_eq!(lines.len() as u64, written);
    // All but the first and the last are events.
    assert_eq!(written - 2 + missed, 1_000);
    assert_eq!(lines.last().unwrap()["how"], "size");
}

#[test]
fn a_full_device_ends_the_trace_and_says_what_it_was() {
    let (trace, heard) = start("/dev/full".into(), u64::MAX);
    stall(&trace);
    drop(trace);
    let ended = heard.recv().unwrap().to_string();
    assert!(ended.starts_with("the trace /dev/full ends: "), "{ended}");
}
