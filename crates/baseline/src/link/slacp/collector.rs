//! Blocks of retransmissions as they arrive, and the packets that their parity rebuilds.

use crate::wire::link::slacp::{BlockPlace, FrameSeq};
use core::num::NonZeroU8;
use fulmar_proto::fec::block::BlockDecoder;
use std::collections::VecDeque;

/// Blocks of a lane that are remembered. Several may be under way when acknowledgements follow each
/// other closely.
const BLOCKS_MAX: usize = 4;

#[derive(Clone, Debug)]
enum Progress {
    /// Index and symbol of each source, before the first parity tells the number of sources.
    Sources(Vec<(u8, Vec<u8>)>),
    Decoding(BlockDecoder),
    /// Everything came or was rebuilt, or the units contradicted each other.
    Over,
}

#[derive(Clone, Debug)]
struct Block {
    id: u8,
    progress: Progress,
}

/// The blocks of one lane.
#[derive(Clone, Debug, Default)]
pub(super) struct Collector {
    blocks: VecDeque<Block>,
}

/// A packet that parity rebuilt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rebuilt {
    pub(super) seq: FrameSeq,
    pub(super) packet: Vec<u8>,
}

impl Collector {
    /// Octets of symbols kept here.
    pub(super) fn held_octets(&self) -> usize {
        let block = |block: &Block| match &block.progress {
            Progress::Sources(sources) => sources.iter().map(|(_, symbol)| symbol.len()).sum(),
            Progress::Decoding(decoder) => decoder.memory_bytes(),
            Progress::Over => 0,
        };
        self.blocks.iter().map(block).sum()
    }

    /// Takes a retransmission. Returns the packets that can now be rebuilt.
    pub(super) fn again(
        &mut self,
        place: BlockPlace,
        seq: FrameSeq,
        packet: &[u8],
    ) -> Vec<Rebuilt> {
        let mut symbol = seq.0.to_be_bytes().to_vec();
        symbol.extend_from_slice(packet);
        let block = self.block(place.block);
        match &mut block.progress {
            Progress::Sources(sources) => {
                if sources.iter().all(|&(index, _)| index != place.index) {
                    sources.push((place.index, symbol));
                }
                Vec::new()
            }
            Progress::Decoding(decoder) => {
                // A repeated source changes nothing.
                if decoder.add_source(place.index, &symbol).is_ok() {
                    block.rebuild()
                } else {
                    Vec::new()
                }
            }
            Progress::Over => Vec::new(),
        }
    }

    /// Takes a repair symbol of a block of `sources` packets. Returns the packets that can now be
    /// rebuilt.
    pub(super) fn parity(&mut self, place: BlockPlace, sources: u8, symbol: &[u8]) -> Vec<Rebuilt> {
        let Some(k) = NonZeroU8::new(sources) else {
            return Vec::new();
        };
        let block = self.block(place.block);
        if let Progress::Sources(held) = &block.progress {
            let mut decoder = BlockDecoder::new(k);
            for (index, source) in held {
                if decoder.add_source(*index, source).is_err() {
                    // The symbol is of another block that had this number, or is nonsense.
                    block.progress = Progress::Over;
                    return Vec::new();
                }
            }
            block.progress = Progress::Decoding(decoder);
        }
        match &mut block.progress {
            Progress::Decoding(decoder) if decoder.k() == usize::from(sources) => {
                // A repeated or surplus symbol changes nothing.
                match decoder.add_repair(place.index, symbol) {
                    Ok(()) => block.rebuild(),
                    Err(_) => Vec::new(),
                }
            }
            _ => Vec::new(),
        }
    }

    fn block(&mut self, id: u8) -> &mut Block {
        let known = self.blocks.iter().position(|block| block.id == id);
        let position = known.unwrap_or_else(|| {
            if self.blocks.len() >= BLOCKS_MAX {
                self.blocks.pop_front();
            }
            self.blocks.push_back(Block {
                id,
                progress: Progress::Sources(Vec::new()),
            });
            self.blocks.len() - 1
        });
        &mut self.blocks[position]
    }
}

impl Block {
    fn rebuild(&mut self) -> Vec<Rebuilt> {
        let Progress::Decoding(decoder) = &mut self.progress else {
            return Vec::new();
        };
        if decoder.needed() > 0 {
            return Vec::new();
        }
        let rebuilt = decoder.decode().unwrap_or_default();
        self.progress = Progress::Over;
        let number = |symbol: Vec<u8>| {
            let (&seq, packet) = symbol.split_first_chunk::<2>()?;
            (!packet.is_empty()).then(|| Rebuilt {
                seq: FrameSeq(u16::from_be_bytes(seq)),
                packet: packet.to_vec(),
            })
        };
        rebuilt
            .into_iter()
            .filter_map(|(_, symbol)| number(symbol))
            .collect()
    }
}
