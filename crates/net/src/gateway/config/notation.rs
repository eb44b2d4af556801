//! The notation of addresses, ports, code points and permissions in a configuration.

use core::fmt;
use core::ops::RangeInclusive;
use core::str::FromStr;
use fulmar_proto::splice::{Destination, Host, HostName};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// A text that is not what it should be; says what would be right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not {expected}")]
pub struct NotationError {
    text: String,
    expected: &'static str,
}

pub(super) fn not(text: &str, expected: &'static str) -> NotationError {
    NotationError {
        text: text.to_owned(),
        expected,
    }
}

/// A local address: `127.0.0.1:8080`, `[::1]:8080`, or `:8080` for every address of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Listen(pub SocketAddr);

impl FromStr for Listen {
    type Err = NotationError;

    fn from_str(text: &str) -> Result<Self, NotationError> {
        const EXPECTED: &str =
            "an address to listen at; write 127.0.0.1:8080, [::1]:8080, or :8080 for all addresses";
        if let Some(port) = text.strip_prefix(':') {
            let port: u16 = port.parse().map_err(|_| not(text, EXPECTED))?;
            return Ok(Self((Ipv6Addr::UNSPECIFIED, port).into()));
        }
        let address: SocketAddr = text.parse().map_err(|_| not(text, EXPECTED))?;
        Ok(Self(address))
    }
}

/// A place elsewhere, `host:port`, whose host may be a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place(pub Destination);

impl FromStr for Place {
    type Err = NotationError;

    fn from_str(text: &str) -> Result<Self, NotationError> {
        const EXPECTED: &str =
            "a host and a port; write 10.0.0.2:80, [fd00::2]:80 or server.example:80";
        if let Ok(address) = text.parse::<SocketAddr>() {
            return match address.port() {
                0 => Err(not(text, EXPECTED)),
                _ => Ok(Self(address.into())),
            };
        }
        let (host, port) = text.rsplit_once(':').ok_or_else(|| not(text, EXPECTED))?;
        let port = port.parse().ok().filter(|port| *port != 0);
        // A text of digits and dots that is no address is a slip, not a name.
        let is_name = host.chars().any(|c| c.is_ascii_alphabetic());
        let name = host.parse::<HostName>().ok().filter(|_| is_name);
        match (name, port) {
            (Some(name), Some(port)) => Ok(Self(Destination {
                host: Host::Name(name),
                port,
            })),
            _ => Err(not(text, EXPECTED)),
        }
    }
}

/// A port, or ports from one to another: `443`, `5000-5999`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ports(pub RangeInclusive<u16>);

impl FromStr for Ports {
    type Err = NotationError;

    fn from_str(text: &str) -> Result<Self, NotationError> {
        const EXPECTED: &str = "a port or a range of ports; write 443 or 5000-5999";
        let (low, high) = text.split_once('-').unwrap_or((text, text));
        match (low.trim().parse::<u16>(), high.trim().parse::<u16>()) {
            (Ok(low), Ok(high)) if low <= high && low > 0 => Ok(Self(low..=high)),
            _ => Err(not(text, EXPECTED)),
        }
    }
}

impl fmt::Display for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (low, high) = (self.0.start(), self.0.end());
        if low == high {
            write!(f, "{low}")
        } else {
            write!(f, "{low}-{high}")
        }
    }
}

/// A differentiated services code point, 0 to 63 (RFC 2474): `ef`, `af41`, `cs1`, `le` or its
/// number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Dscp(pub u8);

impl Dscp {
    /// From the octet that holds it above the ECN bits.
    pub const fn from_tos(tos: u8) -> Self {
        Self(tos >> 2)
    }
}

impl FromStr for Dscp {
    type Err = NotationError;

    fn from_str(text: &str) -> Result<Self, NotationError> {
        const EXPECTED: &str =
            "a code point; write ef, af11 to af43, cs0 to cs7, le, va, or a number from 0 to 63";
        let lower = text.to_ascii_lowercase();
        let digits: Vec<u8> = lower
            .bytes()
            .skip(2)
            .map(|c| c.wrapping_sub(b'0'))
            .collect();
        let value = match (lower.get(..2), digits.as_slice()) {
            // RFC 3246, RFC 5865, RFC 8622.
            (Some("ef"), []) => Some(46),
            (Some("va"), []) => Some(44),
            (Some("le"), []) => Some(1),
            (Some("cs"), [class @ 0..=7]) => Some(class * 8),
            // RFC 2597: class 1 to 4, drop precedence 1 to 3.
            (Some("af"), [class @ 1..=4, drop @ 1..=3]) => Some(class * 8 + drop * 2),
            _ => lower.parse().ok().filter(|number| *number < 64),
        };
        value.map(Self).ok_or_else(|| not(text, EXPECTED))
    }
}

impl fmt::Display for Dscp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0, self.0 >> 3, (self.0 >> 1) & 3) {
            (46, ..) => f.write_str("ef"),
            (44, ..) => f.write_str("va"),
            (1, ..) => f.write_str("le"),
            (value, class, 0) if value % 8 == 0 => write!(f, "cs{class}"),
            (value, class @ 1..=4, drop) if value % 2 == 0 => write!(f, "af{class}{drop}"),
            (value, ..) => write!(f, "{value}"),
        }
    }
}

/// The hosts that a permission is for.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Hosts {
    /// Addresses that share their first bits.
    Network { base: IpAddr, bits: u8 },
    /// One name, in lower case.
    Name(String),
    /// Every name that ends so, in lower case with its dot.
    Suffix(String),
}

/// One permission to connect: `10.0.0.0/8:1-65535`, `[fd00::/8]:443`, `server.example:80`,
/// `*.example:443`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allow {
    hosts: Hosts,
    ports: Ports,
    text: String,
}

fn leading_bits(address: IpAddr, bits: u8) -> u128 {
    let (value, width) = match address {
        IpAddr::V4(v4) => (u128::from(u32::from(v4)), 32_u32),
        IpAddr::V6(v6) => (u128::from(v6), 128),
    };
    value
        .checked_shr(width.saturating_sub(u32::from(bits)))
        .unwrap_or(0)
}

impl Allow {
    /// Whether connecting to `address` is permitted.
    pub fn address(&self, address: SocketAddr) -> bool {
        let ip = address.ip().to_canonical();
        match &self.hosts {
            Hosts::Network { base, bits } => {
                base.is_ipv4() == ip.is_ipv4()
                    && leading_bits(*base, *bits) == leading_bits(ip, *bits)
                    && self.ports.0.contains(&address.port())
            }
            Hosts::Name(_) | Hosts::Suffix(_) => false,
        }
    }

    /// Whether this permits connecting to `address`, but to nothing outside the network of addresses that share their
    /// first `bits` bits with it. The permission then names that network, or a part of it.
    pub fn address_within(&self, address: SocketAddr, bits: u8) -> bool {
        let is_narrow = match &self.hosts {
            Hosts::Network { bits: own, .. } => *own >= bits,
            Hosts::Name(_) | Hosts::Suffix(_) => false,
        };
        is_narrow && self.address(address)
    }

    /// Whether some address at `port` is permitted, which a name may stand for.
    pub const fn has_addresses_at(&self, port: u16) -> bool {
        let is_network = matches!(self.hosts, Hosts::Network { .. });
        is_network && *self.ports.0.start() <= port && port <= *self.ports.0.end()
    }

    /// Whether connecting to whatever `name` stands for is permitted.
    pub fn name(&self, name: &str, port: u16) -> bool {
        let name = name.to_ascii_lowercase();
        let name = name.strip_suffix('.').unwrap_or(&name);
        let fits = match &self.hosts {
            Hosts::Network { .. } => false,
            Hosts::Name(allowed) => allowed == name,
            Hosts::Suffix(suffix) => name.ends_with(suffix.as_str()),
        };
        fits && self.ports.0.contains(&port)
    }
}

impl fmt::Display for Allow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Allow {
    type Err = NotationError;

    fn from_str(text: &str) -> Result<Self, NotationError> {
        const EXPECTED: &str = "a permission; write 10.0.0.0/8:1-65535, [fd00::/8]:443, \
                                server.example:80 or *.example:443";
        let wrong = || not(text, EXPECTED);
        let (hosts, ports) = text.rsplit_once(':').ok_or_else(wrong)?;
        let ports: Ports = ports.parse().map_err(|_| wrong())?;
        let bare = hosts.strip_prefix('[').and_then(|h| h.strip_suffix(']'));
        // The end of an IPv6 address outside brackets would look like a port.
        if bare.is_none() && hosts.contains(':') {
            return Err(wrong());
        }
        let bare = bare.unwrap_or(hosts);
        let hosts = network(bare).or_else(|| named(bare)).ok_or_else(wrong)?;
        Ok(Self {
            hosts,
            ports,
            text: text.to_owned(),
        })
    }
}

fn network(text: &str) -> Option<Hosts> {
    let (base, bits) = match text.split_once('/') {
        Some((base, bits)) => (base, Some(bits.parse::<u8>().ok()?)),
        None => (text, None),
    };
    let base: IpAddr = base.parse().ok()?;
    let width = if base.is_ipv4() { 32 } else { 128 };
    let bits = bits.unwrap_or(width);
    (bits <= width).then_some(Hosts::Network { base, bits })
}

fn named(text: &str) -> Option<Hosts> {
    let lower = text.to_ascii_lowercase();
    let is_name =
        |name: &str| name.parse::<HostName>().is_ok() && name.contains(char::is_alphabetic);
    match lower.strip_prefix('*') {
        Some(suffix) if suffix.starts_with('.') && is_name(&suffix[1..]) => {
            Some(Hosts::Suffix(suffix.to_owned()))
        }
        Some(_) => None,
        None => is_name(&lower).then_some(Hosts::Name(lower)),
    }
}

/// The address of this host by which a listener at `listen` is reached from it.
pub fn reachable(listen: SocketAddr) -> SocketAddr {
    match listen.ip() {
        ip if !ip.is_unspecified() => listen,
        _ => (Ipv4Addr::LOCALHOST, listen.port()).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(rule: &str, address: &str) -> bool {
        let rule: Allow = rule.parse().unwrap();
        rule.address(address.parse().unwrap())
    }

    #[test]
    fn a_network_permits_its_addresses_and_ports_and_no_others() {
        assert!(allows("10.0.0.0/8:1-65535", "10.255.0.1:80"));
        assert!(!allows("10.0.0.0/8:1-65535", "11.0.0.1:80"));
        assert!(!allows("10.0.0.0/8:80-90", "10.0.0.1:91"));
        assert!(allows("0.0.0.0/0:80", "203.0.113.9:80"));
        assert!(!allows("0.0.0.0/0:80", "[fd00::1]:80"), "the other family");
        assert!(allows("[fd00::/8]:443", "[fd12::9]:443"));
        assert!(allows("[::1]:443", "[::1]:443"));
        assert!(!allows("[::1]:443", "[::2]:443"));
        assert!(allows("10.0.0.1:80", "[::ffff:10.0.0.1]:80"), "mapped");
    }

    #[test]
    fn a_name_permits_itself_and_a_star_what_is_below() {
        let one: Allow = "Server.example:80".parse().unwrap();
        assert!(one.name("server.EXAMPLE.", 80));
        assert!(!one.name("other.example", 80) && !one.name("server.example", 81));
        let below: Allow = "*.example:80".parse().unwrap();
        assert!(below.name("a.b.example", 80));
        assert!(!below.name("example", 80) && !below.name("badexample", 80));
    }

    #[test]
    fn what_is_no_permission_is_refused() {
        for wrong in [
            "",
            "10.0.0.0/33:80",
            "10.0.0.1",
            "::1:80",
            "10.0.0:80",
            "a b:80",
            "x:0",
        ] {
            assert!(wrong.parse::<Allow>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn code_points_are_read_as_they_are_printed() {
        for (text, value) in [
            ("ef", 46),
            ("af41", 34),
            ("cs1", 8),
            ("le", 1),
            ("cs0", 0),
            ("63", 63),
        ] {
            let read: Dscp = text.parse().unwrap();
            assert_eq!(read, Dscp(value));
            assert_eq!(read.to_string(), text);
        }
        for value in 0..64 {
            assert_eq!(Dscp(value).to_string().parse(), Ok(Dscp(value)));
        }
        for wrong in ["af44", "cs8", "64", "gold", "", "é1"] {
            assert!(wrong.parse::<Dscp>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn places_have_a_host_and_a_port() {
        for right in [
            "10.0.0.2:80",
            "[fd00::2]:80",
            "server.example:80",
            "localhost:1",
        ] {
            assert_eq!(right.parse::<Place>().unwrap().0.to_string(), right);
        }
        for wrong in [
            "10.0.0:80",
            "server.example",
            "server:0",
            "server:70000",
            ":80",
            "a b:1",
        ] {
            assert!(wrong.parse::<Place>().is_err(), "{wrong}");
        }
    }
}
