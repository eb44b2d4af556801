//! One flow's octets in the store.

mod reading;
mod writing;

use super::aside::Aside;
use super::disk::{Disk, DiskFile};
use super::error::FlowFault;
use super::extent::Segment;
use super::room_look::RoomLook;
use super::segment::{
    self, HEADER_BYTES, Header, Layout, PAYLOAD_BYTES_MAX, RECORD_BYTES_MAX, RECORD_HEADER_BYTES,
};
use super::segment_file;
use super::space::{Space, is_full};
use super::sync::{Progress, SyncPolicy, Syncer};
use fulmar_proto::splice::FlowId;
use fulmar_proto::units::ByteCount;
use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::sync::Arc;

/// The state that the flows of a store share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) directory: PathBuf,
    pub(super) disk: Arc<dyn Disk>,
    pub(super) aside: Aside,
    pub(super) space: Arc<Space>,
    pub(super) syncer: Syncer,
    pub(super) room_look: RoomLook,
    pub(super) segment_bytes: u64,
    /// An emptied file of at least this length is cut, so that quiet flows hold little.
    pub(super) reuse_bytes: u64,
}

impl Shared {
    /// Sets a file of the store aside, and answers whether it is gone. A file that cannot be moved stays, and is met again
    /// at the next start.
    pub(super) fn set_aside(&self, name: &str) -> bool {
        match self.aside.put(&*self.disk, &self.space, name) {
            Ok(()) => self.space.was_set_aside(name),
            Err(error) => {
                self.space.not_set_aside(name, &error);
                return error.kind() == ErrorKind::NotFound;
            }
        }
        true
    }
}

/// One flow's octets, by their offset since the flow's start. Dropping it leaves the files for the
/// next start; [`FlowStore::forget`] deletes them.
#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a different debt to the disk, and any of them may stand at once"
)]
pub struct FlowStore {
    shared: Arc<Shared>,
    /// The header as it is in the active segment, in slot `slot`.
    header: Header,
    slot: u64,
    /// The segments, without gaps; the last one is active. Never empty.
    segments: VecDeque<Segment>,
    active: Arc<dyn DiskFile>,
    is_new: bool,
    /// Whether octets lie behind the active segment's records that could not be cut off. They must be cut off before
    /// another record is written.
    is_uncut: bool,
    /// Whether the active segment has an older header than this. The header must be written before a record is.
    is_stale: bool,
    /// Whether octets could not be kept or given back: the files are then evidence.
    is_faulty: bool,
    /// Files that are not needed and not deleted yet: released segments, and before them what could not be made. They are
    /// deleted in order, so that the rest has no gap.
    doomed: VecDeque<Segment>,
    released: u64,
    end: u64,
    progress: Arc<Progress>,
    /// An older segment that is being read, by its name.
    reader: Option<(u64, Arc<dyn DiskFile>)>,
    block_start: u64,
    block: Vec<u8>,
}

/// A flow's files as they were found.
#[derive(Debug)]
pub(super) struct Files {
    /// The active file's header.
    pub(super) header: Header,
    pub(super) slot: u64,
    /// The segments: at least one, without gaps.
    pub(super) segments: VecDeque<Segment>,
    /// All files, the active one last.
    pub(super) open: Vec<Arc<dyn DiskFile>>,
    pub(super) active: Arc<dyn DiskFile>,
    pub(super) is_uncut: bool,
    /// Whether the header is from another file.
    pub(super) is_stale: bool,
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
            generation: 0,
            record,
        };
        let active = segment_file::create(&*shared.disk, &header, true);
        let active = active.map_err(|not_made| FlowFault::io("begin a flow")(not_made.error))?;
        shared.space.add(HEADER_BYTES as u64);
        let mut flow = Self::with(
            shared,
            Files {
                header,
                slot: 0,
                segments: [Segment::empty(start, Layout::Two)].into(),
                open: Vec::new(),
                active,
                is_uncut: false,
                is_stale: false,
            },
        );
        flow.queue_sync();
        Ok(flow)
    }

    /// A flow that was found. Octets written before may not be on the disk yet: they are safe once they were
    /// synced again.
    pub(super) fn found(shared: Arc<Shared>, files: Files) -> Self {
        let open = files.open.clone();
        let flow = Self::with(shared, files);
        for (segment, file) in flow.segments.iter().zip(&open) {
            let file = (segment.named, file);
            let syncer = &flow.shared.syncer;
            syncer.wrote(&flow.progress, flow.end, file, true);
        }
        flow
    }

    fn with(shared: Arc<Shared>, files: Files) -> Self {
        let Files {
            header,
            slot,
            segments,
            active,
            is_uncut,
            is_stale,
            ..
        } = files;
        let released = segments.front().map_or(header.start, |first| first.start);
        let end = segments.back().map_or(header.start, |last| last.end);
        Self {
            shared,
            header,
            slot,
            segments,
            active,
            is_new: true,
            is_uncut,
            is_stale,
            is_faulty: false,
            doomed: VecDeque::new(),
            released,
            end,
            progress: Progress::starting_at(released),
            reader: None,
            block_start: 0,
            block: Vec::new(),
        }
    }

    /// The flow's name.
    pub const fn flow(&self) -> FlowId {
        self.header.flow
    }

    /// The driver's record of it.
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
            SyncPolicy::Always => self.synced_end(),
            SyncPolicy::Every(_) | SyncPolicy::Never => self.end,
        }
    }

    /// The offset before which everything is on the disk.
    pub(super) fn synced_end(&self) -> u64 {
        self.progress.safe()
    }

    /// The octets of the whole flow, once [`FlowStore::finish`] was called.
    pub const fn finished(&self) -> Option<u64> {
        self.header.finished
    }

    /// Octets of the files of a flow that keeps nothing, once they are cut.
    pub const EMPTY_BYTES: usize = HEADER_BYTES;

    /// Octets of the flow's files.
    pub fn used(&self) -> ByteCount {
        let files = self.segments.iter().chain(&self.doomed);
        ByteCount(files.map(|segment| segment.file_bytes).sum())
    }

    /// The octets that the store's limit leaves. The disk may have less.
    pub fn room(&self) -> usize {
        Self::room_in(self.shared.space.left())
    }

    /// The octets that fit into `left` octets of files.
    pub fn room_in(left: u64) -> usize {
        let header = RECORD_HEADER_BYTES as u64;
        let left = left.saturating_sub(header);
        // For large amounts, the headers of all records must be counted.
        let left = left - left / (PAYLOAD_BYTES_MAX as u64) * header;
        usize::try_from(left).unwrap_or(usize::MAX)
    }

    /// Takes octets at the end and returns how many: fewer than offered when the store or its disk is
    /// full; ask again later.
    ///
    /// # Errors
    /// [`FlowFault::Io`] if the disk fails, [`FlowFault::Finished`] after [`FlowStore::finish`], of
    /// this process or the one before; nothing was taken.
    pub fn append(&mut self, octets: &[u8]) -> Result<usize, FlowFault> {
        // The end is on the disk: further octets would contradict it, and count as damage at the next start.
        if let Some(total) = self.header.finished {
            return Err(FlowFault::Finished(total));
        }
        self.check_sync().inspect_err(|_| self.is_faulty = true)?;
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
                Err(error) => {
                    self.is_faulty = true;
                    return Err(FlowFault::io("append")(error));
                }
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

    /// Octets from offset `from` on that lie in one piece, at most `max` of them; empty at the end.
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
            self.load(from).inspect_err(|_| self.is_faulty = true)?;
        }
        let piece = self
            .cached(from)
            .ok_or(FlowFault::Damaged { offset: from })?;
        Ok(&piece[..piece.len().min(max)])
    }

    /// Releases everything before offset `to`, which is needed no more.
    pub fn release(&mut self, to: u64) {
        self.released = self.released.max(to.min(self.end));
        while self.segments.len() > 1
            && self
                .segments
                .front()
                .is_some_and(|s| s.end <= self.released)
        {
            self.doomed.extend(self.segments.pop_front());
        }
        // The file that the header was taken from may be among them.
        if self.is_stale && !self.doomed.is_empty() && self.write_header(|_| ()).is_err() {
            return;
        }
        self.delete_doomed();
        if self.released == self.end
            && self.doomed.is_empty()
            && !self.active_segment().is_damaged
            && self.active_segment().file_bytes >= HEADER_BYTES as u64 + self.shared.reuse_bytes
        {
            // If that fails, the file stays as it is and costs its space.
            drop(self.reuse_active());
        }
    }

    /// Notes the end of the flow: the client sends no more. Needs no space.
    ///
    /// # Errors
    /// [`FlowFault::Io`] if the disk fails.
    pub fn finish(&mut self) -> Result<(), FlowFault> {
        let finished = Some(self.end);
        self.replace_header(|header| header.finished = finished)
    }

    /// Replaces the driver's record of the flow, at most [`RECORD_BYTES_MAX`] octets. Needs no space.
    ///
    /// # Errors
    /// [`FlowFault::Io`] if the disk fails, or the record is too long.
    pub fn set_record(&mut self, record: &[u8]) -> Result<(), FlowFault> {
        let record = check_record(record)?;
        self.replace_header(|header| header.record = record)
    }

    /// Deletes the files of a flow that is over. After a fault they are set aside, since their octets were taken
    /// and are nowhere else.
    ///
    /// # Errors
    /// [`FlowFault::Io`] if the disk fails; the flow may be back after a restart.
    pub fn forget(mut self) -> Result<(), FlowFault> {
        if self.is_faulty {
            self.set_aside();
            return Ok(());
        }
        if self.segments.len() + self.doomed.len() > 1 {
            // Several files are not deleted in one step: a kill between must not leave half a flow.
            self.replace_header(|header| header.ended = true)?;
        }
        // The file that says that the flow is over is deleted last.
        let last = self.segments.pop_back();
        self.doomed.append(&mut self.segments);
        self.doomed.extend(last);
        self.delete_doomed();
        if !self.doomed.is_empty() {
            self.replace_header(|header| header.ended = true)?;
        }
        Ok(())
    }

    /// Sets the files of a flow aside that is over and whose octets reach nobody.
    pub fn set_aside(mut self) {
        self.doomed.append(&mut self.segments);
        for gone in core::mem::take(&mut self.doomed) {
            self.reader.take_if(|(name, _)| *name == gone.named);
            let name = segment::file_name(self.header.flow, gone.named);
            self.shared.set_aside(&name);
            self.shared.space.give_back(gone.file_bytes);
        }
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

    fn queue_sync(&mut self) {
        let is_new = core::mem::take(&mut self.is_new);
        let syncer = &self.shared.syncer;
        // Without a segment the flow is being forgotten, and there is nothing to keep safe.
        if let Some(active) = self.segments.back() {
            let file = (active.named, &self.active);
            syncer.wrote(&self.progress, self.end, file, is_new);
        }
    }

    /// Segments from before the flow's first octet, which could not be deleted at the start, go before all others: once
    /// the file that shows them to be released were gone, they would be a flow with a gap.
    pub(super) fn delete_first(&mut self, segments: VecDeque<Segment>) {
        self.shared
            .space
            .add(segments.iter().map(|s| s.file_bytes).sum());
        self.doomed = segments;
    }

    /// Deletes the released segments, as far as the disk lets us.
    fn delete_doomed(&mut self) {
        while let Some(segment) = self.doomed.pop_front() {
            // A file that is open still takes its space.
            self.reader.take_if(|(name, _)| *name == segment.named);
            let name = segment::file_name(self.header.flow, segment.named);
            let is_gone = if segment.is_damaged {
                self.shared.set_aside(&name)
            } else {
                let removed = self.shared.disk.remove(&name);
                removed.map_or_else(|error| error.kind() == ErrorKind::NotFound, |()| true)
            };
            if !is_gone {
                // It is tried again with the next one, and found again at the next start.
                self.doomed.push_front(segment);
                return;
            }
            self.progress.deleted(segment.named);
            self.shared.space.give_back(segment.file_bytes);
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
