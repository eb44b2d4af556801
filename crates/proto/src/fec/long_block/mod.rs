//! Erasures across packets in blocks of thousands: a systematic code over GF(2^16) of which any k units rebuild the k sources.
//!
//! A block of [`super::block`] has 256 units at most. Where nobody can ask for more, the share of parity has to cover the spread of
//! the losses in one block, which is large beside so few units. A block of 7,000 sources needs a fraction of it
//! (`docs/models/fec.md`, "Long blocks").
//!
//! # The code
//! A source of even length is a row of 16-bit words. Column by column the sources are the values of one polynomial of degree below K
//! at the points 0 to k - 1, where K is the next power of two, and its values at k to K - 1 are zero. Repair symbol r is its value
//! at the point K + r. So any k units determine it, and repair symbols can be made in any number, up to 65,536 - K.
//!
//! Values and coefficients are converted by the additive transform over the basis of normalised subspace polynomials: n log n
//! operations on rows instead of n squared.
//!
//! # Does not
//! - Know about files, sequence numbers or headers. Indices are positions in a block.
//! - Detect damage: a unit with a wrong octet spoils the block. Check units first.
//!
//! # Sources
//! Lin, Chung and Han, "Novel Polynomial Basis and Its Application to Reed-Solomon Erasure Codes", FOCS 2014.

mod decode;
mod encode;
mod field;
mod transform;

pub use decode::{LongBlockDecoder, RejectedLongUnit};
pub use encode::LongBlockEncoder;

/// The units that a long block can have, the places between its sources and the next power of two included.
pub const LONG_UNITS_MAX: u32 = 1 << 16;

/// The sources that a long block can have: three times as many repair symbols are left for them.
pub const LONG_SOURCES_MAX: u16 = 1 << 14;

/// The dimensions of a long block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LongBlock {
    sources: u16,
    symbol_bytes: u16,
}

impl LongBlock {
    /// A block of `sources` sources of `symbol_bytes` octets. `None`: none or too many of either, or an odd length.
    pub const fn new(sources: u16, symbol_bytes: u16) -> Option<Self> {
        let fits = sources >= 1 && sources <= LONG_SOURCES_MAX;
        if fits && symbol_bytes >= 2 && symbol_bytes.is_multiple_of(2) {
            Some(Self {
                sources,
                symbol_bytes,
            })
        } else {
            None
        }
    }

    /// The number of sources.
    pub const fn sources(self) -> u16 {
        self.sources
    }

    /// Octets of a source and of a repair symbol.
    pub const fn symbol_bytes(self) -> u16 {
        self.symbol_bytes
    }

    /// The number of its units, sources and repair symbols together.
    pub const fn units(self) -> u32 {
        LONG_UNITS_MAX - self.padding()
    }

    /// The points of the sources and of the zeros behind them.
    const fn span(self) -> u32 {
        (self.sources as u32).next_power_of_two()
    }

    const fn padding(self) -> u32 {
        self.span() - self.sources as u32
    }

    /// The point of a unit below [`LongBlock::units`].
    const fn point(self, unit: u32) -> u32 {
        if unit < self.sources as u32 {
            unit
        } else {
            unit + self.padding()
        }
    }

    /// Words of a row.
    const fn words(self) -> usize {
        self.symbol_bytes as usize / 2
    }
}

/// The octets as words, into a row of half as many.
fn to_words(octets: &[u8], row: &mut [u16]) {
    for (word, &pair) in row.iter_mut().zip(octets.as_chunks().0) {
        *word = u16::from_be_bytes(pair);
    }
}

/// The words of a row as octets, behind those of `out`.
fn push_octets(row: &[u16], out: &mut Vec<u8>) {
    for word in row {
        out.extend_from_slice(&word.to_be_bytes());
    }
}

#[cfg(test)]
mod tests;
