//! The frame that says what arrived on a path (0x10, in wire 2).

use crate::session::path_slot::PathSlot;
use fulmar_proto::units::Duration;

/// Octets of its fields.
pub(in crate::session) const PATH_ACK_BYTES: usize = 16;

/// The unit of the hold.
const HOLD_UNIT_MICROS: u64 = 16;

/// A receiver's totals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::session) struct PathAck {
    /// The place of the path that it is about.
    pub(in crate::session) slot: PathSlot,
    /// The largest counter that arrived there, 24 bits.
    pub(in crate::session) largest: u32,
    /// The time since that arrival; [`PathAck::HOLD_MAX`] stands for more.
    pub(in crate::session) hold: Duration,
    /// The receiver's clock, in microseconds modulo 2^32.
    pub(in crate::session) clock: u32,
    /// Octets that arrived, headers included, modulo 2^32.
    pub(in crate::session) octets: u32,
    /// Datagrams that arrived with a congestion mark, modulo 2^16.
    pub(in crate::session) marks: u16,
}

impl PathAck {
    /// The longest hold that the field tells.
    pub(in crate::session) const HOLD_MAX: Duration =
        Duration::from_micros(HOLD_UNIT_MICROS * u16::MAX as u64);

    /// Appends the fields.
    pub(in crate::session) fn write(&self, out: &mut Vec<u8>) {
        let units = self.hold.as_micros() / u128::from(HOLD_UNIT_MICROS);
        let hold = u16::try_from(units).unwrap_or(u16::MAX);
        out.push(self.slot.bits());
        out.extend_from_slice(&self.largest.to_be_bytes()[1..]);
        out.extend_from_slice(&hold.to_be_bytes());
        out.extend_from_slice(&self.clock.to_be_bytes());
        out.extend_from_slice(&self.octets.to_be_bytes());
        out.extend_from_slice(&self.marks.to_be_bytes());
    }

    /// Reads the fields; `None` if they are not there in full, or about a place that cannot be. What is behind them is
    /// for later versions.
    pub(in crate::session) fn read(fields: &[u8]) -> Option<Self> {
        let fields: &[u8; PATH_ACK_BYTES] = fields.first_chunk()?;
        let [
            slot,
            l0,
            l1,
            l2,
            h0,
            h1,
            c0,
            c1,
            c2,
            c3,
            o0,
            o1,
            o2,
            o3,
            m0,
            m1,
        ] = *fields;
        let hold = u16::from_be_bytes([h0, h1]);
        (usize::from(slot) < PathSlot::COUNT).then(|| Self {
            slot: PathSlot::of_bits(slot),
            largest: u32::from_be_bytes([0, l0, l1, l2]),
            hold: Duration::from_micros(HOLD_UNIT_MICROS * u64::from(hold)),
            clock: u32::from_be_bytes([c0, c1, c2, c3]),
            octets: u32::from_be_bytes([o0, o1, o2, o3]),
            marks: u16::from_be_bytes([m0, m1]),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn it_has_these_octets() {
        let ack = PathAck {
            slot: PathSlot::FIRST,
            largest: 0x01_0203,
            hold: Duration::from_micros(32),
            clock: 0x0A0B_0C0D,
            octets: 0x1112_1314,
            marks: 5,
        };
        let mut octets = Vec::new();
        ack.write(&mut octets);
        let golden = b"\0\x01\x02\x03\0\x02\x0a\x0b\x0c\x0d\x11\x12\x13\x14\0\x05";
        assert_eq!(octets, golden);
        assert_eq!(PathAck::read(&octets), Some(ack));
        assert_eq!(PathAck::read(&octets[..15]), None);
        octets.extend_from_slice(b"ranges");
        assert_eq!(PathAck::read(&octets), Some(ack));
        octets[0] = 8;
        assert_eq!(PathAck::read(&octets), None, "no such place");
    }

    proptest! {
        #[test]
        fn any_octets_read_to_what_writes_them_again(octets: [u8; 20]) {
            if let Some(ack) = PathAck::read(&octets) {
                let mut again = Vec::new();
                ack.write(&mut again);
                prop_assert_eq!(&again[..], &octets[..PATH_ACK_BYTES]);
            } else {
                prop_assert!(octets[0] > 7);
            }
        }

        #[test]
        fn a_long_hold_says_that_it_is_long(micros in 0_u64..10_000_000) {
            let hold = Duration::from_micros(micros);
            let ack = PathAck {
                slot: PathSlot::FIRST, largest: 0, hold, clock: 0, octets: 0, marks: 0,
            };
            let mut octets = Vec::new();
            ack.write(&mut octets);
            let read = PathAck::read(&octets).map(|ack| ack.hold);
            let expected = Duration::from_micros(micros / 16 * 16).min(PathAck::HOLD_MAX);
            prop_assert_eq!(read, Some(expected));
        }
    }
}
