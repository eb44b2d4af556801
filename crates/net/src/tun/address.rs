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
