//! The octets to be sent: a file, which can be sought, or a pipe, which cannot.

use super::pipe::{PipeSource, Pulled};
use super::record::Digest;
use crate::wait::Waker;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::path::Path;
use std::time::SystemTime;

/// Octets hashed at once while a prefix is verified: some milliseconds of work.
const VERIFY_STEP: usize = 1 << 20;

/// The origin of the octets.
#[derive(Debug)]
pub struct Source {
    origin: Origin,
    hasher: blake3::Hasher,
    position: u64,
}

#[derive(Debug)]
enum Origin {
    File {
        file: File,
        size: u64,
        /// The time of its last change, if the file system tells.
        modified: Option<SystemTime>,
    },
    Pipe {
        pipe: PipeSource,
        rest: Vec<u8>,
    },
}

/// The result of [`Source::fill`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Filled {
    /// So many octets were appended.
    Octets(usize),
    /// Nothing yet.
    Later,
    /// The end.
    End,
}

impl Source {
    /// A file.
    ///
    /// # Errors
    /// It cannot be opened, or is a directory.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        if metadata.is_dir() {
            return Err(ErrorKind::IsADirectory.into());
        }
        Ok(Self::new(Origin::File {
            file,
            size: metadata.len(),
            modified: metadata.modified().ok(),
        }))
    }

    /// A pipe, such as stdin. It is read in a thread, which calls `waker`.
    pub fn pipe(pipe: impl Read + Send + 'static, waker: Waker) -> Self {
        Self::new(Origin::Pipe {
            pipe: PipeSource::new(pipe, waker),
            rest: Vec::new(),
        })
    }

    fn new(origin: Origin) -> Self {
        Self {
            origin,
            hasher: blake3::Hasher::new(),
            position: 0,
        }
    }

    /// The size, where it is known.
    pub const fn size(&self) -> Option<u64> {
        match self.origin {
            Origin::File { size, .. } => Some(size),
            Origin::Pipe { .. } => None,
        }
    }

    /// Whether the file was written to since it was opened. A pipe cannot be.
    pub(super) fn has_changed(&self) -> io::Result<bool> {
        let Origin::File {
            file,
            size,
            modified,
        } = &self.origin
        else {
            return Ok(false);
        };
        let metadata = file.metadata()?;
        // Devices and files like those in /proc have no size: they end where reading ends.
        let is_cut = metadata.is_file() && *size > 0 && self.position != *size;
        Ok(is_cut || metadata.len() != *size || metadata.modified().ok() != *modified)
    }

    pub(super) const fn is_seekable(&self) -> bool {
        matches!(self.origin, Origin::File { .. })
    }

    /// The octets that have been taken.
    pub(super) const fn position(&self) -> u64 {
        self.position
    }

    /// The digest of the octets that have been taken.
    pub(super) fn digest(&self) -> Digest {
        *self.hasher.finalize().as_bytes()
    }

    /// Appends at most `max` octets to `out`.
    pub(super) fn fill(&mut self, out: &mut Vec<u8>, max: usize) -> io::Result<Filled> {
        let start = out.len();
        match &mut self.origin {
            Origin::File { file, .. } => {
                file.take(max as u64).read_to_end(out)?;
            }
            Origin::Pipe { pipe, rest } => {
                if rest.is_empty() {
                    match pipe.pull()? {
                        Pulled::Octets(octets) => *rest = octets,
                        Pulled::Later => return Ok(Filled::Later),
                        Pulled::End => return Ok(Filled::End),
                    }
                }
                out.extend(rest.drain(..rest.len().min(max)));
            }
        }
        let octets = out.get(start..).unwrap_or_default();
        if octets.is_empty() {
            return Ok(Filled::End);
        }
        self.hasher.update(octets);
        self.position += octets.len() as u64;
        Ok(Filled::Octets(octets.len()))
    }

    /// Back to the start. A pipe stays where it is.
    pub(super) fn rewind(&mut self) -> io::Result<()> {
        if let Origin::File { file, .. } = &mut self.origin {
            file.seek(SeekFrom::Start(0))?;
            self.hasher.reset();
            self.position = 0;
        }
        Ok(())
    }

    /// Continues behind a verified prefix. Does nothing if more than that has been taken already.
    pub(super) fn skip_to(&mut self, prefix: &Prefix) -> io::Result<()> {
        if let Origin::File { file, .. } = &mut self.origin
            && prefix.wanted > self.position
        {
            file.seek(SeekFrom::Start(prefix.wanted))?;
            self.hasher = prefix.hasher.clone();
            self.position = prefix.wanted;
        }
        Ok(())
    }

    /// Verifies some more of a prefix; `None` until the verdict is known.
    pub(super) fn verify_more(&mut self, prefix: &mut Prefix) -> io::Result<Option<bool>> {
        let Origin::File { file, .. } = &mut self.origin else {
            return Ok(Some(false));
        };
        if prefix.hashed < prefix.wanted {
            let left = usize::try_from(prefix.wanted - prefix.hashed).unwrap_or(usize::MAX);
            let mut piece = vec![0; left.min(VERIFY_STEP)];
            let read = std::os::unix::fs::FileExt::read_at(file, &mut piece, prefix.hashed)?;
            if read == 0 {
                return Ok(Some(false));
            }
            prefix.hasher.update(piece.get(..read).unwrap_or_default());
            prefix.hashed += read as u64;
            return Ok(None);
        }
        Ok(Some(*prefix.hasher.finalize().as_bytes() == prefix.digest))
    }
}

/// The first octets of a file, on their way to a verdict.
#[derive(Debug)]
pub(super) struct Prefix {
    wanted: u64,
    digest: Digest,
    hasher: blake3::Hasher,
    hashed: u64,
}

impl Prefix {
    /// Starts to verify that the first `wanted` octets have `digest`.
    pub(super) fn new(wanted: u64, digest: Digest) -> Self {
        Self {
            wanted,
            digest,
            hasher: blake3::Hasher::new(),
            hashed: 0,
        }
    }

    pub(super) const fn wanted(&self) -> u64 {
        self.wanted
    }
}
