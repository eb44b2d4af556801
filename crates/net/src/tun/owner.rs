//! The maker of a network namespace: a file that the maker keeps locked while it lives.
//!
//! A killed maker cannot remove its namespaces. The kernel then drops the lock, and a process that finds the
//! file unlocked knows that the namespace is nobody's. The file also names the namespace's inode
//! (namespaces(7)), so that another one of the same name, made later by another program, is left alone.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The directory of these files, which is gone after a reboot, as the namespaces are.
const DIRECTORY: &str = "/run/fulmar/netns";

/// The proof that this process made, or took over, a namespace. It is void once dropped.
#[derive(Debug)]
pub(super) struct Owner {
    file: File,
    path: PathBuf,
}

fn open(name: &str) -> io::Result<(File, PathBuf)> {
    fs::create_dir_all(DIRECTORY)?;
    let path = Path::new(DIRECTORY).join(name);
    let mut options = File::options();
    let file = options.read(true).write(true).create(true).truncate(false);
    Ok((file.open(&path)?, path))
}

fn inode(namespace: &Path) -> io::Result<String> {
    Ok(fs::metadata(namespace)?.ino().to_string())
}

impl Owner {
    /// Notes that this process has just made `namespace`, called `name`.
    ///
    /// # Errors
    /// The note cannot be written.
    pub(super) fn of_made(name: &str, namespace: &Path) -> io::Result<Self> {
        let (mut file, path) = open(name)?;
        file.try_lock()?;
        file.set_len(0)?;
        file.rewind()?;
        file.write_all(inode(namespace)?.as_bytes())?;
        Ok(Self { file, path })
    }

    /// Removes the note of a namespace that was removed.
    pub(super) fn end(&self) {
        // The file is still locked, so no other process uses it.
        drop(fs::remove_file(&self.path));
        drop(self.file.unlock());
    }
}

/// Makes `namespace`, called `name`, ours if a maker that was killed left it. `None` if it is somebody
/// else's, or that of a maker that lives: links may share a namespace.
///
/// # Errors
/// The note cannot be read.
pub(super) fn take_over(name: &str, namespace: &Path) -> io::Result<Option<Owner>> {
    if !Path::new(DIRECTORY).join(name).exists() {
        return Ok(None);
    }
    let (mut file, path) = open(name)?;
    let mut noted = String::new();
    file.read_to_string(&mut noted)?;
    if noted != inode(namespace)? {
        return Ok(None);
    }
    match file.try_lock() {
        Ok(()) => Ok(Some(Owner { file, path })),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}
