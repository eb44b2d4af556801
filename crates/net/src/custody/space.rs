//! The store's room: the octets used of its limit, and whether somebody was told that it is full.

use super::notice::StoreNotice;
use fulmar_proto::units::ByteCount;
use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Shared by all flows of a store and its sync thread.
#[derive(Debug)]
pub(super) struct Space {
    directory: PathBuf,
    limit: ByteCount,
    used: AtomicU64,
    told: Mutex<Told>,
}

#[derive(Debug, Default)]
struct Told {
    full: Option<Full>,
    notices: VecDeque<StoreNotice>,
}

/// The place that has no room. Its end is announced only when there is room to spare, since a store that
/// drains as fast as it fills would otherwise announce it all the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Full {
    Limit,
    /// The disk is full; with the octets that it took since.
    Disk(usize),
}

/// The octets that a full disk must take without a failure before it counts as having room again.
pub(super) const SPARE_BYTES: usize = 256 << 10;

/// The most notices that nobody fetched; further ones replace those about single files, the oldest first.
const NOTICES_MAX: usize = 64;

impl Space {
    pub(super) fn new(directory: PathBuf, limit: ByteCount) -> Self {
        Self {
            directory,
            limit,
            used: AtomicU64::new(0),
            told: Mutex::default(),
        }
    }

    /// Octets of files.
    pub(super) fn used(&self) -> ByteCount {
        ByteCount(self.used.load(Ordering::Relaxed))
    }

    /// Octets of files that may be added.
    pub(super) fn left(&self) -> u64 {
        self.limit.0.saturating_sub(self.used().0)
    }

    /// Counts the growth of a file.
    pub(super) fn add(&self, octets: u64) {
        self.used.fetch_add(octets, Ordering::Relaxed);
    }

    /// Counts the octets of a file that shrank or was deleted.
    pub(super) fn give_back(&self, octets: u64) {
        let before = self.used.fetch_sub(octets, Ordering::Relaxed);
        debug_assert!(before >= octets, "more given back than was used");
        self.took(0);
    }

    /// Notes that nothing fits below the limit.
    pub(super) fn at_limit(&self) {
        self.full(Full::Limit, || StoreNotice::LimitReached {
            directory: self.directory.clone(),
            limit: self.limit,
        });
    }

    /// Notes that the disk took nothing.
    pub(super) fn disk_full(&self, error: &io::Error) {
        self.full(Full::Disk(0), || StoreNotice::DiskFull {
            directory: self.directory.clone(),
            why: error.to_string(),
        });
    }

    /// Notes that octets were taken, or given back.
    pub(super) fn took(&self, octets: usize) {
        let mut told = self.told();
        let over = match &mut told.full {
            None => return,
            Some(Full::Limit) => self.used().0 <= self.limit.0 - self.limit.0 / 8,
            Some(Full::Disk(since)) => {
                *since = since.saturating_add(octets);
                *since >= SPARE_BYTES
            }
        };
        if over {
            told.full = None;
            told.push(StoreNotice::RoomAgain {
                directory: self.directory.clone(),
            });
        }
    }

    /// Whether there is no room, as the last notice says.
    pub(super) fn is_full(&self) -> bool {
        self.told().full.is_some()
    }

    /// Whether the last notice says that the disk is full. Its end shows only when something is written.
    pub(super) fn is_disk_full(&self) -> bool {
        matches!(self.told().full, Some(Full::Disk(_)))
    }

    pub(super) fn sync_failed(&self, error: &io::Error) {
        self.told().push(StoreNotice::SyncFailed {
            directory: self.directory.clone(),
            why: error.to_string(),
        });
    }

    /// Announces a damaged file that was set aside.
    pub(super) fn was_set_aside(&self, file: &str) {
        self.told().push(StoreNotice::SetAside {
            directory: self.directory.clone(),
            file: file.to_owned(),
        });
    }

    /// Announces a damaged file that stays in the store.
    pub(super) fn not_set_aside(&self, file: &str, error: &io::Error) {
        self.told().push(StoreNotice::NotSetAside {
            directory: self.directory.clone(),
            file: file.to_owned(),
            why: error.to_string(),
        });
    }

    /// Announces the removal of a damaged file for later ones.
    pub(super) fn gave_way(&self, file: String) {
        self.told().push(StoreNotice::GaveWay {
            directory: self.directory.clone(),
            file,
        });
    }

    /// Announces that the file that names the format was damaged.
    pub(super) fn unreadable_line(&self) {
        self.told().push(StoreNotice::LineMended {
            directory: self.directory.clone(),
        });
    }

    pub(super) fn poll_notice(&self) -> Option<StoreNotice> {
        self.told().notices.pop_front()
    }

    fn full(&self, what: Full, notice: impl FnOnce() -> StoreNotice) {
        let mut told = self.told();
        if told.full.is_none() {
            told.push(notice());
        }
        told.full = Some(what);
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        // No change under this lock is left half done.
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Told {
    fn push(&mut self, notice: StoreNotice) {
        if self.notices.len() == NOTICES_MAX {
            // A notice about a single file, of which there may be many, is not a grave one.
            let is_one_of_many = |notice: &StoreNotice| {
                matches!(
                    notice,
                    StoreNotice::SetAside { .. } | StoreNotice::GaveWay { .. }
                )
            };
            let gone = self.notices.iter().position(is_one_of_many).unwrap_or(0);
            self.notices.remove(gone);
        }
        self.notices.push_back(notice);
    }
}

/// Whether `error` says that there is no space, now.
pub(super) fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge
    )
}
