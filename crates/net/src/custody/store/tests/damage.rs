//! Damage ends the flow it hit, and is kept.

use super::*;

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
pub(super) fn aside(directory: &TempDir) -> Vec<PathBuf> {
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
        let name = super::super::super::segment::file_name(FlowId([n; 16]), 0);
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
