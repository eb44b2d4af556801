//! The frame that says which datagrams of a path arrived (0x18, in wire 2).

use crate::session::path_slot::PathSlot;

/// Octets of its fields before the bits.
pub(in crate::session) const ARRIVAL_MAP_BYTES: usize = 8;
/// The most octets of bits of one frame; more are not read.
pub(in crate::session) const MAP_BYTES_MAX: usize = 128;

/// A receiver's word which datagrams arrived on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::session) struct ArrivedCounters<'a> {
    /// The place of the path that it is about.
    pub(in crate::session) slot: PathSlot,
    /// The index of the keys that it is about, which datagrams under them name.
    pub(in crate::session) keys: u32,
    /// The largest counter that arrived there, 24 bits.
    pub(in crate::session) largest: u32,
    /// A bit for each counter, from the largest one down, the highest bit of an octet first.
    pub(in crate::session) bits: &'a [u8],
}

impl<'a> ArrivedCounters<'a> {
    /// Appends the fields.
    pub(in crate::session) fn write(&self, out: &mut Vec<u8>) {
        out.push(self.slot.bits());
        out.extend_from_slice(&self.keys.to_be_bytes());
        out.extend_from_slice(&self.largest.to_be_bytes()[1..]);
        out.extend_from_slice(self.bits);
    }

    /// Reads the fields; `None` if they are not there in full, or about a place that cannot be.
    pub(in crate::session) fn read(fields: &'a [u8]) -> Option<Self> {
        let (&[slot, k0, k1, k2, k3, l0, l1, l2], bits) = fields.split_first_chunk()?;
        let bits = bits.get(..MAP_BYTES_MAX).unwrap_or(bits);
        (usize::from(slot) < PathSlot::COUNT).then(|| Self {
            slot: PathSlot::of_bits(slot),
            keys: u32::from_be_bytes([k0, k1, k2, k3]),
            largest: u32::from_be_bytes([0, l0, l1, l2]),
            bits,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn it_has_these_octets() {
        let map = ArrivedCounters {
            slot: PathSlot::FIRST,
            keys: 0x0A0B_0C0D,
            largest: 0x01_0203,
            bits: b"\xf0\x01",
        };
        let mut octets = Vec::new();
        map.write(&mut octets);
        assert_eq!(octets, b"\0\x0a\x0b\x0c\x0d\x01\x02\x03\xf0\x01");
        assert_eq!(ArrivedCounters::read(&octets), Some(map));
        assert_eq!(ArrivedCounters::read(&octets[..7]), None);
        octets[0] = 8;
        assert_eq!(ArrivedCounters::read(&octets), None, "no such place");
    }

    proptest! {
        #[test]
        fn any_octets_read_to_what_writes_them_again_and_few_bits(octets: Vec<u8>) {
            if let Some(map) = ArrivedCounters::read(&octets) {
                prop_assert!(map.bits.len() <= MAP_BYTES_MAX);
                let mut again = Vec::new();
                map.write(&mut again);
                prop_assert_eq!(&again[..], &octets[..again.len()]);
            } else {
                prop_assert!(octets.len() < ARRIVAL_MAP_BYTES || octets[0] > 7);
            }
        }
    }
}
