//! The amount of parity in a packet.

/// The number of 32-bit parity words in a TPDU, 0 to 256 (AeroTP multi-mode paper, Section IV-C).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FecStrength(u16);

impl FecStrength {
    /// No parity.
    pub const NONE: Self = Self(0);
    /// The strongest parity of the papers.
    pub const MAX: Self = Self(256);

    /// The strength of `words` 32-bit words; `None` above 256.
    pub const fn from_words(words: u16) -> Option<Self> {
        if words <= Self::MAX.0 {
            Some(Self(words))
        } else {
            None
        }
    }

    /// The strength in 32-bit words.
    pub const fn words(self) -> u16 {
        self.0
    }

    /// The parity octets: four a word.
    pub const fn parity_bytes(self) -> usize {
        self.0 as usize * 4
    }

    /// Whether there is no parity, and so no descriptor.
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }
}
