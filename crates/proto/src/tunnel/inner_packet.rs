//! The header fields of a packet that decide how a tunnel carries it.
//!
//! Sources: RFC 791 section 3.1, RFC 8200 sections 3 and 4, RFC 9293 section 3.1, RFC 768, RFC 9260, RFC 4340, RFC 3828.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const TCP: u8 = 6;
/// The protocols whose header begins with two ports: TCP, UDP, DCCP, SCTP, UDP-Lite.
const WITH_PORTS: [u8; 5] = [TCP, 17, 33, 132, 136];
/// IPv6 extension headers with their length in the second octet: hop-by-hop options, routing, destination options.
const EXTENSIONS: [u8; 3] = [0, 43, 60];
const FRAGMENT: u8 = 44;
/// Extension headers that are read before the search for the ports ends.
const EXTENSIONS_MAX: usize = 8;
const V6_HEADER_BYTES: usize = 40;
const V4_HEADER_BYTES_MIN: usize = 20;

/// One IPv4 or IPv6 packet, as far as a tunnel looks at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InnerPacket {
    /// The sender.
    pub source: IpAddr,
    /// The receiver.
    pub destination: IpAddr,
    /// The number of the protocol above IP.
    pub protocol: u8,
    /// The sender's and the receiver's port; `None` for protocols without ports and for all fragments of a packet.
    pub ports: Option<(u16, u16)>,
    /// The octet with the code point (upper six bits) and the ECN field: "type of service", "traffic class".
    pub traffic_class: u8,
    /// The octets before the header of the protocol above IP.
    pub(super) header_bytes: usize,
}

impl InnerPacket {
    /// Reads the headers of `octets`; `None` if they are no whole IP packet.
    pub fn parse(octets: &[u8]) -> Option<Self> {
        match octets.first()? >> 4 {
            4 => Self::parse_v4(octets),
            6 => Self::parse_v6(octets),
            _ => None,
        }
    }

    fn parse_v4(octets: &[u8]) -> Option<Self> {
        let header_bytes = usize::from(octets.first()? & 0x0F) * 4;
        let total = usize::from(u16_at(octets, 2)?);
        let is_sound = header_bytes >= V4_HEADER_BYTES_MIN && total >= header_bytes;
        if !is_sound || total > octets.len() {
            return None;
        }
        let source: [u8; 4] = octets.get(12..16)?.try_into().ok()?;
        let destination: [u8; 4] = octets.get(16..20)?.try_into().ok()?;
        // More fragments, or not the first one (RFC 791).
        let is_fragment = u16_at(octets, 6)? & 0x3FFF != 0;
        let protocol = *octets.get(9)?;
        Some(Self {
            source: Ipv4Addr::from(source).into(),
            destination: Ipv4Addr::from(destination).into(),
            protocol,
            ports: ports(octets, protocol, header_bytes).filter(|_| !is_fragment),
            traffic_class: *octets.get(1)?,
            header_bytes,
        })
    }

    fn parse_v6(octets: &[u8]) -> Option<Self> {
        let payload = usize::from(u16_at(octets, 4)?);
        if V6_HEADER_BYTES + payload > octets.len() {
            return None;
        }
        let source: [u8; 16] = octets.get(8..24)?.try_into().ok()?;
        let destination: [u8; 16] = octets.get(24..40)?.try_into().ok()?;
        let (mut protocol, mut at, mut is_fragment) = (*octets.get(6)?, V6_HEADER_BYTES, false);
        for _ in 0..EXTENSIONS_MAX {
            let length = match protocol {
                FRAGMENT => {
                    is_fragment = true;
                    8
                }
                other if EXTENSIONS.contains(&other) => {
                    let Some(length) = octets.get(at + 1) else {
                        break;
                    };
                    (usize::from(*length) + 1) * 8
                }
                _ => break,
            };
            let Some(next) = octets.get(at) else { break };
            (protocol, at) = (*next, at + length);
        }
        Some(Self {
            source: Ipv6Addr::from(source).into(),
            destination: Ipv6Addr::from(destination).into(),
            protocol,
            ports: ports(octets, protocol, at).filter(|_| !is_fragment),
            traffic_class: octets.first()? << 4 | octets.get(1)? >> 4,
            header_bytes: at,
        })
    }

    /// Whether it carries TCP whose ports it shows.
    pub(super) const fn is_tcp(&self) -> bool {
        self.protocol == TCP && self.ports.is_some()
    }
}

fn ports(octets: &[u8], protocol: u8, at: usize) -> Option<(u16, u16)> {
    if !WITH_PORTS.contains(&protocol) {
        return None;
    }
    Some((u16_at(octets, at)?, u16_at(octets, at + 2)?))
}

pub(super) fn u16_at(octets: &[u8], at: usize) -> Option<u16> {
    let pair: [u8; 2] = octets.get(at..at.checked_add(2)?)?.try_into().ok()?;
    Some(u16::from_be_bytes(pair))
}

#[cfg(test)]
pub(super) mod samples {
    /// An IPv4 packet from 10.0.0.1 to 10.0.0.2 with this protocol and payload.
    pub(in crate::tunnel) fn v4(protocol: u8, payload: &[u8]) -> Vec<u8> {
        let total = u16::try_from(20 + payload.len()).expect("a short payload");
        let mut packet = vec![0x45, 0xB8, 0, 0, 0, 1, 0x40, 0, 64, protocol, 0, 0];
        packet[2..4].copy_from_slice(&total.to_be_bytes());
        packet.extend_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
        packet.extend_from_slice(payload);
        packet
    }

    /// An IPv6 packet from `fd00::1` to `fd00::2` with this next header and payload.
    pub(in crate::tunnel) fn v6(next: u8, payload: &[u8]) -> Vec<u8> {
        let length = u16::try_from(payload.len()).expect("a short payload");
        let mut packet = vec![0x6B, 0x80, 0, 0, 0, 0, next, 64];
        packet[4..6].copy_from_slice(&length.to_be_bytes());
        for last in [1, 2] {
            packet.extend_from_slice(&[0xFD, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]);
        }
        packet.extend_from_slice(payload);
        packet
    }
}

#[cfg(test)]
mod tests {
    use super::samples::{v4, v6};
    use super::*;

    const UDP: &[u8] = &[0, 53, 0x12, 0x34, 0, 8, 0, 0];

    #[test]
    fn addresses_ports_and_traffic_class_of_both_families_are_read() {
        let packet = InnerPacket::parse(&v4(17, UDP)).expect("IPv4");
        assert_eq!(
            packet.source,
            "10.0.0.1".parse::<IpAddr>().expect("an address")
        );
        assert_eq!(
            packet.destination,
            "10.0.0.2".parse::<IpAddr>().expect("an address")
        );
        assert_eq!(
            (packet.ports, packet.traffic_class),
            (Some((53, 0x1234)), 0xB8)
        );
        let packet = InnerPacket::parse(&v6(17, UDP)).expect("IPv6");
        assert_eq!(
            packet.source,
            "fd00::1".parse::<IpAddr>().expect("an address")
        );
        assert_eq!(
            (packet.ports, packet.traffic_class),
            (Some((53, 0x1234)), 0xB8)
        );
    }

    #[test]
    fn ports_are_found_behind_extension_headers() {
        let mut payload = vec![60, 0, 1, 4, 0, 0, 0, 0, 17, 1];
        payload.extend_from_slice(&[0; 14]);
        payload.extend_from_slice(UDP);
        let packet = InnerPacket::parse(&v6(0, &payload)).expect("IPv6");
        assert_eq!((packet.protocol, packet.ports), (17, Some((53, 0x1234))));
    }

    #[test]
    fn all_fragments_of_a_packet_are_alike_without_ports() {
        for flags in [0x20, 0x01] {
            let mut fragment = v4(17, UDP);
            fragment[6] = flags;
            let packet = InnerPacket::parse(&fragment).expect("a fragment");
            assert_eq!((packet.protocol, packet.ports), (17, None));
        }
        let mut payload = vec![17, 0, 0, 1, 0, 0, 0, 9];
        payload.extend_from_slice(UDP);
        let packet = InnerPacket::parse(&v6(FRAGMENT, &payload)).expect("a fragment");
        assert_eq!((packet.protocol, packet.ports), (17, None));
    }

    #[test]
    fn a_packet_cut_anywhere_is_none_and_octets_behind_it_are_ignored() {
        for whole in [v4(17, UDP), v6(17, UDP)] {
            for cut in 0..whole.len() {
                assert_eq!(InnerPacket::parse(&whole[..cut]), None, "{cut} octets");
            }
            let longer = [&whole[..], &[1, 2, 3]].concat();
            assert_eq!(InnerPacket::parse(&longer), InnerPacket::parse(&whole));
        }
        let mut short = v4(17, UDP);
        short[0] = 0x44;
        assert_eq!(InnerPacket::parse(&short), None, "a header of 16 octets");
        short[0] = 0x75;
        assert_eq!(InnerPacket::parse(&short), None, "version 7");
    }
}
