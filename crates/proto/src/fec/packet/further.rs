//! Further parity for a region that was sent before: with it, the parity sent first corrects as that of a longer code.
//!
//! A codeword with r parity octets is a polynomial that is zero at α^1 to α^r. Further parity of s octets is its values at
//! α^(r+1) to α^(r+s). A receiver subtracts them from the values of what it received, and has r + s values of the errors
//! alone, in a row: those correct up to ⌊(r + s) / 2⌋ wrong octets. Nothing of what was sent first changes, and with
//! r = 0 the values alone correct.
//!
//! The octets are in steps, one octet for each codeword in a step, so that more steps may follow in another datagram.
//! They have to arrive whole.

use super::code::{Corrected, PacketCode, Uncorrectable};
use super::layout::{CODEWORD_OCTETS_MAX, Layout};
use super::locate::locate_by;
use crate::fec::gf256::{power, product};
use crate::units::FecStrength;
use core::ops::Range;

/// The layout of a region with so many words of parity in it; `None` if it holds no message.
fn layout(octets: usize, words: FecStrength) -> Option<Layout> {
    let message = octets.checked_sub(words.parity_bytes());
    let message = message.filter(|octets| *octets > 0)?;
    Some(Layout::new(message, words.parity_bytes()))
}

/// The value of a codeword at α^`root`.
fn value(region: &[u8], layout: Layout, codeword: usize, root: usize) -> u8 {
    let octets = region.iter().skip(codeword).step_by(layout.codewords);
    let x = power(root);
    octets.fold(0, |sum, &octet| product(sum, x) ^ octet)
}

impl PacketCode {
    /// Appends further parity of `region`, a message with its parity of `words` behind it: these steps, of as many octets as
    /// it has codewords ([`PacketCode::step_bytes`]). Appends nothing if there is none: a codeword and its parity of either
    /// kind have less than 255 octets of parity.
    pub fn append_further(
        region: &[u8],
        words: FecStrength,
        steps: Range<usize>,
        out: &mut Vec<u8>,
    ) {
        let Some(layout) = layout(region.len(), words) else {
            return;
        };
        if layout.parity_of(0) + steps.end >= CODEWORD_OCTETS_MAX {
            return;
        }
        for step in steps {
            let codewords = 0..layout.codewords;
            out.extend(codewords.map(|codeword| {
                let root = layout.parity_of(codeword) + 1 + step;
                value(region, layout, codeword, root)
            }));
        }
    }

    /// Octets of one step of further parity for a region of so many octets.
    pub const fn step_bytes(region: usize) -> usize {
        region.div_ceil(CODEWORD_OCTETS_MAX)
    }

    /// Corrects `region`, a message with its parity of `words` behind it, in place, by that and by the further parity of
    /// steps from the first on.
    ///
    /// # Errors
    /// [`Uncorrectable`] if damage remains.
    pub fn correct_with_further(
        region: &mut [u8],
        words: FecStrength,
        further: &[u8],
    ) -> Result<Corrected, Uncorrectable> {
        let too_short = Uncorrectable::TooShort {
            octets: region.len(),
            words: words.words(),
        };
        let layout = layout(region.len(), words).ok_or(too_short)?;
        let steps = further.len() / layout.codewords;
        if layout.parity_of(0) + steps >= CODEWORD_OCTETS_MAX {
            return Err(too_short);
        }
        let (mut symbols, mut failed) = (0, 0);
        for codeword in 0..layout.codewords {
            let parity = layout.parity_of(codeword);
            let mut syndromes = [0; CODEWORD_OCTETS_MAX];
            let syndromes = &mut syndromes[..parity + steps];
            let sent = further.iter().skip(codeword).step_by(layout.codewords);
            let sent = core::iter::repeat_n(&0, parity).chain(sent);
            for ((root, syndrome), sent) in (1..).zip(&mut *syndromes).zip(sent) {
                *syndrome = value(region, layout, codeword, root) ^ sent;
            }
            if syndromes.iter().all(|syndrome| *syndrome == 0) {
                continue;
            }
            let len = layout.len_of(codeword);
            let found = locate_by(syndromes, len, |index, value| {
                region[layout.position(codeword, index)] ^= value;
            });
            match found {
                Some(found) => symbols += found,
                None => failed += 1,
            }
        }
        if failed == 0 {
            Ok(Corrected { symbols })
        } else {
            Err(Uncorrectable::TooManyErrors {
                codewords: failed,
                symbols,
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    fn words(words: u16) -> FecStrength {
        FecStrength::from_words(words).expect("a strength")
    }

    fn region(rng: &mut Rng, octets: usize, parity: FecStrength) -> Vec<u8> {
        let mut region = vec![0; octets];
        rng.fill(&mut region);
        PacketCode::new().append_parity(&mut region, 0, parity);
        region
    }

    /// Makes so many octets of each codeword wrong, at places of their own.
    fn damage(rng: &mut Rng, region: &mut [u8], each: usize) {
        let codewords = PacketCode::step_bytes(region.len());
        for codeword in 0..codewords {
            let len = (region.len() - codeword).div_ceil(codewords);
            let mut places = Vec::new();
            while places.len() < each.min(len) {
                let place = usize::try_from(rng.below(len as u64)).expect("small");
                if !places.contains(&place) {
                    places.push(place);
                    let wrong = u8::try_from(1 + rng.below(255)).expect("an octet");
                    region[codeword + place * codewords] ^= wrong;
                }
            }
        }
    }

    #[test]
    fn first_and_further_parity_correct_together_as_one_longer_code() {
        let mut rng = Rng::from_seed(40).child("further");
        for (octets, first) in [
            (1_400, 0),
            (1_400, 3),
            (1_400, 12),
            (1_399, 5),
            (200, 0),
            (200, 1),
            (40, 2),
            (3, 0),
        ] {
            let parity = words(first);
            let sound = region(&mut rng, octets, parity);
            let codewords = PacketCode::step_bytes(sound.len());
            let least = parity.parity_bytes() / codewords;
            for steps in [1, 2, 4, 7, 16] {
                let mut further = Vec::new();
                PacketCode::append_further(&sound, parity, 0..steps, &mut further);
                assert_eq!(further.len(), steps * codewords);
                let corrects = usize::midpoint(least, steps);
                let mut damaged = sound.clone();
                damage(&mut rng, &mut damaged, corrects);
                let by_further = PacketCode::correct_with_further(&mut damaged, parity, &further);
                assert!(
                    damaged == sound,
                    "{octets}, {first}, {steps}: {by_further:?}"
                );
                assert!(
                    by_further
                        .is_ok_and(|corrected| corrected.symbols as usize <= corrects * codewords)
                );
                if corrects > least / 2 && corrects * 2 < octets / codewords {
                    let mut damaged = sound.clone();
                    damage(&mut rng, &mut damaged, corrects);
                    let _ = PacketCode::new().correct(&mut damaged, parity);
                    assert!(
                        damaged != sound,
                        "the first alone does not: {octets}, {first}, {steps}"
                    );
                }
            }
        }
    }

    #[test]
    fn steps_sent_one_after_the_other_are_those_sent_at_once() {
        let mut rng = Rng::from_seed(41).child("further");
        let sound = region(&mut rng, 1_000, words(4));
        let (mut once, mut twice) = (Vec::new(), Vec::new());
        PacketCode::append_further(&sound, words(4), 0..9, &mut once);
        for steps in [0..2, 2..9] {
            PacketCode::append_further(&sound, words(4), steps, &mut twice);
        }
        assert_eq!(once, twice);
    }

    #[test]
    fn more_wrong_octets_than_both_correct_are_noticed_and_no_length_is_too_much() {
        let mut rng = Rng::from_seed(42).child("further");
        let sound = region(&mut rng, 1_400, words(3));
        let mut further = Vec::new();
        PacketCode::append_further(&sound, words(3), 0..8, &mut further);
        let mut damaged = sound.clone();
        damage(&mut rng, &mut damaged, 9);
        let beyond = PacketCode::correct_with_further(&mut damaged, words(3), &further);
        assert!(
            matches!(
                beyond,
                Err(Uncorrectable::TooManyErrors { codewords: 1.., .. })
            ),
            "{beyond:?}"
        );
        let mut none = Vec::new();
        PacketCode::append_further(&sound, words(3), 0..254, &mut none);
        assert!(none.is_empty());
        for octets in [0, 4, 12, 13, 300] {
            let mut short = vec![1; octets];
            PacketCode::append_further(&short, words(3), 0..2, &mut none);
            let _ = PacketCode::correct_with_further(&mut short, words(3), &[7; 2_000]);
        }
    }
}
