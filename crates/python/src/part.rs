//! A part of one's own in one run, and the exceptions of its methods.

use core::fmt;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use fulmar_sim::own::{Instant, Rng};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::sync::{Arc, Mutex, PoisonError};

/// The arguments that make an object once more, by position and by name.
pub(crate) type NewArguments<'py> = (Bound<'py, PyTuple>, Bound<'py, PyDict>);

/// The first exception of parts in one call, and the request to stop that it makes.
#[derive(Clone, Default)]
pub(crate) struct PartFault {
    pub(crate) cancel: Arc<AtomicBool>,
    raised: Arc<Mutex<Option<PyErr>>>,
}

impl PartFault {
    fn note(&self, error: PyErr) {
        let mut raised = self.raised.lock().unwrap_or_else(PoisonError::into_inner);
        raised.get_or_insert(error);
        self.cancel.store(true, Ordering::Relaxed);
    }

    /// Takes the exception.
    pub(crate) fn take(&self) -> Option<PyErr> {
        let mut raised = self.raised.lock().unwrap_or_else(PoisonError::into_inner);
        raised.take()
    }

    fn has_stopped(&self) -> bool {
        self.cancel.load(Ordering::Relaxed)
    }
}

impl fmt::Debug for PartFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PartFault").finish_non_exhaustive()
    }
}

/// A part of one run: Python's object, if it could be made.
pub(crate) struct Part {
    object: Option<Py<PyAny>>,
    fault: PartFault,
}

impl fmt::Debug for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Part").finish_non_exhaustive()
    }
}

impl Part {
    pub(crate) fn made(maker: &Py<PyAny>, rng: &Rng, fault: &PartFault) -> Self {
        let seed = rng.clone().next_u64();
        Self::made_with(fault, |py| maker.call1(py, (seed,)))
    }

    /// The part that `make` makes.
    pub(crate) fn made_with(
        fault: &PartFault,
        make: impl FnOnce(Python<'_>) -> PyResult<Py<PyAny>>,
    ) -> Self {
        let made = Python::attach(make);
        let object = made.map_err(|error| fault.note(error)).ok();
        Self {
            object,
            fault: fault.clone(),
        }
    }

    pub(crate) fn has(&self, method: &str) -> bool {
        let object = self.object.as_ref();
        Python::attach(|py| {
            object.is_some_and(|object| object.bind(py).hasattr(method).unwrap_or(false))
        })
    }

    /// Calls a method and reads its answer; `None` after an exception.
    pub(crate) fn ask<T>(
        &self,
        call: impl FnOnce(Python<'_>, &Bound<'_, PyAny>) -> PyResult<T>,
    ) -> Option<T> {
        let object = self.object.as_ref().filter(|_| !self.fault.has_stopped())?;
        let answer = Python::attach(|py| call(py, object.bind(py)));
        answer.map_err(|error| self.fault.note(error)).ok()
    }
}

pub(crate) fn seconds(at: Instant) -> f64 {
    at.saturating_since(Instant::START).as_secs_f64()
}

/// A span in seconds that a method gave.
pub(crate) fn span(seconds: f64, what: &str) -> PyResult<Duration> {
    let problem =
        || PyValueError::new_err(format!("{what} is {seconds} s; give 0 or more seconds"));
    Duration::try_from_secs_f64(seconds).map_err(|_| problem())
}
