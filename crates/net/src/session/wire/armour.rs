//! The 17 octets in clear before a datagram of data in wire 2, on carriers that let damage in.
//!
//! ```text
//!  octet 0: version 3, 4 bits | 1 | place of the path 3
//!        1: words of parity behind the datagram
//!        2: the receiver's session index 4
//!        6: packet counter of that place 3
//!        9: parity of these nine 8
//! ```
//!
//! The parity corrects any four wrong octets of the seventeen. At one wrong bit in a thousand that fails once in five
//! million datagrams. Content has parity of its own, as many words as the header says, another number each time.

use super::data_header::DataHeader;
use crate::session::cipher::Number;
use crate::session::path_slot::PathSlot;
use fulmar_proto::fec::packet::PacketCode;
use fulmar_proto::units::FecStrength;

/// Octets of the header, its parity included.
pub(in crate::session) const ARMOURED_HEADER_BYTES: usize = COVERED_BYTES + PARITY.parity_bytes();

const COVERED_BYTES: usize = 9;
const PARITY: FecStrength = FecStrength::from_words(2).expect("two words");
/// Version and form, in the upper five bits of the first octet.
const FORM: u8 = 0x38;
const FORM_BITS: u8 = 0xF8;

/// A header with parity of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::session) struct Armoured {
    pub(in crate::session) header: DataHeader,
    /// Parity behind the datagram, over content and tag; at most 255 words.
    pub(in crate::session) words: FecStrength,
}

impl Armoured {
    /// Writes the header over the octets of `out` from `start` on.
    pub(in crate::session) fn write(self, code: &mut PacketCode, start: usize, out: &mut Vec<u8>) {
        let Number { slot, counter } = self.header.number;
        let [.., c0, c1, c2] = counter.to_be_bytes();
        // The code works at the end of a buffer.
        let end = out.len();
        out.push(FORM | slot.bits());
        // `SessionConfig` refuses more than 255 words.
        out.push(u8::try_from(self.words.words()).unwrap_or(u8::MAX));
        out.extend_from_slice(&self.header.receiver.to_be_bytes());
        out.extend_from_slice(&[c0, c1, c2]);
        code.append_parity(out, end, PARITY);
        out.copy_within(end.., start);
        out.truncate(end);
    }

    fn of(octets: &[u8; ARMOURED_HEADER_BYTES]) -> Option<Self> {
        let [first, words, r0, r1, r2, r3, c0, c1, c2, ..] = *octets;
        let number = Number {
            slot: PathSlot::of_bits(first),
            counter: u64::from(u32::from_be_bytes([0, c0, c1, c2])),
        };
        let armoured = Self {
            header: DataHeader {
                receiver: u32::from_be_bytes([r0, r1, r2, r3]),
                number,
            },
            words: FecStrength::from_words(u16::from(words))?,
        };
        (first & FORM_BITS == FORM).then_some(armoured)
    }

    /// The header at the start of `octets`, if its parity is right; `scratch` is memory for the work.
    pub(in crate::session) fn read(
        octets: &[u8],
        code: &mut PacketCode,
        scratch: &mut Vec<u8>,
    ) -> Option<Self> {
        let octets: &[u8; ARMOURED_HEADER_BYTES] = octets.first_chunk()?;
        let armoured = Self::of(octets)?;
        scratch.clear();
        scratch.extend_from_slice(&octets[..COVERED_BYTES]);
        code.append_parity(scratch, 0, PARITY);
        (scratch.as_slice() == octets).then_some(armoured)
    }

    /// The header at the start of `octets`, of which up to four octets are wrong, and how many were.
    pub(in crate::session) fn correct(octets: &[u8], code: &mut PacketCode) -> Option<(Self, u32)> {
        let mut copy: [u8; ARMOURED_HEADER_BYTES] = *octets.first_chunk()?;
        let corrected = code.correct(&mut copy, PARITY).ok()?;
        Some((Self::of(&copy)?, corrected.symbols))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fulmar_proto::rng::Rng;

    fn armoured() -> Armoured {
        Armoured {
            header: DataHeader {
                receiver: 0x6120_C5D2,
                number: Number {
                    slot: PathSlot::of_bits(3),
                    counter: 0x01_0203,
                },
            },
            words: FecStrength::from_words(9).unwrap(),
        }
    }

    fn written() -> Vec<u8> {
        let mut out = vec![0; 1 + ARMOURED_HEADER_BYTES];
        out.extend_from_slice(b"sealed");
        armoured().write(&mut PacketCode::new(), 1, &mut out);
        assert_eq!((out[0], &out[18..]), (0, &b"sealed"[..]));
        out.split_off(1)
    }

    #[test]
    fn a_header_is_these_octets_and_reads_back_while_it_is_whole() {
        let datagram = written();
        let fields = [0x3B, 9, 0x61, 0x20, 0xC5, 0xD2, 1, 2, 3];
        assert_eq!(datagram[..COVERED_BYTES], fields);
        let (mut code, mut scratch) = (PacketCode::new(), Vec::new());
        let mut read = |octets: &[u8]| Armoured::read(octets, &mut code, &mut scratch);
        assert_eq!(read(&datagram), Some(armoured()));
        assert_eq!(read(&datagram[..17]), Some(armoured()));
        assert_eq!(read(&datagram[..16]), None);
        for bit in 0..17 * 8 {
            let mut damaged = datagram.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(read(&damaged), None, "bit {bit}");
        }
    }

    #[test]
    fn any_four_wrong_octets_are_mended_and_five_are_not_taken_for_another_header() {
        let sound = written();
        let mut code = PacketCode::new();
        let mut rng = Rng::from_seed(4).child("octets");
        let mut wrong = move || u8::try_from(1 + rng.below(255)).unwrap();
        let mut taken_for_another = 0;
        for places in 0_u32..1 << ARMOURED_HEADER_BYTES {
            let count = places.count_ones();
            if count > 5 {
                continue;
            }
            let mut damaged = sound.clone();
            let hit = (0..ARMOURED_HEADER_BYTES).filter(|place| places >> place & 1 == 1);
            hit.for_each(|place| damaged[place] ^= wrong());
            let corrected = Armoured::correct(&damaged, &mut code);
            if count <= 4 {
                assert_eq!(corrected, Some((armoured(), count)), "{places:b}");
            } else {
                taken_for_another += u32::from(corrected.is_some());
            }
        }
        // One pattern in two million is near another header.
        assert_eq!(taken_for_another, 0);
    }
}
