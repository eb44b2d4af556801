//! The 8 octets in clear before every datagram of data in wire 2.
//!
//! ```text
//!  word 0:  version 2, 4 bits | 1 | place of the path 3 | the receiver's session index ...
//!  word 1:  ... its last octet | packet counter of that place 24
//! ```
//!
//! There is no check: the seal finds damage, and a wrong index names no keys.

use crate::session::cipher::Number;
use crate::session::path_slot::PathSlot;

/// Octets of the header.
pub(in crate::session) const DATA_HEADER_BYTES: usize = 8;

/// Version and form, in the upper five bits of the first octet.
const FORM: u8 = 0x28;
const FORM_BITS: u8 = 0xF8;

/// A header of wire 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::session) struct DataHeader {
    pub(in crate::session) receiver: u32,
    /// The number; its counter has 24 bits.
    pub(in crate::session) number: Number,
}

/// The first octet and the counter of a number.
const fn said(number: Number) -> [u8; 4] {
    let [.., c0, c1, c2] = number.counter.to_be_bytes();
    [FORM | number.slot.bits(), c0, c1, c2]
}

impl DataHeader {
    /// Whether a datagram says that it is data in wire 2.
    pub(in crate::session) fn begins(octets: &[u8]) -> bool {
        octets
            .first()
            .is_some_and(|first| first & FORM_BITS == FORM)
    }

    pub(in crate::session) const fn to_octets(self) -> [u8; DATA_HEADER_BYTES] {
        let [first, c0, c1, c2] = said(self.number);
        let [r0, r1, r2, r3] = self.receiver.to_be_bytes();
        [first, r0, r1, r2, r3, c0, c1, c2]
    }

    /// The header at the start of `octets`; `None` if they are too short, or do not [begin](DataHeader::begins) so.
    pub(in crate::session) fn parse(octets: &[u8]) -> Option<Self> {
        let [first, r0, r1, r2, r3, c0, c1, c2] = *octets.first_chunk::<DATA_HEADER_BYTES>()?;
        Some(Self {
            receiver: u32::from_be_bytes([r0, r1, r2, r3]),
            number: Self::number_of([first, c0, c1, c2])?,
        })
    }

    /// The octets that show that the datagram was seen.
    pub(in crate::session) const fn seen(self) -> [u8; 4] {
        said(self.number)
    }

    /// The number that [`DataHeader::seen`] shows; `None` if it was no datagram in wire 2.
    pub(in crate::session) fn number_of(seen: [u8; 4]) -> Option<Number> {
        let [first, c0, c1, c2] = seen;
        Self::begins(&seen).then_some(Number {
            slot: PathSlot::of_bits(first),
            counter: u64::from(u32::from_be_bytes([0, c0, c1, c2])),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(bits: u8, counter: u64) -> DataHeader {
        DataHeader {
            receiver: 0x6120_C5D2,
            number: Number {
                slot: PathSlot::of_bits(bits),
                counter,
            },
        }
    }

    #[test]
    fn headers_are_these_octets_and_read_back() {
        for (bits, counter, octets) in [
            (0, 0, [0x28, 0x61, 0x20, 0xC5, 0xD2, 0, 0, 0]),
            (0, 1, [0x28, 0x61, 0x20, 0xC5, 0xD2, 0, 0, 1]),
            (
                5,
                0x7E_FFFF,
                [0x2D, 0x61, 0x20, 0xC5, 0xD2, 0x7E, 0xFF, 0xFF],
            ),
            (
                7,
                0xFF_FFFF,
                [0x2F, 0x61, 0x20, 0xC5, 0xD2, 0xFF, 0xFF, 0xFF],
            ),
        ] {
            let header = header(bits, counter);
            assert_eq!(header.to_octets(), octets);
            let datagram = [&octets[..], b"sealed"].concat();
            assert_eq!(DataHeader::parse(&datagram), Some(header));
            for len in 0..DATA_HEADER_BYTES {
                assert_eq!(DataHeader::parse(&datagram[..len]), None);
            }
        }
    }

    #[test]
    fn eight_first_octets_begin_data_of_wire_2_and_all_others_something_else() {
        for first in 0..=u8::MAX {
            let mut octets = header(0, 0x01_0203).to_octets();
            octets[0] = first;
            let is_ours = (0x28..=0x2F).contains(&first);
            assert_eq!(DataHeader::begins(&octets), is_ours);
            assert_eq!(DataHeader::parse(&octets).is_some(), is_ours);
        }
        assert!(!DataHeader::begins(&[]));
    }

    #[test]
    fn a_datagram_that_was_seen_is_known_by_place_and_counter() {
        let header = header(3, 0xA0_B0C0);
        assert_eq!(header.seen(), [0x2B, 0xA0, 0xB0, 0xC0]);
        assert_eq!(DataHeader::number_of(header.seen()), Some(header.number));
        assert_eq!(DataHeader::number_of([0x10, 0xA0, 0xB0, 0xC0]), None);
    }
}
