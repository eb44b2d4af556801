//! A full disk makes clients wait. Nothing is lost, one notice tells of it, and it is over when there is space.
//!
//! Method: this program starts itself in a mount namespace of its own, where the store lies on a
//! small `tmpfs` that another file fills.

mod mount_namespace;

use fulmar_net::custody::{Store, StoreConfig, StoreNotice, SyncPolicy};
use fulmar_proto::splice::FlowId;
use fulmar_proto::units::ByteCount;

const DISK_BYTES: usize = 4 << 20;

fn pattern(len: usize) -> Vec<u8> {
    (0..=250).cycle().take(len).collect()
}

#[test]
#[ignore = "is the child of the test below, inside its mount namespace"]
fn child() {
    let directory = mount_namespace::words();
    let root = std::path::Path::new(&directory);
    mount_namespace::mount(root, &DISK_BYTES.to_string());
    let config = || StoreConfig {
        directory: root.join("custody"),
        limit: ByteCount(1 << 30),
        sync: SyncPolicy::Every(core::time::Duration::from_millis(50)),
    };
    let (store, _) = Store::open(config(), None).unwrap();
    let mut flow = store.begin(FlowId([1; 16]), 0, b"a flow").unwrap().unwrap();
    let mut short = store.begin(FlowId([3; 16]), 0, b"short").unwrap().unwrap();
    short.append(b"all of it").unwrap();
    let octets = pattern(2 * DISK_BYTES);
    let mut taken = flow.append(&octets).unwrap();
    assert!(taken > DISK_BYTES / 2 && taken < DISK_BYTES, "{taken}");
    // The rest of the last page takes smaller pieces.
    while flow.append(&octets[taken..=taken]).unwrap() == 1 {
        taken += 1;
    }
    let full = store.poll_notice();
    assert!(
        matches!(full, Some(StoreNotice::DiskFull { .. })),
        "{full:?}"
    );
    assert_eq!(store.poll_notice(), None);
    // A name needs no page on tmpfs, but the file's header does.
    assert!(
        store
            .begin(FlowId([2; 16]), 0, b"another")
            .unwrap()
            .is_none()
    );
    // Calls that need no space still work.
    flow.set_record(b"the same flow").unwrap();
    short.finish().unwrap();
    drop((flow, short, store));
    let (store, mut found) = Store::open(config(), None).unwrap();
    assert_eq!((found.flows.len(), found.damaged.len()), (2, 0));
    let mut flow = found.flows.remove(0).store;
    assert_eq!(flow.record(), b"the same flow");
    assert_eq!((flow.end(), flow.finished()), (taken as u64, None));
    let short = found.flows.remove(0).store;
    assert_eq!((short.end(), short.finished()), (9, Some(9)));
    assert_eq!(flow.append(&octets[taken..]).unwrap(), 0, "still full");
    let mut at = 0;
    while at < taken {
        let piece = flow.read(at as u64, 100_000).unwrap();
        assert!(piece == &octets[at..at + piece.len()]);
        at += piece.len();
        flow.release(at as u64);
        if at < octets.len() / 4 {
            continue;
        }
        taken += flow.append(&octets[taken..]).unwrap();
    }
    assert_eq!(taken, octets.len(), "all went through in the end");
    let full = store.poll_notice();
    assert!(
        matches!(full, Some(StoreNotice::DiskFull { .. })),
        "{full:?}"
    );
    flow.append(&pattern(300_000)).unwrap();
    let again = store.poll_notice();
    assert!(
        matches!(again, Some(StoreNotice::RoomAgain { .. })),
        "{again:?}"
    );
    println!("the child is through");
}

#[test]
fn a_full_disk_pushes_back_and_is_over_when_there_is_space() {
    let directory = tempfile::tempdir().unwrap();
    let words = directory.path().display().to_string();
    if let Some(said) = mount_namespace::run("child", &words, directory.path()) {
        assert!(said.contains("the child is through"), "{said}");
    }
}
