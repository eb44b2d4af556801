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

    const fn word(self, index: u64) -> [u8; WORD] {
        let mut z = self
            .key
            .wrapping_add(index.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)).to_le_bytes()
    }

    /// Appends the `len` octets from position `offset` on to `out`.
    pub fn append(self, offset: u64, len: usize, out: &mut Vec<u8>) {
        out.reserve(len + WORD);
        let end = out.len() + len;
        let (mut index, skip) = place(offset);
        out.extend_from_slice(&self.word(index)[skip..]);
        while out.len() < end {
            index += 1;
            out.extend_from_slice(&self.word(index));
        }
        out.truncate(end);
    }

    /// How many of `octets`, found at position `offset`, are not what belongs there.
    pub fn mismatches(self, offset: u64, octets: &[u8]) -> u64 {
        let (mut index, skip) = place(offset);
        let (head, rest) = octets.split_at(octets.len().min((WORD - skip) % WORD));
        let mut wrong = 0;
        if !head.is_empty() {
            wrong += differing(head, &self.word(index)[skip..]);
            index += 1;
        }
        for chunk in rest.chunks(WORD) {
            let word = self.word(index);
            if chunk != &word[..chunk.len()] {
                wrong += differing(chunk, &word);
            }
            index += 1;
        }
        wrong
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
