//! Damaged files, set aside for the operator to look at.
//!
//! A damaged file is not deleted at once: no other copy of its octets may be left. But a failing disk must not
//! fill itself, so there is a bound, in files and octets. Beyond it the oldest files are removed, each with a
//! notice. Names begin with a number that grows, so that their age shows and none replaces another.

use super::disk::Disk;
use super::space::Space;
use fulmar_proto::units::ByteCount;
use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::sync::{Mutex, PoisonError};

/// The most files set aside.
pub(super) const FILES_ASIDE_MAX: usize = 1_024;

/// The damaged files that lie aside.
#[derive(Debug)]
pub(super) struct Aside {
    /// The most octets set aside, but for the latest file.
    limit: ByteCount,
    files: Mutex<Files>,
}

#[derive(Debug, Default)]
struct Files {
    /// Names and lengths, the oldest first.
    all: VecDeque<(String, u64)>,
    octets: u64,
    next: u64,
}

impl Aside {
    /// Finds the files that lie aside on `disk`. A disk that cannot list them counts as empty.
    pub(super) fn found(disk: &dyn Disk, limit: ByteCount) -> Self {
        let mut all = disk.list_aside().unwrap_or_default();
        all.sort_unstable();
        // Not the last name's: another file may lie there.
        let next = all.iter().filter_map(|(name, _)| number(name)).max();
        let files = Files {
            octets: all.iter().map(|(_, octets)| octets).sum(),
            all: all.into(),
            next: next.map_or(0, |number| number.saturating_add(1)),
        };
        Self {
            limit,
            files: Mutex::new(files),
        }
    }

    /// Moves the file `name` to the damaged ones. Needs no space.
    ///
    /// # Errors
    /// It stays where it is.
    pub(super) fn put(&self, disk: &dyn Disk, space: &Space, name: &str) -> io::Result<()> {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let (aside, octets) = loop {
            let aside = format!("{:016}-{name}", files.next);
            // Also after a failure, which may have come after the move.
            files.next += 1;
            match disk.set_aside(name, &aside) {
                // One that was not found at the start, when the disk could not list them.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                moved => break (aside, moved?),
            }
        };
        files.octets += octets;
        files.all.push_back((aside, octets));
        while files.all.len() > 1
            && (files.all.len() > FILES_ASIDE_MAX || files.octets > self.limit.0)
        {
            let Some((oldest, octets)) = files.all.pop_front() else {
                break;
            };
            files.octets -= octets;
            // A file that cannot be removed is found again at the next start.
            if disk.remove_aside(&oldest).is_ok() {
                space.gave_way(oldest);
            }
        }
        Ok(())
    }

    /// The number of files set aside, and their octets.
    pub(super) fn holds(&self) -> (usize, ByteCount) {
        let files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        (files.all.len(), ByteCount(files.octets))
    }
}

fn number(name: &str) -> Option<u64> {
    name.split_once('-')?.0.parse().ok()
}
