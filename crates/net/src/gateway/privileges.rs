//! Capabilities (capabilities(7)): all but those that are needed later are given up once the ports are open.
//!
//! # Promises
//! - No thread of the gateway, and no process that it starts, has more: they are made afterwards, and a capability
//!   that was taken from the bounding set cannot be had again. One process is made before: the `nft` that holds
//!   the rules of `accelerate`, which hears nothing that the gateway says after the start.

use super::config::{EntryProtocol, GatewayConfig};
use super::error::GatewayError;
use rustix::process::geteuid;
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, capability_is_in_bounding_set,
    clear_ambient_capability_set, remove_capability_from_bounding_set, set_capabilities,
    set_no_new_privs,
};
use std::io;

/// The capabilities that a gateway with this configuration needs while it runs.
fn needed(config: &GatewayConfig, is_root: bool) -> CapabilitySet {
    let mut needed = CapabilitySet::empty();
    let mut transparent = config.transparent.iter();
    if transparent.any(|entry| entry.protocol == EntryProtocol::Udp) {
        // Each client is answered by a socket of its own under a foreign address and its port, which may
        // be a low one: 53 is.
        needed |= CapabilitySet::NET_ADMIN | CapabilitySet::NET_BIND_SERVICE;
    }
    if is_root {
        // The files that root was told to read or write may be anybody's.
        needed |= CapabilitySet::DAC_OVERRIDE;
    }
    needed
}

/// Gives up all capabilities of this thread, and of those that it starts, that a gateway does not need once its
/// ports are open. Call it before there are other threads.
///
/// # Errors
/// [`GatewayError::System`]: the kernel refuses, which it does not.
pub fn give_up_privileges(config: &GatewayConfig) -> Result<(), GatewayError> {
    give_up_all_but(needed(config, geteuid().is_root())).map_err(|source| GatewayError::System {
        what: "giving up capabilities",
        source,
    })
}

fn give_up_all_but(needed: CapabilitySet) -> io::Result<()> {
    let has = capabilities(None)?;
    if has.effective.contains(CapabilitySet::SETPCAP) {
        for capability in CapabilitySet::all().difference(needed) {
            // The kernel may know fewer than this program.
            if capability_is_in_bounding_set(capability).unwrap_or(false) {
                remove_capability_from_bounding_set(capability)?;
            }
        }
    }
    clear_ambient_capability_set()?;
    set_capabilities(
        None,
        CapabilitySets {
            effective: has.permitted & needed,
            permitted: has.permitted & needed,
            inheritable: CapabilitySet::empty(),
        },
    )?;
    Ok(set_no_new_privs(true)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(entries: &str) -> GatewayConfig {
        let text = format!(
            "[security]\nkind = \"none\"\n[[peer]]\nname = \"b\"\nrate = \"1mbit\"\n\
             [egress]\nallow = [\"10.0.0.1:80\"]\n{entries}"
        );
        GatewayConfig::read("a.toml", &text).unwrap()
    }

    #[test]
    fn only_what_each_client_of_a_transparent_udp_entry_needs_is_kept() {
        let transparent = |protocol| {
            read(&format!(
                "[[transparent]]\nprotocol = \"{protocol}\"\nlisten = \":4915\"\n"
            ))
        };
        assert_eq!(needed(&read(""), false), CapabilitySet::empty());
        assert_eq!(needed(&transparent("tcp"), false), CapabilitySet::empty());
        let both = CapabilitySet::NET_ADMIN | CapabilitySet::NET_BIND_SERVICE;
        assert_eq!(needed(&transparent("udp"), false), both);
        assert_eq!(needed(&read(""), true), CapabilitySet::DAC_OVERRIDE);
    }
}
