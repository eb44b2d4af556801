//! The frames of LL-HARQ.
//!
//! ```text
//! source    0x30 | epoch 16 | serial 8 | block 16 | before 8 | index 8 | octets | CRC-16
//! parity    0x31 | epoch 16 | serial 8 | block 16 | before 8 | row 8 | span 8 | left 8 | symbol | CRC-16
//!           0x35: the second round
//! feedback  0x32 | epoch 16 | next 16 | loss 16 | margin 8 | answer margin 8 |
//!           span 8, need 8 for each block from next on | CRC-32
//!           0x36: damage 16 behind the answer margin
//! challenge 0x33 | challenge 32 | CRC-32
//! answer    0x34 | epoch 16 | base 16 | challenge 32 | CRC-32
//! ```
//!
//! A source's octets are its place, a part of a packet, and its CRC-32. The place is 0x80 if the
//! part is the packet's first, 0x40 if it is its last, and the packet's number in its block. A
//! symbol is a row of parity over the block's first `span` sources. `serial` counts all units of a
//! life. `before` is the number of sources in the block before, 0 if there is none. `left` is the
//! number of units of the round that follow, 255 if that is open. `loss` is the receiver's estimate
//! times 65,535, and `damage` the part of it that arrived and failed its check; margins are in sixteenths of a deviation. A report has the number of the block's
//! sources that are known to exist, and the number of symbols that are needed for them; 255 for a
//! block whose first round is not over.
//!
//! A unit's check is the HEC polynomial's, two octets because units are short; the packet's own
//! CRC-32 catches what it overlooks.
//!
//! # Sources
//! The slides show no frame; the format is ours.

use super::arq::Epoch;
use super::{Challenge, FrameNumber, FrameReject, LinkKind, open, seal};
use fulmar_proto::fec::block::LENGTH_PREFIX;
use fulmar_proto::wire::checksum::hec;

/// The most blocks on which one feedback reports.
pub const HARQ_REPORTS_MAX: usize = 256;

/// Octets that a repair symbol over packets that are not cut has more than the longest of them: the unit's header, the length that the
/// code puts in front, the packet's place and CRC-32, and the unit's check. A source has four less.
pub const HARQ_OVERHEAD_BYTES: usize = 10 + LENGTH_PREFIX + 1 + 4 + 2;

/// The value of `left` while the number of units that follow is open.
pub const LEFT_OPEN: u8 = u8::MAX;

/// The need of a block that is still coming.
const STILL_COMING: u8 = u8::MAX;

/// The kind of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnitKind {
    /// A source, which is coded together with its place among its packet's parts.
    Source {
        /// The index among the block's sources.
        index: u8,
    },
    /// A repair symbol.
    Parity {
        /// The index among the block's rows.
        row: u8,
        /// The sources it spans, at least 1.
        span: u8,
        /// Units of the round that follow, or [`LEFT_OPEN`].
        left: u8,
        /// Whether it answers a feedback: then it spans the whole block.
        answers: bool,
    },
}

/// The fields of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HarqUnit {
    /// The sender's life.
    pub epoch: Epoch,
    /// The unit's number in that life, modulo 256.
    pub serial: u8,
    /// The block's number.
    pub block: FrameNumber,
    /// The sources of the block before; 0 if there is none.
    pub before: u8,
    /// The unit's kind.
    pub kind: UnitKind,
}

/// The receiver's report on a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HarqBlockReport {
    /// The block's first round is not over.
    Coming,
    /// The block's first round seems to be over.
    Heard {
        /// The sources that are known to exist: the block may have more.
        span: u8,
        /// The symbols that are needed for these sources, at most 254.
        need: u8,
    },
}

/// A frame of LL-HARQ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HarqFrame<'a> {
    /// A unit and its octets.
    Unit(HarqUnit, &'a [u8]),
    /// A receiver's needs.
    Feedback(HarqFeedback),
    /// A question, after units came of a life that is not the known one: is that life the present
    /// one?
    Challenge(Challenge),
    /// A sender's answer with its name.
    Answer {
        /// The sender's life.
        epoch: Epoch,
        /// The lowest block that is not over for the sender.
        base: FrameNumber,
        /// The challenge that is answered.
        challenge: Challenge,
    },
}

/// The needs of a receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HarqFeedback {
    /// The life whose blocks these are.
    pub epoch: Epoch,
    /// The lowest block that is still awaited.
    pub next: FrameNumber,
    /// The estimated share of lost units, times 65,535.
    pub loss: u16,
    /// The part of that share that arrived damaged, times 65,535, if it is told.
    pub damage: Option<u16>,
    /// The margin of a first round, in sixteenths of a deviation.
    pub margin: u8,
    /// The margin of a second round, in the same units.
    pub answer_margin: u8,
    /// The reports on the blocks from `next` on.
    pub reports: Vec<HarqBlockReport>,
}

impl HarqUnit {
    /// Appends the frame of this unit with these octets.
    pub fn encode(&self, octets: &[u8], out: &mut Vec<u8>) {
        let start = out.len();
        let kind = match self.kind {
            UnitKind::Source { .. } => LinkKind::HARQ_SOURCE,
            UnitKind::Parity { answers: false, .. } => LinkKind::HARQ_PARITY,
            UnitKind::Parity { answers: true, .. } => LinkKind::HARQ_SECOND,
        };
        let [e0, e1] = self.epoch.0.to_be_bytes();
        let [b0, b1] = self.block.to_octets();
        out.extend_from_slice(&[kind.0, e0, e1, self.serial, b0, b1, self.before]);
        match self.kind {
            UnitKind::Source { index } => out.push(index),
            UnitKind::Parity {
                row, span, left, ..
            } => out.extend_from_slice(&[row, span, left]),
        }
        out.extend_from_slice(octets);
        let check = hec(out.get(start..).unwrap_or_default(), &[]);
        out.extend_from_slice(&check.to_be_bytes());
    }

    fn parse(octets: &[u8], kind: LinkKind) -> Result<HarqFrame<'_>, FrameReject> {
        let (content, check) = octets
            .split_last_chunk::<2>()
            .ok_or(FrameReject::Truncated)?;
        if hec(content, &[]) != u16::from_be_bytes(*check) {
            return Err(FrameReject::Check);
        }
        let (&[_, e0, e1, serial, b0, b1, before], rest) = content
            .split_first_chunk::<7>()
            .ok_or(FrameReject::Truncated)?;
        let (kind, octets) = if kind == LinkKind::HARQ_SOURCE {
            let (&index, octets) = rest.split_first().ok_or(FrameReject::Truncated)?;
            (UnitKind::Source { index }, octets)
        } else {
            let (&[row, span, left], octets) = rest
                .split_first_chunk::<3>()
                .ok_or(FrameReject::Truncated)?;
            if span == 0 {
                return Err(FrameReject::Shape);
            }
            let answers = kind == LinkKind::HARQ_SECOND;
            let kind = UnitKind::Parity {
                row,
                span,
                left,
                answers,
            };
            (kind, octets)
        };
        if octets.is_empty() {
            return Err(FrameReject::Shape);
        }
        let unit = Self {
            epoch: Epoch(u16::from_be_bytes([e0, e1])),
            serial,
            block: FrameNumber::from_octets([b0, b1]),
            before,
            kind,
        };
        Ok(HarqFrame::Unit(unit, octets))
    }
}

impl HarqFeedback {
    /// Appends the frame.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.push(if self.damage.is_some() {
            LinkKind::HARQ_FEEDBACK_DAMAGE.0
        } else {
            LinkKind::HARQ_FEEDBACK.0
        });
        out.extend_from_slice(&self.epoch.0.to_be_bytes());
        out.extend_from_slice(&self.next.to_octets());
        out.extend_from_slice(&self.loss.to_be_bytes());
        out.extend_from_slice(&[self.margin, self.answer_margin]);
        if let Some(damage) = self.damage {
            out.extend_from_slice(&damage.to_be_bytes());
        }
        for report in &self.reports {
            out.extend_from_slice(&match *report {
                HarqBlockReport::Coming => [0, STILL_COMING],
                HarqBlockReport::Heard { span, need } => [span, need.min(STILL_COMING - 1)],
            });
        }
        seal(out, start);
    }

    fn parse(octets: &[u8]) -> Result<Self, FrameReject> {
        let content = open(octets)?;
        let (&[kind, e0, e1, n0, n1, l0, l1, margin, answer_margin], rest) = content
            .split_first_chunk::<9>()
            .ok_or(FrameReject::Truncated)?;
        let (damage, rest) = if LinkKind(kind) == LinkKind::HARQ_FEEDBACK_DAMAGE {
            let (damage, rest) = rest
                .split_first_chunk::<2>()
                .ok_or(FrameReject::Truncated)?;
            (Some(u16::from_be_bytes(*damage)), rest)
        } else {
            (None, rest)
        };
        let (reports, odd) = rest.as_chunks::<2>();
        if reports.len() > HARQ_REPORTS_MAX || !odd.is_empty() {
            return Err(FrameReject::Shape);
        }
        let reports = reports.iter().map(|&[span, need]| match need {
            STILL_COMING => HarqBlockReport::Coming,
            need => HarqBlockReport::Heard { span, need },
        });
        Ok(Self {
            epoch: Epoch(u16::from_be_bytes([e0, e1])),
            next: FrameNumber::from_octets([n0, n1]),
            loss: u16::from_be_bytes([l0, l1]),
            damage,
            margin,
            answer_margin,
            reports: reports.collect(),
        })
    }
}

impl<'a> HarqFrame<'a> {
    /// Appends the frame's octets.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        match self {
            Self::Unit(unit, octets) => unit.encode(octets, out),
            Self::Feedback(feedback) => feedback.encode(out),
            Self::Challenge(challenge) => {
                out.push(LinkKind::HARQ_CHALLENGE.0);
                out.extend_from_slice(&challenge.to_octets());
                seal(out, start);
            }
            Self::Answer {
                epoch,
                base,
                challenge,
            } => {
                out.push(LinkKind::HARQ_ANSWER.0);
                out.extend_from_slice(&epoch.0.to_be_bytes());
                out.extend_from_slice(&base.to_octets());
                out.extend_from_slice(&challenge.to_octets());
                seal(out, start);
            }
        }
    }

    /// Reads a frame.
    ///
    /// # Errors
    /// See [`FrameReject`].
    pub fn parse(octets: &'a [u8]) -> Result<Self, FrameReject> {
        match octets.first().copied().map(LinkKind) {
            None => Err(FrameReject::Truncated),
            Some(LinkKind::HARQ_FEEDBACK | LinkKind::HARQ_FEEDBACK_DAMAGE) => {
                Ok(Self::Feedback(HarqFeedback::parse(octets)?))
            }
            Some(
                kind @ (LinkKind::HARQ_SOURCE | LinkKind::HARQ_PARITY | LinkKind::HARQ_SECOND),
            ) => HarqUnit::parse(octets, kind),
            Some(LinkKind::HARQ_CHALLENGE) => match *open(octets)? {
                [_, c0, c1, c2, c3] => {
                    Ok(Self::Challenge(Challenge::from_octets([c0, c1, c2, c3])))
                }
                _ => Err(FrameReject::Shape),
            },
            Some(LinkKind::HARQ_ANSWER) => match *open(octets)? {
                [_, e0, e1, b0, b1, c0, c1, c2, c3] => Ok(Self::Answer {
                    epoch: Epoch(u16::from_be_bytes([e0, e1])),
                    base: FrameNumber::from_octets([b0, b1]),
                    challenge: Challenge::from_octets([c0, c1, c2, c3]),
                }),
                _ => Err(FrameReject::Shape),
            },
            Some(_) => Err(FrameReject::Kind),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_was_encoded_is_read_back_and_a_wrong_bit_is_noticed(
            numbers: (u16, u8, u16, u8),
            parity in prop::option::of((any::<u8>(), 1u8.., any::<u8>(), any::<bool>())),
            octets in prop::collection::vec(any::<u8>(), 1..200),
            reports in prop::collection::vec((any::<u8>(), 0u8..255), 0..20),
            bit in any::<prop::sample::Index>(),
        ) {
            let (epoch, serial, block, before) = numbers;
            let (epoch, block) = (Epoch(epoch), FrameNumber(block));
            let kind = match parity {
                None => UnitKind::Source { index: before },
                Some((row, span, left, answers)) => UnitKind::Parity { row, span, left, answers },
            };
            let unit = HarqUnit { epoch, serial, block, before, kind };
            let heard = reports.iter().map(|&(span, need)| HarqBlockReport::Heard { span, need });
            let feedback = HarqFeedback {
                epoch,
                next: block,
                loss: 77,
                damage: parity.map(|(row, ..)| u16::from(row)),
                margin: serial,
                answer_margin: before,
                reports: heard.chain([HarqBlockReport::Coming]).collect(),
            };
            let challenge = Challenge(u32::from(epoch.0) << 8 | u32::from(serial));
            let frames = [
                HarqFrame::Unit(unit, &octets),
                HarqFrame::Feedback(feedback),
                HarqFrame::Challenge(challenge),
                HarqFrame::Answer { epoch, base: block, challenge },
            ];
            for frame in frames {
                let mut out = Vec::new();
                frame.encode(&mut out);
                prop_assert_eq!(HarqFrame::parse(&out), Ok(frame.clone()));
                let bit = bit.index(out.len() * 8);
                out[bit / 8] ^= 1 << (bit % 8);
                prop_assert_ne!(HarqFrame::parse(&out), Ok(frame));
            }
        }
    }
}
