//! A file as symbols in long blocks.
//!
//! The blocks are as equal as whole symbols allow, the longer ones first (the partition of RFC 5052, section 9.1).

use fulmar_proto::fec::long_block::{LONG_SOURCES_MAX, LongBlock};
use std::ops::Range;

/// The reason why a file cannot be laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// Symbols have an even length of at least two octets.
    #[error("symbols of {0} octets: an even length is needed")]
    SymbolBytes(u16),
    /// There are 65,536 blocks at most.
    #[error("{0} octets are too many for symbols of this length")]
    TooLarge(u64),
}

/// The division of a file into blocks of symbols.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileLayout {
    size: u64,
    symbol_bytes: u16,
    blocks: u32,
    /// The sources of each block, one more in the first `longer` ones.
    sources: u16,
    longer: u32,
}

impl FileLayout {
    /// The layout of `size` octets in symbols of `symbol_bytes`.
    ///
    /// # Errors
    /// [`LayoutError`].
    pub fn new(size: u64, symbol_bytes: u16) -> Result<Self, LayoutError> {
        if symbol_bytes == 0 || !symbol_bytes.is_multiple_of(2) {
            return Err(LayoutError::SymbolBytes(symbol_bytes));
        }
        let symbols = size.div_ceil(symbol_bytes.into());
        let too_large = |_| LayoutError::TooLarge(size);
        let blocks = symbols.div_ceil(LONG_SOURCES_MAX.into());
        let blocks = u32::try_from(blocks).map_err(|_| LayoutError::TooLarge(size))?;
        if blocks > 1 << 16 {
            return Err(LayoutError::TooLarge(size));
        }
        let of = u64::from(blocks.max(1));
        Ok(Self {
            size,
            symbol_bytes,
            blocks,
            sources: u16::try_from(symbols / of).map_err(too_large)?,
            longer: u32::try_from(symbols % of).map_err(too_large)?,
        })
    }

    /// The layout of `size` octets in symbols of at most `symbol_bytes_max`: a file that is shorter than one has one of its own length.
    ///
    /// # Errors
    /// [`LayoutError`].
    pub fn within(size: u64, symbol_bytes_max: u16) -> Result<Self, LayoutError> {
        let whole = u16::try_from(size.next_multiple_of(2)).unwrap_or(u16::MAX);
        let even = symbol_bytes_max & !1;
        Self::new(size, even.min(whole.max(2)))
    }

    /// Octets of the file.
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// Octets of a symbol.
    pub const fn symbol_bytes(&self) -> u16 {
        self.symbol_bytes
    }

    /// The number of blocks; none for an empty file.
    pub const fn blocks(&self) -> u32 {
        self.blocks
    }

    /// The numbers of all blocks.
    pub fn numbers(&self) -> impl Iterator<Item = u16> + use<> {
        (0..=u16::MAX).take(self.blocks as usize)
    }

    /// The dimensions of a block; `None`: the file has no such block.
    pub fn block(&self, number: u16) -> Option<LongBlock> {
        if u32::from(number) >= self.blocks {
            return None;
        }
        let more = u16::from(u32::from(number) < self.longer);
        LongBlock::new(self.sources + more, self.symbol_bytes)
    }

    /// The place of a block's octets in the file.
    pub fn octets(&self, number: u16) -> Range<u64> {
        let number = u64::from(number);
        let first = |number: u64| {
            let symbols = number * u64::from(self.sources) + number.min(self.longer.into());
            (symbols * u64::from(self.symbol_bytes)).min(self.size)
        };
        first(number)..first(number + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_cover_the_file_without_gap_and_differ_by_one_symbol() {
        let longest = u64::from(LONG_SOURCES_MAX) * 10;
        for size in [0, 1, 9, 10, 11, longest, longest + 1, 3 * longest + 7] {
            let layout = FileLayout::new(size, 10).expect("even");
            let mut end = 0;
            let mut sources = Vec::new();
            for number in layout.numbers() {
                let block = layout.block(number).expect("it has it");
                let octets = layout.octets(number);
                assert_eq!(octets.start, end);
                end = octets.end;
                let held = u64::from(block.sources()) * 10;
                assert!(
                    (octets.end - octets.start).next_multiple_of(10) == held,
                    "{size} {number}"
                );
                sources.push(block.sources());
            }
            assert_eq!(end, size);
            let spread = sources.iter().max().zip(sources.iter().min());
            assert!(
                spread.is_none_or(|(most, least)| most - least <= 1),
                "{sources:?}"
            );
            assert_eq!(
                layout.block(u16::try_from(layout.blocks()).expect("few")),
                None
            );
        }
    }

    #[test]
    fn a_short_file_has_a_short_symbol() {
        let bytes = |size| FileLayout::within(size, 1_433).map(|layout| layout.symbol_bytes());
        assert_eq!(bytes(0), Ok(2));
        assert_eq!(bytes(7), Ok(8));
        assert_eq!(bytes(1_433), Ok(1_432));
        assert_eq!(bytes(100_000), Ok(1_432));
        assert_eq!(FileLayout::new(1, 3), Err(LayoutError::SymbolBytes(3)));
        let largest = (u64::from(LONG_SOURCES_MAX) * 2) << 16;
        assert!(FileLayout::new(largest, 2).is_ok());
        assert_eq!(
            FileLayout::new(largest + 1, 2),
            Err(LayoutError::TooLarge(largest + 1))
        );
    }
}
