//! The way in which a connection's MACKs and NACKs are written: in the short form where it has a place for them, else in the long
//! one.

use super::packing::Packing;
use crate::wire::TpduSeq;
use crate::wire::aerotp::short::{self, Named, ShortFeedback};
use crate::wire::aerotp::{
    CumulativeWords, Feedback, Handshake, NackCause, cumulative_numbers_max, listed_numbers_max,
};

/// A way to write one answer. Each method appends a TPDU up to its CRC-32, as those of [`Feedback`] do.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer {
    /// The long form's fields, of which the short one takes what it has.
    pub(super) template: Feedback,
    /// The headers of the connection's TPDUs.
    pub(super) packing: Packing,
    /// The name to use; `None` if the answer must be in the long form.
    pub(super) named: Option<Named>,
    /// The octets that it may have.
    pub(super) bytes_max: usize,
}

impl Answer {
    fn short(&self) -> Option<ShortFeedback> {
        let Feedback { ecn, echo, .. } = self.template;
        self.named.map(|named| ShortFeedback {
            named,
            ecn,
            echo,
            frame_bytes_max: self.bytes_max,
        })
    }

    /// The octets that a TPDU in the long form may have.
    const fn long_bytes_max(&self) -> usize {
        self.bytes_max
            .saturating_sub(self.packing.long_type_bytes())
    }

    /// The further numbers that a MACK of the papers' style may list.
    pub(super) fn listed_max(&self) -> usize {
        let Feedback { fec_words, crc, .. } = self.template;
        listed_numbers_max(self.long_bytes_max(), fec_words, crc)
    }

    /// The further numbers that a NACK may be offered; in the short form it takes those that fit.
    pub(super) fn asked_max(&self) -> usize {
        if self.named.is_some() {
            short::RANGE_NUMBERS_MAX - 1
        } else {
            self.listed_max()
        }
    }

    /// The words of 4 octets that a cumulative MACK has room for, which are numbers in the long form.
    pub(super) fn cumulative_max(&self) -> usize {
        let Feedback { fec_words, crc, .. } = self.template;
        if self.named.is_some() {
            self.bytes_max.saturating_sub(short::MACK_BYTES) / 4
        } else {
            cumulative_numbers_max(self.long_bytes_max(), fec_words, crc)
        }
    }

    /// The numbers that a cumulative MACK may be offered where `room` words are left; in the short form it takes those that fit.
    pub(super) const fn numbers_max(&self, room: usize) -> usize {
        if self.named.is_some() {
            short::RANGE_NUMBERS_MAX
        } else {
            room
        }
    }

    /// Appends a MACK of the papers' style, which has no short form.
    pub(super) fn listed(
        &self,
        first: TpduSeq,
        further: impl IntoIterator<Item = TpduSeq>,
        out: &mut Vec<u8>,
    ) -> usize {
        self.packing.begin_long(out);
        self.template.listed(Handshake::None, first, further, out)
    }

    /// Appends a cumulative MACK.
    pub(super) fn cumulative(
        &self,
        handshake: Handshake,
        next_expected: TpduSeq,
        words: CumulativeWords,
        above: impl IntoIterator<Item = TpduSeq>,
        out: &mut Vec<u8>,
    ) {
        if let Some(short) = self.short() {
            short.cumulative(handshake, next_expected, words, above, out);
        } else {
            self.packing.begin_long(out);
            self.template
                .cumulative(handshake, next_expected, words, above, out);
        }
    }

    /// Appends a NACK.
    pub(super) fn nack(
        &self,
        cause: NackCause,
        first: TpduSeq,
        further: impl IntoIterator<Item = TpduSeq>,
        out: &mut Vec<u8>,
    ) -> usize {
        if let Some(short) = self.short() {
            return short.nack(cause, first, further, out);
        }
        self.packing.begin_long(out);
        self.template.nack(cause, first, further, out)
    }
}
