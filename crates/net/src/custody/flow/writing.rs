//! The writing of records, segments and headers.

use super::super::disk;
use super::super::error::FlowFault;
use super::super::extent::Segment;
use super::super::segment::{self, HEADER_BYTES, Header, Layout, RECORD_HEADER_BYTES};
use super::super::segment_file;
use super::FlowStore;
use std::io::{self, IoSlice};

impl FlowStore {
    pub(super) fn append_record(&mut self, octets: &[u8]) -> io::Result<()> {
        let length = (RECORD_HEADER_BYTES + octets.len()) as u64;
        let active = self.active_segment();
        let is_empty = active.end == active.start;
        let is_large = active.file_bytes + length > self.shared.segment_bytes;
        let is_old = active.layout != Layout::Two;
        if is_old && is_empty {
            self.convert_active()?;
        } else if is_old || active.is_damaged || is_large && !is_empty {
            self.start_segment()?;
        }
        let place = self.active_segment().file_bytes;
        if self.is_uncut {
            // Left-over octets would be damage behind a shorter record.
            self.active.set_len(place)?;
            self.is_uncut = false;
        }
        if self.is_stale {
            self.write_header(|_| ())?;
        }
        let header = segment::record_header(self.end, octets);
        if let Err(error) = segment_file::write_record(&*self.active, &header, octets, place) {
            self.is_uncut = self.active.set_len(place).is_err();
            return Err(error);
        }
        self.shared.space.add(length);
        self.end += octets.len() as u64;
        let active = self.segments.back_mut();
        active
            .expect("a flow has an active segment")
            .grow(octets.len());
        Ok(())
    }

    fn start_segment(&mut self) -> io::Result<()> {
        let header = Header {
            start: self.end,
            generation: 0,
            ..self.header.clone()
        };
        // The old file has a header of its own: the new file's is used only once that file is there.
        let created = segment_file::create(&*self.shared.disk, &header, false);
        let is_here = |segment: &Segment| segment.named == header.start;
        self.active = created.map_err(|not_made| {
            if not_made.is_left && !self.doomed.iter().any(is_here) {
                // Octets that go into the file before it after all leave it where, with that file gone, it is the
                // front of a gap.
                let mut left = Segment::empty(header.start, Layout::Two);
                left.file_bytes = 0;
                self.doomed.push_front(left);
            }
            not_made.error
        })?;
        self.doomed.retain(|segment| !is_here(segment));
        self.header = header;
        self.slot = 0;
        self.is_stale = false;
        self.shared.space.add(HEADER_BYTES as u64);
        self.is_new = true;
        self.is_uncut = false;
        let segment = Segment::empty(self.end, Layout::Two);
        self.segments.push_back(segment);
        Ok(())
    }

    /// Makes the active file, which has no records, one of today's format.
    fn convert_active(&mut self) -> io::Result<()> {
        let start = self.end;
        let emptied = Segment::empty(start, Layout::One);
        self.active.set_len(emptied.file_bytes)?;
        let mut header = self.header.clone();
        header.generation += 1;
        let octets = header.encode(Layout::Two);
        let place = segment::slot_place(1);
        disk::write_all(&*self.active, &mut [IoSlice::new(&octets)], place)?;
        self.header = header;
        self.slot = 1;
        self.is_stale = false;
        self.is_uncut = false;
        if let Some(active) = self.segments.back_mut() {
            let named = active.named;
            *active = Segment {
                named,
                ..Segment::empty(start, Layout::Two)
            };
            let more = active.file_bytes - emptied.file_bytes;
            self.shared.space.add(more);
        }
        Ok(())
    }

    /// Empties the active file in place, which no full disk can prevent.
    pub(super) fn reuse_active(&mut self) -> Result<(), FlowFault> {
        let end = self.end;
        self.replace_header(|header| header.start = end)?;
        let active = self
            .segments
            .back_mut()
            .expect("a flow has an active segment");
        // Records that could not be cut off are before the header's first octet.
        let emptied = Segment {
            named: active.named,
            is_damaged: active.is_damaged,
            ..Segment::empty(end, active.layout)
        };
        let freed = active.file_bytes - emptied.file_bytes;
        let cut = self.active.set_len(emptied.file_bytes);
        self.is_uncut = cut.is_err();
        *active = emptied;
        self.shared.space.give_back(freed);
        cut.map_err(FlowFault::io("cut"))
    }

    /// Writes another header beside the valid one. If that fails, the old one stays valid.
    pub(super) fn replace_header(
        &mut self,
        change: impl FnOnce(&mut Header),
    ) -> Result<(), FlowFault> {
        let written = self.write_header(change);
        written.map_err(|error| {
            self.is_faulty = true;
            FlowFault::io("write the header")(error)
        })
    }

    pub(super) fn write_header(&mut self, change: impl FnOnce(&mut Header)) -> io::Result<()> {
        let active = self.segments.back().or(self.doomed.back());
        let layout = active.map_or(Layout::Two, |active| active.layout);
        let slot = match layout {
            Layout::One => 0,
            Layout::Two => 1 - self.slot,
        };
        // Also after a failure, which may have come after the write: no two different headers have one number.
        self.header.generation += 1;
        let mut header = self.header.clone();
        change(&mut header);
        let octets = header.encode(layout);
        let place = segment::slot_place(slot);
        disk::write_all(&*self.active, &mut [IoSlice::new(&octets)], place)?;
        self.header = header;
        self.slot = slot;
        self.is_stale = false;
        self.queue_sync();
        Ok(())
    }
}
