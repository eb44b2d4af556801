//! The counters of one sender, kept on the disk so that none is ever used twice.
//!
//! Counters are reserved in stretches: the file says the end of the stretch before the first of it is used. A crash costs the rest of
//! a stretch. A file that is lost or damaged costs the sender its number: another one is drawn, whose counters nobody has used.
//! The directory stays locked, so two processes never share a number.

use super::seal::{COUNTERS_END, OneWayCounters};
use crate::session::{Entropy, PresetKey, StateDirectory, StateFileError};
use std::fmt::Write as _;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The counters of a stretch: 94 MB of the usual datagrams.
const STRETCH: u64 = 1 << 16;
/// The file's name.
const COUNTERS: &str = "counters";

/// The directory in which a sender's counters are kept, where none is named. `None`: the environment names no place for state.
pub fn counters_directory() -> Option<PathBuf> {
    crate::gateway::state_base().map(|base| base.join("one-way"))
}

/// The reason why no counters can be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CounterFileError {
    /// The file cannot be read, written or trusted.
    #[error(transparent)]
    File(#[from] StateFileError),
    /// Another process sends with this key and these counters.
    #[error("another process sends with this key and has its numbers in {}; wait until it is done, or send from another --state directory", .0.display())]
    Busy(PathBuf),
    /// All 2^48 counters are used.
    #[error("{} has no counters left; move it away, and another sender's number is drawn", .0.display())]
    UsedUp(PathBuf),
}

/// The counters of one sender under one key.
#[derive(Debug)]
pub struct CounterFile {
    directory: StateDirectory,
    sender: u32,
    next: u64,
    is_new: bool,
}

fn line(sender: u32, next: u64) -> String {
    let text = format!("fulmar-one-way 1 {sender:08x} {next}");
    let crc = crc32fast::hash(text.as_bytes());
    format!("{text} {crc:08x}\n")
}

/// The sender's number and its next counter, out of a line that is as it was written.
fn numbers(text: &str) -> Option<(u32, u64)> {
    let mut words = text.trim_end().split(' ').skip(2);
    let sender = u32::from_str_radix(words.next()?, 16).ok()?;
    let next = words.next()?.parse().ok()?;
    (line(sender, next) == text).then_some((sender, next))
}

impl CounterFile {
    /// The counters for datagrams under `preset`, in a file of `directory`, which is made if need be. A sender whose file is missing or
    /// damaged draws a number.
    ///
    /// # Errors
    /// [`CounterFileError`]: the directory cannot be used, or another process sends with this key from it.
    pub fn open(
        directory: &Path,
        preset: &PresetKey,
        entropy: &mut Entropy,
    ) -> Result<Self, CounterFileError> {
        let mut name = String::new();
        for octet in preset.fingerprint().iter().take(8) {
            // Writing to a string does not fail.
            let _ = write!(name, "{octet:02x}");
        }
        // Each key has a directory of its own, so that senders with other keys are not held up.
        let directory = directory.join(name);
        let directory = StateDirectory::open(&directory).map_err(|error| match error {
            StateFileError::Write { source, .. } if source.kind() == ErrorKind::ResourceBusy => {
                CounterFileError::Busy(directory)
            }
            error => error.into(),
        })?;
        let stored = match directory.read(COUNTERS) {
            Ok(text) => text.as_deref().and_then(numbers),
            // No text.
            Err(StateFileError::Read { source, .. }) if source.kind() == ErrorKind::InvalidData => {
                None
            }
            Err(error) => return Err(error.into()),
        };
        let (sender, next) = stored.unwrap_or_else(|| (u32::from_be_bytes(entropy.array()), 0));
        Ok(Self {
            directory,
            sender,
            next,
            is_new: stored.is_none(),
        })
    }

    /// The sender's number.
    pub const fn sender(&self) -> u32 {
        self.sender
    }

    /// Whether the number was drawn just now.
    pub const fn is_new(&self) -> bool {
        self.is_new
    }

    /// The file.
    pub fn path(&self) -> PathBuf {
        self.directory.path_of(COUNTERS)
    }

    /// Reserves the next stretch. It is on the disk when this returns.
    ///
    /// # Errors
    /// [`CounterFileError`]: the file cannot be written, or the counters are used up.
    pub fn reserve(&mut self) -> Result<OneWayCounters, CounterFileError> {
        let start = self.next;
        let end = start.saturating_add(STRETCH);
        if end > COUNTERS_END {
            return Err(CounterFileError::UsedUp(self.path()));
        }
        self.directory.replace(COUNTERS, &line(self.sender, end))?;
        self.next = end;
        Ok(OneWayCounters(start..end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn preset() -> PresetKey {
        PresetKey::generate(&mut Entropy::from_seed([1; 32]))
    }

    fn open(place: &Path, seed: u8) -> CounterFile {
        CounterFile::open(place, &preset(), &mut Entropy::from_seed([seed; 32])).expect("it opens")
    }

    #[test]
    fn no_counter_comes_twice_whenever_a_process_is_killed() {
        let place = tempfile::tempdir().expect("a directory");
        let mut used = 0;
        let mut sender = None;
        for start in 0..5_u8 {
            let mut file = open(place.path(), start);
            assert_eq!(*sender.get_or_insert(file.sender()), file.sender());
            assert_eq!(file.is_new(), start == 0);
            for _ in 0..=start {
                let OneWayCounters(stretch) = file.reserve().expect("there are some");
                assert!(stretch.start >= used, "{stretch:?} after {used}");
                used = stretch.end;
            }
        }
        assert!(used > 0);
    }

    #[test]
    fn a_file_that_is_lost_or_damaged_in_any_bit_makes_another_sender() {
        let place = tempfile::tempdir().expect("a directory");
        let mut file = open(place.path(), 1);
        file.reserve().expect("there are some");
        let (path, first) = (file.path(), file.sender());
        drop(file);
        let whole = fs::read(&path).expect("it is there");
        assert!(numbers(core::str::from_utf8(&whole).expect("text")).is_some());
        for bit in 0..whole.len() * 8 {
            let mut octets = whole.clone();
            octets[bit / 8] ^= 1 << (bit % 8);
            let read = core::str::from_utf8(&octets).ok().and_then(numbers);
            assert_eq!(read, None, "bit {bit}");
        }
        for damage in [Some(&whole[..whole.len() / 2]), Some(&[0xFF; 9][..]), None] {
            match damage {
                Some(octets) => fs::write(&path, octets).expect("it is ours"),
                None => fs::remove_file(&path).expect("it is ours"),
            }
            let file = open(place.path(), 2);
            assert!(file.is_new() && file.sender() != first);
        }
    }

    #[test]
    fn senders_with_two_keys_share_a_directory() {
        let place = tempfile::tempdir().expect("a directory");
        let _one = open(place.path(), 1);
        let other = PresetKey::generate(&mut Entropy::from_seed([2; 32]));
        let mut entropy = Entropy::from_seed([3; 32]);
        let two = CounterFile::open(place.path(), &other, &mut entropy).expect("it opens at once");
        assert!(two.is_new());
    }

    #[test]
    fn the_last_counter_is_never_passed() {
        let place = tempfile::tempdir().expect("a directory");
        let mut file = open(place.path(), 1);
        file.next = COUNTERS_END - STRETCH;
        let OneWayCounters(last) = file.reserve().expect("the last ones");
        assert_eq!(last.end, COUNTERS_END);
        assert!(matches!(file.reserve(), Err(CounterFileError::UsedUp(_))));
    }
}
