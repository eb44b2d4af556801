//! The file's side of a recording: a thread that writes the encoded octets, and the reasons for its end.

use super::end::{EndOfRecording, RecordingEnd};
use super::spool::{Format, Spool};
use fulmar_proto::units::ByteCount;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl, fstatvfs};
use std::convert::Infallible;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// The settings of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordingConfig {
    /// The file. An existing one is renamed, with `.1` behind its name.
    pub file: PathBuf,
    /// The largest size of the file, before which the recording ends.
    pub max_size: ByteCount,
    /// Whether there must be no traffic without it.
    pub is_required: bool,
}

/// The reason why a recording does not begin.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// The file cannot be made.
    #[error("cannot write the {kind} {}", file.display())]
    File {
        /// The kind of its content: `capture` or `trace`.
        kind: &'static str,
        /// The file.
        file: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// There is no thread to write it.
    #[error("starting the thread of the {kind}")]
    Thread {
        /// The kind of its content.
        kind: &'static str,
        /// The system's reason.
        source: io::Error,
    },
}

/// A recording under way. Dropped, it writes what is left and closes its file.
#[derive(Debug)]
pub(crate) struct Recording<F: Format> {
    spool: Spool<F>,
    /// No value comes; the channel closes when the writer has ended.
    ended: mpsc::Receiver<Infallible>,
}

/// The time for which the one who drops a recording waits for its file, which may be a pipe that nobody reads.
const CLOSE_MAX: Duration = Duration::from_secs(2);
/// Octets written between two looks at the disk.
const WRITE_MAX: usize = 64 << 10;
/// A recording leaves this share of the disk to others ...
const RESERVE_SHARE: u64 = 20;
/// ... but no more than this.
const RESERVE_MAX: ByteCount = ByteCount(256 << 20);

/// The name of a former file at `path` once there is a new one.
pub fn former(path: &Path) -> PathBuf {
    let mut former = path.as_os_str().to_owned();
    former.push(".1");
    former.into()
}

/// Opens the file of a new recording. A former one, such as that of a crash, is kept beside it.
fn open(path: &Path) -> io::Result<File> {
    if fs::symlink_metadata(path).is_ok_and(|found| found.is_file() && found.len() > 0) {
        fs::rename(path, former(path))?;
    }
    let mut options = OpenOptions::new();
    let options = options.write(true).create(true).truncate(true).mode(0o600);
    // A pipe that nobody reads is an error, and does not hold the start up ...
    let nonblocking = OFlags::NONBLOCK.bits().cast_signed();
    let file = options.custom_flags(nonblocking).open(path)?;
    // ... but once there is a reader, it is waited for.
    fcntl_setfl(&file, fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
    // Without this, an empty file that was there would keep its mode. Devices and pipes must keep theirs.
    if file.metadata()?.is_file() {
        file.set_permissions(Permissions::from_mode(0o600))?;
    }
    Ok(file)
}

/// Whether `more` octets leave less of the file's disk than is kept for others.
fn is_short_of_disk(file: &File, more: usize) -> bool {
    let is_file = file.metadata().is_ok_and(|found| found.is_file());
    let Some(space) = fstatvfs(file).ok().filter(|_| is_file) else {
        return false;
    };
    let of = |blocks: u64| blocks.saturating_mul(space.f_frsize);
    let reserve = (of(space.f_blocks) / RESERVE_SHARE).min(RESERVE_MAX.0);
    of(space.f_bavail) < reserve.saturating_add(more as u64)
}

impl<F: Format> Recording<F> {
    /// Makes the file and begins a recording. `tell` is called once if it ends before it is dropped.
    ///
    /// # Errors
    /// [`RecordingError`]: there is no file, or no thread.
    pub(crate) fn start(
        config: RecordingConfig,
        format: F,
        tell: impl FnOnce(EndOfRecording) + Send + 'static,
    ) -> Result<Self, RecordingError> {
        let RecordingConfig {
            file: path,
            max_size,
            is_required: _,
        } = config;
        let kind = F::KIND;
        let file = open(&path).map_err(|source| RecordingError::File {
            kind,
            file: path.clone(),
            source,
        })?;
        let spool = Spool::new(format, max_size);
        let writer = spool.clone();
        let (ending, ended) = mpsc::channel::<Infallible>();
        thread::Builder::new()
            .name(kind.to_owned())
            .spawn(move || {
                let _ending = ending;
                if let Some(why) = write_out(&writer, file) {
                    let file = path;
                    tell(EndOfRecording { kind, file, why });
                }
            })
            .map_err(|source| RecordingError::Thread { kind, source })?;
        Ok(Self { spool, ended })
    }

    /// The spool that takes the entries.
    pub(crate) const fn spool(&self) -> &Spool<F> {
        &self.spool
    }
}

impl<F: Format> Drop for Recording<F> {
    fn drop(&mut self) {
        self.spool.close();
        // Either the writer has ended, or it is left to itself.
        let _ = self.ended.recv_timeout(CLOSE_MAX);
    }
}

/// Writes entries until nothing follows; returns the reason if it ended earlier.
fn write_out<F: Format>(spool: &Spool<F>, mut file: File) -> Option<RecordingEnd> {
    let mut encoded = Vec::new();
    let mut length = 0;
    loop {
        let goes_on = spool.take(&mut encoded);
        let mut written = 0;
        while written < encoded.len() {
            let end = encoded.len().min(written + WRITE_MAX);
            if is_short_of_disk(&file, end - written) {
                return Some(cut(spool, &file, (length, &encoded, written), SHORT));
            }
            match file.write(&encoded[written..end]) {
                Ok(more) if more > 0 => written += more,
                Ok(_) => return Some(cut(spool, &file, (length, &encoded, written), ZERO)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    let why = error.to_string();
                    return Some(cut(spool, &file, (length, &encoded, written), &why));
                }
            }
        }
        length += encoded.len() as u64;
        spool.wrote(F::entries(&encoded));
        if !goes_on {
            return spool.ended();
        }
    }
}

/// The reason for an end before the disk is full.
const SHORT: &str = "the rest of the disk is left to others";
/// The fault of a file that takes no octets without an error.
const ZERO: &str = "it takes nothing";

/// Cuts a file behind its last whole entry, when only `written` octets of those `encoded` at `length`
/// got into it.
fn cut<F: Format>(
    spool: &Spool<F>,
    file: &File,
    (length, encoded, written): (u64, &[u8], usize),
    why: &str,
) -> RecordingEnd {
    let whole = F::whole_octets(encoded, written);
    // Pipes and devices cannot be cut, and need not.
    let _ = file.set_len(length + whole as u64);
    spool.wrote(F::entries(&encoded[..whole]));
    spool.fail(why, F::entries(&encoded[whole..]));
    RecordingEnd::Disk(why.to_owned())
}
