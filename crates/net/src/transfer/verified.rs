//! Files here that were read to compare them with a sender's: each is read once, however often somebody asks.
//!
//! A sender that offers a file under a name that is taken is told how much of it is here, with a digest. For that the
//! file has to be read. A sender may go and come again at once, so the progress of reading is kept beyond the transfer.
//!
//! # Promises
//! - While the system says that a file is the same (device, inode, length, times of change), no octet of it is read
//!   twice, also if who asked left in the middle.
//! - What was read of one that changed since is not used. A change shows in the times only if a clock tick lies
//!   between; [`Identity::quiet_for`] tells how long one is to be left alone until then.
//! - Memory is bounded. The file that was cheapest to read is forgotten first.

use crate::clock::unix_time;
use fulmar_proto::units::Duration;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Files remembered. Each takes 2 KiB.
const FILES_MAX: usize = 256;
/// The coarsest clock of a file system: FAT counts two seconds.
const TICK: Duration = Duration::from_secs(2);

/// The properties by which a changed file is recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    inode: (u64, u64),
    len: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Identity {
    pub(super) fn of(file: &File) -> io::Result<Self> {
        let found = file.metadata()?;
        Ok(Self {
            inode: (found.dev(), found.ino()),
            len: found.len(),
            modified: (found.mtime(), found.mtime_nsec()),
            changed: (found.ctime(), found.ctime_nsec()),
        })
    }

    /// The time for which it has to stay as it is until a change would show.
    pub(super) fn quiet_for(&self) -> Duration {
        let now = unix_time().as_nanos().cast_signed();
        let at =
            |(seconds, nanos): (i64, i64)| i128::from(seconds) * 1_000_000_000 + i128::from(nanos);
        // A time in the future says nothing by itself, but a change would show in it.
        let age = (now - at(self.modified))
            .abs()
            .min((now - at(self.changed)).abs());
        let age = Duration::from_nanos(u64::try_from(age).unwrap_or(u64::MAX));
        TICK.saturating_sub(age)
    }
}

#[derive(Debug, Default)]
struct Memory {
    /// By inode, so that former states of a file take no room.
    files: BTreeMap<(u64, u64), (Identity, blake3::Hasher)>,
    read_bytes: u64,
}

/// The shared memory of the files that were read, and how far.
#[derive(Clone, Debug, Default)]
pub(super) struct Verified(Arc<Mutex<Memory>>);

impl Verified {
    fn memory(&self) -> MutexGuard<'_, Memory> {
        // Nothing panics while the lock is held.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The hash of the octets that were read of the file that `identity` names, from its start. If they are more than
    /// `most`, the hash of nothing.
    pub(super) fn of(&self, identity: &Identity, most: u64) -> blake3::Hasher {
        let memory = self.memory();
        let known = memory.files.get(&identity.inode);
        let known = known.filter(|(known, hasher)| known == identity && hasher.count() <= most);
        known.map(|(_, hasher)| hasher.clone()).unwrap_or_default()
    }

    /// Keeps how much of the file that `identity` names was read.
    pub(super) fn keep(&self, identity: Identity, hasher: &blake3::Hasher) {
        if hasher.count() == 0 {
            return;
        }
        let mut memory = self.memory();
        let known = (identity, hasher.clone());
        memory.files.insert(identity.inode, known);
        if memory.files.len() > FILES_MAX {
            let files = memory.files.iter();
            let least = files.min_by_key(|(_, (_, hasher))| hasher.count());
            if let Some(inode) = least.map(|(inode, _)| *inode) {
                memory.files.remove(&inode);
            }
        }
    }

    /// Counts octets that were read.
    pub(super) fn count(&self, octets: usize) {
        self.memory().read_bytes += octets as u64;
    }

    /// Octets read so far.
    pub(super) fn read_bytes(&self) -> u64 {
        self.memory().read_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(inode: u64, len: u64) -> Identity {
        Identity {
            inode: (1, inode),
            len,
            modified: (0, 0),
            changed: (0, 0),
        }
    }

    fn read(octets: usize) -> blake3::Hasher {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&vec![7; octets]);
        hasher
    }

    #[test]
    fn another_length_time_or_file_is_not_the_same() {
        let verified = Verified::default();
        let known = identity(1, 10);
        verified.keep(known, &read(10));
        assert_eq!(verified.of(&known, 10).count(), 10);
        assert_eq!(verified.of(&known, 9).count(), 0, "more than is asked for");
        for other in [
            identity(2, 10),
            identity(1, 11),
            Identity {
                modified: (0, 1),
                ..known
            },
            Identity {
                changed: (1, 0),
                ..known
            },
        ] {
            assert_eq!(verified.of(&other, 10).count(), 0, "{other:?}");
        }
    }

    #[test]
    fn who_makes_many_small_files_has_no_large_one_forgotten() {
        let verified = Verified::default();
        let large = identity(0, 100_000);
        verified.keep(large, &read(100_000));
        for inode in 1..5_000 {
            verified.keep(identity(inode, 10), &read(10));
        }
        assert_eq!(verified.of(&large, 100_000).count(), 100_000);
        assert_eq!(verified.memory().files.len(), FILES_MAX);
        for state in 0..5_000 {
            let grown = Identity {
                len: 200_000 + state,
                ..large
            };
            verified.keep(grown, &read(20));
        }
        assert_eq!(
            verified.memory().files.len(),
            FILES_MAX,
            "one state of each"
        );
    }

    #[test]
    fn a_file_that_has_just_changed_is_left_alone_for_a_tick() {
        let file = tempfile::tempfile().expect("room");
        let mut identity = Identity::of(&file).expect("it is open");
        let now = unix_time();
        let at = |seconds: i64| (now.as_secs().cast_signed() + seconds, 0);
        for (modified, changed, is_quiet) in [
            (at(-10), at(-10), true),
            (at(-10), at(1_000), true),
            (at(-10), at(0), false),
            (at(0), at(-10), false),
        ] {
            (identity.modified, identity.changed) = (modified, changed);
            assert_eq!(identity.quiet_for() == Duration::ZERO, is_quiet);
        }
    }
}
