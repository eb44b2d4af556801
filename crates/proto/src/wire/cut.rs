//! Numbers and times of which the low 24 bits travel, and the way back to all 32.
//!
//! A *number* comes back as the one nearest to the number that is expected. It is right while the two are
//! less than 2^23 apart. A *time* travels in units of 16 us, and comes back as the latest moment that is not
//! in the future: it is right for 268 s.
//!
//! # Sources
//! ADR 0029, section 4, which shows that neither is ever taken for another; the idea is that of packet
//! numbers in RFC 9000, appendix A.3.

/// The bits that travel.
const BITS: u32 = 24;
const MASK: u32 = (1 << BITS) - 1;
/// The bits of a time in microseconds that its unit leaves out.
const UNIT_BITS: u32 = 4;
/// The microseconds in a unit of time.
pub const TIME_UNIT_MICROS: u32 = 1 << UNIT_BITS;

/// The part of `number` that travels.
pub const fn low24(number: u32) -> u32 {
    number & MASK
}

/// The part of a time that travels: `micros` in units of 16 us, rounded down.
pub const fn time24(micros: u32) -> u32 {
    low24(micros >> UNIT_BITS)
}

/// The number with these low bits that is nearest to `expected`: from 2^23 before it to 2^23 - 1 behind it. Bits above the 24th of `low24` are
/// ignored.
pub const fn nearest(expected: u32, low24: u32) -> u32 {
    let ahead = low24.wrapping_sub(expected);
    // The 24 bits as a signed distance.
    let distance = (ahead << (u32::BITS - BITS)).cast_signed() >> (u32::BITS - BITS);
    expected.wrapping_add_signed(distance)
}

/// The latest moment not after `now` of which these bits are left, in microseconds modulo 2^32; a multiple of 16. Bits above the
/// 24th of `low24` are ignored.
pub const fn latest(now: u32, low24: u32) -> u32 {
    let age = (now >> UNIT_BITS).wrapping_sub(low24) & MASK;
    floor(now).wrapping_sub(age << UNIT_BITS)
}

/// The time that is left of `micros`, were it only cut to its unit: rounded down to a multiple of 16.
pub const fn floor(micros: u32) -> u32 {
    micros >> UNIT_BITS << UNIT_BITS
}

/// The octets of the low 24 bits of `value`.
pub(super) const fn to_octets(value: u32) -> [u8; 3] {
    let [_, a, b, c] = value.to_be_bytes();
    [a, b, c]
}

/// The 24 bits in `octets`.
pub(super) const fn from_octets([a, b, c]: [u8; 3]) -> u32 {
    u32::from_be_bytes([0, a, b, c])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::TpduSeq;
    use proptest::prelude::*;

    const HALF: i64 = 1 << 23;
    /// The most datagrams under one pair of keys (ADR 0029, section 2).
    const KEYS_MAX: i64 = HALF - (1 << 16);
    /// The most numbers in a window.
    const WINDOW_MAX: i32 = 1 << 15;
    /// The distances around each edge that are tried one by one.
    const EDGE: i64 = 70_000;
    const EXPECTED: [u32; 6] = [0, 1, 0x007F_FFFF, 0x0080_0000, 0x1234_5678, u32::MAX];

    fn shifted(base: u32, distance: i64) -> u32 {
        let wide = (i64::from(base) + distance).rem_euclid(1 << 32);
        u32::try_from(wide).expect("below 2^32")
    }

    /// The laws of numbers for one that lies `distance` behind the expected one.
    fn number_holds(expected: u32, distance: i64) {
        let number = shifted(expected, distance);
        let back = nearest(expected, low24(number));
        assert_eq!(low24(back), low24(number));
        let off = i64::from(TpduSeq(back).distance_from(TpduSeq(expected)));
        assert!((-HALF..HALF).contains(&off), "{expected}, {distance}");
        if (-HALF..HALF).contains(&distance) {
            assert_eq!(back, number, "{expected}, {distance}");
        } else if (-2 * KEYS_MAX..-HALF).contains(&distance) {
            // Too late: it must fall beyond every window.
            assert!(off >= 1 << 17, "{expected}, {distance}: {off}");
            assert!(off > i64::from(WINDOW_MAX));
        }
    }

    #[test]
    fn a_number_comes_back_from_within_half_the_bits_and_later_ones_fall_beyond_every_window() {
        for expected in EXPECTED {
            for edge in [0, HALF, -HALF, 2 * HALF, -2 * HALF, -2 * KEYS_MAX] {
                for distance in edge - EDGE..=edge + EDGE {
                    number_holds(expected, distance);
                }
            }
        }
    }

    #[test]
    fn half_the_bits_before_is_told_from_half_the_bits_behind() {
        assert_eq!(nearest(1 << 23, 0), 0);
        assert_eq!(nearest((1 << 23) - 1, (1 << 24) - 1), u32::MAX);
        assert_eq!(nearest(0, 1 << 23), 1_u32.wrapping_neg() << 23);
        assert_eq!(nearest(0, (1 << 23) - 1), (1 << 23) - 1);
    }

    /// The laws of times for one that lies `age` before now.
    fn time_holds(now: u32, age: u32) {
        let then = now.wrapping_sub(age);
        let back = latest(now, time24(then));
        assert_eq!(time24(back), time24(then));
        assert_eq!(back, floor(back));
        // In whole units the moment is at most as old as the bits can tell, and never ahead.
        let told = now.wrapping_sub(back);
        assert!(told < 16 << 24, "{now}, {age}: {told}");
        if floor(now).wrapping_sub(floor(then)) < 16 << 24 {
            assert_eq!(back, floor(then), "{now}, {age}");
        }
    }

    #[test]
    fn a_time_comes_back_for_268_seconds_and_never_from_the_future() {
        for now in [0, 15, 16, 0x0FFF_FFFF, 0x1000_0000, 0x9ABC_DEF3, u32::MAX] {
            for edge in [0_u32, 1 << 27, 1 << 28, 1 << 31] {
                for step in 0..140_000 {
                    time_holds(now, edge.wrapping_sub(70_000).wrapping_add(step));
                }
            }
        }
        assert_eq!(latest(100_007, 6_250), 100_000);
        assert_eq!(latest(15, 0), 0);
        assert_eq!(latest(15, 1), 16_u32.wrapping_sub(1 << 28));
    }

    proptest! {
        #[test]
        fn the_laws_of_numbers_hold_everywhere(
            expected: u32, distance in -(1_i64 << 25)..(1 << 25),
        ) {
            number_holds(expected, distance);
        }

        #[test]
        fn the_laws_of_times_hold_everywhere(now: u32, age: u32) {
            time_holds(now, age);
        }

        #[test]
        fn three_octets_hold_what_is_left(value: u32) {
            prop_assert_eq!(from_octets(to_octets(value)), low24(value));
        }

        #[test]
        fn bits_above_the_24th_do_not_matter(base: u32, low: u32) {
            prop_assert_eq!(nearest(base, low), nearest(base, low24(low)));
            prop_assert_eq!(latest(base, low), latest(base, low24(low)));
        }
    }
}
