//! A file that is here already, under the name that a sender introduces: the same, or another?

use super::part::RECOVER_STEP;
use super::record::Digest;
use rustix::fs::OFlags;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The file, as far as it was read.
#[derive(Debug)]
pub(super) struct Present {
    file: File,
    path: PathBuf,
    size: u64,
    read: u64,
    hasher: blake3::Hasher,
}

impl Present {
    /// The file at `path`, if it is one of `size` octets. Links are not followed.
    pub(super) fn open(path: &Path, size: u64) -> Option<Self> {
        // A pipe in its place is not waited for.
        let flags = (OFlags::NOFOLLOW.bits() | OFlags::NONBLOCK.bits()).cast_signed();
        let mut options = OpenOptions::new();
        let file = options.read(true).custom_flags(flags).open(path).ok()?;
        let metadata = file.metadata().ok()?;
        (metadata.is_file() && metadata.len() == size).then(|| Self {
            file,
            path: path.to_owned(),
            size,
            read: 0,
            hasher: blake3::Hasher::new(),
        })
    }

    /// Reads some more of it; whether all is read.
    ///
    /// # Errors
    /// It cannot be read, or has become shorter.
    pub(super) fn read_more(&mut self) -> io::Result<bool> {
        let left = usize::try_from(self.size - self.read).unwrap_or(usize::MAX);
        let mut piece = vec![0; left.min(RECOVER_STEP)];
        self.file.read_exact(&mut piece)?;
        self.hasher.update(&piece);
        self.read += piece.len() as u64;
        Ok(self.read == self.size)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Its length, once all is read.
    pub(super) const fn written(&self) -> u64 {
        self.read
    }

    pub(super) fn digest(&self) -> Digest {
        *self.hasher.finalize().as_bytes()
    }
}
