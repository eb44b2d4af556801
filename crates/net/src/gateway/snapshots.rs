//! Snapshots of a running gateway, each with a number, so that several answers can be about one instant.
//!
//! # Promises
//! - Whatever is told of a snapshot, in whichever form, is read from the same values.
//! - At most [`SNAPSHOTS_MAX`] are kept.

use super::command::Control;
use super::history::{self, History};
use super::status::Status;
use super::tally::{Tally, Window};
use crate::wait::wait;
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// So many can be asked for again.
pub(super) const SNAPSHOTS_MAX: usize = 32;

const SAMPLE_EVERY: Duration = Duration::from_secs(1);

/// How everything was at one instant.
#[derive(Clone, Debug, Default)]
pub(super) struct Snapshot {
    /// Snapshots before this one since the start.
    pub(super) sequence: u64,
    pub(super) status: Status,
    /// What the last seconds brought; `None` in the first of them.
    pub(super) window: Option<Window>,
}

#[derive(Debug, Default)]
struct Kept {
    taken: u64,
    snapshots: VecDeque<Arc<Snapshot>>,
    history: History,
}

/// Takes and keeps them.
#[derive(Debug)]
pub(super) struct Snapshots {
    control: Control,
    kept: Mutex<Kept>,
}

impl Kept {
    fn keep(&mut self, status: Status) -> Arc<Snapshot> {
        let window = self.history.window(&Tally::of(&status));
        let snapshot = Arc::new(Snapshot {
            sequence: self.taken,
            status,
            window,
        });
        self.taken += 1;
        if self.snapshots.len() >= SNAPSHOTS_MAX {
            self.snapshots.pop_front();
        }
        self.snapshots.push_back(Arc::clone(&snapshot));
        snapshot
    }

    fn get(&self, sequence: u64) -> Option<Arc<Snapshot>> {
        let first = self.snapshots.front()?.sequence;
        let place = usize::try_from(sequence.checked_sub(first)?).ok()?;
        self.snapshots.get(place).cloned()
    }
}

impl Snapshots {
    /// Begins to look at the gateway once a second, for as long as it runs.
    ///
    /// # Errors
    /// The system gives no thread.
    pub(super) fn begin(control: Control) -> io::Result<Arc<Self>> {
        let snapshots = Arc::new(Self {
            control,
            kept: Mutex::default(),
        });
        let sampled = Arc::clone(&snapshots);
        let sample = move || {
            while wait(&[], Some(SAMPLE_EVERY), &mut Vec::new()).is_ok() {
                let Some(status) = sampled.control.status() else {
                    // It is busy, or it has ended.
                    continue;
                };
                sampled.kept().history.push(Tally::of(&status));
            }
        };
        thread::Builder::new()
            .name("history".to_owned())
            .spawn(sample)?;
        Ok(snapshots)
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        // What a panic elsewhere left is still a list.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How it is now; `None` if the gateway does not answer.
    pub(super) fn take(&self) -> Option<Arc<Snapshot>> {
        let status = self.control.status()?;
        Some(self.kept().keep(status))
    }

    /// One that was taken before; `None` if it is not kept any more, or was never taken.
    pub(super) fn get(&self, sequence: u64) -> Option<Arc<Snapshot>> {
        self.kept().get(sequence)
    }

    /// The last hour with a peer; `None` if there is no such peer.
    pub(super) fn history(&self, peer: usize) -> Option<history::Report> {
        let status = self.control.status()?;
        let name = &status.peers.get(peer)?.name;
        Some(self.kept().history.report(peer, name))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tally::tests::status;
    use super::*;

    #[test]
    fn the_last_ones_can_be_had_again_by_their_numbers() {
        let mut kept = Kept::default();
        for n in 0..=SNAPSHOTS_MAX {
            kept.keep(status(n as f64, 0));
        }
        assert_eq!(kept.snapshots.len(), SNAPSHOTS_MAX);
        assert!(kept.get(0).is_none(), "the oldest gave way");
        assert!(kept.get(SNAPSHOTS_MAX as u64 + 1).is_none(), "the next");
        assert!(kept.get(u64::MAX).is_none());
        let one = kept.get(1).unwrap();
        assert_eq!((one.sequence, one.status.uptime_seconds), (1, 1.0));
    }

    #[test]
    fn a_snapshot_says_what_the_last_seconds_brought() {
        let mut kept = Kept::default();
        assert_eq!(kept.keep(status(0.0, 0)).window, None);
        kept.history.push(Tally::of(&status(1.0, 0)));
        let window = kept.keep(status(2.0, 10)).window.clone().unwrap();
        assert!((window.delivered_rate - 40_000.0).abs() < 1e-6);
    }
}
