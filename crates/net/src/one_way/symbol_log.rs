//! The symbols of a file on the disk, in the order in which they came.
//!
//! Each record is `length (4 octets, big-endian) ‖ CRC-32 (4) ‖ content`. The first holds the announcement, the others block, unit
//! and octets of a symbol. A record counts only if its check fits, so nothing has to be noted beside the log: after a crash it ends
//! with the last whole record. Where the disk is full, what was not written yet is forgotten, and comes again.

use super::wire::Announcement;
use rustix::fs::OFlags;
use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, ErrorKind, Read};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

const HEAD_BYTES: usize = 8;
/// Block and unit before the octets of a symbol.
const PLACE_BYTES: usize = 4;
/// The longest content: a symbol of the longest length.
const CONTENT_BYTES_MAX: usize = PLACE_BYTES + u16::MAX as usize;
/// Octets collected before they are written.
const WRITE_BUFFER: usize = 1 << 17;
/// Only the owner may read or write.
const MODE: u32 = 0o600;

/// The place of a symbol in its log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LoggedSymbol {
    pub(super) block: u16,
    pub(super) unit: u16,
    /// The offset of its octets.
    pub(super) offset: u64,
}

/// The symbols of one file.
#[derive(Debug)]
pub(super) struct SymbolLog {
    file: File,
    path: PathBuf,
    /// The end of what was written.
    written: u64,
    buffer: Vec<u8>,
    /// The symbols in the buffer.
    unwritten: Vec<(u16, u16)>,
    is_synced: bool,
}

fn push_record(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; HEAD_BYTES]);
    write(out);
    let (head, content) = out[start..].split_at_mut(HEAD_BYTES);
    let len = u32::try_from(content.len()).unwrap_or(u32::MAX);
    head[..4].copy_from_slice(&len.to_be_bytes());
    head[4..].copy_from_slice(&crc32fast::hash(content).to_be_bytes());
}

/// The next record's content; `None`: the log ends here, or with half a record.
fn read_record(reader: &mut impl Read, content: &mut Vec<u8>) -> io::Result<Option<()>> {
    let mut head = [0; HEAD_BYTES];
    if !fill(reader, &mut head)? {
        return Ok(None);
    }
    let [a, b, c, d, check @ ..] = head;
    let len = u32::from_be_bytes([a, b, c, d]) as usize;
    if len > CONTENT_BYTES_MAX {
        return Ok(None);
    }
    content.resize(len, 0);
    let is_sound = fill(reader, content)? && crc32fast::hash(content) == u32::from_be_bytes(check);
    Ok(is_sound.then_some(()))
}

/// Fills `octets`; `false` at the end.
fn fill(reader: &mut impl Read, octets: &mut [u8]) -> io::Result<bool> {
    match reader.read_exact(octets) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

/// The content of a log.
#[derive(Debug)]
pub(super) struct LogContent {
    pub(super) announcement: Announcement,
    pub(super) symbols: Vec<LoggedSymbol>,
    end: u64,
}

impl LogContent {
    /// The block and unit of each symbol.
    pub(super) fn places(&self) -> impl Iterator<Item = (u16, u16)> + '_ {
        self.symbols
            .iter()
            .map(|symbol| (symbol.block, symbol.unit))
    }
}

/// Reads a log up to its last whole record; `None`: it has not even an announcement.
pub(super) fn read_log(file: &File) -> io::Result<Option<LogContent>> {
    let mut reader = BufReader::with_capacity(WRITE_BUFFER, file);
    let mut content = Vec::new();
    if read_record(&mut reader, &mut content)?.is_none() {
        return Ok(None);
    }
    let Some(announcement) = Announcement::read(&content) else {
        return Ok(None);
    };
    let mut end = (HEAD_BYTES + content.len()) as u64;
    let mut symbols = Vec::new();
    let symbol_bytes = usize::from(announcement.symbol_bytes);
    while read_record(&mut reader, &mut content)?.is_some() {
        let Some((&[a, b, c, d], octets)) = content.split_first_chunk() else {
            break;
        };
        if octets.len() != symbol_bytes {
            break;
        }
        symbols.push(LoggedSymbol {
            block: u16::from_be_bytes([a, b]),
            unit: u16::from_be_bytes([c, d]),
            offset: end + (HEAD_BYTES + PLACE_BYTES) as u64,
        });
        end += (HEAD_BYTES + content.len()) as u64;
    }
    Ok(Some(LogContent {
        announcement,
        symbols,
        end,
    }))
}

fn open(path: &Path, is_new: bool) -> io::Result<File> {
    // A link in its place is not followed, and a pipe there is not waited for.
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let mut options = OpenOptions::new();
    options
        .read(true)
        .write(true)
        .create(is_new)
        .truncate(false);
    let file = options.mode(MODE).custom_flags(flags).open(path)?;
    if !file.metadata()?.is_file() {
        let why = "there is something of that name that is no file";
        return Err(io::Error::new(ErrorKind::InvalidInput, why));
    }
    Ok(file)
}

impl SymbolLog {
    /// An empty log for a file.
    ///
    /// # Errors
    /// It cannot be made.
    pub(super) fn create(path: &Path, announcement: &Announcement) -> io::Result<Self> {
        let file = open(path, true)?;
        file.set_len(0)?;
        let mut log = Self {
            file,
            path: path.to_owned(),
            written: 0,
            buffer: Vec::new(),
            unwritten: Vec::new(),
            is_synced: false,
        };
        push_record(&mut log.buffer, |out| announcement.write(out));
        log.write()?;
        Ok(log)
    }

    /// A log of an earlier start, and its content; `None`: it is of no use.
    ///
    /// # Errors
    /// It cannot be read.
    pub(super) fn reopen(path: &Path) -> io::Result<Option<(Self, LogContent)>> {
        let found = Self::read(path)?;
        if let Some((log, _)) = &found {
            log.cut()?;
        }
        Ok(found)
    }

    /// The same, which changes nothing on the disk: before anything is added, [cut](SymbolLog::cut) the log.
    ///
    /// # Errors
    /// It cannot be read.
    pub(super) fn read(path: &Path) -> io::Result<Option<(Self, LogContent)>> {
        let file = open(path, false)?;
        let Some(content) = read_log(&file)? else {
            return Ok(None);
        };
        let log = Self {
            file,
            path: path.to_owned(),
            written: content.end,
            buffer: Vec::new(),
            unwritten: Vec::new(),
            is_synced: false,
        };
        Ok(Some((log, content)))
    }

    /// Cuts off what stands behind the last whole record.
    ///
    /// # Errors
    /// The disk failed.
    pub(super) fn cut(&self) -> io::Result<()> {
        self.file.set_len(self.written)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Adds a symbol. On an error, see [`SymbolLog::take_unwritten`].
    ///
    /// # Errors
    /// The disk is full, or failed.
    pub(super) fn append(&mut self, block: u16, unit: u16, octets: &[u8]) -> io::Result<()> {
        push_record(&mut self.buffer, |out| {
            out.extend_from_slice(&block.to_be_bytes());
            out.extend_from_slice(&unit.to_be_bytes());
            out.extend_from_slice(octets);
        });
        self.unwritten.push((block, unit));
        if self.buffer.len() >= WRITE_BUFFER {
            self.write()
        } else {
            Ok(())
        }
    }

    /// Writes what is collected, so that everybody can read it. Only [`SymbolLog::checkpoint`] makes it survive a crash.
    ///
    /// # Errors
    /// As [`SymbolLog::append`].
    pub(super) fn write(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        self.file.write_all_at(&self.buffer, self.written)?;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        self.unwritten.clear();
        self.is_synced = false;
        Ok(())
    }

    /// The file, if it was written to since this was asked last, so that somebody syncs it.
    pub(super) fn take_unsynced(&mut self) -> Option<io::Result<File>> {
        let was_synced = core::mem::replace(&mut self.is_synced, true);
        (!was_synced).then(|| self.file.try_clone())
    }

    /// Notes that a sync failed.
    pub(super) const fn note_unsynced(&mut self) {
        self.is_synced = false;
    }

    /// Makes everything so far survive a crash.
    ///
    /// # Errors
    /// As [`SymbolLog::append`].
    pub(super) fn checkpoint(&mut self) -> io::Result<()> {
        self.write()?;
        if !self.is_synced {
            self.file.sync_data()?;
            self.is_synced = true;
        }
        Ok(())
    }

    /// Forgets what could not be written, and says which symbols that were.
    pub(super) fn take_unwritten(&mut self) -> Vec<(u16, u16)> {
        self.buffer.clear();
        // Half a record at the end is overwritten by the next one. If even this fails, the check finds it.
        drop(self.file.set_len(self.written));
        core::mem::take(&mut self.unwritten)
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_file;
    use super::*;
    use std::fs;

    fn announcement() -> Announcement {
        Announcement {
            size: 100,
            symbol_bytes: 4,
            ..test_file::announcement()
        }
    }

    #[test]
    fn wherever_a_log_is_cut_or_damaged_the_whole_records_before_that_count() {
        let place = tempfile::tempdir().expect("a directory");
        let path = place.path().join("log");
        let mut log = SymbolLog::create(&path, &announcement()).expect("it is made");
        let start = log.written;
        for unit in 0..5 {
            log.append(2, unit, &[7; 4]).expect("there is room");
        }
        log.checkpoint().expect("there is room");
        let whole = fs::read(&path).expect("it is there");
        let record = (whole.len() as u64 - start) / 5;
        for cut in 0..whole.len() {
            fs::write(&path, &whole[..cut]).expect("it is ours");
            let expected = (cut as u64).checked_sub(start).map(|past| past / record);
            let found = SymbolLog::reopen(&path).expect("it is read");
            let symbols = found.map(|(_, content)| content.symbols.len() as u64);
            assert_eq!(symbols, expected, "cut at {cut}");
            let mut damaged = whole.clone();
            damaged[cut] ^= 1;
            fs::write(&path, &damaged).expect("it is ours");
            let found = SymbolLog::reopen(&path).expect("it is read");
            let symbols = found.map(|(_, content)| content.symbols.len() as u64);
            assert_eq!(symbols, expected, "damaged at {cut}");
        }
    }

    #[test]
    fn a_log_goes_on_behind_its_last_whole_record() {
        let place = tempfile::tempdir().expect("a directory");
        let path = place.path().join("log");
        let mut log = SymbolLog::create(&path, &announcement()).expect("it is made");
        log.append(0, 1, &[1; 4]).expect("there is room");
        log.checkpoint().expect("there is room");
        OpenOptions::new()
            .append(true)
            .open(&path)
            .and_then(|mut file| io::Write::write_all(&mut file, &[0, 0, 0]))
            .expect("it is ours");
        let (mut log, content) = SymbolLog::reopen(&path)
            .expect("it is read")
            .expect("it has an announcement");
        assert_eq!(content.announcement, announcement());
        log.append(0, 2, &[2; 4]).expect("there is room");
        log.append(3, 9, &[3; 4]).expect("there is room");
        log.write().expect("there is room");
        log.append(0, 4, &[4; 4]).expect("there is room");
        assert_eq!(log.take_unwritten(), [(0, 4)]);
        drop(log);
        let file = File::open(&path).expect("it is there");
        let content = read_log(&file)
            .expect("it is read")
            .expect("it has an announcement");
        let places: Vec<_> = content
            .symbols
            .iter()
            .map(|symbol| (symbol.block, symbol.unit))
            .collect();
        assert_eq!(places, [(0, 1), (0, 2), (3, 9)]);
        let mut octets = [0; 4];
        file.read_exact_at(&mut octets, content.symbols[2].offset)
            .expect("it is there");
        assert_eq!(octets, [3; 4]);
    }

    #[test]
    fn a_planted_link_is_not_written_through() {
        let place = tempfile::tempdir().expect("a directory");
        let victim = place.path().join("victim");
        fs::write(&victim, "7").expect("it is ours");
        let path = place.path().join("log");
        std::os::unix::fs::symlink(&victim, &path).expect("it is ours");
        assert!(SymbolLog::create(&path, &announcement()).is_err());
        assert_eq!(fs::read_to_string(&victim).expect("it is there"), "7");
    }
}
