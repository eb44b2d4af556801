//! The syncing of octets to the disk, on a thread of its own.
//!
//! Flows that wrote something queue themselves, each at most once. The thread takes all queued flows, syncs
//! their files, and notes the offset up to which each is safe.

use super::disk::{Disk, DiskFile};
use super::space::Space;
use crate::clock::Clock;
use crate::wait::Waker;
use core::time::Duration;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// The octets that a power cut may take. The death of the process takes none under any policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncPolicy {
    /// Nothing that was taken from a client's socket: octets stay there until the disk has them.
    Always,
    /// Octets taken within this time before the power cut, and those taken while a sync ran.
    Every(Duration),
    /// Octets that the system had not written back by itself, usually those of the last 30 s.
    Never,
}

/// The progress of one flow on the disk. Shared between the flow and the thread.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// The flow's end, as appended.
    appended: AtomicU64,
    /// Everything before is on the disk.
    safe: AtomicU64,
    queued: AtomicBool,
    failed: AtomicBool,
    /// Files written since the last sync.
    dirty: Mutex<Vec<Dirty>>,
    /// Whether a file was deleted before it was synced. If its name came back, it would be half a file.
    lost_names: AtomicBool,
}

/// A file that was written.
#[derive(Debug)]
struct Dirty {
    /// The offset in its name.
    named: u64,
    file: Arc<dyn DiskFile>,
    /// Whether its name is new in its directory.
    is_new: bool,
}

impl Progress {
    pub(super) fn starting_at(offset: u64) -> Arc<Self> {
        Arc::new(Self {
            appended: AtomicU64::new(offset),
            safe: AtomicU64::new(offset),
            ..Self::default()
        })
    }

    pub(super) fn safe(&self) -> u64 {
        self.safe.load(Ordering::Acquire)
    }

    /// Notes that a file was deleted. While it is open it still takes its space, so its name is synced instead of it.
    pub(super) fn deleted(&self, named: u64) {
        let mut dirty = self.dirty.lock().unwrap_or_else(PoisonError::into_inner);
        let before = dirty.len();
        dirty.retain(|dirty| dirty.named != named);
        if dirty.len() < before {
            self.lost_names.store(true, Ordering::Relaxed);
        }
    }

    pub(super) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }
}

/// The queue in front of the thread, which ends with it.
#[derive(Debug)]
pub(super) struct Syncer {
    policy: SyncPolicy,
    queue: Option<Sender<Arc<Progress>>>,
    thread: Option<JoinHandle<()>>,
}

impl Syncer {
    /// Starts the thread if the policy needs one. It wakes `waker` when something became safe that
    /// a flow waits for.
    pub(super) fn start(
        policy: SyncPolicy,
        disk: Arc<dyn Disk>,
        space: Arc<Space>,
        waker: Option<Waker>,
    ) -> io::Result<Self> {
        let (mut syncer, worker) = Self::by_hand(policy, disk, space, waker);
        if let Some(worker) = worker {
            let thread = std::thread::Builder::new().name("custody-sync".to_owned());
            syncer.thread = Some(thread.spawn(move || worker.run())?);
        }
        Ok(syncer)
    }

    /// Makes a syncer without the thread: the caller runs the worker.
    pub(super) fn by_hand(
        policy: SyncPolicy,
        disk: Arc<dyn Disk>,
        space: Arc<Space>,
        waker: Option<Waker>,
    ) -> (Self, Option<Worker>) {
        if policy == SyncPolicy::Never {
            let syncer = Self {
                policy,
                queue: None,
                thread: None,
            };
            return (syncer, None);
        }
        let (queue, queued) = channel();
        let gather = match policy {
            SyncPolicy::Every(span) => span,
            SyncPolicy::Always | SyncPolicy::Never => Duration::ZERO,
        };
        let worker = Worker {
            queued,
            gather,
            disk,
            space,
            waker: waker.filter(|_| policy == SyncPolicy::Always),
        };
        let syncer = Self {
            policy,
            queue: Some(queue),
            thread: None,
        };
        (syncer, Some(worker))
    }

    pub(super) const fn policy(&self) -> SyncPolicy {
        self.policy
    }

    /// Notes that `file` of the flow was written; the flow ends at `appended`.
    pub(super) fn wrote(
        &self,
        flow: &Arc<Progress>,
        appended: u64,
        (named, file): (u64, &Arc<dyn DiskFile>),
        is_new: bool,
    ) {
        let Some(queue) = &self.queue else { return };
        {
            let mut dirty = flow.dirty.lock().unwrap_or_else(PoisonError::into_inner);
            match dirty.iter_mut().find(|known| known.named == named) {
                Some(known) => known.is_new |= is_new,
                None => dirty.push(Dirty {
                    named,
                    file: Arc::clone(file),
                    is_new,
                }),
            }
        }
        flow.appended.store(appended, Ordering::Release);
        if !flow.queued.swap(true, Ordering::AcqRel) && queue.send(Arc::clone(flow)).is_err() {
            flow.failed.store(true, Ordering::Relaxed);
        }
    }
}

impl Drop for Syncer {
    /// Waits until the queued octets are on the disk.
    fn drop(&mut self) {
        self.queue = None;
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was printed there.
            drop(thread.join());
        }
    }
}

/// The syncing side: it syncs the queued flows.
#[derive(Debug)]
pub(super) struct Worker {
    queued: Receiver<Arc<Progress>>,
    gather: Duration,
    disk: Arc<dyn Disk>,
    space: Arc<Space>,
    waker: Option<Waker>,
}

impl Worker {
    fn run(self) {
        let clock = Clock::start();
        while let Ok(first) = self.queued.recv() {
            let mut flows = vec![first];
            let until = clock.now() + self.gather;
            loop {
                let left = until.saturating_since(clock.now());
                match self.queued.recv_timeout(left) {
                    Ok(flow) => flows.push(flow),
                    Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
                }
            }
            self.sync(&flows);
        }
    }

    /// Syncs the flows that are queued now.
    #[cfg(test)]
    pub(super) fn run_once(&self) {
        let flows: Vec<_> = self.queued.try_iter().collect();
        self.sync(&flows);
    }

    fn sync(&self, flows: &[Arc<Progress>]) {
        let mut waiting = Vec::with_capacity(flows.len());
        let mut new_names = false;
        for flow in flows {
            // In this order: a write from here on queues the flow again.
            flow.queued.store(false, Ordering::Release);
            let appended = flow.appended.load(Ordering::Acquire);
            let dirty = {
                let mut dirty = flow.dirty.lock().unwrap_or_else(PoisonError::into_inner);
                new_names |= flow.lost_names.swap(false, Ordering::Relaxed);
                core::mem::take(&mut *dirty)
            };
            let synced = dirty.iter().try_for_each(|Dirty { file, is_new, .. }| {
                new_names |= is_new;
                file.sync()
            });
            waiting.push((flow, appended, synced));
        }
        let names = if new_names {
            self.disk.sync_names()
        } else {
            Ok(())
        };
        if let Err(error) = &names {
            self.space.sync_failed(error);
        }
        for (flow, appended, synced) in waiting {
            if let Err(error) = &synced {
                self.space.sync_failed(error);
            }
            // After a failed sync the kernel may have dropped the octets: nothing is safe again, also
            // if a later sync succeeds.
            if synced.is_err() || names.is_err() {
                flow.failed.store(true, Ordering::Relaxed);
            } else if !flow.has_failed() {
                flow.safe.fetch_max(appended, Ordering::AcqRel);
            }
        }
        if let Some(waker) = &self.waker {
            // A loop that is gone needs no call.
            drop(waker.wake());
        }
    }
}
