//! Addresses of this machine, of its link, or of nobody, for which a permission for others does not stand.

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};

/// Addresses for documentation (RFC 5737, RFC 3849), which no machine has.
const NOBODYS_V4: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const NOBODYS_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xDB8, 0, 0, 0, 0, 0, 1);
/// Prefixes whose addresses have an IPv4 address in their last 32 bits: that of translators (RFC 6052, section 2.1),
/// and IPv4-compatible ones (RFC 4291, section 2.5.5.1).
const WITH_V4: [u128; 2] = [0x0064_FF9B << 96, 0];

/// The address that packets carry in the end: an IPv4 address inside one of IPv6 is taken out.
pub(crate) fn innermost(ip: IpAddr) -> IpAddr {
    let IpAddr::V6(v6) = ip.to_canonical() else {
        return ip.to_canonical();
    };
    let bits = u128::from(v6);
    let last = u32::try_from(bits & u128::from(u32::MAX)).unwrap_or_default();
    // `::` and `::1` are of IPv6 itself.
    let is_plain = bits <= 1;
    if !is_plain && WITH_V4.contains(&(bits >> 32 << 32)) {
        return Ipv4Addr::from(last).into();
    }
    v6.into()
}

/// If `ip` means this machine or its link wherever it is used (loopback, link-local, unspecified, multicast,
/// broadcast), the bits that all addresses of its kind begin with.
pub(crate) const fn special(ip: IpAddr) -> Option<u8> {
    match ip {
        IpAddr::V4(v4) => {
            // RFC 1122, section 3.2.1.3: this network, this host.
            if v4.octets()[0] == 0 || v4.is_loopback() {
                Some(8)
            } else if v4.is_link_local() {
                Some(16)
            } else if v4.is_multicast() {
                Some(4)
            } else if v4.is_broadcast() {
                Some(32)
            } else {
                None
            }
        }
        IpAddr::V6(v6) => {
            if v6.is_loopback() || v6.is_unspecified() {
                Some(128)
            } else if v6.is_unicast_link_local() {
                Some(10)
            } else if v6.is_multicast() {
                Some(8)
            } else {
                None
            }
        }
    }
}

fn can_bind(ip: IpAddr) -> bool {
    match UdpSocket::bind((ip, 0)) {
        Ok(_) => true,
        // On any other error, better no connection than one to ourselves.
        Err(error) => !matches!(
            error.kind(),
            ErrorKind::AddrNotAvailable | ErrorKind::Unsupported
        ),
    }
}

/// The addresses of all interfaces.
pub(crate) fn listed() -> Vec<IpAddr> {
    let Ok(interfaces) = nix::ifaddrs::getifaddrs() else {
        return Vec::new();
    };
    let addresses = interfaces.filter_map(|interface| interface.address);
    addresses.filter_map(|address| ip_of(&address)).collect()
}

/// The IP address in a socket address, if it has one.
pub(crate) fn ip_of(address: &nix::sys::socket::SockaddrStorage) -> Option<IpAddr> {
    let v4 = address.as_sockaddr_in().map(|v4| IpAddr::V4(v4.ip()));
    v4.or_else(|| address.as_sockaddr_in6().map(|v6| IpAddr::V6(v6.ip())))
}

/// Whether `ip` is one of this machine's addresses now. The kernel is asked each time, for addresses come and go.
pub(crate) fn is_own(ip: IpAddr) -> bool {
    if !can_bind(ip) {
        return false;
    }
    // Where foreign addresses can be bound (`ip_nonlocal_bind`), that says nothing.
    let nobodys = match ip {
        IpAddr::V4(_) => NOBODYS_V4.into(),
        IpAddr::V6(_) => NOBODYS_V6.into(),
    };
    !can_bind(nobodys) || listed().contains(&ip)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn an_ipv4_address_is_found_in_whatever_holds_it() {
        for inside in [
            "127.0.0.1",
            "::ffff:127.0.0.1",
            "64:ff9b::7f00:1",
            "::127.0.0.1",
        ] {
            assert_eq!(innermost(ip(inside)), ip("127.0.0.1"), "{inside}");
        }
        for plain in ["::", "::1", "2001:db8::7f00:1", "64:ff9b:1::7f00:1"] {
            assert_eq!(innermost(ip(plain)), ip(plain));
        }
    }

    #[test]
    fn the_machines_own_addresses_are_known_as_such_and_others_are_not() {
        assert!(is_own(ip("127.0.0.1")) && is_own(ip("127.1.2.3")));
        for foreign in ["192.0.2.1", "203.0.113.9", "2001:db8::1"] {
            assert!(!is_own(ip(foreign)), "{foreign}");
        }
        let listed = listed();
        assert!(listed.contains(&ip("127.0.0.1")) && !listed.contains(&ip("192.0.2.1")));
    }
}
