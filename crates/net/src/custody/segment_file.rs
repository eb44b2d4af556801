//! Writing segment files.

use super::segment::{self, Header, RECORD_HEADER_BYTES};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

/// Makes the file of a segment. On failure there is none.
pub(super) fn create(directory: &Path, header: &Header) -> io::Result<File> {
    let path = directory.join(segment::file_name(header.flow, header.start));
    let mut options = OpenOptions::new();
    let options = options.read(true).write(true).create_new(true).mode(0o600);
    let file = options.open(&path)?;
    if let Err(error) = file.write_all_at(&header.encode(), 0) {
        drop(std::fs::remove_file(&path));
        return Err(error);
    }
    Ok(file)
}

/// Writes a record at `place`. On failure a part of it may be there.
pub(super) fn write_record(
    file: &File,
    header: &[u8; RECORD_HEADER_BYTES],
    octets: &[u8],
    place: u64,
) -> io::Result<()> {
    let pieces = segment::record(header, octets);
    let written = rustix::io::pwritev(file, &pieces, place)?;
    let after = place + written as u64;
    // Seldom: a signal, or the last octets of a disk.
    if let Some(written) = written.checked_sub(header.len()) {
        file.write_all_at(octets.get(written..).unwrap_or(&[]), after)
    } else {
        file.write_all_at(header.get(written..).unwrap_or(&[]), after)?;
        file.write_all_at(octets, place + header.len() as u64)
    }
}
