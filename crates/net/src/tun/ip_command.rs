//! iproute2's `ip`, run in the namespace of the calling thread.

use super::address::InterfaceAddress;
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

/// Whether the kernel has a route to exactly this network, in the namespace of the calling thread. `false` if it does not say.
pub(super) fn route_exists(network: InterfaceAddress) -> bool {
    let family = if network.ip().is_ipv6() { "-6" } else { "-4" };
    let output = Command::new("ip")
        .args([family, "route", "show", "exact", &network.to_string()])
        .stdin(Stdio::null())
        .output();
    output.is_ok_and(|output| !output.stdout.is_empty())
}
