//! Repair symbols of a long block, in any number.

use super::transform::Rows;
use super::{LongBlock, push_octets, to_words};

/// The polynomial through the sources of a block.
pub struct LongBlockEncoder {
    block: LongBlock,
    coefficients: Rows,
}

impl core::fmt::Debug for LongBlockEncoder {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "LongBlockEncoder({:?})", self.block)
    }
}

impl LongBlockEncoder {
    /// An encoder for the block whose sources stand in `octets`, one behind the other. Octets that are missing at the end count as
    /// zeros.
    pub fn new(block: LongBlock, octets: &[u8]) -> Self {
        let mut coefficients = Rows::zeros(block.span(), block.words());
        let sources = octets.chunks(block.symbol_bytes().into());
        for (index, source) in (0..u32::from(block.sources())).zip(sources) {
            let row = coefficients.row_mut(index);
            to_words(source, row);
            if let ([.., last], false) = (source, source.len().is_multiple_of(2))
                && let Some(word) = row.get_mut(source.len() / 2)
            {
                *word = u16::from_be_bytes([*last, 0]);
            }
        }
        coefficients.interpolate();
        Self {
            block,
            coefficients,
        }
    }

    /// The repair symbols that are the units `first` to `first` + `count` - 1, one behind the other. Only those that the block has,
    /// and only up to the end of the stretch that one transform gives: at least one, if `first` is a repair symbol of the block.
    pub fn repairs(&self, first: u32, count: u32) -> Vec<u8> {
        let mut out = Vec::new();
        if first < u32::from(self.block.sources()) || first >= self.block.units() {
            return out;
        }
        let span = self.block.span();
        let point = self.block.point(first);
        let start = point - point % span;
        let count = count
            .min(self.block.units() - first)
            .min(start + span - point);
        let mut rows = Rows {
            octets: self.coefficients.octets.clone(),
            words: self.coefficients.words,
        };
        rows.evaluate(start);
        out.reserve(count as usize * usize::from(self.block.symbol_bytes()));
        for index in point - start..point - start + count {
            push_octets(rows.row(index), &mut out);
        }
        out
    }
}
