//! The application's octets: pseudo-random, a function of the flow's key and the position alone.
//!
//! Position-dependent content makes every misplacement visible: an octet that is delivered at the
//! wrong position, twice, or from another flow differs from what belongs there with probability
//! 255/256.
//!
//! # How it works
//! Making and comparing octets is a large part of what a simulated transfer costs. So one page of
//! random words, the same for all, is laid along the stream again and again, each time masked with a
//! random word of its own, which depends on the key: an octet costs a lookup and an exclusive or, and
//! the processor does many at once. A shift by whole pages changes the mask. The words come from
//! `SplitMix64` (Steele, Lea, Flood, OOPSLA 2014).

/// The content of one flow's stream.
#[derive(Clone, Copy, Debug)]
pub struct Pattern {
    key: u64,
}

const WORD: usize = 8;
/// A prime, so that no regular division of a stream falls in with pages.
const PAGE_WORDS: usize = 1021;
const PAGE: [u64; PAGE_WORDS] = page();
/// Words made at once: they stay in the nearest cache until they are copied.
const BLOCK_WORDS: usize = 64;

impl Pattern {
    /// The stream of octets that belongs to `key`.
    pub const fn new(key: u64) -> Self {
        Self { key }
    }

    /// The words from `index` to the end of their page, and their mask.
    fn words_from(self, index: u64) -> (&'static [u64], u64) {
        let pages = PAGE_WORDS as u64;
        let within = usize::try_from(index % pages).unwrap_or_default();
        let mask = split_mix(self.key, index / pages);
        (PAGE.get(within..).unwrap_or_default(), mask)
    }

    /// Appends the `len` octets from position `offset` on to `out`.
    pub fn append(self, offset: u64, len: usize, out: &mut Vec<u8>) {
        let (mut next, mut skip) = place(offset);
        let end = out.len() + len;
        out.reserve(len);
        let mut block = [0; BLOCK_WORDS * WORD];
        while out.len() < end {
            // Whole words are made, and then cut at both ends.
            let wanted = (skip + (end - out.len())).min(block.len());
            let (page, mask) = self.words_from(next);
            let (words, _) = block.as_chunks_mut::<WORD>();
            let words = words.iter_mut().take(wanted.div_ceil(WORD));
            let mut made = 0;
            for (word, random) in words.zip(page) {
                *word = (random ^ mask).to_le_bytes();
                made += 1;
            }
            next += made as u64;
            out.extend_from_slice(&block[skip..wanted.min(made * WORD)]);
            skip = 0;
        }
    }

    /// The number of `octets`, found at position `offset`, that differ from what belongs there.
    pub fn mismatches(self, offset: u64, octets: &[u8]) -> u64 {
        let (mut next, skip) = place(offset);
        let (head, mut rest) = octets.split_at(octets.len().min((WORD - skip) % WORD));
        let mut wrong = 0;
        if !head.is_empty() {
            let (page, mask) = self.words_from(next);
            wrong += differing(head, skip, page, mask);
            next += 1;
        }
        while !rest.is_empty() {
            let (page, mask) = self.words_from(next);
            let (piece, behind) = rest.split_at(rest.len().min(page.len() * WORD));
            let (words, tail) = piece.as_chunks::<WORD>();
            let pairs = words.iter().zip(page);
            let difference = pairs.fold(0, |all, (found, random)| {
                all | (u64::from_le_bytes(*found) ^ random ^ mask)
            });
            if difference != 0 {
                wrong += differing(words.as_flattened(), 0, page, mask);
            }
            let last = page.get(words.len()..).unwrap_or_default();
            wrong += differing(tail, 0, last, mask);
            next += page.len() as u64;
            rest = behind;
        }
        wrong
    }
}

/// The number of octets of `found`, which begins `skip` octets into `page`, that differ from what belongs
/// there.
fn differing(found: &[u8], skip: usize, page: &[u64], mask: u64) -> u64 {
    let expected = page.iter().flat_map(|random| (random ^ mask).to_le_bytes());
    let pairs = found.iter().zip(expected.skip(skip));
    pairs
        .filter(|(found, expected)| **found != *expected)
        .count() as u64
}

/// Word `index` of the generator's sequence from `seed` on.
const fn split_mix(seed: u64, index: u64) -> u64 {
    let mut z = seed.wrapping_add(index.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

const fn page() -> [u64; PAGE_WORDS] {
    let mut page = [0; PAGE_WORDS];
    let mut index = 0;
    while index < PAGE_WORDS {
        page[index] = split_mix(0, index as u64 + 1);
        index += 1;
    }
    page
}

/// The word that holds position `offset`, and the octets of it before that position.
const fn place(offset: u64) -> (u64, usize) {
    (
        offset / WORD as u64,
        offset.to_le_bytes()[0] as usize % WORD,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_range_is_a_window_on_the_same_stream() {
        let pattern = Pattern::new(7);
        let mut whole = Vec::new();
        pattern.append(0, 17_000, &mut whole);
        // Around the end of the second page, too.
        for offset in (0..40).chain(16_280..16_340) {
            for len in (0..40).chain([600]) {
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
    fn every_shift_and_every_other_flow_is_noticed() {
        let pattern = Pattern::new(7);
        let mut octets = Vec::new();
        pattern.append(0, 1000, &mut octets);
        let page = (PAGE_WORDS * WORD) as u64;
        for shift in [1, 8, 1448, page - 8, page, page + 1, 2 * page, 100 * page] {
            let wrong = pattern.mismatches(shift, &octets);
            assert!(wrong > 950, "{shift}: {wrong}");
        }
        assert!(Pattern::new(8).mismatches(0, &octets) > 950);
    }
}
