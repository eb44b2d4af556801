//! iproute2's `ip`, run in the namespace of the calling thread.

use super::error::TunError;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// Runs `ip` with `arguments`, separated by blanks.
///
/// # Errors
/// [`TunError::NoIp`], or [`TunError::Ip`] with the command's error message.
pub(super) fn ip(arguments: &str) -> Result<(), TunError> {
    // A process group of its own: Ctrl-C is meant for us, and must not cut a clean-up short.
    let output = Command::new("ip")
        .args(arguments.split_whitespace())
        .stdin(Stdio::null())
        .process_group(0)
        .output()
        .map_err(TunError::NoIp)?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(TunError::Ip {
        arguments: arguments.to_owned(),
        said: said.split_whitespace().collect::<Vec<_>>().join(" "),
    })
}
