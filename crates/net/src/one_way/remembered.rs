//! Facts about senders and files that outlive a receiver's start.

use super::receiver::OneWayReceiver;
use super::seal::StreamId;
use super::wire::FileTag;
use crate::session::{StateDirectory, StateFileError};
use serde::{Deserialize, Serialize};

const STATE: &str = "state";

/// For each sender the counter below which nothing is taken, and files that are settled, each for one start of its sender.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Remembered {
    senders: Vec<(u32, u64)>,
    settled: Vec<(u32, u32, u32)>,
}

impl Remembered {
    /// The facts in `directory`. A damaged file is as good as none: at most a recording is taken once more.
    pub(super) fn read(directory: &StateDirectory) -> Result<Self, StateFileError> {
        let text = directory.read(STATE)?;
        let read = text.and_then(|text| serde_json::from_str(&text).ok());
        Ok(read.unwrap_or_default())
    }

    /// Tells a receiver.
    pub(super) fn restore(&self, receiver: &mut OneWayReceiver) {
        for &(sender, floor) in &self.senders {
            receiver.restore_sender(sender, floor);
        }
        for &(tag, sender, start) in &self.settled {
            receiver.restore_settled(FileTag(tag), StreamId { sender, start });
        }
    }

    /// Writes what `receiver` knows by now, if that is something else. A failure is made up for by the next time.
    pub(super) fn update(&mut self, receiver: &OneWayReceiver, directory: &StateDirectory) {
        let settled = receiver.settled();
        let settled = settled.map(|(tag, stream)| (tag.0, stream.sender, stream.start));
        let now = Self {
            senders: receiver.floors().collect(),
            settled: settled.collect(),
        };
        if now != *self
            && let Ok(text) = serde_json::to_string(&now)
            && directory.replace(STATE, &text).is_ok()
        {
            *self = now;
        }
    }
}
