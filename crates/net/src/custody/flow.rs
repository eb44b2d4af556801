//! One flow's octets in the store.

use super::error::FlowFault;
use super::extent::{READ_BYTES, Segment};
use super::segment::{
    self, HEADER_BYTES, Header, NoRecord, PAYLOAD_BYTES_MAX, RECORD_BYTES_MAX, RECORD_HEADER_BYTES,
};
use super::segment_file;
use super::space::{Space, is_full};
use super::sync::{Progress, SyncPolicy, Syncer};
use fulmar_proto::splice::FlowId;
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;

/// What the flows of a store share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) directory: PathBuf,
    pub(super) space: Arc<Space>,
    pub(super) syncer: Syncer,
    pub(super) segment_bytes: u64,
}

/// An emptied file of at least this length is cut, so that quiet flows hold little.
const REUSE_BYTES: u64 = 16 << 10;

/// One flow's octets, by their offset since the flow's start. Dropping it leaves the files for the
/// next start; [`FlowStore::forget`] deletes them.
#[derive(Debug)]
pub struct FlowStore {
    shared: Arc<Shared>,
    /// As it is in the active segment.
    header: Header,
    /// Without gaps; the last one is active. Never empty.
    segments: VecDeque<Segment>,
    active: Arc<File>,
    is_new: bool,
    released: u64,
    end: u64,
    progress: Arc<Progress>,
    /// An older segment that is being read, by its name.
    reader: Option<(u64, File)>,
    block_start: u64,
    block: Vec<u8>,
}

impl FlowStore {
    pub(super) fn create(
        shared: Arc<Shared>,
        flow: FlowId,
        start: u64,
        record: &[u8],
    ) -> Result<Self, FlowFault> {
        let record = check_record(record)?;
        let header = Header {
            flow,
            start,
            finished: None,
            ended: false,
            record,
        };
        let active = segment_file::create(&shared.directory, &header);
        let active = active.map_err(FlowFault::io("begin a flow"))?;
        shared.space.add(HEADER_BYTES as u64);
        Ok(Self::with(
            shared,
            header,
            [Segment::empty(start)].into(),
            active,
            true,
        ))
    }

    /// A flow that was found, with at least one segment, without gaps.
    pub(super) fn with(
        shared: Arc<Shared>,
        header: Header,
        segments: VecDeque<Segment>,
        active: File,
        is_new: bool,
    ) -> Self {
        let released = segments.front().map_or(header.start, |first| first.start);
        let end = segments.back().map_or(header.start, |last| last.end);
        let flow = Self {
            shared,
            header,
            segments,
            active: Arc::new(active),
            is_new,
            released,
            end,
            progress: Progress::starting_at(end),
            reader: None,
            block_start: 0,
            block: Vec::new(),
        };
        flow.queue_sync();
        flow
    }

    /// The flow's name.
    pub const fn flow(&self) -> FlowId {
        self.header.flow
    }

    /// What the driver noted about it.
    pub fn record(&self) -> &[u8] {
        &self.header.record
    }

    /// The offset of the first octet kept.
    pub const fn start(&self) -> u64 {
        self.released
    }

    /// The offset after the last octet kept.
    pub const fn end(&self) -> u64 {
        self.end
    }

    /// The offset up to which octets are as safe as the store's policy promises: the client's
    /// socket may be emptied so far and no further. With [`SyncPolicy::Always`] it follows the end
    /// after a sync, and the waker is called.
    pub fn safe_end(&self) -> u64 {
        match self.shared.syncer.policy() {
            SyncPolicy::Always => self.progress.safe(),
            SyncPolicy::Every(_) | SyncPolicy::Never => self.end,
        }
    }

    /// How many octets the flow has, once [`FlowStore::finish`] was called.
    pub const fn finished(&self) -> Option<u64> {
        self.header.finished
    }

    /// How many octets the store's limit leaves. The disk may have less.
    pub fn room(&self) -> usize {
        let header = RECORD_HEADER_BYTES as u64;
        let left = self.shared.space.left().saturating_sub(header);
        // For large amounts, the headers of all records count.
        let left = left - left / (PAYLOAD_BYTES_MAX as u64) * header;
        usize::try_from(left).unwrap_or(usize::MAX)
    }

    /// Takes octets at the end and says how many: fewer than offered when the store or its disk is
    /// full; ask again later.
    ///
    /// # Errors
    /// [`FlowFault::Io`] if the disk fails, [`FlowFault::Finished`] after [`FlowStore::finish`], of
    /// this process or the one before; nothing was taken.
    pub fn append(&mut self, octets: &[u8]) -> Result<usize, FlowFault> {
        // The end is on the disk: more octets would contradict it, and be damage at the next start.
        if let Some(total) = self.header.finished {
            return Err(FlowFault::Finished(total));
        }
        self.check_sync()?;
        let mut taken = 0;
        let mut full = false;
        for piece in octets.chunks(PAYLOAD_BYTES_MAX) {
            let room = self.room();
            let fitting = &piece[..piece.len().min(room)];
            if fitting.is_empty() {
                self.shared.space.at_limit();
                full = true;
                break;
            }
            match self.append_record(fitting) {
                Ok(()) => taken += fitting.len(),
                Err(error) if is_full(&error) => {
                    self.shared.space.disk_full(&error);
                    full = true;
                    break;
                }
                Err(_) if taken > 0 => break,
                Err(error) => return Err(FlowFault::io("append")(error)),
            }
        }
        if taken > 0 {
            self.queue_sync();
            if !full {
                self.shared.space.took(taken);
            }
        }
        Ok(taken)
    }

    /// Octets from offset `from` on that lie in one piece, at most `max`; empty at the end.
    ///
    /// # Errors
    /// [`FlowFault`] if they were released, or cannot be read, or are not what was written.
    pub fn read(&mut self, from: u64, max: usize) -> Result<&[u8], FlowFault> {
        if from < self.released || from > self.end {
            return Err(FlowFault::NotKept(from));
        }
        if from == self.end {
            self.block = Vec::new();
            return Ok(&[]);
        }
        if self.cached(from).is_none() {
            self.load(from)?;
        }
        let piece = self
            .cached(from)
            .ok_or(FlowFault::Damaged { offset: from })?;
        Ok(&piece[..piece.len().min(max)])
    }

    /// Everything before offset `to` is needed no more.
    pub fn release(&mut self, to: u64) {
        self.released = self.released.max(to.min(self.end));
        while self.segments.len() > 1
            && self
                .segments
                .front()
                .is_some_and(|s| s.end <= self.released)
        {
            if let Some(gone) = self.segments.pop_front() {
                self.delete(&gone);
            }
        }
        if self.released == self.end
            && self.active_segment().file_bytes >= HEADER_BYTES as u64 + REUSE_BYTES
        {
            // It stays as it is if that fails, and costs its space.
            drop(self.reuse_active());
        }
    }

    /// The client sends no more. Needs no space.
    ///
    /// # Errors
    /// [`FlowFault::Io`] if the disk fails.
    pub fn finish(&mut self) -> Result<(), FlowFault> {
        self.header.finished = Some(self.end);
        self.write_header()
    }

    /// Replaces what the driver noted about the flow, at most [`RECORD_BYTES_MAX`] octets. Needs no
    /// space.
    ///
    /// # Errors
    /// [`FlowFault::Io`] if the disk fails, or the record is too long.
    pub fn set_record(&mut self, record: &[u8]) -> Result<(), FlowFault> {
        self.header.record = check_record(record)?;
        self.write_header()
    }

    /// The flow is over: its files go.
    ///
    /// # Errors
    /// [`FlowFault::Io`] if the disk fails; the flow may be back after a restart.
    pub fn forget(mut self) -> Result<(), FlowFault> {
        if self.segments.len() > 1 {
            // Several files do not go at once: a kill among them must not leave half a flow.
            self.header.ended = true;
            self.write_header()?;
        }
        while let Some(gone) = self.segments.pop_front() {
            self.delete(&gone);
        }
        Ok(())
    }

    fn active_segment(&self) -> &Segment {
        self.segments.back().expect("a flow has an active segment")
    }

    fn check_sync(&self) -> Result<(), FlowFault> {
        if self.progress.has_failed() {
            let error = io::Error::other("an earlier sync failed");
            return Err(FlowFault::io("append")(error));
        }
        Ok(())
    }

    fn append_record(&mut self, octets: &[u8]) -> io::Result<()> {
        let length = (RECORD_HEADER_BYTES + octets.len()) as u64;
        let active = self.active_segment();
        if active.end > active.start && active.file_bytes + length > self.shared.segment_bytes {
            self.start_segment()?;
        }
        let place = self.active_segment().file_bytes;
        let header = segment::record_header(self.end, octets);
        if let Err(error) = segment_file::write_record(&self.active, &header, octets, place) {
            // A half record is cut off; were it left, the next one would overwrite it.
            drop(self.active.set_len(place));
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
        self.header.start = self.end;
        let file = segment_file::create(&self.shared.directory, &self.header)?;
        self.shared.space.add(HEADER_BYTES as u64);
        self.active = Arc::new(file);
        self.is_new = true;
        self.segments.push_back(Segment::empty(self.end));
        Ok(())
    }

    /// Empties the active file in place, which no full disk can prevent.
    fn reuse_active(&mut self) -> Result<(), FlowFault> {
        let before = self.header.start;
        self.header.start = self.end;
        if let Err(fault) = self.write_header() {
            self.header.start = before;
            return Err(fault);
        }
        let end = self.end;
        let cut = self.active.set_len(HEADER_BYTES as u64);
        let active = self
            .segments
            .back_mut()
            .expect("a flow has an active segment");
        // Records that could not be cut off are before the header's first octet, and overwritten.
        let freed = active.file_bytes - HEADER_BYTES as u64;
        *active = Segment {
            named: active.named,
            ..Segment::empty(end)
        };
        self.shared.space.give_back(freed);
        cut.map_err(FlowFault::io("cut"))
    }

    fn write_header(&mut self) -> Result<(), FlowFault> {
        let octets = self.header.encode();
        let written = self.active.write_all_at(&octets, 0);
        written.map_err(FlowFault::io("write the header"))?;
        self.queue_sync();
        Ok(())
    }

    fn queue_sync(&self) {
        let syncer = &self.shared.syncer;
        syncer.wrote(&self.progress, self.end, &self.active, self.is_new);
    }

    fn delete(&mut self, segment: &Segment) {
        // A file that is open still takes its space.
        self.reader.take_if(|(name, _)| *name == segment.named);
        let name = segment::file_name(self.header.flow, segment.named);
        // One that cannot be deleted still takes its space, and is found again at the next start.
        if std::fs::remove_file(self.shared.directory.join(name)).is_ok() {
            self.shared.space.give_back(segment.file_bytes);
        }
    }

    fn cached(&self, from: u64) -> Option<&[u8]> {
        let skip = usize::try_from(from.checked_sub(self.block_start)?).ok()?;
        self.block.get(skip..).filter(|rest| !rest.is_empty())
    }

    /// Reads the record that holds `from`, and those after it that come with it.
    fn load(&mut self, from: u64) -> Result<(), FlowFault> {
        let holding = self.segments.partition_point(|s| s.end <= from);
        let segment = self.segments.get(holding).ok_or(FlowFault::NotKept(from))?;
        let place = segment.place_before(from);
        let len = segment.file_bytes.saturating_sub(place).min(READ_BYTES);
        let mut file = vec![0; usize::try_from(len).unwrap_or(0)];
        let source: &File = if holding + 1 == self.segments.len() {
            &self.active
        } else {
            if self
                .reader
                .as_ref()
                .is_none_or(|(name, _)| *name != segment.named)
            {
                let name = segment::file_name(self.header.flow, segment.named);
                let opened = File::open(self.shared.directory.join(name));
                self.reader = Some((segment.named, opened.map_err(FlowFault::io("open"))?));
            }
            let (_, reader) = self.reader.as_ref().expect("was opened above");
            reader
        };
        match source.read_exact_at(&mut file, place) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                return Err(FlowFault::Damaged { offset: from });
            }
            read => read.map_err(FlowFault::io("read"))?,
        }
        self.block.clear();
        let mut rest = &file[..];
        loop {
            let record = match segment::first_record(rest) {
                Ok(record) => record,
                Err(NoRecord::Torn) if !self.block.is_empty() => return Ok(()),
                Err(_) => return Err(FlowFault::Damaged { offset: from }),
            };
            rest = &rest[record.file_bytes()..];
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

fn check_record(record: &[u8]) -> Result<Vec<u8>, FlowFault> {
    if record.len() > RECORD_BYTES_MAX {
        let error = io::Error::other("the flow's record is too long");
        return Err(FlowFault::io("note the flow's record")(error));
    }
    Ok(record.to_vec())
}
