//! Snapshots of a running gateway, each with a number, so that several answers can be about one instant.
//!
//! # Promises
//! - All forms in which a snapshot is told are read from the same values.
//! - At most [`SNAPSHOTS_MAX`] are kept.
//! - However many ask, the gateway's loop is asked once in [`ASK_EVERY`] at most, and each is told of an
//!   instant after its question.

use super::history::{self, History};
use super::status::Status;
use super::tally::{Tally, Window};
use super::verdict::judge;
use crate::clock::Clock;
use crate::wait::wait;
use fulmar_proto::units::Instant;
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// The most snapshots that can be asked for again.
pub(in crate::gateway) const SNAPSHOTS_MAX: usize = 32;

const SAMPLE_EVERY: Duration = Duration::from_secs(1);

/// The shortest time between two questions; those that come faster share an answer.
const ASK_EVERY: Duration = Duration::from_millis(50);

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::gateway) enum Silence {
    /// The loop is busy, or stuck.
    Busy,
    /// The gateway has ended.
    Ended,
}

/// Whoever can be asked for the gateway's status.
pub(in crate::gateway) trait Source: core::fmt::Debug + Send + Sync {
    /// The status, or the reason why there is no answer.
    fn ask(&self) -> Result<Status, Silence>;

    /// The same for the history alone: what it has no use for may be old.
    fn sample(&self) -> Result<Status, Silence> {
        self.ask()
    }
}

/// The state of everything at one instant.
#[derive(Clone, Debug, Default)]
pub(in crate::gateway) struct Snapshot {
    /// Snapshots before this one since the start.
    pub(in crate::gateway) sequence: u64,
    pub(in crate::gateway) status: Status,
    /// The rates and shares of the last seconds; `None` in the first of them.
    pub(in crate::gateway) window: Option<Window>,
}

#[derive(Debug, Default)]
struct Kept {
    taken: u64,
    snapshots: VecDeque<Arc<Snapshot>>,
    history: History,
}

/// The last question to the loop.
#[derive(Debug)]
struct Asked {
    begun: Instant,
    ended: Instant,
    snapshot: Option<Arc<Snapshot>>,
}

impl Asked {
    /// Whether it serves a question that came at `came`: it is as young as a new question to the loop would be, or the
    /// loop was found silent meanwhile.
    fn serves(&self, came: Instant) -> bool {
        self.begun >= came || (self.snapshot.is_none() && self.ended >= came)
    }
}

/// The snapshots of one gateway: taken, and kept for a while.
#[derive(Debug)]
pub(in crate::gateway) struct Snapshots {
    source: Box<dyn Source>,
    clock: Clock,
    asked: Mutex<Option<Asked>>,
    kept: Mutex<Kept>,
}

impl Kept {
    fn keep(&mut self, mut status: Status) -> Arc<Snapshot> {
        let window = self.history.window(&Tally::of(&status));
        judge(&mut status, window.as_ref());
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
    pub(in crate::gateway) fn new(source: Box<dyn Source>) -> Self {
        Self {
            source,
            clock: Clock::start(),
            asked: Mutex::default(),
            kept: Mutex::default(),
        }
    }

    /// Starts to take a sample of the gateway once a second, for as long as it runs.
    ///
    /// # Errors
    /// The system gives no thread.
    pub(in crate::gateway) fn begin(source: Box<dyn Source>) -> io::Result<Arc<Self>> {
        Self::begin_every(source, SAMPLE_EVERY)
    }

    fn begin_every(source: Box<dyn Source>, pause: Duration) -> io::Result<Arc<Self>> {
        let snapshots = Arc::new(Self::new(source));
        let sampled = Arc::clone(&snapshots);
        let sample = move || {
            // The first one at once: rates can be told as soon as there is something before.
            loop {
                match sampled.source.sample() {
                    Ok(status) => sampled.kept().history.push(Tally::of(&status)),
                    Err(Silence::Busy) => {}
                    Err(Silence::Ended) => break,
                }
                if wait(&[], Some(pause), &mut Vec::new()).is_err() {
                    break;
                }
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

    /// The present snapshot; `None` if the gateway does not answer.
    pub(in crate::gateway) fn take(&self) -> Option<Arc<Snapshot>> {
        let came = self.clock.now();
        // What a panic elsewhere left is still the last question.
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = asked.as_ref() {
            if last.serves(came) {
                return last.snapshot.clone();
            }
            let rest = ASK_EVERY.saturating_sub(self.clock.now().saturating_since(last.begun));
            drop(wait(&[], Some(rest), &mut Vec::new()));
        }
        let begun = self.clock.now();
        let status = self.source.ask().ok();
        let snapshot = status.map(|status| self.kept().keep(status));
        *asked = Some(Asked {
            begun,
            ended: self.clock.now(),
            snapshot: snapshot.clone(),
        });
        snapshot
    }

    /// A snapshot that was taken before; `None` if it is not kept any more, or was never taken.
    pub(in crate::gateway) fn get(&self, sequence: u64) -> Option<Arc<Snapshot>> {
        self.kept().get(sequence)
    }

    /// The last hour of the peer in place `peer` of `now`; `None` if there is no such peer.
    pub(in crate::gateway) fn history(
        &self,
        now: &Snapshot,
        peer: usize,
    ) -> Option<history::Report> {
        let name = &now.status.peers.get(peer)?.name;
        Some(self.kept().history.report(peer, name))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tally::tests::status;
    use super::*;

    #[test]
    fn an_answer_serves_who_came_before_its_question_and_a_failure_who_waited() {
        let at = |seconds| Instant::START + Duration::from_secs(seconds);
        let mut asked = Asked {
            begun: at(10),
            ended: at(15),
            snapshot: Some(Arc::default()),
        };
        assert!(asked.serves(at(9)));
        assert!(!asked.serves(at(12)), "it is older than the question");
        asked.snapshot = None;
        assert!(asked.serves(at(12)), "nobody waits for a silent loop twice");
        assert!(!asked.serves(at(16)));
    }

    /// A gateway whose clock goes on by a second with every question.
    #[derive(Debug, Default)]
    struct Ageing(Mutex<f64>);

    impl Source for Ageing {
        fn ask(&self) -> Result<Status, Silence> {
            let mut age = self.0.lock().expect("nothing panics with it");
            *age += 1.0;
            Ok(status(*age, 0))
        }
    }

    #[test]
    fn rates_can_be_told_before_the_pause_between_two_samples_is_over() {
        let hour = Duration::from_secs(3_600);
        let snapshots = Snapshots::begin_every(Box::<Ageing>::default(), hour).expect("a thread");
        let has_window = || snapshots.take().expect("it answers").window.is_some();
        // Each look takes 50 ms.
        assert!(
            (0..200).any(|_| has_window()),
            "it waits for the second sample"
        );
    }

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
