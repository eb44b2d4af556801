//! Retransmissions in blocks, each followed by parity over it.
//!
//! A source is its packet's number and the packet, so that a rebuilt source shows which packet it
//! is. Packets of different lengths are coded as they are: an octet beyond a packet's end takes no
//! part in its column (`fec::block`), so a column is a word of as many sources as reach it.

use super::sender::Wanted;
use crate::wire::link::slacp::{BlockPlace, FrameSeq, LANES, Lane};
use fulmar_proto::fec::block::encode_repair;
use fulmar_proto::machine::Priority;
use fulmar_proto::units::{Instant, Probability};
use std::collections::VecDeque;

/// Packets of one block at most. A loss burst of the tests costs ten; k + t stays below 256.
const SOURCES_MAX: usize = 64;
/// Packets in all blocks that wait, which bounds their memory.
const WAITING_MAX: usize = 512;

#[derive(Clone, Debug)]
struct Block {
    lane: Lane,
    /// The precedence of the lane.
    precedence: Priority,
    id: u8,
    /// The number and packet of each source.
    sources: Vec<Vec<u8>>,
    /// The time from which on each of them is not worth sending.
    until: Vec<Instant>,
    next_source: u8,
    parity: u8,
    next_parity: u8,
}

/// A frame to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outgoing {
    Again {
        lane: Lane,
        seq: FrameSeq,
        place: BlockPlace,
        packet: Vec<u8>,
    },
    Parity {
        lane: Lane,
        sources: u8,
        place: BlockPlace,
        symbol: Vec<u8>,
    },
}

/// Blocks by the precedence of their lanes, and in the order in which they were asked for.
#[derive(Clone, Debug)]
pub(super) struct Retransmissions {
    redundancy: Probability,
    blocks: VecDeque<Block>,
    next_id: [u8; LANES],
    waiting: usize,
}

impl Retransmissions {
    pub(super) const fn new(redundancy: Probability) -> Self {
        Self {
            redundancy,
            blocks: VecDeque::new(),
            next_id: [0; LANES],
            waiting: 0,
        }
    }

    /// The number of further packets that may be asked for.
    pub(super) const fn room(&self) -> usize {
        WAITING_MAX.saturating_sub(self.waiting)
    }

    /// Octets of packets kept here.
    pub(super) fn held_octets(&self) -> usize {
        let sources = self.blocks.iter().flat_map(|block| &block.sources);
        sources.map(Vec::len).sum()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// The precedence of the block that is sent next.
    pub(super) fn precedence(&self) -> Option<Priority> {
        self.blocks.front().map(|block| block.precedence)
    }

    /// Puts packets of a lane into blocks; packets of one round go together.
    pub(super) fn extend(
        &mut self,
        (lane, precedence): (Lane, Priority),
        wanted: &[Wanted],
        with_parity: bool,
    ) {
        let mut rounds: Vec<u8> = wanted.iter().map(|wanted| wanted.round).collect();
        rounds.sort_unstable();
        rounds.dedup();
        for round in rounds {
            let of_round: Vec<&Wanted> = wanted.iter().filter(|w| w.round == round).collect();
            for sources in of_round.chunks(SOURCES_MAX) {
                let parity = if with_parity {
                    self.parity(sources.len(), round)
                } else {
                    0
                };
                let id = &mut self.next_id[lane.index()];
                let before = self
                    .blocks
                    .partition_point(|block| block.precedence >= precedence);
                let block = Block {
                    lane,
                    precedence,
                    id: *id,
                    sources: sources.iter().map(|wanted| symbol_of(wanted)).collect(),
                    until: sources.iter().map(|wanted| wanted.until).collect(),
                    next_source: 0,
                    parity,
                    next_parity: 0,
                };
                self.blocks.insert(before, block);
                *id = id.wrapping_add(1);
                self.waiting += sources.len();
            }
        }
    }

    /// The number of parity symbols: a share of the block in its first round, as many as packets in
    /// later ones.
    fn parity(&self, sources: usize, round: u8) -> u8 {
        let sources = u8::try_from(sources).unwrap_or(u8::MAX);
        if round > 1 {
            return sources;
        }
        (1..sources)
            .find(|&count| f64::from(count) >= self.redundancy.value() * f64::from(sources))
            .unwrap_or(sources)
    }

    /// The next frame of a packet that is still worth sending.
    pub(super) fn poll(&mut self, now: Instant) -> Option<Outgoing> {
        loop {
            let block = self.blocks.front_mut()?;
            if let Some(outgoing) = block.poll(now) {
                return Some(outgoing);
            }
            self.waiting = self.waiting.saturating_sub(block.sources.len());
            self.blocks.pop_front();
        }
    }
}

fn symbol_of(wanted: &Wanted) -> Vec<u8> {
    let mut symbol = wanted.seq.0.to_be_bytes().to_vec();
    symbol.extend_from_slice(&wanted.packet);
    symbol
}

impl Block {
    fn poll(&mut self, now: Instant) -> Option<Outgoing> {
        let lane = self.lane;
        let place = |index| BlockPlace {
            block: self.id,
            index,
        };
        while let Some(symbol) = self.sources.get(usize::from(self.next_source)) {
            let index = self.next_source;
            self.next_source += 1;
            if self
                .until
                .get(usize::from(index))
                .is_none_or(|&at| at <= now)
            {
                continue;
            }
            let (&seq, packet) = symbol.split_first_chunk::<2>()?;
            return Some(Outgoing::Again {
                lane,
                seq: FrameSeq(u16::from_be_bytes(seq)),
                place: place(index),
                packet: packet.to_vec(),
            });
        }
        let index = self.next_parity;
        if index >= self.parity || self.until.iter().any(|&at| at <= now) {
            return None;
        }
        self.next_parity += 1;
        let sources: Vec<&[u8]> = self.sources.iter().map(Vec::as_slice).collect();
        let mut symbol = Vec::new();
        encode_repair(&sources, index, &mut symbol).ok()?;
        Some(Outgoing::Parity {
            lane,
            sources: u8::try_from(sources.len()).unwrap_or(u8::MAX),
            place: place(index),
            symbol,
        })
    }
}
