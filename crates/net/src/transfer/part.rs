//! A file that is being received: its octets on the disk, its state file, and the steps by which it becomes whole.
//!
//! `NAME.fulmar-part` holds the octets, `NAME.fulmar-state` says how many of them are durable and
//! their BLAKE3 digest. Only the octets that the state vouches for are taken up again, after their
//! digest was computed from the disk, or was known of a file that has not changed since ([`super::verified`]).
//!
//! # Promises
//! - A checkpoint syncs the octets before it replaces the state, by rename: after a crash or a power
//!   loss at any moment the state is either the old or the new one, and never promises too much.
//! - `NAME` appears only complete, verified and synced, in one step, and replaces nothing unless
//!   that was asked for.
//! - One receiver at a time: the part is locked, and the locked file is the one that has the name.
//! - An incomplete file replaces no earlier one.
//! - Working files are files: a symbolic link or a device in their place is refused, never followed.

use super::name::{PART_SUFFIX, STATE_SUFFIX};
use super::record::Digest;
use super::verified::{Identity, Verified};
use rustix::fs::OFlags;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The end of the name of a file that will not become complete.
pub(super) const INCOMPLETE_SUFFIX: &str = ".incomplete";
/// Octets hashed at once while a part is taken up again: some milliseconds of work.
pub(super) const RECOVER_STEP: usize = 1 << 20;
/// Octets collected before they are written.
const WRITE_BUFFER: usize = 1 << 17;
/// The times that a part may vanish between being opened and locked: each takes another receiver.
const OPEN_ATTEMPTS_MAX: usize = 16;
/// The most incomplete files of one name that are kept; a user with so many does not look at them.
const INCOMPLETE_MAX: u32 = 999;
/// The longest state file: it is one line, so a longer file is not ours.
const STATE_BYTES_MAX: u64 = 200;

/// A failure on the disk.
#[derive(Debug, thiserror::Error)]
#[error("{attempt} {}", path.display())]
pub struct StorageError {
    /// The attempt: "writing", "creating".
    pub attempt: &'static str,
    /// The file.
    pub path: PathBuf,
    /// The system's reason.
    #[source]
    pub source: io::Error,
}

trait Attempt<T> {
    fn attempt(self, attempt: &'static str, path: &Path) -> Result<T, StorageError>;
}

impl<T> Attempt<T> for io::Result<T> {
    fn attempt(self, attempt: &'static str, path: &Path) -> Result<T, StorageError> {
        self.map_err(|source| StorageError {
            attempt,
            path: path.to_owned(),
            source,
        })
    }
}

/// The partial file and its state.
#[derive(Debug)]
pub(super) struct Part {
    file: File,
    directory: PathBuf,
    path: PathBuf,
    state: PathBuf,
    target: PathBuf,
    hasher: blake3::Hasher,
    /// Octets hashed: on the disk or in the buffer.
    written: u64,
    buffer: Vec<u8>,
    /// The hash of the octets that a state vouches for, and that were verified.
    durable: blake3::Hasher,
    /// The length and the digest that the state vouches for, until they have been verified.
    vouched: Option<(u64, Digest)>,
    verified: Verified,
}

fn with_suffix(directory: &Path, name: &str, suffix: &str) -> PathBuf {
    directory.join(format!("{name}{suffix}"))
}

/// Opens or creates `part`, and locks it. Another receiver may give it its final name, or take it away,
/// between the two: the lock is then on a file that is no longer ours to write.
fn open_locked(part: &Path) -> Result<File, StorageError> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    options.custom_flags(NO_SURPRISES);
    for _ in 0..OPEN_ATTEMPTS_MAX {
        let file = options
            .open(part)
            .and_then(ordinary)
            .map_err(|error| if_link(error, part))
            .attempt("creating", part)?;
        file.try_lock()
            .map_err(|error| match error {
                TryLockError::Error(error) => error,
                TryLockError::WouldBlock => {
                    io::Error::new(ErrorKind::ResourceBusy, "another receiver is writing it")
                }
            })
            .attempt("locking", part)?;
        if is_named(&file, part).attempt("locking", part)? {
            return Ok(file);
        }
    }
    let gone = "others take it away as often as it is opened";
    Err(io::Error::new(ErrorKind::ResourceBusy, gone)).attempt("locking", part)
}

/// A link in the file's place is not followed, and a pipe there is not waited for.
const NO_SURPRISES: i32 = (OFlags::NOFOLLOW.bits() | OFlags::NONBLOCK.bits()).cast_signed();

/// Refuses what is no file, such as a device.
fn ordinary(file: File) -> io::Result<File> {
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        let what = "there is something of that name that is no file";
        Err(io::Error::new(ErrorKind::InvalidInput, what))
    }
}

/// Says in plain words that a symbolic link was not followed.
fn if_link(error: io::Error, path: &Path) -> io::Error {
    let is_link = fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink());
    if is_link {
        io::Error::new(
            ErrorKind::InvalidInput,
            "it is a symbolic link, which is not followed",
        )
    } else {
        error
    }
}

/// Whether `path` still names `file`.
fn is_named(file: &File, path: &Path) -> io::Result<bool> {
    let ours = file.metadata()?;
    match fs::symlink_metadata(path) {
        Ok(named) => Ok((named.dev(), named.ino()) == (ours.dev(), ours.ino())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

impl Part {
    /// Opens or creates the part of `directory/name`, and locks it.
    pub(super) fn open(
        directory: &Path,
        name: &str,
        verified: &Verified,
    ) -> Result<Self, StorageError> {
        let part = with_suffix(directory, name, PART_SUFFIX);
        let state = with_suffix(directory, name, STATE_SUFFIX);
        let mut file = open_locked(&part)?;
        let vouched = read_state(&state);
        let wanted = vouched.map_or(0, |(wanted, _)| wanted);
        let identity = Identity::of(&file).attempt("reading", &part)?;
        let hasher = verified.of(&identity, wanted);
        file.seek(SeekFrom::Start(hasher.count()))
            .attempt("reading", &part)?;
        Ok(Self {
            file,
            directory: directory.to_owned(),
            target: directory.join(name),
            path: part,
            state,
            written: hasher.count(),
            hasher,
            buffer: Vec::with_capacity(WRITE_BUFFER),
            durable: blake3::Hasher::new(),
            vouched,
            verified: verified.clone(),
        })
    }

    /// Whether [`Part::recover`] has work to do.
    pub(super) const fn is_recovering(&self) -> bool {
        self.vouched.is_some()
    }

    /// Verifies some more of what the state vouches for. What does not agree is forgotten.
    pub(super) fn recover(&mut self) -> Result<(), StorageError> {
        let Some((wanted, digest)) = self.vouched else {
            return Ok(());
        };
        if self.written < wanted {
            let left = usize::try_from(wanted - self.written).unwrap_or(usize::MAX);
            let mut piece = vec![0; left.min(RECOVER_STEP)];
            match self.file.read_exact(&mut piece) {
                Ok(()) => {
                    self.hasher.update(&piece);
                    self.verified.count(piece.len());
                    self.written += piece.len() as u64;
                    return Ok(());
                }
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => return self.restart(),
                Err(error) => return Err(error).attempt("reading", &self.path),
            }
        }
        if self.digest() != digest {
            return self.restart();
        }
        self.vouched = None;
        self.durable = self.hasher.clone();
        // Octets beyond are from after the last checkpoint.
        self.file
            .set_len(wanted)
            .attempt("shortening", &self.path)?;
        Ok(())
    }

    /// Forgets everything.
    pub(super) fn restart(&mut self) -> Result<(), StorageError> {
        self.vouched = None;
        self.hasher.reset();
        self.buffer.clear();
        self.written = 0;
        self.durable.reset();
        remove_if_there(&self.state).attempt("removing", &self.state)?;
        self.file.set_len(0).attempt("shortening", &self.path)?;
        self.file
            .seek(SeekFrom::Start(0))
            .attempt("reading", &self.path)?;
        Ok(())
    }

    /// The octets that are here, in order.
    pub(super) const fn written(&self) -> u64 {
        self.written
    }

    /// The digest of those.
    pub(super) fn digest(&self) -> Digest {
        *self.hasher.finalize().as_bytes()
    }

    /// Adds the next octets.
    pub(super) fn append(&mut self, octets: &[u8]) -> Result<(), StorageError> {
        self.hasher.update(octets);
        self.written += octets.len() as u64;
        self.buffer.extend_from_slice(octets);
        if self.buffer.len() >= WRITE_BUFFER {
            self.flush()
        } else {
            Ok(())
        }
    }

    /// Puts octets where they belong; their digest is computed at the end.
    pub(super) fn place(&mut self, offset: u64, octets: &[u8]) -> Result<(), StorageError> {
        self.file
            .write_all_at(octets, offset)
            .attempt("writing", &self.path)
    }

    fn flush(&mut self) -> Result<(), StorageError> {
        self.file
            .write_all(&self.buffer)
            .attempt("writing", &self.path)?;
        self.buffer.clear();
        Ok(())
    }

    /// Makes everything so far survive a crash. While the part is being verified, the old state stays.
    pub(super) fn checkpoint(&mut self) -> Result<(), StorageError> {
        self.flush()?;
        if self.is_recovering() || self.written == self.durable.count() {
            return Ok(());
        }
        self.file.sync_data().attempt("syncing", &self.path)?;
        let line = format!(
            "fulmar-state 1 {} {}\n",
            self.written,
            self.hasher.finalize()
        );
        let fresh = self.state.with_extension("fulmar-state-new");
        let write = || -> io::Result<()> {
            // A file of that name, perhaps a link, is removed and not written through.
            remove_if_there(&fresh)?;
            let mut file = File::create_new(&fresh)?;
            file.write_all(line.as_bytes())?;
            file.sync_data()?;
            fs::rename(&fresh, &self.state)
        };
        let written = write();
        if written.is_err() {
            // The first failure is the one to report.
            drop(remove_if_there(&fresh));
        }
        written.attempt("writing", &self.state)?;
        self.durable = self.hasher.clone();
        Ok(())
    }

    /// Leaves the part to whoever continues it, as durable as it can be made.
    pub(super) fn leave(&mut self) -> Result<(), StorageError> {
        let outcome = self.checkpoint();
        self.remember();
        outcome
    }

    /// Notes how far the octets are known, so that they need not be read again. A process that can change them in the
    /// meantime holds the lock, and changes the state as well.
    fn remember(&self) {
        let known = if self.is_recovering() {
            &self.hasher
        } else {
            &self.durable
        };
        if let Ok(identity) = Identity::of(&self.file) {
            self.verified.keep(identity, known);
        }
    }

    /// Hashes a part whose octets were placed out of order, up to `size`.
    pub(super) fn rehash(&mut self, size: u64) -> Result<Digest, StorageError> {
        self.hasher.reset();
        self.file
            .seek(SeekFrom::Start(0))
            .attempt("reading", &self.path)?;
        let mut reader = (&self.file).take(size);
        let mut piece = vec![0; RECOVER_STEP];
        loop {
            let read = reader.read(&mut piece).attempt("reading", &self.path)?;
            if read == 0 {
                self.written = size;
                return Ok(self.digest());
            }
            self.hasher.update(piece.get(..read).unwrap_or_default());
        }
    }

    /// Turns the part into the file. `replace` permits an existing one to be replaced.
    pub(super) fn finish(mut self, replace: bool) -> Result<PathBuf, StorageError> {
        self.flush()?;
        self.file.sync_all().attempt("syncing", &self.path)?;
        if replace {
            fs::rename(&self.path, &self.target).attempt("renaming to", &self.target)?;
        } else {
            publish(&self.path, &self.target).attempt("creating", &self.target)?;
        }
        self.remove_state();
        self.sync_directory()?;
        Ok(self.target)
    }

    /// Makes names durable, as `sync_all` does octets.
    fn sync_directory(&self) -> Result<(), StorageError> {
        File::open(&self.directory)
            .and_then(|directory| directory.sync_all())
            .attempt("syncing", &self.directory)
    }

    /// Keeps the octets under a free name that says that the file is not complete. `size` makes room for the
    /// hole at the end, if there is one.
    pub(super) fn keep_incomplete(mut self, size: u64) -> Result<PathBuf, StorageError> {
        self.flush()?;
        self.file.set_len(size).attempt("writing", &self.path)?;
        self.file.sync_all().attempt("syncing", &self.path)?;
        let kept = self.publish_incomplete()?;
        self.remove_state();
        self.sync_directory()?;
        Ok(kept)
    }

    fn publish_incomplete(&self) -> Result<PathBuf, StorageError> {
        let mut count = 1;
        loop {
            let mut kept = self.target.clone().into_os_string();
            kept.push(INCOMPLETE_SUFFIX);
            if count > 1 {
                kept.push(format!("-{count}"));
            }
            let kept = PathBuf::from(kept);
            match publish(&self.path, &kept) {
                Err(error)
                    if error.kind() == ErrorKind::AlreadyExists && count < INCOMPLETE_MAX =>
                {
                    count += 1;
                }
                outcome => return outcome.attempt("creating", &kept).map(|()| kept),
            }
        }
    }

    /// Ends without an outcome and gives room back: octets that no state vouches for are of no use.
    /// Called after a failure, which a further error would only hide.
    pub(super) fn keep_durable(self) {
        if self.is_recovering() {
            // Not verified yet: the part stays for the next receiver to look at.
            self.remember();
        } else if self.durable.count() == 0 {
            drop(fs::remove_file(&self.path));
        } else if self.file.set_len(self.durable.count()).is_ok() {
            self.remember();
        }
    }

    /// A state without its part vouches for nothing, so a failure here does no harm.
    fn remove_state(&self) {
        drop(fs::remove_file(&self.state));
    }
}

/// Gives the complete `part` the name `target` in one step that replaces nothing: at no moment is
/// there a file of that name with less in it.
fn publish(part: &Path, target: &Path) -> io::Result<()> {
    match fs::hard_link(part, target) {
        Ok(()) => fs::remove_file(part),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(error),
        // A file system without hard links.
        Err(_) if fs::exists(target)? => Err(ErrorKind::AlreadyExists.into()),
        Err(_) => fs::rename(part, target),
    }
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The state, if there is one that makes sense.
fn read_state(path: &Path) -> Option<(u64, Digest)> {
    let mut text = String::new();
    OpenOptions::new()
        .read(true)
        .custom_flags(NO_SURPRISES)
        .open(path)
        .and_then(ordinary)
        .ok()?
        .take(STATE_BYTES_MAX)
        .read_to_string(&mut text)
        .ok()?;
    let mut words = text.strip_suffix('\n')?.split(' ');
    if (words.next(), words.next()) != (Some("fulmar-state"), Some("1")) {
        return None;
    }
    let written = words.next()?.parse().ok()?;
    let digest = blake3::Hash::from_hex(words.next()?).ok()?;
    words
        .next()
        .is_none()
        .then_some((written, *digest.as_bytes()))
}

#[cfg(test)]
mod tests;
