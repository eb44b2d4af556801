//! The store under fault injection: random histories on a disk that fails.
//!
//! A history is some lives of a process with a store of small segments. In every third history, the segments are so
//! small that a flow has many and one release deletes several. In each life, one call to the disk fails, fails after
//! it was done, is cut short, or is the process's last. A life ends by a kill, by a power cut or in order. Sometimes a
//! bit flips meanwhile. After each life, the store is opened and compared with a model.
//!
//! - The store opens.
//! - Nothing that was acknowledged is missing after a kill; nothing that was synced after a power cut.
//! - Every octet is the one that was appended there.
//! - A flow has an end only if it was given one, at the right place.
//! - A flipped bit harms one flow.
//! - Nothing that was acknowledged and not released is deleted or cut off.
//!
//! `FULMAR_HISTORIES=1000000 cargo test --release -p fulmar-net --lib custody::faults` runs more of them,
//! `FULMAR_FIRST_HISTORY` others.

mod disk;
mod history;

use super::aside::Aside;
use super::flow::Shared;
use super::room_look::RoomLook;
use super::space::Space;
use super::sync::Syncer;
use super::{Store, SyncPolicy};
use fulmar_proto::rng::Rng;
use fulmar_proto::units::ByteCount;
use history::{Segments, run};
use std::sync::Arc;

/// An empty store of at most `limit` octets on a simulated disk of `capacity`.
pub(crate) fn store(limit: ByteCount, capacity: usize) -> Store {
    store_and_capacity(limit, capacity).0
}

/// The same, and a way to change the capacity of the disk.
pub(crate) fn store_and_capacity(limit: ByteCount, capacity: usize) -> (Store, impl Fn(usize)) {
    let simulated = disk::SimulatedDisk::new(Rng::from_seed(1));
    simulated.set_capacity(capacity);
    let disk = simulated.clone();
    let disk: Arc<dyn super::disk::Disk> = Arc::new(disk);
    let space = Arc::new(Space::new("/simulated".into(), limit));
    let (never, no_waker) = (SyncPolicy::Never, None);
    let (syncer, _) = Syncer::by_hand(never, Arc::clone(&disk), Arc::clone(&space), no_waker);
    let shared = Shared {
        directory: "/simulated".into(),
        aside: Aside::found(&*disk, limit),
        room_look: RoomLook::new(Arc::clone(&disk), Arc::clone(&space), None),
        disk,
        space,
        syncer,
        segment_bytes: 64 << 10,
        reuse_bytes: 16 << 10,
    };
    let (store, _) = Store::on(shared).expect("nothing is there");
    (store, move |octets| simulated.set_capacity(octets))
}

/// In `make test`: some seconds.
const HISTORIES: u64 = 27_000;

/// Cases that once failed, each by another mistake.
const KEPT: &[(u64, Segments)] = &[
    (68_904, Segments::Large),
    (69_960, Segments::Large),
    (288_059, Segments::Large),
    (304_694, Segments::Large),
    (343_508, Segments::Large),
    (390_637, Segments::Large),
    (394_930, Segments::Large),
    (39_415, Segments::Small),
    (306_558, Segments::Small),
    (624_198, Segments::Small),
];

/// The number in a variable of the environment.
fn number(variable: &str) -> Option<u64> {
    let text = std::env::var_os(variable)?;
    let number = text.to_str().and_then(|text| text.parse().ok());
    Some(number.unwrap_or_else(|| panic!("{variable}: a number is needed")))
}

#[test]
fn no_history_of_faults_kills_and_power_cuts_loses_or_alters_what_was_acknowledged() {
    let histories = number("FULMAR_HISTORIES").unwrap_or(HISTORIES);
    let first = number("FULMAR_FIRST_HISTORY").unwrap_or(0);
    let mut sum = history::Happened::default();
    for (seed, segments) in KEPT {
        sum += run(*seed, *segments);
    }
    for seed in first..first + histories {
        sum += run(seed, Segments::of(seed));
    }
    println!("{histories} histories: {sum:?}");
    // Histories in which nothing happens would prove nothing.
    assert!(sum.faults > histories / 2, "{sum:?}");
    assert!(sum.kills > histories / 2, "{sum:?}");
    assert!(sum.power_cuts > histories / 4, "{sum:?}");
    assert!(sum.flips > histories / 20, "{sum:?}");
    assert!(sum.compared_bytes > histories * 500, "{sum:?}");
    assert!(sum.among_deletions > histories / 1_000, "{sum:?}");
}
