//! Checks that no output overwrites its own input.

use crate::exit::{Exit, Failure, OrExit};
use anyhow::anyhow;
use fulmar_net::recording;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Refuses `output`, given by `flag`, if it is the file `input`, by whatever name.
///
/// # Errors
/// It is. A file that does not exist yet is no input.
pub(super) fn refuse(flag: &str, output: &Path, input: &Path) -> Result<(), Failure> {
    if !is_same(output, input) {
        return Ok(());
    }
    let (output, input) = (output.display(), input.display());
    Err(anyhow!(
        "{flag}: {output} is the input ({input}) and would be overwritten; name another file"
    ))
    .or_exit(Exit::Usage)
}

/// Refuses `output` as [`refuse`] does, and also if a former recording there would be kept under the name
/// of `input`.
///
/// # Errors
/// One of both is `input`.
pub(super) fn refuse_recording(flag: &str, output: &Path, input: &Path) -> Result<(), Failure> {
    refuse(flag, output, input)?;
    let former = recording::former(output);
    if !is_same(&former, input) {
        return Ok(());
    }
    let (output, former, input) = (output.display(), former.display(), input.display());
    Err(anyhow!(
        "{flag}: a former {output} is kept as {former}, which is the input ({input}); name another file"
    ))
    .or_exit(Exit::Usage)
}

/// Whether both are one file that overwriting would harm.
fn is_same(output: &Path, input: &Path) -> bool {
    let (Ok(written), Ok(read)) = (fs::metadata(output), fs::metadata(input)) else {
        return false;
    };
    let is_same = (written.dev(), written.ino()) == (read.dev(), read.ino());
    // A terminal is both, and harmed by neither.
    is_same && written.is_file()
}
