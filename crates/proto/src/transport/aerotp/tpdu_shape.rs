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

use crate::damage::{arrives, codewords, intact};
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
        let words = (codewords(tpdu_bytes) * 2 * corrected).div_ceil(4);
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
        intact(rate, NETWORK_HEADER_BYTES) * arrives(rate, self.tpdu_bytes(), self.fec_words)
    }

    /// Its octets with headers and CRC-32, without a block descriptor.
    fn tpdu_bytes(self) -> usize {
        let room = usize::from(u16::MAX);
        self.payload + (room - payload_max(room, self.fec_words, true, false))
    }
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
}
