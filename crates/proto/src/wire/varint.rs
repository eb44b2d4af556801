//! Integers that take 1, 2, 4 or 8 octets: the variable-length integers of QUIC (RFC 9000, section 16).
//!
//! ```text
//!  00 value 6 | 01 value 14 | 10 value 30 | 11 value 62
//! ```
//!
//! A value is written in the fewest octets that hold it. A reader takes it in any of the four.

/// The largest value.
pub const MAX: u64 = (1 << 62) - 1;

/// The octets that `value` is written in, and the two bits that say so.
const fn shape(value: u64) -> (usize, u8) {
    match value {
        0..=0x3F => (1, 0x00),
        0x40..=0x3FFF => (2, 0x40),
        0x4000..=0x3FFF_FFFF => (4, 0x80),
        _ => (8, 0xC0),
    }
}

/// Appends `value`.
///
/// # Panics
/// `value` is more than [`MAX`].
pub fn write(value: u64, out: &mut Vec<u8>) {
    assert!(value <= MAX, "{value} has more than 62 bits");
    let (bytes, tag) = shape(value);
    let start = out.len();
    out.extend_from_slice(&value.to_be_bytes()[8 - bytes..]);
    out[start] |= tag;
}

/// The value at the start of `octets` and what follows it; `None` if it is cut off.
pub fn read(octets: &[u8]) -> Option<(u64, &[u8])> {
    let first = *octets.first()?;
    let (number, rest) = octets.split_at_checked(1 << (first >> 6))?;
    let start = u64::from(first & 0x3F);
    let value = number[1..]
        .iter()
        .fold(start, |value, octet| value << 8 | u64::from(*octet));
    Some((value, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// RFC 9000, appendix A.1.
    #[test]
    fn the_examples_of_the_rfc_read_as_it_says() {
        let examples: [(&[u8], u64); 5] = [
            (
                &[0xC2, 0x19, 0x7C, 0x5E, 0xFF, 0x14, 0xE8, 0x8C],
                151_288_809_941_952_652,
            ),
            (&[0x9D, 0x7F, 0x3E, 0x7D], 494_878_333),
            (&[0x7B, 0xBD], 15_293),
            (&[0x25], 37),
            (&[0x40, 0x25], 37),
        ];
        for (octets, value) in examples {
            assert_eq!(read(octets), Some((value, &[][..])));
            let mut out = Vec::new();
            write(value, &mut out);
            // The last example is not the shortest form.
            assert_eq!(out == octets, octets != [0x40, 0x25], "{value}");
        }
    }

    #[test]
    fn each_length_begins_where_the_one_before_it_ends() {
        for (value, bytes) in [
            (0, 1),
            (63, 1),
            (64, 2),
            (16_383, 2),
            (16_384, 4),
            ((1 << 30) - 1, 4),
            (1 << 30, 8),
            (MAX, 8),
        ] {
            let mut out = vec![7];
            write(value, &mut out);
            assert_eq!(out.len(), 1 + bytes, "{value}");
            assert_eq!(read(&out[1..]), Some((value, &[][..])));
        }
    }

    #[test]
    #[should_panic(expected = "more than 62 bits")]
    fn a_value_of_63_bits_cannot_be_written() {
        write(MAX + 1, &mut Vec::new());
    }

    proptest! {
        #[test]
        fn a_value_comes_back_with_what_follows_it_and_no_cut_is_one(
            value in 0..=MAX, shift in 0_u32..62, rest: Vec<u8>,
        ) {
            let value = value >> shift;
            let mut out = Vec::new();
            write(value, &mut out);
            for end in 0..out.len() {
                prop_assert_eq!(read(&out[..end]), None);
            }
            out.extend_from_slice(&rest);
            prop_assert_eq!(read(&out), Some((value, &rest[..])));
        }
    }
}
