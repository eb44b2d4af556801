use super::super::{FlowFault, Recovered};
use super::*;
use core::time::Duration;
use std::fs;
use tempfile::TempDir;

const A: FlowId = FlowId([0xaa; 16]);
const B: FlowId = FlowId([0xbb; 16]);

fn config(directory: &Path) -> StoreConfig {
    StoreConfig {
        directory: directory.to_owned(),
        limit: ByteCount(16 << 20),
        sync: SyncPolicy::Never,
    }
}

fn open(directory: &TempDir) -> (Store, Recovery) {
    Store::open(config(directory.path()), None).unwrap()
}

fn all(flow: &mut FlowStore) -> Vec<u8> {
    let mut octets = Vec::new();
    let mut at = flow.start();
    while at < flow.end() {
        let piece = flow.read(at, usize::MAX).unwrap();
        octets.extend_from_slice(piece);
        at += piece.len() as u64;
    }
    octets
}

fn only_file(directory: &TempDir, flow: FlowId) -> PathBuf {
    directory
        .path()
        .join(super::super::segment::file_name(flow, 0))
}

/// A store that holds two flows, "left" in three records and "right" in one.
fn two_flows() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    let (store, _) = open(&directory);
    let mut left = store.begin(A, 0, b"to the left").unwrap().unwrap();
    for piece in [&b"one"[..], b"two", b"three"] {
        left.append(piece).unwrap();
    }
    let mut right = store.begin(B, 0, b"to the right").unwrap().unwrap();
    right.append(b"whole").unwrap();
    directory
}

#[test]
fn a_finished_flow_takes_no_more_and_is_whole_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let (mut store, _) = open(&directory);
    let mut flow = store.begin(A, 0, b"").unwrap().unwrap();
    flow.append(b"all").unwrap();
    flow.finish().unwrap();
    for _ in 0..2 {
        assert!(matches!(flow.append(b"more"), Err(FlowFault::Finished(3))));
        drop((flow, store));
        let (reopened, mut recovery) = open(&directory);
        assert_eq!(recovery.damaged, []);
        flow = recovery.flows.pop().unwrap().store;
        store = reopened;
        assert_eq!(
            (flow.finished(), all(&mut flow)),
            (Some(3), b"all".to_vec())
        );
    }
}

fn assert_right_is_whole(flows: &mut [Recovered]) {
    let right = flows
        .iter_mut()
        .find(|found| found.store.flow() == B)
        .unwrap();
    assert_eq!(all(&mut right.store), b"whole");
    assert_eq!(right.store.record(), b"to the right");
}

#[test]
fn a_second_process_is_refused_until_the_first_is_gone() {
    let directory = tempfile::tempdir().unwrap();
    let (first, _) = open(&directory);
    let refused = Store::open(config(directory.path()), None).unwrap_err();
    assert!(matches!(refused, StoreError::InUse(_)), "{refused}");
    drop(first);
    open(&directory);
}

#[test]
fn other_formats_and_other_directories_are_refused_by_name() {
    let directory = tempfile::tempdir().unwrap();
    drop(open(&directory));
    let file = directory.path().join("store");
    fs::write(&file, line(9)).unwrap();
    let refused = Store::open(config(directory.path()), None).unwrap_err();
    let text = refused.to_string();
    assert!(
        text.contains("format 9") && text.contains("reads format 2"),
        "{text}"
    );
    let other = tempfile::tempdir().unwrap();
    fs::write(other.path().join("letter.txt"), "dear").unwrap();
    for _ in 0..2 {
        let refused = Store::open(config(other.path()), None).unwrap_err();
        assert!(matches!(refused, StoreError::NotAStore(_)), "{refused}");
        fs::write(other.path().join("store"), "apples, pears, and two melons").unwrap();
    }
    // A segment of another format, with a check that says that it is one.
    let directory = two_flows();
    let mut octets = fs::read(only_file(&directory, A)).unwrap();
    octets[9] = 9;
    let crc = crc32fast::hash(&octets[..508]);
    octets[508..512].copy_from_slice(&crc.to_be_bytes());
    fs::write(only_file(&directory, A), octets).unwrap();
    let refused = Store::open(config(directory.path()), None).unwrap_err();
    assert!(matches!(refused, StoreError::Version { .. }), "{refused}");
}

#[test]
fn a_flipped_bit_in_the_line_of_the_format_is_mended_and_said() {
    for first in [line(FORMAT), LINE_OF_FORMAT_1.to_owned()] {
        for bit in 0..first.len() * 8 {
            let directory = two_flows();
            let file = directory.path().join("store");
            let mut octets = first.clone().into_bytes();
            octets[bit / 8] ^= 1 << (bit % 8);
            fs::write(&file, octets).unwrap();
            let (store, found) = open(&directory);
            assert_eq!((found.flows.len(), found.damaged.len()), (2, 0));
            let said = store.poll_notice();
            assert!(
                matches!(said, Some(StoreNotice::LineMended { .. })),
                "{said:?}"
            );
            assert_eq!(fs::read_to_string(&file).unwrap(), line(FORMAT));
        }
    }
}

#[test]
fn a_flow_may_begin_anywhere_and_knows_what_it_does_not_keep() {
    let directory = tempfile::tempdir().unwrap();
    let (store, _) = open(&directory);
    let mut flow = store.begin(A, 1000, b"").unwrap().unwrap();
    flow.append(b"octets").unwrap();
    assert_eq!((flow.start(), flow.end()), (1000, 1006));
    assert_eq!(flow.read(1002, 3).unwrap(), b"tet");
    assert!(matches!(flow.read(999, 1), Err(FlowFault::NotKept(999))));
    assert!(matches!(flow.read(1007, 1), Err(FlowFault::NotKept(1007))));
    assert!(flow.read(1006, 1).unwrap().is_empty());
    assert!(store.begin(A, 1000, b"").is_err(), "there is one already");
    let too_long = [0; super::super::RECORD_BYTES_MAX + 1];
    assert!(store.begin(B, 0, &too_long).is_err());
}

#[test]
fn a_full_store_takes_nothing_says_so_once_and_goes_on_when_released() {
    let directory = tempfile::tempdir().unwrap();
    let small = StoreConfig {
        limit: ByteCount(1 << 20),
        ..config(directory.path())
    };
    let (store, _) = Store::open(small, None).unwrap();
    let mut flow = store.begin(A, 0, b"").unwrap().unwrap();
    let octets: Vec<u8> = (0..3_u32 << 20)
        .map(|i| i.to_le_bytes()[i as usize % 3])
        .collect();
    let taken = flow.append(&octets).unwrap();
    // All octets but the headers: one for each segment of 64 KiB, one for each record.
    assert!(((1 << 20) - 32 * 1024..1 << 20).contains(&taken), "{taken}");
    assert_eq!(flow.append(&octets[taken..]).unwrap(), 0);
    assert_eq!(flow.room(), 0);
    assert!(store.begin(B, 0, b"").unwrap().is_none());
    assert!(matches!(
        store.poll_notice(),
        Some(StoreNotice::LimitReached { .. })
    ));
    assert_eq!(store.poll_notice(), None);
    let mut taken = taken;
    let mut given = 0;
    while given < octets.len() {
        let piece = flow.read(given as u64, 100_000).unwrap();
        assert!(piece == &octets[given..given + piece.len()]);
        given += piece.len();
        flow.release(given as u64);
        taken += flow.append(&octets[taken..]).unwrap();
    }
    assert_eq!(taken, octets.len());
    let again = store.poll_notice();
    assert!(
        matches!(again, Some(StoreNotice::RoomAgain { .. })),
        "{again:?}"
    );
    assert!(store.used() <= ByteCount((64 << 10) + 1024));
}

#[test]
fn quiet_flows_that_carried_much_hold_one_header() {
    let directory = tempfile::tempdir().unwrap();
    let (store, _) = open(&directory);
    let mut flow = store.begin(A, 0, b"record").unwrap().unwrap();
    flow.append(&vec![1; 300_000]).unwrap();
    flow.release(300_000);
    assert_eq!(store.used(), ByteCount(1024));
    flow.append(b"more").unwrap();
    drop((flow, store));
    let (_store, mut found) = open(&directory);
    let flow = &mut found.flows[0].store;
    assert_eq!(
        (flow.start(), flow.end(), flow.record()),
        (300_000, 300_004, &b"record"[..])
    );
    assert_eq!(all(flow), b"more");
}

#[test]
fn a_file_left_half_emptied_is_an_empty_one() {
    let directory = tempfile::tempdir().unwrap();
    let (store, _) = open(&directory);
    let mut flow = store.begin(A, 0, b"record").unwrap().unwrap();
    flow.append(&vec![1; 30_000]).unwrap();
    flow.append(&vec![2; 20_000]).unwrap();
    let before = fs::read_dir(directory.path()).unwrap().count();
    let path = only_file(&directory, A);
    let full = fs::read(&path).unwrap();
    flow.release(50_000);
    let cut = fs::read(&path).unwrap();
    assert_eq!((before, cut.len()), (2, 1024));
    drop((flow, store));
    // As if killed between the new header and the cut.
    fs::write(&path, [&cut[..], &full[1024..]].concat()).unwrap();
    let (_store, mut found) = open(&directory);
    assert!(found.damaged.is_empty());
    let flow = &mut found.flows[0].store;
    assert_eq!((flow.start(), flow.end()), (50_000, 50_000));
    flow.append(b"on").unwrap();
    assert_eq!(all(flow), b"on");
}

#[test]
fn a_cut_file_keeps_its_whole_records_and_harms_no_other_flow() {
    let whole = fs::read(only_file(&two_flows(), A)).unwrap();
    for len in 0..whole.len() {
        let directory = two_flows();
        fs::write(only_file(&directory, A), &whole[..len]).unwrap();
        let (_store, mut found) = open(&directory);
        assert!(found.damaged.is_empty());
        assert_right_is_whole(&mut found.flows);
        let left = found.flows.iter_mut().find(|found| found.store.flow() == A);
        // 1,024 octets of header, the first half of it in use, then records of 24 and 3, 3, 5.
        let expected: Option<&[u8]> = match len {
            0..512 => None,
            512..1051 => Some(b""),
            1051..1078 => Some(b"one"),
            _ => Some(b"onetwo"),
        };
        assert_eq!(left.as_ref().map(|_| ()), expected.map(|_| ()), "{len}");
        if let (Some(left), Some(expected)) = (left, expected) {
            assert_eq!(all(&mut left.store), expected, "{len}");
            left.store.append(b"more").unwrap();
            assert_eq!(all(&mut left.store), [expected, b"more"].concat(), "{len}");
        }
    }
}

/// The files in `damaged/`.
fn aside(directory: &TempDir) -> Vec<PathBuf> {
    let Ok(files) = fs::read_dir(directory.path().join("damaged")) else {
        return Vec::new();
    };
    let mut files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
fn a_flipped_bit_ends_its_flow_with_a_report_deletes_nothing_and_harms_no_other() {
    let whole = fs::read(only_file(&two_flows(), A)).unwrap();
    assert_eq!(whole.len(), 1024 + 3 * 24 + 11);
    // Every bit of every field; of the zeros between them some.
    let is_field = |octet: usize| octet % 512 < 72 || octet % 512 >= 508 || octet >= 1024;
    let bits = (0..whole.len() * 8).filter(|bit| is_field(bit / 8) || bit % 31 == 0);
    for bit in bits {
        let directory = two_flows();
        let mut octets = whole.clone();
        octets[bit / 8] ^= 1 << (bit % 8);
        fs::write(only_file(&directory, A), &octets).unwrap();
        let (store, mut found) = open(&directory);
        assert_right_is_whole(&mut found.flows);
        let left = found.flows.iter().position(|found| found.store.flow() == A);
        let left = left.map(|at| found.flows.remove(at));
        // In order: the slot in use, the one that is not, and what is before the record that was hit.
        let good: Option<&[u8]> = match bit / 8 {
            0..512 | 1024..1051 => None,
            512..1024 => Some(b"onetwothree"),
            1051..1078 => Some(b"one"),
            _ => Some(b"onetwo"),
        };
        let Some(good) = good else {
            assert!(left.is_none(), "bit {bit}");
            assert_eq!(found.damaged.len(), 1, "bit {bit}");
            let damaged = &found.damaged[0];
            assert_eq!(damaged.flow, A);
            let is_known = damaged.record.as_deref() == Some(&b"to the left"[..]);
            assert_eq!(is_known, bit >= 512 * 8, "bit {bit}");
            assert!(damaged.why.contains(".segment"), "{damaged}");
            assert_eq!(fs::read(&aside(&directory)[0]).unwrap(), octets);
            assert_eq!(store.set_aside(), (1, ByteCount(octets.len() as u64)));
            continue;
        };
        let mut left = left.unwrap();
        assert_eq!(all(&mut left.store), good, "bit {bit}");
        let is_hit = good.len() < 11;
        assert_eq!(left.damage.is_some(), is_hit, "bit {bit}");
        assert_eq!(left.store.record(), b"to the left");
        // It goes on behind the damage, and the file that has it is kept, with all that is in it.
        left.store.append(b"!").unwrap();
        assert_eq!(all(&mut left.store), [good, b"!"].concat(), "bit {bit}");
        drop((left, store, found));
        let (_store, mut found) = open(&directory);
        assert_right_is_whole(&mut found.flows);
        let mut left = found.flows.remove(0);
        assert_eq!(left.damage, None, "nothing is missing any more");
        assert_eq!(all(&mut left.store), [good, b"!"].concat(), "bit {bit}");
        left.store.release(good.len() as u64);
        left.store.forget().unwrap();
    }
}

#[test]
fn the_octets_before_damage_are_good_and_the_file_that_has_it_is_kept_when_they_are_released() {
    let directory = two_flows();
    let path = only_file(&directory, A);
    let mut octets = fs::read(&path).unwrap();
    *octets.last_mut().unwrap() ^= 1;
    fs::write(&path, &octets).unwrap();
    let (store, mut found) = open(&directory);
    let mut left = found.flows.remove(0).store;
    left.append(b"more").unwrap();
    assert_eq!(aside(&directory), Vec::<PathBuf>::new());
    left.release(7);
    assert_eq!(fs::read(&aside(&directory)[0]).unwrap(), octets);
    assert_eq!(store.set_aside().0, 1);
    let said = store.poll_notice();
    assert!(
        matches!(said, Some(StoreNotice::SetAside { .. })),
        "{said:?}"
    );
    // They are found again at the next start.
    drop((left, found, store));
    assert_eq!(open(&directory).0.set_aside().0, 1);
}

#[test]
fn damaged_files_are_bounded_and_the_oldest_give_way_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let small = || StoreConfig {
        limit: ByteCount(5_000),
        ..config(directory.path())
    };
    for n in 0..9 {
        drop(Store::open(small(), None).unwrap());
        let name = super::super::segment::file_name(FlowId([n; 16]), 0);
        fs::write(directory.path().join(name), [n + 1; 1_500]).unwrap();
        let (store, found) = Store::open(small(), None).unwrap();
        assert_eq!(found.damaged.len(), 1);
        let held = store.set_aside();
        let most = usize::from(n + 1).min(3);
        assert_eq!(held, (most, ByteCount(1_500 * most as u64)));
        let said: Vec<_> = core::iter::from_fn(|| store.poll_notice()).collect();
        let gone = |notice: &StoreNotice| matches!(notice, StoreNotice::GaveWay { .. });
        assert_eq!(said.iter().any(gone), n >= 3, "{said:?}");
    }
    let kept = aside(&directory);
    assert_eq!(fs::read(&kept[2]).unwrap(), [9; 1_500], "the latest");
}

#[test]
fn a_missing_segment_and_a_missing_tail_of_a_finished_flow_are_reported() {
    for (name, missing) in [(1, "the next begins at"), (2, "of 200000")] {
        let directory = tempfile::tempdir().unwrap();
        let (store, _) = open(&directory);
        let mut flow = store.begin(A, 0, b"").unwrap().unwrap();
        for _ in 0..20 {
            flow.append(&[7; 10_000]).unwrap();
        }
        flow.finish().unwrap();
        drop((flow, store));
        let mut files: Vec<_> = fs::read_dir(directory.path()).unwrap().flatten().collect();
        files.retain(|file| file.file_name() != "store");
        files.sort_by_key(fs::DirEntry::file_name);
        let last = files.len() - 1;
        if name == 1 {
            fs::remove_file(files[1].path()).unwrap();
        } else {
            let octets = fs::read(files[last].path()).unwrap();
            fs::write(files[last].path(), &octets[..1100]).unwrap();
        }
        let (_store, found) = open(&directory);
        assert_eq!((found.flows.len(), found.damaged.len()), (1, 0));
        let damage = found.flows[0].damage.as_ref().unwrap().to_string();
        assert!(damage.contains(missing), "{damage}");
        let flow = &found.flows[0].store;
        assert_eq!(flow.finished(), None, "no clean end");
        assert!(flow.end() > 0 && flow.end() < 200_000);
        // The segment after the gap is kept.
        assert_eq!(
            aside(&directory).len(),
            if name == 1 { last - 1 } else { 0 }
        );
    }
}

/// A segment as format 1 has it.
fn of_format_1(flow: FlowId, octets: &[u8]) -> Vec<u8> {
    let mut header = vec![0; 512];
    header[..8].copy_from_slice(b"FulmarCu");
    header[9] = 1;
    header[15] = 3;
    header[16..32].copy_from_slice(&flow.0);
    header[40..48].copy_from_slice(&[0xff; 8]);
    header[48..51].copy_from_slice(b"old");
    let crc = crc32fast::hash(&header[..508]);
    header[508..].copy_from_slice(&crc.to_be_bytes());
    if octets.is_empty() {
        return header;
    }
    let mut record = vec![0; 16];
    record[0] = 1;
    record[7] = u8::try_from(octets.len()).unwrap();
    let crc = crc32fast::hash(&[&record, octets].concat());
    record.extend_from_slice(&crc.to_be_bytes());
    [&header, &record, octets].concat()
}

#[test]
fn flows_of_format_1_go_on() {
    let directory = tempfile::tempdir().unwrap();
    drop(open(&directory));
    fs::write(directory.path().join("store"), LINE_OF_FORMAT_1).unwrap();
    fs::write(only_file(&directory, A), of_format_1(A, b"octets")).unwrap();
    fs::write(only_file(&directory, B), of_format_1(B, b"")).unwrap();
    for file in [A, B] {
        let mut mode = fs::metadata(only_file(&directory, file))
            .unwrap()
            .permissions();
        std::os::unix::fs::PermissionsExt::set_mode(&mut mode, 0o600);
        fs::set_permissions(only_file(&directory, file), mode).unwrap();
    }
    let mut wanted = [b"octets".to_vec(), Vec::new()];
    for _ in 0..3 {
        let (_store, mut found) = open(&directory);
        assert_eq!((found.flows.len(), found.damaged.len()), (2, 0));
        for (found, wanted) in found.flows.iter_mut().zip(&mut wanted) {
            assert_eq!(found.damage, None);
            assert_eq!(found.store.record(), b"old");
            assert_eq!(all(&mut found.store), *wanted);
            found.store.set_record(b"old").unwrap();
            found.store.append(b" and more").unwrap();
            wanted.extend_from_slice(b" and more");
            assert_eq!(all(&mut found.store), *wanted);
        }
    }
}

#[test]
fn a_directory_that_others_may_write_into_is_refused_with_the_remedy() {
    use std::os::unix::fs::PermissionsExt;
    let directory = two_flows();
    for (mode, is_good) in [
        (0o1777, false),
        (0o702, false),
        (0o750, true),
        (0o700, true),
    ] {
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(mode)).unwrap();
        let opened = Store::open(config(directory.path()), None);
        assert_eq!(opened.is_ok(), is_good, "{mode:o}");
        if let Err(refused) = opened {
            assert!(matches!(refused, StoreError::Untrusted { .. }), "{refused}");
            assert!(refused.to_string().contains("chmod 700"), "{refused}");
        }
    }
}

#[test]
fn pipes_links_and_others_files_of_a_segments_name_hold_nobody_up_and_are_not_taken() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    use std::os::unix::fs::{PermissionsExt, chown, symlink};
    let whole = fs::read(only_file(&two_flows(), A)).unwrap();
    let plant = |what: &str, path: &Path| match what {
        "a pipe" => mknodat(CWD, path, FileType::Fifo, Mode::RWXU, 0).unwrap(),
        "a directory" => fs::create_dir(path).unwrap(),
        "a link" => {
            let elsewhere = path.with_extension("elsewhere");
            fs::write(&elsewhere, &whole).unwrap();
            symlink(elsewhere, path).unwrap();
        }
        _ => {
            fs::write(path, &whole).unwrap();
            fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
            chown(path, Some(12_345), None).unwrap();
        }
    };
    // Only root can give files away.
    let is_root = rustix::process::geteuid().is_root();
    let others = is_root.then_some("another's");
    for what in ["a pipe", "a directory", "a link"]
        .into_iter()
        .chain(others)
    {
        let directory = two_flows();
        let path = only_file(&directory, A);
        fs::remove_file(&path).unwrap();
        plant(what, &path);
        let (store, mut found) = open(&directory);
        assert_right_is_whole(&mut found.flows);
        assert_eq!((found.flows.len(), found.damaged.len()), (1, 1), "{what}");
        assert!(
            found.damaged[0].why.contains("cannot be used"),
            "{}",
            found.damaged[0]
        );
        assert!(fs::symlink_metadata(&path).is_err(), "{what} is set aside");
        drop((store, found));
        assert_eq!(open(&directory).1.damaged, [], "{what}");
        // The file that carries the lock is like any other, and without it there is no store.
        let lock = directory.path().join("store");
        fs::remove_file(&lock).unwrap();
        plant(what, &lock);
        let refused = Store::open(config(directory.path()), None).unwrap_err();
        assert!(
            matches!(refused, StoreError::Untrusted { .. }),
            "{what}: {refused}"
        );
    }
}

#[test]
fn files_of_ours_that_others_may_write_keep_the_store_closed_and_where_they_are() {
    use std::os::unix::fs::PermissionsExt;
    let set = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    for mode in [0o620, 0o660, 0o664, 0o602, 0o666] {
        let directory = two_flows();
        // Damage beside it, which would be set aside.
        let damaged = only_file(&directory, A);
        let mut octets = fs::read(&damaged).unwrap();
        octets[20] ^= 1;
        fs::write(&damaged, octets).unwrap();
        let path = only_file(&directory, B);
        set(&path, mode);
        let refused = Store::open(config(directory.path()), None).unwrap_err();
        assert!(matches!(refused, StoreError::Untrusted { .. }), "{refused}");
        let text = refused.to_string();
        for said in [&*path.to_string_lossy(), &format!("{mode:o}"), "chmod 600"] {
            assert!(text.contains(said), "{text}");
        }
        assert!(path.exists() && damaged.exists() && aside(&directory).is_empty());
        set(&path, 0o600);
        let (_store, mut found) = open(&directory);
        assert_right_is_whole(&mut found.flows);
    }
}

#[test]
fn damage_while_it_runs_is_an_error_and_no_wrong_octet() {
    let directory = tempfile::tempdir().unwrap();
    let (store, _) = open(&directory);
    let mut flow = store.begin(A, 0, b"").unwrap().unwrap();
    flow.append(b"one").unwrap();
    flow.append(b"two").unwrap();
    let path = only_file(&directory, A);
    let mut octets = fs::read(&path).unwrap();
    *octets.last_mut().unwrap() ^= 1;
    fs::write(&path, octets).unwrap();
    assert!(matches!(
        flow.read(3, 9),
        Err(FlowFault::Damaged { offset: 3 })
    ));
    // A file that lost its end while it was open.
    fs::write(&path, []).unwrap();
    assert!(matches!(flow.read(0, 9), Err(FlowFault::Damaged { .. })));
}

#[test]
fn with_sync_always_octets_are_safe_only_after_the_disk_has_them_and_the_loop_is_called() {
    let directory = tempfile::tempdir().unwrap();
    let (waker, wake_up) = crate::wait::waker().unwrap();
    let always = StoreConfig {
        sync: SyncPolicy::Always,
        ..config(directory.path())
    };
    let (store, _) = Store::open(always, Some(waker)).unwrap();
    let mut flow = store.begin(A, 5, b"").unwrap().unwrap();
    assert_eq!(flow.safe_end(), 5);
    flow.append(b"octets").unwrap();
    let mut ready = Vec::new();
    let source = std::os::fd::AsFd::as_fd(&wake_up);
    while flow.safe_end() < 11 {
        let limit = Some(Duration::from_secs(60));
        crate::wait::wait(
            &[(source, crate::wait::Interest::Readable)],
            limit,
            &mut ready,
        )
        .unwrap();
        assert!(ready[0].readable, "the loop was not called");
        wake_up.clear();
    }
}
