//! The digest by which a file is known.

use std::fs::File;
use std::io::{self, Read};

/// Octets read at once.
const STEP: usize = 1 << 20;

/// The number of octets of a file from its present position on, and their BLAKE3 digest.
///
/// # Errors
/// The file cannot be read.
pub fn file_digest(mut file: &File) -> io::Result<(u64, [u8; 32])> {
    let mut hasher = blake3::Hasher::new();
    let mut piece = vec![0; STEP];
    loop {
        let read = file.read(&mut piece)?;
        if read == 0 {
            return Ok((hasher.count(), *hasher.finalize().as_bytes()));
        }
        hasher.update(piece.get(..read).unwrap_or_default());
    }
}
