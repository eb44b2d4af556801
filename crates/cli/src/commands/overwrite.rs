//! No output takes the place of its own input.

use crate::exit::{Exit, Failure, OrExit};
use anyhow::anyhow;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Refuses `output`, given by `flag`, if it is the file `input`, by whatever name.
///
/// # Errors
/// It is. What does not exist yet is no input.
pub(super) fn refuse(flag: &str, output: &Path, input: &Path) -> Result<(), Failure> {
    let (Ok(written), Ok(read)) = (fs::metadata(output), fs::metadata(input)) else {
        return Ok(());
    };
    let is_same = (written.dev(), written.ino()) == (read.dev(), read.ino());
    // A terminal is both, and harmed by neither.
    if !is_same || !written.is_file() {
        return Ok(());
    }
    let (output, input) = (output.display(), input.display());
    Err(anyhow!(
        "{flag}: {output} is the input ({input}) and would be overwritten; name another file"
    ))
    .or_exit(Exit::Usage)
}
