//! The chance that a packet arrives over a channel that inverts bits, with parity and without.
//!
//! With independent wrong bits at the rate b, L octets without parity arrive with the probability (1 - b)^(8 L). With
//! parity they arrive with P(X <= t)^n, where X ~ Binomial(L / n, 1 - (1 - b)^8), n = ceil(L / 255) codewords, and each
//! corrects t = floor(floor(4 w / n) / 2) octets.

use crate::units::{BitErrorRate, FecStrength};

/// The most octets of a codeword.
pub(super) const CODEWORD: usize = 255;

/// The number of wrong octets that parity corrects wherever they are: those of one codeword. `octets` are those that the
/// parity covers, and its own.
pub fn corrected_for_certain(octets: usize, words: FecStrength) -> usize {
    words.parity_bytes() / codewords(octets) / 2
}

/// The codewords of a message with its parity, of so many octets together.
pub fn codewords(octets: usize) -> usize {
    octets.div_ceil(CODEWORD).max(1)
}

/// The probability that no bit of so many octets is wrong.
pub fn intact(rate: BitErrorRate, octets: usize) -> f64 {
    (8.0 * octets as f64 * (-rate.value()).ln_1p()).exp()
}

/// The probability that so many octets, parity among them, arrive intact or are corrected.
pub fn arrives(rate: BitErrorRate, octets: usize, words: FecStrength) -> f64 {
    if words.is_none() {
        return intact(rate, octets);
    }
    within(rate, octets, corrected_for_certain(octets, words))
}

/// The probability that no codeword of so many octets has more wrong ones than so many.
pub(super) fn within(rate: BitErrorRate, octets: usize, corrected: usize) -> f64 {
    let codewords = codewords(octets);
    let len = octets as f64 / codewords as f64;
    let wrong = 1.0 - intact(rate, 1);
    let mut term = intact(rate, 1).powf(len);
    let mut sum = term;
    for count in 1..=corrected {
        let count = count as f64;
        term *= (len - count + 1.0) / count * wrong / (1.0 - wrong);
        sum += term.max(0.0);
    }
    sum.min(1.0).powf(codewords as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(value: f64) -> BitErrorRate {
        BitErrorRate::new(value).expect("a share")
    }

    #[test]
    fn the_chance_of_arriving_is_that_of_independent_bits() {
        // Without parity, by hand: (1 - 1e-4)^(8 * 1000).
        let found = arrives(rate(1e-4), 1000, FecStrength::NONE);
        assert!((found - 0.9999_f64.powi(8000)).abs() < 1e-9, "{found}");
        // 1500 octets and 24 words at 1e-3, by the table of residual packet errors for interleaved
        // Reed-Solomon (docs/models/fec.md).
        let words = FecStrength::from_words(24).expect("in range");
        let residual = 1.0 - arrives(rate(1e-3), 1500, words);
        assert!((1e-4..1e-1).contains(&residual), "{residual}");
    }
}
