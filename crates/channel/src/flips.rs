//! Positions of inverted bits, and the inversion itself.
//!
//! Position `8 i + j` is bit `j` of octet `i`, counted from the most significant bit, which is the
//! order on the wire. Most packets have no or few inverted bits, so a handful is kept in place and
//! only more of them cost an allocation.

use core::fmt;
use fulmar_proto::units::ByteCount;

/// Positions that are kept without an allocation. With this many, a packet of 1500 octets at a bit
/// error rate of 1e-4 (1.2 on average) needs an allocation once in 30,000 packets, and [`Flips`]
/// stays at 32 octets.
const IN_PLACE: usize = 7;

/// Sorted, distinct positions of inverted bits.
#[derive(Clone)]
pub struct Flips(Positions);

#[derive(Clone)]
enum Positions {
    Few { count: u8, at: [u32; IN_PLACE] },
    Many(Vec<u32>),
}

impl Flips {
    /// No bit is inverted.
    pub const NONE: Self = Self(Positions::Few {
        count: 0,
        at: [0; IN_PLACE],
    });

    /// The given positions, sorted and without repetition.
    pub fn from_positions(positions: impl IntoIterator<Item = u32>) -> Self {
        let mut sorted: Vec<u32> = positions.into_iter().collect();
        sorted.sort_unstable();
        sorted.dedup();
        let mut flips = Self::NONE;
        for position in sorted {
            flips.push(position);
        }
        flips
    }

    /// Adds a position above all others.
    pub(crate) fn push(&mut self, position: u32) {
        debug_assert!(
            self.as_slice().last().is_none_or(|&last| last < position),
            "positions come in order"
        );
        match &mut self.0 {
            Positions::Few { count, at } => {
                if let Some(free) = at.get_mut(usize::from(*count)) {
                    *free = position;
                    *count += 1;
                } else {
                    let mut many = Vec::with_capacity(4 * IN_PLACE);
                    many.extend_from_slice(at);
                    many.push(position);
                    self.0 = Positions::Many(many);
                }
            }
            Positions::Many(many) => many.push(position),
        }
    }

    /// The bits that two independent causes invert together: a bit that both hit is as it was sent.
    pub(crate) fn and(self, other: Self) -> Self {
        if other.is_empty() {
            return self;
        }
        if self.is_empty() {
            return other;
        }
        let mut both = [self.as_slice(), other.as_slice()].concat();
        both.sort_unstable();
        let once = both.chunk_by(|a, b| a == b).filter(|run| run.len() == 1);
        Self::from_positions(once.flatten().copied())
    }

    /// The positions in ascending order.
    pub fn as_slice(&self) -> &[u32] {
        match &self.0 {
            Positions::Few { count, at } => at.get(..usize::from(*count)).unwrap_or(at),
            Positions::Many(many) => many,
        }
    }

    /// Whether the packet is intact.
    pub fn is_empty(&self) -> bool {
        self.as_slice().is_empty()
    }

    /// The number of inverted bits.
    pub fn len(&self) -> usize {
        self.as_slice().len()
    }
}

impl Default for Flips {
    fn default() -> Self {
        Self::NONE
    }
}

impl PartialEq for Flips {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for Flips {}

impl fmt::Debug for Flips {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Flips").field(&self.as_slice()).finish()
    }
}

/// The damage to a packet: where its inverted bits fell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Damage {
    /// Inverted bits in octets that the buffer does not hold: the lower header in front of it or a
    /// trailer behind it.
    pub lower_bits: usize,
    /// Inverted bits in the buffer.
    pub upper_bits: usize,
}

impl Damage {
    /// Whether octets of the layer below were hit. A layer with a header check of its own would
    /// not deliver such a packet.
    pub const fn lower_header_hit(self) -> bool {
        self.lower_bits > 0
    }

    /// Whether the buffer is as it was sent.
    pub const fn buffer_intact(self) -> bool {
        self.upper_bits == 0
    }
}

/// Inverts the bits at `flips` in a packet. `octets` holds the part of the packet behind its first
/// `lower` octets. Returns how many bits fell inside and outside of it.
pub fn apply_flips(octets: &mut [u8], flips: &Flips, lower: ByteCount) -> Damage {
    let mut damage = Damage::default();
    for &position in flips.as_slice() {
        let inside = u64::from(position / 8)
            .checked_sub(lower.0)
            .and_then(|index| usize::try_from(index).ok())
            .and_then(|index| octets.get_mut(index));
        if let Some(octet) = inside {
            *octet ^= 0x80 >> (position % 8);
            damage.upper_bits += 1;
        } else {
            damage.lower_bits += 1;
        }
    }
    damage
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_position_is_the_most_significant_bit_of_the_first_octet() {
        let mut octets = [0; 3];
        let damage = apply_flips(
            &mut octets,
            &Flips::from_positions([0, 15, 17]),
            ByteCount(0),
        );
        assert_eq!(octets, [0x80, 0x01, 0x40]);
        assert_eq!((damage.lower_bits, damage.upper_bits), (0, 3));
    }

    #[test]
    fn bits_of_octets_that_are_not_in_the_buffer_are_counted_not_applied() {
        let mut octets = [0; 2];
        // 20 octets of lower header (bits 0..160), two of ours (160..176), a trailer (from 176).
        let flips = Flips::from_positions([3, 159, 160, 175, 176]);
        let damage = apply_flips(&mut octets, &flips, ByteCount(20));
        assert_eq!(octets, [0x80, 0x01]);
        assert!(damage.lower_header_hit());
        assert_eq!((damage.lower_bits, damage.upper_bits), (3, 2));
    }

    #[test]
    fn what_two_causes_invert_is_as_it_was_sent() {
        let (a, b) = ([1, 5, 9], [0, 5, 11]);
        let both = Flips::from_positions(a).and(Flips::from_positions(b));
        assert_eq!(both.as_slice(), [0, 1, 9, 11]);
        assert_eq!(Flips::NONE.and(both.clone()), both);
        assert_eq!(both.clone().and(Flips::NONE), both);
    }

    #[test]
    fn inverting_twice_restores_the_packet() {
        let mut octets: Vec<u8> = (0..=255).collect();
        let flips = Flips::from_positions((0..2048).step_by(7));
        for _ in 0..2 {
            assert!(!apply_flips(&mut octets, &flips, ByteCount(0)).lower_header_hit());
        }
        assert_eq!(octets, (0..=255).collect::<Vec<u8>>());
    }

    #[test]
    fn more_positions_than_fit_in_place_keep_their_order() {
        let positions: Vec<u32> = (0..50).map(|i| i * 3).collect();
        for count in 0..positions.len() {
            let flips = Flips::from_positions(positions[..count].iter().rev().copied());
            assert_eq!(flips.as_slice(), &positions[..count]);
            assert_eq!(flips.len(), count);
        }
    }

    #[test]
    fn a_verdict_stays_small_enough_to_return_by_value() {
        assert_eq!(size_of::<Flips>(), 32);
        assert!(size_of::<crate::ChannelVerdict>() <= 96);
    }
}
