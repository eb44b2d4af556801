//! An address of an interface with the length of its network's prefix.

use core::fmt;
use core::str::FromStr;
use std::net::IpAddr;

/// An address and the network around it, such as `10.77.0.1/24`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterfaceAddress {
    ip: IpAddr,
    prefix_len: u8,
}

/// A text that is no [`InterfaceAddress`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an address with its prefix, such as 10.77.0.1/24 or fd77::1/64")]
pub struct AddressError(String);

impl InterfaceAddress {
    /// The address `ip` in a network whose prefix has `prefix_len` bits; `None` if it has fewer.
    pub const fn new(ip: IpAddr, prefix_len: u8) -> Option<Self> {
        let longest = match ip {
            IpAddr::V4(_) => 32,
            IpAddr::V6(_) => 128,
        };
        if prefix_len > longest {
            return None;
        }
        Some(Self { ip, prefix_len })
    }

    /// Whether `ip` is in the network around it.
    pub fn has(self, ip: IpAddr) -> bool {
        let same = |own: u128, other: u128, bits: u32| {
            let host_bits = bits - u32::from(self.prefix_len);
            (own ^ other).checked_shr(host_bits).unwrap_or(0) == 0
        };
        match (self.ip, ip) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                same(own.to_bits().into(), other.to_bits().into(), 32)
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => same(own.to_bits(), other.to_bits(), 128),
            _ => false,
        }
    }

    /// The network around it, whose address has no bits of a host.
    #[must_use]
    pub fn network(self) -> Self {
        let clear = |bits: u128, length: u32| {
            let host_bits = length - u32::from(self.prefix_len);
            let kept = bits.checked_shr(host_bits).unwrap_or(0);
            kept.checked_shl(host_bits).unwrap_or(0)
        };
        let ip = match self.ip {
            IpAddr::V4(ip) => {
                let bits = u32::try_from(clear(ip.to_bits().into(), 32)).unwrap_or(0);
                IpAddr::V4(bits.into())
            }
            IpAddr::V6(ip) => IpAddr::V6(clear(ip.to_bits(), 128).into()),
        };
        Self { ip, ..self }
    }

    /// The same network around another of its hosts; another network's host has none.
    #[must_use]
    pub fn with_host(self, ip: IpAddr) -> Option<Self> {
        self.has(ip).then_some(Self { ip, ..self })
    }

    /// The address alone.
    pub const fn ip(self) -> IpAddr {
        self.ip
    }
}

impl FromStr for InterfaceAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let parse = || {
            let (ip, prefix_len) = text.split_once('/')?;
            Self::new(ip.parse().ok()?, prefix_len.parse().ok()?)
        };
        parse().ok_or_else(|| AddressError(text.to_owned()))
    }
}

impl fmt::Display for InterfaceAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.ip, self.prefix_len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_as_it_is_printed() {
        for text in ["10.77.0.1/24", "fd77::1/64", "::/0", "10.0.0.1/32"] {
            assert_eq!(text.parse::<InterfaceAddress>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn a_network_has_the_addresses_with_its_prefix() {
        let has = |network: &str, ip: &str| {
            let network: InterfaceAddress = network.parse().unwrap();
            network.has(ip.parse().unwrap())
        };
        assert!(has("10.77.0.1/24", "10.77.0.255"));
        assert!(!has("10.77.0.1/24", "10.77.1.0"));
        assert!(has("10.77.0.1/32", "10.77.0.1") && !has("10.77.0.1/32", "10.77.0.0"));
        assert!(has("0.0.0.0/0", "192.0.2.1") && !has("0.0.0.0/0", "::1"));
        assert!(has("fd77::1/64", "fd77::ffff") && !has("fd77::1/64", "fd77:0:0:1::1"));
        assert!(has("::/0", "2001:db8::1") && !has("::/0", "10.0.0.1"));
    }

    #[test]
    fn a_network_has_no_bits_of_a_host() {
        for (address, network) in [
            ("10.77.3.1/22", "10.77.0.0/22"),
            ("10.77.0.1/32", "10.77.0.1/32"),
            ("10.77.0.1/0", "0.0.0.0/0"),
            ("fd77::ffff/112", "fd77::/112"),
            ("fd77::1/0", "::/0"),
        ] {
            let address: InterfaceAddress = address.parse().unwrap();
            assert_eq!(address.network().to_string(), network);
        }
    }

    #[test]
    fn an_address_without_a_prefix_or_with_one_too_long_is_refused() {
        for text in [
            "10.77.0.1",
            "10.77.0.1/33",
            "fd77::1/129",
            "/24",
            "ten/24",
            "",
        ] {
            let error = text.parse::<InterfaceAddress>().unwrap_err();
            assert!(error.to_string().contains("10.77.0.1/24"), "{error}");
        }
    }
}
