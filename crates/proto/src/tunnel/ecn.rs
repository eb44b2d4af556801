//! The ECN field inside an IP packet.
//!
//! Sources: RFC 3168 section 5 (the field), RFC 791 section 3.1 and RFC 8200 section 3 (where it is),
//! RFC 1624 section 3 (updating the header checksum).

use crate::machine::Ecn;

const CONGESTED: u8 = 0b11;
/// The octets of a header that marking reads: up to IPv4's header checksum.
const MARKED_OCTETS: usize = 12;

/// The ECN field of `packet`; other octets than an IP packet's count as not capable.
pub fn ecn_of(packet: &[u8]) -> Ecn {
    match field(packet) {
        Some(0) | None => Ecn::NotCapable,
        Some(CONGESTED) => Ecn::Congested,
        Some(_) => Ecn::Capable,
    }
}

/// Marks `arrived` as having met a queue. `arrived` is `sent` with bit errors. The bits that marking changes in
/// `sent` are inverted in `arrived`, so that each error stays an error.
pub fn mark_arrived(sent: &[u8], arrived: &mut [u8]) {
    let Some(field) = field(sent) else { return };
    let change = field ^ CONGESTED;
    match sent.first().map(|first| first >> 4) {
        Some(4) => {
            invert(arrived, 1, change);
            let Some(&[high, low]) = sent.get(10..12) else {
                return;
            };
            let old = u16::from_be_bytes([high, low]);
            // HC' = ~(~HC + ~m + m'), with the carry added back; m' - m is positive here, since the
            // field only grows, and the word's other bits cancel.
            let grown = u32::from(!old) + u32::from(CONGESTED - field);
            let new = !((grown & 0xFFFF) as u16 + (grown >> 16) as u16);
            let [high, low] = (old ^ new).to_be_bytes();
            invert(arrived, 10, high);
            invert(arrived, 11, low);
        }
        // The traffic class lies across the first two octets.
        _ => invert(arrived, 1, change << 4),
    }
}

/// Marks `packet` as having met a queue; `false` if its sender did not ask for marks, and then it is left alone.
pub fn mark_packet(packet: &mut [u8]) -> bool {
    if ecn_of(packet) == Ecn::NotCapable {
        return false;
    }
    let header: Vec<u8> = packet.iter().take(MARKED_OCTETS).copied().collect();
    mark_arrived(&header, packet);
    true
}

fn invert(octets: &mut [u8], at: usize, bits: u8) {
    if let Some(octet) = octets.get_mut(at) {
        *octet ^= bits;
    }
}

fn field(packet: &[u8]) -> Option<u8> {
    match packet.first()? >> 4 {
        4 => packet.get(1).map(|octet| octet & 0b11),
        6 => packet.get(1).map(|octet| (octet >> 4) & 0b11),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    /// A sound IPv4 header of 20 octets; `rest` fills the fields.
    fn ipv4(rest: &[u8; 18], ecn: u8) -> Vec<u8> {
        let mut header = vec![0x45, (rest[0] & 0xFC) | ecn];
        header.extend_from_slice(rest);
        header[10..12].fill(0);
        let sum = !sum(&header);
        header[10..12].copy_from_slice(&sum.to_be_bytes());
        header
    }

    /// The one's complement sum (RFC 1071); all ones over a sound header.
    fn sum(header: &[u8]) -> u16 {
        let words = header
            .chunks_exact(2)
            .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
        let sum: u32 = words.sum();
        let folded = (sum & 0xFFFF) + (sum >> 16);
        u16::try_from((folded & 0xFFFF) + (folded >> 16)).unwrap()
    }

    #[test]
    fn a_marked_ipv4_header_still_passes_its_check() {
        let mut rng = Rng::from_seed(1);
        for case in 0..20_000_u16 {
            let mut rest = [0; 18];
            rng.fill(&mut rest);
            let sent = ipv4(&rest, 1 + u8::from(case % 2 == 1));
            assert_eq!((sum(&sent), ecn_of(&sent)), (0xFFFF, Ecn::Capable));
            let mut arrived = sent.clone();
            mark_arrived(&sent, &mut arrived);
            assert_eq!(sum(&arrived), 0xFFFF, "{sent:02x?} became {arrived:02x?}");
            assert_eq!(ecn_of(&arrived), Ecn::Congested);
            assert_eq!(arrived[2..10], sent[2..10]);
        }
    }

    #[test]
    fn marking_repairs_no_bit_error_and_makes_none() {
        let sent = ipv4(&[7; 18], 2);
        let mut sound = sent.clone();
        mark_arrived(&sent, &mut sound);
        for bit in 0..sent.len() * 8 {
            let mut arrived = sent.clone();
            arrived[bit / 8] ^= 1 << (bit % 8);
            mark_arrived(&sent, &mut arrived);
            let wrong: u32 = arrived
                .iter()
                .zip(&sound)
                .map(|(a, b)| (a ^ b).count_ones())
                .sum();
            assert_eq!(wrong, 1);
        }
    }

    #[test]
    fn ipv6_is_marked_in_its_traffic_class() {
        let mut packet = vec![0; 40];
        packet[..4].copy_from_slice(&[0x6A, 0x9B, 0xCD, 0xEF]);
        assert_eq!(ecn_of(&packet), Ecn::Capable);
        let sent = packet.clone();
        mark_arrived(&sent, &mut packet);
        assert_eq!(packet[..4], [0x6A, 0xBB, 0xCD, 0xEF]);
        assert_eq!(ecn_of(&packet), Ecn::Congested);
    }

    #[test]
    fn a_packet_is_marked_in_place_if_its_sender_asked_for_marks() {
        let mut capable = ipv4(&[7; 18], 2);
        assert!(mark_packet(&mut capable));
        assert_eq!((sum(&capable), ecn_of(&capable)), (0xFFFF, Ecn::Congested));
        let plain = ipv4(&[7; 18], 0);
        let mut packet = plain.clone();
        assert!(!mark_packet(&mut packet));
        assert_eq!(packet, plain);
    }

    #[test]
    fn what_is_no_ip_packet_is_left_alone() {
        for packet in [&[][..], &[0x45], &[0x60], &[0x12, 0x34]] {
            let mut arrived = packet.to_vec();
            assert_eq!(ecn_of(packet), Ecn::NotCapable);
            mark_arrived(packet, &mut arrived);
            assert_eq!(arrived, packet);
        }
    }
}
