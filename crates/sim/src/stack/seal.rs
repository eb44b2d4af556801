//! The octets that a session puts around AeroTP's short form.
//!
//! Nothing is encrypted here. What counts is what the seal takes on the wire and what it lets pass: nothing that was damaged. A
//! CRC-32 stands for the tag, and a label for the header.

use crate::scenario::SEAL_BYTES;
use fulmar_proto::wire::checksum::crc32;

const CHECK_BYTES: usize = 4;

/// The header of a sealed datagram: its kind, and its number on its path. Sessions over one path need neither.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SealLabel {
    pub(crate) kind: u8,
    pub(crate) number: u64,
}

impl SealLabel {
    const BYTES: usize = 9;

    fn to_octets(self) -> [u8; Self::BYTES] {
        let mut octets = [self.kind; Self::BYTES];
        octets[1..].copy_from_slice(&self.number.to_be_bytes());
        octets
    }

    /// The check over content with this label; without one it is that of the content.
    fn check(self, content: &[u8]) -> u32 {
        let own = crc32(&self.to_octets()) ^ crc32(&Self::default().to_octets());
        crc32(content) ^ own
    }
}

/// Puts a seal behind the content, which begins at `from`.
pub(crate) fn seal(from: usize, packet: &mut Vec<u8>, label: SealLabel) {
    let check = label.check(packet.get(from..).unwrap_or_default());
    let len = packet.len() + SEAL_BYTES - CHECK_BYTES;
    packet.extend(label.to_octets());
    packet.resize(len, 0);
    packet.extend(check.to_be_bytes());
}

/// The content and its label, if nothing was damaged.
pub(crate) fn open(octets: &[u8]) -> Option<(&[u8], SealLabel)> {
    let (content, seal) = octets.split_at_checked(octets.len().checked_sub(SEAL_BYTES)?)?;
    let (rest, check) = seal.split_at_checked(SEAL_BYTES - CHECK_BYTES)?;
    let (&[kind, ref number @ ..], rest) = rest.split_first_chunk::<{ SealLabel::BYTES }>()?;
    let number = u64::from_be_bytes(*number);
    let label = SealLabel { kind, number };
    let whole =
        *check == label.check(content).to_be_bytes() && rest.iter().all(|octet| *octet == 0);
    whole.then_some((content, label))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sealed_packet_opens_to_its_content_and_a_damaged_one_to_nothing() {
        let named = SealLabel {
            kind: 3,
            number: 1 << 40,
        };
        for label in [SealLabel::default(), named] {
            let mut packet = vec![9; 20];
            packet.extend([1, 2, 3]);
            seal(20, &mut packet, label);
            assert_eq!(packet.len(), 23 + SEAL_BYTES);
            assert_eq!(open(&packet[20..]), Some((&[1, 2, 3][..], label)));
            for place in 20..packet.len() {
                packet[place] ^= 4;
                assert_eq!(open(&packet[20..]), None, "{place}");
                packet[place] ^= 4;
            }
            assert_eq!(open(&packet[..SEAL_BYTES - 1]), None);
        }
    }
}
