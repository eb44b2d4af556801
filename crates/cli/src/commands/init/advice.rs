//! The next steps, for whoever ran `fulmar init`.

use super::terms::{Carried, End, Terms};
use super::{FILE, PAGE, PROXY};
use fulmar_net::tun::InterfaceAddress;
use std::net::IpAddr;
use std::path::Path;

/// The command that starts the gateway of an end from its folder.
pub(super) fn start(terms: &Terms, folder: &Path) -> String {
    let command = match terms.carried {
        Carried::Proxy {} => format!("fulmar gateway -c {FILE}"),
        Carried::Tunnel { .. } => {
            let program = std::env::current_exe();
            format!("{} up {FILE}", as_root(program.ok().as_deref()))
        }
    };
    format!("cd {} && {command}", folder.display())
}

/// The command that shows that it works, and where.
pub(super) fn proof(terms: &Terms) -> String {
    let caller = &terms.caller;
    match terms.tunnel_address(End::Called) {
        Some(called) => format!("at {caller}: ping {}", called.ip()),
        None => format!("at {caller}: curl --socks5-hostname {PROXY} https://…"),
    }
}

/// Where the link can be looked at.
pub(super) fn page() -> String {
    format!("http://{PAGE}/ shows the link at either end")
}

/// What an end needs besides, a line each.
pub(super) fn needs(terms: &Terms, end: End, allow: &[String]) -> Vec<String> {
    let name = terms.name(end);
    let is_open = matches!(terms.carried, Carried::Proxy {}) && allow.is_empty();
    let reach = (is_open && end == End::Called).then(|| {
        format!(
            "the proxy reaches all but {name} itself: to reach a server there, add its address and port to allow in the file of {name}"
        )
    });
    let tunnel = match terms.carried {
        Carried::Tunnel { network, .. } => {
            forwarding(name, &terms.behind(end), network.0.network())
        }
        Carried::Proxy {} => None,
    };
    reach.into_iter().chain(tunnel).collect()
}

/// The directories in which sudo looks for programs, whatever PATH says (`secure_path` of the usual sudoers files).
const OF_SUDO: [&str; 6] = [
    "/usr/local/sbin",
    "/usr/local/bin",
    "/usr/sbin",
    "/usr/bin",
    "/sbin",
    "/bin",
];

/// This program as root, as a shell's user types it: sudo does not find what was built here and put on PATH.
fn as_root(program: Option<&Path>) -> &'static str {
    let directory = program.and_then(Path::parent);
    if directory.is_some_and(|directory| OF_SUDO.iter().any(|one| directory == Path::new(one))) {
        "sudo fulmar"
    } else {
        "sudo \"$(command -v fulmar)\""
    }
}

/// The needs of an end besides, if the tunnel reaches networks behind it: a kernel that forwards, and a way back.
fn forwarding(end: &str, behind: &[InterfaceAddress], tunnel: InterfaceAddress) -> Option<String> {
    let has = |is_of: fn(&IpAddr) -> bool| behind.iter().any(|network| is_of(&network.ip()));
    let switches = [
        (has(IpAddr::is_ipv4), "net.ipv4.ip_forward=1"),
        (has(IpAddr::is_ipv6), "net.ipv6.conf.all.forwarding=1"),
    ];
    let needed: Vec<&str> = (switches.into_iter())
        .filter_map(|(is_needed, switch)| is_needed.then_some(switch))
        .collect();
    (!needed.is_empty()).then(|| {
        format!(
            "at {end}: sudo sysctl -w {}; and the hosts behind it need a way back: a route to {tunnel} by {end}",
            needed.join(" ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sudo_is_told_where_the_program_is_unless_it_looks_there() {
        let told = |program: &str| as_root(Some(Path::new(program)));
        assert_eq!(told("/usr/bin/fulmar"), "sudo fulmar");
        assert_eq!(told("/usr/local/bin/fulmar"), "sudo fulmar");
        let built = "sudo \"$(command -v fulmar)\"";
        assert_eq!(told("/home/a/fulmar/target/release/fulmar"), built);
        assert_eq!(as_root(None), built);
    }
}
