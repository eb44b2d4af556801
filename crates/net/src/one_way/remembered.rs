//! Facts about senders and files that outlive a receiver's start.

use super::receiver::OneWayReceiver;
use super::seal::StreamId;
use super::wire::FileTag;
use crate::session::{StateDirectory, StateFileError};
use serde::{Deserialize, Serialize};
use std::io::ErrorKind;

/// The file's name.
pub(super) const STATE: &str = "state";

/// For each sender the counter below which nothing is taken, and files that are settled, each for one start of its sender.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Remembered {
    senders: Vec<(u32, u64)>,
    settled: Vec<(u32, u32, u32)>,
}

impl Remembered {
    /// The facts in `directory`. A damaged file is as good as none: at most a recording is taken once more.
    pub(super) fn read(directory: &StateDirectory) -> Result<Self, StateFileError> {
        let text = match directory.read(STATE) {
            // No text.
            Err(StateFileError::Read { source, .. }) if source.kind() == ErrorKind::InvalidData => {
                None
            }
            read => read?,
        };
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

    /// Takes over what `receiver` knows by now. If that is something else, returns the text that is to be written.
    pub(super) fn update(&mut self, receiver: &OneWayReceiver) -> Option<String> {
        let settled = receiver.settled();
        let settled = settled.map(|(tag, stream)| (tag.0, stream.sender, stream.start));
        let now = Self {
            senders: receiver.floors().collect(),
            settled: settled.collect(),
        };
        if now == *self {
            return None;
        }
        *self = now;
        serde_json::to_string(self).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::{Entropy, PresetKey};

    #[test]
    fn a_file_that_is_damaged_or_no_text_is_as_good_as_none() {
        let place = tempfile::tempdir().expect("a directory");
        let directory = StateDirectory::open(&place.path().join("state")).expect("it opens");
        for damage in [&b"\xFF\xFE\xFF"[..], b"[1, 2", b""] {
            directory.replace(STATE, "").expect("there is room");
            std::fs::write(directory.path_of(STATE), damage).expect("it is ours");
            let read = Remembered::read(&directory).expect("it is as good as none");
            assert_eq!(read, Remembered::default());
        }
    }

    #[test]
    fn as_much_as_is_ever_remembered_is_read_again() {
        let place = tempfile::tempdir().expect("a directory");
        let directory = StateDirectory::open(&place.path().join("state")).expect("it opens");
        let mut receiver =
            OneWayReceiver::new(PresetKey::generate(&mut Entropy::from_seed([1; 32])));
        for number in 0..20_000 {
            receiver.restore_sender(u32::MAX - number, (1 << 48) - 1);
            let stream = StreamId {
                sender: u32::MAX,
                start: u32::MAX,
            };
            receiver.restore_settled(FileTag(u32::MAX - number), stream);
        }
        let mut written = Remembered::default();
        let text = written.update(&receiver).expect("it is something else");
        directory.replace(STATE, &text).expect("there is room");
        assert!(written.senders.len() > 500 && written.settled.len() > 500);
        let read = Remembered::read(&directory).expect("it is text");
        assert_eq!(read, written);
    }
}
