//! What a store has to tell its operator, once each.

use core::fmt;
use fulmar_proto::units::ByteCount;
use std::path::PathBuf;

/// A change of the store's state: one log line each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreNotice {
    /// The limit is reached: clients wait.
    LimitReached {
        /// The store.
        directory: PathBuf,
        /// Its limit.
        limit: ByteCount,
    },
    /// The disk is full, or a quota is used up: clients wait.
    DiskFull {
        /// The store.
        directory: PathBuf,
        /// What the system said.
        why: String,
    },
    /// There is room again.
    RoomAgain {
        /// The store.
        directory: PathBuf,
    },
    /// Octets could not be brought to the disk. Flows that wait for it cannot go on.
    SyncFailed {
        /// The store.
        directory: PathBuf,
        /// What the system said.
        why: String,
    },
}

impl fmt::Display for StoreNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LimitReached { directory, limit } => write!(
                f,
                "custody store {} holds its limit of {limit}: clients wait until the destination has taken some",
                directory.display()
            ),
            Self::DiskFull { directory, why } => write!(
                f,
                "the disk of custody store {} is full ({why}): clients wait; free some space, and it goes on by itself",
                directory.display()
            ),
            Self::RoomAgain { directory } => {
                write!(f, "custody store {} has room again", directory.display())
            }
            Self::SyncFailed { directory, why } => write!(
                f,
                "custody store {} cannot bring octets to the disk ({why}): its flows end",
                directory.display()
            ),
        }
    }
}
