//! The network header around a segment.
//!
//! Sources: RFC 791, section 3.1; RFC 8200, section 3; RFC 3168, section 5.

use fulmar_baseline::wire::tcp::AddressPair;
use fulmar_proto::machine::Ecn;
use fulmar_proto::wire::checksum::InternetSum;

const PROTOCOL_TCP: u8 = 6;
const HOP_LIMIT: u8 = 64;
const DO_NOT_FRAGMENT: u16 = 0x4000;
const V4_HEADER_BYTES: usize = 20;
const V6_HEADER_BYTES: usize = 40;

/// Puts the header of `addresses` in front of `segment`.
pub(crate) fn packet(addresses: &AddressPair, ecn: Ecn, segment: &[u8]) -> Vec<u8> {
    let codepoint = match ecn {
        Ecn::NotCapable => 0b00,
        Ecn::Capable => 0b10,
        Ecn::Congested => 0b11,
    };
    let length = |octets: usize| u16::try_from(octets).expect("below the MTU").to_be_bytes();
    let mut packet = Vec::new();
    match addresses {
        AddressPair::V4 {
            source,
            destination,
        } => {
            packet.extend([0x45, codepoint]);
            packet.extend(length(V4_HEADER_BYTES + segment.len()));
            packet.extend([0, 0]);
            packet.extend(DO_NOT_FRAGMENT.to_be_bytes());
            packet.extend([HOP_LIMIT, PROTOCOL_TCP, 0, 0]);
            packet.extend(source);
            packet.extend(destination);
            let checksum = InternetSum::default().and(&packet).finish();
            packet[10..12].copy_from_slice(&checksum.to_be_bytes());
        }
        AddressPair::V6 {
            source,
            destination,
        } => {
            packet.extend([0x60, codepoint << 4, 0, 0]);
            packet.extend(length(segment.len()));
            packet.extend([PROTOCOL_TCP, HOP_LIMIT]);
            packet.extend(source);
            packet.extend(destination);
        }
    }
    packet.extend_from_slice(segment);
    packet
}

/// The segment in `packet`, if it is a sound one with TCP between `addresses`.
pub(crate) fn segment<'a>(addresses: &AddressPair, packet: &'a [u8]) -> Option<(Ecn, &'a [u8])> {
    let (header, codepoint, protocol, total) = match addresses {
        AddressPair::V4 {
            source,
            destination,
        } => {
            let header = packet.get(..V4_HEADER_BYTES)?;
            let sound = header[0] == 0x45
                && InternetSum::default().and(header).finish() == 0
                && header[12..16] == *source
                && header[16..20] == *destination;
            let total = usize::from(u16::from_be_bytes([header[2], header[3]]));
            (sound.then_some(header)?, header[1], header[9], total)
        }
        AddressPair::V6 {
            source,
            destination,
        } => {
            let header = packet.get(..V6_HEADER_BYTES)?;
            let sound =
                header[0] >> 4 == 6 && header[8..24] == *source && header[24..40] == *destination;
            let payload = usize::from(u16::from_be_bytes([header[4], header[5]]));
            let total = V6_HEADER_BYTES + payload;
            (sound.then_some(header)?, header[1] >> 4, header[6], total)
        }
    };
    if protocol != PROTOCOL_TCP {
        return None;
    }
    let ecn = match codepoint & 0b11 {
        0b00 => Ecn::NotCapable,
        0b11 => Ecn::Congested,
        _ => Ecn::Capable,
    };
    Some((ecn, packet.get(header.len()..total)?))
}

/// Whether an IPv6 host sends this by itself on a new device, by `ICMPv6`: the groups that it listens to (RFC 9777,
/// behind hop-by-hop options), or a search for routers (RFC 4861).
pub(crate) fn is_housekeeping(packet: &[u8]) -> bool {
    const HOP_BY_HOP: u8 = 0;
    const ICMP_V6: u8 = 58;
    let header = packet.first_chunk::<V6_HEADER_BYTES>();
    header.is_some_and(|header| header[0] >> 4 == 6 && [HOP_BY_HOP, ICMP_V6].contains(&header[6]))
}
