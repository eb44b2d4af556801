//! Hosts on a device, and the addresses by which they stand beside those of UDP peers.

use std::net::{Ipv6Addr, SocketAddr, SocketAddrV6};

/// Octets of an Ethernet address.
pub(super) const HARDWARE_BYTES: usize = 6;

/// A host that frames reach on a device.
///
/// It stands for a socket address: the link-local one of its EUI-64 (RFC 4291, appendix A), with the device as zone
/// and port 0, which no UDP peer has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// The index of the device.
    pub device: u32,
    /// The Ethernet address.
    pub hardware: [u8; HARDWARE_BYTES],
}

/// The bit that tells addresses of one's own from a maker's; EUI-64 inverts it.
const UNIVERSAL: u8 = 2;
/// The first half of a link-local address, and the middle of an EUI-64 that was made of 48 bits.
const LINK_LOCAL: [u8; 8] = [0xFE, 0x80, 0, 0, 0, 0, 0, 0];
const MIDDLE: [u8; 2] = [0xFF, 0xFE];

impl Neighbour {
    /// Everybody on a device.
    pub const fn everybody(device: u32) -> Self {
        let hardware = [0xFF; HARDWARE_BYTES];
        Self { device, hardware }
    }

    /// The address that stands for it.
    pub fn address(self) -> SocketAddr {
        let mut octets = [0; 16];
        octets[..8].copy_from_slice(&LINK_LOCAL);
        octets[8..11].copy_from_slice(&self.hardware[..3]);
        octets[11..13].copy_from_slice(&MIDDLE);
        octets[13..].copy_from_slice(&self.hardware[3..]);
        octets[8] ^= UNIVERSAL;
        SocketAddrV6::new(Ipv6Addr::from(octets), 0, 0, self.device).into()
    }

    /// The host for which an address stands.
    pub fn of(address: SocketAddr) -> Option<Self> {
        let SocketAddr::V6(v6) = address else {
            return None;
        };
        let octets = v6.ip().octets();
        let is_one = octets[..8] == LINK_LOCAL && octets[11..13] == MIDDLE && v6.port() == 0;
        let mut hardware = [0; HARDWARE_BYTES];
        hardware[..3].copy_from_slice(&octets[8..11]);
        hardware[3..].copy_from_slice(&octets[13..]);
        hardware[0] ^= UNIVERSAL;
        is_one.then_some(Self {
            device: v6.scope_id(),
            hardware,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_neighbour_stands_for_an_address_that_no_udp_peer_has_and_back() {
        let radio = Neighbour {
            device: 7,
            hardware: [0x02, 0, 0x5E, 0x10, 0, 1],
        };
        assert_eq!(radio.address().to_string(), "[fe80::5eff:fe10:1%7]:0");
        for one in [radio, Neighbour::everybody(1)] {
            assert_eq!(Neighbour::of(one.address()), Some(one));
        }
        for other in [
            "[fe80::5eff:fe10:1%7]:4914",
            "[fe80::1%7]:0",
            "[::1]:0",
            "127.0.0.1:0",
        ] {
            assert_eq!(Neighbour::of(other.parse().unwrap()), None, "{other}");
        }
    }
}
