//! Numbers of frames and blocks: 16 bits that wrap and have no `<`.

/// The number of a frame or a block on one hop, modulo 2^16.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct FrameNumber(pub u16);

impl FrameNumber {
    /// The distance of this number ahead of `base`, going upwards: 0 to 65,535. Windows are at most
    /// a quarter of that, so a number farther ahead than half lies behind.
    pub const fn ahead_of(self, base: Self) -> u16 {
        self.0.wrapping_sub(base.0)
    }

    /// The number `distance` after this one.
    pub const fn plus(self, distance: u16) -> Self {
        Self(self.0.wrapping_add(distance))
    }

    /// Whether this number lies behind `base`: it is older.
    pub const fn is_behind(self, base: Self) -> bool {
        self.ahead_of(base) > u16::MAX / 2
    }

    /// The octets on the wire.
    pub const fn to_octets(self) -> [u8; 2] {
        self.0.to_be_bytes()
    }

    /// The number in these octets.
    pub const fn from_octets(octets: [u8; 2]) -> Self {
        Self(u16::from_be_bytes(octets))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_holds_across_the_wrap() {
        let (last, first) = (FrameNumber(u16::MAX), FrameNumber(0));
        assert_eq!(first.ahead_of(last), 1);
        assert!(last.is_behind(first));
        assert!(!first.is_behind(last));
        assert_eq!(last.plus(3), FrameNumber(2));
    }
}
