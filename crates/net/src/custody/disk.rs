//! The file system as a store needs it: one directory, flat, and beside it a place for damaged files.
//!
//! The narrowest seam at which each call can fail: [`Directory`](super::directory::Directory) is the
//! real one, the tests' simulated one fails any call and loses what was not synced. Nothing above it
//! touches a file.

use core::fmt::Debug;
use std::io::{self, ErrorKind, IoSlice};
use std::sync::Arc;

/// A store's directory.
pub(super) trait Disk: Debug + Send + Sync {
    /// The names of its files.
    fn list(&self) -> io::Result<Vec<String>>;
    /// Makes a file that is not there, to read and write.
    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>>;
    /// Opens a file of ours to read and write; fails with [`Foreign`] if it is not ours.
    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>>;
    /// The problem with a file of our own user's that others may write: whether they have, only its owner can judge.
    /// Nothing is opened.
    fn distrust(&self, _name: &str) -> io::Result<Option<String>> {
        Ok(None)
    }
    /// Removes a name.
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Syncs the names to the disk.
    fn sync_names(&self) -> io::Result<()>;
    /// Moves a file, or what has its name, to the damaged ones, and says how many octets it has.
    ///
    /// # Errors
    /// [`ErrorKind::AlreadyExists`] if one of them has that name.
    fn set_aside(&self, name: &str, aside: &str) -> io::Result<u64>;
    /// The damaged files, with their lengths.
    fn list_aside(&self) -> io::Result<Vec<(String, u64)>>;
    /// Removes one of the damaged files.
    fn remove_aside(&self, aside: &str) -> io::Result<()>;
}

/// An open file. Others may read and write it at once.
pub(super) trait DiskFile: Debug + Send + Sync {
    /// Writes octets at `place` and returns how many of them.
    fn write_at(&self, pieces: &[IoSlice<'_>], place: u64) -> io::Result<usize>;
    /// Reads octets from `place` and returns how many; 0 at the end.
    fn read_at(&self, into: &mut [u8], place: u64) -> io::Result<usize>;
    /// Its length.
    fn len(&self) -> io::Result<u64>;
    /// Sets its length.
    fn set_len(&self, len: u64) -> io::Result<()>;
    /// Syncs octets and length to the disk.
    fn sync(&self) -> io::Result<()>;
}

/// Why a file is not believed: another user's, no regular one, writable by others.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Foreign(pub(super) String);

/// Whether `error` is about this one file. What the whole system lacks is listed, since file systems have many ways to
/// say that one file is damaged.
pub(super) fn is_of_the_file(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let of_the_system = [
        Errno::MFILE,
        Errno::NFILE,
        Errno::NOMEM,
        Errno::NOSPC,
        Errno::DQUOT,
        Errno::ROFS,
        Errno::INTR,
        Errno::NOENT,
    ];
    let foreign = error
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<Foreign>());
    let errno = error.raw_os_error().map(Errno::from_raw_os_error);
    foreign.is_some() || errno.is_some_and(|errno| !of_the_system.contains(&errno))
}

/// Writes all octets. On failure a part of them may be there.
pub(super) fn write_all(
    file: &dyn DiskFile,
    mut pieces: &mut [IoSlice<'_>],
    mut place: u64,
) -> io::Result<()> {
    while !pieces.is_empty() {
        match file.write_at(pieces, place) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            // Fewer than offered were written: a signal came, or these are the last octets of a disk.
            Ok(written) => {
                IoSlice::advance_slices(&mut pieces, written);
                place += written as u64;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Reads until `into` is full or the file ends, and returns the number of octets read.
pub(super) fn read_full(file: &dyn DiskFile, into: &mut [u8], place: u64) -> io::Result<usize> {
    let mut read = 0;
    while read < into.len() {
        match file.read_at(&mut into[read..], place + read as u64) {
            Ok(0) => break,
            Ok(more) => read += more,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(read)
}
