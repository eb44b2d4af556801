//! The file's side: a thread that writes blocks out, and what ends it.

use super::recorder::Recorder;
use crate::clock::Clock;
use fulmar_capture::{InterfaceId, packet_count, whole_octets};
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

/// Where a capture goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaptureConfig {
    /// The file; one that is there is renamed, with `.1` behind its name.
    pub file: PathBuf,
    /// The capture ends before it gets larger.
    pub max_size: ByteCount,
    /// Whether there is to be no traffic without it.
    pub is_required: bool,
}

/// Why a capture does not begin.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// The file cannot be made.
    #[error("cannot write the capture {}", file.display())]
    File {
        /// Which one.
        file: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// There is no thread to write it.
    #[error("starting the capture's thread")]
    Thread(#[source] io::Error),
}

/// Why a capture ended before the traffic did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CaptureEnd {
    /// It has reached its largest size.
    Size,
    /// The file takes no more, for this reason.
    Disk(String),
}

/// That a capture ended, for one line of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndOfCapture {
    /// The file.
    pub file: PathBuf,
    /// Why.
    pub why: CaptureEnd,
}

impl core::fmt::Display for EndOfCapture {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let file = self.file.display();
        match &self.why {
            CaptureEnd::Size => write!(f, "the capture {file} has its largest size and ends"),
            CaptureEnd::Disk(why) => write!(f, "the capture {file} ends: {why}"),
        }
    }
}

/// A capture under way. Dropped, it writes what is left and closes its file.
#[derive(Debug)]
pub struct Capture {
    recorder: Recorder,
    /// Nothing comes; it closes when the writer has ended.
    ended: mpsc::Receiver<Infallible>,
}

/// Who drops a capture waits so long for its file, which may be a pipe that nobody reads.
const CLOSE_MAX: Duration = Duration::from_secs(2);
/// Octets written between two looks at the disk.
const WRITE_MAX: usize = 64 << 10;
/// A capture leaves this share of the disk to others ...
const RESERVE_SHARE: u64 = 20;
/// ... but no more than this.
const RESERVE_MAX: ByteCount = ByteCount(256 << 20);

/// Opens the file of a new capture. A former one, such as that of a crash, is kept beside it.
fn open(path: &Path) -> io::Result<File> {
    if fs::symlink_metadata(path).is_ok_and(|found| found.is_file() && found.len() > 0) {
        let mut former = path.as_os_str().to_owned();
        former.push(".1");
        fs::rename(path, former)?;
    }
    let mut options = OpenOptions::new();
    let options = options.write(true).create(true).truncate(true).mode(0o600);
    // A pipe that nobody reads is an error, and does not hold the start up ...
    let nonblocking = OFlags::NONBLOCK.bits().cast_signed();
    let file = options.custom_flags(nonblocking).open(path)?;
    // ... but once there is a reader, it is waited for.
    fcntl_setfl(&file, fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
    // An empty one that was there keeps its mode otherwise; devices and pipes are to keep theirs.
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

impl Capture {
    /// Makes the file and begins a capture that says `about` of itself, with these interfaces, by
    /// name and text. `tell` is called once if the capture ends before it is dropped.
    ///
    /// # Errors
    /// [`CaptureError`]: there is no file, or no thread.
    pub fn start<const N: usize>(
        clock: Clock,
        config: CaptureConfig,
        about: &str,
        interfaces: [(&str, &str); N],
        tell: impl FnOnce(EndOfCapture) + Send + 'static,
    ) -> Result<(Self, [InterfaceId; N]), CaptureError> {
        let CaptureConfig {
            file: path,
            max_size,
            is_required: _,
        } = config;
        let wrong = |source| CaptureError::File {
            file: path.clone(),
            source,
        };
        let file = open(&path).map_err(wrong)?;
        let (recorder, ids) = Recorder::new(clock, about, max_size, interfaces).map_err(wrong)?;
        let writer = recorder.clone();
        let (ending, ended) = mpsc::channel::<Infallible>();
        thread::Builder::new()
            .name("capture".to_owned())
            .spawn(move || {
                let _ending = ending;
                if let Some(why) = write_out(&writer, file) {
                    tell(EndOfCapture { file: path, why });
                }
            })
            .map_err(CaptureError::Thread)?;
        Ok((Self { recorder, ended }, ids))
    }

    /// Takes the packets.
    pub const fn recorder(&self) -> &Recorder {
        &self.recorder
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        self.recorder.close();
        // Either it has ended, or it is left to itself.
        let _ = self.ended.recv_timeout(CLOSE_MAX);
    }
}

/// Writes what comes until nothing follows; why that was before the end, if it was.
fn write_out(recorder: &Recorder, mut file: File) -> Option<CaptureEnd> {
    let mut blocks = Vec::new();
    let mut length = 0;
    loop {
        let goes_on = recorder.take(&mut blocks);
        let mut written = 0;
        while written < blocks.len() {
            let end = blocks.len().min(written + WRITE_MAX);
            if is_short_of_disk(&file, end - written) {
                return Some(cut(recorder, &file, (length, &blocks, written), SHORT));
            }
            match file.write(&blocks[written..end]) {
                Ok(more) if more > 0 => written += more,
                Ok(_) => return Some(cut(recorder, &file, (length, &blocks, written), ZERO)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    let why = error.to_string();
                    return Some(cut(recorder, &file, (length, &blocks, written), &why));
                }
            }
        }
        length += blocks.len() as u64;
        recorder.wrote(packet_count(&blocks));
        if !goes_on {
            return recorder.ended();
        }
    }
}

/// Why a capture ends before the disk is full.
const SHORT: &str = "the rest of the disk is left to others";
/// What a file did that is none.
const ZERO: &str = "it takes nothing";

/// Cuts a file behind its last whole packet, when only `written` octets of the `blocks` at `length`
/// got into it.
fn cut(
    recorder: &Recorder,
    file: &File,
    (length, blocks, written): (u64, &[u8], usize),
    why: &str,
) -> CaptureEnd {
    let whole = whole_octets(blocks, written);
    // Pipes and devices cannot be cut, and need not.
    let _ = file.set_len(length + whole as u64);
    recorder.wrote(packet_count(&blocks[..whole]));
    recorder.fail(why, packet_count(&blocks[whole..]));
    CaptureEnd::Disk(why.to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::{CaptureCounters, Seen};
    use super::*;
    use fulmar_capture::{Comment, Direction, Dissector};
    use fulmar_proto::units::Instant;

    const PACKET: [u8; 1_000] = [7; 1_000];

    fn start(file: PathBuf, max_size: u64) -> (Capture, InterfaceId, mpsc::Receiver<EndOfCapture>) {
        let (told, heard) = mpsc::channel();
        let max_size = ByteCount(max_size);
        let config = CaptureConfig {
            file,
            max_size,
            is_required: true,
        };
        let tell = move |ended| told.send(ended).expect("the test listens");
        let (capture, [interface]) =
            Capture::start(Clock::start(), config, "a test", [("a", "b")], tell).unwrap();
        (capture, interface, heard)
    }

    fn packet(capture: &Capture, interface: InterfaceId) {
        capture.recorder().packet(&Seen {
            interface,
            at: Instant::START,
            direction: Direction::Inbound,
            dissector: Dissector::Ip,
            ends: None,
            octets: &PACKET,
            comment: &Comment::NONE,
        });
    }

    #[test]
    fn a_capture_is_private_and_whole_and_keeps_the_former_one_beside_it() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("a.pcapng");
        fs::write(&file, vec![0xEE; 1 << 20]).unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
        let (capture, interface, heard) = start(file.clone(), u64::MAX);
        for _ in 0..500 {
            packet(&capture, interface);
        }
        let recorder = capture.recorder().clone();
        drop(capture);
        assert_eq!(recorder.counters().packets, 500);
        assert!(heard.recv().is_err(), "it did not end before");
        let mode = fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let octets = fs::read(&file).unwrap();
        assert_eq!(whole_octets(&octets, octets.len()), octets.len());
        assert_eq!(packet_count(&octets), 500);
        let former = fs::read(directory.path().join("a.pcapng.1")).unwrap();
        assert_eq!(former, vec![0xEE; 1 << 20]);
    }

    #[test]
    fn a_pipe_without_a_reader_is_an_error_and_one_that_is_not_read_holds_nothing_up() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("pipe");
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        let kind = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, &file, kind, mode, 0).unwrap();
        assert!(open(&file).is_err());
        let reader = OpenOptions::new()
            .read(true)
            .write(true)
            .open(&file)
            .unwrap();
        let (capture, interface, _heard) = start(file, u64::MAX);
        // A pipe holds 64 KiB.
        for _ in 0..200 {
            packet(&capture, interface);
        }
        drop(capture);
        drop(reader);
    }

    #[test]
    fn the_largest_size_is_never_passed_and_ends_the_capture_with_one_word() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("a.pcapng");
        let (capture, interface, heard) = start(file.clone(), 20_000);
        for _ in 0..100 {
            packet(&capture, interface);
        }
        let ended = heard.recv().unwrap();
        assert_eq!(ended.why, CaptureEnd::Size);
        let counters = capture.recorder().counters();
        assert_eq!(counters.packets + counters.missed, 100);
        drop(capture);
        assert!(heard.recv().is_err(), "it is said once");
        let octets = fs::read(&file).unwrap();
        assert!(octets.len() <= 20_000);
        assert!(octets.len() > 20_000 - 2 * PACKET.len(), "it is used");
        assert_eq!(packet_count(&octets), counters.packets);
    }

    #[test]
    fn a_full_device_ends_the_capture_and_nothing_in_it_is_counted() {
        let (capture, interface, heard) = start("/dev/full".into(), u64::MAX);
        // More than waits for a second look, so that it is written at once.
        for _ in 0..100 {
            packet(&capture, interface);
        }
        assert!(matches!(heard.recv().unwrap().why, CaptureEnd::Disk(_)));
        packet(&capture, interface);
        let all_missed = CaptureCounters {
            packets: 0,
            missed: 101,
        };
        assert_eq!(capture.recorder().counters(), all_missed);
    }

    #[test]
    fn a_file_that_cannot_be_made_is_an_error_that_names_it() {
        let config = CaptureConfig {
            file: "/nowhere/a.pcapng".into(),
            max_size: ByteCount(1),
            is_required: true,
        };
        let started = Capture::start(Clock::start(), config, "", [("a", "b")], |_| {});
        let error = started.unwrap_err().to_string();
        assert_eq!(error, "cannot write the capture /nowhere/a.pcapng");
    }
}
