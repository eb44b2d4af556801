//! The packet code: appends parity to a message, and corrects a message with it.

use super::generator::Generator;
use super::layout::{CODEWORD_OCTETS_MAX, Layout};
use super::locate::locate;
use crate::units::FecStrength;

/// The damage that was corrected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Corrected {
    /// Wrong octets, in message and parity together. At low error rates nearly each of them is one
    /// bit error.
    pub symbols: u32,
}

/// The reason why damage remains. Codewords that could be corrected have been.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Uncorrectable {
    /// The octets do not hold the parity and a message.
    #[error("{octets} octets hold no message with {words} words of parity")]
    TooShort {
        /// Octets given.
        octets: usize,
        /// Words of parity they should contain.
        words: u16,
    },
    /// At least one codeword has more errors than its parity can locate.
    #[error("{codewords} codewords beyond correction, {symbols} symbols corrected in the others")]
    TooManyErrors {
        /// Codewords left as they were.
        codewords: u32,
        /// Wrong octets corrected in the other codewords.
        symbols: u32,
    },
}

/// Generators that are kept. A packet uses at most two, so this serves four strengths in turn. A
/// table takes at most 64 KiB and tens of microseconds to make.
const GENERATORS_MAX: usize = 8;

/// The code of packets, with the tables of the strengths used last.
#[derive(Clone, Debug, Default)]
pub struct PacketCode {
    /// The generators, most recently used first.
    generators: Vec<Generator>,
}

impl PacketCode {
    /// A code without tables; they are made when a strength is first used.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends the parity of the message `buffer[start..]` to `buffer`.
    ///
    /// The parity has [`FecStrength::parity_bytes`]. A `start` past the end means an empty message,
    /// whose parity is zero.
    pub fn append_parity(&mut self, buffer: &mut Vec<u8>, start: usize, words: FecStrength) {
        if words.is_none() {
            return;
        }
        let message = buffer.len().saturating_sub(start);
        let layout = Layout::new(message, words.parity_bytes());
        buffer.resize(buffer.len() + layout.parity, 0);
        let region = buffer.len() - layout.message - layout.parity;
        let (message, parity) = buffer[region..].split_at_mut(layout.message);
        for (first, count, octets) in layout.runs() {
            let generator = self.generator(octets);
            generator.divide(message, layout, (first, count), |codeword, remainder| {
                let start = layout.position(codeword, layout.message_of(codeword));
                let places = parity[start - layout.message..].iter_mut();
                for (place, &octet) in places.step_by(layout.codewords).zip(remainder) {
                    *place = octet;
                }
            });
        }
    }

    /// Corrects `octets`, a message with its parity of `words` behind it, in place.
    ///
    /// It is meant for packets whose CRC is wrong; check the CRC again afterwards, because with few
    /// parity octets a badly damaged codeword can be taken for another one.
    ///
    /// # Errors
    /// [`Uncorrectable`] if damage remains.
    pub fn correct(
        &mut self,
        octets: &mut [u8],
        words: FecStrength,
    ) -> Result<Corrected, Uncorrectable> {
        let too_short = Uncorrectable::TooShort {
            octets: octets.len(),
            words: words.words(),
        };
        let message = octets.len().checked_sub(words.parity_bytes());
        let message = message.filter(|&octets| octets > 0).ok_or(too_short)?;
        let layout = Layout::new(message, words.parity_bytes());
        let mut symbols = 0;
        let mut failed = 0;
        let mut damaged = Vec::new();
        for codeword in layout.empty_codewords() {
            let places = octets[codeword..].iter_mut().step_by(layout.codewords);
            for octet in places.filter(|octet| **octet != 0) {
                *octet = 0;
                symbols += 1;
            }
        }
        for (first, count, parity) in layout.runs() {
            let generator = self.generator(parity);
            let message = &octets[..layout.message];
            let received = &octets[layout.message..];
            damaged.clear();
            generator.divide(message, layout, (first, count), |codeword, remainder| {
                let start = layout.position(codeword, layout.message_of(codeword));
                let places = received[start - layout.message..].iter();
                let places = places.step_by(layout.codewords);
                let mut difference = [0; CODEWORD_OCTETS_MAX];
                for (term, (a, b)) in difference.iter_mut().zip(remainder.iter().zip(places)) {
                    *term = a ^ b;
                }
                if difference[..parity].iter().any(|&term| term != 0) {
                    damaged.push((codeword, difference));
                }
            });
            for (codeword, remainder) in &damaged {
                let len = layout.len_of(*codeword);
                let found = locate(&remainder[..parity], len, |index, value| {
                    octets[layout.position(*codeword, index)] ^= value;
                });
                match found {
                    Some(found) => symbols += found,
                    None => failed += 1,
                }
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

    fn generator(&mut self, parity: usize) -> &Generator {
        let found = self.generators.iter().position(|g| g.parity() == parity);
        let at = found.unwrap_or_else(|| {
            self.generators.truncate(GENERATORS_MAX - 1);
            self.generators.push(Generator::new(parity));
            self.generators.len() - 1
        });
        self.generators[..=at].rotate_right(1);
        &self.generators[0]
    }
}
