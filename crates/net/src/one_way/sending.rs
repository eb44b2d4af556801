//! The application around a sender: counters from the disk, and the request to stop.

use super::counters::{CounterFile, CounterFileError};
use super::sender::{OneWaySendEvent, OneWaySender};
use crate::transfer::Stop;
use crate::udp::{Application, Step};
use fulmar_proto::machine::{Deadline, PathId};
use fulmar_proto::units::Instant;
use std::io;

/// The application that runs one [`OneWaySender`] to its end.
#[derive(Debug)]
pub struct OneWaySending {
    counters: CounterFile,
    stop: Stop,
    is_closing: bool,
    is_over: bool,
    failed: Option<OneWaySendError>,
}

/// The reason why a sender ended before its time.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OneWaySendError {
    /// No counters can be had.
    #[error("no numbers for datagrams can be had")]
    Counters(#[from] CounterFileError),
    /// The file cannot be read.
    #[error("reading the file")]
    Read(#[source] io::Error),
}

impl OneWaySending {
    /// An application that takes counters from `counters`. After a request to stop the sender says that it is done, and ends.
    pub const fn new(counters: CounterFile, stop: Stop) -> Self {
        Self {
            counters,
            stop,
            is_closing: false,
            is_over: false,
            failed: None,
        }
    }

    /// The sender's number.
    pub const fn sender(&self) -> u32 {
        self.counters.sender()
    }

    /// The reason why it ended before its time.
    pub fn take_failure(&mut self) -> Option<OneWaySendError> {
        self.failed.take()
    }
}

impl Application<OneWaySender> for OneWaySending {
    fn deliver(&mut self, _now: Instant, machine: &mut OneWaySender, event: OneWaySendEvent) {
        match event {
            OneWaySendEvent::NeedsCounters => match self.counters.reserve() {
                Ok(counters) => machine.grant(counters),
                Err(error) => self.failed = Some(error.into()),
            },
            OneWaySendEvent::Failed(error) => self.failed = Some(OneWaySendError::Read(error)),
            OneWaySendEvent::Finished => self.is_over = true,
        }
    }

    fn work(&mut self, now: Instant, machine: &mut OneWaySender) -> Step {
        if self.is_over || self.failed.is_some() {
            return Step::Stop;
        }
        if self.stop.is_requested() && !self.is_closing {
            self.is_closing = true;
            machine.close(now);
            return Step::Again;
        }
        Step::Wait
    }

    fn unreachable(&mut self, _now: Instant, _machine: &mut OneWaySender, _path: PathId) {}

    fn times_departures(&self, _machine: &OneWaySender) -> bool {
        false
    }

    fn next_deadline(&self) -> Option<Deadline> {
        None
    }
}
