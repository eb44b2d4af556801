//! Options behind the fixed header.

use super::reject::TcpReject;
use super::seq::TcpSeq;

/// Octets of options, at most: the data offset has four bits, so 60 octets of header, 40 of them
/// options.
pub const TCP_OPTIONS_MAX: usize = 40;
/// SACK blocks, at most: so many blocks of eight octets fit into 40 octets beside kind and length.
pub const SACK_BLOCKS_MAX: usize = 4;

const END: u8 = 0;
const NO_OPERATION: u8 = 1;
const MSS: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;

/// One run of octets that arrived: from `start` up to, not including, `end`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlock {
    /// Its first octet.
    pub start: TcpSeq,
    /// The number behind its last octet.
    pub end: TcpSeq,
}

/// Up to four blocks, the most recent first (RFC 2018, section 4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlocks {
    blocks: [SackBlock; SACK_BLOCKS_MAX],
    count: u8,
}

impl SackBlocks {
    /// Adds a block; `false` if there is no room.
    pub fn push(&mut self, block: SackBlock) -> bool {
        let Some(free) = self.blocks.get_mut(usize::from(self.count)) else {
            return false;
        };
        *free = block;
        self.count += 1;
        true
    }

    /// The blocks.
    pub fn as_slice(&self) -> &[SackBlock] {
        self.blocks
            .get(..usize::from(self.count))
            .unwrap_or(&self.blocks)
    }

    /// Whether there are no blocks.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }
}

/// The timestamps option (RFC 7323, section 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timestamps {
    /// The sender's clock.
    pub value: u32,
    /// The echoed value of the receiver's clock.
    pub echo: u32,
}

/// The options that this TCP uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpOptions {
    /// The longest payload the sender takes, without options (RFC 6691). SYN only.
    pub mss: Option<u16>,
    /// The number of bits by which windows are shifted. SYN only.
    pub window_scale: Option<u8>,
    /// Whether selective acknowledgements are understood. SYN only.
    pub sack_permitted: bool,
    /// Timestamps.
    pub timestamps: Option<Timestamps>,
    /// Selective acknowledgements.
    pub sack: SackBlocks,
}

impl TcpOptions {
    /// Octets the options take, padded to whole words.
    pub fn len(&self) -> usize {
        let mut len = 0;
        len += if self.mss.is_some() { 4 } else { 0 };
        len += if self.window_scale.is_some() { 4 } else { 0 };
        len += if self.sack_permitted { 2 } else { 0 };
        len += if self.timestamps.is_some() { 10 } else { 0 };
        len += match self.sack.as_slice().len() {
            0 => 0,
            blocks => 2 + 8 * blocks,
        };
        len.next_multiple_of(4)
    }

    /// Whether there are no options.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of SACK blocks that fit beside the other options.
    pub fn sack_room(&self) -> usize {
        let others = Self {
            sack: SackBlocks::default(),
            ..*self
        };
        (TCP_OPTIONS_MAX.saturating_sub(others.len() + 4) / 8).min(SACK_BLOCKS_MAX)
    }

    /// Appends the options, padded to whole words.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let from = out.len();
        if let Some(mss) = self.mss {
            out.extend_from_slice(&[MSS, 4]);
            out.extend_from_slice(&mss.to_be_bytes());
        }
        if let Some(shift) = self.window_scale {
            out.extend_from_slice(&[NO_OPERATION, WINDOW_SCALE, 3, shift]);
        }
        if self.sack_permitted {
            out.extend_from_slice(&[SACK_PERMITTED, 2]);
        }
        if let Some(Timestamps { value, echo }) = self.timestamps {
            out.extend_from_slice(&[TIMESTAMPS, 10]);
            out.extend_from_slice(&value.to_be_bytes());
            out.extend_from_slice(&echo.to_be_bytes());
        }
        let blocks = self.sack.as_slice();
        if !blocks.is_empty() {
            // Four blocks at most.
            out.extend_from_slice(&[SACK, u8::try_from(2 + 8 * blocks.len()).unwrap_or(2)]);
            for block in blocks {
                out.extend_from_slice(&block.start.0.to_be_bytes());
                out.extend_from_slice(&block.end.0.to_be_bytes());
            }
        }
        out.resize(from + self.len(), END);
    }

    /// Reads the options in `octets`; unknown ones are skipped by their length.
    pub(super) fn parse(mut octets: &[u8]) -> Result<Self, TcpReject> {
        let mut options = Self::default();
        loop {
            let (kind, rest) = match octets.split_first() {
                None | Some((&END, _)) => return Ok(options),
                Some((&NO_OPERATION, rest)) => {
                    octets = rest;
                    continue;
                }
                Some((kind, rest)) => (*kind, rest),
            };
            let &length = rest.first().ok_or(TcpReject::Option)?;
            let body = octets
                .get(2..usize::from(length))
                .ok_or(TcpReject::Option)?;
            options.take(kind, body);
            octets = octets.get(usize::from(length)..).unwrap_or_default();
        }
    }

    /// Takes an option. One with a length that is not its own is ignored.
    fn take(&mut self, kind: u8, body: &[u8]) {
        match (kind, body) {
            (MSS, &[high, low]) => self.mss = Some(u16::from_be_bytes([high, low])),
            (WINDOW_SCALE, &[shift]) => self.window_scale = Some(shift),
            (SACK_PERMITTED, []) => self.sack_permitted = true,
            (TIMESTAMPS, body) => {
                if let (&[value, echo], []) = body.as_chunks::<4>()
                    && let [value, echo] = [value, echo].map(u32::from_be_bytes)
                {
                    self.timestamps = Some(Timestamps { value, echo });
                }
            }
            (SACK, body) => {
                let (words, _) = body.as_chunks::<4>();
                let (pairs, _) = words.as_chunks::<2>();
                for &[start, end] in pairs {
                    self.sack.push(SackBlock {
                        start: TcpSeq(u32::from_be_bytes(start)),
                        end: TcpSeq(u32::from_be_bytes(end)),
                    });
                }
            }
            _ => {}
        }
    }
}
