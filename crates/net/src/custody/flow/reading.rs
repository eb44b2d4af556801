//! The reading of octets, record by record.

use super::super::disk::{self, DiskFile};
use super::super::error::FlowFault;
use super::super::extent::READ_BYTES;
use super::super::segment::{self, NoRecord};
use super::FlowStore;

impl FlowStore {
    pub(super) fn cached(&self, from: u64) -> Option<&[u8]> {
        let skip = usize::try_from(from.checked_sub(self.block_start)?).ok()?;
        self.block.get(skip..).filter(|rest| !rest.is_empty())
    }

    /// Reads the record that holds `from`, and those after it that come with it.
    pub(super) fn load(&mut self, from: u64) -> Result<(), FlowFault> {
        let holding = self.segments.partition_point(|s| s.end <= from);
        let segment = self.segments.get(holding).ok_or(FlowFault::NotKept(from))?;
        let place = segment.place_before(from);
        let len = segment.file_bytes.saturating_sub(place).min(READ_BYTES);
        let layout = segment.layout;
        let mut file = vec![0; usize::try_from(len).unwrap_or(0)];
        let source: &dyn DiskFile = if holding + 1 == self.segments.len() {
            &*self.active
        } else {
            if self
                .reader
                .as_ref()
                .is_none_or(|(name, _)| *name != segment.named)
            {
                let name = segment::file_name(self.header.flow, segment.named);
                let opened = self.shared.disk.open(&name);
                self.reader = Some((segment.named, opened.map_err(FlowFault::io("open"))?));
            }
            let (_, reader) = self.reader.as_ref().expect("was opened above");
            &**reader
        };
        let read = disk::read_full(source, &mut file, place).map_err(FlowFault::io("read"))?;
        if read < file.len() {
            return Err(FlowFault::Damaged { offset: from });
        }
        self.block.clear();
        let mut rest = &file[..];
        loop {
            let record = match segment::first_record(layout, rest) {
                Ok(record) => record,
                Err(NoRecord::Torn) if !self.block.is_empty() => return Ok(()),
                Err(_) => return Err(FlowFault::Damaged { offset: from }),
            };
            rest = &rest[record.file_bytes..];
            if record.end() <= from {
                continue;
            }
            if self.block.is_empty() {
                self.block_start = record.offset;
            }
            self.block.extend_from_slice(record.octets);
        }
    }
}
