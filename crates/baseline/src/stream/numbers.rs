//! Sequence numbers of both directions, as positions of their streams.
//!
//! Numbers exist on the wire alone. Inside, both directions count positions from 0 in 64 bits; a
//! SYN lies before position 0, and a FIN takes the position after the last octet.

use crate::wire::tcp::{SackBlock, TcpFlags, TcpHeader, TcpSeq};
use core::ops::Range;
use fulmar_proto::units::ByteCount;

/// The largest shift of a window (RFC 7323, section 2.3).
pub(crate) const SHIFT_MAX: u8 = 14;

/// The numbers at which both directions begin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Numbers {
    /// The number of our SYN.
    pub(crate) ours: TcpSeq,
    /// The number of the peer's SYN.
    pub(crate) theirs: TcpSeq,
}

impl Numbers {
    /// Numbers that begin at `ours`; the peer's are not known.
    pub(crate) const fn new(ours: u32) -> Self {
        Self {
            ours: TcpSeq(ours),
            theirs: TcpSeq(0),
        }
    }

    /// The number of our `position`.
    pub(crate) const fn our_seq(self, position: u64) -> TcpSeq {
        self.ours.plus(1).plus(wire(position))
    }

    /// The number of the peer's `position`.
    pub(crate) const fn their_seq(self, position: u64) -> TcpSeq {
        self.theirs.plus(1).plus(wire(position))
    }

    /// The peer's position for `seq`, near `next`; -1 is its SYN.
    pub(crate) fn position(self, seq: TcpSeq, next: u64) -> i64 {
        next.cast_signed() + i64::from(seq.distance_from(self.their_seq(next)))
    }

    /// Our position for `ack`, near `una`; -1 is our SYN.
    pub(crate) fn acked_by(self, ack: TcpSeq, una: u64) -> i64 {
        una.cast_signed() + i64::from(ack.distance_from(self.our_seq(una)))
    }

    /// The peer's blocks as runs of our positions near `una`.
    pub(crate) fn runs_of(self, blocks: &[SackBlock], una: u64) -> Vec<Range<u64>> {
        let ranges = blocks.iter().filter_map(|block| {
            let start = u64::try_from(self.acked_by(block.start, una)).ok()?;
            let end = u64::try_from(self.acked_by(block.end, una)).ok()?;
            (start < end).then_some(start..end)
        });
        ranges.collect()
    }

    /// A run of the peer's positions as a block.
    pub(crate) const fn block_of(self, run: &Range<u64>) -> SackBlock {
        SackBlock {
            start: self.their_seq(run.start),
            end: self.their_seq(run.end),
        }
    }
}

/// A position modulo 2^32.
#[expect(clippy::cast_possible_truncation, reason = "sequence numbers wrap")]
pub(crate) const fn wire(position: u64) -> u32 {
    position as u32
}

/// The shift with which 16 bits can tell a window of the whole `buffer`.
pub(crate) fn shift_for(buffer: ByteCount) -> u8 {
    let fits = |shift: &u8| u16::try_from(buffer.0 >> shift).is_ok();
    (0..=SHIFT_MAX).find(fits).unwrap_or(SHIFT_MAX)
}

/// Whether a SYN asks for ECN, with both bits, or a SYN-ACK agrees to it, with one (RFC 3168, section
/// 6.1.1).
pub(crate) const fn asks_for_ecn(syn: &TcpHeader) -> bool {
    let (echo, reduced) = (syn.flags.has(TcpFlags::ECE), syn.flags.has(TcpFlags::CWR));
    echo && reduced != syn.flags.has(TcpFlags::ACK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_pass_the_wrap_of_the_numbers() {
        let mut numbers = Numbers::new(u32::MAX - 5);
        numbers.theirs = TcpSeq(7);
        let far = (1 << 40) + 3;
        for una in [0, 4, 5, 6, 1 << 32, far] {
            assert_eq!(
                numbers.acked_by(numbers.our_seq(una + 9), una),
                una.cast_signed() + 9
            );
            assert_eq!(
                numbers.position(numbers.their_seq(una), una + 9),
                una.cast_signed()
            );
        }
        assert_eq!(numbers.acked_by(numbers.ours, 0), -1);
        assert_eq!(numbers.position(numbers.theirs, 0), -1);
    }

    #[test]
    fn blocks_before_the_stream_or_without_octets_are_no_runs() {
        let numbers = Numbers::new(100);
        let block = |start, end| SackBlock {
            start: TcpSeq(start),
            end: TcpSeq(end),
        };
        let blocks = [block(111, 121), block(90, 121), block(121, 121)];
        assert_eq!(numbers.runs_of(&blocks, 0), vec![10..20; 1]);
    }

    #[test]
    fn the_least_shift_tells_the_whole_buffer() {
        for (buffer, shift) in [(65_535, 0), (65_536, 1), (4 << 20, 7), (1 << 40, SHIFT_MAX)] {
            assert_eq!(shift_for(ByteCount(buffer)), shift);
        }
    }
}
