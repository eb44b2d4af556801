//! A file that is being received: what is on the disk, what is known of it, and how it becomes whole.
//!
//! `NAME.fulmar-part` holds the octets, `NAME.fulmar-state` says how many of them are durable and
//! their BLAKE3 digest. Only the octets that the state vouches for are taken up again, after their
//! digest was computed anew from the disk.
//!
//! # Promises
//! - A checkpoint syncs the octets before it replaces the state, by rename: after a crash or a power
//!   loss at any moment the state is either the old or the new one, and never promises too much.
//! - `NAME` appears only complete, verified and synced, in one step, and replaces nothing unless
//!   that was asked for.
//! - One receiver at a time: the part is locked.

use super::name::{PART_SUFFIX, STATE_SUFFIX};
use super::record::Digest;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The end of the name of a file that will not become complete.
pub(super) const INCOMPLETE_SUFFIX: &str = ".incomplete";
/// Octets hashed at once while a part is taken up again: some milliseconds of work.
const RECOVER_STEP: usize = 1 << 20;
/// Octets collected before they are written.
const WRITE_BUFFER: usize = 1 << 17;
/// A state file is one line; more than this is none of ours.
const STATE_BYTES_MAX: u64 = 200;

/// Something failed on the disk, and what it was.
#[derive(Debug, thiserror::Error)]
#[error("{attempt} {}", path.display())]
pub struct StorageError {
    /// What was being done: "writing", "creating".
    pub attempt: &'static str,
    /// To which file.
    pub path: PathBuf,
    /// What the system says.
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
    durable: u64,
    /// What the state vouches for, until it has been verified.
    vouched: Option<(u64, Digest)>,
}

fn with_suffix(directory: &Path, name: &str, suffix: &str) -> PathBuf {
    directory.join(format!("{name}{suffix}"))
}

impl Part {
    /// Opens or creates the part of `directory/name`, and locks it.
    pub(super) fn open(directory: &Path, name: &str) -> Result<Self, StorageError> {
        let part = with_suffix(directory, name, PART_SUFFIX);
        let state = with_suffix(directory, name, STATE_SUFFIX);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let file = options.open(&part).attempt("creating", &part)?;
        file.try_lock()
            .map_err(|error| match error {
                TryLockError::Error(error) => error,
                TryLockError::WouldBlock => {
                    io::Error::new(ErrorKind::ResourceBusy, "another receiver is writing it")
                }
            })
            .attempt("locking", &part)?;
        let vouched = read_state(&state);
        Ok(Self {
            file,
            directory: directory.to_owned(),
            target: directory.join(name),
            path: part,
            state,
            hasher: blake3::Hasher::new(),
            written: 0,
            buffer: Vec::with_capacity(WRITE_BUFFER),
            durable: 0,
            vouched,
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
        self.durable = wanted;
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
        self.durable = 0;
        match fs::remove_file(&self.state) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(error).attempt("removing", &self.state);
            }
            _ => {}
        }
        self.file.set_len(0).attempt("shortening", &self.path)?;
        self.file
            .seek(SeekFrom::Start(0))
            .attempt("reading", &self.path)?;
        Ok(())
    }

    /// How many octets are there, in order.
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

    /// Makes everything so far survive a crash.
    pub(super) fn checkpoint(&mut self) -> Result<(), StorageError> {
        self.flush()?;
        if self.written == self.durable {
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
            let mut file = File::create(&fresh)?;
            file.write_all(line.as_bytes())?;
            file.sync_data()?;
            fs::rename(&fresh, &self.state)
        };
        write().attempt("writing", &self.state)?;
        self.durable = self.written;
        Ok(())
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

    /// Keeps what is there under a name that says that it is not complete. `size` makes room for the
    /// hole at the end, if there is one.
    pub(super) fn keep_incomplete(mut self, size: u64) -> Result<PathBuf, StorageError> {
        self.flush()?;
        self.file.set_len(size).attempt("writing", &self.path)?;
        self.file.sync_all().attempt("syncing", &self.path)?;
        let mut kept = self.target.clone().into_os_string();
        kept.push(INCOMPLETE_SUFFIX);
        let kept = PathBuf::from(kept);
        fs::rename(&self.path, &kept).attempt("renaming to", &kept)?;
        self.remove_state();
        self.sync_directory()?;
        Ok(kept)
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

/// The state, if there is one that makes sense.
fn read_state(path: &Path) -> Option<(u64, Digest)> {
    let mut text = String::new();
    File::open(path)
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
mod tests {
    use super::*;

    fn recovered(directory: &Path) -> Part {
        let mut part = Part::open(directory, "file").unwrap();
        while part.is_recovering() {
            part.recover().unwrap();
        }
        part
    }

    #[test]
    fn only_what_was_checkpointed_is_taken_up_again() {
        let directory = tempfile::tempdir().unwrap();
        let mut part = recovered(directory.path());
        part.append(b"durable").unwrap();
        part.checkpoint().unwrap();
        part.append(&vec![b'x'; WRITE_BUFFER + 1]).unwrap();
        drop(part);
        let mut part = recovered(directory.path());
        assert_eq!(part.written(), 7);
        part.append(b" and more").unwrap();
        let target = part.finish(false).unwrap();
        assert_eq!(fs::read(target).unwrap(), b"durable and more");
        assert_eq!(
            fs::read_dir(directory.path()).unwrap().count(),
            1,
            "nothing is left behind"
        );
    }

    #[test]
    fn a_part_that_was_changed_is_forgotten() {
        let directory = tempfile::tempdir().unwrap();
        let mut part = recovered(directory.path());
        part.append(b"durable").unwrap();
        part.checkpoint().unwrap();
        drop(part);
        fs::write(directory.path().join("file.fulmar-part"), b"durablE").unwrap();
        assert_eq!(recovered(directory.path()).written(), 0);
    }

    #[test]
    fn a_part_shorter_than_its_state_is_forgotten() {
        let directory = tempfile::tempdir().unwrap();
        let mut part = recovered(directory.path());
        part.append(b"durable").unwrap();
        part.checkpoint().unwrap();
        drop(part);
        fs::write(directory.path().join("file.fulmar-part"), b"dur").unwrap();
        assert_eq!(recovered(directory.path()).written(), 0);
    }

    #[test]
    fn an_existing_file_is_replaced_only_on_request() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("file"), b"precious").unwrap();
        let mut part = recovered(directory.path());
        part.append(b"new").unwrap();
        assert_eq!(
            part.finish(false).unwrap_err().source.kind(),
            ErrorKind::AlreadyExists
        );
        assert_eq!(
            fs::read(directory.path().join("file")).unwrap(),
            b"precious"
        );
        let mut part = recovered(directory.path());
        part.restart().unwrap();
        part.append(b"new").unwrap();
        part.finish(true).unwrap();
        assert_eq!(fs::read(directory.path().join("file")).unwrap(), b"new");
    }

    #[test]
    fn a_second_receiver_of_the_same_file_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let _first = recovered(directory.path());
        let refused = Part::open(directory.path(), "file").unwrap_err();
        assert_eq!(refused.source.kind(), ErrorKind::ResourceBusy);
    }

    #[test]
    fn states_that_make_no_sense_vouch_for_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state");
        let digest = blake3::hash(b"").to_hex();
        for text in [
            String::new(),
            format!("fulmar-state 2 0 {digest}\n"),
            format!("fulmar-state 1 -1 {digest}\n"),
            format!("fulmar-state 1 0 {digest}"),
            format!("fulmar-state 1 0 {digest} more\n"),
            "fulmar-state 1 0 beef\n".to_owned(),
        ] {
            fs::write(&path, &text).unwrap();
            assert_eq!(read_state(&path), None, "{text:?}");
        }
        fs::write(&path, format!("fulmar-state 1 0 {digest}\n")).unwrap();
        assert_eq!(read_state(&path), Some((0, *blake3::hash(b"").as_bytes())));
    }
}
