//! The frames of ARQ.
//!
//! ```text
//! data       0x20 | epoch 16 | number 16 | base 16 | packet | CRC-32      0x21: sent again
//! advance    0x22 | epoch 16 | base 16 | CRC-32
//! ack        0x23 | epoch 16 | next 16 | 0 to 128 octets of bits | CRC-32
//! challenge  0x24 | challenge 32 | CRC-32
//! answer     0x25 | epoch 16 | base 16 | challenge 32 | CRC-32
//! request    0x26 | epoch 16 | 1 to 64 ranges: first 16, count 16 | CRC-32
//! ```
//!
//! `epoch` is drawn by the sending end at its birth, and so is its first number: frames of a restarted end can be told
//! from those of its former life. `base` is the lowest number that the sender may still send: lower ones are confirmed
//! or given up. `next` is the lowest number the receiver still waits for; bit i of the bits (most significant first)
//! says whether number `next` + 1 + i has arrived. A request names frames that are missing, in ranges of 1 frame or more.

use super::{Challenge, FrameNumber, FrameReject, LinkKind, open, seal};

/// Octets around a packet.
pub const ARQ_OVERHEAD_BYTES: usize = 11;

/// The longest bit list, for a window of 1,024.
pub const ARQ_BITS_MAX: usize = 128;

/// The most ranges of a request.
pub const ARQ_RANGES_MAX: usize = 64;

/// Octets of a range: its first number and its count.
const RANGE_BYTES: usize = 4;

/// Appends a range of a request.
pub fn push_range(first: FrameNumber, count: u16, out: &mut Vec<u8>) {
    out.extend_from_slice(&first.to_octets());
    out.extend_from_slice(&count.to_be_bytes());
}

/// The ranges of a request: the first number of each, and its count.
pub fn ranges(octets: &[u8]) -> impl Iterator<Item = (FrameNumber, u16)> + '_ {
    let (ranges, _) = octets.as_chunks::<RANGE_BYTES>();
    ranges.iter().map(|&[f0, f1, c0, c1]| {
        (
            FrameNumber::from_octets([f0, f1]),
            u16::from_be_bytes([c0, c1]),
        )
    })
}

/// The life of a sending end that a number belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Epoch(pub u16);

/// A frame of ARQ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArqFrame<'a> {
    /// A packet.
    Data {
        /// The sender's life.
        epoch: Epoch,
        /// The packet's number.
        number: FrameNumber,
        /// The lowest number the sender may still send.
        base: FrameNumber,
        /// Whether it was sent before.
        again: bool,
        /// The packet; not empty.
        packet: &'a [u8],
    },
    /// An announcement of the frames that the sender gave up, when it has no data that could carry
    /// it.
    Advance {
        /// The sender's life.
        epoch: Epoch,
        /// The lowest number the sender may still send.
        base: FrameNumber,
    },
    /// An acknowledgement of the frames that have arrived.
    Ack {
        /// The life whose numbers these are.
        epoch: Epoch,
        /// The lowest number that is missing.
        next: FrameNumber,
        /// The frames behind it that have arrived.
        bits: &'a [u8],
    },
    /// A question, after frames came of a life that is not the known one: is that life the present
    /// one?
    Challenge(Challenge),
    /// A sender's answer with its name.
    Answer {
        /// The sender's life.
        epoch: Epoch,
        /// The lowest number the sender may still send.
        base: FrameNumber,
        /// The challenge that is answered.
        challenge: Challenge,
    },
    /// A request for frames that are missing.
    Request {
        /// The life whose numbers these are.
        epoch: Epoch,
        /// The [`ranges`] that are missing, as [`push_range`] writes them.
        ranges: &'a [u8],
    },
}

impl<'a> ArqFrame<'a> {
    /// Appends the frame's octets.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        let head = |kind: LinkKind, epoch: Epoch, number: FrameNumber| {
            let ([e0, e1], [n0, n1]) = (epoch.0.to_be_bytes(), number.to_octets());
            [kind.0, e0, e1, n0, n1]
        };
        match *self {
            Self::Data {
                epoch,
                number,
                base,
                again,
                packet,
            } => {
                let kind = if again {
                    LinkKind::ARQ_AGAIN
                } else {
                    LinkKind::ARQ_DATA
                };
                out.extend_from_slice(&head(kind, epoch, number));
                out.extend_from_slice(&base.to_octets());
                out.extend_from_slice(packet);
            }
            Self::Advance { epoch, base } => {
                out.extend_from_slice(&head(LinkKind::ARQ_ADVANCE, epoch, base));
            }
            Self::Ack { epoch, next, bits } => {
                out.extend_from_slice(&head(LinkKind::ARQ_ACK, epoch, next));
                out.extend_from_slice(bits);
            }
            Self::Challenge(challenge) => {
                out.push(LinkKind::ARQ_CHALLENGE.0);
                out.extend_from_slice(&challenge.to_octets());
            }
            Self::Answer {
                epoch,
                base,
                challenge,
            } => {
                out.extend_from_slice(&head(LinkKind::ARQ_ANSWER, epoch, base));
                out.extend_from_slice(&challenge.to_octets());
            }
            Self::Request { epoch, ranges } => {
                out.push(LinkKind::ARQ_REQUEST.0);
                out.extend_from_slice(&epoch.0.to_be_bytes());
                out.extend_from_slice(ranges);
            }
        }
        seal(out, start);
    }

    /// Reads a frame.
    ///
    /// # Errors
    /// See [`FrameReject`].
    pub fn parse(octets: &'a [u8]) -> Result<Self, FrameReject> {
        let content = open(octets)?;
        let (&[kind, e0, e1, n0, n1], rest) = content
            .split_first_chunk::<5>()
            .ok_or(FrameReject::Truncated)?;
        let epoch = Epoch(u16::from_be_bytes([e0, e1]));
        let number = FrameNumber::from_octets([n0, n1]);
        match LinkKind(kind) {
            kind @ (LinkKind::ARQ_DATA | LinkKind::ARQ_AGAIN) => {
                let (&base, packet) = rest
                    .split_first_chunk::<2>()
                    .ok_or(FrameReject::Truncated)?;
                if packet.is_empty() {
                    return Err(FrameReject::Truncated);
                }
                Ok(Self::Data {
                    epoch,
                    number,
                    base: FrameNumber::from_octets(base),
                    again: kind == LinkKind::ARQ_AGAIN,
                    packet,
                })
            }
            LinkKind::ARQ_ADVANCE if rest.is_empty() => Ok(Self::Advance {
                epoch,
                base: number,
            }),
            LinkKind::ARQ_ACK if rest.len() <= ARQ_BITS_MAX => Ok(Self::Ack {
                epoch,
                next: number,
                bits: rest,
            }),
            LinkKind::ARQ_CHALLENGE if rest.is_empty() => {
                Ok(Self::Challenge(Challenge::from_octets([e0, e1, n0, n1])))
            }
            LinkKind::ARQ_ANSWER => {
                let challenge = <[u8; 4]>::try_from(rest).map_err(|_| FrameReject::Shape)?;
                Ok(Self::Answer {
                    epoch,
                    base: number,
                    challenge: Challenge::from_octets(challenge),
                })
            }
            LinkKind::ARQ_REQUEST => {
                let named = content.get(3..).unwrap_or_default();
                let bytes = named.len();
                let sound = bytes.is_multiple_of(RANGE_BYTES)
                    && bytes <= ARQ_RANGES_MAX * RANGE_BYTES
                    && ranges(named).all(|(_, count)| count > 0);
                if !sound {
                    return Err(FrameReject::Shape);
                }
                Ok(Self::Request {
                    epoch,
                    ranges: named,
                })
            }
            LinkKind::ARQ_ADVANCE | LinkKind::ARQ_ACK | LinkKind::ARQ_CHALLENGE => {
                Err(FrameReject::Shape)
            }
            _ => Err(FrameReject::Kind),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn golden_octets() {
        let mut frame = Vec::new();
        ArqFrame::Data {
            epoch: Epoch(0x0102),
            number: FrameNumber(0x0304),
            base: FrameNumber(0x0203),
            again: true,
            packet: b"hi",
        }
        .encode(&mut frame);
        assert_eq!(frame.len(), 2 + ARQ_OVERHEAD_BYTES);
        assert_eq!(frame[..9], [0x21, 1, 2, 3, 4, 2, 3, b'h', b'i']);
        frame.clear();
        ArqFrame::Challenge(Challenge(0x0506_0708)).encode(&mut frame);
        assert_eq!(frame[..5], [0x24, 5, 6, 7, 8]);
        frame.clear();
        ArqFrame::Answer {
            epoch: Epoch(0x0102),
            base: FrameNumber(0x0304),
            challenge: Challenge(0x0506_0708),
        }
        .encode(&mut frame);
        assert_eq!(frame[..9], [0x25, 1, 2, 3, 4, 5, 6, 7, 8]);
        frame.clear();
        let mut named = Vec::new();
        push_range(FrameNumber(0x0304), 0x0506, &mut named);
        ArqFrame::Request {
            epoch: Epoch(0x0102),
            ranges: &named,
        }
        .encode(&mut frame);
        assert_eq!(frame[..7], [0x26, 1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn a_request_names_64_ranges_at_most_and_none_that_is_empty() {
        let request = |counts: &[u16]| {
            let mut named = Vec::new();
            for count in counts {
                push_range(FrameNumber(9), *count, &mut named);
            }
            let mut frame = Vec::new();
            let epoch = Epoch(7);
            let ranges = &named;
            ArqFrame::Request { epoch, ranges }.encode(&mut frame);
            ArqFrame::parse(&frame).map(|_| ())
        };
        assert_eq!(request(&[1; ARQ_RANGES_MAX]), Ok(()));
        assert_eq!(request(&[1; ARQ_RANGES_MAX + 1]), Err(FrameReject::Shape));
        assert_eq!(request(&[1, 0]), Err(FrameReject::Shape));
    }

    proptest! {
        #[test]
        fn what_was_encoded_is_read_back(
            epoch: u16, number: u16, base: u16, again: bool, challenge: u32,
            octets in prop::collection::vec(any::<u8>(), 1..ARQ_BITS_MAX),
        ) {
            let (epoch, number, base) = (Epoch(epoch), FrameNumber(number), FrameNumber(base));
            let challenge = Challenge(challenge);
            for frame in [
                ArqFrame::Data { epoch, number, base, again, packet: &octets },
                ArqFrame::Advance { epoch, base },
                ArqFrame::Ack { epoch, next: number, bits: &octets },
                ArqFrame::Challenge(challenge),
                ArqFrame::Answer { epoch, base, challenge },
            ] {
                let mut out = Vec::new();
                frame.encode(&mut out);
                prop_assert_eq!(ArqFrame::parse(&out), Ok(frame));
            }
        }

        #[test]
        fn what_parses_has_one_encoding(mut octets in prop::collection::vec(any::<u8>(), 0..40)) {
            if let Some(kind) = octets.first_mut() {
                *kind = 0x20 | (*kind & 7);
            }
            seal(&mut octets, 0);
            if let Ok(frame) = ArqFrame::parse(&octets) {
                let mut again = Vec::new();
                frame.encode(&mut again);
                prop_assert_eq!(again, octets);
            }
        }
    }
}
