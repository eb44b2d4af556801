//! The maximum segment size that a TCP inside the tunnel announces, kept to what the tunnel's MTU carries.

use super::inner_packet::{InnerPacket, u16_at};

const SYN: u8 = 0x02;
const TCP_HEADER_BYTES: usize = 20;
const FLAGS_AT: usize = 13;
const CHECKSUM_AT: usize = 16;
const END_OF_OPTIONS: u8 = 0;
const NO_OPERATION: u8 = 1;
const SEGMENT_SIZE: u8 = 2;

/// Lowers the maximum segment size in a SYN to what a packet of `mtu` octets carries, without options (RFC 6691).
/// Returns whether it did.
pub fn limit_mss(octets: &mut [u8], packet: &InnerPacket, mtu: usize) -> bool {
    let ip_bytes = if packet.source.is_ipv4() { 20 } else { 40 };
    let largest =
        u16::try_from(mtu.saturating_sub(ip_bytes + TCP_HEADER_BYTES)).unwrap_or(u16::MAX);
    let Some(at) = announced_at(octets, packet) else {
        return false;
    };
    let tcp = packet.header_bytes;
    let (Some(old), Some(sum)) = (u16_at(octets, at), u16_at(octets, tcp + CHECKSUM_AT)) else {
        return false;
    };
    if old <= largest {
        return false;
    }
    // A field at an odd place of the header lies in two words of the sum, each with its octets the other way round.
    let (was, is) = if (at - tcp).is_multiple_of(2) {
        (old, largest)
    } else {
        (old.swap_bytes(), largest.swap_bytes())
    };
    write_at(octets, at, largest);
    write_at(octets, tcp + CHECKSUM_AT, changed(sum, was, is));
    true
}

/// The place of the announced size in a SYN.
fn announced_at(octets: &[u8], packet: &InnerPacket) -> Option<usize> {
    let tcp = octets
        .get(packet.header_bytes..)
        .filter(|_| packet.is_tcp())?;
    if tcp.get(FLAGS_AT)? & SYN == 0 {
        return None;
    }
    let header_bytes = usize::from(tcp.get(FLAGS_AT - 1)? >> 4) * 4;
    let mut at = TCP_HEADER_BYTES;
    while at < header_bytes {
        match *tcp.get(at)? {
            END_OF_OPTIONS => return None,
            NO_OPERATION => at += 1,
            kind => {
                let length = usize::from(*tcp.get(at + 1)?);
                if kind == SEGMENT_SIZE && length == 4 && at + length <= header_bytes {
                    return Some(packet.header_bytes + at + 2);
                }
                if length < 2 {
                    return None;
                }
                at += length;
            }
        }
    }
    None
}

/// The checksum after a word changed (RFC 1624, equation 3): HC' = ~(~HC + ~m + m').
fn changed(sum: u16, was: u16, is: u16) -> u16 {
    let wide = u32::from(!sum) + u32::from(!was) + u32::from(is);
    let folded = (wide & 0xFFFF) + (wide >> 16);
    let folded = (folded & 0xFFFF) + (folded >> 16);
    !u16::try_from(folded).unwrap_or(u16::MAX)
}

fn write_at(octets: &mut [u8], at: usize, word: u16) {
    if let Some(place) = octets.get_mut(at..at + 2) {
        place.copy_from_slice(&word.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::super::inner_packet::samples::{v4, v6};
    use super::*;

    /// A SYN with these options, padded, and a sound checksum over the segment (the pseudo-header does not change).
    fn syn(options: &[u8]) -> Vec<u8> {
        let padded = options.len().div_ceil(4) * 4;
        let words = u8::try_from((TCP_HEADER_BYTES + padded) / 4).expect("few options");
        let mut segment = vec![
            0,
            80,
            1,
            2,
            9,
            9,
            9,
            9,
            0,
            0,
            0,
            0,
            words << 4,
            SYN,
            8,
            0,
            0,
            0,
            0,
            0,
        ];
        segment.extend_from_slice(options);
        segment.resize(TCP_HEADER_BYTES + padded, 0);
        let sum = !sum(&segment);
        segment[16..18].copy_from_slice(&sum.to_be_bytes());
        segment
    }

    fn sum(octets: &[u8]) -> u16 {
        let words = octets
            .chunks(2)
            .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
        let sum: u32 = words.sum();
        let folded = (sum & 0xFFFF) + (sum >> 16);
        u16::try_from((folded & 0xFFFF) + (folded >> 16)).expect("folded")
    }

    fn limited(packet: &[u8], mtu: usize) -> Option<Vec<u8>> {
        let mut octets = packet.to_vec();
        let parsed = InnerPacket::parse(packet).expect("a packet");
        limit_mss(&mut octets, &parsed, mtu).then_some(octets)
    }

    #[test]
    fn a_size_too_large_is_lowered_and_the_checksum_still_fits() {
        // At an even and at an odd place.
        for options in [&[2, 4, 0x23, 0x01][..], &[1, 2, 4, 0x23, 0x01, 3, 3, 7]] {
            let segment = syn(options);
            let at = options
                .iter()
                .position(|octet| *octet == 0x23)
                .expect("it is there");
            for (packet, header, largest) in
                [(v4(6, &segment), 20, 1_360), (v6(6, &segment), 40, 1_340)]
            {
                let lowered = limited(&packet, 1_400).expect("it is lowered");
                let tcp = &lowered[header..];
                assert_eq!(sum(tcp), 0xFFFF, "{tcp:02x?}");
                assert_eq!(u16_at(tcp, TCP_HEADER_BYTES + at), Some(largest));
            }
        }
    }

    #[test]
    fn a_size_that_fits_and_what_is_no_syn_are_left_alone() {
        assert_eq!(
            limited(&v4(6, &syn(&[2, 4, 5, 0x50])), 1_400),
            None,
            "1360 fits"
        );
        let mut later = syn(&[2, 4, 0x23, 1]);
        later[FLAGS_AT] = 0x10;
        assert_eq!(limited(&v4(6, &later), 1_400), None, "no SYN");
        assert_eq!(limited(&v4(17, &syn(&[2, 4, 0x23, 1])), 1_400), None, "UDP");
        assert_eq!(
            limited(&v4(6, &syn(&[0, 2, 4, 0x23, 1])), 1_400),
            None,
            "behind the end"
        );
    }

    #[test]
    fn options_that_lead_nowhere_end_the_search() {
        for options in [&[7, 0, 2, 4, 0x23, 1][..], &[7, 1], &[2, 3, 9], &[7, 200]] {
            assert_eq!(limited(&v4(6, &syn(options)), 1_280), None, "{options:?}");
        }
    }
}
