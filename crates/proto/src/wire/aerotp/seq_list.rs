//! A list of sequence numbers in a body.

use core::slice::ChunksExact;

use super::short::Ranges;
use crate::wire::TpduSeq;

/// The sequence numbers in a MACK or NACK. They may repeat, and none of them was checked.
///
/// In the long form they have 32 bits each and are in the order sent, at most
/// [`LISTED_NUMBERS_MAX`](super::LISTED_NUMBERS_MAX); in the short form they are ranges, at most
/// [`RANGE_NUMBERS_MAX`](super::short::RANGE_NUMBERS_MAX).
#[derive(Clone, Debug)]
pub struct SeqList<'a>(Numbers<'a>);

#[derive(Clone, Debug)]
enum Numbers<'a> {
    Words(ChunksExact<'a, u8>),
    Ranges(Ranges<'a>),
}

impl<'a> SeqList<'a> {
    pub(super) fn words(octets: &'a [u8]) -> Self {
        Self(Numbers::Words(octets.chunks_exact(4)))
    }

    pub(super) const fn ranges(ranges: Ranges<'a>) -> Self {
        Self(Numbers::Ranges(ranges))
    }
}

impl Iterator for SeqList<'_> {
    type Item = TpduSeq;

    fn next(&mut self) -> Option<TpduSeq> {
        match &mut self.0 {
            Numbers::Words(words) => {
                let number = words.next()?.try_into().ok()?;
                Some(TpduSeq(u32::from_be_bytes(number)))
            }
            Numbers::Ranges(ranges) => ranges.next(),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match &self.0 {
            Numbers::Words(words) => words.size_hint(),
            Numbers::Ranges(ranges) => ranges.size_hint(),
        }
    }
}

impl ExactSizeIterator for SeqList<'_> {}
