//! The store under fault injection: random histories on a disk that fails.
//!
//! A history is some lives of a process with a store of small segments. In each, one call to the disk fails,
//! fails after it was done, is cut short, or is the process's last; a life ends by a kill, by a power cut or in
//! order; sometimes a bit flips meanwhile. After each, the store is opened and compared with a model.
//!
//! - The store opens.
//! - Nothing that was acknowledged is missing after a kill; nothing that was synced after a power cut.
//! - No octet is another than the one that was appended there.
//! - A flow has an end only if it was given one, at the right place.
//! - A flipped bit harms one flow.
//! - Nothing that was acknowledged and not released is deleted or cut off.
//!
//! `FULMAR_HISTORIES=1000000 cargo test --release -p fulmar-net --lib custody::faults` runs more of them.

mod disk;
mod history;

use history::run;

/// In `make test`: some seconds.
const HISTORIES: u64 = 30_000;

/// Cases that once failed, each by another mistake.
const KEPT: &[u64] = &[68_904, 69_960, 288_059, 304_694, 343_508, 390_637, 394_930];

#[test]
fn no_history_of_faults_kills_and_power_cuts_loses_or_alters_what_was_acknowledged() {
    let wanted = std::env::var_os("FULMAR_HISTORIES");
    let wanted = wanted.map(|text| text.to_str().and_then(|text| text.parse().ok()));
    let histories = wanted.map_or(HISTORIES, |count| count.expect("a number of histories"));
    let mut sum = history::Happened::default();
    for seed in KEPT.iter().copied().chain(0..histories) {
        sum += run(seed);
    }
    println!("{histories} histories: {sum:?}");
    // Histories in which nothing happens would prove nothing.
    assert!(sum.faults > histories / 2, "{sum:?}");
    assert!(sum.kills > histories / 2, "{sum:?}");
    assert!(sum.power_cuts > histories / 4, "{sum:?}");
    assert!(sum.flips > histories / 20, "{sum:?}");
    assert!(sum.compared_bytes > histories * 500, "{sum:?}");
}
