//! Long work without the interpreter's lock, which Ctrl-C ends and whose progress is told.

use crate::part::PartFault;
use core::sync::atomic::Ordering;
use core::time::Duration;
use fulmar_sim::ExperimentProgress;
use pyo3::prelude::*;
use std::sync::Arc;
use std::thread;

/// The interval at which Ctrl-C is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Does `work` on another thread; `told` is called with the number of runs that are done. An exception, Ctrl-C's or
/// one of `told` or of a part of one's own, cancels the work and is raised when it has ended. `fault` is of this call alone.
pub(crate) fn wait_for<T: Send>(
    py: Python<'_>,
    told: Option<&Bound<'_, PyAny>>,
    fault: &PartFault,
    work: impl FnOnce(&ExperimentProgress) -> T + Send,
) -> PyResult<T> {
    let progress = ExperimentProgress {
        cancel: Arc::clone(&fault.cancel),
        ..ExperimentProgress::default()
    };
    thread::scope(|scope| {
        let waiter = thread::current();
        let shared = &progress;
        let worker = scope.spawn(move || {
            let done = work(shared);
            waiter.unpark();
            done
        });
        let mut before = 0;
        let mut outcome = Ok(());
        while !worker.is_finished() {
            py.detach(|| thread::park_timeout(LOOK_EVERY));
            let done = progress.done.load(Ordering::Relaxed);
            let looked = py.check_signals().and_then(|()| match told {
                Some(told) if done != before => told.call1((done,)).map(drop),
                _ => Ok(()),
            });
            before = done;
            if looked.is_err() && outcome.is_ok() {
                progress.cancel.store(true, Ordering::Relaxed);
                outcome = looked;
            }
        }
        // A panic of the work goes on here; the binding makes an exception of it.
        let made = py.detach(|| {
            worker
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        let done = progress.done.load(Ordering::Relaxed);
        if let Some(told) = told.filter(|_| outcome.is_ok() && done != before) {
            outcome = told.call1((done,)).map(drop);
        }
        match fault.take() {
            Some(raised) => Err(raised),
            None => outcome.map(|()| made),
        }
    })
}
