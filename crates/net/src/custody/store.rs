//! The store: a directory that one process holds, with a limit on its octets.

use super::aside::Aside;
use super::directory::Directory;
use super::disk::Disk;
use super::error::{FlowFault, StoreError};
use super::flow::{FlowStore, Shared};
use super::notice::StoreNotice;
use super::recovery::{self, Recovery, SEGMENT_BYTES_MAX};
use super::room_look::RoomLook;
use super::segment::FORMAT;
use super::space::{Space, is_full};
use super::sync::{SyncPolicy, Syncer};
use crate::wait::Waker;
use fulmar_proto::splice::FlowId;
use fulmar_proto::units::ByteCount;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A store's settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreConfig {
    /// The directory; made if it is not there. It holds nothing else.
    pub directory: PathBuf,
    /// The most octets of files, but for 1,024 for each flow. Damaged files may take as much again.
    pub limit: ByteCount,
    /// The octets that a power cut may take.
    pub sync: SyncPolicy,
}

/// A directory of flows that this process holds.
#[derive(Debug)]
pub struct Store {
    shared: Arc<Shared>,
}

/// A directory that this process holds, and whose flows it has not looked at.
#[derive(Debug)]
pub struct Claim {
    config: StoreConfig,
    disk: Directory,
    space: Arc<Space>,
}

const NAME_OF_FORMAT: &str = "fulmar custody ";
/// The whole line of format 1.
const LINE_OF_FORMAT_1: &str = "fulmar custody 1\n";
/// The fewest segments of a full store, so that many flows can share it.
const SEGMENTS: u64 = 256;
const SEGMENT_BYTES_MIN: u64 = 64 << 10;
/// An emptied file of a quarter of the smallest segment is cut.
const REUSE_BYTES: u64 = SEGMENT_BYTES_MIN / 4;

impl Store {
    /// Opens the store and takes up its flows. `waker` is called when octets became safe under
    /// [`SyncPolicy::Always`].
    ///
    /// # Errors
    /// [`StoreError`]: another process has it, another version wrote it, it is something else, others
    /// may write into it, or the system refuses. Damage is no error.
    pub fn open(config: StoreConfig, waker: Option<Waker>) -> Result<(Self, Recovery), StoreError> {
        Self::claim(config)?.open(waker)
    }

    /// Holds the store, and reads none of its flows: that takes a while with many.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn claim(config: StoreConfig) -> Result<Claim, StoreError> {
        let directory = &config.directory;
        let disk = Directory::open(directory)?;
        let space = Arc::new(Space::new(directory.clone(), config.limit));
        if !check_line(&disk)? {
            disk.set_line(&line(FORMAT))
                .map_err(StoreError::io("write the format into", directory))?;
            space.unreadable_line();
        }
        Ok(Claim {
            config,
            disk,
            space,
        })
    }

    /// The store on a disk.
    pub(super) fn on(shared: Shared) -> Result<(Self, Recovery), StoreError> {
        let shared = Arc::new(shared);
        let recovery = recovery::recover(&shared)?;
        Ok((Self { shared }, recovery))
    }

    /// Begins a flow, whose first octet will have offset `start`. `record` is the driver's, at most
    /// [`RECORD_BYTES_MAX`](super::RECORD_BYTES_MAX) octets. `None` if the store or its disk is full.
    ///
    /// # Errors
    /// [`FlowFault::Io`] if the disk fails, or the flow is there already.
    pub fn begin(
        &self,
        flow: FlowId,
        start: u64,
        record: &[u8],
    ) -> Result<Option<FlowStore>, FlowFault> {
        if !self.has_room() {
            self.note_limit();
            return Ok(None);
        }
        self.begin_beyond(flow, start, record)
    }

    /// Begins a flow, beyond the store's limit if need be: by 1,024 octets for each flow that is begun so.
    /// `None` if the disk is full.
    ///
    /// # Errors
    /// As [`Store::begin`].
    pub fn begin_beyond(
        &self,
        flow: FlowId,
        start: u64,
        record: &[u8],
    ) -> Result<Option<FlowStore>, FlowFault> {
        match FlowStore::create(Arc::clone(&self.shared), flow, start, record) {
            Err(FlowFault::Io { source, .. }) if is_full(&source) => {
                self.shared.space.disk_full(&source);
                Ok(None)
            }
            created => created.map(Some),
        }
    }

    /// Whether the limit leaves anything.
    pub fn has_room(&self) -> bool {
        self.shared.space.left() > 0
    }

    /// Announces that the limit is reached, once until there is room to spare.
    pub fn note_limit(&self) {
        self.shared.space.at_limit();
    }

    /// Octets of files, all flows together.
    pub fn used(&self) -> ByteCount {
        self.shared.space.used()
    }

    /// Whether it was told that there is no room, and not yet that there is some again.
    pub fn is_full(&self) -> bool {
        self.shared.space.is_full()
    }

    /// Whether it was told that the disk is full, and not yet that it has room again. Only what is written shows that:
    /// ask [`Store::look_for_room`] now and then.
    pub fn is_disk_full(&self) -> bool {
        self.shared.space.is_disk_full()
    }

    /// Begins to look, on a thread of its own, whether a disk that was full takes octets again; announces it and calls the
    /// waker if so. A file of 256 KiB is written and removed: what the system tells of free space knows no quotas.
    ///
    /// # Errors
    /// The system starts no thread.
    pub fn look_for_room(&self) -> io::Result<()> {
        if !self.is_disk_full() {
            return Ok(());
        }
        self.shared.room_look.begin()
    }

    /// Waits until no look for room is under way.
    #[cfg(test)]
    pub(crate) fn wait_for_look(&self) {
        self.shared.room_look.wait();
    }

    /// Damaged files that are set aside, and their octets.
    pub fn set_aside(&self) -> (usize, ByteCount) {
        self.shared.aside.holds()
    }

    /// The next notice, for the log.
    pub fn poll_notice(&self) -> Option<StoreNotice> {
        self.shared.space.poll_notice()
    }
}

impl Claim {
    /// Opens the store and takes up its flows, as [`Store::open`] does.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn open(self, waker: Option<Waker>) -> Result<(Store, Recovery), StoreError> {
        let Self {
            config,
            disk,
            space,
        } = self;
        let StoreConfig {
            directory,
            limit,
            sync,
        } = config;
        let disk: Arc<dyn Disk> = Arc::new(disk);
        let caller = waker.as_ref().map(Waker::try_clone).transpose();
        let caller = caller.map_err(StoreError::io("copy the waker for", &directory))?;
        let syncer = Syncer::start(sync, Arc::clone(&disk), Arc::clone(&space), waker);
        Store::on(Shared {
            aside: Aside::found(&*disk, limit),
            room_look: RoomLook::new(Arc::clone(&disk), Arc::clone(&space), caller),
            syncer: syncer.map_err(StoreError::io("start the sync thread of", &directory))?,
            disk,
            space,
            directory,
            segment_bytes: (limit.0 / SEGMENTS).clamp(SEGMENT_BYTES_MIN, SEGMENT_BYTES_MAX),
            reuse_bytes: REUSE_BYTES,
        })
    }
}

/// The line that names a format. Its check tells another format from damage.
fn line(format: u16) -> String {
    let name = format!("{NAME_OF_FORMAT}{format}");
    let crc = crc32fast::hash(name.as_bytes());
    format!("{name} {crc:08x}\n")
}

/// Whether the line is whole. An empty one is written here.
fn check_line(disk: &Directory) -> Result<bool, StoreError> {
    let found = disk.line()?;
    let ours = line(FORMAT);
    if found.is_empty() {
        let written = disk.set_line(&ours);
        written.map_err(StoreError::io("write the format into", disk.path()))?;
        return Ok(true);
    }
    // The segments say which format each has.
    if found == ours.as_bytes() || found == LINE_OF_FORMAT_1.as_bytes() {
        return Ok(true);
    }
    let text = String::from_utf8_lossy(&found);
    let number = text.strip_prefix(NAME_OF_FORMAT);
    let number = number.and_then(|rest| rest.split(' ').next()?.parse().ok());
    match number {
        Some(number) if line(number) == text => Err(StoreError::Version {
            path: store_file(disk.path()),
            found: number.to_string(),
            supported: FORMAT,
        }),
        _ if resembles(&found, ours.as_bytes()) => Ok(false),
        _ => Err(StoreError::NotAStore(disk.path().to_owned())),
    }
}

fn store_file(directory: &Path) -> PathBuf {
    directory.join("store")
}

/// Whether at least half of the octets that both have are the same.
fn resembles(found: &[u8], ours: &[u8]) -> bool {
    let same = found.iter().zip(ours).filter(|(a, b)| a == b).count();
    2 * same >= found.len().min(ours.len())
}

#[cfg(test)]
mod tests;
