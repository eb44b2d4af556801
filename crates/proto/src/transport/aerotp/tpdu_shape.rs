//! The shape of a TPDU, and the share of the link that it uses well at a bit error rate.
//!
//! For a length L in octets and a strength of w words of parity the expected use of the link is, with l the
//! payload,
//!
//! ```text
//! l / (L + 20) (1 - b)^160 S,      S = (1 - b)^(8 L) without parity,
//!                                  S = P(X <= t)^n with it, X ~ Binomial(L / n, 1 - (1 - b)^8),
//!                                  n = ceil(L / 255) codewords, each correcting t = floor(floor(4 w / n) / 2) octets
//! ```
//!
//! which is the normalised goodput of selective repeat (Epple, equation 8) with a code in the packet. 20 octets of
//! network header are not protected.

use crate::units::{BitErrorRate, FecStrength};
use crate::wire::aerotp::payload_max;
use crate::wire::network::NETWORK_HEADER_BYTES;

/// The shape of a TPDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TpduShape {
    /// Payload octets, at most.
    pub payload: usize,
    /// Parity words.
    pub fec_words: FecStrength,
}

/// The number of lengths that are tried: parts of the longest.
pub(super) const LENGTHS: usize = 8;
/// The shortest TPDU that is tried: shorter ones are hardly more than headers.
const TPDU_BYTES_MIN: usize = 128;
/// The most octets of a codeword that a strength which is tried corrects.
const CORRECTED_MAX: usize = 32;
const CODEWORD: usize = 255;

impl TpduShape {
    /// The shapes from which a sender that follows the bit error rate chooses, for TPDUs of at most so many octets.
    /// They have eighths of that length, the longest first, each with parity that corrects none, one, two and more
    /// octets in each codeword. Empty if no payload fits.
    pub fn choices(tpdu_bytes_max: usize) -> Vec<Self> {
        let mut shapes = Vec::new();
        for eighth in (1..=LENGTHS).rev() {
            let octets = tpdu_bytes_max * eighth / LENGTHS;
            if octets < TPDU_BYTES_MIN.min(tpdu_bytes_max) {
                break;
            }
            let strengths = 0..=CORRECTED_MAX;
            shapes.extend(strengths.map_while(|corrected| Self::correcting(octets, corrected)));
        }
        shapes
    }

    /// A TPDU of so many octets whose parity corrects so many octets of each codeword; `None` if no payload fits
    /// beside it.
    pub(super) fn correcting(tpdu_bytes: usize, corrected: usize) -> Option<Self> {
        let words = (tpdu_bytes.div_ceil(CODEWORD) * 2 * corrected).div_ceil(4);
        let fec_words = FecStrength::from_words(u16::try_from(words).ok()?)?;
        let payload = payload_max(tpdu_bytes, fec_words, true, false);
        (payload > 0).then_some(Self { payload, fec_words })
    }

    /// The share of the link that is payload which arrives, where TPDUs of this shape fill it and bits are inverted
    /// independently at this rate.
    pub fn use_of_link(self, rate: BitErrorRate) -> f64 {
        let octets = self.tpdu_bytes();
        let share = self.payload as f64 / (octets + NETWORK_HEADER_BYTES) as f64;
        share * self.arrives(rate)
    }

    /// The probability that such a TPDU arrives intact, or is corrected.
    pub(super) fn arrives(self, rate: BitErrorRate) -> f64 {
        arrives(rate.value(), self.tpdu_bytes(), self.fec_words)
    }

    /// Its octets with headers and CRC-32, without a block descriptor.
    fn tpdu_bytes(self) -> usize {
        let room = usize::from(u16::MAX);
        self.payload + (room - payload_max(room, self.fec_words, true, false))
    }
}

/// The number of wrong octets that parity corrects wherever they are: those of one codeword.
pub(super) fn corrected_for_certain(octets: usize, words: FecStrength) -> usize {
    words.parity_bytes() / octets.div_ceil(CODEWORD).max(1) / 2
}

/// The probability that a TPDU of so many octets arrives intact, or is corrected.
fn arrives(rate: f64, octets: usize, words: FecStrength) -> f64 {
    let intact = |octets: usize| (8.0 * octets as f64 * (-rate).ln_1p()).exp();
    let header = intact(NETWORK_HEADER_BYTES);
    if words.is_none() {
        return header * intact(octets);
    }
    let codewords = octets.div_ceil(CODEWORD).max(1);
    let corrected = corrected_for_certain(octets, words);
    let len = octets as f64 / codewords as f64;
    let wrong = 1.0 - intact(1);
    let mut term = intact(1).powf(len);
    let mut sum = term;
    for count in 1..=corrected {
        let count = count as f64;
        term *= (len - count + 1.0) / count * wrong / (1.0 - wrong);
        sum += term.max(0.0);
    }
    header * sum.min(1.0).powf(codewords as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: usize = 1520;

    fn rate(value: f64) -> BitErrorRate {
        BitErrorRate::new(value).expect("a share")
    }

    fn best(shapes: impl Iterator<Item = TpduShape>, at: f64) -> f64 {
        shapes
            .map(|shape| shape.use_of_link(rate(at)))
            .fold(0.0, f64::max)
    }

    /// Compares the choices with every length and every strength at a few rates: the grid loses
    /// little.
    #[test]
    fn the_choices_are_within_two_per_cent_of_every_length_and_strength() {
        let every = |fec_words: FecStrength| {
            let lengths = (TPDU_BYTES_MIN..=MAX).step_by(8);
            lengths.map(move |octets| TpduShape {
                payload: payload_max(octets, fec_words, true, false),
                fec_words,
            })
        };
        for at in [1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 4e-3] {
            let strengths = (0..=256).filter_map(FecStrength::from_words);
            let most = best(strengths.flat_map(every), at);
            let ours = best(TpduShape::choices(MAX).into_iter(), at);
            println!("{at}: {ours:.4} of {most:.4}");
            assert!(ours > 0.98 * most, "{at}: {ours} of {most}");
        }
    }

    #[test]
    fn the_chance_of_arriving_is_that_of_independent_bits() {
        // Without parity, by hand: (1 - 1e-4)^(8 * 1020).
        let found = arrives(1e-4, 1000, FecStrength::NONE);
        assert!((found - 0.9999_f64.powi(8160)).abs() < 1e-9, "{found}");
        // 1500 octets and 24 words at 1e-3, by the table of residual packet errors for interleaved
        // Reed-Solomon (docs/models/fec.md).
        let words = FecStrength::from_words(24).expect("in range");
        let residual = 1.0 - arrives(1e-3, 1500, words) / 0.999_f64.powi(160);
        assert!((1e-4..1e-1).contains(&residual), "{residual}");
    }
}
