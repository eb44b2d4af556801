//! A list of sequence numbers in a body.

use core::slice::ChunksExact;

use crate::wire::TpduSeq;

/// The sequence numbers in a MACK or NACK, 32 bits each, in the order sent. At most
/// [`LISTED_NUMBERS_MAX`](super::LISTED_NUMBERS_MAX) of them; they may repeat, and none of them was
/// checked.
#[derive(Clone, Debug)]
pub struct SeqList<'a>(ChunksExact<'a, u8>);

impl<'a> SeqList<'a> {
    pub(super) fn of(octets: &'a [u8]) -> Self {
        Self(octets.chunks_exact(4))
    }
}

impl Iterator for SeqList<'_> {
    type Item = TpduSeq;

    fn next(&mut self) -> Option<TpduSeq> {
        let number = self.0.next()?.try_into().ok()?;
        Some(TpduSeq(u32::from_be_bytes(number)))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl ExactSizeIterator for SeqList<'_> {}
