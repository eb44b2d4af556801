//! A store's directory in the file system.
//!
//! Held by its descriptor, so that what was checked is what is used. Files are opened without following
//! links and without waiting, and believed by what their descriptors say.

use super::disk::{Disk, DiskFile, Foreign};
use super::error::StoreError;
use crate::ownership::{self, DIRECTORY_FORBIDDEN, FILE_FORBIDDEN};
use rustix::fs::{AtFlags, FileType, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The file that names the format and carries the lock.
const LOCK: &str = "store";
/// The name of the directory for damaged files.
pub(super) const ASIDE: &str = "damaged";
const ELSEWHERE: &str = "write another directory in [custody]";
const OURS: OFlags = OFlags::NOFOLLOW
    .union(OFlags::NONBLOCK)
    .union(OFlags::CLOEXEC);
/// The longest line: the format's name and number fit.
const LINE_BYTES_MAX: u64 = 64;

/// A directory that this process holds.
#[derive(Debug)]
pub(super) struct Directory {
    path: PathBuf,
    handle: File,
    /// Holds the lock.
    lock: File,
}

impl Directory {
    /// Makes the directory if need be, checks that it is ours, and takes its lock.
    pub(super) fn open(path: &Path) -> Result<Self, StoreError> {
        let is_new = !path.exists();
        let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
        made.map_err(StoreError::io("make", path))?;
        let flags = OFlags::DIRECTORY.bits().cast_signed();
        let handle = OpenOptions::new().read(true).custom_flags(flags).open(path);
        let handle = handle.map_err(StoreError::io("open", path))?;
        let metadata = handle.metadata().map_err(StoreError::io("look at", path))?;
        if let Some(problem) = ownership::problem(&metadata, DIRECTORY_FORBIDDEN, ELSEWHERE) {
            return Err(StoreError::Untrusted {
                path: path.to_owned(),
                problem,
            });
        }
        let lock_path = path.join(LOCK);
        let is_there = lock_path
            .try_exists()
            .map_err(StoreError::io("look at", &lock_path))?;
        if !is_there {
            let mut entries = path.read_dir().map_err(StoreError::io("list", path))?;
            if entries.next().is_some() && !lock_path.exists() {
                return Err(StoreError::NotAStore(path.to_owned()));
            }
        }
        let flags = OURS | OFlags::RDWR | OFlags::APPEND | OFlags::CREATE;
        let lock = open_at(&handle, LOCK, flags).map_err(|error| untrusted(&lock_path, error))?;
        match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Err(StoreError::InUse(path.to_owned())),
            Err(error) => return Err(StoreError::io("lock", &lock_path)(error.into())),
        }
        if is_new && let Some(parent) = path.parent() {
            // A power cut must not take the directory along with what was synced in it. A file system
            // that cannot sync a directory orders names by itself.
            drop(File::open(parent).and_then(|parent| parent.sync_all()));
        }
        Ok(Self {
            path: path.to_owned(),
            handle,
            lock,
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The line that names the format.
    pub(super) fn line(&self) -> Result<Vec<u8>, StoreError> {
        let mut line = Vec::new();
        let read = (&self.lock).take(LINE_BYTES_MAX).read_to_end(&mut line);
        read.map_err(StoreError::io("read", self.path.join(LOCK)))?;
        Ok(line)
    }

    /// Writes that line anew.
    pub(super) fn set_line(&self, line: &str) -> io::Result<()> {
        self.lock.set_len(0)?;
        (&self.lock).write_all(line.as_bytes())?;
        self.lock.sync_all()
    }

    /// The directory for damaged files, if there is one.
    fn aside(&self) -> io::Result<File> {
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY;
        let aside = File::from(rustix::fs::openat(
            &self.handle,
            ASIDE,
            flags,
            Mode::empty(),
        )?);
        match ownership::problem(&aside.metadata()?, DIRECTORY_FORBIDDEN, ELSEWHERE) {
            Some(problem) => Err(io::Error::other(Foreign(problem))),
            None => Ok(aside),
        }
    }
}

fn untrusted(path: &Path, error: io::Error) -> StoreError {
    let foreign = error.get_ref().and_then(|inner| inner.downcast_ref());
    if let Some(Foreign(problem)) = foreign {
        return StoreError::Untrusted {
            path: path.to_owned(),
            problem: problem.clone(),
        };
    }
    StoreError::io("open", path)(error)
}

/// Opens a file of ours.
fn open_at(directory: &File, name: &str, flags: OFlags) -> io::Result<File> {
    let foreign = |why: &str| io::Error::other(Foreign(why.to_owned()));
    let file = match rustix::fs::openat(directory, name, flags, Mode::RUSR | Mode::WUSR) {
        Ok(file) => File::from(file),
        Err(Errno::LOOP) => return Err(foreign("is a symbolic link: remove it")),
        Err(Errno::NXIO | Errno::ISDIR) => {
            return Err(foreign("is no regular file: remove it"));
        }
        Err(error) => return Err(error.into()),
    };
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(foreign("is no regular file: remove it"));
    }
    match ownership::problem(&metadata, FILE_FORBIDDEN, ELSEWHERE) {
        Some(problem) => Err(io::Error::other(Foreign(problem))),
        None => Ok(file),
    }
}

/// The names in a directory that are text; ours are.
fn names(directory: &File) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in rustix::fs::Dir::read_from(directory)? {
        if let Ok(name) = entry?.file_name().to_str() {
            names.push(name.to_owned());
        }
    }
    names.retain(|name| name != "." && name != "..");
    Ok(names)
}

fn length(directory: &File, name: &str) -> io::Result<u64> {
    let stat = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(u64::try_from(stat.st_size).unwrap_or(0))
}

impl Disk for Directory {
    fn list(&self) -> io::Result<Vec<String>> {
        names(&self.handle)
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let flags = OURS | OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
        Ok(Arc::new(open_at(&self.handle, name, flags)?))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        Ok(Arc::new(open_at(&self.handle, name, OURS | OFlags::RDWR)?))
    }

    fn distrust(&self, name: &str) -> io::Result<Option<String>> {
        let stat = rustix::fs::statat(&self.handle, name, AtFlags::SYMLINK_NOFOLLOW)?;
        let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        if !is_file || stat.st_uid != rustix::process::geteuid().as_raw() {
            return Ok(None);
        }
        Ok(ownership::writable(stat.st_mode, FILE_FORBIDDEN, ELSEWHERE))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.handle, name, AtFlags::empty())?)
    }

    fn sync_names(&self) -> io::Result<()> {
        self.handle.sync_all()
    }

    fn set_aside(&self, name: &str, aside: &str) -> io::Result<u64> {
        match rustix::fs::mkdirat(&self.handle, ASIDE, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        let place = self.aside()?;
        // Nobody else writes here, so that what is not there now is not there a moment later.
        match rustix::fs::statat(&place, aside, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(_) => return Err(Errno::EXIST.into()),
            Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
        rustix::fs::renameat(&self.handle, name, &place, aside)?;
        length(&place, aside)
    }

    fn list_aside(&self) -> io::Result<Vec<(String, u64)>> {
        let aside = match self.aside() {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            aside => aside?,
        };
        let mut found = Vec::new();
        for name in names(&aside)? {
            let octets = length(&aside, &name)?;
            found.push((name, octets));
        }
        Ok(found)
    }

    fn remove_aside(&self, aside: &str) -> io::Result<()> {
        let directory = self.aside()?;
        match rustix::fs::unlinkat(&directory, aside, AtFlags::empty()) {
            Err(Errno::ISDIR) => rustix::fs::unlinkat(&directory, aside, AtFlags::REMOVEDIR)?,
            removed => removed?,
        }
        Ok(())
    }
}

impl DiskFile for File {
    fn write_at(&self, pieces: &[IoSlice<'_>], place: u64) -> io::Result<usize> {
        Ok(rustix::io::pwritev(self, pieces, place)?)
    }

    fn read_at(&self, into: &mut [u8], place: u64) -> io::Result<usize> {
        FileExt::read_at(self, into, place)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        Self::set_len(self, len)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }
}
