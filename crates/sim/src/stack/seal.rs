//! The octets that a session puts around AeroTP's short form.
//!
//! Nothing is encrypted here. What counts is what the seal takes on the wire and what it lets pass: nothing that was damaged. A
//! CRC-32 stands for the tag.

use crate::scenario::SEAL_BYTES;
use fulmar_proto::wire::checksum::crc32;

const CHECK_BYTES: usize = 4;

/// Puts a seal behind the content, which begins at `from`.
pub(crate) fn seal(from: usize, packet: &mut Vec<u8>) {
    let check = crc32(packet.get(from..).unwrap_or_default());
    packet.resize(packet.len() + SEAL_BYTES - CHECK_BYTES, 0);
    packet.extend(check.to_be_bytes());
}

/// The content, if nothing was damaged.
pub(crate) fn open(octets: &[u8]) -> Option<&[u8]> {
    let (content, seal) = octets.split_at_checked(octets.len().checked_sub(SEAL_BYTES)?)?;
    let (rest, check) = seal.split_at_checked(SEAL_BYTES - CHECK_BYTES)?;
    let whole = *check == crc32(content).to_be_bytes() && rest.iter().all(|octet| *octet == 0);
    whole.then_some(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sealed_packet_opens_to_its_content_and_a_damaged_one_to_nothing() {
        let mut packet = vec![9; 20];
        packet.extend([1, 2, 3]);
        seal(20, &mut packet);
        assert_eq!(packet.len(), 23 + SEAL_BYTES);
        assert_eq!(open(&packet[20..]), Some(&[1, 2, 3][..]));
        for place in 20..packet.len() {
            packet[place] ^= 4;
            assert_eq!(open(&packet[20..]), None, "{place}");
            packet[place] ^= 4;
        }
        assert_eq!(open(&packet[..SEAL_BYTES - 1]), None);
    }
}
