//! The layout of a region: which octet belongs to which codeword.

use core::ops::Range;

/// Symbols that a codeword over GF(256) can have.
pub(super) const CODEWORD_OCTETS_MAX: usize = 255;

/// A message of `message` octets with `parity` octets behind it, dealt out to `codewords` in turn.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    pub(super) message: usize,
    pub(super) parity: usize,
    pub(super) codewords: usize,
}

impl Layout {
    pub(super) fn new(message: usize, parity: usize) -> Self {
        Self {
            message,
            parity,
            codewords: (message + parity).div_ceil(CODEWORD_OCTETS_MAX),
        }
    }

    /// The number of the region's first `octets` that belong to `codeword`.
    fn share_of(self, codeword: usize, octets: usize) -> usize {
        octets.saturating_sub(codeword).div_ceil(self.codewords)
    }

    /// Octets of `codeword`, at most [`CODEWORD_OCTETS_MAX`].
    pub(super) fn len_of(self, codeword: usize) -> usize {
        self.share_of(codeword, self.message + self.parity)
    }

    /// Message octets of `codeword`; parity follows.
    pub(super) fn message_of(self, codeword: usize) -> usize {
        self.share_of(codeword, self.message)
    }

    /// Parity octets of `codeword`.
    pub(super) fn parity_of(self, codeword: usize) -> usize {
        self.len_of(codeword) - self.message_of(codeword)
    }

    /// The position of octet `index` of `codeword` in the region.
    pub(super) fn position(self, codeword: usize, index: usize) -> usize {
        codeword + index * self.codewords
    }

    /// The codewords that have message octets, in order, in runs of equal parity: (first, count,
    /// parity octets of each). Runs without parity are left out.
    pub(super) fn runs(self) -> impl Iterator<Item = (usize, usize, usize)> {
        let end = self.codewords.min(self.message);
        let mut first = 0;
        let runs = core::iter::from_fn(move || {
            if first >= end {
                return None;
            }
            let parity = self.parity_of(first);
            let others = first + 1..end;
            let count = 1 + others.take_while(|&c| self.parity_of(c) == parity).count();
            let run = (first, count, parity);
            first += count;
            Some(run)
        });
        runs.filter(|&(_, _, parity)| parity > 0)
    }

    /// The codewords without message octets, whose parity is zero: a message shorter than the
    /// number of codewords has some.
    pub(super) fn empty_codewords(self) -> Range<usize> {
        self.codewords.min(self.message)..self.codewords
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_octet_has_one_codeword_and_codewords_are_even() {
        for parity in [0, 4, 12, 24, 96, 256, 384, 1024] {
            for message in (1..2200).chain([9000, 65_535]) {
                let layout = Layout::new(message, parity);
                let codewords = 0..layout.codewords;
                let lengths: Vec<_> = codewords.clone().map(|c| layout.len_of(c)).collect();
                let parities: Vec<_> = codewords.map(|c| layout.parity_of(c)).collect();
                assert_eq!(lengths.iter().sum::<usize>(), message + parity);
                assert_eq!(parities.iter().sum::<usize>(), parity);
                let spread = |of: &[usize]| of.iter().max().unwrap() - of.iter().min().unwrap();
                assert!(spread(&lengths) <= 1 && spread(&parities) <= 1);
                assert!(lengths.iter().all(|&len| len <= CODEWORD_OCTETS_MAX));
                let runs: usize = layout.runs().map(|(_, count, octets)| count * octets).sum();
                let empty = layout.empty_codewords().map(|c| layout.len_of(c));
                assert_eq!(runs + empty.sum::<usize>(), parity);
            }
        }
    }
}
