//! The things that a scenario names and does not contain: recorded traces, and parts of one's own.

use super::own::OwnParts;
use fulmar_channel::LossTrace;
use fulmar_channel::fading::{PowerTrace, Recorded};
use std::sync::Arc;

/// The recorded traces that a scenario names: gives a recording, or says in one line what is wrong with it.
pub trait Recordings {
    /// The trace of a `loss = "trace FILE"`, by the file's name.
    ///
    /// # Errors
    /// The file's fault, in one line.
    fn loss(&self, name: &str) -> Result<Arc<LossTrace>, String>;

    /// The power of a `fading = "trace FILE"`.
    ///
    /// # Errors
    /// The file's fault, in one line.
    fn power(&self, recorded: &Recorded) -> Result<Arc<PowerTrace>, String>;

    /// The parts of one's own that the scenario may name beside the recordings.
    fn own(&self) -> &OwnParts {
        OwnParts::NONE
    }
}

/// No recordings: for scenarios that name no files.
#[derive(Clone, Copy, Debug)]
pub struct NoRecordings;

impl Recordings for NoRecordings {
    fn loss(&self, name: &str) -> Result<Arc<LossTrace>, String> {
        Err(format!("the trace {name} cannot be had here"))
    }

    fn power(&self, recorded: &Recorded) -> Result<Arc<PowerTrace>, String> {
        Err(format!("the trace {} cannot be had here", recorded.name))
    }
}

/// Parts of one's own for a scenario that names no recordings.
impl Recordings for OwnParts {
    fn loss(&self, name: &str) -> Result<Arc<LossTrace>, String> {
        NoRecordings.loss(name)
    }

    fn power(&self, recorded: &Recorded) -> Result<Arc<PowerTrace>, String> {
        NoRecordings.power(recorded)
    }

    fn own(&self) -> &OwnParts {
        self
    }
}
