//! The application's octets: pseudo-random, a function of the flow's key and the position alone.
//!
//! Position-dependent content makes every misplacement visible: an octet that is delivered at the
//! wrong position, twice, or from another flow differs from what belongs there with probability
//! 255/256. Eight octets come from one application of the finaliser of `SplitMix64` (Steele, Lea,
//! Flood, OOPSLA 2014) to a counter, so that any position is as cheap as the next.

/// The content of one flow's stream.
#[derive(Clone, Copy, Debug)]
pub struct Pattern {
    key: u64,
}

const WORD: usize = 8;

impl Pattern {
    /// The stream of octets that belongs to `key`.
    pub const fn new(key: u64) -> Self {
        Self { key }
    }

    const fn word(self, index: u64) -> u64 {
        let mut z = self
            .key
            .wrapping_add(index.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Appends the `len` octets from position `offset` on to `out`.
    pub fn append(self, offset: u64, len: usize, out: &mut Vec<u8>) {
        let (first, skip) = place(offset);
        let start = out.len();
        // Whole words are written, and then cut at both ends.
        let words = (skip + len).div_ceil(WORD);
        out.resize(start + words * WORD, 0);
        let (chunks, _) = out[start..].as_chunks_mut::<WORD>();
        for (index, chunk) in (first..).zip(chunks) {
            *chunk = self.word(index).to_le_bytes();
        }
        if skip > 0 {
            out.drain(start..start + skip);
        }
        out.truncate(start + len);
    }

    /// How many of `octets`, found at position `offset`, are not what belongs there.
    pub fn mismatches(self, offset: u64, octets: &[u8]) -> u64 {
        let (mut index, skip) = place(offset);
        let (head, rest) = octets.split_at(octets.len().min((WORD - skip) % WORD));
        let mut wrong = 0;
        if !head.is_empty() {
            wrong += differing(head, &self.word(index).to_le_bytes()[skip..]);
            index += 1;
        }
        let (words, tail) = rest.as_chunks::<WORD>();
        for found in words {
            let expected = self.word(index);
            if u64::from_le_bytes(*found) != expected {
                wrong += differing(found, &expected.to_le_bytes());
            }
            index += 1;
        }
        wrong + differing(tail, &self.word(index).to_le_bytes())
    }
}

/// The word that holds position `offset`, and the octets of it before that position.
const fn place(offset: u64) -> (u64, usize) {
    (
        offset / WORD as u64,
        offset.to_le_bytes()[0] as usize % WORD,
    )
}

fn differing(found: &[u8], expected: &[u8]) -> u64 {
    found.iter().zip(expected).filter(|(a, b)| a != b).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_range_is_a_window_on_the_same_stream() {
        let pattern = Pattern::new(7);
        let mut whole = Vec::new();
        pattern.append(0, 200, &mut whole);
        for offset in 0..40 {
            for len in 0..40 {
                let mut part = Vec::new();
                pattern.append(offset as u64, len, &mut part);
                assert_eq!(part, &whole[offset..offset + len]);
                assert_eq!(pattern.mismatches(offset as u64, &part), 0);
            }
        }
    }

    #[test]
    fn every_wrong_octet_is_counted() {
        let pattern = Pattern::new(7);
        for offset in 0..9 {
            let mut octets = Vec::new();
            pattern.append(offset, 100, &mut octets);
            for position in [0, 1, 7, 8, 50, 99] {
                octets[position] ^= 0x10;
            }
            assert_eq!(pattern.mismatches(offset, &octets), 6);
        }
    }

    #[test]
    fn a_shift_by_one_is_noticed() {
        let pattern = Pattern::new(7);
        let mut octets = Vec::new();
        pattern.append(0, 1000, &mut octets);
        assert!(pattern.mismatches(1, &octets) > 950);
    }
}
