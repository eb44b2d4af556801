//! Sequence numbers that wrap.

use core::fmt;

/// The number of a TPDU, modulo 2^32 (AeroTP multi-mode, Section III-B: it identifies the TPDU,
/// not an octet).
///
/// There is deliberately no order on it: after 2^32 TPDUs the numbers begin again, so "less than"
/// has no meaning, only "[before](Self::before), as seen from within half the number space".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct TpduSeq(pub u32);

impl TpduSeq {
    /// The number `count` TPDUs later.
    #[must_use]
    pub const fn plus(self, count: u32) -> Self {
        Self(self.0.wrapping_add(count))
    }

    /// Whether this number comes before `other`. This is right while the two are less than 2^31
    /// apart.
    pub const fn before(self, other: Self) -> bool {
        self.distance_from(other) < 0
    }

    /// The distance of this number behind `other`; negative if it lies before. Exactly 2^31 apart
    /// counts as before, from both sides.
    pub const fn distance_from(self, other: Self) -> i32 {
        self.0.wrapping_sub(other.0).cast_signed()
    }

    /// The number of steps from `base` forward to this number, wrapping: an index into a window
    /// that starts at `base`. A number before `base` gives an index of 2^31 or more, which a bounds
    /// check against the window refuses.
    pub const fn offset_from(self, base: Self) -> u32 {
        self.0.wrapping_sub(base.0)
    }
}

impl fmt::Display for TpduSeq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_number_after_the_last_is_zero() {
        let last = TpduSeq(u32::MAX);
        assert_eq!(last.plus(1), TpduSeq(0));
        assert!(last.before(TpduSeq(0)));
        assert!(!TpduSeq(0).before(last));
        assert_eq!(TpduSeq(2).distance_from(last), 3);
        assert_eq!(last.distance_from(TpduSeq(2)), -3);
        assert_eq!(TpduSeq(2).offset_from(last), 3);
    }

    #[test]
    fn half_the_number_space_away_is_before_from_both_sides() {
        let (near, far) = (TpduSeq(5), TpduSeq(5 + (1 << 31)));
        assert!(near.before(far));
        assert!(far.before(near));
        let nearer = TpduSeq(far.0 - 1);
        assert!(near.before(nearer));
        assert!(!nearer.before(near));
    }

    #[test]
    fn a_number_before_the_window_has_an_index_no_window_holds() {
        assert!(TpduSeq(9).offset_from(TpduSeq(10)) >= 1 << 31);
    }

    proptest! {
        #[test]
        fn distance_undoes_plus(base: u32, steps in 0_u32..=i32::MAX as u32) {
            let (base, later) = (TpduSeq(base), TpduSeq(base).plus(steps));
            prop_assert_eq!(later.offset_from(base), steps);
            prop_assert_eq!(i64::from(later.distance_from(base)), i64::from(steps));
            prop_assert_eq!(base.before(later), steps > 0);
            prop_assert!(!later.before(base));
        }
    }
}
