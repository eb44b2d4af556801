//! Requests of other threads to a running gateway.

use super::reload::Reload;
use super::watch::{Silence, Source, Status};
use crate::wait::Waker;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::time::Duration;

/// A request to the loop.
#[derive(Debug)]
pub(super) enum Command {
    /// Take up this configuration, as far as it can change.
    Reload(Box<Reload>),
    /// Finish.
    Stop,
    /// Tell the status.
    Status(StatusReader, SyncSender<Status>),
}

/// The one who wants to know the status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StatusReader {
    /// Somebody who may read all of it.
    Anybody,
    /// The history, once a second for as long as the gateway runs: losses by cause, which it has no use for, may be old.
    History,
}

/// Asks things of a running gateway; may be cloned and used from any thread.
#[derive(Debug)]
pub struct Control {
    commands: Sender<Command>,
    waker: Waker,
}

/// A loop that does not answer in this time is stuck.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

impl Control {
    pub(super) fn new(waker: Waker) -> (Self, Receiver<Command>) {
        let (commands, inbox) = channel();
        (Self { commands, waker }, inbox)
    }

    /// Another handle.
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self {
            commands: self.commands.clone(),
            waker: self.waker.try_clone()?,
        })
    }

    fn send(&self, command: Command) -> bool {
        self.commands.send(command).is_ok() && self.waker.wake().is_ok()
    }

    /// Asks for another configuration. Settings that cannot change are logged by name.
    pub fn reload(&self, reload: Reload) {
        // A gateway that has ended needs no configuration.
        let _ = self.send(Command::Reload(Box::new(reload)));
    }

    /// Asks it to end.
    pub fn stop(&self) {
        let _ = self.send(Command::Stop);
    }

    /// The gateway's status; `None` if it has ended or is stuck.
    pub fn status(&self) -> Option<Status> {
        self.ask().ok()
    }
}

impl Source for Control {
    fn ask(&self) -> Result<Status, Silence> {
        self.status_for(StatusReader::Anybody)
    }

    fn sample(&self) -> Result<Status, Silence> {
        self.status_for(StatusReader::History)
    }
}

impl Control {
    fn status_for(&self, reader: StatusReader) -> Result<Status, Silence> {
        let (reply, answer) = sync_channel(1);
        if !self.send(Command::Status(reader, reply)) {
            return Err(Silence::Ended);
        }
        let status = answer.recv_timeout(ANSWER_WITHIN);
        status.map_err(|error| match error {
            RecvTimeoutError::Timeout => Silence::Busy,
            RecvTimeoutError::Disconnected => Silence::Ended,
        })
    }
}
