//! The addresses that a peer's client may be connected to.
//!
//! # Promises
//! - A name, and a network that is wider, stand for others' addresses only: whoever runs a permitted name's zone could
//!   otherwise let it stand for what only this machine, or its link, is meant to reach ("DNS rebinding"). This
//!   machine's own addresses are permitted one by one, or as `localhost`; loopback, link-local, multicast and the like
//!   by a network that has nothing else in it.
//! - The address that was checked is the one connected to. A check right before connecting tells whether it is this
//!   machine's own: addresses come and go while a gateway runs.

use crate::gateway::config::{Allow, Egress};
use crate::gateway::sockets::{innermost, is_own, special};
use fulmar_proto::splice::{Destination, Host};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};

/// An address that may be connected to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::gateway) struct Permitted {
    address: SocketAddr,
    even_own: bool,
}

impl Permitted {
    /// Permits `address` even if it is this machine's.
    pub(super) const fn even_own(address: SocketAddr) -> Self {
        Self {
            address,
            even_own: true,
        }
    }

    /// Permits `address` unless it is this machine's.
    pub(super) const fn of_others(address: SocketAddr) -> Self {
        Self {
            address,
            even_own: false,
        }
    }

    /// The address to connect to now.
    ///
    /// # Errors
    /// It is this machine's, and only others' are permitted.
    pub(in crate::gateway) fn address(self) -> io::Result<SocketAddr> {
        if self.even_own || !is_own(innermost(self.address.ip())) {
            Ok(self.address)
        } else {
            Err(ErrorKind::PermissionDenied.into())
        }
    }

    pub(in crate::gateway) const fn ip(self) -> IpAddr {
        self.address.ip()
    }

    pub(in crate::gateway) const fn is_ipv6(self) -> bool {
        self.address.is_ipv6()
    }
}

/// Whether `name` always stands for the loopback (RFC 6761, section 6.3): whoever permits such a name means it.
fn names_loopback(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let name = name.strip_suffix('.').unwrap_or(&name);
    name == "localhost" || name.ends_with(".localhost")
}

/// Whether it makes sense to resolve a destination's name.
pub(super) fn is_possible(egress: &Egress, destination: &Destination) -> bool {
    let Host::Name(name) = &destination.host else {
        return true;
    };
    let port = destination.port;
    let may = |allow: &Allow| allow.name(name.as_str(), port) || allow.has_addresses_at(port);
    egress.allow.iter().any(may)
}

/// The addresses of a resolved destination that may be connected to.
pub(in crate::gateway) fn permitted(
    egress: &Egress,
    destination: &Destination,
    found: &[SocketAddr],
) -> Vec<Permitted> {
    let name = match &destination.host {
        Host::Name(name) => Some(name.as_str()),
        Host::Address(_) => None,
        Host::Tunnel(_) | Host::Beyond(_) => return Vec::new(),
    };
    let port = destination.port;
    let by_name = name.is_some_and(|name| egress.allow.iter().any(|allow| allow.name(name, port)));
    let means_loopback = by_name && name.is_some_and(names_loopback);
    let check = |address: &SocketAddr| {
        let inner = SocketAddr::new(innermost(address.ip()), address.port());
        let narrow = |bits| {
            let mut rules = egress.allow.iter();
            rules
                .any(|rule| rule.address_within(*address, bits) || rule.address_within(inner, bits))
        };
        let own_bits = match inner.ip() {
            IpAddr::V4(_) => 32,
            IpAddr::V6(_) => 128,
        };
        if means_loopback || narrow(own_bits) {
            return Some(Permitted::even_own(*address));
        }
        if let Some(bits) = special(inner.ip()) {
            return narrow(bits).then(|| Permitted::even_own(*address));
        }
        let by_address = || egress.allow.iter().any(|allow| allow.address(*address));
        (by_name || by_address()).then(|| Permitted::of_others(*address))
    };
    found.iter().filter_map(check).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::config::Place;

    fn egress(allow: &str) -> Egress {
        Egress {
            allow: allow.split(' ').map(|rule| rule.parse().unwrap()).collect(),
            relay: Vec::new(),
            connect_timeout: core::time::Duration::from_secs(1),
        }
    }

    fn to(text: &str) -> Destination {
        text.parse::<Place>().unwrap().0
    }

    /// Those of `found` that are connected to under these rules.
    fn reached(allow: &str, destination: &str, found: &[&str]) -> Vec<String> {
        let found: Vec<SocketAddr> = found.iter().map(|text| text.parse().unwrap()).collect();
        let permitted = permitted(&egress(allow), &to(destination), &found);
        let reached = permitted.iter().filter_map(|p| p.address().ok());
        reached.map(|address| address.to_string()).collect()
    }

    const NAME: &str = "server.example:80";

    #[test]
    fn a_name_may_stand_for_permitted_addresses_or_be_permitted_itself() {
        let found = ["198.51.100.1:80", "203.0.113.1:80"];
        assert_eq!(reached("198.51.100.0/24:80", NAME, &found), [found[0]]);
        assert_eq!(reached(NAME, NAME, &found), found);
        assert!(reached("other.example:80", NAME, &found).is_empty());
    }

    #[test]
    fn names_that_no_rule_could_permit_are_not_asked_for() {
        let name = to(NAME);
        assert!(is_possible(&egress(NAME), &name));
        assert!(is_possible(&egress("10.0.0.0/8:1-80"), &name));
        for never in ["server.example:81", "other.example:80", "10.0.0.0/8:81"] {
            assert!(!is_possible(&egress(never), &name), "{never}");
        }
    }

    #[test]
    fn neither_a_name_nor_a_wide_network_stands_for_this_machine_or_its_link() {
        for (special, narrow) in [
            ("127.0.0.1:80", "127.0.0.0/8"),
            ("127.8.0.1:80", "127.0.0.0/8"),
            ("[::1]:80", "[::1]"),
            ("[::ffff:127.0.0.1]:80", "127.0.0.0/8"),
            ("[64:ff9b::7f00:1]:80", "127.0.0.1"),
            ("[::7f00:1]:80", "127.0.0.1"),
            ("169.254.169.254:80", "169.254.0.0/16"),
            ("[fe80::1]:80", "[fe80::/10]"),
            ("0.0.0.0:80", "0.0.0.0"),
            ("0.1.2.3:80", "0.0.0.0/8"),
            ("[::]:80", "[::]"),
            ("224.0.0.1:80", "224.0.0.0/4"),
            ("255.255.255.255:80", "255.255.255.255"),
            ("[ff02::1]:80", "[ff02::/16]"),
        ] {
            let found = [special, "192.0.2.1:80"];
            let wide = format!("{NAME} *.example:80 0.0.0.0/0:80 [::/0]:80");
            assert_eq!(reached(&wide, NAME, &found), [found[1]], "{special}");
            assert!(reached(&wide, special, &[special]).is_empty(), "{special}");
            let narrow = format!("{wide} {narrow}:80");
            assert_eq!(reached(&narrow, NAME, &found), found, "{special}");
        }
        let local = ["127.0.0.1:80"];
        assert_eq!(reached("localhost:80", "localhost:80", &local), local);
        assert!(reached("localhost:80", NAME, &local).is_empty());
    }

    #[test]
    fn whether_an_address_is_our_own_is_left_to_the_moment_of_connecting_unless_it_is_permitted_by_itself()
     {
        let address: SocketAddr = "198.51.100.1:80".parse().unwrap();
        let of = |allow, destination| permitted(&egress(allow), &to(destination), &[address]);
        let others = [Permitted::of_others(address)];
        assert_eq!(of(NAME, NAME), others);
        assert_eq!(of("198.51.100.0/31:80", "198.51.100.1:80"), others);
        let by_itself = format!("{NAME} 198.51.100.1:80");
        assert_eq!(of(&by_itself, NAME), [Permitted::even_own(address)]);
    }

    #[test]
    fn an_address_of_this_machine_in_a_network_of_others_is_permitted_by_itself_alone() {
        // Whatever addresses this machine has beside the loopback's.
        let own: Vec<IpAddr> = crate::gateway::sockets::listed()
            .into_iter()
            .filter(|ip| special(*ip).is_none())
            .collect();
        println!("own addresses beside the loopback's: {own:?}");
        for ip in own {
            let address = SocketAddr::new(ip, 80).to_string();
            let (alone, network) = match ip {
                IpAddr::V4(v4) => (format!("{v4}:80"), format!("{v4}/24:80")),
                IpAddr::V6(v6) => (format!("[{v6}]:80"), format!("[{v6}/64]:80")),
            };
            let found = [address.as_str()];
            assert!(reached(NAME, NAME, &found).is_empty(), "{address}");
            assert!(reached(&network, &address, &found).is_empty(), "{address}");
            assert_eq!(reached(&alone, NAME, &found), found);
        }
    }
}
