//! The rights of the process, asked before anything is made.

use super::error::TunError;
use rustix::thread::{CapabilitySet, capabilities};
use std::path::Path;

/// # Errors
/// [`TunError::Privilege`] or [`TunError::NoDriver`].
pub(super) fn check(namespaces: bool) -> Result<(), TunError> {
    // A kernel that does not tell is tested by trying.
    if let Ok(sets) = capabilities(None) {
        if !sets.effective.contains(CapabilitySet::NET_ADMIN) {
            return Err(TunError::Privilege("the capability CAP_NET_ADMIN"));
        }
        // Entering a namespace (setns(2)) and mounting its name (ip-netns(8)).
        if namespaces && !sets.effective.contains(CapabilitySet::SYS_ADMIN) {
            return Err(TunError::Privilege("the capability CAP_SYS_ADMIN"));
        }
    }
    if Path::new("/dev/net/tun").exists() {
        Ok(())
    } else {
        Err(TunError::NoDriver)
    }
}
