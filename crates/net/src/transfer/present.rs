//! A file that is here already under the name that a sender introduces. It may be the same file, or another.

use super::part::RECOVER_STEP;
use super::record::Digest;
use super::verified::{Identity, Verified};
use fulmar_proto::units::Instant;
use rustix::fs::OFlags;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The file, as far as it was read.
#[derive(Debug)]
pub(super) struct Present {
    file: File,
    path: PathBuf,
    size: u64,
    identity: Identity,
    /// The time from which on a further change would show, for a file that changed a moment ago.
    quiet_at: Instant,
    hasher: blake3::Hasher,
    verified: Verified,
}

impl Present {
    /// The file at `path`, if it is one of `size` octets. Links are not followed.
    pub(super) fn open(now: Instant, path: &Path, size: u64, verified: &Verified) -> Option<Self> {
        // A pipe in its place is not waited for.
        let flags = (OFlags::NOFOLLOW.bits() | OFlags::NONBLOCK.bits()).cast_signed();
        let mut options = OpenOptions::new();
        let mut file = options.read(true).custom_flags(flags).open(path).ok()?;
        let metadata = file.metadata().ok()?;
        if !metadata.is_file() || metadata.len() != size {
            return None;
        }
        let identity = Identity::of(&file).ok()?;
        let hasher = verified.of(&identity, size);
        file.seek(SeekFrom::Start(hasher.count())).ok()?;
        Some(Self {
            file,
            path: path.to_owned(),
            size,
            identity,
            quiet_at: now + identity.quiet_for(),
            hasher,
            verified: verified.clone(),
        })
    }

    /// The time from which on it may be read.
    pub(super) const fn quiet_at(&self) -> Instant {
        self.quiet_at
    }

    /// Reads some more of it, unless it must be left alone for now; returns whether all is read.
    ///
    /// # Errors
    /// It cannot be read, or has changed.
    pub(super) fn read_more(&mut self, now: Instant) -> io::Result<bool> {
        if now < self.quiet_at {
            return Ok(false);
        }
        let left = usize::try_from(self.size - self.written()).unwrap_or(usize::MAX);
        let mut piece = vec![0; left.min(RECOVER_STEP)];
        self.file.read_exact(&mut piece)?;
        self.hasher.update(&piece);
        self.verified.count(piece.len());
        let is_whole = self.written() == self.size;
        if is_whole && Identity::of(&self.file)? != self.identity {
            return Err(io::Error::new(ErrorKind::ResourceBusy, "it was written to"));
        }
        Ok(is_whole)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Its length, once all is read.
    pub(super) fn written(&self) -> u64 {
        self.hasher.count()
    }

    pub(super) fn digest(&self) -> Digest {
        *self.hasher.finalize().as_bytes()
    }
}

impl Drop for Present {
    fn drop(&mut self) {
        // Otherwise it is another file by now.
        if Identity::of(&self.file).is_ok_and(|found| found == self.identity) {
            self.verified.keep(self.identity, &self.hasher);
        }
    }
}
