//! The frame with further parity for datagrams that arrived damaged (0x14, in wire 2).
//!
//! ```text
//!  octet 0: place of the path
//!        1: for each datagram: counter 3 | codewords 1 | first step 1 | steps 1 | steps x codewords octets
//! ```

use crate::session::path_slot::PathSlot;

/// Octets before the parity of one datagram.
pub(in crate::session) const FURTHER_PART_BYTES: usize = 6;

/// Further parity for datagrams of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::session) struct FurtherParity<'a> {
    /// The place of the path.
    pub(in crate::session) slot: PathSlot,
    /// The parts of all datagrams, one after the other.
    pub(in crate::session) parts: &'a [u8],
}

/// Further parity for one datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::session) struct FurtherPart<'a> {
    /// Its counter.
    pub(in crate::session) counter: u32,
    /// The codewords of its region.
    pub(in crate::session) codewords: u8,
    /// The steps that were sent before.
    pub(in crate::session) first: u8,
    /// As many octets for each codeword as there are steps.
    pub(in crate::session) octets: &'a [u8],
}

impl FurtherPart<'_> {
    /// Appends the part.
    pub(in crate::session) fn write(&self, out: &mut Vec<u8>) {
        let [_, counter @ ..] = self.counter.to_be_bytes();
        out.extend_from_slice(&counter);
        let steps = self.octets.len().checked_div(usize::from(self.codewords));
        let steps = u8::try_from(steps.unwrap_or_default()).unwrap_or(u8::MAX);
        out.extend_from_slice(&[self.codewords, self.first, steps]);
        out.extend_from_slice(self.octets);
    }
}

impl<'a> FurtherParity<'a> {
    /// Appends the fields.
    pub(in crate::session) fn write(&self, out: &mut Vec<u8>) {
        out.push(self.slot.bits());
        out.extend_from_slice(self.parts);
    }

    /// Reads the fields; `None` if there are none, or they are about a place that cannot be.
    pub(in crate::session) fn read(fields: &'a [u8]) -> Option<Self> {
        let (&slot, parts) = fields.split_first()?;
        (usize::from(slot) < PathSlot::COUNT).then(|| Self {
            slot: PathSlot::of_bits(slot),
            parts,
        })
    }

    /// The parts that are there in full.
    pub(in crate::session) fn parts(&self) -> impl Iterator<Item = FurtherPart<'a>> + use<'a> {
        let mut rest = self.parts;
        core::iter::from_fn(move || {
            let (fields, behind) = rest.split_first_chunk::<FURTHER_PART_BYTES>()?;
            let [c0, c1, c2, codewords, first, steps] = *fields;
            let octets = usize::from(codewords) * usize::from(steps);
            let (octets, behind) = behind.split_at_checked(octets)?;
            rest = behind;
            Some(FurtherPart {
                counter: u32::from_be_bytes([0, c0, c1, c2]),
                codewords,
                first,
                octets,
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn it_has_these_octets() {
        let parts = [(0x01_0203, 2, 0, &b"abcd"[..]), (7, 1, 4, b"x")];
        let parts = parts.map(|(counter, codewords, first, octets)| FurtherPart {
            counter,
            codewords,
            first,
            octets,
        });
        let mut written = Vec::new();
        for part in &parts {
            part.write(&mut written);
        }
        let frame = FurtherParity {
            slot: PathSlot::FIRST,
            parts: &written,
        };
        let mut octets = Vec::new();
        frame.write(&mut octets);
        assert_eq!(octets, b"\0\x01\x02\x03\x02\0\x02abcd\0\0\x07\x01\x04\x01x");
        let read = FurtherParity::read(&octets).expect("whole");
        assert!(read.parts().eq(parts));
        let cut = FurtherParity::read(&octets[..octets.len() - 1]).expect("a place");
        assert!(cut.parts().eq(parts.into_iter().take(1)), "cut off");
        octets[0] = 8;
        assert_eq!(FurtherParity::read(&octets), None, "no such place");
    }

    proptest! {
        #[test]
        fn any_octets_read_to_parts_that_write_them_again(octets: Vec<u8>) {
            if let Some(frame) = FurtherParity::read(&octets) {
                let mut again = vec![octets[0]];
                frame.parts().for_each(|part| part.write(&mut again));
                prop_assert!(octets.starts_with(&again));
            }
        }
    }
}
