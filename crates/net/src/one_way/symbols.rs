//! The units of a file's blocks, sources and repair symbols alike.

use super::layout::FileLayout;
use super::schedule::GROUP_BLOCKS;
use fulmar_proto::fec::long_block::LongBlockEncoder;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;

/// The place from which a sender takes units.
pub trait SymbolSource {
    /// Appends a unit of a block to `out`.
    ///
    /// # Errors
    /// It cannot be read, or there is no such unit.
    fn append(&mut self, block: u16, unit: u32, out: &mut Vec<u8>) -> io::Result<()>;
}

/// Repair symbols of one block that stand behind each other.
#[derive(Debug)]
struct Parity {
    first: u32,
    octets: Vec<u8>,
    /// The number of the append that used it last.
    used: u64,
}

/// The units of a file on the disk. Repair symbols are made for a stretch at once, and kept for the blocks that take turns.
#[derive(Debug)]
pub struct FileSymbols {
    file: File,
    layout: FileLayout,
    /// The repair symbols that are made at once.
    stretch: u32,
    parity: BTreeMap<u16, Parity>,
    appends: u64,
}

impl FileSymbols {
    /// The units of `file`, of which a round needs at most `units` of each block.
    pub fn new(file: File, layout: FileLayout, units: u32) -> Self {
        Self {
            file,
            layout,
            stretch: units.max(1),
            parity: BTreeMap::new(),
            appends: 0,
        }
    }

    /// Reads the octets of the file from `offset` on to fill `out`; behind the end there are zeros.
    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let there = self.layout.size().saturating_sub(offset);
        let len = out.len().min(usize::try_from(there).unwrap_or(usize::MAX));
        let (there, behind) = out.split_at_mut(len);
        behind.fill(0);
        self.file.read_exact_at(there, offset)
    }

    fn parity_from(&self, block: u16, unit: u32) -> io::Result<Parity> {
        let missing = || io::Error::new(ErrorKind::InvalidInput, "the file has no such block");
        let dimensions = self.layout.block(block).ok_or_else(missing)?;
        let place = self.layout.octets(block);
        let len = usize::from(dimensions.sources()) * usize::from(dimensions.symbol_bytes());
        let mut octets = vec![0; len];
        self.read(place.start, &mut octets)?;
        let encoder = LongBlockEncoder::new(dimensions, &octets);
        drop(octets);
        Ok(Parity {
            first: unit,
            octets: encoder.repairs(unit, self.stretch),
            used: self.appends,
        })
    }

    fn append_repair(&mut self, block: u16, unit: u32, out: &mut Vec<u8>) -> io::Result<()> {
        let symbol_bytes = usize::from(self.layout.symbol_bytes());
        self.appends += 1;
        let kept = self.parity.get_mut(&block).and_then(|parity| {
            parity.used = self.appends;
            let place = unit.checked_sub(parity.first)? as usize * symbol_bytes;
            parity.octets.get(place..place + symbol_bytes)
        });
        if let Some(symbol) = kept {
            out.extend_from_slice(symbol);
            return Ok(());
        }
        self.parity.remove(&block);
        if self.parity.len() >= GROUP_BLOCKS {
            let oldest = self.parity.iter().min_by_key(|(_, parity)| parity.used);
            let oldest = oldest.map(|(&block, _)| block);
            oldest.and_then(|block| self.parity.remove(&block));
        }
        let parity = self.parity_from(block, unit)?;
        let none = || io::Error::new(ErrorKind::InvalidInput, "the block has no such unit");
        out.extend_from_slice(parity.octets.get(..symbol_bytes).ok_or_else(none)?);
        self.parity.insert(block, parity);
        Ok(())
    }
}

impl SymbolSource for FileSymbols {
    fn append(&mut self, block: u16, unit: u32, out: &mut Vec<u8>) -> io::Result<()> {
        let sources = self
            .layout
            .block(block)
            .map_or(0, |block| u32::from(block.sources()));
        if unit >= sources {
            return self.append_repair(block, unit, out);
        }
        let symbol_bytes = usize::from(self.layout.symbol_bytes());
        let start = out.len();
        out.resize(start + symbol_bytes, 0);
        let offset = self.layout.octets(block).start + u64::from(unit) * symbol_bytes as u64;
        self.read(offset, &mut out[start..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fulmar_proto::fec::long_block::LongBlockDecoder;
    use std::io::Write;

    #[test]
    fn any_k_units_of_each_block_give_its_octets_back() {
        let mut octets = vec![0; 300_001];
        fulmar_proto::rng::Rng::from_seed(5).fill(&mut octets);
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(&octets).expect("it is ours");
        // Symbols of ten octets make two blocks, and the last one has nine octets of padding.
        let layout = FileLayout::new(octets.len() as u64, 10).expect("even");
        assert_eq!(layout.blocks(), 2);
        let mut symbols = FileSymbols::new(file, layout, 2_000);
        for number in layout.numbers() {
            let block = layout.block(number).expect("it has it");
            let mut decoder = LongBlockDecoder::new(block);
            // The sources but a thousand in the middle, and repair symbols in the place of these.
            let units = (0..5_000).chain(6_000..block.sources().into());
            let first = u32::from(block.sources()) + 50;
            for unit in units.chain(first..first + 1_000) {
                let mut symbol = Vec::new();
                symbols
                    .append(number, unit, &mut symbol)
                    .expect("it is there");
                decoder.add(unit, &symbol).expect("it is new");
            }
            let rebuilt = decoder.rebuild().expect("there are enough");
            let place = layout.octets(number);
            let place = usize::try_from(place.start).expect("small")
                ..usize::try_from(place.end).expect("small");
            assert!(rebuilt[..place.len()] == octets[place], "block {number}");
        }
    }
}
