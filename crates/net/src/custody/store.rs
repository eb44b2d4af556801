//! The directory: who holds it, what it may take.

use super::error::{FlowFault, StoreError};
use super::flow::{FlowStore, Shared};
use super::notice::StoreNotice;
use super::recovery::{self, Recovery, SEGMENT_BYTES_MAX};
use super::segment::FORMAT;
use super::space::{Space, is_full};
use super::sync::{SyncPolicy, Syncer};
use crate::wait::Waker;
use fulmar_proto::splice::FlowId;
use fulmar_proto::units::ByteCount;
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A store's settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreConfig {
    /// Where; made if it is not there. It holds nothing else.
    pub directory: PathBuf,
    /// Octets of files, at most, but for 512 for each flow.
    pub limit: ByteCount,
    /// What a power cut may take.
    pub sync: SyncPolicy,
}

/// A directory of flows that this process holds.
#[derive(Debug)]
pub struct Store {
    shared: Arc<Shared>,
    /// Holds the lock.
    _lock: File,
}

const NAME_OF_FORMAT: &str = "fulmar custody ";
/// A store of this many segments may still be shared by many flows.
const SEGMENTS: u64 = 256;
const SEGMENT_BYTES_MIN: u64 = 64 << 10;

impl Store {
    /// Opens the store and takes up what is in it. `waker` is called when octets became safe under
    /// [`SyncPolicy::Always`].
    ///
    /// # Errors
    /// [`StoreError`]: another process has it, another version wrote it, it is something else, or
    /// the system refuses.
    pub fn open(config: StoreConfig, waker: Option<Waker>) -> Result<(Self, Recovery), StoreError> {
        let StoreConfig {
            directory,
            limit,
            sync,
        } = config;
        let made = DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&directory);
        made.map_err(StoreError::io("make", &directory))?;
        let lock = lock(&directory)?;
        let opened = File::open(&directory).map_err(StoreError::io("open", &directory))?;
        let space = Arc::new(Space::new(directory.clone(), limit));
        let syncer = Syncer::start(sync, opened, Arc::clone(&space), waker);
        let shared = Arc::new(Shared {
            space,
            syncer: syncer.map_err(StoreError::io("start the sync thread of", &directory))?,
            directory,
            segment_bytes: (limit.0 / SEGMENTS).clamp(SEGMENT_BYTES_MIN, SEGMENT_BYTES_MAX),
        });
        let recovery = recovery::recover(&shared)?;
        let store = Self {
            shared,
            _lock: lock,
        };
        Ok((store, recovery))
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
        if self.shared.space.left() == 0 {
            self.shared.space.at_limit();
            return Ok(None);
        }
        match FlowStore::create(Arc::clone(&self.shared), flow, start, record) {
            Err(FlowFault::Io { source, .. }) if is_full(&source) => {
                self.shared.space.disk_full(&source);
                Ok(None)
            }
            created => created.map(Some),
        }
    }

    /// Octets of files, all flows together.
    pub fn used(&self) -> ByteCount {
        self.shared.space.used()
    }

    /// Something for the log.
    pub fn poll_notice(&self) -> Option<StoreNotice> {
        self.shared.space.poll_notice()
    }
}

/// Takes the lock, and makes the store if there is none.
fn lock(directory: &Path) -> Result<File, StoreError> {
    let path = directory.join("store");
    let is_there = path
        .try_exists()
        .map_err(StoreError::io("look at", &path))?;
    if !is_there {
        let mut entries = directory
            .read_dir()
            .map_err(StoreError::io("list", directory))?;
        if entries.next().is_some() && !path.exists() {
            return Err(StoreError::NotAStore(directory.to_owned()));
        }
    }
    let mut options = OpenOptions::new();
    let options = options.read(true).append(true).create(true).mode(0o600);
    let mut file = options.open(&path).map_err(StoreError::io("open", &path))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(StoreError::InUse(directory.to_owned())),
        Err(TryLockError::Error(error)) => return Err(StoreError::io("lock", &path)(error)),
    }
    let mut text = String::new();
    let read = (&file).take(64).read_to_string(&mut text);
    read.map_err(StoreError::io("read", &path))?;
    let ours = format!("{NAME_OF_FORMAT}{FORMAT}\n");
    if text.is_empty() {
        let written = file
            .write_all(ours.as_bytes())
            .and_then(|()| file.sync_all());
        written.map_err(StoreError::io("write", &path))?;
    } else if text != ours {
        let found = text.strip_prefix(NAME_OF_FORMAT).unwrap_or(&text);
        return Err(StoreError::Version {
            found: format!("{:?}", found.trim_end()),
            path,
            supported: FORMAT,
        });
    }
    Ok(file)
}

#[cfg(test)]
mod tests;
