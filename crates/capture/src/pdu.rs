//! Tags before a captured packet's octets: the dissector, and the ends the packet travels between.
//!
//! Tags of link type 252 ("exported PDU"): a type and a length of 16 bits each in network order, and
//! a value. Wireshark's reader steps by the length alone, so values are padded to 32 bits *and* the
//! length counts the padding.

use std::net::{IpAddr, SocketAddr};

/// The dissector of a packet's octets: one of Wireshark's own, or one of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dissector {
    /// An IP packet; the simulator's network header is one, too.
    Ip,
    /// An Ethernet frame without its frame check.
    Ethernet,
    /// A frame of a link layer: plain, ARQ or LL-HARQ.
    Link,
    /// A frame of SLACP.
    Slacp,
    /// A sealed datagram between gateways.
    Session,
    /// The content of a sealed datagram: a message of the session.
    Inner,
    /// A UDP payload of unknown content.
    Datagram,
}

impl Dissector {
    /// Every dissector.
    pub const ALL: [Self; 7] = [
        Self::Ip,
        Self::Ethernet,
        Self::Link,
        Self::Slacp,
        Self::Session,
        Self::Inner,
        Self::Datagram,
    ];

    /// The dissector's name in Wireshark.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ip => "ip",
            Self::Ethernet => "eth_withoutfcs",
            Self::Link => "fulmar.link",
            Self::Slacp => "fulmar.slacp",
            Self::Session => "fulmar.session",
            Self::Inner => "fulmar.inner",
            Self::Datagram => "fulmar.datagram",
        }
    }
}

/// The ends that a packet travels between, where its octets do not say so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketEnds {
    /// Two hosts.
    Hosts {
        /// The sending host.
        from: IpAddr,
        /// The receiving host.
        to: IpAddr,
    },
    /// Two UDP sockets.
    Sockets {
        /// The sending socket.
        from: SocketAddr,
        /// The receiving socket.
        to: SocketAddr,
    },
}

impl PacketEnds {
    fn addresses(self) -> (IpAddr, IpAddr) {
        match self {
            Self::Hosts { from, to } => (from, to),
            Self::Sockets { from, to } => (from.ip(), to.ip()),
        }
    }

    fn ports(self) -> Option<(u16, u16)> {
        match self {
            Self::Hosts { .. } => None,
            Self::Sockets { from, to } => Some((from.port(), to.port())),
        }
    }
}

const TAG_END: u16 = 0;
const TAG_DISSECTOR: u16 = 12;
const TAG_IPV4: [u16; 2] = [20, 21];
const TAG_IPV6: [u16; 2] = [22, 23];
const TAG_PORT_KIND: u16 = 24;
const TAG_PORT: [u16; 2] = [25, 26];
/// Wireshark's number for ports of UDP.
const PORT_KIND_UDP: u32 = 3;

/// Replaces the content of `out` by the tags.
pub(crate) fn tags(dissector: Dissector, ends: Option<PacketEnds>, out: &mut Vec<u8>) {
    out.clear();
    tag(out, TAG_DISSECTOR, dissector.name().as_bytes());
    if let Some(ends) = ends {
        let (from, to) = ends.addresses();
        match (from.to_canonical(), to.to_canonical()) {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                tag(out, TAG_IPV4[0], &from.octets());
                tag(out, TAG_IPV4[1], &to.octets());
            }
            // A socket that listens on every address, which is written as IPv6, may talk to IPv4.
            (from, to) => {
                tag(out, TAG_IPV6[0], &sixteen(from));
                tag(out, TAG_IPV6[1], &sixteen(to));
            }
        }
        if let Some((from, to)) = ends.ports() {
            tag(out, TAG_PORT_KIND, &PORT_KIND_UDP.to_be_bytes());
            tag(out, TAG_PORT[0], &u32::from(from).to_be_bytes());
            tag(out, TAG_PORT[1], &u32::from(to).to_be_bytes());
        }
    }
    tag(out, TAG_END, &[]);
}

fn sixteen(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
        IpAddr::V6(v6) => v6.octets(),
    }
}

fn tag(out: &mut Vec<u8>, code: u16, value: &[u8]) {
    let padded = value.len().next_multiple_of(4);
    let len = u16::try_from(padded).expect("names and addresses are short");
    out.extend_from_slice(&code.to_be_bytes());
    out.extend_from_slice(&len.to_be_bytes());
    out.extend_from_slice(value);
    out.resize(out.len() + padded - value.len(), 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn golden_octets() {
        let mut out = vec![0xEE];
        let ends = PacketEnds::Sockets {
            from: ([10, 0, 0, 1], 4000).into(),
            to: ([10, 0, 0, 2], 5000).into(),
        };
        tags(Dissector::Ip, Some(ends), &mut out);
        let golden = [
            0, 12, 0, 4, b'i', b'p', 0, 0, 0, 20, 0, 4, 10, 0, 0, 1, 0, 21, 0, 4, 10, 0, 0, 2, 0,
            24, 0, 4, 0, 0, 0, 3, 0, 25, 0, 4, 0, 0, 0x0F, 0xA0, 0, 26, 0, 4, 0, 0, 0x13, 0x88, 0,
            0, 0, 0,
        ];
        assert_eq!(out, golden);
    }

    #[test]
    fn ends_of_both_families_are_written_as_ipv6() {
        let mut out = Vec::new();
        let ends = PacketEnds::Hosts {
            from: [10, 0, 0, 1].into(),
            to: [0_u16, 0, 0, 0, 0, 0, 0, 1].into(),
        };
        tags(Dissector::Ip, Some(ends), &mut out);
        assert_eq!(out.len(), 8 + 20 + 20 + 4);
        let mapped = PacketEnds::Hosts {
            from: "::ffff:10.0.0.1".parse().unwrap(),
            to: [10, 0, 0, 2].into(),
        };
        tags(Dissector::Ip, Some(mapped), &mut out);
        assert_eq!(out.len(), 8 + 8 + 8 + 4, "both are IPv4");
    }
}
