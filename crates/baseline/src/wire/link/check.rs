//! The frame's first octet and its check.

use fulmar_proto::wire::checksum::crc32;

/// Octets of the CRC-32 at a frame's end.
const FRAME_CHECK_BYTES: usize = 4;

/// The reason why a frame cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum FrameReject {
    /// The frame is shorter than any frame of its kind.
    #[error("shorter than a frame of its kind")]
    Truncated,
    /// The check does not match.
    #[error("frame check failed")]
    Check,
    /// The first octet names no kind that this layer has.
    #[error("not a frame of this link layer")]
    Kind,
    /// The fields contradict each other.
    #[error("the frame's fields contradict each other")]
    Shape,
}

impl FrameReject {
    /// All reasons, in report order.
    pub const ALL: [Self; 4] = [Self::Truncated, Self::Check, Self::Kind, Self::Shape];

    /// The name of this reason's counter.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Truncated => "truncated",
            Self::Check => "check",
            Self::Kind => "kind",
            Self::Shape => "shape",
        }
    }
}

/// The first octet of a frame: the layer in the upper half, the kind in the lower.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LinkKind(pub u8);

impl LinkKind {
    /// A packet of the layer without repair.
    pub const PLAIN_DATA: Self = Self(0x10);
    /// A packet of ARQ, for the first time.
    pub const ARQ_DATA: Self = Self(0x20);
    /// A packet of ARQ that is retransmitted.
    pub const ARQ_AGAIN: Self = Self(0x21);
    /// The frames that an ARQ sender gave up.
    pub const ARQ_ADVANCE: Self = Self(0x22);
    /// An acknowledgement by an ARQ receiver.
    pub const ARQ_ACK: Self = Self(0x23);
    /// An ARQ receiver's question: which life of its peer is the present one?
    pub const ARQ_CHALLENGE: Self = Self(0x24);
    /// An ARQ sender's answer with its name.
    pub const ARQ_ANSWER: Self = Self(0x25);
    /// An ARQ receiver's request for frames that are missing.
    pub const ARQ_REQUEST: Self = Self(0x26);
    /// A source of LL-HARQ.
    pub const HARQ_SOURCE: Self = Self(0x30);
    /// A repair symbol of its first round.
    pub const HARQ_PARITY: Self = Self(0x31);
    /// The needs of a receiver of LL-HARQ.
    pub const HARQ_FEEDBACK: Self = Self(0x32);
    /// An LL-HARQ receiver's question: which life of its peer is the present one?
    pub const HARQ_CHALLENGE: Self = Self(0x33);
    /// An LL-HARQ sender's answer with its name.
    pub const HARQ_ANSWER: Self = Self(0x34);
    /// A repair symbol of LL-HARQ's second round.
    pub const HARQ_SECOND: Self = Self(0x35);
    /// The needs of a receiver of LL-HARQ, and the share of units that arrived damaged.
    pub const HARQ_FEEDBACK_DAMAGE: Self = Self(0x36);
}

/// Ends the frame that begins at `start` of `out` with its check.
pub fn seal(out: &mut Vec<u8>, start: usize) {
    let check = crc32(out.get(start..).unwrap_or_default());
    out.extend_from_slice(&check.to_be_bytes());
}

/// Takes the check off a frame.
///
/// # Errors
/// [`FrameReject::Truncated`] and [`FrameReject::Check`].
pub fn open(octets: &[u8]) -> Result<&[u8], FrameReject> {
    let (content, check) = octets
        .split_last_chunk::<FRAME_CHECK_BYTES>()
        .ok_or(FrameReject::Truncated)?;
    if crc32(content) == u32::from_be_bytes(*check) {
        Ok(content)
    } else {
        Err(FrameReject::Check)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_sealed_frame_opens_and_one_with_a_wrong_bit_does_not(
            content in prop::collection::vec(any::<u8>(), 0..300),
            bit in any::<prop::sample::Index>(),
        ) {
            let mut frame = content.clone();
            seal(&mut frame, 0);
            prop_assert_eq!(open(&frame), Ok(content.as_slice()));
            let bit = bit.index(frame.len() * 8);
            frame[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(open(&frame), Err(FrameReject::Check));
        }
    }

    #[test]
    fn a_frame_shorter_than_its_check_is_truncated() {
        assert_eq!(open(&[1, 2, 3]), Err(FrameReject::Truncated));
    }
}
