//! Which of a flow's octets lie in one segment, and where in its file.

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
    /// Something follows in the file that is no record and was one, perhaps: nothing is written behind
    /// it, and the file is kept when its octets are no longer needed.
    pub(super) is_damaged: bool,
    /// Where some of its records lie, in order: offset, place in the file.
    pub(super) index: Vec<(u64, u64)>,
}

/// The file between two entries of an index, at most, but for one record.
const INDEX_STEP_BYTES: u64 = 16 << 10;
/// Enough for what lies between two entries of an index, and the record after it.
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

    /// A record of `len` octets follows.
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
