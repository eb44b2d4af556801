//! TCP that would go into a tunnel's device, diverted to an entry of this gateway (`accelerate`): the kernel's rules.
//!
//! The rules are a table of nftables that belongs to the socket of the process which made it (nft(8): `flags owner`). The kernel
//! removes it with that process, so nothing is left behind, also after SIGKILL: `nft` ends with its input, and its input ends
//! with us. A `cat` stands between, so that whoever takes this gateway over cannot say anything to `nft`.

use crate::gateway::GatewayError;
use crate::wait::wait;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The looks for the rules, which are there within some ten milliseconds on an idle machine.
const LOOKS: u32 = 300;
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Tells `nft` the rules, and then nothing more until our end of the pipe is closed. The `cat` keeps the pipe to `nft` open and
/// writes nothing into it.
const HOLD: &str = "{ printf '%s\\n' \"$0\"; exec cat 3>&1 >/dev/null; } | exec nft -i";

/// The rules of one tunnel; they are gone when this is dropped.
#[derive(Debug)]
pub(super) struct Diversion {
    keeper: Child,
}

/// The ports of the entry that takes a tunnel's TCP, by family.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct DivertedPorts {
    pub(super) v4: Option<u16>,
    pub(super) v6: Option<u16>,
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
        let keeper = Command::new("sh")
            .args(["-c", HOLD])
            .arg(script(device, ports))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Ctrl-C is meant for us.
            .process_group(0)
            .spawn()
            .map_err(|error| failed(error.to_string()))?;
        let diversion = Self { keeper };
        for _ in 0..LOOKS {
            if has_rules(device).map_err(|error| failed(format!("{error}; install nftables")))? {
                return Ok(diversion);
            }
            // Nothing to wait for is no error.
            drop(wait(&[], Some(LOOK_EVERY), &mut Vec::new()));
        }
        Err(failed("it did not take them".to_owned()))
    }
}

impl Drop for Diversion {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        drop(self.keeper.wait());
    }
}

/// The name of a device's table.
fn table(device: &str) -> String {
    let sound = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    format!("fulmar_{}", device.chars().map(sound).collect::<String>())
}

/// Whether the last of a device's rules is there.
fn has_rules(device: &str) -> io::Result<bool> {
    let output = Command::new("nft")
        .args(["list", "chain", "inet", &table(device), "forwarded"])
        .stdin(Stdio::null())
        .output()?;
    Ok(String::from_utf8_lossy(&output.stdout).contains("redirect"))
}

/// The commands of nft that divert.
pub(super) fn script(device: &str, ports: DivertedPorts) -> String {
    let table = table(device);
    let mut lines = vec![format!("add table inet {table} {{ flags owner; }}")];
    for (chain, hook, way) in [
        ("own", "output", "oifname"),
        ("forwarded", "prerouting", "fib daddr oifname"),
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
            "add table inet fulmar_tun_0 { flags owner; }".to_owned(),
            "add chain inet fulmar_tun_0 own { type nat hook output priority -100; }".to_owned(),
            format!("add rule inet fulmar_tun_0 own {tcp} oifname \"tun-0\" redirect to :41000"),
            "add chain inet fulmar_tun_0 forwarded { type nat hook prerouting priority -100; }"
                .to_owned(),
            format!(
                "add rule inet fulmar_tun_0 forwarded {tcp} fib daddr oifname \"tun-0\" redirect to :41000"
            ),
        ];
        assert_eq!(script("tun-0", ports), expected.join("\n"));
    }
}
