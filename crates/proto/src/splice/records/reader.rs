//! Records from a stream that is cut anywhere.

use super::{HEADER_BYTES, MalformedRecord, SpliceRecord, kind};

/// The next piece of the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordPiece<'a> {
    /// A record. A `DATA` record comes in as many pieces as the stream was cut into.
    Record(SpliceRecord<'a>),
    /// The stream is used up; more octets are needed.
    Wait,
}

/// A reader that cuts a stream into records. Octets of `DATA` are passed on as they come; any other
/// record is kept until it is complete, at most 65,535 octets.
#[derive(Debug, Default)]
pub struct RecordReader {
    /// The type and length, then the body, of a record that is not complete.
    partial: Vec<u8>,
    /// Octets of a `DATA` record still to come.
    data_left: usize,
    /// Whether the record in `partial` was handed out.
    handed_out: bool,
}

impl RecordReader {
    /// Takes the next record off `input`; call until [`RecordPiece::Wait`].
    ///
    /// # Errors
    /// [`MalformedRecord`] if the stream does not consist of records. The rest of it cannot be read.
    pub fn next<'o, 'i: 'o>(
        &'o mut self,
        input: &mut &'i [u8],
    ) -> Result<RecordPiece<'o>, MalformedRecord> {
        if core::mem::take(&mut self.handed_out) {
            self.partial.clear();
        }
        if self.data_left == 0 {
            if !self.fill(HEADER_BYTES, input) {
                return Ok(RecordPiece::Wait);
            }
            let [kind, high, low] = self.header();
            let len = usize::from(u16::from_be_bytes([high, low]));
            if kind != kind::DATA {
                if kind < kind::OPTIONAL && kind > kind::LAST {
                    return Err(MalformedRecord::UnknownType(kind));
                }
                if !self.fill(HEADER_BYTES + len, input) {
                    return Ok(RecordPiece::Wait);
                }
                self.handed_out = true;
                let body = self.partial.get(HEADER_BYTES..).unwrap_or_default();
                return SpliceRecord::decode(kind, body).map(RecordPiece::Record);
            }
            if len == 0 {
                return Err(MalformedRecord::Length { kind, len });
            }
            self.data_left = len;
            self.partial.clear();
        }
        if input.is_empty() {
            return Ok(RecordPiece::Wait);
        }
        let (data, rest) = input.split_at(self.data_left.min(input.len()));
        self.data_left -= data.len();
        *input = rest;
        Ok(RecordPiece::Record(SpliceRecord::Data(data)))
    }

    /// Moves octets from `input` until `partial` has `len`. Returns whether it has.
    fn fill(&mut self, len: usize, input: &mut &[u8]) -> bool {
        let wanted = len.saturating_sub(self.partial.len());
        let (head, rest) = input.split_at(wanted.min(input.len()));
        self.partial.extend_from_slice(head);
        *input = rest;
        self.partial.len() >= len
    }

    fn header(&self) -> [u8; HEADER_BYTES] {
        self.partial
            .first_chunk::<HEADER_BYTES>()
            .copied()
            .unwrap_or_default()
    }

    /// Octets kept.
    pub fn held_bytes(&self) -> usize {
        self.partial.len()
    }
}
