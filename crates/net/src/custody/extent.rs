//! A segment: the octets of a flow in it, and their places in its file.

use super::segment::Layout;

/// One file of a flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    /// The offset in its name.
    pub(super) named: u64,
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) file_bytes: u64,
    pub(super) layout: Layout,
    /// Whether something follows in the file that is no record and was one, perhaps. Nothing is written behind
    /// it, and the file is kept when its octets are no longer needed.
    pub(super) is_damaged: bool,
    /// The places of some of its records, in order: offset, place in the file.
    pub(super) index: Vec<(u64, u64)>,
}

/// The most octets of the file between two entries of an index, but for one record.
const INDEX_STEP_BYTES: u64 = 16 << 10;
/// The octets of one read: enough for those between two entries of an index, and the record after them.
pub(super) const READ_BYTES: u64 = 128 << 10;

impl Segment {
    pub(super) const fn empty(start: u64, layout: Layout) -> Self {
        Self {
            named: start,
            start,
            end: start,
            file_bytes: layout.header_bytes() as u64,
            layout,
            is_damaged: false,
            index: Vec::new(),
        }
    }

    /// Adds a record of `len` octets.
    pub(super) fn grow(&mut self, len: usize) {
        let indexed = self.index.last().map(|(_, place)| place + INDEX_STEP_BYTES);
        if indexed.is_none_or(|next| self.file_bytes >= next) {
            self.index.push((self.end, self.file_bytes));
        }
        self.end += len as u64;
        self.file_bytes += (self.layout.record_header_bytes() + len) as u64;
    }

    /// The place of a record at or before the one that holds `offset`.
    pub(super) fn place_before(&self, offset: u64) -> u64 {
        let after = self.index.partition_point(|(at, _)| *at <= offset);
        let entry = after.checked_sub(1).and_then(|i| self.index.get(i));
        let first = self.layout.header_bytes() as u64;
        entry.map_or(first, |(_, place)| *place)
    }
}
