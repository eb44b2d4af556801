//! Files whose disk fails, and files that make room.

use super::super::announced_file::AnnouncedFile;
use super::super::assembly::Assembled;
use super::super::report::{REPORT_SUFFIX, check_one_way_name};
use super::super::symbol_log::SymbolLog;
use super::super::test_file::{OCTETS, announcement};
use super::storing::EARLY_BYTES_MAX;
use super::*;
use crate::session::{Entropy, PresetKey};
use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Makes a log of so many units in the directory of the files.
fn log(directory: &Path, announcement: &Announcement, units: usize) -> PathBuf {
    let work = directory.join(WORK_DIRECTORY);
    if !work.exists() {
        drop(StateDirectory::open(&work).expect("it is made"));
    }
    let path = work.join(format!("{}.{LOG_SUFFIX}", announcement.tag()));
    let mut log = SymbolLog::create(&path, announcement).expect("it is made");
    for (unit, octets) in (0..).zip(OCTETS.chunks(2)).take(units) {
        log.append(0, unit, octets).expect("there is room");
    }
    log.checkpoint().expect("there is room");
    path
}

type Told = Rc<RefCell<Vec<String>>>;

fn open(directory: &Path) -> (OneWayReceiver, OneWayReceiving, Told) {
    let told = Told::default();
    let heard = Rc::clone(&told);
    let plan = OneWayReceivePlan {
        directory: directory.to_owned(),
        preset: PresetKey::generate(&mut Entropy::from_seed([1; 32])),
        replace: false,
        once: true,
        checkpoint_every: Duration::from_secs(1),
        give_up: Duration::from_secs(30),
        returns: None,
    };
    let (waker, _) = crate::wait::waker().expect("a waker");
    let tell = move |news| heard.borrow_mut().push(format!("{news:?}"));
    let opened = OneWayReceiving::open(
        Instant::START,
        plan,
        (Stop::default(), waker),
        Box::new(tell),
    );
    let (receiver, receiving) = opened.expect("it opens");
    (receiver, receiving, told)
}

/// Waits for a log that a thread reads, and takes it. Returns whether the receiver was told of units.
fn take_read(receiving: &mut OneWayReceiving, receiver: &mut OneWayReceiver) -> bool {
    match receiving.done.1.recv().expect("a thread reads it") {
        FileWorkResult::Read(tag, number, found) => {
            receiving.log_read(Instant::START, receiver, (tag, number), found)
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_file_whose_last_symbols_could_not_be_kept_is_not_put_together() {
    let place = tempfile::tempdir().expect("a directory");
    let path = log(place.path(), &announcement(), 5);
    let tag = announcement().tag();
    let (mut receiver, mut receiving, _) = open(place.path());
    receiver.forget_unit(tag, 0, 4);
    receiving.deliver(Instant::START, &mut receiver, OneWayEvent::Whole(tag));
    assert!(!receiving.work[&tag].is_assembling);
    assert!(path.exists());
    assert_eq!(receiver.file(tag).map(AnnouncedFile::missing), Some(1));
}

#[test]
fn a_file_whose_log_cannot_be_made_is_tried_again() {
    let place = tempfile::tempdir().expect("a directory");
    let (mut receiver, mut receiving, told) = open(place.path());
    let empty = Announcement {
        size: 0,
        digest: *blake3::hash(b"").as_bytes(),
        ..announcement()
    };
    let tag = empty.tag();
    receiver.restore_file(Instant::START, empty, [].into_iter());
    let path = receiving.log_path(tag);
    fs::create_dir(&path).expect("it is ours");
    receiving.deliver(Instant::START, &mut receiver, OneWayEvent::Whole(tag));
    assert!(told.borrow()[0].contains("Storage"), "{told:?}");
    assert_eq!(
        receiving.work[&tag].again_at,
        Some(Instant::START + RETRY_AFTER)
    );
    fs::remove_dir(&path).expect("it is ours");
    receiving.put_together_again(Instant::START + RETRY_AFTER, &mut receiver);
    assert!(receiving.work[&tag].is_assembling);
}

#[test]
fn a_log_that_became_shorter_keeps_what_it_has() {
    let place = tempfile::tempdir().expect("a directory");
    let path = log(place.path(), &announcement(), 5);
    let tag = announcement().tag();
    let (mut receiver, mut receiving, told) = open(place.path());
    let mut octets = fs::read(&path).expect("it is there");
    *octets.last_mut().expect("it has some") ^= 1;
    fs::write(&path, octets).expect("it is ours");
    receiving.assembled(Instant::START, &mut receiver, tag, Assembled::Short);
    assert!(take_read(&mut receiving, &mut receiver));
    assert_eq!(receiver.file(tag).map(AnnouncedFile::missing), Some(1));
    assert!(
        path.exists() && told.borrow()[1].contains("Damaged"),
        "{told:?}"
    );
    // The one that is missing makes it whole.
    receiver.hold(tag, [(0, 4)].into_iter());
    receiving.keep(&mut receiver, (tag, 0, 4), b"89");
    receiving.whole(Instant::START, &mut receiver, tag);
    let result = receiving.done.1.recv().expect("a thread works on it");
    assert!(matches!(
        result,
        FileWorkResult::Assembled(_, Assembled::Done(_))
    ));
}

#[test]
fn a_file_that_made_room_goes_on_with_its_log_when_it_is_announced_again() {
    let place = tempfile::tempdir().expect("a directory");
    let (mut receiver, mut receiving, told) = open(place.path());
    let path = log(place.path(), &announcement(), 3);
    let tag = announcement().tag();
    receiver.restore_file(Instant::START, announcement(), [].into_iter());
    receiving.deliver(Instant::START, &mut receiver, OneWayEvent::Announced(tag));
    assert!(take_read(&mut receiving, &mut receiver));
    assert_eq!(receiver.file(tag).map(AnnouncedFile::missing), Some(2));
    let event = OneWayEvent::SetAside(Box::new(announcement()));
    receiving.deliver(Instant::START, &mut receiver, event);
    assert!(path.exists() && !receiving.work.contains_key(&tag));
    assert!(told.borrow()[1].contains("SetAside"), "{told:?}");
}

/// The units in a log on the disk.
fn units_in(path: &Path) -> Vec<(u16, u16)> {
    let found = SymbolLog::read(path).expect("it is read");
    let (_, content) = found.expect("it has an announcement");
    content.places().collect()
}

#[test]
fn what_comes_while_a_log_is_read_is_kept_behind_it_and_the_end_is_told_afterwards() {
    let place = tempfile::tempdir().expect("a directory");
    let (mut receiver, mut receiving, told) = open(place.path());
    let path = log(place.path(), &announcement(), 2);
    let tag = announcement().tag();
    receiver.restore_file(Instant::START, announcement(), [].into_iter());
    receiving.deliver(Instant::START, &mut receiver, OneWayEvent::Announced(tag));
    // The thread has read it, and the loop has not taken it yet.
    receiver.hold(tag, [(0, 4)].into_iter());
    receiving.keep(&mut receiver, (tag, 0, 4), b"89");
    receiving.deliver(Instant::START, &mut receiver, OneWayEvent::Ended(tag));
    receiving.look_for_silence(Instant::START + Duration::from_secs(60), &receiver);
    assert_eq!(units_in(&path), [(0, 0), (0, 1)], "it is not written to");
    assert!(!told.borrow().iter().any(|news| news.contains("File {")));
    assert!(take_read(&mut receiving, &mut receiver));
    assert_eq!(receiver.file(tag).map(AnnouncedFile::missing), Some(2));
    let told = told.borrow();
    assert!(told[1].contains("Missing"), "{told:?}");
    assert_eq!(units_in(&path), [(0, 0), (0, 1), (0, 4)]);
}

#[test]
fn a_file_that_is_whole_once_its_log_was_read_is_put_together() {
    let place = tempfile::tempdir().expect("a directory");
    let (mut receiver, mut receiving, _) = open(place.path());
    log(place.path(), &announcement(), 4);
    let tag = announcement().tag();
    receiver.restore_file(Instant::START, announcement(), [].into_iter());
    receiving.deliver(Instant::START, &mut receiver, OneWayEvent::Announced(tag));
    receiver.hold(tag, [(0, 4)].into_iter());
    receiving.keep(&mut receiver, (tag, 0, 4), b"89");
    assert!(take_read(&mut receiving, &mut receiver));
    let result = receiving.done.1.recv().expect("a thread works on it");
    assert!(matches!(
        result,
        FileWorkResult::Assembled(_, Assembled::Done(_))
    ));
}

#[test]
fn a_log_whose_reading_was_given_up_is_not_taken_and_too_much_that_comes_early_may_come_again() {
    let place = tempfile::tempdir().expect("a directory");
    let (mut receiver, mut receiving, _) = open(place.path());
    log(place.path(), &announcement(), 3);
    let tag = announcement().tag();
    receiver.restore_file(Instant::START, announcement(), [].into_iter());
    receiving.deliver(Instant::START, &mut receiver, OneWayEvent::Announced(tag));
    let event = OneWayEvent::SetAside(Box::new(announcement()));
    receiving.deliver(Instant::START, &mut receiver, event);
    receiving.deliver(Instant::START, &mut receiver, OneWayEvent::Announced(tag));
    assert!(!take_read(&mut receiving, &mut receiver), "the first");
    // A symbol cannot be so long; it stands for many.
    receiver.hold(tag, [(0, 3), (0, 4)].into_iter());
    receiving.keep(&mut receiver, (tag, 0, 3), &vec![0; EARLY_BYTES_MAX]);
    receiving.keep(&mut receiver, (tag, 0, 4), b"89");
    assert_eq!(receiver.file(tag).map(AnnouncedFile::missing), Some(4));
    assert!(take_read(&mut receiving, &mut receiver), "the second");
}

#[test]
fn symbols_are_synced_beside_the_loop_and_what_is_remembered_is_there_at_the_end() {
    let place = tempfile::tempdir().expect("a directory");
    let (mut receiver, mut receiving, _) = open(place.path());
    let tag = announcement().tag();
    receiver.restore_file(Instant::START, announcement(), [].into_iter());
    receiver.restore_sender(7, 9);
    receiver.hold(tag, [(0, 0)].into_iter());
    receiving.keep(&mut receiver, (tag, 0, 0), b"01");
    receiving.checkpoint(&mut receiver);
    let results = [(); 2].map(|()| receiving.done.1.recv().expect("a thread works on it"));
    assert!(
        matches!(
            results,
            [
                FileWorkResult::Synced(_, Ok(())),
                FileWorkResult::Remembered(true)
            ]
        ),
        "{results:?}"
    );
    receiver.restore_sender(8, 10);
    receiving.save(Instant::START, &mut receiver);
    drop(receiving);
    let (receiver, _, _) = open(place.path());
    let floors: Vec<_> = receiver.floors().collect();
    assert_eq!(floors, [(7, 9), (8, 10)]);
    assert_eq!(receiver.file(tag).map(AnnouncedFile::missing), Some(4));
}

/// A receiver that was stopped with a file of this name, of which something is missing: its news, and the path of its report.
fn stopped_with(name: &str, is_in_the_way: bool) -> (Vec<String>, bool) {
    let place = tempfile::tempdir().expect("a directory");
    let (mut receiver, mut receiving, told) = open(place.path());
    let named = Announcement {
        name: name.to_owned(),
        ..announcement()
    };
    receiver.restore_file(Instant::START, named, [].into_iter());
    let report = place.path().join(format!("{name}{REPORT_SUFFIX}"));
    if is_in_the_way {
        fs::create_dir(&report).expect("it is ours");
    }
    receiving.leave(Instant::START, &mut receiver);
    let rest = fs::read_dir(place.path().join(WORK_DIRECTORY)).expect("it is there");
    let left = rest.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    assert!(!left.into_iter().any(|name| name.contains("report")));
    let told = told.borrow().clone();
    (told, report.is_file())
}

#[test]
fn a_file_of_the_longest_name_has_its_report() {
    let longest = "n".repeat(255 - REPORT_SUFFIX.len());
    let (told, is_written) = stopped_with(&longest, false);
    assert!(is_written, "{told:?}");
    assert!(check_one_way_name(&longest).is_ok());
    assert!(check_one_way_name(&format!("{longest}n")).is_err());
}

#[test]
fn a_report_that_cannot_be_written_is_told_of() {
    let (told, is_written) = stopped_with("file", true);
    assert!(!is_written);
    assert!(
        told.iter().any(|news| news.starts_with("NoReport")),
        "{told:?}"
    );
}
