mod damage;
mod formats;
mod rights;

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

/// Opens the store. A child that another test has just forked holds a copy of the lock until its program begins.
#[expect(
    clippy::disallowed_methods,
    reason = "nobody tells when a forked child begins its program"
)]
fn open(directory: &TempDir) -> (Store, Recovery) {
    for _ in 0..500 {
        match Store::open(config(directory.path()), None) {
            Err(StoreError::InUse(_)) => std::thread::sleep(Duration::from_millis(10)),
            opened => return opened.unwrap(),
        }
    }
    panic!("{} stays in use", directory.path().display());
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
