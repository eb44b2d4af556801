//! The strength of a packet's code.

/// Parity behind a message, in 32-bit words: 0..=256 (`AeroTP`'s FEC strength).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FecWords(u16);

impl FecWords {
    /// No parity.
    pub const NONE: Self = Self(0);
    /// The strongest code of the papers.
    pub const MAX: Self = Self(256);

    /// Checks that `words` lies in 0..=256.
    pub const fn new(words: u16) -> Option<Self> {
        if words <= Self::MAX.0 {
            Some(Self(words))
        } else {
            None
        }
    }

    /// The number of 32-bit words.
    pub const fn words(self) -> u16 {
        self.0
    }

    /// Octets of parity: four a word.
    pub const fn parity_octets(self) -> usize {
        self.0 as usize * 4
    }

    /// Whether there is no parity.
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }
}
