//! The frames of LL-HARQ.
//!
//! ```text
//! unit       0x30 | epoch 16 | block 16 | index 8 | k 8 | n 8 | octets | CRC-16     0x31: second round
//! feedback   0x32 | epoch 16 | next 16 | loss 16 | a need 8 for each block from next on | CRC-32
//! challenge  0x33 | challenge 32 | CRC-32
//! answer     0x34 | epoch 16 | base 16 | challenge 32 | CRC-32
//! ```
//!
//! A block is one packet and its CRC-32, cut into `k` sources; units from `k` on are repair symbols of
//! `crate::fec::block`. `n` is one more than the last index of the round. A unit's check is the HEC
//! polynomial's, two octets because units are short; the packet's own CRC-32 catches what it
//! overlooks. `loss` is the receiver's estimate times 65,535. A need is the number of units still
//! missing, 0 for a block that wants nothing, 255 for one that is still coming.
//!
//! # Sources
//! spec/protocols.md 2.4 (fields of the unit); the feedback is ours.

use super::arq::Epoch;
use super::{Challenge, FrameNumber, FrameReject, LinkKind, open, seal};
use crate::wire::checksum::Hec;

/// Octets around a unit.
pub const HARQ_OVERHEAD_BYTES: usize = 10;

/// The blocks that one feedback can speak of.
pub const HARQ_NEEDS_MAX: usize = 256;

/// The need of a block that is still coming.
pub const STILL_COMING: u8 = u8::MAX;

/// The fields of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unit {
    /// The sender's life.
    pub epoch: Epoch,
    /// The block's number.
    pub block: FrameNumber,
    /// Which of the block's units.
    pub index: u8,
    /// Sources of the block, at least 1.
    pub k: u8,
    /// One more than the last index of the round.
    pub n: u8,
    /// Whether it answers a feedback.
    pub second_round: bool,
}

/// A frame of LL-HARQ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HarqFrame<'a> {
    /// A unit and its octets.
    Unit(Unit, &'a [u8]),
    /// What is needed.
    Feedback {
        /// Whose blocks these are.
        epoch: Epoch,
        /// The lowest block still waited for.
        next: FrameNumber,
        /// The estimated share of lost units, times 65,535.
        loss: u16,
        /// What each block from `next` on needs.
        needs: &'a [u8],
    },
    /// Units came of a life that is not the known one: is it of now?
    Challenge(Challenge),
    /// A sender says who it is.
    Answer {
        /// The sender's life.
        epoch: Epoch,
        /// The lowest block that is not over for the sender.
        base: FrameNumber,
        /// What is answered.
        challenge: Challenge,
    },
}

impl<'a> HarqFrame<'a> {
    /// Appends the frame's octets.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        match *self {
            Self::Unit(unit, octets) => {
                let kind = if unit.second_round {
                    LinkKind::HARQ_SECOND
                } else {
                    LinkKind::HARQ_FIRST
                };
                let [b0, b1] = unit.block.to_octets();
                let [e0, e1] = unit.epoch.0.to_be_bytes();
                let head = [kind.0, e0, e1, b0, b1, unit.index, unit.k, unit.n];
                out.extend_from_slice(&head);
                out.extend_from_slice(octets);
                let check = Hec::over(out.get(start..).unwrap_or_default()).then(&[]);
                out.extend_from_slice(&check.to_be_bytes());
            }
            Self::Feedback {
                epoch,
                next,
                loss,
                needs,
            } => {
                out.push(LinkKind::HARQ_FEEDBACK.0);
                out.extend_from_slice(&epoch.0.to_be_bytes());
                out.extend_from_slice(&next.to_octets());
                out.extend_from_slice(&loss.to_be_bytes());
                out.extend_from_slice(needs);
                seal(out, start);
            }
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
            Some(LinkKind::HARQ_FEEDBACK) => {
                let content = open(octets)?;
                let (&[_, e0, e1, n0, n1, l0, l1], needs) = content
                    .split_first_chunk::<7>()
                    .ok_or(FrameReject::Truncated)?;
                if needs.len() > HARQ_NEEDS_MAX {
                    return Err(FrameReject::Shape);
                }
                Ok(Self::Feedback {
                    epoch: Epoch(u16::from_be_bytes([e0, e1])),
                    next: FrameNumber::from_octets([n0, n1]),
                    loss: u16::from_be_bytes([l0, l1]),
                    needs,
                })
            }
            Some(kind @ (LinkKind::HARQ_FIRST | LinkKind::HARQ_SECOND)) => {
                let (content, check) = octets
                    .split_last_chunk::<2>()
                    .ok_or(FrameReject::Truncated)?;
                if Hec::over(content).then(&[]) != u16::from_be_bytes(*check) {
                    return Err(FrameReject::Check);
                }
                let (&[_, e0, e1, b0, b1, index, k, n], octets) = content
                    .split_first_chunk::<8>()
                    .ok_or(FrameReject::Truncated)?;
                if k == 0 || n < k || index >= n || octets.is_empty() {
                    return Err(FrameReject::Shape);
                }
                let unit = Unit {
                    epoch: Epoch(u16::from_be_bytes([e0, e1])),
                    block: FrameNumber::from_octets([b0, b1]),
                    index,
                    k,
                    n,
                    second_round: kind == LinkKind::HARQ_SECOND,
                };
                Ok(Self::Unit(unit, octets))
            }
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
            epoch: u16, block: u16, challenge: u32, k in 1u8..20, more in 0u8..30, second_round: bool,
            octets in prop::collection::vec(any::<u8>(), 1..200),
            bit in any::<prop::sample::Index>(),
        ) {
            let (epoch, block) = (Epoch(epoch), FrameNumber(block));
            let unit = Unit { epoch, block, index: more, k, n: k + more, second_round };
            let feedback = HarqFrame::Feedback { epoch, next: block, loss: 77, needs: &octets };
            let challenge = Challenge(challenge);
            let answer = HarqFrame::Answer { epoch, base: block, challenge };
            let unit = HarqFrame::Unit(unit, &octets);
            for frame in [unit, feedback, HarqFrame::Challenge(challenge), answer] {
                let mut out = Vec::new();
                frame.encode(&mut out);
                prop_assert_eq!(HarqFrame::parse(&out), Ok(frame));
                let bit = bit.index(out.len() * 8);
                out[bit / 8] ^= 1 << (bit % 8);
                prop_assert_ne!(HarqFrame::parse(&out), Ok(frame));
            }
        }
    }
}
