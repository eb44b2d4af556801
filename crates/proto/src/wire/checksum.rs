//! The three sums a packet is checked by: HEC (CRC-16), CRC-32 and the Internet checksum.
//!
//! # The header error check The papers say "CRC-16" and name no polynomial. We take 0x5935, in the
//! form of the catalogue's CRC-16/M17. At every length a header of ours can have (128, 160 or 192
//! bits with the check) it finds every pattern of up to four wrong bits. CCITT's 0x1021 misses 574
//! patterns of four in the shortest header. DNP's 0x3D65 is better there, but repeats after 151
//! bits and so misses pairs in the two longer ones. The tests below count the patterns; ADR-0003
//! has the table.
//!
//! # Sources
//! AeroTP multi-mode, Table I (CRC-16 header, CRC-32 data); IEEE 802.3 for the CRC-32; RFC 1071 and
//! RFC 1624 for the Internet checksum.

use crc::{Algorithm, CRC_16_M17, Crc, Table};

/// The HEC for whole frames of a link layer, which are as long as packets.
static HEC: Crc<u16, Table<BLOCK_BYTES>> = Crc::<u16, Table<BLOCK_BYTES>>::new(&CRC_16_M17);

/// The HEC from a register of zero. Octets of zero in front of a message then change nothing, so a
/// header of any length is checked in whole blocks, each of which the table takes in one step.
static HEC_OF_BLOCKS: Crc<u16, Table<BLOCK_BYTES>> =
    Crc::<u16, Table<BLOCK_BYTES>>::new(&Algorithm {
        init: 0,
        ..CRC_16_M17
    });
const BLOCK_BYTES: usize = 16;
/// The room for a header in blocks: the longest header of ours has 22 octets before its check.
const BLOCKS_BYTES: usize = 2 * BLOCK_BYTES;

/// The header check over `first`, with `second` behind it.
pub fn hec(first: &[u8], second: &[u8]) -> u16 {
    let len = first.len() + second.len();
    if !(2..=BLOCKS_BYTES).contains(&len) {
        let mut check = HEC.digest();
        check.update(first);
        check.update(second);
        return check.finalize();
    }
    let mut octets = [0; BLOCKS_BYTES];
    let start = BLOCKS_BYTES - len;
    let middle = start + first.len();
    octets[start..middle].copy_from_slice(first);
    octets[middle..].copy_from_slice(second);
    // The catalogue's register begins with ones, which is a message whose first word is inverted.
    octets[start] ^= 0xFF;
    octets[start + 1] ^= 0xFF;
    let blocks = &octets[start / BLOCK_BYTES * BLOCK_BYTES..];
    HEC_OF_BLOCKS.checksum(blocks)
}

/// The payload check: CRC-32 of IEEE 802.3.
pub fn crc32(octets: &[u8]) -> u32 {
    crc32fast::hash(octets)
}

/// The payload check over `prefix`, with `octets` behind it.
pub fn crc32_after(prefix: &[u8], octets: &[u8]) -> u32 {
    let mut check = crc32fast::Hasher::new();
    check.update(prefix);
    check.update(octets);
    check.finalize()
}

/// A one's-complement sum under construction (RFC 1071). Its words have sixteen bits, most
/// significant octet first. An odd octet at the end of a piece counts as padded with zero, so only
/// the last piece may be odd.
#[derive(Clone, Copy, Debug, Default)]
pub struct InternetSum(u64);

impl InternetSum {
    /// Adds a piece of at most 2^32 octets.
    #[must_use]
    pub fn and(self, octets: &[u8]) -> Self {
        // Octets swapped in every word are swapped in the sum (RFC 1071, section 2), and 2^16 is one
        // modulo 2^16 - 1: words of 32 bits in the order of most machines have the same sum.
        let (wide, rest) = octets.as_chunks::<4>();
        let mut last = [0; 4];
        for (octet, &from) in last.iter_mut().zip(rest) {
            *octet = from;
        }
        let words = wide.iter().chain([&last]);
        let swapped = words.fold(0_u64, |sum, &word| {
            sum.wrapping_add(u64::from(u32::from_le_bytes(word)))
        });
        Self(self.0.wrapping_add(u64::from(fold(swapped).swap_bytes())))
    }

    /// Adds one word.
    #[must_use]
    pub fn and_word(self, word: u16) -> Self {
        Self(self.0.wrapping_add(u64::from(word)))
    }

    /// The checksum: the complement of the folded sum. Zero over data that holds its own checksum.
    pub fn finish(self) -> u16 {
        !fold(self.0)
    }
}

/// A sum of words with its carries added to it, until none is left.
fn fold(mut sum: u64) -> u16 {
    loop {
        match u16::try_from(sum) {
            Ok(folded) => return folded,
            Err(_) => sum = (sum >> 16) + (sum & 0xFFFF),
        }
    }
}

/// The checksum after one covered word changed from `old` to `new` (RFC 1624, equation 3).
pub fn internet_updated(checksum: u16, old: u16, new: u16) -> u16 {
    InternetSum::default()
        .and_word(!checksum)
        .and_word(!old)
        .and_word(new)
        .finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn checks_have_their_published_values() {
        // The check values of the CRC catalogue: over the digits 1 to 9.
        assert_eq!(hec(b"12345", b"6789"), 0x772B);
        assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
        // RFC 1071, section 3: the worked example.
        let sum = InternetSum::default().and(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]);
        assert_eq!(sum.finish(), !0xddf2);
    }

    /// The catalogue's check, computed an octet at a time.
    static OCTET_BY_OCTET: Crc<u16, Table<1>> = Crc::<u16, Table<1>>::new(&CRC_16_M17);

    proptest! {
        #[test]
        fn a_header_check_in_blocks_is_the_catalogues(
            octets in proptest::collection::vec(any::<u8>(), 0..=100),
            cut in 0_usize..=100,
        ) {
            let (first, second) = octets.split_at(cut.min(octets.len()));
            prop_assert_eq!(hec(first, second), OCTET_BY_OCTET.checksum(&octets));
        }
    }

    /// The change that flipping bit `i` (0 = first sent) of an `n`-octet message plus its check
    /// makes in the comparison of computed and received check. A CRC is linear, so a pattern of
    /// flips passes exactly when these syndromes cancel.
    fn syndromes(octets: usize) -> Vec<u16> {
        let zero = vec![0; octets];
        let clean = hec(&zero, &[]);
        let mut all: Vec<u16> = (0..octets * 8)
            .map(|bit| {
                let mut one = zero.clone();
                one[bit / 8] = 0x80 >> (bit % 8);
                hec(&one, &[]) ^ clean
            })
            .collect();
        all.extend((0..16).map(|bit| 1_u16 << bit));
        all
    }

    /// Counts the patterns of 1, 2, 3, 4 and 5 flips among `syndromes` that pass unseen.
    fn undetected(syndromes: &[u16]) -> [u64; 5] {
        let mut counts = [0; 5];
        counts[0] = syndromes.iter().filter(|&&s| s == 0).count() as u64;
        // Pairs strictly before the current position, by their sum.
        let mut pairs = vec![0_u64; 1 << 16];
        for (k, &s) in syndromes.iter().enumerate() {
            let later = &syndromes[k + 1..];
            counts[2] += pairs[usize::from(s)];
            for (i, &t) in later.iter().enumerate() {
                counts[1] += u64::from(s == t);
                counts[3] += pairs[usize::from(s ^ t)];
                counts[4] += later[i + 1..]
                    .iter()
                    .map(|&u| pairs[usize::from(s ^ t ^ u)])
                    .sum::<u64>();
            }
            for &r in &syndromes[..k] {
                pairs[usize::from(r ^ s)] += 1;
            }
        }
        counts
    }

    #[test]
    fn hec_finds_any_four_wrong_bits_at_every_header_length() {
        assert_eq!(undetected(&syndromes(14)), [0, 0, 0, 0, 4292]);
        assert_eq!(undetected(&syndromes(18)), [0, 0, 0, 0, 13_012]);
        assert_eq!(undetected(&syndromes(22)), [0, 0, 0, 0, 32_488]);
    }

    proptest! {
        #[test]
        fn the_sum_is_that_of_the_words_one_by_one(
            octets in proptest::collection::vec(any::<u8>(), 0..70), cut: usize,
        ) {
            let words = octets.chunks(2).map(|word| {
                let low = word.get(1).copied().unwrap_or(0);
                u16::from_be_bytes([word[0], low])
            });
            let expected = words.fold(InternetSum::default(), InternetSum::and_word).finish();
            let (front, back) = octets.split_at((cut % (octets.len() + 1)) & !1);
            prop_assert_eq!(InternetSum::default().and(front).and(back).finish(), expected);
        }

        #[test]
        fn an_updated_checksum_is_the_recomputed_one(
            mut words in proptest::collection::vec(any::<u16>(), 1..20), at: usize, new: u16,
        ) {
            // All-zero data has two representations of zero; a header never is all zero.
            words.push(0x4500);
            let at = at % (words.len() - 1);
            let sum = |words: &[u16]| {
                words.iter().fold(InternetSum::default(), |sum, &w| sum.and_word(w)).finish()
            };
            let before = sum(&words);
            let old = core::mem::replace(&mut words[at], new);
            prop_assert_eq!(internet_updated(before, old, new), sum(&words));
        }
    }
}
