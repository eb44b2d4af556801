//! The places for paths in one direction of a pair of keys, each with counters of its own.

/// A place for a path, chosen by the sender. Its number is part of the nonce, and goes on counting when the place is
/// used for another path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PathSlot(u8);

impl PathSlot {
    /// The places: three bits name one.
    pub(super) const COUNT: usize = 8;
    /// The place while there is one path; the only one of wire 1.
    pub(super) const FIRST: Self = Self(0);

    /// The place that the lowest three bits of `octet` name.
    pub(super) const fn of_bits(octet: u8) -> Self {
        Self(octet & 7)
    }

    /// The place at an index of such an array.
    pub(super) fn of_index(index: usize) -> Option<Self> {
        let bits = u8::try_from(index).ok()?;
        (index < Self::COUNT).then_some(Self(bits))
    }

    /// The number of the place, 0 to 7.
    pub(super) const fn bits(self) -> u8 {
        self.0
    }

    /// The place in an array of [`PathSlot::COUNT`].
    pub(super) const fn index(self) -> usize {
        (self.0 & 7) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_bits_name_a_place_and_the_others_nothing() {
        for octet in 0..=u8::MAX {
            let slot = PathSlot::of_bits(octet);
            assert_eq!(slot.bits(), octet % 8);
            assert!(slot.index() < PathSlot::COUNT);
        }
        assert_eq!(PathSlot::of_bits(0x28), PathSlot::FIRST);
    }
}
