//! The writing of segment files.

use super::disk::{self, Disk, DiskFile};
use super::segment::{self, HEADER_BYTES, Header, Layout, RECORD_HEADER_BYTES};
use std::io::{self, ErrorKind, IoSlice};
use std::sync::Arc;

/// A file that could not be made.
#[derive(Debug)]
pub(super) struct NotMade {
    pub(super) error: io::Error,
    /// Whether a file with a header, maybe, could not be removed. The next try uses it; without one it must go before
    /// the octets around it do.
    pub(super) is_left: bool,
}

impl From<io::Error> for NotMade {
    fn from(error: io::Error) -> Self {
        let is_left = false;
        Self { error, is_left }
    }
}

/// Makes the file of a segment, the `first` of its flow or a later one.
pub(super) fn create(
    disk: &dyn Disk,
    header: &Header,
    first: bool,
) -> Result<Arc<dyn DiskFile>, NotMade> {
    let name = segment::file_name(header.flow, header.start);
    let file = match disk.create(&name) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => left_over(disk, &name, first)?,
        created => created?,
    };
    let slot = header.encode(Layout::Two);
    let empty = [0; HEADER_BYTES];
    let mut pieces = [
        IoSlice::new(&slot),
        IoSlice::new(&empty[..HEADER_BYTES - slot.len()]),
    ];
    if let Err(error) = disk::write_all(&*file, &mut pieces, 0) {
        let removed = disk.remove(&name);
        let is_left = removed.is_err_and(|error| error.kind() != ErrorKind::NotFound);
        return Err(NotMade { error, is_left });
    }
    Ok(file)
}

/// A file that an earlier try could neither write nor remove. It has no records; if it is the first of its
/// flow and has a header, then there is such a flow already.
fn left_over(disk: &dyn Disk, name: &str, first: bool) -> io::Result<Arc<dyn DiskFile>> {
    let file = disk.open(name)?;
    let mut octets = [0; HEADER_BYTES];
    let read = disk::read_full(&*file, &mut octets, 0)?;
    let is_taken = first && Header::find(&octets[..read]).is_ok();
    if is_taken || file.len()? > HEADER_BYTES as u64 {
        return Err(ErrorKind::AlreadyExists.into());
    }
    Ok(file)
}

/// Writes a record at `place`. On failure a part of it may be there.
pub(super) fn write_record(
    file: &dyn DiskFile,
    header: &[u8; RECORD_HEADER_BYTES],
    octets: &[u8],
    place: u64,
) -> io::Result<()> {
    disk::write_all(file, &mut segment::record(header, octets), place)
}
