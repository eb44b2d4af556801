//! Capabilities (capabilities(7)): all but those that are needed later are given up once the ports are open.
//!
//! # Promises
//! - No thread of the gateway, and no process that it starts, has more: they are made afterwards, and a capability
//!   that was taken from the bounding set cannot be had again. Three processes are made before, for each tunnel with
//!   `accelerate`: the shell, `cat` and `nft` that hold its rules. They have [`CapabilitySet::NET_ADMIN`] and no other, none
//!   to be had again, and hear nothing that the gateway says after the start. Their user is the gateway's.

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

/// Does `work`, which starts a process, on a thread with no capabilities but `kept`: the process has no others.
///
/// # Errors
/// Those of `work`, and the kernel's.
pub(super) fn with_no_more_than<T: Send>(
    kept: CapabilitySet,
    work: impl FnOnce() -> io::Result<T> + Send,
) -> io::Result<T> {
    let confined = || {
        let has = bound(kept)?;
        // What a user other than root hands on are ambient capabilities, and those are inheritable ones.
        set_capabilities(
            None,
            CapabilitySets {
                effective: has.permitted & kept,
                permitted: has.permitted & kept,
                inheritable: has.inheritable & kept,
            },
        )?;
        set_no_new_privs(true)?;
        work()
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().spawn_scoped(scope, confined)?;
        let panicked = |_| Err(io::Error::other("the thread that starts it has panicked"));
        thread.join().unwrap_or_else(panicked)
    })
}

fn give_up_all_but(needed: CapabilitySet) -> io::Result<()> {
    let has = bound(needed)?;
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

/// Takes all but `needed` from this thread's bounding set, if it may; returns the capabilities that it has.
fn bound(needed: CapabilitySet) -> io::Result<CapabilitySets> {
    let has = capabilities(None)?;
    if has.effective.contains(CapabilitySet::SETPCAP) {
        for capability in CapabilitySet::all().difference(needed) {
            // The kernel may know fewer than this program.
            if capability_is_in_bounding_set(capability).unwrap_or(false) {
                remove_capability_from_bounding_set(capability)?;
            }
        }
    }
    Ok(has)
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

    #[test]
    fn a_process_that_is_to_have_one_capability_has_no_other_and_we_keep_ours() {
        let sets = |status: &str| -> Vec<u64> {
            let lines = status.lines().filter(|line| {
                ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"]
                    .contains(&&line[..6.min(line.len())])
            });
            let sets = lines.filter_map(|line| line.split_whitespace().nth(1));
            sets.map(|set| u64::from_str_radix(set, 16).unwrap())
                .collect()
        };
        let ours = || sets(&std::fs::read_to_string("/proc/thread-self/status").unwrap());
        let before = ours();
        let status = with_no_more_than(CapabilitySet::NET_ADMIN, || {
            let mut command = std::process::Command::new("cat");
            command.arg("/proc/self/status").output()
        });
        let status = String::from_utf8(status.unwrap().stdout).unwrap();
        let net_admin = CapabilitySet::NET_ADMIN.bits();
        let child = sets(&status);
        assert_eq!(child.len(), 5, "{status}");
        assert!(status.contains("NoNewPrivs:\t1"), "{status}");
        let may_bound = capabilities(None)
            .unwrap()
            .effective
            .contains(CapabilitySet::SETPCAP);
        for (place, set) in child.iter().enumerate() {
            // The fourth is the bounding set, which not everybody may change.
            assert!(
                set & !net_admin == 0 || (place == 3 && !may_bound),
                "{status}"
            );
        }
        if geteuid().is_root() {
            assert_eq!(child[1], before[1] & net_admin, "{status}");
        }
        assert_eq!(ours(), before);
    }
}
