//! The frames of SLACP: data, retransmissions and parity on lanes, acknowledgements and control.
//!
//! ```text
//!  first octet:  type (3 bits) | lane (3) | form (2)
//!  0 data     first | seq 2                     | packet        | check 4
//!  1 again    first | seq 2 | block 1 | index 1 | packet        | check 4
//!  2 parity   first | k   2 | block 1 | index 1 | symbol        | check 4
//!  3 ack      first | expected 2                | peer 4 | end 2 | (start 2, count 2)... | check 4
//!  4 control  first | floor 2                   |                 check 4    form 0: floor
//!             first | 0   2 | incarnation 4 | answer 4 | lanes 1 | start 2 (8 times) | check 4    form 1: hello
//!             first | 0   2 | challenge 4 |   check 4    form 2: challenge
//! ```
//!
//! There are seven octets around a packet, and nine around a retransmission. The check is a CRC-32 over
//! the sender's *incarnation*, a number drawn at its birth, and the frame. So frames of a restarted
//! end's predecessor fail the check, as damaged ones do. A hello tells the number, under incarnation
//! zero. A hello may itself belong to a former life and have been held up. So an end that knows another
//! life challenges it, also under incarnation zero, and trusts a hello that answers.
//!
//! # Source
//! The slides show no frame. A length field is left out because the medium delimits frames: its two
//! octets are better spent on the check.

use super::{Challenge, FrameReject};
use fulmar_proto::wire::checksum::crc32_after;

/// Octets around a packet that is sent for the first time.
pub const SLACP_OVERHEAD_BYTES: usize = 7;
/// Octets around a retransmission or a parity symbol.
pub const SLACP_BLOCK_OVERHEAD_BYTES: usize = 9;
/// The lanes that a frame can name.
pub const LANES: usize = 8;
/// The most missing ranges that one acknowledgement lists.
pub const RANGES_MAX: usize = 64;

/// A logical channel, below [`LANES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lane(u8);

impl Lane {
    /// The lane of this number, modulo [`LANES`].
    pub const fn new(number: u8) -> Self {
        Self(number & 7)
    }

    /// Its number, below [`LANES`].
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// All lanes.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..8).map(Self)
    }
}

/// Some of the lanes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaneSet(u8);

impl LaneSet {
    /// The same set with `lane` added.
    #[must_use]
    pub const fn with(self, lane: Lane) -> Self {
        Self(self.0 | 1 << lane.0)
    }

    /// Whether `lane` is among them.
    pub const fn contains(self, lane: Lane) -> bool {
        self.0 >> lane.0 & 1 == 1
    }
}

/// The number of a packet on its lane, modulo 2^16. There is no order on it, only distances.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct FrameSeq(pub u16);

impl FrameSeq {
    /// The number `count` packets later.
    #[must_use]
    pub const fn plus(self, count: u16) -> Self {
        Self(self.0.wrapping_add(count))
    }

    /// The number of steps from `base` forward to this number, wrapping.
    pub const fn offset_from(self, base: Self) -> u16 {
        self.0.wrapping_sub(base.0)
    }
}

/// The name of an end's life: drawn at its birth, never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Incarnation(pub u32);

impl Incarnation {
    /// The incarnation that stands for an end that has not said hello.
    pub const UNKNOWN: Self = Self(0);
}

/// A place in a block of retransmissions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlockPlace {
    /// The block, modulo 256.
    pub block: u8,
    /// The source's or the repair symbol's index in it.
    pub index: u8,
}

/// Consecutive packets that have not arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missing {
    /// The first of them.
    pub start: FrameSeq,
    /// The number of packets; at least one.
    pub count: u16,
}

/// An acknowledgement of one lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack<'a> {
    /// The sender that is acknowledged; [`Incarnation::UNKNOWN`] asks it to say hello.
    pub peer: Incarnation,
    /// The packet before which every packet arrived, or is no longer awaited.
    pub expected: FrameSeq,
    /// The packet behind the last one that arrived.
    pub end: FrameSeq,
    ranges: &'a [u8],
}

impl Ack<'_> {
    /// The packets from `expected` to `end` that are asked for again, in order.
    pub fn missing(&self) -> impl Iterator<Item = Missing> {
        self.ranges.chunks_exact(4).map(|range| Missing {
            start: FrameSeq(u16::from_be_bytes([range[0], range[1]])),
            count: u16::from_be_bytes([range[2], range[3]]),
        })
    }
}

/// A frame that passed its check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlacpFrame<'a> {
    /// A packet for the first time.
    Data {
        /// The packet's lane.
        lane: Lane,
        /// The packet's number on its lane.
        seq: FrameSeq,
        /// The packet.
        packet: &'a [u8],
    },
    /// A packet that is retransmitted.
    Again {
        /// The packet's lane.
        lane: Lane,
        /// The packet's number on its lane.
        seq: FrameSeq,
        /// The block it is sent in.
        place: BlockPlace,
        /// The packet.
        packet: &'a [u8],
    },
    /// A repair symbol over a block of retransmissions.
    Parity {
        /// The block's lane.
        lane: Lane,
        /// The number of packets in the block; at least one.
        sources: u8,
        /// The block, and the index of the symbol.
        place: BlockPlace,
        /// The symbol; a source in it is a packet's number and the packet.
        symbol: &'a [u8],
    },
    /// An acknowledgement.
    Ack {
        /// The lane that is acknowledged.
        lane: Lane,
        /// The acknowledgement itself, [`Ack`].
        ack: Ack<'a>,
    },
    /// The packets that the sender will not retransmit.
    Floor {
        /// The packets' lane.
        lane: Lane,
        /// The number before which no packet is retransmitted.
        floor: FrameSeq,
    },
    /// A sender's hello, with its name.
    Hello {
        /// The sender's incarnation.
        incarnation: Incarnation,
        /// The last challenge that it heard.
        answer: Challenge,
        /// The lanes on which packets are under way that nobody has acknowledged.
        under_way: LaneSet,
        /// The numbers at which the lanes continue.
        starts: [FrameSeq; LANES],
    },
    /// A question, after a hello of a life that is not the known one: is that life the present one?
    Challenge {
        /// The challenge to be answered.
        challenge: Challenge,
    },
}

const DATA: u8 = 0;
const AGAIN: u8 = 1;
const PARITY: u8 = 2;
const ACK: u8 = 3;
const CONTROL: u8 = 4;
const FORM_FLOOR: u8 = 0;
const FORM_HELLO: u8 = 1;
const FORM_CHALLENGE: u8 = 2;

fn first(kind: u8, lane: Lane, form: u8) -> u8 {
    kind << 5 | lane.0 << 2 | form
}

/// A frame under construction at the end of a buffer.
struct Draft<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
}

impl<'a> Draft<'a> {
    fn new(out: &'a mut Vec<u8>, first: u8, number: u16) -> Self {
        let start = out.len();
        out.push(first);
        out.extend_from_slice(&number.to_be_bytes());
        Self { out, start }
    }

    fn with(self, octets: &[u8]) -> Self {
        self.out.extend_from_slice(octets);
        self
    }

    fn seal(self, from: Incarnation) {
        let content = self.out.get(self.start..).unwrap_or_default();
        let check = crc32_after(&from.0.to_be_bytes(), content);
        self.out.extend_from_slice(&check.to_be_bytes());
    }
}

/// Appends a packet's first frame.
pub fn encode_data(from: Incarnation, lane: Lane, seq: FrameSeq, packet: &[u8], out: &mut Vec<u8>) {
    Draft::new(out, first(DATA, lane, 0), seq.0)
        .with(packet)
        .seal(from);
}

/// Appends a retransmission.
pub fn encode_again(
    from: Incarnation,
    lane: Lane,
    seq: FrameSeq,
    place: BlockPlace,
    packet: &[u8],
    out: &mut Vec<u8>,
) {
    Draft::new(out, first(AGAIN, lane, 0), seq.0)
        .with(&[place.block, place.index])
        .with(packet)
        .seal(from);
}

/// Appends a repair symbol of a block of `sources` packets.
pub fn encode_parity(
    from: Incarnation,
    lane: Lane,
    sources: u8,
    place: BlockPlace,
    symbol: &[u8],
    out: &mut Vec<u8>,
) {
    Draft::new(out, first(PARITY, lane, 0), u16::from(sources))
        .with(&[place.block, place.index])
        .with(symbol)
        .seal(from);
}

/// Appends an acknowledgement of `peer`'s packets on `lane`. Of `missing`, the first
/// [`RANGES_MAX`] ranges are listed.
pub fn encode_ack(
    from: Incarnation,
    lane: Lane,
    peer: Incarnation,
    (expected, end): (FrameSeq, FrameSeq),
    missing: impl Iterator<Item = Missing>,
    out: &mut Vec<u8>,
) {
    let mut draft = Draft::new(out, first(ACK, lane, 0), expected.0)
        .with(&peer.0.to_be_bytes())
        .with(&end.0.to_be_bytes());
    for range in missing.take(RANGES_MAX) {
        draft = draft
            .with(&range.start.0.to_be_bytes())
            .with(&range.count.to_be_bytes());
    }
    draft.seal(from);
}

/// Appends a floor.
pub fn encode_floor(from: Incarnation, lane: Lane, floor: FrameSeq, out: &mut Vec<u8>) {
    Draft::new(out, first(CONTROL, lane, FORM_FLOOR), floor.0).seal(from);
}

/// Appends a hello.
pub fn encode_hello(
    incarnation: Incarnation,
    answer: Challenge,
    under_way: LaneSet,
    starts: [FrameSeq; LANES],
    out: &mut Vec<u8>,
) {
    let mut draft = Draft::new(out, first(CONTROL, Lane(0), FORM_HELLO), 0)
        .with(&incarnation.0.to_be_bytes())
        .with(&answer.0.to_be_bytes())
        .with(&[under_way.0]);
    for start in starts {
        draft = draft.with(&start.0.to_be_bytes());
    }
    draft.seal(Incarnation::UNKNOWN);
}

/// Appends a challenge.
pub fn encode_challenge(challenge: Challenge, out: &mut Vec<u8>) {
    Draft::new(out, first(CONTROL, Lane(0), FORM_CHALLENGE), 0)
        .with(&challenge.0.to_be_bytes())
        .seal(Incarnation::UNKNOWN);
}

/// Reads a frame of the end that is known as `from`. Until that end has said hello, no other frame
/// of it passes the check.
///
/// # Errors
/// See [`FrameReject`].
pub fn parse(octets: &[u8], from: Incarnation) -> Result<SlacpFrame<'_>, FrameReject> {
    let (content, check) = octets
        .split_last_chunk::<4>()
        .ok_or(FrameReject::Truncated)?;
    let (&[first, high, low], rest) = content
        .split_first_chunk::<3>()
        .ok_or(FrameReject::Truncated)?;
    let (kind, lane, form) = (first >> 5, Lane(first >> 2 & 7), first & 3);
    let introduces = kind == CONTROL && [FORM_HELLO, FORM_CHALLENGE].contains(&form);
    if !introduces && from == Incarnation::UNKNOWN {
        return Err(FrameReject::Check);
    }
    let sealed_by = if introduces {
        Incarnation::UNKNOWN
    } else {
        from
    };
    if crc32_after(&sealed_by.0.to_be_bytes(), content) != u32::from_be_bytes(*check) {
        return Err(FrameReject::Check);
    }
    let number = u16::from_be_bytes([high, low]);
    let seq = FrameSeq(number);
    match (kind, form) {
        (DATA, 0) if !rest.is_empty() => Ok(SlacpFrame::Data {
            lane,
            seq,
            packet: rest,
        }),
        (AGAIN, 0) => {
            let (place, packet) = placed(rest)?;
            Ok(SlacpFrame::Again {
                lane,
                seq,
                place,
                packet,
            })
        }
        (PARITY, 0) => {
            let (place, symbol) = placed(rest)?;
            let sources = u8::try_from(number).map_err(|_| FrameReject::Shape)?;
            if sources == 0 {
                return Err(FrameReject::Shape);
            }
            Ok(SlacpFrame::Parity {
                lane,
                sources,
                place,
                symbol,
            })
        }
        (ACK, 0) => parse_ack(seq, rest).map(|ack| SlacpFrame::Ack { lane, ack }),
        (CONTROL, FORM_FLOOR) if rest.is_empty() => Ok(SlacpFrame::Floor { lane, floor: seq }),
        (CONTROL, FORM_HELLO) => parse_hello(rest),
        (CONTROL, FORM_CHALLENGE) => match <[u8; 4]>::try_from(rest) {
            Ok(challenge) => Ok(SlacpFrame::Challenge {
                challenge: Challenge(u32::from_be_bytes(challenge)),
            }),
            Err(_) => Err(FrameReject::Shape),
        },
        (DATA | CONTROL, 0) => Err(FrameReject::Shape),
        _ => Err(FrameReject::Kind),
    }
}

fn placed(rest: &[u8]) -> Result<(BlockPlace, &[u8]), FrameReject> {
    match rest.split_first_chunk::<2>() {
        Some((&[block, index], content)) if !content.is_empty() => {
            Ok((BlockPlace { block, index }, content))
        }
        _ => Err(FrameReject::Truncated),
    }
}

fn parse_ack(expected: FrameSeq, rest: &[u8]) -> Result<Ack<'_>, FrameReject> {
    let (peer, rest) = rest
        .split_first_chunk::<4>()
        .ok_or(FrameReject::Truncated)?;
    let (end, ranges) = rest
        .split_first_chunk::<2>()
        .ok_or(FrameReject::Truncated)?;
    let ack = Ack {
        peer: Incarnation(u32::from_be_bytes(*peer)),
        expected,
        end: FrameSeq(u16::from_be_bytes(*end)),
        ranges,
    };
    // Ranges are in order, apart, and between the two numbers.
    let whole = ranges.len().is_multiple_of(4) && ranges.len() / 4 <= RANGES_MAX;
    let span = u32::from(ack.end.offset_from(expected));
    let mut least = 0;
    for missing in ack.missing() {
        let start = u32::from(missing.start.offset_from(expected));
        let end = start + u32::from(missing.count);
        if start < least || missing.count == 0 || end >= span {
            return Err(FrameReject::Shape);
        }
        least = end + 1;
    }
    if whole {
        Ok(ack)
    } else {
        Err(FrameReject::Shape)
    }
}

fn parse_hello(rest: &[u8]) -> Result<SlacpFrame<'static>, FrameReject> {
    let (incarnation, rest) = rest
        .split_first_chunk::<4>()
        .ok_or(FrameReject::Truncated)?;
    let (answer, rest) = rest
        .split_first_chunk::<4>()
        .ok_or(FrameReject::Truncated)?;
    let (&under_way, rest) = rest.split_first().ok_or(FrameReject::Truncated)?;
    let incarnation = Incarnation(u32::from_be_bytes(*incarnation));
    let mut starts = [FrameSeq::default(); LANES];
    if rest.len() != 2 * LANES || incarnation == Incarnation::UNKNOWN {
        return Err(FrameReject::Shape);
    }
    for (start, octets) in starts.iter_mut().zip(rest.chunks_exact(2)) {
        *start = FrameSeq(u16::from_be_bytes([octets[0], octets[1]]));
    }
    Ok(SlacpFrame::Hello {
        incarnation,
        answer: Challenge(u32::from_be_bytes(*answer)),
        under_way: LaneSet(under_way),
        starts,
    })
}

#[cfg(test)]
mod tests;
