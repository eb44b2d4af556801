//! TCP that would go into a tunnel's device, diverted to an entry of this gateway (`accelerate`): the kernel's rules.
//!
//! The rules are a table of nftables that belongs to the socket of the process which made it (nft(8): `flags owner`). The kernel
//! removes it with that process, so nothing is left behind, also after SIGKILL: `nft` ends with its input, and its input ends
//! with us. A `cat` stands between, so that whoever takes this gateway over cannot say anything to `nft`. None of these processes
//! has a capability but `CAP_NET_ADMIN`.

use crate::gateway::GatewayError;
use crate::gateway::privileges;
use crate::wait::wait;
use rustix::io::ioctl_fionbio;
use rustix::thread::CapabilitySet;
use std::fmt::Write as _;
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The looks for the rules, which are there within some ten milliseconds on an idle machine.
const LOOKS: u32 = 300;
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// The chain whose rules are told last.
const LAST_CHAIN: &str = "forwarded";

/// Tells `nft` the rules, and then nothing more until our end of the pipe is closed. The `cat` keeps the pipe to `nft` open and
/// writes nothing into it.
const HOLD: &str = "{ printf '%s\\n' \"$0\"; exec cat 3>&1 >/dev/null; } | exec nft -i";

/// The rules of one tunnel; they are gone when this is dropped.
#[derive(Debug)]
pub(super) struct Diversion {
    rules_holder: Child,
}

/// The ports of the entry that takes a tunnel's TCP, by family.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct DivertedPorts {
    pub(super) v4: Option<u16>,
    pub(super) v6: Option<u16>,
}

impl DivertedPorts {
    fn all(self) -> impl Iterator<Item = u16> {
        [self.v4, self.v6].into_iter().flatten()
    }
}

impl Diversion {
    /// Diverts the TCP that the kernel would send into `device`.
    ///
    /// # Errors
    /// [`GatewayError::Accelerate`].
    pub(super) fn begin(device: &str, ports: DivertedPorts) -> Result<Self, GatewayError> {
        let failed = |said: String| GatewayError::Accelerate {
            device: device.to_owned(),
            said,
        };
        let start = || -> io::Result<Child> {
            let mut child = Command::new("sh")
                .args(["-c", HOLD])
                .arg(script(device, ports))
                .stdin(Stdio::piped())
                .stdout(Stdio::null())
                .stderr(Stdio::piped())
                // Ctrl-C is meant for us.
                .process_group(0)
                .spawn()?;
            child
                .stderr
                .as_mut()
                .map_or(Ok(()), |stderr| ioctl_fionbio(stderr, true))?;
            Ok(child)
        };
        let rules_holder = privileges::with_no_more_than(CapabilitySet::NET_ADMIN, start)
            .map_err(|error| failed(error.to_string()))?;
        let mut diversion = Self { rules_holder };
        let mut said = String::new();
        for _ in 0..LOOKS {
            let has_rules = has_rules(device, ports)
                .map_err(|error| failed(format!("{error}; install nftables")))?;
            // A rule that is refused is told before the last one is there.
            diversion.hear(&mut said);
            if let Some(refusal) = refusal(&said) {
                return Err(failed(refusal.to_owned()));
            }
            if has_rules {
                return Ok(diversion);
            }
            // Nothing to wait for is no error.
            drop(wait(&[], Some(LOOK_EVERY), &mut Vec::new()));
        }
        let line = said.lines().next();
        Err(failed(
            line.unwrap_or("nothing, and takes no rules").to_owned(),
        ))
    }

    /// Appends to `said` what the processes that hold the rules have said since.
    fn hear(&mut self, said: &mut String) {
        let mut octets = Vec::new();
        if let Some(stderr) = &mut self.rules_holder.stderr {
            // It ends with an error: there is no more yet.
            drop(stderr.read_to_end(&mut octets));
        }
        said.push_str(&String::from_utf8_lossy(&octets));
    }
}

impl Drop for Diversion {
    fn drop(&mut self) {
        drop(self.rules_holder.stdin.take());
        drop(self.rules_holder.wait());
    }
}

/// The first error among the whole lines that were said: below it stand the rule and a mark. A shell may have warned before.
fn refusal(said: &str) -> Option<&str> {
    let (whole, _) = said.rsplit_once('\n')?;
    let mut errors = whole.lines().filter_map(|line| line.split_once("Error: "));
    errors.next().map(|(_, error)| error)
}

/// The name of a device's table: two devices never share one. Octets that cannot stand in it are written in hexadecimal.
fn table(device: &str) -> String {
    let mut name = "fulmar_".to_owned();
    for octet in device.bytes() {
        if octet.is_ascii_alphanumeric() {
            name.push(char::from(octet));
        } else {
            // A string takes everything.
            let _written = write!(name, "_{octet:02x}");
        }
    }
    name
}

/// Whether the last rules of a device are there.
fn has_rules(device: &str, ports: DivertedPorts) -> io::Result<bool> {
    let output = Command::new("nft")
        .args(["-n", "list", "chain", "inet", &table(device), LAST_CHAIN])
        .stdin(Stdio::null())
        .output()?;
    Ok(redirects_to(
        &String::from_utf8_lossy(&output.stdout),
        ports,
    ))
}

/// Whether a chain that `nft` lists redirects to each of these ports.
fn redirects_to(chain: &str, ports: DivertedPorts) -> bool {
    let words: Vec<&str> = chain.split_whitespace().collect();
    let mut all = ports.all().map(|port| format!(":{port}"));
    all.all(|port| {
        words
            .windows(3)
            .any(|three| three == ["redirect", "to", port.as_str()])
    })
}

/// The commands of nft that divert. What came out of the device is left to the kernel: if it goes back into it, the peer has
/// sent it here, and would be asked to connect to what it just tried to reach.
pub(super) fn script(device: &str, ports: DivertedPorts) -> String {
    let table = table(device);
    let mut lines = vec![format!("add table inet {table} {{ flags owner; }}")];
    let forwarded = format!("iifname != \"{device}\" fib daddr oifname");
    for (chain, hook, way) in [
        ("own", "output", "oifname"),
        (LAST_CHAIN, "prerouting", forwarded.as_str()),
    ] {
        lines.push(format!(
            "add chain inet {table} {chain} {{ type nat hook {hook} priority -100; }}"
        ));
        for (family, port) in [("ipv4", ports.v4), ("ipv6", ports.v6)] {
            let Some(port) = port else { continue };
            lines.push(format!(
                "add rule inet {table} {chain} meta nfproto {family} meta l4proto tcp {way} \"{device}\" redirect to :{port}"
            ));
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rules_belong_to_their_process_and_divert_tcp_of_both_kinds_of_senders() {
        let ports = DivertedPorts {
            v4: Some(41_000),
            v6: None,
        };
        let tcp = "meta nfproto ipv4 meta l4proto tcp";
        let expected = [
            "add table inet fulmar_tun_2d0 { flags owner; }".to_owned(),
            "add chain inet fulmar_tun_2d0 own { type nat hook output priority -100; }".to_owned(),
            format!("add rule inet fulmar_tun_2d0 own {tcp} oifname \"tun-0\" redirect to :41000"),
            "add chain inet fulmar_tun_2d0 forwarded { type nat hook prerouting priority -100; }"
                .to_owned(),
            format!(
                "add rule inet fulmar_tun_2d0 forwarded {tcp} iifname != \"tun-0\" fib daddr oifname \"tun-0\" redirect to :41000"
            ),
        ];
        assert_eq!(script("tun-0", ports), expected.join("\n"));
    }

    #[test]
    fn devices_have_tables_of_their_own() {
        let names = ["tun-0", "tun_0", "tun.0", "tun_2d0", "tun0"].map(table);
        let distinct: std::collections::BTreeSet<&String> = names.iter().collect();
        assert_eq!(distinct.len(), names.len(), "{names:?}");
    }

    #[test]
    fn rules_are_there_once_both_families_are_diverted_to_the_ports_of_this_tunnel() {
        let chain = |v4, v6| {
            let rule = |port| format!("\t\tmeta l4proto 6 oifname \"t\" redirect to :{port}\n");
            let rules: String = [v4, v6].into_iter().flatten().map(rule).collect();
            format!("table inet fulmar_t {{\n\tchain forwarded {{\n{rules}\t}}\n}}\n")
        };
        let ports = DivertedPorts {
            v4: Some(4_100),
            v6: Some(41_001),
        };
        assert!(redirects_to(&chain(Some(4_100), Some(41_001)), ports));
        for (v4, v6) in [
            (None, None),
            (Some(4_100), None),
            (None, Some(41_001)),
            (Some(41_000), Some(41_001)),
        ] {
            assert!(!redirects_to(&chain(v4, v6), ports), "{v4:?} {v6:?}");
        }
    }

    #[test]
    fn a_refusal_is_told_in_one_line() {
        let said = "sh: warning: setlocale\nError: Could not process rule: Operation not supported\nadd table inet t\n    ^\n";
        let expected = "Could not process rule: Operation not supported";
        assert_eq!(refusal(said), Some(expected));
        assert_eq!(refusal("sh: warning: setlocale\n"), None);
        // The rest of the line is still to come.
        assert_eq!(refusal("Error: Could"), None);
        assert_eq!(refusal(""), None);
    }
}
