//! Small files that must survive a crash, in a directory that others may not tamper with.
//!
//! A file is believed only if it is ours: a regular file, no link, owned by our user, and writable by
//! nobody else. Otherwise whoever can write into the directory could set our epoch, or make us overwrite
//! another file.

use crate::clock::Clock;
use crate::ownership::{self, DIRECTORY_FORBIDDEN, FILE_FORBIDDEN};
use crate::wait::wait;
use core::time::Duration;
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Only the owner may read or write.
const FILE_MODE: u32 = 0o600;
const DIRECTORY_MODE: u32 = 0o700;
const ELSEWHERE: &str = "write a state_dir of the gateway's own";
/// The longest wait for the lock, while another start reads and replaces a small file. Whoever can read the directory
/// can take its lock for good, and must not hold us up with it.
const LOCK_PATIENCE: Duration = Duration::from_secs(10);
/// The pause between two tries to take the lock.
const LOCK_PAUSE: Duration = Duration::from_millis(10);
/// The longest state file: a few numbers.
const FILE_BYTES_MAX: u64 = 64 << 10;

/// The reason why a state file cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StateFileError {
    /// It cannot be read.
    #[error("reading {}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// It cannot be written, or its directory not be made.
    #[error("writing {}", .path.display())]
    Write {
        /// The file or directory.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// Others may have put it there or changed it.
    #[error("{} {problem}", .path.display())]
    Untrusted {
        /// The file or directory.
        path: PathBuf,
        /// The fault, and the remedy.
        problem: String,
    },
}

/// A directory for state, held by us alone as long as this lives.
#[derive(Debug)]
pub struct StateDirectory {
    path: PathBuf,
    /// The directory, whose lock makes reading and replacing one step.
    directory: File,
}

/// Takes the directory's lock, unless somebody keeps it.
fn lock(directory: &File, patience: Duration) -> io::Result<()> {
    let clock = Clock::start();
    let until = clock.now() + patience;
    loop {
        match flock(directory, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) if clock.now() < until => {
                wait(&[], Some(LOCK_PAUSE), &mut Vec::new())?;
            }
            Err(Errno::WOULDBLOCK) => {
                let why = "another process keeps its lock: find it with `fuser -v` on the directory, \
                           or write another state_dir";
                return Err(io::Error::new(io::ErrorKind::ResourceBusy, why));
            }
            locked => return Ok(locked?),
        }
    }
}

impl StateDirectory {
    /// Makes the directory if need be, for our user alone, and locks it: another process that opens
    /// it waits, for ten seconds at most.
    ///
    /// # Errors
    /// [`StateFileError`]: it cannot be made, others may write into it, or another process keeps its lock.
    pub fn open(path: &Path) -> Result<Self, StateFileError> {
        Self::open_within(path, LOCK_PATIENCE)
    }

    fn open_within(path: &Path, patience: Duration) -> Result<Self, StateFileError> {
        let failed = |source| StateFileError::Write {
            path: path.to_owned(),
            source,
        };
        DirBuilder::new()
            .recursive(true)
            .mode(DIRECTORY_MODE)
            .create(path)
            .map_err(failed)?;
        let flags = OFlags::DIRECTORY.bits().cast_signed();
        let directory = OpenOptions::new().read(true).custom_flags(flags).open(path);
        let directory = directory.map_err(failed)?;
        let metadata = directory.metadata().map_err(failed)?;
        if let Some(problem) = ownership::problem(&metadata, DIRECTORY_FORBIDDEN, ELSEWHERE) {
            return Err(StateFileError::Untrusted {
                path: path.to_owned(),
                problem,
            });
        }
        lock(&directory, patience).map_err(failed)?;
        Ok(Self {
            path: path.to_owned(),
            directory,
        })
    }

    /// The path of the file of this name.
    pub fn path_of(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// The file's content; `None` if there is none.
    ///
    /// # Errors
    /// [`StateFileError`]: it cannot be read, or is not ours.
    pub fn read(&self, name: &str) -> Result<Option<String>, StateFileError> {
        let path = self.path_of(name);
        let untrusted = |problem: &str| StateFileError::Untrusted {
            path: path.clone(),
            problem: problem.to_owned(),
        };
        let failed = |source| StateFileError::Read {
            path: path.clone(),
            source,
        };
        // Opening a pipe would hold us up.
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(flags)
            .open(&path);
        let file = match file {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) if error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => {
                return Err(untrusted("is a symbolic link: remove it"));
            }
            Err(error) => return Err(failed(error)),
        };
        let metadata = file.metadata().map_err(failed)?;
        if !metadata.is_file() {
            return Err(untrusted("is no regular file: remove it"));
        }
        if let Some(problem) = ownership::problem(&metadata, FILE_FORBIDDEN, ELSEWHERE) {
            return Err(untrusted(&problem));
        }
        let mut text = String::new();
        let read = file.take(FILE_BYTES_MAX).read_to_string(&mut text);
        read.map_err(failed)?;
        Ok(Some(text))
    }

    /// Replaces the file; it is on the disk when this returns. A crash leaves the old file or the new one.
    ///
    /// # Errors
    /// [`StateFileError`]: it cannot be written.
    pub fn replace(&self, name: &str, text: &str) -> Result<(), StateFileError> {
        let path = self.path_of(name);
        let failed = |source| StateFileError::Write {
            path: path.clone(),
            source,
        };
        let beside = self.path_of(&format!("{name}.new"));
        // The file is left from a crash, or is somebody's link: in either case it must not be written through.
        match fs::remove_file(&beside) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
        let write = || {
            let mut file = OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(FILE_MODE)
                .open(&beside)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&beside, &path)?;
            self.directory.sync_all()
        };
        write().map_err(failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::geteuid;
    use std::fs::Permissions;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    fn place() -> (tempfile::TempDir, StateDirectory) {
        let place = tempfile::tempdir().unwrap();
        let directory = StateDirectory::open(&place.path().join("a/b")).unwrap();
        (place, directory)
    }

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().mode() & 0o777
    }

    #[test]
    fn what_is_made_is_for_our_user_alone() {
        let (place, directory) = place();
        directory.replace("file", "1\n").unwrap();
        directory.replace("file", "2\n").unwrap();
        assert_eq!(directory.read("file").unwrap().as_deref(), Some("2\n"));
        assert_eq!(directory.read("other").unwrap(), None);
        assert_eq!(mode(&directory.path_of("file")), 0o600);
        assert_eq!(mode(&place.path().join("a")), 0o700);
        assert_eq!(mode(&place.path().join("a/b")), 0o700);
    }

    #[test]
    fn a_planted_link_is_neither_read_nor_written_through() {
        let (place, directory) = place();
        let victim = place.path().join("victim");
        fs::write(&victim, "7").unwrap();
        symlink(&victim, directory.path_of("file")).unwrap();
        symlink(&victim, directory.path_of("file.new")).unwrap();
        let refused = directory.read("file").unwrap_err().to_string();
        assert!(refused.contains("symbolic link"), "{refused}");
        directory.replace("file", "8").unwrap();
        assert_eq!(fs::read_to_string(&victim).unwrap(), "7");
        assert_eq!(directory.read("file").unwrap().as_deref(), Some("8"));
    }

    #[test]
    fn what_others_may_write_is_refused_with_the_remedy() {
        let (place, directory) = place();
        directory.replace("file", "1").unwrap();
        let path = directory.path_of("file");
        fs::set_permissions(&path, Permissions::from_mode(0o620)).unwrap();
        let refused = directory.read("file").unwrap_err().to_string();
        assert!(
            refused.contains("620") && refused.contains("chmod 600"),
            "{refused}"
        );
        let open = place.path().join("open");
        fs::create_dir(&open).unwrap();
        fs::set_permissions(&open, Permissions::from_mode(0o1777)).unwrap();
        let refused = StateDirectory::open(&open).unwrap_err().to_string();
        assert!(refused.contains("chmod 700"), "{refused}");
    }

    #[test]
    fn who_keeps_the_lock_holds_nobody_up() {
        let (place, directory) = place();
        let path = place.path().join("a/b");
        let refused = StateDirectory::open_within(&path, 3 * LOCK_PAUSE).unwrap_err();
        let StateFileError::Write { source, .. } = refused else {
            panic!("{refused}");
        };
        assert!(source.to_string().contains("keeps its lock"), "{source}");
        drop(directory);
        StateDirectory::open_within(&path, 3 * LOCK_PAUSE).unwrap();
    }

    #[test]
    fn somebody_elses_file_is_refused() {
        let (_place, directory) = place();
        directory.replace("file", "1").unwrap();
        let path = directory.path_of("file");
        // Only root can give files away; for others the check of the mode, above, is the test.
        if geteuid().is_root() {
            std::os::unix::fs::chown(&path, Some(12_345), None).unwrap();
            let refused = directory.read("file").unwrap_err().to_string();
            assert!(refused.contains("user 12345"), "{refused}");
        }
    }

    #[test]
    fn a_directory_or_pipe_in_the_files_place_holds_nobody_up() {
        let (_place, directory) = place();
        fs::create_dir(directory.path_of("file")).unwrap();
        let refused = directory.read("file").unwrap_err().to_string();
        assert!(refused.contains("no regular file"), "{refused}");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            directory.path_of("pipe"),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
            0,
        )
        .unwrap();
        let refused = directory.read("pipe").unwrap_err().to_string();
        assert!(refused.contains("no regular file"), "{refused}");
    }
}
