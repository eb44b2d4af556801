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
use rustix::process::{Pid, Signal, kill_process_group};
use rustix::thread::CapabilitySet;
use std::fmt::Write as _;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

/// The looks for the rules, which are there within some ten milliseconds on an idle machine.
const LOOKS: u32 = 300;
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// The looks for the end of a process that should end at once: a second or two.
const LOOKS_FOR_END: u32 = 150;
/// The chain whose rules are told last.
const LAST_CHAIN: &str = "forwarded";

/// Tells `nft` the rules, and then nothing more until our end of the pipe is closed. The `cat` keeps the pipe to `nft` open and
/// writes nothing into it. Of all these processes `nft` alone keeps the output, so its end is the end of `nft`.
const HOLD: &str = "exec 3>&1 4<&0 </dev/null >/dev/null; \
     { printf '%s\\n' \"$0\"; exec cat <&4 5>&1 >/dev/null 3>&- 4<&-; } | exec nft -i >&3 3>&- 4<&- & \
     exec 3>&- 4<&-; wait";

/// The rules of one tunnel; they are gone when this is dropped.
#[derive(Debug)]
pub(super) struct Diversion {
    rules_holder: Child,
    /// The output of `nft`, which ends with it.
    output: ChildStdout,
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
        let start = || {
            hold(
                Command::new("sh")
                    .args(["-c", HOLD])
                    .arg(script(device, ports)),
            )
        };
        let mut diversion = privileges::with_no_more_than(CapabilitySet::NET_ADMIN, start)
            .map_err(|error| failed(error.to_string()))?;
        let mut said = String::new();
        for _ in 0..LOOKS {
            let has_rules = has_rules(device, ports).map_err(|error| failed(not_asked(&error)))?;
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

    /// Whether the rules are gone, because `nft` has ended. Look when [`Diversion`] is readable.
    pub(super) fn is_over(&mut self) -> bool {
        let mut octets = [0; 256];
        loop {
            match self.output.read(&mut octets) {
                Ok(0) => return true,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return error.kind() != io::ErrorKind::WouldBlock,
            }
        }
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

impl AsFd for Diversion {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.output.as_fd()
    }
}

impl Drop for Diversion {
    fn drop(&mut self) {
        drop(self.rules_holder.stdin.take());
        if !ends_soon(&mut self.rules_holder) {
            // The kernel removes the rules with `nft`, however it ends.
            let group = Pid::from_child(&self.rules_holder);
            // Those that have ended meanwhile need no signal.
            let _sent = kill_process_group(group, Signal::KILL);
            ends_soon(&mut self.rules_holder);
        }
    }
}

/// Starts the processes that hold the rules.
fn hold(command: &mut Command) -> io::Result<Diversion> {
    let mut rules_holder = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // Ctrl-C is meant for us.
        .process_group(0)
        .spawn()?;
    if let Some(stderr) = &rules_holder.stderr {
        ioctl_fionbio(stderr, true)?;
    }
    let output = rules_holder.stdout.take();
    let output = output.ok_or_else(|| io::Error::other("it has no output"))?;
    ioctl_fionbio(&output, true)?;
    Ok(Diversion {
        rules_holder,
        output,
    })
}

/// Waits for a process that should end at once; `false` if it does not.
fn ends_soon(child: &mut Child) -> bool {
    for _ in 0..LOOKS_FOR_END {
        // Its state cannot be had: it is not ours any more.
        if child.try_wait().map_or(true, |status| status.is_some()) {
            return true;
        }
        // Nothing to wait for is no error.
        drop(wait(&[], Some(LOOK_EVERY), &mut Vec::new()));
    }
    false
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

/// The reason for which `nft` cannot be asked, with the cure if there is one.
fn not_asked(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => format!("{error}; install nftables"),
        _ => error.to_string(),
    }
}

/// Whether the last rules of a device are there.
fn has_rules(device: &str, ports: DivertedPorts) -> io::Result<bool> {
    let mut child = Command::new("nft")
        .args(["-n", "list", "chain", "inet", &table(device), LAST_CHAIN])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    if !ends_soon(&mut child) {
        child.kill()?;
        return Err(io::Error::other("nft does not answer"));
    }
    let output = child.wait_with_output()?;
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
    use crate::wait::Interest;

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

    /// Processes of a shell in the place of those that hold the rules.
    fn held_by(script: &str) -> Diversion {
        hold(Command::new("sh").args(["-c", script])).expect("a shell")
    }

    #[test]
    fn the_end_of_the_output_is_the_end_of_the_rules() {
        let mut held = held_by("echo prompt; exec cat");
        wait(&[(held.as_fd(), Interest::Readable)], None, &mut Vec::new())
            .expect("it says something");
        assert!(!held.is_over(), "it said something");
        drop(held.rules_holder.stdin.take());
        wait(&[(held.as_fd(), Interest::Readable)], None, &mut Vec::new()).expect("it ends");
        assert!(held.is_over());
    }

    #[test]
    fn processes_that_do_not_end_with_their_input_are_ended() {
        let (ended, end) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            drop(held_by("sleep 600 | exec sleep 600"));
            ended.send(())
        });
        let waited = end.recv_timeout(Duration::from_secs(60));
        waited.expect("the end of a gateway waits for nobody");
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
