//! A thread that does what would hold up the loop of the socket, one job after the other.

use crate::wait::Waker;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

type Job<R> = Box<dyn FnOnce() -> R + Send>;

/// A thread with a queue of jobs, each of which gives a result.
pub(super) struct DiskWorker<R> {
    jobs: Option<Sender<Job<R>>>,
    thread: Option<JoinHandle<()>>,
}

impl<R: Send + 'static> DiskWorker<R> {
    /// A worker that hands its results to `results`, and wakes whoever waits for them.
    pub(super) fn start(results: Sender<R>, waker: &Waker) -> Self {
        let (jobs, queue) = channel::<Job<R>>();
        let waker = waker.try_clone();
        let thread = std::thread::spawn(move || {
            while let Ok(job) = queue.recv() {
                // Where nobody listens any more, the work was for nothing.
                drop(results.send(job()));
                if let Ok(waker) = &waker {
                    drop(waker.wake());
                }
            }
        });
        Self {
            jobs: Some(jobs),
            thread: Some(thread),
        }
    }

    /// Has `job` done after those before it. After [`DiskWorker::finish`] nothing is done any more.
    pub(super) fn run(&self, job: impl FnOnce() -> R + Send + 'static) {
        if let Some(jobs) = &self.jobs {
            drop(jobs.send(Box::new(job)));
        }
    }

    /// Waits until all is done.
    pub(super) fn finish(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}
