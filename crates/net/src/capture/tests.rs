//! The file of a recording, at the example of a capture.

use super::{Capture, Seen};
use crate::clock::Clock;
use crate::recording::{EndOfRecording, RecordingConfig, RecordingCounters, RecordingEnd};
use fulmar_capture::{
    Comment, Dissector, InterfaceId, PacketDirection, packet_count, whole_octets,
};
use fulmar_proto::units::{ByteCount, Instant};
use std::fs::{self, OpenOptions, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::mpsc;

const PACKET: [u8; 1_000] = [7; 1_000];

fn start(file: PathBuf, max_size: u64) -> (Capture, InterfaceId, mpsc::Receiver<EndOfRecording>) {
    let (told, heard) = mpsc::channel();
    let max_size = ByteCount(max_size);
    let config = RecordingConfig {
        file,
        max_size,
        is_required: true,
    };
    let tell = move |ended| told.send(ended).expect("the test listens");
    let (capture, [interface]) =
        Capture::start(Clock::start(), config, "a test", [("a", "b")], tell).unwrap();
    (capture, interface, heard)
}

fn packet(capture: &Capture, interface: InterfaceId) {
    capture.recorder().packet(&Seen {
        interface,
        at: Instant::START,
        direction: PacketDirection::Inbound,
        dissector: Dissector::Ip,
        ends: None,
        octets: &PACKET,
        comment: &Comment::NONE,
    });
}

#[test]
fn a_capture_is_private_and_whole_and_keeps_the_former_one_beside_it() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("a.pcapng");
    fs::write(&file, vec![0xEE; 1 << 20]).unwrap();
    fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
    let (capture, interface, heard) = start(file.clone(), u64::MAX);
    for _ in 0..500 {
        packet(&capture, interface);
    }
    let recorder = capture.recorder().clone();
    drop(capture);
    assert_eq!(recorder.counters().written, 500);
    assert!(heard.recv().is_err(), "it did not end before");
    let mode = fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let octets = fs::read(&file).unwrap();
    assert_eq!(whole_octets(&octets, octets.len()), octets.len());
    assert_eq!(packet_count(&octets), 500);
    let former = fs::read(directory.path().join("a.pcapng.1")).unwrap();
    assert_eq!(former, vec![0xEE; 1 << 20]);
}

#[test]
fn a_pipe_without_a_reader_is_an_error_and_one_that_is_not_read_holds_nothing_up() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("pipe");
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    let kind = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, &file, kind, mode, 0).unwrap();
    let config = RecordingConfig {
        file: file.clone(),
        max_size: ByteCount(1),
        is_required: true,
    };
    let started = Capture::start(Clock::start(), config, "", [("a", "b")], |_| {});
    assert!(started.is_err());
    let reader = OpenOptions::new()
        .read(true)
        .write(true)
        .open(&file)
        .unwrap();
    let (capture, interface, _heard) = start(file, u64::MAX);
    // A pipe holds 64 KiB.
    for _ in 0..200 {
        packet(&capture, interface);
    }
    drop(capture);
    drop(reader);
}

#[test]
fn the_largest_size_is_never_passed_and_ends_the_capture_with_one_word() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("a.pcapng");
    let (capture, interface, heard) = start(file.clone(), 20_000);
    for _ in 0..100 {
        packet(&capture, interface);
    }
    let ended = heard.recv().unwrap();
    assert_eq!(ended.why, RecordingEnd::Size);
    let counters = capture.recorder().counters();
    assert_eq!(counters.written + counters.missed, 100);
    drop(capture);
    assert!(heard.recv().is_err(), "it is said once");
    let octets = fs::read(&file).unwrap();
    assert!(octets.len() <= 20_000);
    assert!(octets.len() > 20_000 - 2 * PACKET.len(), "it is used");
    assert_eq!(packet_count(&octets), counters.written);
}

#[test]
fn a_full_device_ends_the_capture_and_nothing_in_it_is_counted() {
    let (capture, interface, heard) = start("/dev/full".into(), u64::MAX);
    // More octets than wait for a second look, so that they are written at once.
    for _ in 0..100 {
        packet(&capture, interface);
    }
    assert!(matches!(heard.recv().unwrap().why, RecordingEnd::Disk(_)));
    packet(&capture, interface);
    let all_missed = RecordingCounters {
        written: 0,
        missed: 101,
    };
    assert_eq!(capture.recorder().counters(), all_missed);
}

#[test]
fn a_file_that_cannot_be_made_is_an_error_that_names_it() {
    let config = RecordingConfig {
        file: "/nowhere/a.pcapng".into(),
        max_size: ByteCount(1),
        is_required: true,
    };
    let started = Capture::start(Clock::start(), config, "", [("a", "b")], |_| {});
    let error = started.unwrap_err().to_string();
    assert_eq!(error, "cannot write the capture /nowhere/a.pcapng");
}
